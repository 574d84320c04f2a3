/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How large an ext4 file system has to be for given content. Arithmetic only. */

#include "images/build/tree.h"

#define BERTH_EXT4_BLOCK_BYTES      4096u
#define BERTH_EXT4_BLOCKS_PER_GROUP 32768u /* 128 MiB: what one bitmap block tells of */
#define BERTH_EXT4_INODE_BYTES      256u
#define BERTH_EXT4_DESCRIPTOR_BYTES 64u

typedef struct {
    guint64 blocks;               /* a multiple of 1 MiB */
    guint32 inodes_per_group;     /* fills whole blocks */
    guint32 groups;               /* ceil(blocks / BERTH_EXT4_BLOCKS_PER_GROUP) */
    guint32 reserved_descriptors; /* blocks kept for the descriptors of groups to come */
    guint64 content_blocks;       /* that must be free for the content */
} BerthExt4Layout;

/* RESOURCE_EXHAUSTED if it would be larger than MAX_BYTES (at most 16 TiB). */
gboolean berth_ext4_layout_compute(const BerthTreeTotals *totals, guint64 max_bytes,
                                   BerthExt4Layout *out_layout, GError **error);
