/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "tests/lib/storage_conformance.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <utime.h>

#define MIB ((gsize)1024 * 1024)

static char *directory; /* of this run; removed at its end */
static char *root;      /* of the storage in it */

static BerthStorage *open_at(const char *path, GError **error)
{
    BerthStorageConfig config = {.kind = (char *)"dir", .path = (char *)path, .op_timeout_sec = 30};
    return berth_storage_open(&config, error);
}

static guint count_entries(const char *path)
{
    guint count = 0;
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    assert_non_null(dir);
    while (g_dir_read_name(dir) != NULL)
        count++;
    return count;
}

static void remove_tree(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name = NULL;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *entry = g_build_filename(path, name, NULL);
        if (g_file_test(entry, G_FILE_TEST_IS_DIR) && !g_file_test(entry, G_FILE_TEST_IS_SYMLINK))
            remove_tree(entry);
        else
            g_unlink(entry);
    }
    g_rmdir(path);
}

static void open_of_unusable_path_says_why(void **state)
{
    g_autofree char *missing = g_build_filename(directory, "missing", NULL);
    g_autofree char *file = g_build_filename(directory, "file", NULL);
    assert_true(g_file_set_contents(file, "", 0, NULL));
    g_autofree char *odd = g_build_filename(directory, "odd", NULL);
    g_autofree char *odd_logs = g_build_filename(odd, "logs", NULL);
    assert_int_equal(g_mkdir(odd, 0700), 0);
    assert_true(g_file_set_contents(odd_logs, "", 0, NULL));
    const struct {
        const char *path;
        BerthErrorCode code;
        const char *text;
    } cases[] = {
        {NULL, BERTH_ERROR_INVALID_ARGUMENT, "needs 'path'"},
        {"relative", BERTH_ERROR_INVALID_ARGUMENT, "absolute"},
        {missing, BERTH_ERROR_NOT_FOUND, "make it, or mend 'path'"},
        {file, BERTH_ERROR_INVALID_ARGUMENT, "Not a directory"},
        {odd, BERTH_ERROR_INVALID_ARGUMENT, "cannot make the directory logs"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(open_at(cases[i].path, &error));
        assert_berth_error(error, cases[i].code, cases[i].text);
    }
}

static void connect_changes_nothing_before_the_mark(void **state)
{
    g_autofree char *path = g_build_filename(directory, "fresh", NULL);
    g_autofree char *mark = g_build_filename(path, "mark", NULL);
    BerthStorageConfig config = {.kind = (char *)"dir", .path = path, .op_timeout_sec = 30};
    g_autoptr(GError) error = NULL, none = NULL;
    g_autoptr(GBytes) content = g_bytes_new_static("mine", 4);
    assert_int_equal(g_mkdir(path, 0700), 0);
    g_autoptr(BerthStorage) storage = berth_storage_connect(&config, &error);
    assert_no_error(error);
    assert_null(berth_storage_mark_read(storage, &none));
    assert_berth_error(none, BERTH_ERROR_NOT_FOUND, "mark");
    assert_int_equal(count_entries(path), 0);
    assert_true(berth_storage_mark_create(storage, content, &error));
    assert_true(g_file_test(mark, G_FILE_TEST_EXISTS));
    assert_true(berth_storage_prepare(storage, &error));
    assert_true(berth_storage_log_write(storage, "first", 0, "x", 1, &error));
}

static void open_of_unknown_kind_is_invalid_argument(void **state)
{
    BerthStorageConfig config = {.kind = (char *)"tape"};
    g_autoptr(GError) error = NULL;
    assert_null(berth_storage_open(&config, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "'tape'");
}

static void open_again_finds_what_was_stored(void **state)
{
    assert_true(berth_storage_log_write(conformance_storage, "kept", 0, "kept", 4, NULL));
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) again = open_at(root, &error);
    assert_no_error(error);
    assert_string_equal(berth_storage_kind(again), "dir");
    guint64 bytes = 0;
    assert_true(berth_storage_log_size(again, "kept", &bytes, NULL));
    assert_int_equal(bytes, 4);
    assert_true(berth_storage_log_remove(again, "kept", NULL));
}

static void fence_is_unsupported(void **state)
{
    const char *const addresses[] = {"10.0.0.1:0/1", NULL};
    g_autoptr(GError) error = NULL;
    assert_false(berth_storage_fence(conformance_storage, addresses, &error));
    assert_berth_error(error, BERTH_ERROR_UNSUPPORTED, "use storage of kind 'rbd'");
}

static void image_of_zeroes_takes_no_space_and_is_read_only(void **state)
{
    g_autofree guint8 *zeroes = g_malloc0(8 * MIB);
    conformance_image(conformance_storage, "sparse", 64 * MIB, zeroes, 8 * MIB);
    g_autofree char *path = g_build_filename(root, "images", "sparse", "image.raw", NULL);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 64 * MIB);
    assert_true(status.st_blocks <= 16);
    assert_int_equal(status.st_mode & 07777, 0444);
    assert_true(berth_storage_image_remove(conformance_storage, "sparse", NULL));
}

static void disk_remove_while_locked_is_failed_precondition(void **state)
{
    conformance_image(conformance_storage, "lock", MIB, (const guint8 *)"x", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "locked", "lock", MIB, NULL);
    assert_non_null(disk);
    int fd = open(disk->file_path, O_RDWR | O_CLOEXEC);
    struct flock lock = {/* as QEMU does it: a shared lock on one byte */
                         .l_type = F_RDLCK,
                         .l_whence = SEEK_SET,
                         .l_start = 100,
                         .l_len = 1};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    g_autoptr(GError) error = NULL;
    assert_false(berth_storage_disk_remove(conformance_storage, "locked", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    assert_true(g_file_test(disk->file_path, G_FILE_TEST_EXISTS));
    close(fd);
    assert_true(berth_storage_disk_remove(conformance_storage, "locked", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "lock", NULL));
}

/* Other users of the host can name it. */
static void disk_create_whatever_the_umask_is_for_its_owner_only(void **state)
{
    static const mode_t masks[] = {0, 022, 077, 0177};
    conformance_image(conformance_storage, "mine", MIB, (const guint8 *)"x", 1);
    for (gsize i = 0; i < G_N_ELEMENTS(masks); i++) {
        struct stat status;
        mode_t old = umask(masks[i]);
        g_autoptr(BerthDiskSource) disk =
            berth_storage_disk_create(conformance_storage, "mine-1", "mine", MIB, NULL);
        umask(old);
        assert_non_null(disk);
        assert_int_equal(stat(disk->file_path, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0600);
        assert_true(berth_storage_disk_remove(conformance_storage, "mine-1", NULL));
    }
    assert_true(berth_storage_image_remove(conformance_storage, "mine", NULL));
}

/* Moving the directory, or mounting it elsewhere, must not break disks. */
static void image_without_its_file_is_removed(void **state)
{
    g_autofree char *path = g_build_filename(root, "images", "damaged", NULL);
    assert_int_equal(g_mkdir(path, 0711), 0);
    assert_true(berth_storage_image_remove(conformance_storage, "damaged", NULL));
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

static void disk_names_its_image_by_a_relative_path(void **state)
{
    conformance_image(conformance_storage, "rel", MIB, (const guint8 *)"x", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "rel-1", "rel", MIB, NULL);
    assert_non_null(disk);
    g_autofree char *content = NULL;
    gsize length = 0;
    assert_true(g_file_get_contents(disk->file_path, &content, &length, NULL));
    assert_non_null(memmem(content, length, "base.raw", 8));
    assert_null(memmem(content, length, root, strlen(root)));
    assert_true(berth_storage_disk_remove(conformance_storage, "rel-1", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "rel", NULL));
}

static void disk_create_without_qemu_img_names_the_package(void **state)
{
    conformance_image(conformance_storage, "noqemu", MIB, (const guint8 *)"x", 1);
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    g_setenv("PATH", "/nonexistent", TRUE);
    g_autoptr(GError) error = NULL;
    BerthDiskSource *disk =
        berth_storage_disk_create(conformance_storage, "noqemu-1", "noqemu", MIB, &error);
    g_setenv("PATH", path, TRUE);
    assert_null(disk);
    assert_berth_error(error, BERTH_ERROR_INTERNAL, "qemu-utils");
    /* What was begun is gone: the image is not in use. */
    assert_true(berth_storage_image_remove(conformance_storage, "noqemu", NULL));
}

/* A program in place of qemu-img. */
static BerthDiskSource *create_with_program(const char *text, guint timeout_sec, GError **error)
{
    g_autofree char *bin = g_build_filename(directory, "bin", NULL);
    g_autofree char *program = g_build_filename(bin, "qemu-img", NULL);
    assert_int_equal(g_mkdir_with_parents(bin, 0700), 0);
    assert_true(g_file_set_contents_full(program, text, -1, G_FILE_SET_CONTENTS_NONE, 0700, NULL));
    BerthStorageConfig config = {
        .kind = (char *)"dir", .path = root, .op_timeout_sec = timeout_sec};
    g_autoptr(BerthStorage) storage = berth_storage_open(&config, NULL);
    assert_non_null(storage);
    conformance_image(storage, "prog", MIB, (const guint8 *)"x", 1);
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    g_autofree char *with_bin = g_strconcat(bin, ":", path, NULL);
    g_setenv("PATH", with_bin, TRUE);
    BerthDiskSource *disk = berth_storage_disk_create(storage, "prog-1", "prog", MIB, error);
    g_setenv("PATH", path, TRUE);
    assert_true(berth_storage_image_remove(storage, "prog", NULL));
    return disk;
}

static void disk_create_with_hanging_qemu_img_is_deadline_exceeded(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_null(create_with_program("#!/bin/sh\nexec sleep 600\n", 1, &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "within 1 s");
}

static void disk_create_with_failing_qemu_img_shows_its_words(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_null(create_with_program("#!/bin/sh\necho 'it is broken' >&2\nexit 1\n", 30, &error));
    assert_berth_error(error, BERTH_ERROR_INTERNAL, "it is broken");
}

static void blob_with_damaged_files_is_data_loss(void **state)
{
    const gsize size = 200 * 1024;
    static const struct {
        const char *file;
        off_t offset; /* of the byte that is changed, or the new length */
        gboolean is_cut;
        guint64 intact_offset; /* a block that can still be read; G_MAXUINT64: none */
    } cases[] = {
        {"data", 150 * 1024, FALSE, 0},   {"data", 0, FALSE, 100 * 1024},
        {"data", 199 * 1024, TRUE, 0},    {"data", 0, TRUE, G_MAXUINT64},
        {"index", 9, FALSE, G_MAXUINT64}, {"index", 20, TRUE, G_MAXUINT64},
        {"index", 33, TRUE, G_MAXUINT64}, {"index", 0, FALSE, G_MAXUINT64},
    };
    g_autofree guint8 *data = conformance_pattern(50, size);
    guint8 digest[BERTH_SHA256_BYTES];
    conformance_sha256(data, size, digest);
    g_autofree char *hex = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, size);
    g_autofree char *bucket = g_strndup(hex, 2);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        conformance_blob(conformance_storage, digest, data, size);
        g_autofree char *path = g_build_filename(root, "blobs", bucket, hex, cases[i].file, NULL);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (cases[i].is_cut)
            assert_int_equal(ftruncate(fd, cases[i].offset), 0);
        else
            assert_int_equal(pwrite(fd, "\0", 1, cases[i].offset), 1);
        close(fd);
        g_autoptr(GError) error = NULL;
        assert_null(berth_storage_blob_read(conformance_storage, digest, 0, size, &error));
        assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "corrupt");
        if (cases[i].intact_offset != G_MAXUINT64) {
            g_autoptr(GBytes) intact = berth_storage_blob_read(conformance_storage, digest,
                                                               cases[i].intact_offset, 10, NULL);
            assert_non_null(intact);
        }
        assert_true(berth_storage_blob_remove(conformance_storage, digest, NULL));
    }
}

static void age(const char *path)
{
    struct utimbuf two_days_ago = {.actime = time(NULL) - 48 * 3600,
                                   .modtime = time(NULL) - 48 * 3600};
    assert_int_equal(utime(path, &two_days_ago), 0);
}

static void list_sweeps_what_crashed_writers_left(void **state)
{
    g_autofree char *tmp = g_build_filename(root, "tmp", NULL);
    g_autofree char *old = g_build_filename(tmp, "crashed", NULL);
    g_autofree char *old_file = g_build_filename(old, "image.raw", NULL);
    g_autofree char *active = g_build_filename(tmp, "active", NULL);
    g_autofree char *active_file = g_build_filename(active, "image.raw", NULL);
    assert_int_equal(g_mkdir(old, 0700), 0);
    assert_int_equal(g_mkdir(active, 0700), 0);
    assert_true(g_file_set_contents(old_file, "x", 1, NULL));
    assert_true(g_file_set_contents(active_file, "x", 1, NULL));
    age(old_file);
    age(old);
    age(active); /* but its file is being written */
    g_auto(GStrv) images = berth_storage_image_list(conformance_storage, NULL);
    assert_int_equal(g_strv_length(images), 0);
    assert_false(g_file_test(old, G_FILE_TEST_EXISTS));
    assert_true(g_file_test(active_file, G_FILE_TEST_EXISTS));
    age(active_file);
    age(active);
    g_autoptr(BerthStorage) again = open_at(root, NULL);
    assert_false(g_file_test(active, G_FILE_TEST_EXISTS));
}

/* A small file system of its own. FALSE where we may not mount. */
static gboolean mount_small(const char *path)
{
    assert_int_equal(g_mkdir(path, 0700), 0);
    return mount("berth-test", path, "tmpfs", 0, "size=8m") == 0;
}

static void fill_logs(BerthStorage *storage, GError **error)
{
    g_autofree guint8 *data = conformance_pattern(60, MIB);
    for (guint64 offset = 0; offset < 64 * MIB; offset += MIB) {
        if (!berth_storage_log_write(storage, "filler", offset, data, MIB, error))
            return;
    }
}

static void full_file_system_is_resource_exhausted_and_named(void **state)
{
    g_autofree char *path = g_build_filename(directory, "small", NULL);
    if (!mount_small(path))
        skip();
    g_autoptr(GError) log = NULL, image = NULL, blob = NULL, disk = NULL;
    BerthStorage *storage = open_at(path, NULL);
    conformance_image(storage, "tiny", MIB, (const guint8 *)"x", 1);
    fill_logs(storage, &log);
    BerthImageWriter *image_writer = berth_storage_image_create(storage, "full", 4 * MIB, NULL);
    g_autofree guint8 *data = conformance_pattern(61, 4 * MIB);
    gboolean is_image_written = berth_image_writer_write(image_writer, 0, data, 4 * MIB, &image);
    berth_image_writer_free(image_writer);
    guint8 digest[BERTH_SHA256_BYTES];
    conformance_sha256(data, 4 * MIB, digest);
    BerthBlobWriter *blob_writer = berth_storage_blob_create(storage, digest, 4 * MIB, NULL);
    gboolean is_blob_written = berth_blob_writer_append(blob_writer, data, 4 * MIB, &blob);
    berth_blob_writer_free(blob_writer);
    BerthDiskSource *source = berth_storage_disk_create(storage, "full", "tiny", MIB, &disk);
    guint64 log_bytes = 0;
    gboolean has_size = berth_storage_log_size(storage, "filler", &log_bytes, NULL);
    gboolean works_again =
        berth_storage_log_remove(storage, "filler", NULL) && berth_storage_check(storage, NULL);
    g_autofree char *tmp = g_build_filename(path, "tmp", NULL);
    guint leftovers = count_entries(tmp);
    berth_storage_free(storage);
    assert_int_equal(umount(path), 0);

    assert_berth_error(log, BERTH_ERROR_RESOURCE_EXHAUSTED, path);
    assert_berth_error(log, BERTH_ERROR_RESOURCE_EXHAUSTED, "1.0 MiB needed");
    assert_berth_error(log, BERTH_ERROR_RESOURCE_EXHAUSTED, "of 8.0 MiB");
    assert_false(is_image_written);
    assert_berth_error(image, BERTH_ERROR_RESOURCE_EXHAUSTED, "image full");
    assert_false(is_blob_written);
    assert_berth_error(blob, BERTH_ERROR_RESOURCE_EXHAUSTED, "4.0 MiB needed");
    assert_null(source);
    assert_berth_error(disk, BERTH_ERROR_RESOURCE_EXHAUSTED, "disk full");
    assert_true(has_size);
    assert_true(log_bytes >= 4 * MIB && log_bytes < 8 * MIB);
    assert_true(works_again);
    assert_int_equal(leftovers, 0);
}

/* Runs last: whatever the suite made in tmp/ is gone again. */
static void storage_after_all_tests_is_clean(void **state)
{
    const char *const folders[] = {"images", "disks", "tmp", "logs"};
    for (guint i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = g_build_filename(root, folders[i], NULL);
        assert_int_equal(count_entries(path), 0);
    }
}

static int set_up(void **state)
{
    directory = g_dir_make_tmp("berth-storage-XXXXXX", NULL);
    root = g_build_filename(directory, "storage", NULL);
    if (g_mkdir(root, 0711) != 0)
        return -1;
    g_autoptr(GError) error = NULL;
    conformance_storage = open_at(root, &error);
    assert_no_error(error);
    return 0;
}

static int tear_down(void **state)
{
    berth_storage_free(conformance_storage);
    remove_tree(directory);
    g_free(root);
    g_free(directory);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(open_of_unusable_path_says_why),
        cmocka_unit_test(connect_changes_nothing_before_the_mark),
        cmocka_unit_test(open_of_unknown_kind_is_invalid_argument),
        cmocka_unit_test(open_again_finds_what_was_stored),
        cmocka_unit_test(fence_is_unsupported),
        cmocka_unit_test(image_of_zeroes_takes_no_space_and_is_read_only),
        cmocka_unit_test(disk_remove_while_locked_is_failed_precondition),
        cmocka_unit_test(disk_create_whatever_the_umask_is_for_its_owner_only),
        cmocka_unit_test(image_without_its_file_is_removed),
        cmocka_unit_test(disk_names_its_image_by_a_relative_path),
        cmocka_unit_test(disk_create_without_qemu_img_names_the_package),
        cmocka_unit_test(disk_create_with_hanging_qemu_img_is_deadline_exceeded),
        cmocka_unit_test(disk_create_with_failing_qemu_img_shows_its_words),
        cmocka_unit_test(blob_with_damaged_files_is_data_loss),
        cmocka_unit_test(list_sweeps_what_crashed_writers_left),
        cmocka_unit_test(full_file_system_is_resource_exhausted_and_named),
        cmocka_unit_test(storage_after_all_tests_is_clean),
    };
    g_autofree char *qemu_img = g_find_program_in_path("qemu-img");
    if (qemu_img == NULL) {
        g_printerr("skipped: no qemu-img; apt-get install qemu-utils\n");
        return 77;
    }
    g_autoptr(GArray) tests = g_array_new(FALSE, FALSE, sizeof(struct CMUnitTest));
    conformance_append(tests);
    g_array_append_vals(tests, own, G_N_ELEMENTS(own));
    return _cmocka_run_group_tests("storage_dir", (const struct CMUnitTest *)(void *)tests->data,
                                   tests->len, set_up, tear_down);
}
