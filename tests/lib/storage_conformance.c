/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the conformance suite of storage: what storage.h promises for every kind. */
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

static gboolean list_has(char **names, GError *error, const char *name)
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
    return list_has(names, error, image_id);
}

static gboolean disk_is_listed(const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_storage_disk_list(conformance_storage, &error);
    return list_has(names, error, disk_id);
}

static void assert_bytes(GBytes *bytes, const guint8 *data, gsize length)
{
    assert_non_null(bytes);
    assert_int_equal(g_bytes_get_size(bytes), length);
    if (length > 0)
        assert_memory_equal(g_bytes_get_data(bytes, NULL), data, length);
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
    assert_true(list_has(with, error, name));
    g_autoptr(GBytes) read = berth_storage_blob_read(conformance_storage, digest, 3, 9, &error);
    assert_bytes(read, data + 3, 9);

    assert_true(berth_storage_blob_remove(conformance_storage, digest, &error));
    assert_true(berth_storage_blob_remove(conformance_storage, digest, &error));
    assert_true(berth_storage_blob_exists(conformance_storage, digest, &exists, &error));
    assert_false(exists);
    g_auto(GStrv) without = berth_storage_blob_list(conformance_storage, &error);
    assert_false(list_has(without, error, name));
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
    assert_true(list_has(names, error, "4.0.out"));
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

const struct CMUnitTest conformance_tests[] = {
    cmocka_unit_test(every_function_with_bad_name_is_invalid_argument),
    cmocka_unit_test(check_of_working_storage_succeeds),
    cmocka_unit_test(fence_of_nobody_succeeds),
    cmocka_unit_test(image_create_with_bad_size_is_invalid_argument),
    cmocka_unit_test(image_writer_write_past_the_end_is_invalid_argument),
    cmocka_unit_test(image_without_commit_leaves_nothing),
    cmocka_unit_test(image_create_of_known_id_is_already_exists),
    cmocka_unit_test(image_remove_with_disk_is_failed_precondition),
    cmocka_unit_test(disk_create_shows_the_image_and_zeroes_after_it),
    cmocka_unit_test(disk_create_without_image_is_not_found),
    cmocka_unit_test(disk_create_of_uncommitted_image_is_not_found),
    cmocka_unit_test(disk_create_smaller_than_image_is_invalid_argument),
    cmocka_unit_test(disk_create_of_known_id_is_already_exists),
    cmocka_unit_test(disk_without_existence_is_removed_but_not_found),
    cmocka_unit_test(blob_of_any_size_reads_back_in_any_piece),
    cmocka_unit_test(blob_commit_of_other_content_is_invalid_argument),
    cmocka_unit_test(blob_append_of_too_much_is_invalid_argument),
    cmocka_unit_test(blob_is_listed_from_commit_to_removal),
    cmocka_unit_test(log_without_existence_is_empty),
    cmocka_unit_test(log_write_in_pieces_reads_back_whole),
    cmocka_unit_test(log_write_again_changes_nothing),
    cmocka_unit_test(log_write_beyond_the_end_leaves_zeroes),
    cmocka_unit_test(log_write_at_absurd_offset_is_invalid_argument),
    cmocka_unit_test(log_list_names_each_log_once),
    cmocka_unit_test(storage_used_by_eight_threads_keeps_them_apart),
};
const size_t conformance_n_tests = G_N_ELEMENTS(conformance_tests);
