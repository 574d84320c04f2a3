/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* libext2fs as the writer needs it: an empty file system, blocks, inodes. For ext4_writer.c. */

#include <ext2fs/ext2fs.h>
#include <glib.h>

#include "images/build/ext4_layout.h"
#include "images/build/tree.h"

/* A run of blocks of a file. */
typedef struct {
    guint64 logical;
    guint64 physical;
    guint64 count;
} BerthExt4Run;

/* Sets an error for libext2fs's CODE. */
void berth_ext4_set_error(GError **error, errcode_t code, const char *what);

/* Makes an empty file system in the existing, zero-filled file PATH. */
ext2_filsys berth_ext4_fs_create(const char *path, const BerthExt4Layout *layout, GError **error);

/* Takes up to WANTED free blocks in one run at or after *GOAL, and moves *GOAL behind them. */
gboolean berth_ext4_fs_take_blocks(ext2_filsys fs, guint64 *goal, guint64 wanted,
                                   BerthExt4Run *out_run, GError **error);

/* Writes INODE as number inode->number: attributes, RUNS of BerthExt4Run (NULL: none), SIZE_BYTES,
 * extended attributes. PAYLOAD (may be NULL) are up to 60 bytes kept in the inode itself. */
gboolean berth_ext4_fs_write_inode(ext2_filsys fs, const BerthTreeInode *inode, GArray *runs,
                                   guint64 size_bytes, const void *payload, gsize payload_length,
                                   GError **error);
