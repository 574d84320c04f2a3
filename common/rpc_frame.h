/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The codec of frames on a byte stream (common/rpc.h): a 4-byte big-endian length and a packed
 * berth.Frame. No I/O. Internal to common's RPC, and to its tests and fuzzer. */

#include "proto/berth.pb-c.h"

#include <glib.h>

void berth_rpc_frame_free(Berth__Frame *frame);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Berth__Frame, berth_rpc_frame_free)

/* FRAME with its length before it (transfer full). */
GBytes *berth_rpc_frame_encode(const Berth__Frame *frame);

/* Cuts a byte stream into frames. Its memory is bounded by one frame of MAX_FRAME_BYTES, and grows
 * only with bytes that came, not with lengths that were announced. */
typedef struct BerthRpcFrameReader BerthRpcFrameReader;
BerthRpcFrameReader *berth_rpc_frame_reader_new(guint32 max_frame_bytes);
void berth_rpc_frame_reader_free(BerthRpcFrameReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRpcFrameReader, berth_rpc_frame_reader_free)

/* Where to put the next bytes, at most *OUT_ROOM (never 0 once all whole frames were taken out);
 * valid until the next call of this. */
guint8 *berth_rpc_frame_reader_space(BerthRpcFrameReader *reader, gsize *out_room);
void berth_rpc_frame_reader_added(BerthRpcFrameReader *reader, gsize bytes);

/* The next frame in *OUT_FRAME (transfer full), NULL there when more bytes are needed. FALSE, and
 * no further use: PROTOCOL, the stream is not ours. Frames are well formed: their kind is known,
 * requests have a method and an id, HELLO has its body. */
gboolean berth_rpc_frame_reader_next(BerthRpcFrameReader *reader, Berth__Frame **out_frame,
                                     GError **error);
/* Forgets all bytes that it has. */
void berth_rpc_frame_reader_discard(BerthRpcFrameReader *reader);
/* Bytes of the frame that has begun, if they are more than what each reader has room for; else 0. */
gsize berth_rpc_frame_reader_wanted(const BerthRpcFrameReader *reader);
/* Does it hold a part of a frame? */
gboolean berth_rpc_frame_reader_is_inside(const BerthRpcFrameReader *reader);
