/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a peer through the frame reader. The first byte says in what pieces they come. Each
 * frame that is taken reads back as itself. */
#include "common/message.h"
#include "common/rpc_frame.h"

#include <string.h>

#define MAX_FRAME_BYTES 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(BerthRpcFrameReader *reader, const uint8_t *data, size_t size)
{
    while (size > 0) {
        gsize room = 0;
        guint8 *space = berth_rpc_frame_reader_space(reader, &room);
        g_assert(room > 0);
        gsize bytes = MIN(room, size);
        memcpy(space, data, bytes);
        berth_rpc_frame_reader_added(reader, bytes);
        data += bytes;
        size -= bytes;
        if (size > 0 && room == bytes)
            return; /* full: frames must be taken out first; the rest is lost here */
    }
}

static void check_round_trip(const Berth__Frame *frame)
{
    g_autoptr(GBytes) encoded = berth_rpc_frame_encode(frame);
    g_autoptr(BerthRpcFrameReader) reader = berth_rpc_frame_reader_new(2 * MAX_FRAME_BYTES);
    gsize size = 0;
    const guint8 *bytes = g_bytes_get_data(encoded, &size);
    for (gsize at = 0; at < size;) {
        gsize room = 0;
        guint8 *space = berth_rpc_frame_reader_space(reader, &room);
        gsize piece = MIN(room, size - at);
        memcpy(space, bytes + at, piece);
        berth_rpc_frame_reader_added(reader, piece);
        at += piece;
    }
    g_autoptr(Berth__Frame) back = NULL;
    g_assert(berth_rpc_frame_reader_next(reader, &back, NULL) && back != NULL);
    g_assert(berth_message_equal(&back->base, &frame->base));
    g_assert(!berth_rpc_frame_reader_is_inside(reader));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(BerthRpcFrameReader) reader = berth_rpc_frame_reader_new(MAX_FRAME_BYTES);
    size_t step = size > 0 ? (size_t)data[0] + 1 : 1;
    for (size_t at = 1; at < size; at += step) {
        feed(reader, data + at, MIN(step, size - at));
        for (;;) {
            g_autoptr(Berth__Frame) frame = NULL;
            g_autoptr(GError) error = NULL;
            if (!berth_rpc_frame_reader_next(reader, &frame, &error)) {
                g_assert(error != NULL && frame == NULL);
                return 0;
            }
            if (frame == NULL)
                break;
            check_round_trip(frame);
        }
    }
    return 0;
}
