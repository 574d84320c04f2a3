/* SPDX-License-Identifier: Apache-2.0 */
/* Whose storage it is, on a directory. */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "scheduler/daemon/storage_owner.h"

#include <glib/gstdio.h>

static const BerthOwnerMark start = {.jobs_reserved = 20, .next_job = 10};
static const BerthOwnerMark unreserved = {.jobs_reserved = 0, .next_job = 10}; /* it had no mark */

static BerthStorage *open_in(const char *path)
{
    g_autoptr(GError) error = NULL;
    BerthStorageConfig config = {.kind = (char *)"dir", .path = (char *)path, .op_timeout_sec = 30};
    BerthStorage *storage = berth_storage_open(&config, &error);
    assert_no_error(error);
    return storage;
}

static void assert_claims(BerthStorageOwner *owner, BerthStorage *storage, guint64 jobs_reserved,
                          guint64 next_job)
{
    g_autoptr(GError) error = NULL;
    assert_true(berth_storage_owner_claim(owner, storage, &error));
    assert_no_error(error);
    assert_int_equal(berth_storage_owner_found(owner)->jobs_reserved, jobs_reserved);
    assert_int_equal(berth_storage_owner_found(owner)->next_job, next_job);
    assert_true(berth_storage_owner_check(owner, storage, &error));
}

/* Also one from before there were marks, whose database has given out numbers. */
static void claim_of_unmarked_storage_marks_it(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(BerthStorageOwner) owner = berth_storage_owner_new("aa", "one", &unreserved, FALSE);
    assert_claims(owner, storage, 0, 10);
    const BerthOwnerMark later = {.jobs_reserved = 50, .next_job = 15};
    assert_true(berth_storage_owner_write(owner, storage, &later, &error));
    const BerthOwnerMark late = {.jobs_reserved = 40, .next_job = 12}; /* than which it is newer */
    assert_true(berth_storage_owner_write(owner, storage, &late, &error));
    g_autoptr(BerthStorageOwner) again = berth_storage_owner_new("aa", "one", &start, FALSE);
    assert_claims(again, storage, 50, 15);
}

/* The storage of state "aa" as it was left with START. */
static BerthStorageOwner *owner_of(BerthStorage *storage)
{
    g_autoptr(GError) error = NULL;
    BerthStorageOwner *owner = berth_storage_owner_new("aa", "one", &unreserved, FALSE);
    assert_claims(owner, storage, 0, 10);
    assert_true(berth_storage_owner_write(owner, storage, &start, &error));
    assert_claims(owner, storage, 20, 10);
    return owner;
}

static void lose_mark(const char *path)
{
    g_autofree char *mark = g_build_filename(path, "mark", NULL);
    assert_int_equal(g_unlink(mark), 0);
}

static void claim_without_the_mark_that_it_had_is_failed_precondition(void **state)
{
    g_autoptr(GError) error = NULL, none = NULL;
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(BerthStorageOwner) owner = berth_storage_owner_new("aa", "one", &start, FALSE);
    assert_false(berth_storage_owner_claim(owner, storage, &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "no mark");
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "is mounted");
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "--take-over-storage");
    assert_null(berth_storage_mark_read(storage, &none));
    assert_berth_error(none, BERTH_ERROR_NOT_FOUND, "mark");
}

static void take_over_makes_a_lost_mark_with_the_bound(void **state)
{
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(BerthStorageOwner) owner = berth_storage_owner_new("aa", "one", &start, TRUE);
    assert_claims(owner, storage, 20, 20);
    lose_mark(*state);
    g_autoptr(GError) again = NULL; /* it was for once */
    assert_false(berth_storage_owner_claim(owner, storage, &again));
    assert_berth_error(again, BERTH_ERROR_FAILED_PRECONDITION, "no mark");
}

static void mark_that_vanishes_is_not_made_again(void **state)
{
    g_autoptr(GError) claim = NULL, check = NULL, write = NULL, none = NULL;
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(BerthStorageOwner) owner = berth_storage_owner_new("aa", "one", &unreserved, FALSE);
    assert_claims(owner, storage, 0, 10);
    lose_mark(*state);
    assert_false(berth_storage_owner_check(owner, storage, &check));
    assert_berth_error(check, BERTH_ERROR_FAILED_PRECONDITION, "no mark");
    assert_false(berth_storage_owner_write(owner, storage, &start, &write));
    assert_berth_error(write, BERTH_ERROR_FAILED_PRECONDITION, "no mark");
    assert_false(berth_storage_owner_claim(owner, storage, &claim));
    assert_berth_error(claim, BERTH_ERROR_FAILED_PRECONDITION, "no mark");
    assert_null(berth_storage_mark_read(storage, &none));
    assert_berth_error(none, BERTH_ERROR_NOT_FOUND, "mark");
}

static void every_use_of_foreign_storage_is_failed_precondition(void **state)
{
    g_autoptr(GError) claim = NULL, check = NULL, write = NULL;
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(BerthStorageOwner) owner = owner_of(storage);
    g_autoptr(BerthStorageOwner) other = berth_storage_owner_new("bb", "two", &start, FALSE);
    assert_false(berth_storage_owner_claim(other, storage, &claim));
    assert_berth_error(claim, BERTH_ERROR_FAILED_PRECONDITION, "state aa of cluster \"one\"");
    assert_berth_error(claim, BERTH_ERROR_FAILED_PRECONDITION, "bb of cluster \"two\"");
    assert_berth_error(claim, BERTH_ERROR_FAILED_PRECONDITION, "--take-over-storage");
    assert_false(berth_storage_owner_check(other, storage, &check));
    assert_berth_error(check, BERTH_ERROR_FAILED_PRECONDITION, "state aa");
    assert_false(berth_storage_owner_write(other, storage, &start, &write));
    assert_berth_error(write, BERTH_ERROR_FAILED_PRECONDITION, "state aa");
    assert_claims(owner, storage, 20, 10);
}

static void take_over_happens_once_and_keeps_the_bound(void **state)
{
    g_autoptr(GError) lost = NULL, again = NULL;
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(BerthStorageOwner) owner = owner_of(storage);
    g_autoptr(BerthStorageOwner) other = berth_storage_owner_new("bb", "two", &start, TRUE);
    g_autoptr(BerthStorageOwner) third = berth_storage_owner_new("cc", "three", &start, TRUE);
    assert_claims(other, storage, 20, 20);
    assert_false(berth_storage_owner_claim(owner, storage, &lost));
    assert_berth_error(lost, BERTH_ERROR_FAILED_PRECONDITION, "state bb");
    assert_claims(third, storage, 20, 20);
    assert_false(berth_storage_owner_claim(other, storage, &again));
    assert_berth_error(again, BERTH_ERROR_FAILED_PRECONDITION, "state cc");
}

/* What happens between the look at the mark and its replacement. */
static struct {
    BerthStorageOwner *other;
    BerthStorage *storage;
} meanwhile;

gboolean __real_berth_storage_mark_replace(BerthStorage *storage, GBytes *expected, GBytes *content,
                                           GError **error);
gboolean __wrap_berth_storage_mark_replace(BerthStorage *storage, GBytes *expected, GBytes *content,
                                           GError **error);
gboolean __wrap_berth_storage_mark_replace(BerthStorage *storage, GBytes *expected, GBytes *content,
                                           GError **error)
{
    BerthStorageOwner *other = g_steal_pointer(&meanwhile.other);
    if (other)
        assert_claims(other, meanwhile.storage, 20, 20);
    return __real_berth_storage_mark_replace(storage, expected, content, error);
}

static void take_over_during_a_write_is_not_overwritten(void **state)
{
    g_autoptr(GError) write = NULL, check = NULL;
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(BerthStorageOwner) owner = owner_of(storage);
    g_autoptr(BerthStorageOwner) other = berth_storage_owner_new("bb", "two", &start, TRUE);
    meanwhile.other = other;
    meanwhile.storage = storage;
    assert_false(berth_storage_owner_write(owner, storage, &start, &write));
    assert_berth_error(write, BERTH_ERROR_UNAVAILABLE, "changed meanwhile");
    assert_false(berth_storage_owner_check(owner, storage, &check));
    assert_berth_error(check, BERTH_ERROR_FAILED_PRECONDITION, "state bb");
    assert_claims(other, storage, 20, 20);
}

static void mark_that_is_damaged_is_data_loss(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = open_in(*state);
    g_autoptr(GBytes) rubbish = g_bytes_new_static("rubbish", 7);
    g_autoptr(BerthStorageOwner) owner = berth_storage_owner_new("aa", "one", &start, TRUE);
    assert_true(berth_storage_mark_create(storage, rubbish, NULL));
    assert_false(berth_storage_owner_claim(owner, storage, &error));
    assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "damaged");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(claim_of_unmarked_storage_marks_it),
        TEST(claim_without_the_mark_that_it_had_is_failed_precondition),
        TEST(take_over_makes_a_lost_mark_with_the_bound),
        TEST(mark_that_vanishes_is_not_made_again),
        TEST(every_use_of_foreign_storage_is_failed_precondition),
        TEST(take_over_happens_once_and_keeps_the_bound),
        TEST(take_over_during_a_write_is_not_overwritten),
        TEST(mark_that_is_damaged_is_data_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
