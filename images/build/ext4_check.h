/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether an existing ext4 file system can be an image. */

#include <gio/gio.h>

#define BERTH_EXT4_SUPER_OFFSET 1024u
#define BERTH_EXT4_SUPER_BYTES  1024u

/* TRUE if SUPER has the magic number of ext2, ext3 and ext4. */
gboolean berth_ext4_super_is_one(const guint8 super[BERTH_EXT4_SUPER_BYTES]);

/* Checks the superblock of a file of FILE_BYTES: magic number, checksum, block size, that it was
 * unmounted cleanly and has no errors, that the guest's kernel (images/kernel/config) can mount and
 * grow it, and that it lies within the file. *OUT_BYTES is the file system's size.
 * INVALID_ARGUMENT, DATA_LOSS (checksum), FAILED_PRECONDITION, UNSUPPORTED. */
gboolean berth_ext4_super_check(const guint8 super[BERTH_EXT4_SUPER_BYTES], guint64 file_bytes,
                                guint64 *out_bytes, GError **error);

/* Called after each piece with what was copied of TOTAL. */
typedef void (*BerthExt4CopyFunc)(guint64 done_bytes, guint64 total_bytes, gpointer user_data);

/* Copies the first LENGTH bytes of FD to the new file OUTPUT_PATH, without the holes. Removes the
 * output again on failure. */
gboolean berth_ext4_copy(int fd, guint64 length, const char *output_path,
                         BerthExt4CopyFunc progress, gpointer user_data, GCancellable *cancellable,
                         GError **error);
