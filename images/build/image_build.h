/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gio/gio.h>

/* Makes the file-system image of a guest's disk: one ext4 file system, without partitions, in a
 * sparse file. Needs no privileges and extracts nothing: what the source holds is written straight
 * into the file system.
 *
 * Sources (recognised by content, not by name):
 *   directory  one file system of it, owners and times as they are; sockets are left out
 *   tar        plain or compressed with gzip, xz or zstd; a regular file, as it is read twice
 *   ext4       a file system in a file: checked (cleanly unmounted, features that the guest's kernel
 *              has) and copied
 *
 * Taken over: files, holes, directories, symbolic and hard links, devices, pipes, owners, modes,
 * times, and the extended attributes user.*, trusted.* and security.capability. Left out: POSIX
 * ACLs, labels of security modules, flags. Of entries with the same path the later wins. */

typedef enum {
    BERTH_IMAGE_SOURCE_DIRECTORY = 1,
    BERTH_IMAGE_SOURCE_TAR,
    BERTH_IMAGE_SOURCE_EXT4,
} BerthImageSourceKind;

typedef struct {
    guint64 entries;     /* read so far */
    guint64 done_bytes;  /* content written so far */
    guint64 total_bytes; /* content to be written; 0 while the source is still being measured */
} BerthImageProgress;

/* Called on the building thread, about every 4 MiB or 4096 entries and once at the end. */
typedef void (*BerthImageProgressFunc)(const BerthImageProgress *progress, gpointer user_data);

typedef struct {
    BerthImageSourceKind kind;
    guint64 entries;       /* of the source; 0 for ext4 */
    guint64 skipped;       /* sockets */
    guint64 content_bytes; /* data of files */
    guint64 size_bytes;    /* of the file system and of the output file; a multiple of 1 MiB for
                            * directory and tar */
} BerthImageInfo;

/* Builds OUTPUT_PATH, which must not exist, from SOURCE_PATH. Blocks; removes the output again on
 * failure. MAX_BYTES limits the output's size, 0: 16 TiB. PROGRESS, CANCELLABLE and OUT_INFO may be
 * NULL. While it runs, the process's working directory and the calling thread's locale change.
 *
 * Errors: NOT_FOUND, PERMISSION_DENIED (the source cannot be read, the output not be made),
 * INVALID_ARGUMENT (no such kind of source; an archive that is truncated, corrupt or names a path
 * that cannot be in an image), UNSUPPORTED (ext4 with features that guests do not have),
 * FAILED_PRECONDITION (ext4 that was not cleanly unmounted, or has errors), ALREADY_EXISTS (the
 * output), RESOURCE_EXHAUSTED (no space left, MAX_BYTES, more files than an image can have),
 * CANCELLED. */
gboolean berth_image_build(const char *source_path, const char *output_path, guint64 max_bytes,
                           BerthImageProgressFunc progress, gpointer user_data,
                           GCancellable *cancellable, BerthImageInfo *out_info, GError **error);
