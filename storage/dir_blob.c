/* SPDX-License-Identifier: Apache-2.0 */
/* Owns blobs of a "dir" storage: a directory per digest with the content and its index. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/error.h"
#include "storage/dir_internal.h"

typedef struct {
    BerthBlobWriter base;
    char *stage;
    int fd;
    guint64 written_bytes;
} DirBlobWriter;

static BerthDirStorage *storage_of(BerthBlobWriter *writer)
{
    return (BerthDirStorage *)writer->storage;
}

/* "blobs/XX" */
static char *bucket_path(const char *hex)
{
    return g_strdup_printf("blobs/%.2s", hex);
}

static int open_new(const BerthDirStorage *self, const char *stage, const char *file)
{
    g_autofree char *name = g_build_filename(stage, file, NULL);
    return openat(self->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
}

BerthBlobWriter *berth_dir_blob_create(BerthStorage *storage, const char *hex, guint64 size_bytes,
                                       GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *stage = berth_dir_stage_new(self);
    int fd = stage != NULL ? open_new(self, stage, "data") : -1;
    if (fd < 0) {
        berth_dir_set_error(self, errno, size_bytes, error, "cannot store blob %s in %s", hex,
                            self->path);
        if (stage != NULL)
            berth_dir_stage_discard(self, stage);
        return NULL;
    }
    DirBlobWriter *writer = g_new0(DirBlobWriter, 1);
    writer->stage = g_steal_pointer(&stage);
    writer->fd = fd;
    return &writer->base;
}

gboolean berth_dir_blob_append(BerthBlobWriter *base, const guint8 *data, gsize length,
                               GError **error)
{
    DirBlobWriter *writer = (DirBlobWriter *)base;
    if (!berth_dir_pwrite_all(writer->fd, data, length, writer->written_bytes)) {
        berth_dir_set_error(storage_of(base), errno, base->size_bytes - writer->written_bytes,
                            error, "cannot store blob %s", base->hex);
        return FALSE;
    }
    writer->written_bytes += length;
    return TRUE;
}

static gboolean write_index(const BerthDirStorage *self, const char *stage, GBytes *index)
{
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(index, &length);
    BERTH_DIR_AUTO_FD fd = open_new(self, stage, "index");
    return fd >= 0 && berth_dir_pwrite_all(fd, data, length, 0) && fsync(fd) == 0;
}

static gboolean make_bucket(const BerthDirStorage *self, const char *bucket)
{
    if (mkdirat(self->fd, bucket, 0700) == 0)
        return berth_dir_sync(self, "blobs");
    return errno == EEXIST;
}

gboolean berth_dir_blob_commit(BerthBlobWriter *base, GBytes *index, GError **error)
{
    DirBlobWriter *writer = (DirBlobWriter *)base;
    BerthDirStorage *self = storage_of(base);
    g_autofree char *bucket = bucket_path(base->hex);
    g_autofree char *target = g_build_filename(bucket, base->hex, NULL);
    if (fsync(writer->fd) == 0 && write_index(self, writer->stage, index) &&
        make_bucket(self, bucket)) {
        if (berth_dir_stage_commit(self, writer->stage, bucket, target))
            return TRUE;
        if (errno == EEXIST) { /* another upload was faster */
            berth_dir_stage_discard(self, writer->stage);
            return TRUE;
        }
    }
    berth_dir_set_error(self, errno, g_bytes_get_size(index), error, "cannot store blob %s in %s",
                        base->hex, self->path);
    return FALSE;
}

void berth_dir_blob_writer_free(BerthBlobWriter *base)
{
    DirBlobWriter *writer = (DirBlobWriter *)base;
    close(writer->fd);
    if (!base->is_committed)
        berth_dir_stage_discard(storage_of(base), writer->stage);
    g_free(writer->stage);
    g_free(writer);
}

static GBytes *read_piece(BerthStorage *storage, const char *hex, const char *file, guint64 offset,
                          gsize length, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *bucket = bucket_path(hex);
    g_autofree char *name = g_build_filename(bucket, hex, file, NULL);
    BERTH_DIR_AUTO_FD fd = openat(self->fd, name, O_RDONLY | O_CLOEXEC);
    GBytes *bytes = fd >= 0 ? berth_dir_pread(fd, offset, length) : NULL;
    if (bytes == NULL)
        berth_dir_set_error(self, errno, 0, error, "cannot read blob %s from %s", hex, self->path);
    return bytes;
}

GBytes *berth_dir_blob_read_index(BerthStorage *storage, const char *hex, guint64 offset,
                                  gsize length, GError **error)
{
    return read_piece(storage, hex, "index", offset, length, error);
}

GBytes *berth_dir_blob_read_data(BerthStorage *storage, const char *hex, guint64 upload_id,
                                 guint64 offset, gsize length, GError **error)
{
    g_autoptr(GError) local_error = NULL;
    GBytes *bytes = read_piece(storage, hex, "data", offset, length, &local_error);
    if (bytes != NULL)
        return bytes;
    if (g_error_matches(local_error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        return g_bytes_new(NULL, 0); /* with an index: the front end says what that means */
    g_propagate_error(error, g_steal_pointer(&local_error));
    return NULL;
}

gboolean berth_dir_blob_remove(BerthStorage *storage, const char *hex, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *bucket = bucket_path(hex);
    g_autofree char *target = g_build_filename(bucket, hex, NULL);
    if (berth_dir_unstage(self, bucket, target) || errno == ENOENT)
        return TRUE;
    berth_dir_set_error(self, errno, 0, error, "cannot remove blob %s from %s", hex, self->path);
    return FALSE;
}

gboolean berth_dir_blob_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    berth_dir_stage_sweep(self);
    g_autoptr(GPtrArray) buckets = g_ptr_array_new_with_free_func(g_free);
    if (!berth_dir_list(self, "blobs", buckets, error))
        return FALSE;
    for (guint i = 0; i < buckets->len; i++) {
        g_autofree char *bucket = g_build_filename("blobs", g_ptr_array_index(buckets, i), NULL);
        g_autoptr(GPtrArray) blobs = g_ptr_array_new_with_free_func(g_free);
        if (!berth_dir_list(self, bucket, blobs, error))
            return FALSE;
        for (guint blob = 0; blob < blobs->len; blob++) {
            if (berth_storage_digest_is_valid(g_ptr_array_index(blobs, blob)))
                g_ptr_array_add(names, g_strdup(g_ptr_array_index(blobs, blob)));
        }
    }
    return TRUE;
}
