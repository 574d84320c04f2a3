/* SPDX-License-Identifier: Apache-2.0 */
/* Owns blobs of an "rbd" storage. An upload writes chunks under a number of its own, which nobody
 * else uses or reads, and then the index, which names that number: until then there is no blob,
 * and a wrong upload cannot touch a right one. */
#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "storage/rbd_internal.h"
#include "storage/rbd_uploads.h"

/* An upload that rests for a day is swept (rbd_uploads.c): one that rests this long is over. */
#define REST_MAX_USEC (12 * 60 * 60 * (gint64)G_USEC_PER_SEC)

typedef struct {
    BerthBlobWriter base;
    guint64 written_bytes;
    gint64 written_at_usec;
} RbdBlobWriter;

static BerthRbdStorage *storage_of(BerthBlobWriter *writer)
{
    return (BerthRbdStorage *)writer->storage;
}

static guint64 chunks_of(guint64 bytes)
{
    return (bytes + BERTH_RBD_CHUNK_BYTES - 1) / BERTH_RBD_CHUNK_BYTES;
}

static gboolean check_rest(const RbdBlobWriter *writer, GError **error)
{
    if (g_get_monotonic_time() - writer->written_at_usec < REST_MAX_USEC)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                "cannot store blob %s: nothing came for 12 hours: send it again", writer->base.hex);
    return FALSE;
}

BerthBlobWriter *berth_rbd_blob_create(BerthStorage *storage, const char *hex, guint64 size_bytes,
                                       GError **error)
{
    RbdBlobWriter *writer = g_new0(RbdBlobWriter, 1);
    writer->base.upload_id = (guint64)g_random_int() << 32 | g_random_int();
    writer->written_at_usec = g_get_monotonic_time();
    return &writer->base;
}

gboolean berth_rbd_blob_append(BerthBlobWriter *base, const guint8 *data, gsize length,
                               GError **error)
{
    RbdBlobWriter *writer = (RbdBlobWriter *)base;
    BerthRbdStorage *self = storage_of(base);
    if (!check_rest(writer, error))
        return FALSE;
    BerthRbdStream stream = berth_rbd_upload_stream(self, base->hex, base->upload_id);
    guint64 offset = writer->written_bytes;
    writer->written_bytes += length; /* also if it fails: a part may have been written */
    int result = berth_rbd_stream_write(&stream, offset, data, length, FALSE);
    if (result >= 0) {
        writer->written_at_usec = g_get_monotonic_time();
        return TRUE;
    }
    berth_rbd_set_error(self, result, error, "cannot store blob %s", base->hex);
    return FALSE;
}

gboolean berth_rbd_blob_commit(BerthBlobWriter *base, GBytes *index, GError **error)
{
    BerthRbdStorage *self = storage_of(base);
    if (!check_rest((RbdBlobWriter *)base, error))
        return FALSE;
    gsize length = 0;
    const char *data = g_bytes_get_data(index, &length);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_write_full(op, data, length);
    int result = rados_write_op_operate(op, self->blobs, base->hex, NULL, 0);
    rados_release_write_op(op);
    if (result >= 0)
        return TRUE;
    if (result == -EEXIST) { /* another upload was faster; this one's chunks are of no use */
        BerthRbdStream stream = berth_rbd_upload_stream(self, base->hex, base->upload_id);
        berth_rbd_stream_remove(&stream, 0, chunks_of(base->size_bytes));
        return TRUE;
    }
    berth_rbd_set_error(self, result, error, "cannot store blob %s", base->hex);
    return FALSE;
}

void berth_rbd_blob_writer_free(BerthBlobWriter *base)
{
    RbdBlobWriter *writer = (RbdBlobWriter *)base;
    if (!base->is_committed) {
        BerthRbdStream stream =
            berth_rbd_upload_stream(storage_of(base), base->hex, base->upload_id);
        berth_rbd_stream_remove(&stream, 0, chunks_of(writer->written_bytes));
    }
    g_free(writer);
}

GBytes *berth_rbd_blob_read_index(BerthStorage *storage, const char *hex, guint64 offset,
                                  gsize length, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *data = g_try_malloc(length);
    int result = data != NULL ? rados_read(self->blobs, hex, data, length, offset) : -ENOMEM;
    if (result >= 0)
        return g_bytes_new_take(g_steal_pointer(&data), (gsize)result);
    berth_rbd_set_error(self, result, error, "cannot read blob %s", hex);
    return NULL;
}

GBytes *berth_rbd_blob_read_data(BerthStorage *storage, const char *hex, guint64 upload_id,
                                 guint64 offset, gsize length, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    BerthRbdStream stream = berth_rbd_upload_stream(self, hex, upload_id);
    g_autofree guint8 *data = g_try_malloc(length);
    gsize complete = 0;
    int result =
        data != NULL ? berth_rbd_stream_read(&stream, offset, data, length, &complete) : -ENOMEM;
    if (result >= 0)
        return g_bytes_new_take(g_steal_pointer(&data), complete);
    berth_rbd_set_error(self, result, error, "cannot read blob %s", hex);
    return NULL;
}

/* The index goes first: readers see no half of it, and what is left after a crash is swept. */
gboolean berth_rbd_blob_remove(BerthStorage *storage, const char *hex, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    char head[BERTH_BLOB_INDEX_HEADER_BYTES];
    BerthBlobHeader header = {0};
    int result = rados_read(self->blobs, hex, head, sizeof head, 0);
    if (result == -ENOENT)
        return TRUE;
    gboolean has_header =
        result >= 0 && berth_blob_header_parse((const guint8 *)head, (gsize)result, &header);
    if (result >= 0)
        result = rados_remove(self->blobs, hex);
    if (result == -ENOENT)
        result = 0;
    if (result >= 0 && has_header) {
        BerthRbdStream stream = berth_rbd_upload_stream(self, hex, header.upload_id);
        result = berth_rbd_stream_remove(&stream, 0, chunks_of(header.size_bytes));
    }
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot remove blob %s", hex);
    return FALSE;
}

gboolean berth_rbd_blob_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autoptr(BerthRbdUploads) uploads = berth_rbd_uploads_new();
    int result = berth_rbd_visit_objects(self->blobs, berth_rbd_uploads_add, uploads);
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot list the blobs in pool %s", self->pool);
        return FALSE;
    }
    berth_rbd_uploads_sweep(uploads, self);
    berth_rbd_uploads_take_blobs(uploads, names);
    return TRUE;
}
