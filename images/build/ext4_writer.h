/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes a new ext4 file system into a file, tree first and then data. ext4_writer.c and ext4_fs.c
 * are the only files of Berth that write with libext2fs. */

#include "images/build/ext4_layout.h"
#include "images/build/tree.h"

typedef struct BerthExt4Writer BerthExt4Writer;

/* Makes the empty file system in the file PATH, which must not exist (ALREADY_EXISTS). */
BerthExt4Writer *berth_ext4_writer_new(const char *path, const BerthExt4Layout *layout,
                                       GError **error);
/* Not committed: removes the file. */
void berth_ext4_writer_free(BerthExt4Writer *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthExt4Writer, berth_ext4_writer_free)

/* Numbers all inodes and writes all that have no data. Once; TREE must outlive the writer. */
gboolean berth_ext4_writer_add_tree(BerthExt4Writer *writer, BerthTree *tree, GError **error);

/* The data of one regular file of the tree that has a size: begin, any number of appends at rising
 * offsets (what they leave out, and blocks of zeros, become holes), end. INVALID_ARGUMENT if an
 * append is out of order or leads beyond the file's size. */
gboolean berth_ext4_writer_begin(BerthExt4Writer *writer, BerthTreeInode *file, GError **error);
gboolean berth_ext4_writer_append(BerthExt4Writer *writer, guint64 offset, const void *data,
                                  gsize length, GError **error);
gboolean berth_ext4_writer_end(BerthExt4Writer *writer, GError **error);

/* Files with a size that were not written yet. */
guint64 berth_ext4_writer_missing(const BerthExt4Writer *writer);
guint64 berth_ext4_writer_size_bytes(const BerthExt4Writer *writer);
/* Writes the bitmaps, descriptors and superblock: the file is whole when this returns. */
gboolean berth_ext4_writer_commit(BerthExt4Writer *writer, GError **error);
