/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the "dir" storage share. Its layout under the configured path:
 *
 *   images/ID/image.raw      sparse, read-only
 *   disks/ID/disk.qcow2      overlay on base.raw; for its owner only
 *   disks/ID/base.raw        hard link to the image: keeps its content as long as the disk lives,
 *                            and its link count tells that the image is in use
 *   blobs/XX/DIGEST/data     content; XX is how the digest starts
 *   blobs/XX/DIGEST/index    see blob_index.h
 *   logs/ID
 *   mark                     see berth_storage_mark_read()
 *   tmp/NAME/                what is being made or removed
 *
 * Images, disks and blobs are directories so that each is made in tmp/, made durable there and
 * then renamed to its place: it is there as a whole or not at all. Removal renames it back to
 * tmp/ first. Names relative to the configured path are used with its descriptor. */

#include <unistd.h>

#include "storage/storage_backend.h"

typedef struct {
    BerthStorage base;
    char *path;
    int fd; /* of PATH */
    guint op_timeout_sec;
} BerthDirStorage;

static inline void berth_dir_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
#define BERTH_DIR_AUTO_FD __attribute__((cleanup(berth_dir_close_fd))) int

/* Sets ERROR from errno value ERR. For a full file system it says which one, how much is free and
 * that NEEDED_BYTES were to be written. */
void berth_dir_set_error(const BerthDirStorage *self, int err, guint64 needed_bytes, GError **error,
                         const char *format, ...) G_GNUC_PRINTF(5, 6);

/* All of DATA at OFFSET. FALSE: errno. */
gboolean berth_dir_pwrite_all(int fd, const guint8 *data, gsize length, guint64 offset);
/* Up to LENGTH bytes, fewer only at the end of the file. NULL: errno. */
GBytes *berth_dir_pread(int fd, guint64 offset, gsize length);
/* Makes what was renamed into or out of directory NAME durable. FALSE: errno. */
gboolean berth_dir_sync(const BerthDirStorage *self, const char *name);

/* Makes what is missing of images/, disks/, blobs/, logs/ and tmp/. */
gboolean berth_dir_make_folders(const BerthDirStorage *self, GError **error);

/* A new directory tmp/NAME; returns "tmp/NAME" (transfer full), or NULL and errno. */
char *berth_dir_stage_new(const BerthDirStorage *self);
/* Makes STAGE durable and renames it to TARGET, in directory PARENT. FALSE: errno; EEXIST if
 * TARGET is there already. The files in STAGE must have been synced before. */
gboolean berth_dir_stage_commit(const BerthDirStorage *self, const char *stage, const char *parent,
                                const char *target);
/* Removes STAGE and the files in it, as far as that is possible. */
void berth_dir_stage_discard(const BerthDirStorage *self, const char *stage);
/* Removes directory TARGET of PARENT and its files: at once for all readers. FALSE: errno. */
gboolean berth_dir_unstage(const BerthDirStorage *self, const char *parent, const char *target);
/* Discards stages in which nothing happened for a day: their makers crashed. Called when storage
 * is prepared and when something is listed. */
void berth_dir_stage_sweep(const BerthDirStorage *self);

/* Adds the valid storage names in directory NAME. */
gboolean berth_dir_list(const BerthDirStorage *self, const char *name, GPtrArray *names,
                        GError **error);

/* Runs ARGV without a shell, for at most op_timeout_sec. What it wrote to stderr is in the error,
 * which is INTERNAL if it failed, DEADLINE_EXCEEDED if it had to be stopped. */
gboolean berth_dir_run(const BerthDirStorage *self, const char *const *argv, GError **error);

/* The backend's functions, by file. */
BerthImageWriter *berth_dir_image_create(BerthStorage *storage, const char *image_id,
                                         guint64 size_bytes, GError **error);
gboolean berth_dir_image_write(BerthImageWriter *writer, guint64 offset, const guint8 *data,
                               gsize length, GError **error);
gboolean berth_dir_image_zero(BerthImageWriter *writer, guint64 offset, gsize length,
                              GError **error);
gboolean berth_dir_image_commit(BerthImageWriter *writer, GError **error);
void berth_dir_image_writer_free(BerthImageWriter *writer);
gboolean berth_dir_image_is_committed(BerthStorage *storage, const char *image_id,
                                      gboolean *out_committed, GError **error);
gboolean berth_dir_image_remove(BerthStorage *storage, const char *image_id, GError **error);
gboolean berth_dir_image_list(BerthStorage *storage, GPtrArray *names, GError **error);

BerthDiskSource *berth_dir_disk_create(BerthStorage *storage, const char *disk_id,
                                       const char *image_id, guint64 size_bytes, GError **error);
BerthDiskSource *berth_dir_disk_source(BerthStorage *storage, const char *disk_id, GError **error);
gboolean berth_dir_disk_remove(BerthStorage *storage, const char *disk_id,
                               gboolean with_checkpoints, GError **error);
gboolean berth_dir_disk_list(BerthStorage *storage, GPtrArray *names, GError **error);
char **berth_dir_disk_clients(BerthStorage *storage, const char *disk_id, GError **error);

BerthBlobWriter *berth_dir_blob_create(BerthStorage *storage, const char *hex, guint64 size_bytes,
                                       GError **error);
gboolean berth_dir_blob_append(BerthBlobWriter *writer, const guint8 *data, gsize length,
                               GError **error);
gboolean berth_dir_blob_commit(BerthBlobWriter *writer, GBytes *index, GError **error);
void berth_dir_blob_writer_free(BerthBlobWriter *writer);
GBytes *berth_dir_blob_read_index(BerthStorage *storage, const char *hex, guint64 offset,
                                  gsize length, GError **error);
GBytes *berth_dir_blob_read_data(BerthStorage *storage, const char *hex, guint64 upload_id,
                                 guint64 offset, gsize length, GError **error);
gboolean berth_dir_blob_remove(BerthStorage *storage, const char *hex, GError **error);
gboolean berth_dir_blob_list(BerthStorage *storage, GPtrArray *names, GError **error);

GBytes *berth_dir_mark_read(BerthStorage *storage, GError **error);
gboolean berth_dir_mark_write(BerthStorage *storage, GBytes *expected, GBytes *content,
                              GError **error);

gboolean berth_dir_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                             const guint8 *data, gsize length, GError **error);
GBytes *berth_dir_log_read(BerthStorage *storage, const char *log_id, guint64 offset, gsize length,
                           GError **error);
gboolean berth_dir_log_size(BerthStorage *storage, const char *log_id, guint64 *out_bytes,
                            GError **error);
gboolean berth_dir_log_cut(BerthStorage *storage, const char *log_id, guint64 size_bytes,
                           GError **error);
gboolean berth_dir_logs_remove(BerthStorage *storage, const char *const *log_ids, gsize n_logs,
                               GError **error);
gboolean berth_dir_log_list(BerthStorage *storage, GPtrArray *names, GError **error);
