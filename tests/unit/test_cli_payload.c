/* SPDX-License-Identifier: Apache-2.0 */
/* What goes with submissions is read and sent once, however many of them have it. */
#include "tests/lib/assert.h"

#include "cli/payload.h"

#include <glib/gstdio.h>

static void assert_inline(BerthPayload *payload, gsize n, gsize bytes)
{
    gsize n_inline = 0;
    gsize all = 0;
    const ProtobufCBinaryData *data = berth_payload_inline(payload, &n_inline);
    for (gsize i = 0; i < n_inline; i++)
        all += data[i].len;
    assert_int_equal(n_inline, n);
    assert_int_equal(all, bytes);
}

static Berth__BlobRef *add_text(BerthPayload *payload, const char *text)
{
    g_autoptr(GBytes) content = g_bytes_new(text, strlen(text));
    return berth_payload_add_bytes(payload, content);
}

static void assert_same_and_free(Berth__BlobRef *a, Berth__BlobRef *b)
{
    assert_int_equal(a->size_bytes, b->size_bytes);
    assert_int_equal(a->sha256.len, b->sha256.len);
    assert_memory_equal(a->sha256.data, b->sha256.data, a->sha256.len);
    berth__blob_ref__free_unpacked(a, NULL);
    berth__blob_ref__free_unpacked(b, NULL);
}

static void contents_that_are_the_same_go_once(void **state)
{
    g_autoptr(BerthPayload) payload = berth_payload_new();
    assert_same_and_free(add_text(payload, "same"), add_text(payload, "same"));
    assert_inline(payload, 1, 4);
    assert_int_equal(berth_payload_held_bytes(payload), 4);
    berth__blob_ref__free_unpacked(add_text(payload, "other"), NULL);
    assert_inline(payload, 2, 9);
    assert_int_equal(berth_payload_held_bytes(payload), 9);
}

/* It is not looked at again: what was hashed is what is sent. */
static void file_is_read_once(void **state)
{
    g_autoptr(BerthPayload) payload = berth_payload_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_dir_make_tmp("payload-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "input", NULL);
    assert_true(g_file_set_contents(path, "first", -1, NULL));
    Berth__BlobRef *first = berth_payload_add_file(payload, path, 0, &error);
    assert_no_error(error);
    assert_true(g_file_set_contents(path, "and then", -1, NULL));
    Berth__BlobRef *again = berth_payload_add_file(payload, path, 0, &error);
    assert_no_error(error);
    assert_same_and_free(first, again);
    assert_same_and_free(add_text(payload, "first"), add_text(payload, "first"));
    assert_inline(payload, 1, 5);
    g_unlink(path);
    g_rmdir(dir);
}

static void file_of_which_no_more_is_inline_is_not_held(void **state)
{
    g_autoptr(BerthPayload) payload = berth_payload_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = g_dir_make_tmp("payload-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "input", NULL);
    g_autofree char *large = g_strnfill(BERTH_INLINE_BLOB_MAX + 1, 'x');
    assert_true(g_file_set_contents(path, large, -1, NULL));
    Berth__BlobRef *of_file = berth_payload_add_file(payload, path, 0, &error);
    assert_no_error(error);
    assert_int_equal(berth_payload_held_bytes(payload), 0);
    assert_inline(payload, 0, 0);
    /* what is in no file is kept, though it goes by itself, too */
    large[0] = 'y';
    Berth__BlobRef *of_bytes = add_text(payload, large);
    assert_int_equal(berth_payload_held_bytes(payload), BERTH_INLINE_BLOB_MAX + 1);
    assert_inline(payload, 0, 0);
    berth__blob_ref__free_unpacked(of_file, NULL);
    berth__blob_ref__free_unpacked(of_bytes, NULL);
    g_unlink(path);
    g_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_that_are_the_same_go_once),
        cmocka_unit_test(file_is_read_once),
        cmocka_unit_test(file_of_which_no_more_is_inline_is_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
