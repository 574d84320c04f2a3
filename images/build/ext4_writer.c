/* SPDX-License-Identifier: Apache-2.0 */

/* Writes a tree and its files' data into an ext4 file system.
 *
 * Owns: the output file until it is committed, numbers of inodes, where blocks go. Does not own: the
 * file system's parameters and libext2fs's inodes (ext4_fs.c).
 * Invariants: blocks are taken in rising order, so that what belongs together lies together; the
 * file system is empty but for what was written here, so nothing has to be looked up in it; a file
 * that was not committed does not outlive its writer. */

#include "images/build/ext4_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "images/build/ext4_fs.h"

#define BLOCK         BERTH_EXT4_BLOCK_BYTES
#define STAGING_BYTES (1024u * 1024u)
#define INLINE_BYTES  60u /* of a symbolic link's target, kept in its inode */

struct BerthExt4Writer {
    ext2_filsys fs;
    char *path; /* to be removed again; NULL once committed */
    guint64 size_bytes;
    guint64 goal; /* where the next blocks are looked for */
    ext2_ino_t next_number;
    guint64 missing;
    /* of the file that is being written */
    BerthTreeInode *file;
    GArray *runs;    /* of BerthExt4Run */
    guint8 *staging; /* STAGING_BYTES of the file's data, from staging_start */
    guint64 staging_start;
    gsize staging_used;
    guint64 position; /* behind the last byte that was appended */
};

static gboolean make_file(const char *path, guint64 size_bytes, GError **error)
{
    int fd = g_open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        berth_set_error_errno(error, errno, "cannot make %s", path);
        return FALSE;
    }
    int err = ftruncate(fd, (off_t)size_bytes) < 0 ? errno : 0;
    close(fd);
    if (!err)
        return TRUE;
    g_unlink(path);
    berth_set_error_errno(error, err, "cannot make %s %" G_GUINT64_FORMAT " MiB large", path,
                          size_bytes >> 20);
    return FALSE;
}

BerthExt4Writer *berth_ext4_writer_new(const char *path, const BerthExt4Layout *layout,
                                       GError **error)
{
    guint64 size_bytes = layout->blocks * BLOCK;
    if (!make_file(path, size_bytes, error))
        return NULL;
    g_autoptr(BerthExt4Writer) writer = g_new0(BerthExt4Writer, 1);
    writer->path = g_strdup(path);
    writer->size_bytes = size_bytes;
    writer->runs = g_array_new(FALSE, FALSE, sizeof(BerthExt4Run));
    writer->staging = g_malloc(STAGING_BYTES);
    writer->fs = berth_ext4_fs_create(path, layout, error);
    if (!writer->fs)
        return NULL;
    writer->next_number = EXT2_FIRST_INODE(writer->fs->super);
    return g_steal_pointer(&writer);
}

void berth_ext4_writer_free(BerthExt4Writer *writer)
{
    if (!writer)
        return;
    if (writer->fs)
        ext2fs_free(writer->fs);
    if (writer->path)
        g_unlink(writer->path);
    g_array_unref(writer->runs);
    g_free(writer->staging);
    g_free(writer->path);
    g_free(writer);
}

guint64 berth_ext4_writer_missing(const BerthExt4Writer *writer)
{
    return writer->missing;
}

guint64 berth_ext4_writer_size_bytes(const BerthExt4Writer *writer)
{
    return writer->size_bytes;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static void add_run(GArray *runs, const BerthExt4Run *run)
{
    if (runs->len > 0) {
        BerthExt4Run *last = &g_array_index(runs, BerthExt4Run, runs->len - 1);
        if (last->logical + last->count == run->logical &&
            last->physical + last->count == run->physical) {
            last->count += run->count;
            return;
        }
    }
    g_array_append_val(runs, *run);
}

static gboolean write_blocks(BerthExt4Writer *writer, guint64 physical, guint64 count,
                             const void *data, GError **error)
{
    errcode_t code = io_channel_write_blk64(writer->fs->io, physical, (int)count, data);
    if (code)
        berth_ext4_set_error(error, code, "cannot write");
    return !code;
}

/* Writes COUNT blocks of the current file from LOGICAL on. */
static gboolean write_data(BerthExt4Writer *writer, guint64 logical, guint64 count,
                           const guint8 *data, GError **error)
{
    while (count > 0) {
        BerthExt4Run run = {.logical = logical};
        if (!berth_ext4_fs_take_blocks(writer->fs, &writer->goal, count, &run, error) ||
            !write_blocks(writer, run.physical, run.count, data, error))
            return FALSE;
        add_run(writer->runs, &run);
        logical += run.count;
        count -= run.count;
        data += run.count * BLOCK;
    }
    return TRUE;
}

static gboolean is_zero(const guint8 *block)
{
    return block[0] == 0 && memcmp(block, block + 1, BLOCK - 1) == 0;
}

/* Writes what is staged; blocks of zeros become holes. */
static gboolean flush_staging(BerthExt4Writer *writer, GError **error)
{
    gsize blocks = (writer->staging_used + BLOCK - 1) / BLOCK;
    guint64 logical = writer->staging_start / BLOCK;
    memset(writer->staging + writer->staging_used, 0, blocks * BLOCK - writer->staging_used);
    for (gsize first = 0, end; first < blocks; first = end) {
        gboolean zero = is_zero(writer->staging + first * BLOCK);
        end = first + 1;
        while (end < blocks && is_zero(writer->staging + end * BLOCK) == zero)
            end++;
        if (!zero && !write_data(writer, logical + first, end - first,
                                 writer->staging + first * BLOCK, error))
            return FALSE;
    }
    writer->staging_start += blocks * BLOCK;
    writer->staging_used = 0;
    return TRUE;
}

/* --- data of files ----------------------------------------------------------------------------- */

gboolean berth_ext4_writer_begin(BerthExt4Writer *writer, BerthTreeInode *file, GError **error)
{
    g_return_val_if_fail(!writer->file && S_ISREG(file->mode) && file->number, FALSE);
    writer->file = file;
    writer->staging_start = 0;
    writer->staging_used = 0;
    writer->position = 0;
    g_array_set_size(writer->runs, 0);
    return TRUE;
}

/* Brings the staging area to OFFSET, with zeros for the hole before it. */
static gboolean seek(BerthExt4Writer *writer, guint64 offset, GError **error)
{
    guint64 here = writer->staging_start + writer->staging_used;
    if (offset - writer->staging_start < STAGING_BYTES) {
        memset(writer->staging + writer->staging_used, 0, offset - here);
        writer->staging_used = offset - writer->staging_start;
        return TRUE;
    }
    if (!flush_staging(writer, error))
        return FALSE;
    writer->staging_start = offset / BLOCK * BLOCK;
    writer->staging_used = offset % BLOCK;
    memset(writer->staging, 0, writer->staging_used);
    return TRUE;
}

gboolean berth_ext4_writer_append(BerthExt4Writer *writer, guint64 offset, const void *data,
                                  gsize length, GError **error)
{
    const guint8 *bytes = data;
    if (offset < writer->position || offset > writer->file->size_bytes ||
        length > writer->file->size_bytes - offset) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "its data do not agree with its size of %" G_GUINT64_FORMAT " bytes",
                    writer->file->size_bytes);
        return FALSE;
    }
    if (length == 0)
        return TRUE;
    writer->position = offset + length;
    if (!seek(writer, offset, error))
        return FALSE;
    while (length > 0) {
        gsize part = MIN(length, STAGING_BYTES - writer->staging_used);
        memcpy(writer->staging + writer->staging_used, bytes, part);
        writer->staging_used += part;
        bytes += part;
        length -= part;
        if (writer->staging_used == STAGING_BYTES && !flush_staging(writer, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_ext4_writer_end(BerthExt4Writer *writer, GError **error)
{
    BerthTreeInode *file = g_steal_pointer(&writer->file);
    writer->missing--;
    return flush_staging(writer, error) &&
           berth_ext4_fs_write_inode(writer->fs, file, writer->runs, file->size_bytes, NULL, 0,
                                     error);
}

/* --- the tree ------------------------------------------------------------------------------------ */

static void number_inode(BerthExt4Writer *writer, BerthTreeInode *inode, ext2_ino_t number)
{
    inode->number = number;
    if (number >= EXT2_FIRST_INODE(writer->fs->super))
        ext2fs_inode_alloc_stats2(writer->fs, number, 1, S_ISDIR(inode->mode));
}

static gboolean write_symlink(BerthExt4Writer *writer, BerthTreeInode *inode, GError **error)
{
    gsize length = strlen(inode->target);
    if (length < INLINE_BYTES)
        return berth_ext4_fs_write_inode(writer->fs, inode, NULL, length, inode->target, length,
                                         error);
    memset(writer->staging, 0, BLOCK);
    memcpy(writer->staging, inode->target, length);
    g_array_set_size(writer->runs, 0);
    return write_data(writer, 0, 1, writer->staging, error) &&
           berth_ext4_fs_write_inode(writer->fs, inode, writer->runs, length, NULL, 0, error);
}

/* The two forms of a device number that Linux keeps in an inode's first words. */
static gboolean write_device(BerthExt4Writer *writer, BerthTreeInode *inode, GError **error)
{
    guint32 major = inode->rdev_major, minor = inode->rdev_minor;
    guint32 words[2] = {0};
    if (major < 256 && minor < 256)
        words[0] = GUINT32_TO_LE(major << 8 | minor);
    else
        words[1] = GUINT32_TO_LE((minor & 0xff) | major << 8 | (minor & ~0xffu) << 12);
    return berth_ext4_fs_write_inode(writer->fs, inode, NULL, 0, words, sizeof words, error);
}

/* What is no directory; a file's data follow later. */
static gboolean write_leaf(BerthExt4Writer *writer, BerthTreeInode *inode, GError **error)
{
    switch (inode->mode & S_IFMT) {
    case S_IFREG:
        if (inode->size_bytes > 0) {
            writer->missing++;
            return TRUE;
        }
        return berth_ext4_fs_write_inode(writer->fs, inode, NULL, 0, NULL, 0, error);
    case S_IFLNK:
        return write_symlink(writer, inode, error);
    case S_IFCHR:
    case S_IFBLK:
        return write_device(writer, inode, error);
    default: /* S_IFIFO, by berth_tree_add's check */
        return berth_ext4_fs_write_inode(writer->fs, inode, NULL, 0, "", 0, error);
    }
}

static guint8 file_type(guint32 mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return EXT2_FT_DIR;
    case S_IFLNK:
        return EXT2_FT_SYMLINK;
    case S_IFCHR:
        return EXT2_FT_CHRDEV;
    case S_IFBLK:
        return EXT2_FT_BLKDEV;
    case S_IFIFO:
        return EXT2_FT_FIFO;
    default:
        return EXT2_FT_REG_FILE;
    }
}

/* A block of a directory that is being filled. */
typedef struct {
    guint8 *data;
    gsize used;
    struct ext2_dir_entry_2 *last;
} DirectoryBlock;

#define DIRECTORY_ROOM (BLOCK - sizeof(struct ext2_dir_entry_tail))

/* FALSE if there is no room. */
static gboolean put_name(DirectoryBlock *block, const char *name, const BerthTreeInode *inode)
{
    gsize length = strlen(name);
    gsize need = (offsetof(struct ext2_dir_entry_2, name) + length + 3) & ~(gsize)3;
    if (block->used + need > DIRECTORY_ROOM)
        return FALSE;
    struct ext2_dir_entry_2 *entry = (void *)(block->data + block->used);
    entry->inode = inode->number;
    entry->rec_len = (__u16)need;
    entry->name_len = (__u8)length;
    entry->file_type = file_type(inode->mode);
    memcpy(entry->name, name, length);
    block->used += need;
    block->last = entry;
    return TRUE;
}

static void finish_block(BerthExt4Writer *writer, DirectoryBlock *block)
{
    /* The last entry takes what is left. */
    block->last->rec_len = (__u16)(DIRECTORY_ROOM - (gsize)((guint8 *)block->last - block->data));
    ext2fs_initialize_dirent_tail(writer->fs, (void *)(block->data + DIRECTORY_ROOM));
}

static void start_block(DirectoryBlock *block)
{
    memset(block->data, 0, BLOCK);
    block->used = 0;
}

/* Lays out all names of DIRECTORY in DATA, of as many blocks as they need. */
static void fill_directory(BerthExt4Writer *writer, BerthTreeInode *directory,
                           BerthTreeInode *parent, GPtrArray *names, guint8 *data)
{
    DirectoryBlock block = {.data = data};
    start_block(&block);
    put_name(&block, ".", directory);
    put_name(&block, "..", parent);
    for (guint i = 0; i < names->len; i++) {
        BerthTreeInode *child = g_hash_table_lookup(directory->children, names->pdata[i]);
        if (put_name(&block, names->pdata[i], child))
            continue;
        finish_block(writer, &block);
        block.data += BLOCK;
        start_block(&block);
        put_name(&block, names->pdata[i], child);
    }
    finish_block(writer, &block);
}

static gboolean write_directory_blocks(BerthExt4Writer *writer, BerthTreeInode *directory,
                                       guint8 *data, guint64 blocks, GError **error)
{
    for (guint64 done = 0; done < blocks;) {
        BerthExt4Run run = {.logical = done};
        if (!berth_ext4_fs_take_blocks(writer->fs, &writer->goal, blocks - done, &run, error))
            return FALSE;
        for (guint64 i = 0; i < run.count; i++) {
            errcode_t code = ext2fs_write_dir_block4(
                writer->fs, run.physical + i, data + (done + i) * BLOCK, 0, directory->number);
            if (code) {
                berth_ext4_set_error(error, code, "cannot write a directory");
                return FALSE;
            }
        }
        add_run(writer->runs, &run);
        done += run.count;
    }
    return TRUE;
}

/* Numbers what is in DIRECTORY, which has its number already, and writes it. */
static gboolean write_directory(BerthTreeInode *directory, BerthTreeInode *parent, GPtrArray *names,
                                gpointer user_data, GError **error)
{
    BerthExt4Writer *writer = user_data;
    for (guint i = 0; i < names->len; i++) {
        BerthTreeInode *child = g_hash_table_lookup(directory->children, names->pdata[i]);
        if (child->number)
            continue;
        number_inode(writer, child, writer->next_number++);
        if (!S_ISDIR(child->mode) && !write_leaf(writer, child, error))
            return FALSE;
    }
    guint64 blocks = berth_tree_directory_blocks(names);
    g_autofree guint8 *data = g_malloc(blocks * BLOCK);
    fill_directory(writer, directory, parent, names, data);
    g_array_set_size(writer->runs, 0);
    return write_directory_blocks(writer, directory, data, blocks, error) &&
           berth_ext4_fs_write_inode(writer->fs, directory, writer->runs, blocks * BLOCK, NULL, 0,
                                     error);
}

gboolean berth_ext4_writer_add_tree(BerthExt4Writer *writer, BerthTree *tree, GError **error)
{
    number_inode(writer, berth_tree_root(tree), EXT2_ROOT_INO);
    return berth_tree_foreach_directory(tree, write_directory, writer, error);
}

gboolean berth_ext4_writer_commit(BerthExt4Writer *writer, GError **error)
{
    g_return_val_if_fail(!writer->file && !writer->missing, FALSE);
    errcode_t code = ext2fs_close2(writer->fs, EXT2_FLAG_FLUSH_NO_SYNC);
    if (code) {
        berth_ext4_set_error(error, code, "cannot write the file system's tables");
        return FALSE;
    }
    writer->fs = NULL;
    g_clear_pointer(&writer->path, g_free);
    return TRUE;
}
