/* SPDX-License-Identifier: Apache-2.0 */

/* Existing ext4 file systems: checks of the superblock, and a sparse copy.
 *
 * Owns: which features a guest's kernel is taken to know. Does not own: the structure behind the
 * superblock; whoever brings a file system that e2fsck would object to hurts his own jobs only. */

#include <config.h>

#include "images/build/ext4_check.h"

#include <errno.h>
#include <ext2fs/ext2fs.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "images/build/cancel.h"

#define COPY_BYTES (1024u * 1024u)

#define INCOMPAT_KNOWN                                                                             \
    (EXT2_FEATURE_INCOMPAT_FILETYPE | EXT2_FEATURE_INCOMPAT_META_BG |                              \
     EXT3_FEATURE_INCOMPAT_EXTENTS | EXT4_FEATURE_INCOMPAT_64BIT | EXT4_FEATURE_INCOMPAT_FLEX_BG | \
     EXT4_FEATURE_INCOMPAT_EA_INODE | EXT4_FEATURE_INCOMPAT_CSUM_SEED |                            \
     EXT4_FEATURE_INCOMPAT_LARGEDIR | EXT4_FEATURE_INCOMPAT_INLINE_DATA)

#define RO_COMPAT_KNOWN                                                                            \
    (EXT2_FEATURE_RO_COMPAT_SPARSE_SUPER | EXT2_FEATURE_RO_COMPAT_LARGE_FILE |                     \
     EXT4_FEATURE_RO_COMPAT_HUGE_FILE | EXT4_FEATURE_RO_COMPAT_GDT_CSUM |                          \
     EXT4_FEATURE_RO_COMPAT_DIR_NLINK | EXT4_FEATURE_RO_COMPAT_EXTRA_ISIZE |                       \
     EXT4_FEATURE_RO_COMPAT_METADATA_CSUM)

/* Online growth does not know this one. */
#define COMPAT_REFUSED EXT4_FEATURE_COMPAT_SPARSE_SUPER2

G_STATIC_ASSERT(sizeof(struct ext2_super_block) == BERTH_EXT4_SUPER_BYTES);

gboolean berth_ext4_super_is_one(const guint8 super[BERTH_EXT4_SUPER_BYTES])
{
    gsize at = offsetof(struct ext2_super_block, s_magic);
    return (super[at] | super[at + 1] << 8) == EXT2_SUPER_MAGIC;
}

static gboolean refuse(GError **error, BerthErrorCode code, const char *why)
{
    g_set_error_literal(error, BERTH_ERROR, code, why);
    return FALSE;
}

static gboolean check_checksum(const struct ext2_super_block *super, GError **error)
{
    if (!(super->s_feature_ro_compat & EXT4_FEATURE_RO_COMPAT_METADATA_CSUM))
        return TRUE;
    guint32 sum = ext2fs_crc32c_le(~0u, (const unsigned char *)super,
                                   offsetof(struct ext2_super_block, s_checksum));
    return sum == super->s_checksum ||
           refuse(error, BERTH_ERROR_DATA_LOSS,
                  "the superblock's checksum is wrong: the file is damaged; try e2fsck -f");
}

static gboolean check_clean(const struct ext2_super_block *super, GError **error)
{
    if ((super->s_feature_incompat & EXT3_FEATURE_INCOMPAT_RECOVER) ||
        (super->s_feature_ro_compat & EXT4_FEATURE_RO_COMPAT_ORPHAN_PRESENT) ||
        !(super->s_state & EXT2_VALID_FS))
        return refuse(error, BERTH_ERROR_FAILED_PRECONDITION,
                      "the file system was not cleanly unmounted, or is mounted now; unmount it or "
                      "run e2fsck -f on it");
    if (super->s_state & EXT2_ERROR_FS)
        return refuse(error, BERTH_ERROR_FAILED_PRECONDITION,
                      "the file system is marked as having errors; run e2fsck -f on it");
    return TRUE;
}

static gboolean check_features(const struct ext2_super_block *super, GError **error)
{
    guint32 compat = super->s_feature_compat & COMPAT_REFUSED;
    guint32 incompat = super->s_feature_incompat & ~(guint32)INCOMPAT_KNOWN;
    guint32 ro_compat = super->s_feature_ro_compat & ~(guint32)RO_COMPAT_KNOWN;
    if (super->s_rev_level == EXT2_GOOD_OLD_REV || !(compat | incompat | ro_compat))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                "the file system has features that the guests' kernel cannot use (compat 0x%x, "
                "incompat 0x%x, ro_compat 0x%x: see tune2fs -l); make it with the defaults of "
                "mkfs.ext4, or import a tar archive of its files",
                compat, incompat, ro_compat);
    return FALSE;
}

static gboolean check_size(const struct ext2_super_block *super, guint64 file_bytes,
                           guint64 *out_bytes, GError **error)
{
    guint64 blocks = super->s_blocks_count;
    if (super->s_log_block_size > 2) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                    "its block size is larger than the 4096 bytes that a guest can use; make it "
                    "with mkfs.ext4 -b 4096");
        return FALSE;
    }
    if (super->s_feature_incompat & EXT4_FEATURE_INCOMPAT_64BIT)
        blocks |= (guint64)super->s_blocks_count_hi << 32;
    guint64 block_bytes = G_GUINT64_CONSTANT(1024) << super->s_log_block_size;
    if (blocks == 0 || blocks > file_bytes / block_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the file system claims %" G_GUINT64_FORMAT " blocks of %" G_GUINT64_FORMAT
                    " bytes, but the file has %" G_GUINT64_FORMAT " bytes: it is truncated",
                    blocks, block_bytes, file_bytes);
        return FALSE;
    }
    *out_bytes = blocks * block_bytes;
    return TRUE;
}

gboolean berth_ext4_super_check(const guint8 super[BERTH_EXT4_SUPER_BYTES], guint64 file_bytes,
                                guint64 *out_bytes, GError **error)
{
    struct ext2_super_block copy;
    guint64 bytes;
    memcpy(&copy, super, sizeof copy);
    if (!berth_ext4_super_is_one(super))
        return refuse(error, BERTH_ERROR_INVALID_ARGUMENT, "it is no ext4 file system");
    if (copy.s_rev_level > EXT2_DYNAMIC_REV)
        return refuse(error, BERTH_ERROR_UNSUPPORTED, "its revision of ext4 is unknown");
    if (!check_checksum(&copy, error) || !check_clean(&copy, error) ||
        !check_features(&copy, error) || !check_size(&copy, file_bytes, &bytes, error))
        return FALSE;
    *out_bytes = bytes;
    return TRUE;
}

/* --- the copy ------------------------------------------------------------------------------------ */

static gboolean write_all(int fd, const guint8 *data, gsize length, guint64 offset)
{
    while (length > 0) {
        ssize_t written = pwrite(fd, data, length, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return FALSE;
        data += written;
        offset += (gsize)written;
        length -= (gsize)written;
    }
    return TRUE;
}

/* The next range of data at or after FROM, up to LENGTH; all of it where holes cannot be told. */
static void next_data(int fd, guint64 from, guint64 length, guint64 *out_start, guint64 *out_end)
{
    off_t start = lseek(fd, (off_t)from, SEEK_DATA);
    if (start < 0) {
        *out_start = errno == ENXIO ? length : from;
        *out_end = length;
        return;
    }
    off_t end = lseek(fd, start, SEEK_HOLE);
    *out_start = MIN((guint64)start, length);
    *out_end = end < 0 ? length : MIN((guint64)end, length);
}

typedef struct {
    int from;
    int to;
    guint64 length;
    BerthExt4CopyFunc progress;
    gpointer user_data;
    GCancellable *cancellable;
} Copy;

static gboolean copy_range(Copy *copy, guint64 start, guint64 end, guint8 *buffer, GError **error)
{
    while (start < end) {
        if (berth_image_cancelled(copy->cancellable, error))
            return FALSE;
        ssize_t got = pread(copy->from, buffer, MIN(end - start, COPY_BYTES), (off_t)start);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            berth_set_error_errno(error, got < 0 ? errno : EIO, "cannot read it");
            return FALSE;
        }
        if (!write_all(copy->to, buffer, (gsize)got, start)) {
            berth_set_error_errno(error, errno, "cannot write its copy");
            return FALSE;
        }
        start += (gsize)got;
        if (copy->progress)
            copy->progress(start, copy->length, copy->user_data);
    }
    return TRUE;
}

static gboolean copy_all(Copy *copy, GError **error)
{
    g_autofree guint8 *buffer = g_malloc(COPY_BYTES);
    if (ftruncate(copy->to, (off_t)copy->length) < 0) {
        berth_set_error_errno(error, errno, "cannot make its copy %" G_GUINT64_FORMAT " MiB large",
                              copy->length >> 20);
        return FALSE;
    }
    for (guint64 start, end = 0; end < copy->length;) {
        next_data(copy->from, end, copy->length, &start, &end);
        if (!copy_range(copy, start, end, buffer, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_ext4_copy(int fd, guint64 length, const char *output_path,
                         BerthExt4CopyFunc progress, gpointer user_data, GCancellable *cancellable,
                         GError **error)
{
    int to = g_open(output_path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (to < 0) {
        berth_set_error_errno(error, errno, "cannot make %s", output_path);
        return FALSE;
    }
    Copy copy = {fd, to, length, progress, user_data, cancellable};
    gboolean done = copy_all(&copy, error);
    close(to);
    if (!done)
        g_unlink(output_path);
    return done;
}
