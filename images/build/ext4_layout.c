/* SPDX-License-Identifier: Apache-2.0 */

/* The measures of an image's file system.
 *
 * An image is small and its clones grow: a job's disk is the image plus the space that the job asked
 * for, up to thousands of times as much, and the guest grows the file system online. So:
 *   - each group has inodes for one per 16 KiB, however few the image itself needs; tables that
 *     nobody has touched cost nothing in a sparse file;
 *   - descriptor blocks are reserved for growth to 1 TiB or 1024-fold, whichever is more, as far as
 *     ext4 can (8 TiB); beyond that the kernel goes on with meta_bg by itself. */

#include "images/build/ext4_layout.h"

#include "common/error.h"

#define INODES_PER_BLOCK      (BERTH_EXT4_BLOCK_BYTES / BERTH_EXT4_INODE_BYTES)
#define DESCRIPTORS_PER_BLOCK (BERTH_EXT4_BLOCK_BYTES / BERTH_EXT4_DESCRIPTOR_BYTES)
#define GROUP_BYTES           ((guint64)BERTH_EXT4_BLOCKS_PER_GROUP * BERTH_EXT4_BLOCK_BYTES)
#define BLOCKS_PER_MIB        256u
#define INODES_PER_GROUP_MIN  (guint32)(GROUP_BYTES / 16384)
#define INODES_PER_GROUP_MAX  BERTH_EXT4_BLOCKS_PER_GROUP  /* bits of a bitmap block */
#define RESERVED_MAX          (BERTH_EXT4_BLOCK_BYTES / 4) /* pointers of one block */
#define GROWN_GROUPS_MIN      (guint32)((G_GUINT64_CONSTANT(1) << 40) / GROUP_BYTES)
#define SIZE_MAX_BYTES        (G_GUINT64_CONSTANT(1) << 44)

/* Room beyond the content: 1/32 and 8 MiB, for input files and logs of jobs that ask for none. */
#define HEADROOM_BLOCKS(content) ((content) / 32 + 8 * BLOCKS_PER_MIB)

static guint64 divide_up(guint64 a, guint64 b)
{
    return (a + b - 1) / b;
}

static gboolean is_power_of(guint32 value, guint32 base)
{
    while (value % base == 0)
        value /= base;
    return value == 1;
}

/* Groups with a copy of the superblock (sparse_super): 0, 1, and powers of 3, 5 and 7. */
static gboolean group_has_super(guint32 group)
{
    return group <= 1 || is_power_of(group, 3) || is_power_of(group, 5) || is_power_of(group, 7);
}

static guint64 count_supers(guint32 groups)
{
    guint64 supers = 0;
    for (guint32 group = 0; group < groups; group++)
        supers += group_has_super(group);
    return supers;
}

static guint32 reserved_descriptors(guint32 groups)
{
    guint64 grown = MAX((guint64)groups * 1024, GROWN_GROUPS_MIN);
    guint64 blocks =
        divide_up(grown, DESCRIPTORS_PER_BLOCK) - divide_up(groups, DESCRIPTORS_PER_BLOCK);
    return (guint32)MIN(blocks, RESERVED_MAX);
}

static guint64 super_blocks(const BerthExt4Layout *layout)
{
    return 1 + divide_up(layout->groups, DESCRIPTORS_PER_BLOCK) + layout->reserved_descriptors;
}

/* Bitmaps and inode table. */
static guint64 group_blocks(const BerthExt4Layout *layout)
{
    return 2 + layout->inodes_per_group / INODES_PER_BLOCK;
}

/* Fills LAYOUT for GROUPS groups; TRUE if everything fits into them. */
static gboolean try_groups(guint32 groups, guint64 inodes, BerthExt4Layout *layout)
{
    guint64 per_group = MAX(divide_up(inodes, groups), INODES_PER_GROUP_MIN);
    per_group = divide_up(per_group, INODES_PER_BLOCK) * INODES_PER_BLOCK;
    if (per_group > INODES_PER_GROUP_MAX)
        return FALSE;
    layout->groups = groups;
    layout->inodes_per_group = (guint32)per_group;
    layout->reserved_descriptors = reserved_descriptors(groups);
    guint64 blocks = layout->content_blocks + groups * group_blocks(layout) +
                     count_supers(groups) * super_blocks(layout);
    layout->blocks = divide_up(blocks, BLOCKS_PER_MIB) * BLOCKS_PER_MIB;
    return layout->blocks <= (guint64)groups * BERTH_EXT4_BLOCKS_PER_GROUP;
}

/* libext2fs gives up a last group that has little room beside its own tables. */
static void widen_last_group(BerthExt4Layout *layout)
{
    guint64 last = layout->blocks % BERTH_EXT4_BLOCKS_PER_GROUP;
    guint64 least =
        divide_up(group_blocks(layout) + super_blocks(layout) + BLOCKS_PER_MIB, BLOCKS_PER_MIB) *
        BLOCKS_PER_MIB;
    if (last > 0 && last < least)
        layout->blocks += least - last;
}

gboolean berth_ext4_layout_compute(const BerthTreeTotals *totals, guint64 max_bytes,
                                   BerthExt4Layout *out_layout, GError **error)
{
    guint64 limit = MIN(max_bytes, SIZE_MAX_BYTES);
    guint64 content = totals->data_blocks + totals->directory_blocks + totals->extent_blocks +
                      totals->xattr_blocks;
    guint64 inodes = totals->inodes + totals->inodes / 8 + 1024;
    BerthExt4Layout layout = {.content_blocks = content + HEADROOM_BLOCKS(content)};
    guint64 groups = MAX(1, layout.content_blocks / BERTH_EXT4_BLOCKS_PER_GROUP);
    /* A few steps: tables are some percent of the content. */
    while (groups * GROUP_BYTES <= limit + GROUP_BYTES &&
           !try_groups((guint32)groups, inodes, &layout))
        groups++;
    if (layout.blocks)
        widen_last_group(&layout);
    if (groups * GROUP_BYTES > limit + GROUP_BYTES ||
        layout.blocks * BERTH_EXT4_BLOCK_BYTES > limit) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "its content of about %" G_GUINT64_FORMAT
                    " MiB does not fit into an image of %" G_GUINT64_FORMAT " MiB",
                    content / BLOCKS_PER_MIB, limit >> 20);
        return FALSE;
    }
    *out_layout = layout;
    return TRUE;
}
