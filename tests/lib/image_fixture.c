/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "tests/lib/image_fixture.h"

#include <archive.h>
#include <archive_entry.h>
#include <ext2fs/ext2fs.h>
#include <ftw.h>
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/lib/assert.h"

char *image_fixture_directory(void)
{
    g_autoptr(GError) error = NULL;
    char *directory = g_dir_make_tmp("berth-image-XXXXXX", &error);
    assert_no_error(error);
    return directory;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

void image_fixture_remove(char *directory)
{
    assert_int_equal(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    g_free(directory);
}

/* --- archives ------------------------------------------------------------------------------- */

struct ImageArchive {
    struct archive *archive;
};

ImageArchive *image_archive_new(const char *path, const char *filter)
{
    ImageArchive *writer = g_new0(ImageArchive, 1);
    writer->archive = archive_write_new();
    assert_int_equal(archive_write_set_format_pax(writer->archive), ARCHIVE_OK);
    if (!g_str_equal(filter, "none"))
        assert_int_equal(archive_write_add_filter_by_name(writer->archive, filter), ARCHIVE_OK);
    assert_int_equal(archive_write_set_options(writer->archive, "hdrcharset=BINARY"), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(writer->archive, path), ARCHIVE_OK);
    return writer;
}

static struct archive_entry *describe(const ImageEntry *from, gsize length)
{
    guint32 mode = from->mode ? from->mode : S_IFREG | 0644;
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, from->path);
    archive_entry_set_mode(entry, (mode & S_IFMT) ? mode : S_IFREG | mode);
    archive_entry_set_uid(entry, from->uid);
    archive_entry_set_gid(entry, from->gid);
    archive_entry_set_mtime(entry, from->mtime_sec, from->mtime_nsec);
    archive_entry_set_rdevmajor(entry, from->rdev_major);
    archive_entry_set_rdevminor(entry, from->rdev_minor);
    archive_entry_set_size(entry, (gint64)length + from->hole_until);
    if (from->hole_until)
        archive_entry_sparse_add_entry(entry, from->hole_until, (gint64)length);
    if (from->target)
        archive_entry_set_symlink(entry, from->target);
    if (from->hard_link)
        archive_entry_set_hardlink(entry, from->hard_link);
    if (from->xattr_name)
        archive_entry_xattr_add_entry(entry, from->xattr_name, from->xattr_value,
                                      from->xattr_length ? from->xattr_length
                                                         : strlen(from->xattr_value));
    return entry;
}

void image_archive_add(ImageArchive *writer, const ImageEntry *from)
{
    gsize length = from->length ? from->length : from->data ? strlen(from->data) : 0;
    struct archive_entry *entry = describe(from, length);
    assert_int_equal(archive_write_header(writer->archive, entry), ARCHIVE_OK);
    if (length > 0) {
        g_autofree char *zeros = g_malloc0((gsize)from->hole_until + 1);
        archive_write_data(writer->archive, zeros, (gsize)from->hole_until);
        assert_int_equal(archive_write_data(writer->archive, from->data, length), length);
    }
    archive_entry_free(entry);
}

void image_archive_close(ImageArchive *writer)
{
    assert_int_equal(archive_write_close(writer->archive), ARCHIVE_OK);
    archive_write_free(writer->archive);
    g_free(writer);
}

void image_archive_write(const char *path, const char *filter, const ImageEntry *entries,
                         gsize count)
{
    ImageArchive *writer = image_archive_new(path, filter);
    for (gsize i = 0; i < count; i++)
        image_archive_add(writer, &entries[i]);
    image_archive_close(writer);
}

/* --- images --------------------------------------------------------------------------------- */

void assert_image_is_clean(const char *image)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *output = NULL;
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE);
    g_subprocess_launcher_setenv(launcher, "PATH", "/usr/sbin:/sbin:/usr/bin:/bin", TRUE);
    g_autoptr(GSubprocess) check =
        g_subprocess_launcher_spawn(launcher, &error, "e2fsck", "-fn", image, NULL);
    assert_no_error(error);
    assert_true(g_subprocess_communicate_utf8(check, NULL, NULL, &output, NULL, &error));
    if (!g_subprocess_get_if_exited(check) || g_subprocess_get_exit_status(check) != 0)
        fail_msg("e2fsck -fn %s: %s", image, output);
}

static ext2_filsys open_image(const char *image)
{
    ext2_filsys fs = NULL;
    assert_int_equal(ext2fs_open(image, EXT2_FLAG_64BITS, 0, 0, unix_io_manager, &fs), 0);
    return fs;
}

static ext2_ino_t find(ext2_filsys fs, const char *path)
{
    ext2_ino_t number = EXT2_ROOT_INO;
    g_auto(GStrv) names = g_strsplit(path, "/", -1);
    for (guint i = 0; names[i]; i++) {
        if (names[i][0] &&
            ext2fs_lookup(fs, number, names[i], (int)strlen(names[i]), NULL, &number))
            return 0;
    }
    return number;
}

gboolean image_stat(const char *image, const char *path, ImageStat *out_stat)
{
    struct ext2_inode_large raw = {0};
    ext2_filsys fs = open_image(image);
    ext2_ino_t number = find(fs, path);
    if (number) {
        assert_int_equal(
            ext2fs_read_inode_full(fs, number, (struct ext2_inode *)&raw, (int)sizeof raw), 0);
        ImageStat found = {.number = number,
                           .mode = raw.i_mode,
                           .uid = inode_uid(raw),
                           .gid = inode_gid(raw),
                           .links = raw.i_links_count,
                           .size_bytes = EXT2_I_SIZE(&raw),
                           .blocks = raw.i_blocks,
                           .mtime_sec =
                               (gint32)raw.i_mtime + ((gint64)(raw.i_mtime_extra & 3) << 32),
                           .mtime_nsec = raw.i_mtime_extra >> 2,
                           .words = {raw.i_block[0], raw.i_block[1]}};
        *out_stat = found;
    }
    ext2fs_close_free(&fs);
    return number != 0;
}

static GBytes *read_file(ext2_filsys fs, ext2_ino_t number, guint64 size)
{
    ext2_file_t file;
    guint8 *data = g_malloc(size + 1);
    guint64 done = 0;
    assert_int_equal(ext2fs_file_open(fs, number, 0, &file), 0);
    while (done < size) {
        unsigned int got = 0;
        assert_int_equal(
            ext2fs_file_read(file, data + done, (unsigned)MIN(size - done, 1u << 20), &got), 0);
        assert_true(got > 0);
        done += got;
    }
    ext2fs_file_close(file);
    return g_bytes_new_take(data, size);
}

GBytes *image_read(const char *image, const char *path)
{
    struct ext2_inode inode;
    ext2_filsys fs = open_image(image);
    ext2_ino_t number = find(fs, path);
    if (!number)
        fail_msg("there is no %s in %s", path, image);
    assert_int_equal(ext2fs_read_inode(fs, number, &inode), 0);
    GBytes *bytes;
    if (LINUX_S_ISLNK(inode.i_mode) && ext2fs_is_fast_symlink(&inode))
        bytes = g_bytes_new(inode.i_block, inode.i_size);
    else
        bytes = read_file(fs, number, EXT2_I_SIZE(&inode));
    ext2fs_close_free(&fs);
    return bytes;
}

GBytes *image_xattr(const char *image, const char *path, const char *name)
{
    struct ext2_xattr_handle *handle;
    void *value = NULL;
    size_t length = 0;
    GBytes *bytes = NULL;
    ext2_filsys fs = open_image(image);
    assert_int_equal(ext2fs_xattrs_open(fs, find(fs, path), &handle), 0);
    assert_int_equal(ext2fs_xattrs_read(handle), 0);
    if (ext2fs_xattr_get(handle, name, &value, &length) == 0) {
        bytes = g_bytes_new(value, length);
        ext2fs_free_mem(&value);
    }
    ext2fs_xattrs_close(&handle);
    ext2fs_close_free(&fs);
    return bytes;
}
