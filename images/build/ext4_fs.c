/* SPDX-License-Identifier: Apache-2.0 */

/* An empty ext4 file system, and inodes in it.
 *
 * Owns: the features and parameters of an image's file system. Does not own: sizes (ext4_layout.c).
 *
 * There is no journal. It would let a file system survive a crash of its machine, and a job's disk
 * never has to: a guest that dies is started again from a fresh clone, and a checkpoint holds memory
 * and disk of one instant, so that a mounted file system simply goes on. Without one each change of
 * metadata is written once and not twice. */

#include "images/build/ext4_fs.h"

#include <string.h>
#include <sys/stat.h>

#include "common/error.h"

#define LOG_GROUPS_PER_FLEX 4 /* tables of 16 groups lie together */
#define EXTENT_BLOCKS_MAX   32768u

void berth_ext4_set_error(GError **error, errcode_t code, const char *what)
{
    /* Small numbers are errno's. */
    if (code > 0 && code < 1024) {
        berth_set_error_errno(error, (int)code, "%s", what);
        return;
    }
    initialize_ext2_error_table();
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "%s: %s", what, error_message(code));
}

/* --- the empty file system --------------------------------------------------------------------- */

static void describe(const BerthExt4Layout *layout, struct ext2_super_block *super)
{
    super->s_rev_level = EXT2_DYNAMIC_REV;
    super->s_log_block_size = 2;
    super->s_log_cluster_size = 2;
    super->s_inode_size = BERTH_EXT4_INODE_BYTES;
    super->s_inodes_count = layout->inodes_per_group * layout->groups;
    super->s_reserved_gdt_blocks = (__u16)layout->reserved_descriptors;
    super->s_log_groups_per_flex = LOG_GROUPS_PER_FLEX;
    super->s_desc_size = BERTH_EXT4_DESCRIPTOR_BYTES;
    super->s_errors = EXT2_ERRORS_RO;
    super->s_feature_compat = EXT2_FEATURE_COMPAT_EXT_ATTR | EXT2_FEATURE_COMPAT_DIR_INDEX |
                              EXT2_FEATURE_COMPAT_RESIZE_INODE;
    super->s_feature_incompat = EXT2_FEATURE_INCOMPAT_FILETYPE | EXT3_FEATURE_INCOMPAT_EXTENTS |
                                EXT4_FEATURE_INCOMPAT_FLEX_BG | EXT4_FEATURE_INCOMPAT_64BIT;
    super->s_feature_ro_compat =
        EXT2_FEATURE_RO_COMPAT_SPARSE_SUPER | EXT2_FEATURE_RO_COMPAT_LARGE_FILE |
        EXT4_FEATURE_RO_COMPAT_HUGE_FILE | EXT4_FEATURE_RO_COMPAT_DIR_NLINK |
        EXT4_FEATURE_RO_COMPAT_EXTRA_ISIZE | EXT4_FEATURE_RO_COMPAT_METADATA_CSUM;
    ext2fs_blocks_count_set(super, layout->blocks);
    ext2fs_r_blocks_count_set(super, 0);
}

static void fill_random(void *data, gsize length)
{
    guint8 *bytes = data;
    for (gsize i = 0; i < length; i++)
        bytes[i] = (guint8)g_random_int_range(0, 256);
}

static void finish_super(ext2_filsys fs)
{
    struct ext2_super_block *super = fs->super;
    fill_random(super->s_uuid, sizeof super->s_uuid);
    fill_random(super->s_hash_seed, sizeof super->s_hash_seed);
    super->s_uuid[6] = (super->s_uuid[6] & 0x0f) | 0x40; /* RFC 4122: version 4 */
    super->s_uuid[8] = (super->s_uuid[8] & 0x3f) | 0x80;
    super->s_checksum_type = EXT2_CRC32C_CHKSUM;
    super->s_def_hash_version = EXT2_HASH_HALF_MD4;
    super->s_max_mnt_count = -1;
    super->s_kbytes_written = 1;
    ext2fs_init_csum_seed(fs);
    /* The file is new and zero: the kernel need not clear the tables in the background. */
    for (dgrp_t group = 0; group < fs->group_desc_count; group++)
        ext2fs_bg_flags_set(fs, group, EXT2_BG_INODE_ZEROED);
}

static errcode_t fill_tables(ext2_filsys fs)
{
    errcode_t code = ext2fs_allocate_tables(fs);
    if (code)
        return code;
    ext2fs_inode_alloc_stats2(fs, EXT2_BAD_INO, 1, 0);
    code = ext2fs_update_bb_inode(fs, NULL);
    if (code)
        return code;
    ext2fs_inode_alloc_stats2(fs, EXT2_ROOT_INO, 1, 1);
    for (ext2_ino_t number = EXT2_ROOT_INO + 1; number < EXT2_FIRST_INODE(fs->super); number++)
        ext2fs_inode_alloc_stats2(fs, number, 1, 0);
    return ext2fs_create_resize_inode(fs);
}

ext2_filsys berth_ext4_fs_create(const char *path, const BerthExt4Layout *layout, GError **error)
{
    struct ext2_super_block super = {0};
    ext2_filsys fs = NULL;
    describe(layout, &super);
    errcode_t code = ext2fs_initialize(path, EXT2_FLAG_64BITS, &super, unix_io_manager, &fs);
    if (!code) {
        finish_super(fs);
        code = fill_tables(fs);
    }
    if (code) {
        berth_ext4_set_error(error, code, "cannot make the file system");
    } else if (ext2fs_blocks_count(fs->super) != layout->blocks ||
               ext2fs_free_blocks_count(fs->super) < layout->content_blocks) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL,
                    "the file system has %" G_GUINT64_FORMAT " free blocks of %" G_GUINT64_FORMAT
                    ", not the %" G_GUINT64_FORMAT " that were planned for",
                    (guint64)ext2fs_free_blocks_count(fs->super),
                    (guint64)ext2fs_blocks_count(fs->super), layout->content_blocks);
    } else {
        return fs;
    }
    if (fs)
        ext2fs_free(fs);
    return NULL;
}

/* --- blocks -------------------------------------------------------------------------------------- */

gboolean berth_ext4_fs_take_blocks(ext2_filsys fs, guint64 *goal, guint64 wanted,
                                   BerthExt4Run *out_run, GError **error)
{
    blk64_t physical = 0, count = 0;
    if (*goal >= ext2fs_blocks_count(fs->super))
        *goal = fs->super->s_first_data_block;
    errcode_t code = ext2fs_new_range(fs, 0, *goal, wanted, NULL, &physical, &count);
    if (code) {
        berth_ext4_set_error(error, code, "no free block");
        return FALSE;
    }
    count = MIN(count, wanted);
    ext2fs_block_alloc_stats_range(fs, physical, (blk_t)count, 1);
    *goal = physical + count;
    out_run->physical = physical;
    out_run->count = count;
    return TRUE;
}

static errcode_t insert_run(ext2_extent_handle_t handle, const BerthExt4Run *run)
{
    for (guint64 done = 0; done < run->count;) {
        guint64 count = MIN(run->count - done, EXTENT_BLOCKS_MAX);
        struct ext2fs_extent extent = {
            .e_lblk = run->logical + done, .e_pblk = run->physical + done, .e_len = (__u32)count};
        errcode_t code = ext2fs_extent_insert(handle, EXT2_EXTENT_INSERT_AFTER, &extent);
        if (code)
            return code;
        done += count;
    }
    return 0;
}

/* Makes the extents of the inode RAW, and counts the blocks that it and they take. */
static errcode_t map_runs(ext2_filsys fs, ext2_ino_t number, struct ext2_inode *raw, GArray *runs)
{
    ext2_extent_handle_t handle = NULL;
    errcode_t code = ext2fs_extent_open2(fs, number, raw, &handle);
    for (guint i = 0; !code && runs && i < runs->len; i++) {
        const BerthExt4Run *run = &g_array_index(runs, BerthExt4Run, i);
        code = insert_run(handle, run);
        if (!code)
            code = ext2fs_iblk_add_blocks(fs, raw, run->count);
    }
    if (!code && runs && runs->len > 0)
        code = ext2fs_extent_fix_parents(handle);
    if (handle)
        ext2fs_extent_free(handle);
    return code;
}

/* --- inodes -------------------------------------------------------------------------------------- */

static void describe_inode(const BerthTreeInode *inode, guint64 size_bytes,
                           struct ext2_inode_large *raw)
{
    guint32 seconds = (guint32)inode->mtime_sec;
    guint32 epoch = (guint32)((inode->mtime_sec - (gint32)seconds) >> 32) & 3;
    guint32 extra = inode->mtime_nsec << 2 | epoch;
    raw->i_mode = (__u16)inode->mode;
    raw->i_uid = (__u16)inode->uid;
    raw->i_gid = (__u16)inode->gid;
    raw->osd2.linux2.l_i_uid_high = (__u16)(inode->uid >> 16);
    raw->osd2.linux2.l_i_gid_high = (__u16)(inode->gid >> 16);
    raw->i_atime = raw->i_ctime = raw->i_mtime = raw->i_crtime = seconds;
    raw->i_atime_extra = raw->i_ctime_extra = raw->i_mtime_extra = raw->i_crtime_extra = extra;
    raw->i_extra_isize = sizeof *raw - EXT2_GOOD_OLD_INODE_SIZE;
    raw->i_size = (__u32)size_bytes;
    raw->i_size_high = (__u32)(size_bytes >> 32);
    raw->i_links_count = (__u16)inode->links;
    if (S_ISDIR(inode->mode)) /* 1: more than can be counted (dir_nlink) */
        raw->i_links_count =
            inode->subdirs + 2 > BERTH_TREE_LINKS_MAX ? 1 : (__u16)(inode->subdirs + 2);
}

static errcode_t write_xattrs(ext2_filsys fs, const BerthTreeInode *inode)
{
    struct ext2_xattr_handle *handle = NULL;
    if (!inode->xattrs)
        return 0;
    errcode_t code = ext2fs_xattrs_open(fs, inode->number, &handle);
    if (code)
        return code;
    for (guint i = 0; !code && i < inode->xattrs->len; i++) {
        const BerthTreeXattr *xattr = g_ptr_array_index(inode->xattrs, i);
        gsize length;
        const void *value = g_bytes_get_data(xattr->value, &length);
        code = ext2fs_xattr_set(handle, xattr->name, value ? value : "", length);
    }
    errcode_t closed = ext2fs_xattrs_close(&handle);
    return code ? code : closed;
}

gboolean berth_ext4_fs_write_inode(ext2_filsys fs, const BerthTreeInode *inode, GArray *runs,
                                   guint64 size_bytes, const void *payload, gsize payload_length,
                                   GError **error)
{
    struct ext2_inode_large raw = {0};
    errcode_t code = 0;
    describe_inode(inode, size_bytes, &raw);
    g_assert(payload_length <= sizeof raw.i_block);
    if (payload)
        memcpy(raw.i_block, payload, payload_length);
    else if (S_ISREG(inode->mode) || S_ISDIR(inode->mode) || S_ISLNK(inode->mode))
        code = map_runs(fs, inode->number, (struct ext2_inode *)&raw, runs);
    if (!code)
        code =
            ext2fs_write_inode_full(fs, inode->number, (struct ext2_inode *)&raw, (int)sizeof raw);
    if (!code)
        code = write_xattrs(fs, inode);
    if (code)
        berth_ext4_set_error(error, code, "cannot write an inode");
    return !code;
}
