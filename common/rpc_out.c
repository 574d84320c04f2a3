/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the queue of frames to a peer and their writing. One write is pending at most; small frames
 * are joined into one. Until the other end's HELLO came, only our own HELLO is written, so that a
 * program of another protocol gets nothing that it could misread.
 *
 * Invariant: out_bytes is what was queued and not yet written. */
#include "common/rpc_internal.h"

#include "common/error.h"

#define JOIN_BYTES (64u * 1024u)

static void start_write(BerthRpcPeer *peer);

gboolean berth_rpc_out_is_high(const BerthRpcPeer *peer)
{
    return peer->out_bytes > peer->limits.queue_high_bytes ||
           (peer->out_bytes > 0 && berth_rpc_budget_is_over(peer));
}

void berth_rpc_out_clear(BerthRpcPeer *peer)
{
    g_queue_clear_full(&peer->out, (GDestroyNotify)g_bytes_unref);
    g_clear_pointer(&peer->chunk, g_bytes_unref);
    peer->out_bytes = 0;
    berth_rpc_budget_update(peer);
}

void berth_rpc_out_send(BerthRpcPeer *peer, const Berth__Frame *frame)
{
    if (peer->state != PEER_OPEN)
        return;
    GBytes *bytes = berth_rpc_frame_encode(frame);
    peer->out_bytes += g_bytes_get_size(bytes);
    g_queue_push_tail(&peer->out, bytes);
    berth_rpc_budget_update(peer);
    berth_rpc_out_kick(peer);
}

/* The head of the queue, with as many of the next ones as fit into JOIN_BYTES. */
static GBytes *take_chunk(BerthRpcPeer *peer)
{
    GBytes *first = g_queue_pop_head(&peer->out);
    GBytes *next = g_queue_peek_head(&peer->out);
    if (next == NULL || !berth_rpc_peer_has_hello(peer) ||
        g_bytes_get_size(first) + g_bytes_get_size(next) > JOIN_BYTES)
        return first;
    GByteArray *joined = g_byte_array_sized_new(JOIN_BYTES);
    while (first != NULL) {
        g_byte_array_append(joined, g_bytes_get_data(first, NULL), (guint)g_bytes_get_size(first));
        g_bytes_unref(first);
        next = g_queue_peek_head(&peer->out);
        gboolean fits = next != NULL && joined->len + g_bytes_get_size(next) <= JOIN_BYTES;
        first = fits ? g_queue_pop_head(&peer->out) : NULL;
    }
    return g_byte_array_free_to_bytes(joined);
}

/* All is written and nothing more will be: tell the other end, then wait for its own end. */
static void shut_down(BerthRpcPeer *peer)
{
    peer->state = PEER_DRAINING;
    g_autoptr(GError) error = NULL;
    if (!g_socket_shutdown(peer->socket, FALSE, TRUE, &error))
        berth_rpc_peer_fail(peer, g_steal_pointer(&error));
}

void berth_rpc_out_kick(BerthRpcPeer *peer)
{
    if (peer->writing || peer->state == PEER_CLOSED || peer->state == PEER_DRAINING)
        return;
    gboolean may_write = berth_rpc_peer_has_hello(peer) || !peer->hello_started;
    if (!g_queue_is_empty(&peer->out) && may_write) {
        peer->hello_started = TRUE;
        start_write(peer);
    } else if (peer->state == PEER_CLOSING) {
        shut_down(peer);
    }
}

static void resume_held(BerthRpcPeer *peer)
{
    if (peer->held == NULL || peer->state != PEER_OPEN)
        return;
    peer->silent_ticks = 0;
    berth_rpc_peer_pump(peer);
}

/* Room again: open streams go on, and so do requests, each first in turn, or the one would fill
 * the queue for ever before the other. */
static void handle_drained(BerthRpcPeer *peer)
{
    if (peer->out_bytes > peer->limits.queue_high_bytes / 2)
        return;
    peer->requests_first = !peer->requests_first;
    if (peer->requests_first)
        resume_held(peer);
    berth_rpc_calls_in_drained(peer);
    if (!peer->requests_first)
        resume_held(peer);
}

static void handle_written(BerthRpcPeer *peer, gsize bytes)
{
    if (peer->held != NULL) /* nothing is read: that it takes replies is its sign of life */
        peer->silent_ticks = 0;
    peer->chunk_written += bytes;
    peer->written_bytes += bytes;
    peer->out_bytes -= bytes;
    berth_rpc_budget_update(peer);
    if (peer->chunk_written < g_bytes_get_size(peer->chunk)) {
        start_write(peer);
        return;
    }
    g_clear_pointer(&peer->chunk, g_bytes_unref);
    berth_rpc_out_kick(peer);
    handle_drained(peer);
}

/* A write that would block is tried again with the same bytes: TLS asks for that. */
static void on_writable(gpointer data)
{
    BerthRpcPeer *peer = data;
    g_autoptr(GError) error = NULL;
    gsize size = 0;
    if (peer->chunk == NULL) {
        peer->chunk = take_chunk(peer);
        peer->chunk_written = 0;
    }
    const guint8 *bytes = g_bytes_get_data(peer->chunk, &size);
    gssize written = g_pollable_output_stream_write_nonblocking(
        G_POLLABLE_OUTPUT_STREAM(g_io_stream_get_output_stream(peer->stream)),
        bytes + peer->chunk_written, size - peer->chunk_written, NULL, &error);
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK)) {
        berth_rpc_watch_wait(&peer->watch, &peer->watch.out, FALSE, on_writable, peer);
        return;
    }
    peer->writing = FALSE;
    if (written < 0)
        berth_rpc_peer_lost(peer, error);
    else
        handle_written(peer, (gsize)written);
    berth_rpc_peer_drop(peer);
}

/* At the next turn, with what is queued until then. */
static void start_write(BerthRpcPeer *peer)
{
    peer->writing = TRUE;
    berth_rpc_watch_wait(&peer->watch, &peer->watch.out, TRUE, on_writable,
                         berth_rpc_peer_hold(peer));
}
