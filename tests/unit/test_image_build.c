/* SPDX-License-Identifier: Apache-2.0 */

/* Whole images: what is in the source is in the image, and e2fsck finds nothing. */

#include <config.h>

#include "images/build/image_build.h"

#include <fcntl.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/assert.h"
#include "tests/lib/image_fixture.h"

typedef struct {
    char *directory;
    char *source;
    char *image;
} Place;

static int make_place(void **state)
{
    Place *place = g_new0(Place, 1);
    place->directory = image_fixture_directory();
    place->source = g_build_filename(place->directory, "source", NULL);
    place->image = g_build_filename(place->directory, "image", NULL);
    *state = place;
    return 0;
}

static int remove_place(void **state)
{
    Place *place = *state;
    image_fixture_remove(place->directory);
    g_free(place->source);
    g_free(place->image);
    g_free(place);
    return 0;
}

static BerthImageInfo build(const Place *place)
{
    BerthImageInfo info;
    g_autoptr(GError) error = NULL;
    berth_image_build(place->source, place->image, 0, NULL, NULL, NULL, &info, &error);
    assert_no_error(error);
    assert_image_is_clean(place->image);
    return info;
}

static void build_entries(const Place *place, const ImageEntry *entries, gsize count)
{
    image_archive_write(place->source, "none", entries, count);
    build(place);
}

static GError *build_fails(const Place *place, guint64 max_bytes)
{
    GError *error = NULL;
    assert_false(
        berth_image_build(place->source, place->image, max_bytes, NULL, NULL, NULL, NULL, &error));
    assert_non_null(error);
    assert_false(g_file_test(place->image, G_FILE_TEST_EXISTS));
    return error;
}

/* --- content --- */

static void archive_of_each_compression_gives_the_same_files(void **state)
{
    const Place *place = *state;
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
        BerthImageInfo info = build(place);
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
    const Place *place = *state;
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
    build_entries(place, entries, G_N_ELEMENTS(entries));
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
    const Place *place = *state;
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
    build_entries(place, entries, G_N_ELEMENTS(entries));
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
    const Place *place = *state;
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
    build_entries(place, entries, G_N_ELEMENTS(entries));
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
    const Place *place = *state;
    static const ImageEntry entries[] = {
        {.path = "gr\xc3\xbc\xc3\x9f", .data = "utf-8"},
        {.path = "gr\xfc\xdf", .data = "latin-1"},
        {.path = "new\nline", .data = "odd"},
    };
    build_entries(place, entries, G_N_ELEMENTS(entries));
    assert_image_holds(place->image, "gr\xc3\xbc\xc3\x9f", "utf-8", 5);
    assert_image_holds(place->image, "gr\xfc\xdf", "latin-1", 7);
    assert_image_holds(place->image, "new\nline", "odd", 3);
}

/* --- size --- */

static void archive_of_a_large_directory_finds_all_of_it(void **state)
{
    const Place *place = *state;
    ImageStat stat;
    ImageArchive *archive = image_archive_new(place->source, "none");
    for (guint i = 0; i < 6000; i++) {
        g_autofree char *path = g_strdup_printf("d/%*u", 1 + (int)(i % 200), i);
        g_autofree char *data = g_strdup_printf("%u", i);
        image_archive_add(archive, &(ImageEntry){.path = path, .data = data});
    }
    image_archive_close(archive);
    build(place);
    for (guint i = 0; i < 6000; i += 499) {
        g_autofree char *path = g_strdup_printf("d/%*u", 1 + (int)(i % 200), i);
        g_autofree char *data = g_strdup_printf("%u", i);
        assert_image_holds(place->image, path, data, strlen(data));
    }
    assert_true(image_stat(place->image, "d", &stat));
    assert_true(stat.size_bytes > 100 * 4096);
}

static void archive_of_many_directories_counts_their_links(void **state)
{
    const Place *place = *state;
    ImageStat stat;
    ImageArchive *archive = image_archive_new(place->source, "gzip");
    for (guint i = 0; i < 65100; i++) {
        g_autofree char *path = g_strdup_printf("%s/%u", i < 100 ? "few" : "many", i);
        image_archive_add(archive, &(ImageEntry){.path = path, .mode = S_IFDIR | 0755});
    }
    image_archive_close(archive);
    build(place);
    assert_true(image_stat(place->image, "few", &stat));
    assert_int_equal(stat.links, 102);
    assert_true(image_stat(place->image, "many", &stat));
    assert_int_equal(stat.links, 1); /* more than ext4 counts */
}

static void archive_of_thousands_of_hard_links_has_one_file(void **state)
{
    const Place *place = *state;
    ImageStat first, last;
    ImageArchive *archive = image_archive_new(place->source, "gzip");
    image_archive_add(archive, &(ImageEntry){.path = "0", .data = "shared"});
    for (guint i = 1; i < 20000; i++) {
        g_autofree char *path = g_strdup_printf("%u", i);
        image_archive_add(archive, &(ImageEntry){.path = path, .hard_link = "0"});
    }
    image_archive_close(archive);
    build(place);
    assert_true(image_stat(place->image, "0", &first));
    assert_true(image_stat(place->image, "19999", &last));
    assert_int_equal(first.number, last.number);
    assert_int_equal(last.links, 20000);
    assert_image_holds(place->image, "19999", "shared", 6);
}

static void archive_of_a_file_larger_than_a_group_keeps_its_data(void **state)
{
    const Place *place = *state;
    gsize length = 150 << 20;
    g_autofree guint32 *data = g_malloc(length);
    for (gsize i = 0; i < length / 4; i++)
        data[i] = (guint32)i * 2654435761u + 1;
    const ImageEntry entry = {.path = "big", .data = (const char *)data, .length = length - 5};
    image_archive_write(place->source, "none", &entry, 1);
    BerthImageInfo info = build(place);
    assert_int_equal(info.content_bytes, length - 5);
    assert_in_range(info.size_bytes, length, length + length / 5);
    assert_image_holds(place->image, "big", data, length - 5);
}

static void archive_of_a_file_with_a_hole_keeps_it(void **state)
{
    const Place *place = *state;
    static const ImageEntry entry = {.path = "holes", .data = "end", .hole_until = 50 << 20};
    ImageStat stat;
    image_archive_write(place->source, "none", &entry, 1);
    BerthImageInfo info = build(place);
    assert_true(info.size_bytes < 20 << 20);
    assert_true(image_stat(place->image, "holes", &stat));
    assert_int_equal(stat.size_bytes, (50 << 20) + 3);
    assert_int_equal(stat.blocks, 8);
    g_autoptr(GBytes) held = image_read(place->image, "holes");
    const char *data = g_bytes_get_data(held, NULL);
    assert_memory_equal(data + (50 << 20), "end", 3);
    assert_int_equal(data[0], 0);
}

/* Every second block is a hole: a tree of extents, not only a list of four. */
static void archive_of_a_file_full_of_holes_keeps_its_data(void **state)
{
    const Place *place = *state;
    gsize blocks = 3000;
    g_autofree char *data = g_malloc0(blocks * 4096);
    for (gsize i = 0; i < blocks; i += 2)
        memset(data + i * 4096, (int)(1 + i % 251), 4096);
    const ImageEntry entry = {.path = "sieve", .data = data, .length = blocks * 4096};
    ImageStat stat;
    build_entries(place, &entry, 1);
    assert_image_holds(place->image, "sieve", data, blocks * 4096);
    assert_true(image_stat(place->image, "sieve", &stat));
    assert_in_range(stat.blocks, blocks / 2 * 8, blocks / 2 * 8 + 100);
}

/* --- directories --- */

static void put(const Place *place, const char *name, const char *data)
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
    const Place *place = *state;
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

static void directory_that_may_not_be_read_is_an_error(void **state)
{
    const Place *place = *state;
    g_autofree char *path = g_build_filename(place->source, "secret", NULL);
    g_autoptr(GError) error = NULL;
    gboolean root = geteuid() == 0;
    put(place, "secret", "x");
    assert_int_equal(g_chmod(path, 0), 0);
    assert_int_equal(g_chmod(place->directory, 0777), 0); /* whatever the umask */
    assert_int_equal(g_chmod(place->source, 0755), 0);
    /* Root may read everything: be somebody else for a moment. */
    assert_int_equal(root ? seteuid(65534) : 0, 0);
    gboolean done =
        berth_image_build(place->source, place->image, 0, NULL, NULL, NULL, NULL, &error);
    assert_int_equal(root ? seteuid(0) : 0, 0);
    assert_false(done);
    assert_berth_error(error, BERTH_ERROR_PERMISSION_DENIED, "secret");
}

/* --- file systems --- */

static void file_system_is_copied_as_it_is(void **state)
{
    Place *place = *state;
    static const ImageEntry entry = {.path = "x", .data = "content"};
    build_entries(place, &entry, 1);
    g_free(place->source);
    place->source = g_steal_pointer(&place->image);
    place->image = g_build_filename(place->directory, "copy", NULL);
    /* A file may be longer than the file system in it. */
    GStatBuf before, after;
    assert_int_equal(g_stat(place->source, &before), 0);
    assert_int_equal(truncate(place->source, before.st_size + 12345), 0);

    BerthImageInfo info = build(place);
    assert_int_equal(info.kind, BERTH_IMAGE_SOURCE_EXT4);
    assert_int_equal(info.size_bytes, before.st_size);
    assert_int_equal(g_stat(place->image, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_true(after.st_blocks * 512 < after.st_size / 2);
    assert_image_holds(place->image, "/x", "content", 7);

    g_unlink(place->image);
    assert_int_equal(truncate(place->source, before.st_size - 4096), 0);
    g_autoptr(GError) error = build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "truncated");
}

/* --- refusals --- */

static void archive_with_hostile_paths_is_refused(void **state)
{
    const Place *place = *state;
    static const struct {
        ImageEntry entries[3];
        const char *text;
    } cases[] = {
        {{{.path = "../x", .data = "x"}}, "'..'"},
        {{{.path = "a/../../x", .data = "x"}}, "'..'"},
        {{{.path = "l", .mode = S_IFLNK | 0777, .target = "/etc"}, {.path = "l/x", .data = "x"}},
         "symbolic link"},
        {{{.path = "f", .data = "x"}, {.path = "f/x", .data = "x"}}, "no directory"},
        {{{.path = "h", .hard_link = "missing"}}, "not among"},
        {{{.path = "h", .hard_link = "../../etc/passwd"}}, "not among"},
        {{{.path = "d", .mode = S_IFDIR | 0755}, {.path = "h", .hard_link = "d"}}, "a directory"},
        {{{.path = "d/x", .data = "x"}, {.path = "d", .data = "x"}}, "not empty"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        gsize count = 1;
        while (count < 3 && cases[i].entries[count].path)
            count++;
        image_archive_write(place->source, "none", cases[i].entries, count);
        g_autoptr(GError) error = build_fails(place, 0);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
    }
}

static void archive_cut_anywhere_in_its_data_is_refused(void **state)
{
    const Place *place = *state;
    static const char *const filters[] = {"none", "gzip", "xz", "zstd"};
    g_autofree char *data = g_malloc(200000);
    guint32 random = 1;
    for (gsize i = 0; i < 200000; i++)
        data[i] = (char)((random = random * 1103515245 + 12345) >> 24);
    const ImageEntry entries[] = {{.path = "a", .data = data, .length = 100000},
                                  {.path = "b", .data = data, .length = 200000}};
    for (gsize i = 0; i < G_N_ELEMENTS(filters); i++) {
        GStatBuf whole;
        image_archive_write(place->source, filters[i], entries, G_N_ELEMENTS(entries));
        assert_int_equal(g_stat(place->source, &whole), 0);
        const off_t cuts[] = {whole.st_size - 1, whole.st_size / 2, whole.st_size / 10, 1};
        for (gsize j = 0; j < G_N_ELEMENTS(cuts); j++) {
            image_archive_write(place->source, filters[i], entries, G_N_ELEMENTS(entries));
            assert_int_equal(truncate(place->source, cuts[j]), 0);
            /* Of the zeros that end a plain archive one block is enough. */
            if (j == 0 && g_str_equal(filters[i], "none"))
                continue;
            g_autoptr(GError) error = build_fails(place, 0);
            assert_int_equal(error->code, BERTH_ERROR_INVALID_ARGUMENT);
        }
    }
}

/* What is left is an archive of whole files, but for its end. */
static void archive_cut_between_two_files_is_refused(void **state)
{
    const Place *place = *state;
    static const ImageEntry entries[] = {{.path = "a", .data = "a"}, {.path = "b", .data = "b"}};
    g_autofree char *archive = NULL;
    gsize length = 0;
    image_archive_write(place->source, "none", entries, G_N_ELEMENTS(entries));
    assert_true(g_file_get_contents(place->source, &archive, &length, NULL));
    const char *second = memmem(archive, length, "PaxHeader/b", strlen("PaxHeader/b"));
    assert_non_null(second);
    assert_int_equal((second - archive) % 512, 0);
    assert_int_equal(truncate(place->source, second - archive), 0);
    g_autoptr(GError) error = build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "no end after entry 1");
}

/* A header of the old format, whose size field is given as it stands there. */
static void write_header(const char *path, const char size[12])
{
    char header[1536] = "claim";
    memcpy(header + 100,
           "0000644\0"
           "0000000\0"
           "0000000",
           23);
    memcpy(header + 124, size, 12);
    memcpy(header + 136,
           "00000000000\0"
           "        "
           "0",
           21);
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    unsigned sum = 0;
    for (gsize i = 0; i < 512; i++)
        sum += (guint8)header[i];
    g_snprintf(header + 148, 8, "%06o", sum);
    assert_true(g_file_set_contents(path, header, sizeof header, NULL));
}

static void archive_that_claims_an_absurd_size_is_refused(void **state)
{
    const Place *place = *state;
    static const char *const sizes[] = {
        "77777777777",                                      /* 8 GiB, not there */
        "\x80\0\0\0\x0f\xff\xff\xff\xff\xff\xff\xff",       /* 2^60, not there */
        "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",       /* 2^63 - 1 */
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", /* -1 */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        write_header(place->source, sizes[i]);
        g_autoptr(GError) error = build_fails(place, 0);
        assert_int_equal(error->code, BERTH_ERROR_INVALID_ARGUMENT);
    }
}

static void archive_beyond_the_limit_is_refused_before_it_is_written(void **state)
{
    const Place *place = *state;
    static const ImageEntry entry = {.path = "zeros", .data = "x", .hole_until = 1 << 20};
    image_archive_write(place->source, "none", &entry, 1);
    g_autoptr(GError) error = build_fails(place, 1 << 20);
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "does not fit");
}

static void archive_with_too_many_attributes_is_refused(void **state)
{
    const Place *place = *state;
    g_autofree char *value = g_strnfill(5000, 'v');
    const ImageEntry entry = {.path = "x", .xattr_name = "user.x", .xattr_value = value};
    image_archive_write(place->source, "none", &entry, 1);
    g_autoptr(GError) error = build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "extended attributes");
}

static void source_of_no_known_kind_is_refused(void **state)
{
    const Place *place = *state;
    static const char zeros[4096];
    static const char disk[4096] = {[510] = 0x55, [511] = (char)0xaa};
    const struct {
        const char *data;
        gsize length;
        const char *text;
    } cases[] = {
        {"", 0, "neither a directory"},    {"text\n", 5, "neither a directory"},
        {zeros, sizeof zeros, "no files"}, {"QFI\xfb", 4, "qcow2"},
        {"PK\x03\x04", 4, "zip"},          {"hsqs", 4, "squashfs"},
        {disk, sizeof disk, "partitions"}, {"\x1f\x8b\x08", 3, "neither a directory"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_true(
            g_file_set_contents(place->source, cases[i].data, (gssize)cases[i].length, NULL));
        g_autoptr(GError) error = build_fails(place, 0);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
    }
}

static void source_that_is_missing_or_a_pipe_is_refused(void **state)
{
    const Place *place = *state;
    g_autoptr(GError) missing = build_fails(place, 0);
    assert_berth_error(missing, BERTH_ERROR_NOT_FOUND, place->source);
    assert_int_equal(mkfifo(place->source, 0600), 0);
    g_autoptr(GError) pipe = build_fails(place, 0);
    assert_berth_error(pipe, BERTH_ERROR_INVALID_ARGUMENT, "no regular file");
}

static void output_that_exists_is_left_alone(void **state)
{
    const Place *place = *state;
    static const ImageEntry entry = {.path = "x", .data = "content"};
    g_autoptr(GError) error = NULL;
    g_autofree char *kept = NULL;
    image_archive_write(place->source, "none", &entry, 1);
    assert_true(g_file_set_contents(place->image, "mine", -1, NULL));
    assert_false(berth_image_build(place->source, place->image, 0, NULL, NULL, NULL, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, place->image);
    assert_true(g_file_get_contents(place->image, &kept, NULL, NULL));
    assert_string_equal(kept, "mine");
}

static void output_in_a_missing_directory_is_an_error(void **state)
{
    Place *place = *state;
    static const ImageEntry entry = {.path = "x", .data = "content"};
    image_archive_write(place->source, "none", &entry, 1);
    g_free(place->image);
    place->image = g_build_filename(place->directory, "missing", "image", NULL);
    g_autoptr(GError) error = build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "missing/image");
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

static void make_20_mib(const Place *place)
{
    g_autofree char *data = g_strnfill(20 << 20, 'd');
    const ImageEntry entry = {.path = "x", .data = data};
    image_archive_write(place->source, "zstd", &entry, 1);
}

static void build_reports_progress_to_the_end(void **state)
{
    const Place *place = *state;
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
    const Place *place = *state;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;
    Watch seen = {.cancel_at_first_data = cancellable};
    make_20_mib(place);
    assert_false(
        berth_image_build(place->source, place->image, 0, watch, &seen, cancellable, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_CANCELLED, "cancelled");
    assert_false(g_file_test(place->image, G_FILE_TEST_EXISTS));
}

#define in_place(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_place(archive_of_each_compression_gives_the_same_files),
        in_place(archive_of_odd_entries_keeps_them),
        in_place(archive_with_attributes_keeps_them),
        in_place(archive_with_the_same_path_twice_keeps_the_later),
        in_place(archive_with_names_of_any_bytes_keeps_them),
        in_place(archive_of_a_large_directory_finds_all_of_it),
        in_place(archive_of_many_directories_counts_their_links),
        in_place(archive_of_thousands_of_hard_links_has_one_file),
        in_place(archive_of_a_file_larger_than_a_group_keeps_its_data),
        in_place(archive_of_a_file_with_a_hole_keeps_it),
        in_place(archive_of_a_file_full_of_holes_keeps_its_data),
        in_place(directory_gives_its_files),
        in_place(directory_that_may_not_be_read_is_an_error),
        in_place(file_system_is_copied_as_it_is),
        in_place(archive_with_hostile_paths_is_refused),
        in_place(archive_cut_anywhere_in_its_data_is_refused),
        in_place(archive_cut_between_two_files_is_refused),
        in_place(archive_that_claims_an_absurd_size_is_refused),
        in_place(archive_beyond_the_limit_is_refused_before_it_is_written),
        in_place(archive_with_too_many_attributes_is_refused),
        in_place(source_of_no_known_kind_is_refused),
        in_place(source_that_is_missing_or_a_pipe_is_refused),
        in_place(output_that_exists_is_left_alone),
        in_place(output_in_a_missing_directory_is_an_error),
        in_place(build_reports_progress_to_the_end),
        in_place(build_that_is_cancelled_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
