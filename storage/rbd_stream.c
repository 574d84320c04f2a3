/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pipeline that moves byte streams to and from RADOS objects of BERTH_RBD_CHUNK_BYTES:
 * a ring of asynchronous operations, of which the oldest is waited for when the ring is full.
 * Knows nothing of what the streams mean. */
#include <errno.h>
#include <string.h>

#include "storage/rbd_internal.h"

#define IN_FLIGHT_MAX 8u

typedef struct {
    rados_completion_t completion;
    guint8 *read_to; /* reads only */
    gsize length;
    gsize position; /* in the caller's buffer */
} Slot;

typedef struct {
    Slot slots[IN_FLIGHT_MAX];
    guint64 begun;
    guint64 ended;
    int result;        /* first error */
    gsize complete;    /* reads: how much from the start is there */
    gboolean may_miss; /* an object that is not there is no error */
} Pipeline;

static void end_oldest(Pipeline *pipeline)
{
    Slot *slot = &pipeline->slots[pipeline->ended++ % IN_FLIGHT_MAX];
    rados_aio_wait_for_complete(slot->completion);
    int result = rados_aio_get_return_value(slot->completion);
    rados_aio_release(slot->completion);
    if (result == -ENOENT && pipeline->may_miss)
        result = 0;
    if (result < 0) {
        pipeline->result = pipeline->result < 0 ? pipeline->result : result;
        return;
    }
    if (slot->read_to != NULL && (gsize)result < slot->length) {
        memset(slot->read_to + result, 0, slot->length - (gsize)result);
        pipeline->complete = MIN(pipeline->complete, slot->position + (gsize)result);
    }
}

static Slot *begin(Pipeline *pipeline)
{
    if (pipeline->begun - pipeline->ended == IN_FLIGHT_MAX)
        end_oldest(pipeline);
    Slot *slot = &pipeline->slots[pipeline->begun++ % IN_FLIGHT_MAX];
    *slot = (Slot){0};
    rados_aio_create_completion2(NULL, NULL, &slot->completion);
    return slot;
}

/* What could not be started has no completion to wait for. */
static void begin_failed(Pipeline *pipeline, Slot *slot, int result)
{
    rados_aio_release(slot->completion);
    pipeline->begun--;
    pipeline->result = pipeline->result < 0 ? pipeline->result : result;
}

static int end_all(Pipeline *pipeline)
{
    while (pipeline->ended < pipeline->begun)
        end_oldest(pipeline);
    return pipeline->result;
}

static void write_chunk(Pipeline *pipeline, const BerthRbdStream *stream, guint64 offset,
                        const guint8 *data, gsize length, gboolean needs_chunk)
{
    guint64 chunk = offset / BERTH_RBD_CHUNK_BYTES;
    guint64 in_chunk = offset % BERTH_RBD_CHUNK_BYTES;
    g_autofree char *name = stream->name(stream, chunk);
    rados_write_op_t op = rados_create_write_op();
    if (needs_chunk && chunk > 0 && in_chunk > 0)
        rados_write_op_assert_exists(op);
    rados_write_op_write(op, (const char *)data, length, in_chunk);
    Slot *slot = begin(pipeline);
    int result = rados_aio_write_op_operate(op, stream->io, slot->completion, name, NULL, 0);
    if (result < 0)
        begin_failed(pipeline, slot, result);
    rados_release_write_op(op);
}

int berth_rbd_stream_write(const BerthRbdStream *stream, guint64 offset, const guint8 *data,
                           gsize length, gboolean needs_chunks)
{
    Pipeline pipeline = {0};
    for (gsize done = 0; done < length && pipeline.result >= 0;) {
        guint64 at = offset + done;
        gsize part =
            MIN(length - done, (gsize)(BERTH_RBD_CHUNK_BYTES - at % BERTH_RBD_CHUNK_BYTES));
        write_chunk(&pipeline, stream, at, data + done, part, needs_chunks);
        done += part;
    }
    return end_all(&pipeline);
}

int berth_rbd_stream_read(const BerthRbdStream *stream, guint64 offset, guint8 *data, gsize length,
                          gsize *out_complete)
{
    Pipeline pipeline = {.complete = length, .may_miss = TRUE};
    for (gsize done = 0; done < length && pipeline.result >= 0;) {
        guint64 at = offset + done;
        guint64 in_chunk = at % BERTH_RBD_CHUNK_BYTES;
        gsize part = MIN(length - done, (gsize)(BERTH_RBD_CHUNK_BYTES - in_chunk));
        g_autofree char *name = stream->name(stream, at / BERTH_RBD_CHUNK_BYTES);
        Slot *slot = begin(&pipeline);
        slot->read_to = data + done;
        slot->length = part;
        slot->position = done;
        int result = rados_aio_read(stream->io, name, slot->completion, (char *)slot->read_to, part,
                                    in_chunk);
        if (result < 0)
            begin_failed(&pipeline, slot, result);
        done += part;
    }
    int result = end_all(&pipeline);
    if (result >= 0)
        *out_complete = pipeline.complete;
    return result;
}

int berth_rbd_stream_remove(const BerthRbdStream *stream, guint64 first, guint64 end)
{
    Pipeline pipeline = {.may_miss = TRUE};
    for (guint64 chunk = first; chunk < end && pipeline.result >= 0; chunk++) {
        g_autofree char *name = stream->name(stream, chunk);
        Slot *slot = begin(&pipeline);
        int result = rados_aio_remove(stream->io, name, slot->completion);
        if (result < 0)
            begin_failed(&pipeline, slot, result);
    }
    return end_all(&pipeline);
}

int berth_rbd_visit_objects(rados_ioctx_t io, void (*visit)(const char *name, gpointer data),
                            gpointer data)
{
    rados_list_ctx_t list = NULL;
    int result = rados_nobjects_list_open(io, &list);
    if (result < 0)
        return result;
    const char *name = NULL;
    while ((result = rados_nobjects_list_next(list, &name, NULL, NULL)) >= 0)
        visit(name, data);
    rados_nobjects_list_close(list);
    return result == -ENOENT ? 0 : result; /* -ENOENT: the end */
}
