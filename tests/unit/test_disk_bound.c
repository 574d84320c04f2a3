/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a file system is kept for what there is already. */
#include <config.h>

#include "scheduler/daemon/disk_bound.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#define MORE_THAN_ANY ((guint64)1 << 43)

static char *state_in(const char *dir)
{
    return g_build_filename(dir, "state.db", NULL);
}

static void what_is_kept_is_not_for_new_jobs(void **state)
{
    g_autofree char *path = state_in(*state);
    g_autoptr(BerthDiskBound) bound = berth_disk_bound_new(path, MORE_THAN_ANY);
    for (guint i = 0; i < 2; i++) {
        g_autoptr(GError) error = NULL;
        assert_false(berth_disk_bound_check(bound, &error));
        assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED,
                           " MiB, and 8796093022208 are kept for the jobs that there are");
    }
}

static void beyond_that_all_is_for_jobs(void **state)
{
    g_autofree char *path = state_in(*state);
    g_autoptr(BerthDiskBound) bound = berth_disk_bound_new(path, 1);
    g_autoptr(BerthDiskBound) none = berth_disk_bound_new(path, 0);
    assert_true(berth_disk_bound_check(bound, NULL));
    assert_true(berth_disk_bound_check(none, NULL));
}

static void what_is_no_file_or_cannot_be_asked_is_not_bounded(void **state)
{
    g_autofree char *path = g_build_filename(*state, "away", "state.db", NULL);
    g_autoptr(BerthDiskBound) elsewhere =
        berth_disk_bound_new("file:pool:ns/state.db?vfs=ceph", MORE_THAN_ANY);
    g_autoptr(BerthDiskBound) away = berth_disk_bound_new(path, 1);
    assert_true(berth_disk_bound_check(elsewhere, NULL));
    assert_true(berth_disk_bound_check(away, NULL));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_kept_is_not_for_new_jobs),
        TEST(beyond_that_all_is_for_jobs),
        TEST(what_is_no_file_or_cannot_be_asked_is_not_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
