/* SPDX-License-Identifier: Apache-2.0 */
/* Which contents travel with a start: decided at submission, and the same at each start. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/submit_blobs.h"
#include "tests/unit/store_fixture.h"

#include <string.h>

/* Two more than the budget holds. */
#define N_FILES 34u
/* In storage only, when the job is submitted. */
#define ABSENT 5u

typedef struct {
    StoreFixture *files;
    BerthStore *store;
    Berth__JobSpec spec;
    Berth__InputFile inputs[N_FILES];
    Berth__InputFile *list[N_FILES];
    Berth__BlobRef blobs[N_FILES];
    guint8 digests[N_FILES][BERTH_SHA256_BYTES];
    guint8 *contents[N_FILES];
} Test;

static void digest_of(const guint8 *content, gsize size, guint8 *out_digest)
{
    gsize length = BERTH_SHA256_BYTES;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, content, (gssize)size);
    g_checksum_get_digest(checksum, out_digest, &length);
}

static void make_file(Test *test, guint i)
{
    test->contents[i] = g_malloc0(BERTH_BLOB_INLINE_MAX_BYTES);
    test->contents[i][0] = (guint8)i;
    digest_of(test->contents[i], BERTH_BLOB_INLINE_MAX_BYTES, test->digests[i]);
    berth__blob_ref__init(&test->blobs[i]);
    berth__input_file__init(&test->inputs[i]);
    test->blobs[i].sha256 = (ProtobufCBinaryData){BERTH_SHA256_BYTES, test->digests[i]};
    test->blobs[i].size_bytes = BERTH_BLOB_INLINE_MAX_BYTES;
    test->inputs[i].blob = &test->blobs[i];
    test->list[i] = &test->inputs[i];
}

static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    test->files = store_fixture_new();
    test->store = store_open_ok(test->files->path);
    berth__job_spec__init(&test->spec);
    for (guint i = 0; i < N_FILES; i++) {
        make_file(test, i);
    }
    test->spec.inputs = test->list;
    test->spec.n_inputs = N_FILES;
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    berth_store_close(test->store);
    store_fixture_free(test->files);
    for (guint i = 0; i < N_FILES; i++) {
        g_free(test->contents[i]);
    }
    g_free(test);
    return 0;
}

static void put(BerthStoreBatch *batch, Test *test, guint i)
{
    g_autoptr(GBytes) content = g_bytes_new(test->contents[i], BERTH_BLOB_INLINE_MAX_BYTES);
    berth_store_batch_put_blob(batch, test->digests[i], content);
}

/* Submits with all contents inline but ABSENT's; those that stay inline go into the store. */
static GPtrArray *submit(Test *test)
{
    g_autoptr(GError) error = NULL;
    ProtobufCBinaryData contents[N_FILES];
    gsize n = 0;
    for (guint i = 0; i < N_FILES; i++) {
        if (i != ABSENT) {
            contents[n++] = (ProtobufCBinaryData){BERTH_BLOB_INLINE_MAX_BYTES, test->contents[i]};
        }
    }
    GPtrArray *places =
        berth_submit_blobs_place(&test->spec, contents, n, NULL, test->store, &error);
    assert_no_error(error);
    berth_submit_blobs_note(&test->spec, places);
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint i = 0; i < places->len; i++) {
        if (!((BerthBlobPlace *)g_ptr_array_index(places, i))->to_storage) {
            put(batch, test, i);
        }
    }
    store_commit_ok(test->store, batch);
    return places;
}

static void blobs_recall_gives_the_split_of_the_submission(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) before = submit(test);
    /* Another job brings what was in storage only. */
    BerthStoreBatch *batch = berth_store_batch_new();
    put(batch, test, ABSENT);
    store_commit_ok(test->store, batch);
    g_autoptr(GPtrArray) after = berth_submit_blobs_recall(&test->spec, test->store, &error);
    assert_no_error(error);
    assert_int_equal(after->len, N_FILES);
    guint n_in_state = 0;
    for (guint i = 0; i < N_FILES; i++) {
        const BerthBlobPlace *was = g_ptr_array_index(before, i);
        const BerthBlobPlace *is = g_ptr_array_index(after, i);
        assert_memory_equal(was->digest, is->digest, BERTH_SHA256_BYTES);
        assert_int_equal(was->to_storage, is->to_storage);
        assert_int_equal(is->content != NULL, !is->to_storage);
        n_in_state += !is->to_storage;
    }
    assert_int_equal(n_in_state, BERTH_INLINE_BUDGET_BYTES / BERTH_BLOB_INLINE_MAX_BYTES);
    assert_true(((BerthBlobPlace *)g_ptr_array_index(after, ABSENT))->to_storage);
}

/* Of several jobs each has what it names of what came for all. */
static void shared_contents_are_had_by_who_names_them(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    const char nobodys[] = "nobody names this";
    const ProtobufCBinaryData contents[] = {
        {BERTH_BLOB_INLINE_MAX_BYTES, test->contents[1]},
        {sizeof nobodys, (guint8 *)nobodys},
    };
    g_autoptr(GHashTable) shared = berth_submit_blobs_share(contents, G_N_ELEMENTS(contents));
    for (guint job = 0; job < 2; job++) {
        g_autoptr(GPtrArray) places =
            berth_submit_blobs_place(&test->spec, NULL, 0, shared, test->store, &error);
        assert_no_error(error);
        for (guint i = 0; i < N_FILES; i++) {
            const BerthBlobPlace *place = g_ptr_array_index(places, i);
            assert_int_equal(place->content != NULL, i == 1);
        }
    }
    test->blobs[1].size_bytes--;
    assert_null(berth_submit_blobs_place(&test->spec, NULL, 0, shared, test->store, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "and came with");
}

static void shared_content_that_is_too_large_is_refused(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *large = g_malloc0(BERTH_BLOB_INLINE_MAX_BYTES + 1);
    const ProtobufCBinaryData content = {BERTH_BLOB_INLINE_MAX_BYTES + 1, large};
    digest_of(large, BERTH_BLOB_INLINE_MAX_BYTES + 1, test->digests[0]);
    g_autoptr(GHashTable) shared = berth_submit_blobs_share(&content, 1);
    assert_null(berth_submit_blobs_place(&test->spec, NULL, 0, shared, test->store, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "upload it with Blobs.Put");
}

static void blobs_recall_without_the_content_is_data_loss(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    test->blobs[3].in_state = TRUE;
    assert_null(berth_submit_blobs_recall(&test->spec, test->store, &error));
    assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "submit the job again");
}

static void blobs_note_overrides_what_the_user_says(void **state)
{
    Test *test = *state;
    test->blobs[ABSENT].in_state = TRUE;
    g_autoptr(GPtrArray) places = submit(test);
    assert_int_equal(places->len, N_FILES);
    assert_false(test->blobs[ABSENT].in_state);
    assert_true(test->blobs[0].in_state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(blobs_recall_gives_the_split_of_the_submission),
        TEST(shared_contents_are_had_by_who_names_them),
        TEST(shared_content_that_is_too_large_is_refused),
        TEST(blobs_recall_without_the_content_is_data_loss),
        TEST(blobs_note_overrides_what_the_user_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
