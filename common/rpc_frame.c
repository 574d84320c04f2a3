/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the coding of frames and the judgement of what is a frame. Does not own what frames mean.
 *
 * Invariant: buffer->data[start..end) are the bytes that were received and not yet taken; they
 * only move in space(). */
#include "common/rpc_frame.h"

#include "common/error.h"
#include "common/message.h"

#include <string.h>

#define LENGTH_BYTES 4u
/* Enough for most frames in one read, little enough for thousands of idle connections. */
#define BUFFER_BYTES (16u * 1024u)

struct BerthRpcFrameReader {
    guint32 max_frame_bytes;
    guint8 *buffer;
    gsize size;
    gsize start;
    gsize end;
};

void berth_rpc_frame_free(Berth__Frame *frame)
{
    berth_message_free((ProtobufCMessage *)frame);
}

GBytes *berth_rpc_frame_encode(const Berth__Frame *frame)
{
    gsize length = berth__frame__get_packed_size(frame);
    guint8 *bytes = g_malloc(LENGTH_BYTES + length);
    guint32 big_endian = GUINT32_TO_BE((guint32)length);
    memcpy(bytes, &big_endian, LENGTH_BYTES);
    berth__frame__pack(frame, bytes + LENGTH_BYTES);
    return g_bytes_new_take(bytes, LENGTH_BYTES + length);
}

BerthRpcFrameReader *berth_rpc_frame_reader_new(guint32 max_frame_bytes)
{
    BerthRpcFrameReader *reader = g_new0(BerthRpcFrameReader, 1);
    reader->max_frame_bytes = max_frame_bytes;
    reader->size = BUFFER_BYTES;
    reader->buffer = g_malloc(reader->size);
    return reader;
}

void berth_rpc_frame_reader_free(BerthRpcFrameReader *reader)
{
    if (reader == NULL)
        return;
    g_free(reader->buffer);
    g_free(reader);
}

guint8 *berth_rpc_frame_reader_space(BerthRpcFrameReader *reader, gsize *out_room)
{
    gsize held = reader->end - reader->start;
    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, held);
        reader->start = 0;
        reader->end = held;
    }
    gsize wanted = reader->size;
    if (held == 0)
        wanted = BUFFER_BYTES; /* gives back what a large frame took */
    else if (held == reader->size)
        wanted = MAX(wanted, MIN(2 * wanted, (gsize)reader->max_frame_bytes + LENGTH_BYTES));
    if (wanted != reader->size) {
        reader->buffer = g_realloc(reader->buffer, wanted);
        reader->size = wanted;
    }
    *out_room = reader->size - reader->end;
    return reader->buffer + reader->end;
}

void berth_rpc_frame_reader_added(BerthRpcFrameReader *reader, gsize bytes)
{
    reader->end += bytes;
}

void berth_rpc_frame_reader_discard(BerthRpcFrameReader *reader)
{
    reader->start = reader->end = 0;
}

gsize berth_rpc_frame_reader_wanted(const BerthRpcFrameReader *reader)
{
    guint32 length = 0;
    if (reader->end - reader->start < LENGTH_BYTES)
        return 0;
    memcpy(&length, reader->buffer + reader->start, LENGTH_BYTES);
    length = GUINT32_FROM_BE(length);
    return length + LENGTH_BYTES > BUFFER_BYTES ? length : 0;
}

gboolean berth_rpc_frame_reader_is_inside(const BerthRpcFrameReader *reader)
{
    return reader->end > reader->start;
}

/* What makes a frame of its kind complete; NULL: it is. */
static const char *find_fault(const Berth__Frame *frame)
{
    switch (frame->kind) {
    case BERTH__FRAME__KIND__HELLO:
        return frame->hello == NULL ? "a HELLO without versions" : NULL;
    case BERTH__FRAME__KIND__REQUEST:
        return frame->call_id == 0 ? "a request without an id" : NULL;
    case BERTH__FRAME__KIND__FAILURE:
        return frame->error == NULL ? "a failure without an error" : NULL;
    case BERTH__FRAME__KIND__RESPONSE:
    case BERTH__FRAME__KIND__ITEM:
    case BERTH__FRAME__KIND__END:
    case BERTH__FRAME__KIND__CANCEL:
    case BERTH__FRAME__KIND__PING:
    case BERTH__FRAME__KIND__PONG:
        return NULL;
    default:
        return "a frame of an unknown kind";
    }
}

gboolean berth_rpc_frame_reader_next(BerthRpcFrameReader *reader, Berth__Frame **out_frame,
                                     GError **error)
{
    gsize held = reader->end - reader->start;
    const guint8 *at = reader->buffer + reader->start;
    guint32 length = 0;
    *out_frame = NULL;
    if (held < LENGTH_BYTES)
        return TRUE;
    memcpy(&length, at, LENGTH_BYTES);
    length = GUINT32_FROM_BE(length);
    if (length == 0 || length > reader->max_frame_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                    "it sent a frame of %u bytes, where 1 to %u are allowed", length,
                    reader->max_frame_bytes);
        return FALSE;
    }
    if (held - LENGTH_BYTES < length)
        return TRUE;

    g_autoptr(GError) reason = NULL;
    /* A frame holds its payload once, and little else. */
    g_autoptr(Berth__Frame) frame = (Berth__Frame *)berth_message_unpack_limited(
        &berth__frame__descriptor, at + LENGTH_BYTES, length, 65536 + 4 * (gsize)length, NULL,
        &reason);
    const char *fault = frame != NULL ? find_fault(frame) : reason->message;
    if (fault != NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PROTOCOL, "it sent what is no frame: %s",
                    fault);
        return FALSE;
    }
    reader->start += LENGTH_BYTES + length;
    *out_frame = g_steal_pointer(&frame);
    return TRUE;
}
