/* SPDX-License-Identifier: Apache-2.0 */

/* Whole images: what is in the source is in the image, and e2fsck finds nothing. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/image_place.h"

/* --- content --- */

static void archive_of_each_compression_gives_the_same_files(void **state)
{
    const ImagePlace *place = *state;
    static const char *const filters[] = {"none", "gzip", "xz", "zstd"};
    static const ImageEntry entries[] = {
        {.path = "./", .mode = S_IFDIR | 0751, .mtime_sec = 1000},
        {.path = "./bin/tool",
         .mode = 04755,
         .data = "#!/bin/sh\n",
         .uid = 70000,
         .gid = 1000000,
         .mtime_sec = 1700000000,
         .mtime_nsec = 123456789},
        {.path = "empty"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(filters); i++) {
        ImageStat stat;
        image_archive_write(place->source, filters[i], entries, G_N_ELEMENTS(entries));
        BerthImageInfo info = image_place_build(place);
        assert_int_equal(info.kind, BERTH_IMAGE_SOURCE_TAR);
        assert_int_equal(info.entries, 3);
        assert_int_equal(info.content_bytes, 10);
        assert_image_holds(place->image, "/bin/tool", "#!/bin/sh\n", 10);
        assert_true(image_stat(place->image, "/bin/tool", &stat));
        assert_int_equal(stat.mode, S_IFREG | 04755);
        assert_int_equal(stat.uid, 70000);
        assert_int_equal(stat.gid, 1000000);
        assert_int_equal(stat.mtime_sec, 1700000000);
        assert_int_equal(stat.mtime_nsec, 123456789);
        assert_true(image_stat(place->image, "/", &stat));
        assert_int_equal(stat.mode, S_IFDIR | 0751);
        assert_int_equal(stat.links, 3);
        g_unlink(place->image);
    }
}

static void archive_of_odd_entries_keeps_them(void **state)
{
    const ImagePlace *place = *state;
    g_autofree char *target59 = g_strnfill(59, 's');
    g_autofree char *target60 = g_strnfill(60, 'l');
    g_autofree char *target4095 = g_strnfill(4095, 'x');
    const ImageEntry entries[] = {
        {.path = "null", .mode = S_IFCHR | 0666, .rdev_major = 1, .rdev_minor = 3},
        {.path = "far", .mode = S_IFBLK | 0600, .rdev_major = 259, .rdev_minor = 70000},
        {.path = "pipe", .mode = S_IFIFO | 0644},
        {.path = "short", .mode = S_IFLNK | 0777, .target = target59},
        {.path = "long", .mode = S_IFLNK | 0777, .target = target60},
        {.path = "longest", .mode = S_IFLNK | 0777, .target = target4095},
        {.path = "future", .data = "x", .mtime_sec = (G_GINT64_CONSTANT(1) << 32) + 5},
        {.path = "past", .data = "x", .mtime_sec = -86400},
        {.path = "/absolute", .data = "in the image"},
    };
    ImageStat stat;
    image_place_build_entries(place, entries, G_N_ELEMENTS(entries));
    assert_true(image_stat(place->image, "/null", &stat));
    assert_int_equal(stat.mode, S_IFCHR | 0666);
    assert_int_equal(stat.words[0], 0x103);
    assert_true(image_stat(place->image, "/far", &stat));
    assert_int_equal(stat.words[1], (70000 & 0xff) | 259 << 8 | (70000 & ~0xff) << 12);
    assert_true(image_stat(place->image, "/pipe", &stat));
    assert_int_equal(stat.mode, S_IFIFO | 0644);
    assert_image_holds(place->image, "/short", target59, 59);
    assert_image_holds(place->image, "/long", target60, 60);
    assert_image_holds(place->image, "/longest", target4095, 4095);
    assert_true(image_stat(place->image, "/future", &stat));
    assert_int_equal(stat.mtime_sec, (G_GINT64_CONSTANT(1) << 32) + 5);
    assert_true(image_stat(place->image, "/past", &stat));
    assert_int_equal(stat.mtime_sec, -86400);
    assert_image_holds(place->image, "/absolute", "in the image", 12);
}

static void archive_with_attributes_keeps_them(void **state)
{
    const ImagePlace *place = *state;
    static const char capability[20] = "\x01\0\0\x02\0\x20";
    g_autofree char *large = g_strnfill(3000, 'v');
    const ImageEntry entries[] = {
        {.path = "ping",
         .data = "p",
         .xattr_name = "security.capability",
         .xattr_value = capability,
         .xattr_length = sizeof capability},
        {.path = "large", .xattr_name = "user.large", .xattr_value = large},
        {.path = "dir",
         .mode = S_IFDIR | 0755,
         .xattr_name = "trusted.overlay.opaque",
         .xattr_value = "y"},
        {.path = "label", .xattr_name = "security.selinux", .xattr_value = "system_u"},
    };
    image_place_build_entries(place, entries, G_N_ELEMENTS(entries));
    g_autoptr(GBytes) cap = image_xattr(place->image, "/ping", "security.capability");
    g_autoptr(GBytes) big = image_xattr(place->image, "/large", "user.large");
    g_autoptr(GBytes) opaque = image_xattr(place->image, "/dir", "trusted.overlay.opaque");
    assert_non_null(cap);
    assert_int_equal(g_bytes_get_size(cap), sizeof capability);
    assert_memory_equal(g_bytes_get_data(cap, NULL), capability, sizeof capability);
    assert_non_null(big);
    assert_int_equal(g_bytes_get_size(big), 3000);
    assert_non_null(opaque);
    assert_null(image_xattr(place->image, "/label", "security.selinux"));
}

static void archive_with_the_same_path_twice_keeps_the_later(void **state)
{
    const ImagePlace *place = *state;
    static const ImageEntry entries[] = {
        {.path = "x", .data = "first"},
        {.path = "other", .hard_link = "x"},
        {.path = "x", .data = "second"},
        {.path = "y", .data = "file"},
        {.path = "y", .mode = S_IFLNK | 0777, .target = "x"},
        {.path = "d", .mode = S_IFDIR | 0755},
        {.path = "d/in", .data = "in"},
        {.path = "d", .mode = S_IFDIR | 0700, .uid = 5},
        {.path = "e", .mode = S_IFDIR | 0755},
        {.path = "e", .data = "now a file"},
    };
    ImageStat stat;
    image_place_build_entries(place, entries, G_N_ELEMENTS(entries));
    assert_image_holds(place->image, "/x", "second", 6);
    assert_image_holds(place->image, "/other", "first", 5);
    assert_image_holds(place->image, "/y", "x", 1);
    assert_image_holds(place->image, "/d/in", "in", 2);
    assert_image_holds(place->image, "/e", "now a file", 10);
    assert_true(image_stat(place->image, "/d", &stat));
    assert_int_equal(stat.mode, S_IFDIR | 0700);
    assert_int_equal(stat.uid, 5);
    assert_true(image_stat(place->image, "/", &stat));
    assert_int_equal(stat.links, 3);
}

static void archive_with_names_of_any_bytes_keeps_them(void **state)
{
    const ImagePlace *place = *state;
    static const ImageEntry entries[] = {
        {.path = "gr\xc3\xbc\xc3\x9f", .data = "utf-8"},
        {.path = "gr\xfc\xdf", .data = "latin-1"},
        {.path = "new\nline", .data = "odd"},
    };
    image_place_build_entries(place, entries, G_N_ELEMENTS(entries));
    assert_image_holds(place->image, "gr\xc3\xbc\xc3\x9f", "utf-8", 5);
    assert_image_holds(place->image, "gr\xfc\xdf", "latin-1", 7);
    assert_image_holds(place->image, "new\nline", "odd", 3);
}

/* --- directories --- */

static void put(const ImagePlace *place, const char *name, const char *data)
{
    g_autofree char *path = g_build_filename(place->source, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    assert_int_equal(g_mkdir_with_parents(parent, 0755), 0);
    assert_true(g_file_set_contents(path, data, -1, NULL));
}

static void put_socket(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocket) socket =
        g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, &error);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    assert_true(g_socket_bind(socket, address, TRUE, &error));
}

static void directory_gives_its_files(void **state)
{
    const ImagePlace *place = *state;
    g_autofree char *first = g_build_filename(place->source, "etc/first", NULL);
    g_autofree char *second = g_build_filename(place->source, "second", NULL);
    g_autofree char *name = g_build_filename(place->source, "link", NULL);
    g_autofree char *holes = g_build_filename(place->source, "holes", NULL);
    g_autofree char *sock = g_build_filename(place->source, "socket", NULL);
    g_autofree char *alias = g_build_filename(place->directory, "alias", NULL);
    ImageStat stat;
    put(place, "etc/first", "shared");
    put(place, "a/b/c/d", "deep");
    assert_int_equal(g_chmod(first, 0640), 0);
    assert_int_equal(link(first, second), 0);
    assert_int_equal(symlink("etc/first", name), 0);
    put_socket(sock);
    int fd = g_open(holes, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(fd, "end", 3, 40 << 20), 3);
    close(fd);
    /* The name of the directory itself may be a symbolic link. */
    assert_int_equal(symlink("source", alias), 0);

    BerthImageInfo info;
    g_autoptr(GError) error = NULL;
    berth_image_build(alias, place->image, 0, NULL, NULL, NULL, &info, &error);
    assert_no_error(error);
    assert_image_is_clean(place->image);
    assert_int_equal(info.kind, BERTH_IMAGE_SOURCE_DIRECTORY);
    assert_int_equal(info.skipped, 1);
    assert_image_holds(place->image, "/a/b/c/d", "deep", 4);
    assert_image_holds(place->image, "/second", "shared", 6);
    assert_image_holds(place->image, "/link", "etc/first", 9);
    assert_false(image_stat(place->image, "/socket", &stat));
    assert_true(image_stat(place->image, "/etc/first", &stat));
    assert_int_equal(stat.mode, S_IFREG | 0640);
    assert_int_equal(stat.links, 2);
    assert_int_equal(stat.uid, getuid());
    assert_true(image_stat(place->image, "/holes", &stat));
    assert_int_equal(stat.size_bytes, (40 << 20) + 3);
    assert_in_range(stat.blocks, 8, 16);
}

/* Builds PLACE's image as somebody who is not root, who may read everything. (transfer full) */
static GError *refused_for_another(const ImagePlace *place)
{
    GError *error = NULL;
    gboolean root = geteuid() == 0;
    assert_int_equal(g_chmod(place->directory, 0777), 0); /* whatever the umask */
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    gboolean done =
        berth_image_build(place->source, place->image, 0, NULL, NULL, NULL, NULL, &error);
    assert_int_equal(root ? seteuid(0) : 0, 0);
    assert_false(done);
    return error;
}

/* A file, a directory in the source, the source itself: what may not be read and why is said. */
static void directory_that_may_not_be_read_is_an_error(void **state)
{
    const ImagePlace *place = *state;
    g_autofree char *path = g_build_filename(place->source, "secret", NULL);
    put(place, "secret", "x");
    assert_int_equal(g_chmod(path, 0), 0);
    assert_int_equal(g_chmod(place->source, 0755), 0);
    g_autoptr(GError) file = refused_for_another(place);
    assert_berth_error(file, BERTH_ERROR_PERMISSION_DENIED, "secret");
    assert_berth_error(file, BERTH_ERROR_PERMISSION_DENIED, g_strerror(EACCES));
    assert_int_equal(g_unlink(path), 0);
    assert_int_equal(g_mkdir(path, 0), 0);
    g_autoptr(GError) directory = refused_for_another(place);
    assert_berth_error(directory, BERTH_ERROR_PERMISSION_DENIED, "secret");
    assert_berth_error(directory, BERTH_ERROR_PERMISSION_DENIED, g_strerror(EACCES));
    assert_int_equal(g_chmod(path, 0755), 0);
    assert_int_equal(g_chmod(place->source, 0711), 0);
    g_autoptr(GError) source = refused_for_another(place);
    assert_berth_error(source, BERTH_ERROR_PERMISSION_DENIED, g_strerror(EACCES));
}

/* --- file systems --- */

static void file_system_is_copied_as_it_is(void **state)
{
    ImagePlace *place = *state;
    static const ImageEntry entry = {.path = "x", .data = "content"};
    image_place_build_entries(place, &entry, 1);
    g_free(place->source);
    place->source = g_steal_pointer(&place->image);
    place->image = g_build_filename(place->directory, "copy", NULL);
    /* A file may be longer than the file system in it. */
    GStatBuf before, after;
    assert_int_equal(g_stat(place->source, &before), 0);
    assert_int_equal(truncate(place->source, before.st_size + 12345), 0);

    BerthImageInfo info = image_place_build(place);
    assert_int_equal(info.kind, BERTH_IMAGE_SOURCE_EXT4);
    assert_int_equal(info.size_bytes, before.st_size);
    assert_int_equal(g_stat(place->image, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_true(after.st_blocks * 512 < after.st_size / 2);
    assert_image_holds(place->image, "/x", "content", 7);

    g_unlink(place->image);
    assert_int_equal(truncate(place->source, before.st_size - 4096), 0);
    g_autoptr(GError) error = image_place_build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "truncated");
}

/* --- progress --- */

typedef struct {
    BerthImageProgress last;
    guint calls;
    GCancellable *cancel_at_first_data;
} Watch;

static void watch(const BerthImageProgress *progress, gpointer user_data)
{
    Watch *watch = user_data;
    assert_true(progress->done_bytes >= watch->last.done_bytes);
    assert_true(progress->entries >= watch->last.entries);
    assert_true(progress->done_bytes <= progress->total_bytes);
    watch->last = *progress;
    watch->calls++;
    if (watch->cancel_at_first_data && progress->done_bytes > 0)
        g_cancellable_cancel(watch->cancel_at_first_data);
}

static void make_20_mib(const ImagePlace *place)
{
    g_autofree char *data = g_strnfill(20 << 20, 'd');
    const ImageEntry entry = {.path = "x", .data = data};
    image_archive_write(place->source, "zstd", &entry, 1);
}

static void build_reports_progress_to_the_end(void **state)
{
    const ImagePlace *place = *state;
    Watch seen = {0};
    g_autoptr(GError) error = NULL;
    make_20_mib(place);
    assert_true(
        berth_image_build(place->source, place->image, 0, watch, &seen, NULL, NULL, &error));
    assert_in_range(seen.calls, 4, 20);
    assert_int_equal(seen.last.done_bytes, 20 << 20);
    assert_int_equal(seen.last.total_bytes, 20 << 20);
}

static void build_that_is_cancelled_leaves_nothing(void **state)
{
    const ImagePlace *place = *state;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;
    Watch seen = {.cancel_at_first_data = cancellable};
    make_20_mib(place);
    assert_false(
        berth_image_build(place->source, place->image, 0, watch, &seen, cancellable, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_CANCELLED, "cancelled");
    assert_false(g_file_test(place->image, G_FILE_TEST_EXISTS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_place(archive_of_each_compression_gives_the_same_files),
        in_place(archive_of_odd_entries_keeps_them),
        in_place(archive_with_attributes_keeps_them),
        in_place(archive_with_the_same_path_twice_keeps_the_later),
        in_place(archive_with_names_of_any_bytes_keeps_them),
        in_place(directory_gives_its_files),
        in_place(directory_that_may_not_be_read_is_an_error),
        in_place(file_system_is_copied_as_it_is),
        in_place(build_reports_progress_to_the_end),
        in_place(build_that_is_cancelled_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
