/* SPDX-License-Identifier: Apache-2.0 */

/* Directories and tar archives as streams of entries, read by libarchive.
 *
 * Owns: what libarchive's answers mean. Does not own: what entries amount to together (tree.c).
 * Invariants: a number names the same entry in each reading; what an archive claims (sizes, owners,
 * times) is brought into range or refused here. Formats and filters are those that are enabled
 * below and no others: libarchive would read many more, with as much code open to hostile input. */

#include "images/build/source.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "images/build/cancel.h"

#define TAR_BLOCK_BYTES  512
#define READ_BLOCK_BYTES (256u * 1024u)

struct BerthSource {
    struct archive *archive;
    struct archive_entry *entry; /* owned by the archive, or by us for a directory */
    char *name;
    char *directory;   /* NULL: tar */
    GHashTable *links; /* of a directory: inode number -> path of its first name */
    int fd;            /* tar */
    guint64 next_number;
    int next_errno; /* of a directory: why its next entry cannot be read; 0 = nobody knows */
    char *description;
};

static void close_archive(BerthSource *source)
{
    if (source->directory)
        g_clear_pointer(&source->entry, archive_entry_free);
    source->entry = NULL;
    if (source->archive)
        archive_read_free(source->archive);
    source->archive = NULL;
}

void berth_source_free(BerthSource *source)
{
    if (!source)
        return;
    close_archive(source);
    g_clear_pointer(&source->links, g_hash_table_unref);
    g_free(source->description);
    g_free(source->directory);
    g_free(source->name);
    g_free(source);
}

/* An error of libarchive's. What is wrong with an archive is the user's to mend, what is wrong with
 * a directory is what the system said. */
static gboolean fail(BerthSource *source, const char *what, GError **error)
{
    int err = archive_errno(source->archive);
    if (source->directory && err <= 0)
        err = source->next_errno; /* "Couldn't visit directory" comes without a number */
    const char *text = archive_error_string(source->archive);
    int code = BERTH_ERROR_INVALID_ARGUMENT;
    if (err == ENOMEM || err == EIO || (source->directory && err > 0))
        code = berth_error_code_from_errno(err);
    g_autofree char *why = g_utf8_make_valid(text ? text : "unknown error", -1);
    /* libarchive names what it could not do in a directory, and leaves out why. */
    const char *system = source->directory && err > 0 ? g_strerror(err) : NULL;
    gboolean is_said = system == NULL || strstr(why, system) != NULL;
    g_set_error(error, BERTH_ERROR, code, "%s: %s%s%s", what, why, is_said ? "" : ": ",
                is_said ? "" : system);
    return FALSE;
}

static struct archive *new_tar_reader(void)
{
    struct archive *archive = archive_read_new();
    if (!archive)
        g_error("out of memory");
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_format_tar(archive);
    return archive;
}

static gboolean open_archive(BerthSource *source, GError **error)
{
    int result;
    if (source->directory) {
        source->archive = archive_read_disk_new();
        source->entry = archive_entry_new();
        if (!source->archive || !source->entry)
            g_error("out of memory");
        archive_read_disk_set_symlink_physical(source->archive);
        archive_read_disk_set_behavior(source->archive, ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS |
                                                            ARCHIVE_READDISK_NO_ACL |
                                                            ARCHIVE_READDISK_NO_FFLAGS);
        result = archive_read_disk_open(source->archive, source->directory);
    } else {
        source->archive = new_tar_reader();
        if (lseek(source->fd, 0, SEEK_SET) < 0) {
            berth_set_error_errno(error, errno, "cannot read it twice");
            return FALSE;
        }
        result = archive_read_open_fd(source->archive, source->fd, READ_BLOCK_BYTES);
    }
    source->next_number = 0;
    return result == ARCHIVE_OK || fail(source, "cannot open it", error);
}

gboolean berth_source_rewind(BerthSource *source, GError **error)
{
    close_archive(source);
    if (source->links)
        g_hash_table_remove_all(source->links);
    return open_archive(source, error);
}

static BerthSource *source_new(const char *name)
{
    BerthSource *source = g_new0(BerthSource, 1);
    source->name = g_strdup(name);
    source->fd = -1;
    return source;
}

BerthSource *berth_source_open_directory(const char *path, GError **error)
{
    g_autoptr(BerthSource) source = source_new(path);
    source->directory = g_strdup(path);
    source->links = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    return open_archive(source, error) ? g_steal_pointer(&source) : NULL;
}

BerthSource *berth_source_open_tar(int fd, const char *name, GError **error)
{
    g_autoptr(BerthSource) source = source_new(name);
    source->fd = fd;
    return open_archive(source, error) ? g_steal_pointer(&source) : NULL;
}

/* --- entries --------------------------------------------------------------------------------- */

static const char *path_in_directory(BerthSource *source, const char *path)
{
    gsize length = strlen(source->directory);
    if (strncmp(path, source->directory, length) == 0)
        path += length;
    while (*path == '/')
        path++;
    return *path ? path : ".";
}

/* The first name of a file of a directory that has several, NULL if this is it. */
static const char *find_first_name(BerthSource *source, const char *path)
{
    if (archive_entry_nlink(source->entry) < 2 || archive_entry_filetype(source->entry) == AE_IFDIR)
        return NULL;
    gint64 inode = archive_entry_ino64(source->entry);
    const char *first = g_hash_table_lookup(source->links, &inode);
    if (first)
        return first;
    gint64 *key = g_new(gint64, 1);
    *key = inode;
    g_hash_table_insert(source->links, key, g_strdup(path));
    return NULL;
}

/* A tar archive ends with blocks of zeros. libarchive takes one that just ends as well, but that is
 * how one looks whose writer was cut short between two files. */
static void check_end(BerthSource *source, gint64 position_before, GError **error)
{
    if (source->directory ||
        archive_filter_bytes(source->archive, 0) - position_before >= TAR_BLOCK_BYTES)
        return;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "the archive has no end after entry %" G_GUINT64_FORMAT ": it is truncated",
                source->next_number);
}

static int next_header(BerthSource *source)
{
    if (!source->directory)
        return archive_read_next_header(source->archive, &source->entry);
    errno = 0;
    int result = archive_read_next_header2(source->archive, source->entry);
    source->next_errno = result < ARCHIVE_WARN ? errno : 0;
    if (result >= ARCHIVE_WARN && result != ARCHIVE_EOF &&
        archive_entry_filetype(source->entry) == AE_IFDIR)
        archive_read_disk_descend(source->archive);
    return result;
}

gboolean berth_source_next(BerthSource *source, BerthSourceEntry *out_entry, GError **error)
{
    gint64 position = source->directory ? 0 : archive_filter_bytes(source->archive, 0);
    int result = next_header(source);
    if (result == ARCHIVE_EOF) {
        check_end(source, position, error);
        return FALSE;
    }
    if (result < ARCHIVE_WARN)
        return fail(source, source->next_number ? "cannot read its next entry" : "cannot read it",
                    error);
    BerthSourceEntry entry = {.number = source->next_number};
    entry.path = archive_entry_pathname(source->entry);
    if (!entry.path) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "entry %" G_GUINT64_FORMAT " has no name that can be read", entry.number + 1);
        return FALSE;
    }
    if (source->directory) {
        entry.path = path_in_directory(source, entry.path);
        entry.hard_link = find_first_name(source, entry.path);
    } else {
        entry.hard_link = archive_entry_hardlink(source->entry);
    }
    g_free(source->description);
    source->description = g_utf8_make_valid(entry.path, (gssize)MIN(strlen(entry.path), 200));
    entry.description = source->description;
    entry.is_socket = !entry.hard_link && archive_entry_filetype(source->entry) == AE_IFSOCK;
    if (!entry.hard_link && archive_entry_filetype(source->entry) == AE_IFREG)
        entry.size_bytes = (guint64)MAX(archive_entry_size(source->entry), 0);
    source->next_number++;
    *out_entry = entry;
    return TRUE;
}

static gboolean take_owner(BerthSource *source, BerthTreeInode *inode, GError **error)
{
    la_int64_t uid = archive_entry_uid(source->entry);
    la_int64_t gid = archive_entry_gid(source->entry);
    if (uid < 0 || uid > G_MAXUINT32 - 1 || gid < 0 || gid > G_MAXUINT32 - 1) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "'%s': its owner %" G_GINT64_FORMAT ":%" G_GINT64_FORMAT " is out of range",
                    source->description, (gint64)uid, (gint64)gid);
        return FALSE;
    }
    inode->uid = (guint32)uid;
    inode->gid = (guint32)gid;
    return TRUE;
}

/* ext4 keeps 34 bits of seconds, from 1901 to 2446. */
static void take_time(BerthSource *source, BerthTreeInode *inode)
{
    gint64 seconds =
        archive_entry_mtime_is_set(source->entry) ? archive_entry_mtime(source->entry) : 0;
    glong nsec = archive_entry_mtime_nsec(source->entry);
    inode->mtime_sec = CLAMP(seconds, G_MININT32, (G_GINT64_CONSTANT(1) << 34) - 1 + G_MININT32);
    inode->mtime_nsec = nsec > 0 && nsec < 1000000000 ? (guint32)nsec : 0;
}

static void take_size(BerthSource *source, BerthTreeInode *inode)
{
    inode->size_bytes = (guint64)MAX(archive_entry_size(source->entry), 0);
    inode->data_bytes = inode->size_bytes;
    inode->data_runs = 1;
    if (archive_entry_sparse_reset(source->entry) == 0)
        return;
    la_int64_t offset, length;
    inode->data_bytes = 0;
    inode->data_runs = 0;
    while (archive_entry_sparse_next(source->entry, &offset, &length) == ARCHIVE_OK) {
        inode->data_bytes += (guint64)MAX(length, 0);
        inode->data_runs++;
    }
    /* A map that claims more than the file is no map. */
    inode->data_bytes = MIN(inode->data_bytes, inode->size_bytes);
}

static gboolean take_xattrs(BerthSource *source, BerthTreeInode *inode, GError **error)
{
    const char *name;
    const void *value;
    size_t length;
    archive_entry_xattr_reset(source->entry);
    while (archive_entry_xattr_next(source->entry, &name, &value, &length) == ARCHIVE_OK) {
        if (name && !berth_tree_inode_add_xattr(inode, name, value, length, error)) {
            g_prefix_error(error, "'%s': ", source->description);
            return FALSE;
        }
    }
    return TRUE;
}

BerthTreeInode *berth_source_inode(BerthSource *source, GError **error)
{
    g_autoptr(BerthTreeInode) inode = berth_tree_inode_new(archive_entry_mode(source->entry));
    if (!take_owner(source, inode, error) || !take_xattrs(source, inode, error))
        return NULL;
    take_time(source, inode);
    if (S_ISREG(inode->mode)) {
        take_size(source, inode);
    } else if (S_ISLNK(inode->mode)) {
        inode->target = g_strdup(archive_entry_symlink(source->entry));
    } else if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode)) {
        inode->rdev_major = (guint32)archive_entry_rdevmajor(source->entry) & 0xfff;
        inode->rdev_minor = (guint32)archive_entry_rdevminor(source->entry) & 0xfffff;
    }
    return g_steal_pointer(&inode);
}

static gboolean fail_data(BerthSource *source, GError **error)
{
    g_autofree char *what = g_strdup_printf("'%s': cannot read its data", source->description);
    return fail(source, what, error);
}

gboolean berth_source_read(BerthSource *source, const void **out_data, gsize *out_length,
                           guint64 *out_offset, GError **error)
{
    la_int64_t offset = 0;
    size_t length = 0;
    int result = archive_read_data_block(source->archive, out_data, &length, &offset);
    if (result == ARCHIVE_EOF)
        return FALSE;
    if (result != ARCHIVE_OK || offset < 0)
        return fail_data(source, error);
    *out_length = length;
    *out_offset = (guint64)offset;
    return TRUE;
}

gboolean berth_source_skip(BerthSource *source, GCancellable *cancellable, GError **error)
{
    if (source->directory)
        return TRUE;
    if (archive_filter_code(source->archive, 0) == ARCHIVE_FILTER_NONE) {
        if (archive_read_data_skip(source->archive) < ARCHIVE_WARN)
            return fail_data(source, error);
        return TRUE;
    }
    /* To pass over compressed data is to read it, which may take long. */
    const void *data;
    gsize length;
    guint64 offset;
    g_autoptr(GError) failure = NULL;
    do {
        if (berth_image_cancelled(cancellable, &failure))
            break;
    } while (berth_source_read(source, &data, &length, &offset, &failure));
    if (!failure)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}
