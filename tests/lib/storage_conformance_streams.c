/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the conformance suite of what storage reads and writes as bytes: blobs and logs, and both of
 * them with disks from many threads. */
#include "tests/lib/storage_conformance.h"

#define KIB ((gsize)1024)
#define MIB (KIB * 1024)

static void assert_bytes(GBytes *bytes, const guint8 *data, gsize length)
{
    assert_non_null(bytes);
    assert_int_equal(g_bytes_get_size(bytes), length);
    if (length > 0)
        assert_memory_equal(g_bytes_get_data(bytes, NULL), data, length);
}

/* --- blobs --------------------------------------------------------------------------------- */

static void blob_of_any_size_reads_back_in_any_piece(void **state)
{
    const gsize sizes[] = {0,       1,           64 * KIB - 1, 64 * KIB, 64 * KIB + 1,
                           4 * MIB, 4 * MIB + 1, 13 * MIB + 77};
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        gsize size = sizes[i];
        g_autofree guint8 *data = conformance_pattern(100 + i, size);
        guint8 digest[BERTH_SHA256_BYTES];
        conformance_sha256(data, size, digest);
        conformance_blob(conformance_storage, digest, data, size);
        const gsize offsets[] = {0, 1, 64 * KIB, 4 * MIB - 3, size / 2, size};
        const gsize lengths[] = {1, 64 * KIB, 4 * MIB + 5, G_MAXSIZE};
        for (guint at = 0; at < G_N_ELEMENTS(offsets); at++) {
            for (guint of = 0; of < G_N_ELEMENTS(lengths); of++) {
                gsize offset = MIN(offsets[at], size);
                g_autoptr(GError) error = NULL;
                g_autoptr(GBytes) read = berth_storage_blob_read(conformance_storage, digest,
                                                                 offset, lengths[of], &error);
                assert_no_error(error);
                assert_bytes(read, data + offset, MIN(lengths[of], size - offset));
            }
        }
        assert_true(berth_storage_blob_remove(conformance_storage, digest, NULL));
    }
}

static void blob_commit_of_other_content_is_invalid_argument(void **state)
{
    static const struct {
        const char *content;
        gsize promised_bytes;
        const char *text;
    } cases[] = {
        {"other", 5, "changed while it was sent"},
        {"sho", 5, "only 3 of the promised 5"},
        {"", 5, "only 0 of the promised 5"},
    };
    guint8 digest[BERTH_SHA256_BYTES];
    conformance_sha256((const guint8 *)"right", 5, digest);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(BerthBlobWriter) writer =
            berth_storage_blob_create(conformance_storage, digest, cases[i].promised_bytes, &error);
        assert_no_error(error);
        assert_true(
            berth_blob_writer_append(writer, cases[i].content, strlen(cases[i].content), &error));
        assert_false(berth_blob_writer_commit(writer, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
    }
    gboolean exists = TRUE;
    assert_true(berth_storage_blob_exists(conformance_storage, digest, &exists, NULL));
    assert_false(exists);
}

static void blob_append_of_too_much_is_invalid_argument(void **state)
{
    guint8 digest[BERTH_SHA256_BYTES];
    conformance_sha256((const guint8 *)"right", 5, digest);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthBlobWriter) writer =
        berth_storage_blob_create(conformance_storage, digest, 5, &error);
    assert_no_error(error);
    assert_false(berth_blob_writer_append(writer, "longer", 6, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "more than the promised 5");
}

static void blob_is_listed_from_commit_to_removal(void **state)
{
    g_autofree guint8 *data = conformance_pattern(7, 5 * MIB);
    guint8 digest[BERTH_SHA256_BYTES];
    conformance_sha256(data, 5 * MIB, digest);
    g_autofree char *name = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, 5 * MIB);
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) missing = berth_storage_blob_read(conformance_storage, digest, 0, 1, &error);
    assert_null(missing);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, name);
    g_clear_error(&error);

    conformance_blob(conformance_storage, digest, data, 5 * MIB);
    conformance_blob(conformance_storage, digest, data, 5 * MIB); /* once more is no error */
    gboolean exists = FALSE;
    assert_true(berth_storage_blob_exists(conformance_storage, digest, &exists, &error));
    assert_true(exists);
    g_auto(GStrv) with = berth_storage_blob_list(conformance_storage, &error);
    assert_true(conformance_list_has(with, error, name));
    g_autoptr(GBytes) read = berth_storage_blob_read(conformance_storage, digest, 3, 9, &error);
    assert_bytes(read, data + 3, 9);

    assert_true(berth_storage_blob_remove(conformance_storage, digest, &error));
    assert_true(berth_storage_blob_remove(conformance_storage, digest, &error));
    assert_true(berth_storage_blob_exists(conformance_storage, digest, &exists, &error));
    assert_false(exists);
    g_auto(GStrv) without = berth_storage_blob_list(conformance_storage, &error);
    assert_false(conformance_list_has(without, error, name));
}

/* --- logs ---------------------------------------------------------------------------------- */

static void assert_log_size(const char *log_id, guint64 expected_bytes)
{
    g_autoptr(GError) error = NULL;
    guint64 bytes = 1;
    berth_storage_log_size(conformance_storage, log_id, &bytes, &error);
    assert_no_error(error);
    assert_int_equal(bytes, expected_bytes);
}

static void write_log(const char *log_id, guint64 offset, const guint8 *data, gsize length)
{
    g_autoptr(GError) error = NULL;
    berth_storage_log_write(conformance_storage, log_id, offset, data, length, &error);
    assert_no_error(error);
}

static void assert_log(const char *log_id, guint64 offset, gsize length, const guint8 *expected,
                       gsize expected_length)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) read =
        berth_storage_log_read(conformance_storage, log_id, offset, length, &error);
    assert_no_error(error);
    assert_bytes(read, expected, expected_length);
}

static void log_without_existence_is_empty(void **state)
{
    assert_log_size("no.such.log", 0);
    assert_log("no.such.log", 0, 100, NULL, 0);
    assert_log("no.such.log", 1 << 30, 100, NULL, 0);
    assert_true(berth_storage_log_remove(conformance_storage, "no.such.log", NULL));
    write_log("no.such.log", 0, NULL, 0);
    assert_log_size("no.such.log", 0);
}

static void log_write_in_pieces_reads_back_whole(void **state)
{
    const gsize total = 17 * MIB + 123;
    const gsize steps[] = {1, 4095, 64 * KIB, MIB - 1, 2 * MIB + 3, 777};
    g_autofree guint8 *data = conformance_pattern(8, total);
    gsize done = 0;
    for (guint i = 0; done < total; i++) {
        gsize part = MIN(steps[i % G_N_ELEMENTS(steps)], total - done);
        write_log("1.0.out", done, data + done, part);
        done += part;
        assert_log_size("1.0.out", done);
        assert_log("1.0.out", done - 1, 100, data + done - 1, 1);
        assert_log("1.0.out", done, 100, NULL, 0);
    }
    assert_log("1.0.out", 0, G_MAXSIZE, data, total);
    assert_log("1.0.out", 4 * MIB - 10, 20, data + 4 * MIB - 10, 20);
    assert_log("1.0.out", 3 * MIB, 9 * MIB, data + 3 * MIB, 9 * MIB);
    assert_true(berth_storage_log_remove(conformance_storage, "1.0.out", NULL));
    assert_log_size("1.0.out", 0);
    assert_log("1.0.out", 5 * MIB, 100, NULL, 0);
}

/* More than are removed at a time; some are long, and some are not there. */
static void logs_are_removed_together(void **state)
{
    enum { N_LOGS = 100 };
    g_autofree guint8 *data = conformance_pattern(12, 9 * MIB);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < N_LOGS; i++) {
        char *name = g_strdup_printf("%u.1.out", 1000 + i);
        g_ptr_array_add(names, name);
        if (i % 10 != 3)
            write_log(name, 0, data, i % 40 == 7 ? 9 * MIB : 100);
    }
    write_log("6.0.out", 0, data, 100);
    berth_storage_logs_remove(conformance_storage, (const char *const *)names->pdata, names->len,
                              &error);
    assert_no_error(error);
    for (guint i = 0; i < N_LOGS; i++) {
        assert_log_size(g_ptr_array_index(names, i), 0);
        assert_log(g_ptr_array_index(names, i), 5 * MIB, 100, NULL, 0);
    }
    /* Nothing is left of what was long, either: what is not written is zeroes. */
    g_autofree guint8 *zeroes = g_malloc0(8 * MIB);
    write_log(g_ptr_array_index(names, 7), 8 * MIB, data, 1);
    assert_log(g_ptr_array_index(names, 7), 0, 8 * MIB, zeroes, 8 * MIB);
    assert_true(berth_storage_log_remove(conformance_storage, g_ptr_array_index(names, 7), NULL));
    assert_log_size("6.0.out", 100);
    static const char *const bad[] = {"6.0.out", "../6"};
    assert_false(berth_storage_logs_remove(conformance_storage, bad, 2, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "../6");
    assert_log_size("6.0.out", 100);
    assert_true(berth_storage_log_remove(conformance_storage, "6.0.out", NULL));
}

static void log_write_again_changes_nothing(void **state)
{
    const gsize total = 9 * MIB;
    g_autofree guint8 *data = conformance_pattern(9, total);
    write_log("2.0.out", 0, data, total);
    write_log("2.0.out", 0, data, MIB);
    write_log("2.0.out", 4 * MIB - 1, data + 4 * MIB - 1, 2);
    write_log("2.0.out", 4 * MIB, data + 4 * MIB, 5);
    write_log("2.0.out", total - 1, data + total - 1, 1);
    assert_log_size("2.0.out", total);
    assert_log("2.0.out", 0, total, data, total);
    assert_true(berth_storage_log_remove(conformance_storage, "2.0.out", NULL));
}

static void log_write_beyond_the_end_leaves_zeroes(void **state)
{
    g_autofree guint8 *zeroes = g_malloc0(12 * MIB);
    write_log("3.0.err", 12 * MIB + 5, (const guint8 *)"far", 3);
    assert_log_size("3.0.err", 12 * MIB + 8);
    assert_log("3.0.err", 0, 12 * MIB, zeroes, 12 * MIB);
    write_log("3.0.err", 5 * MIB, (const guint8 *)"near", 4);
    assert_log_size("3.0.err", 12 * MIB + 8);
    assert_log("3.0.err", 5 * MIB - 1, 6, (const guint8 *)"\0near\0", 6);
    assert_log("3.0.err", 12 * MIB + 4, 9, (const guint8 *)"\0far", 4);
    assert_true(berth_storage_log_remove(conformance_storage, "3.0.err", NULL));
}

static void log_cut_leaves_what_is_before(void **state)
{
    static const gsize sizes[] = {10 * MIB, 9 * MIB + 1, 8 * MIB, 5, 0};
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *data = conformance_pattern(9, 10 * MIB);
    write_log("5.0.out", 0, data, 10 * MIB);
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        assert_true(berth_storage_log_cut(conformance_storage, "5.0.out", sizes[i], &error));
        assert_no_error(error);
        assert_log_size("5.0.out", sizes[i]);
        assert_log("5.0.out", 0, G_MAXSIZE, data, sizes[i]);
        /* It goes on from there. */
        write_log("5.0.out", sizes[i], data + sizes[i], MIN(100, 10 * MIB - sizes[i]));
        assert_log("5.0.out", 0, G_MAXSIZE, data, MIN(sizes[i] + 100, 10 * MIB));
    }
    assert_false(berth_storage_log_cut(conformance_storage, "5.0.out", 101, &error));
    assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "100 bytes");
    assert_true(berth_storage_log_remove(conformance_storage, "5.0.out", NULL));
    assert_true(berth_storage_log_cut(conformance_storage, "5.0.out", 0, NULL));
    assert_log_size("5.0.out", 0);
}

static void log_write_at_absurd_offset_is_invalid_argument(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_false(berth_storage_log_write(conformance_storage, "l", G_MAXUINT64, "x", 1, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "beyond what a log can hold");
    assert_log("l", G_MAXUINT64, 10, NULL, 0);
}

static void log_list_names_each_log_once(void **state)
{
    g_autofree guint8 *data = conformance_pattern(10, 9 * MIB);
    write_log("4.0.out", 0, data, 9 * MIB);
    write_log("4.0.out.00000001", 0, data, 1); /* looks like a part of the other: is not */
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_storage_log_list(conformance_storage, &error);
    assert_true(conformance_list_has(names, error, "4.0.out"));
    assert_int_equal(g_strv_length(names), 2);
    assert_true(berth_storage_log_remove(conformance_storage, "4.0.out.00000001", NULL));
    assert_log_size("4.0.out", 9 * MIB);
    assert_log("4.0.out", 4 * MIB, MIB, data + 4 * MIB, MIB);
    assert_true(berth_storage_log_remove(conformance_storage, "4.0.out", NULL));
    g_auto(GStrv) none = berth_storage_log_list(conformance_storage, &error);
    assert_int_equal(g_strv_length(none), 0);
}

/* --- many threads -------------------------------------------------------------------------- */

#define THREADS 8u
#define ROUNDS  10u

/* cmocka's asserts are for the main thread: a worker counts what succeeded. */
static gboolean use_all(guint thread, guint round)
{
    BerthStorage *storage = conformance_storage;
    g_autofree char *id = g_strdup_printf("t%u.%u", thread, round);
    g_autofree guint8 *data = conformance_pattern(1000 + thread * ROUNDS + round, 300 * KIB);
    guint8 digest[BERTH_SHA256_BYTES];
    conformance_sha256(data, 300 * KIB, digest);
    g_autoptr(BerthBlobWriter) writer = berth_storage_blob_create(storage, digest, 300 * KIB, NULL);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(storage, id, "threads", 2 * MIB, NULL);
    g_autofree char *log_id = g_strdup_printf("t%u", thread);
    gsize log_offset = (gsize)round * 300 * KIB;
    if (writer == NULL || disk == NULL ||
        !berth_blob_writer_append(writer, data, 300 * KIB, NULL) ||
        !berth_blob_writer_commit(writer, NULL) ||
        !berth_storage_log_write(storage, log_id, log_offset, data, 300 * KIB, NULL))
        return FALSE;
    g_autoptr(GBytes) blob = berth_storage_blob_read(storage, digest, 0, 300 * KIB, NULL);
    g_autoptr(GBytes) log = berth_storage_log_read(storage, log_id, log_offset, 300 * KIB, NULL);
    return blob != NULL && log != NULL && g_bytes_equal(blob, log) &&
           memcmp(g_bytes_get_data(log, NULL), data, 300 * KIB) == 0 &&
           berth_storage_disk_remove(storage, id, NULL) &&
           berth_storage_blob_remove(storage, digest, NULL);
}

static gpointer work(gpointer data)
{
    guint thread = GPOINTER_TO_UINT(data), succeeded = 0;
    for (guint round = 0; round < ROUNDS; round++)
        succeeded += use_all(thread, round) ? 1 : 0;
    return GUINT_TO_POINTER(succeeded);
}

static void storage_used_by_eight_threads_keeps_them_apart(void **state)
{
    conformance_image(conformance_storage, "threads", MIB, (const guint8 *)"t", 1);
    GThread *threads[THREADS];
    for (guint i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("storage", work, GUINT_TO_POINTER(i));
    for (guint i = 0; i < THREADS; i++)
        assert_int_equal(GPOINTER_TO_UINT(g_thread_join(threads[i])), ROUNDS);
    for (guint i = 0; i < THREADS; i++) {
        g_autofree char *log_id = g_strdup_printf("t%u", i);
        assert_log_size(log_id, ROUNDS * 300 * KIB);
        assert_true(berth_storage_log_remove(conformance_storage, log_id, NULL));
    }
    assert_true(berth_storage_image_remove(conformance_storage, "threads", NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(blob_of_any_size_reads_back_in_any_piece),
    cmocka_unit_test(blob_commit_of_other_content_is_invalid_argument),
    cmocka_unit_test(blob_append_of_too_much_is_invalid_argument),
    cmocka_unit_test(blob_is_listed_from_commit_to_removal),
    cmocka_unit_test(log_without_existence_is_empty),
    cmocka_unit_test(log_write_in_pieces_reads_back_whole),
    cmocka_unit_test(log_write_again_changes_nothing),
    cmocka_unit_test(log_write_beyond_the_end_leaves_zeroes),
    cmocka_unit_test(logs_are_removed_together),
    cmocka_unit_test(log_cut_leaves_what_is_before),
    cmocka_unit_test(log_write_at_absurd_offset_is_invalid_argument),
    cmocka_unit_test(log_list_names_each_log_once),
    cmocka_unit_test(storage_used_by_eight_threads_keeps_them_apart),
};

void conformance_append_streams(GArray *to)
{
    g_array_append_vals(to, tests, G_N_ELEMENTS(tests));
}
