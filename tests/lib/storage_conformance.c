/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the conformance suite of storage: what storage.h promises for every kind of names, images and
 * disks. */
#include "tests/lib/storage_conformance.h"

#include <glib/gstdio.h>

#define KIB ((gsize)1024)
#define MIB (KIB * 1024)

BerthStorage *conformance_storage;
const char *conformance_rbd_options;

/* --- helpers ------------------------------------------------------------------------------- */

guint8 *conformance_pattern(guint seed, gsize length)
{
    guint8 *data = g_malloc(MAX(length, 1));
    guint64 state = ((guint64)seed + 1) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    for (gsize i = 0; i < length; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data[i] = (guint8)(state | 1); /* never zero */
    }
    return data;
}

void conformance_sha256(const guint8 *data, gsize length, guint8 digest[BERTH_SHA256_BYTES])
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, data, (gssize)length);
    gsize digest_length = BERTH_SHA256_BYTES;
    g_checksum_get_digest(checksum, digest, &digest_length);
}

void conformance_image(BerthStorage *storage, const char *image_id, guint64 size_bytes,
                       const guint8 *data, gsize length)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthImageWriter) writer =
        berth_storage_image_create(storage, image_id, size_bytes, &error);
    assert_no_error(error);
    berth_image_writer_write(writer, 0, data, length, &error);
    assert_no_error(error);
    berth_image_writer_commit(writer, &error);
    assert_no_error(error);
}

void conformance_blob(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                      const guint8 *data, gsize length)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthBlobWriter) writer = berth_storage_blob_create(storage, digest, length, &error);
    assert_no_error(error);
    for (gsize done = 0; done < length; done += 700 * KIB) {
        berth_blob_writer_append(writer, data + done, MIN(length - done, 700 * KIB), &error);
        assert_no_error(error);
    }
    berth_blob_writer_commit(writer, &error);
    assert_no_error(error);
}

gboolean conformance_list_has(char **names, GError *error, const char *name)
{
    assert_no_error(error);
    assert_non_null(names);
    for (guint i = 0; names[i] != NULL && names[i + 1] != NULL; i++)
        assert_true(strcmp(names[i], names[i + 1]) < 0);
    return g_strv_contains((const char *const *)names, name);
}

static gboolean image_is_listed(const char *image_id)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_storage_image_list(conformance_storage, &error);
    return conformance_list_has(names, error, image_id);
}

static gboolean disk_is_listed(const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_storage_disk_list(conformance_storage, &error);
    return conformance_list_has(names, error, disk_id);
}

/* What a hypervisor sees on the disk: read by QEMU's own block drivers. */
static char *disk_content(const BerthDiskSource *source, gsize *out_length)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *raw = NULL;
    gint fd = g_file_open_tmp("berth-disk-XXXXXX", &raw, &error);
    assert_no_error(error);
    g_close(fd, NULL);
    g_autofree char *rbd = source->is_rbd
                               ? g_strdup_printf("rbd:%s/%s%s", source->rbd_pool, source->rbd_image,
                                                 conformance_rbd_options)
                               : NULL;
    const char *argv[] = {"qemu-img",
                          "convert",
                          "-f",
                          source->is_rbd ? "raw" : source->file_format,
                          "-O",
                          "raw",
                          source->is_rbd ? rbd : source->file_path,
                          raw,
                          NULL};
    gint status = -1;
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status,
                 &error);
    assert_no_error(error);
    assert_int_equal(status, 0);
    char *content = NULL;
    g_file_get_contents(raw, &content, out_length, &error);
    assert_no_error(error);
    g_unlink(raw);
    return content;
}

/* --- names --------------------------------------------------------------------------------- */

static void every_function_with_bad_name_is_invalid_argument(void **state)
{
    g_autofree char *too_long = g_strnfill(129, 'a');
    const char *const names[] = {"",     ".",   "..",          ".hidden", "a/b",  "../a", "a b",
                                 "a\nb", "a:b", "caf\xc3\xa9", too_long,  "a\\b", NULL};
    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(GError) image = NULL, disk = NULL, of = NULL, log = NULL;
        assert_null(berth_storage_image_create(conformance_storage, names[i], MIB, &image));
        assert_berth_error(image, BERTH_ERROR_INVALID_ARGUMENT, "no name of an image");
        assert_null(berth_storage_disk_create(conformance_storage, names[i], "i", MIB, &disk));
        assert_berth_error(disk, BERTH_ERROR_INVALID_ARGUMENT, "no name of a disk");
        assert_null(berth_storage_disk_create(conformance_storage, "d", names[i], MIB, &of));
        assert_berth_error(of, BERTH_ERROR_INVALID_ARGUMENT, "no name of an image");
        assert_false(berth_storage_log_write(conformance_storage, names[i], 0, "x", 1, &log));
        assert_berth_error(log, BERTH_ERROR_INVALID_ARGUMENT, "no name of a log");
    }
}

static void check_of_working_storage_succeeds(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_true(berth_storage_check(conformance_storage, &error));
    assert_no_error(error);
    g_autofree char *address = berth_storage_client_address(conformance_storage);
    assert_int_equal(address[0] != '\0', conformance_rbd_options != NULL);
}

/* Ceph lists a pool some seconds after it was made. */
static void room_is_told(void **state)
{
    guint64 bytes = 0;
    run_until(berth_storage_room(conformance_storage, &bytes, NULL));
    assert_in_range(bytes, 1024 * 1024, (guint64)1 << 60);
}

static void fence_of_nobody_succeeds(void **state)
{
    const char *const nobody[] = {NULL};
    assert_true(berth_storage_fence(conformance_storage, nobody, NULL));
}

/* --- images -------------------------------------------------------------------------------- */

static void image_create_with_bad_size_is_invalid_argument(void **state)
{
    const guint64 sizes[] = {0, 1, 511, 513, G_MAXUINT64, G_MAXINT64};
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_storage_image_create(conformance_storage, "size", sizes[i], &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "multiple of 512");
    }
}

static void image_writer_write_past_the_end_is_invalid_argument(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthImageWriter) writer =
        berth_storage_image_create(conformance_storage, "past-end", MIB, &error);
    assert_no_error(error);
    guint8 byte = 1;
    const guint64 offsets[] = {MIB, MIB + 1, G_MAXUINT64};
    for (guint i = 0; i < G_N_ELEMENTS(offsets); i++) {
        g_clear_error(&error);
        assert_false(berth_image_writer_write(writer, offsets[i], &byte, 1, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "cannot write");
    }
}

static gboolean is_committed(const char *image_id)
{
    g_autoptr(GError) error = NULL;
    gboolean committed = -1;
    berth_storage_image_is_committed(conformance_storage, image_id, &committed, &error);
    assert_no_error(error);
    return committed;
}

static void image_is_committed_from_its_commit_to_its_removal(void **state)
{
    assert_false(is_committed("whole"));
    BerthImageWriter *writer = berth_storage_image_create(conformance_storage, "whole", MIB, NULL);
    assert_non_null(writer);
    assert_false(is_committed("whole"));
    assert_true(berth_image_writer_commit(writer, NULL));
    assert_true(is_committed("whole"));
    berth_image_writer_free(writer);
    assert_true(is_committed("whole"));
    assert_true(berth_storage_image_remove(conformance_storage, "whole", NULL));
    assert_false(is_committed("whole"));
}

static void image_without_commit_leaves_nothing(void **state)
{
    g_autoptr(GError) error = NULL;
    BerthImageWriter *writer =
        berth_storage_image_create(conformance_storage, "half", 8 * MIB, &error);
    assert_no_error(error);
    g_autofree guint8 *data = conformance_pattern(1, MIB);
    assert_true(berth_image_writer_write(writer, 0, data, MIB, &error));
    assert_false(image_is_listed("half"));
    berth_image_writer_free(writer);
    assert_false(image_is_listed("half"));
    assert_false(berth_storage_image_remove(conformance_storage, "half", &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "half");
}

static void image_create_of_known_id_is_already_exists(void **state)
{
    conformance_image(conformance_storage, "twice", MIB, (const guint8 *)"one", 3);
    g_autoptr(GError) error = NULL;
    assert_null(berth_storage_image_create(conformance_storage, "twice", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "twice");
    assert_true(image_is_listed("twice"));
    assert_true(berth_storage_image_remove(conformance_storage, "twice", NULL));
    assert_false(image_is_listed("twice"));
}

static void image_remove_with_disk_is_failed_precondition(void **state)
{
    conformance_image(conformance_storage, "used", MIB, (const guint8 *)"used", 4);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDiskSource) source =
        berth_storage_disk_create(conformance_storage, "user-1", "used", MIB, &error);
    assert_no_error(error);
    assert_false(berth_storage_image_remove(conformance_storage, "used", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "user-1");
    assert_true(image_is_listed("used"));
    assert_true(berth_storage_disk_remove(conformance_storage, "user-1", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "used", NULL));
    assert_false(image_is_listed("used"));
}

/* --- disks --------------------------------------------------------------------------------- */

static void disk_create_shows_the_image_and_zeroes_after_it(void **state)
{
    const gsize image_bytes = 10 * MIB, disk_bytes = 24 * MIB, data_bytes = 5 * MIB + 512;
    g_autofree guint8 *expected = g_malloc0(disk_bytes);
    g_autofree guint8 *data = conformance_pattern(2, data_bytes);
    memset(data + MIB + 100, 0, 3 * MIB); /* a hole that is not aligned */
    memcpy(expected, data, data_bytes);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthImageWriter) writer =
        berth_storage_image_create(conformance_storage, "golden", image_bytes, &error);
    assert_no_error(error);
    assert_true(berth_image_writer_write(writer, 0, data, data_bytes, &error));
    /* Written again: zeroes and data over data, a tail that is not aligned. */
    memset(expected + 300, 0, 130 * KIB);
    assert_true(berth_image_writer_write(writer, 0, expected, 256 * KIB, &error));
    memcpy(expected + image_bytes - 700, data, 700);
    assert_true(berth_image_writer_write(writer, image_bytes - 700, data, 700, &error));
    assert_true(berth_image_writer_commit(writer, &error));
    assert_no_error(error);

    g_autoptr(BerthDiskSource) source =
        berth_storage_disk_create(conformance_storage, "golden-1", "golden", disk_bytes, &error);
    assert_no_error(error);
    gsize length = 0;
    g_autofree char *content = disk_content(source, &length);
    assert_int_equal(length, disk_bytes);
    assert_memory_equal(content, expected, disk_bytes);
    assert_true(berth_storage_disk_remove(conformance_storage, "golden-1", NULL));
    berth_storage_image_remove(conformance_storage, "golden", &error);
    assert_no_error(error);
}

static void disk_create_without_image_is_not_found(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_null(berth_storage_disk_create(conformance_storage, "orphan", "nowhere", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "nowhere");
    assert_false(disk_is_listed("orphan"));
}

static void disk_create_of_uncommitted_image_is_not_found(void **state)
{
    g_autoptr(BerthImageWriter) writer =
        berth_storage_image_create(conformance_storage, "unfinished", MIB, NULL);
    assert_non_null(writer);
    g_autoptr(GError) error = NULL;
    assert_null(berth_storage_disk_create(conformance_storage, "early", "unfinished", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "unfinished");
}

static void disk_create_smaller_than_image_is_invalid_argument(void **state)
{
    conformance_image(conformance_storage, "large", 2 * MIB, (const guint8 *)"large", 5);
    g_autoptr(GError) error = NULL;
    assert_null(berth_storage_disk_create(conformance_storage, "small", "large", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "2097152");
    assert_false(disk_is_listed("small"));
    assert_true(berth_storage_image_remove(conformance_storage, "large", NULL));
}

static void disk_create_of_known_id_is_already_exists(void **state)
{
    conformance_image(conformance_storage, "base", MIB, (const guint8 *)"base", 4);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDiskSource) first =
        berth_storage_disk_create(conformance_storage, "d1", "base", MIB, &error);
    assert_no_error(error);
    assert_null(berth_storage_disk_create(conformance_storage, "d1", "base", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "d1");
    assert_true(disk_is_listed("d1"));

    g_autoptr(BerthDiskSource) again = berth_storage_disk_source(conformance_storage, "d1", NULL);
    assert_string_equal(again->is_rbd ? again->rbd_image : again->file_path,
                        first->is_rbd ? first->rbd_image : first->file_path);
    g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, "d1", NULL);
    assert_non_null(clients);
    assert_null(clients[0]);
    assert_true(berth_storage_disk_remove(conformance_storage, "d1", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "base", NULL));
}

static void disk_without_existence_is_removed_but_not_found(void **state)
{
    g_autoptr(GError) source = NULL, clients = NULL, remove = NULL;
    assert_true(berth_storage_disk_remove(conformance_storage, "nobody", &remove));
    assert_no_error(remove);
    assert_null(berth_storage_disk_source(conformance_storage, "nobody", &source));
    assert_berth_error(source, BERTH_ERROR_NOT_FOUND, "nobody");
    assert_null(berth_storage_disk_clients(conformance_storage, "nobody", &clients));
    assert_berth_error(clients, BERTH_ERROR_NOT_FOUND, "nobody");
}

static void assert_mark(const char *expected, gsize length)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) found = berth_storage_mark_read(conformance_storage, &error);
    assert_no_error(error);
    assert_int_equal(g_bytes_get_size(found), length);
    assert_memory_equal(g_bytes_get_data(found, NULL), expected, length);
}

static void mark_is_created_once_and_replaced_as_a_whole(void **state)
{
    g_autoptr(GError) none = NULL, nothing = NULL, again = NULL, error = NULL;
    g_autoptr(GBytes) first = g_bytes_new_static("the first one", 13);
    g_autoptr(GBytes) second = g_bytes_new_static("another", 7);
    g_autofree char *long_text = g_strnfill(BERTH_STORAGE_MARK_BYTES_MAX, 'x');
    g_autoptr(GBytes) longest = g_bytes_new_static(long_text, BERTH_STORAGE_MARK_BYTES_MAX);
    assert_null(berth_storage_mark_read(conformance_storage, &none));
    assert_berth_error(none, BERTH_ERROR_NOT_FOUND, "mark");
    assert_false(berth_storage_mark_replace(conformance_storage, first, second, &nothing));
    assert_berth_error(nothing, BERTH_ERROR_NOT_FOUND, "mark");
    assert_true(berth_storage_mark_create(conformance_storage, first, &error));
    assert_mark("the first one", 13);
    assert_false(berth_storage_mark_create(conformance_storage, second, &again));
    assert_berth_error(again, BERTH_ERROR_ALREADY_EXISTS, "mark");
    assert_mark("the first one", 13);
    assert_true(berth_storage_mark_replace(conformance_storage, first, second, &error));
    assert_mark("another", 7);
    assert_true(berth_storage_mark_replace(conformance_storage, second, longest, &error));
    assert_mark(long_text, BERTH_STORAGE_MARK_BYTES_MAX);
    assert_true(berth_storage_mark_replace(conformance_storage, longest, second, &error));
    assert_mark("another", 7);
}

/* With the mark that the test before has left. */
static void mark_that_is_another_than_expected_stays(void **state)
{
    const char *const others[] = {"an", "anothers", "anotheR", "Another", "x"};
    g_autofree char *long_text = g_strnfill(BERTH_STORAGE_MARK_BYTES_MAX, 'a');
    g_autoptr(GBytes) content = g_bytes_new_static("mine", 4);
    for (gsize i = 0; i <= G_N_ELEMENTS(others); i++) {
        g_autoptr(GError) error = NULL;
        const char *other = i < G_N_ELEMENTS(others) ? others[i] : long_text;
        g_autoptr(GBytes) expected = g_bytes_new_static(other, strlen(other));
        assert_false(berth_storage_mark_replace(conformance_storage, expected, content, &error));
        assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "changed meanwhile");
        assert_mark("another", 7);
    }
}

#define COUNTERS 4u
#define COUNTS   25u

/* Adds one, COUNTS times: reads the mark, and writes what follows on it. */
static gpointer count_in_mark(gpointer unused)
{
    guint done = 0;
    while (done < COUNTS) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) present = berth_storage_mark_read(conformance_storage, NULL);
        guint64 number =
            g_ascii_strtoull((const char *)g_bytes_get_data(present, NULL) + 1, NULL, 10);
        char text[32];
        g_snprintf(text, sizeof text, "n%07" G_GUINT64_FORMAT ".", number + 1);
        g_autoptr(GBytes) next = g_bytes_new(text, strlen(text));
        if (berth_storage_mark_replace(conformance_storage, present, next, &error))
            done++;
        else if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION))
            g_error("%s", error->message);
    }
    return NULL;
}

static void mark_replaced_by_several_is_replaced_by_one_at_a_time(void **state)
{
    GThread *counters[COUNTERS];
    g_autoptr(GBytes) present = berth_storage_mark_read(conformance_storage, NULL);
    g_autoptr(GBytes) none = g_bytes_new_static("n0000000.", 9);
    assert_true(berth_storage_mark_replace(conformance_storage, present, none, NULL));
    for (guint i = 0; i < COUNTERS; i++)
        counters[i] = g_thread_new("counter", count_in_mark, NULL);
    for (guint i = 0; i < COUNTERS; i++)
        g_thread_join(counters[i]);
    char text[32];
    g_snprintf(text, sizeof text, "n%07u.", COUNTERS * COUNTS);
    assert_mark(text, 9);
}

static void mark_that_storage_cannot_hold_is_invalid_argument(void **state)
{
    g_autofree char *text = g_strnfill(BERTH_STORAGE_MARK_BYTES_MAX + 1, 'x');
    g_autoptr(GBytes) good = g_bytes_new_static("good", 4);
    const struct {
        const char *data;
        gsize length;
    } cases[] = {{text, 0}, {text, BERTH_STORAGE_MARK_BYTES_MAX + 1}, {"x", 2}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) create = NULL, replace = NULL, expect = NULL;
        g_autoptr(GBytes) bad = g_bytes_new_static(cases[i].data, cases[i].length);
        assert_false(berth_storage_mark_create(conformance_storage, bad, &create));
        assert_berth_error(create, BERTH_ERROR_INVALID_ARGUMENT, "mark");
        assert_false(berth_storage_mark_replace(conformance_storage, good, bad, &replace));
        assert_berth_error(replace, BERTH_ERROR_INVALID_ARGUMENT, "mark");
        assert_false(berth_storage_mark_replace(conformance_storage, bad, good, &expect));
        assert_berth_error(expect, BERTH_ERROR_INVALID_ARGUMENT, "mark");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_function_with_bad_name_is_invalid_argument),
    cmocka_unit_test(check_of_working_storage_succeeds),
    cmocka_unit_test(room_is_told),
    cmocka_unit_test(fence_of_nobody_succeeds),
    cmocka_unit_test(mark_is_created_once_and_replaced_as_a_whole),
    cmocka_unit_test(mark_that_is_another_than_expected_stays),
    cmocka_unit_test(mark_replaced_by_several_is_replaced_by_one_at_a_time),
    cmocka_unit_test(mark_that_storage_cannot_hold_is_invalid_argument),
    cmocka_unit_test(image_create_with_bad_size_is_invalid_argument),
    cmocka_unit_test(image_writer_write_past_the_end_is_invalid_argument),
    cmocka_unit_test(image_is_committed_from_its_commit_to_its_removal),
    cmocka_unit_test(image_without_commit_leaves_nothing),
    cmocka_unit_test(image_create_of_known_id_is_already_exists),
    cmocka_unit_test(image_remove_with_disk_is_failed_precondition),
    cmocka_unit_test(disk_create_shows_the_image_and_zeroes_after_it),
    cmocka_unit_test(disk_create_without_image_is_not_found),
    cmocka_unit_test(disk_create_of_uncommitted_image_is_not_found),
    cmocka_unit_test(disk_create_smaller_than_image_is_invalid_argument),
    cmocka_unit_test(disk_create_of_known_id_is_already_exists),
    cmocka_unit_test(disk_without_existence_is_removed_but_not_found),
};

void conformance_append(GArray *to)
{
    g_array_append_vals(to, tests, G_N_ELEMENTS(tests));
    conformance_append_streams(to);
}
