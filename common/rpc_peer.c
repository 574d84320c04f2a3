/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the life of a connection: reading, dispatch of frames by kind, and its end. Does not own
 * the queue of what is written (rpc_out.c), timers (rpc_timers.c) or calls (rpc_call_*.c).
 *
 * Invariants: one read is pending at most, and none while a frame is held or there is no room for
 * the one that has begun; all that the owner is
 * told about the end comes from the loop, never from inside a call of the owner's. */
#include <config.h>

#include "common/rpc_internal.h"

#include "common/error.h"
#include "common/message.h"

static void start_read(BerthRpcPeer *peer);

/* --- references --------------------------------------------------------------------------- */

BerthRpcPeer *berth_rpc_peer_hold(BerthRpcPeer *peer)
{
    peer->refs++;
    return peer;
}

void berth_rpc_peer_drop(BerthRpcPeer *peer)
{
    if (--peer->refs > 0)
        return;
    berth_rpc_timers_clear(peer);
    berth_rpc_out_clear(peer);
    berth_rpc_budget_leave(peer);
    berth_rpc_frame_free(peer->held);
    berth_rpc_frame_reader_free(peer->reader);
    g_hash_table_unref(peer->calls_out);
    g_hash_table_unref(peer->calls_in);
    g_queue_clear(&peer->waiting);
    berth_rpc_identity_clear(&peer->identity);
    g_clear_error(&peer->refusal);
    g_clear_error(&peer->reason);
    g_free(peer->version);
    berth_rpc_watch_end(&peer->watch);
    g_socket_close(peer->socket, NULL);
    g_object_unref(peer->socket);
    g_object_unref(peer->stream);
    berth_rpc_poll_unref(peer->poll);
    g_main_context_unref(peer->context);
    g_free(peer);
}

BerthRpcPeer *berth_rpc_peer_ref(BerthRpcPeer *peer)
{
    peer->owners++;
    return peer;
}

void berth_rpc_peer_unref(BerthRpcPeer *peer)
{
    if (peer == NULL || --peer->owners > 0)
        return;
    peer->closed_func = NULL;
    peer->hello_func = NULL;
    berth_rpc_peer_set_data(peer, NULL, NULL);
    if (peer->state == PEER_OPEN)
        berth_rpc_peer_close(peer, TRUE);
    berth_rpc_peer_drop(peer);
}

/* --- the end ------------------------------------------------------------------------------ */

/* From the loop, once: tells everybody. */
static gboolean on_closed(gpointer data)
{
    BerthRpcPeer *peer = data;
    berth_rpc_calls_out_fail_all(peer);
    berth_rpc_calls_in_cancel_all(peer);
    if (peer->closed_func != NULL)
        peer->closed_func(peer, peer->reason, peer->closed_data);
    return G_SOURCE_REMOVE;
}

static void drop_peer(gpointer data)
{
    berth_rpc_peer_drop(data);
}

static void end_io(BerthRpcPeer *peer)
{
    berth_rpc_watch_end(&peer->watch);
    g_socket_close(peer->socket, NULL);
    gboolean *const pending[] = {&peer->reading, &peer->writing};
    for (gsize i = 0; i < G_N_ELEMENTS(pending); i++) {
        if (*pending[i]) {
            *pending[i] = FALSE;
            berth_rpc_peer_drop(peer);
        }
    }
}

void berth_rpc_peer_fail(BerthRpcPeer *peer, GError *reason)
{
    if (peer->state == PEER_CLOSED) {
        g_error_free(reason);
        return;
    }
    peer->state = PEER_CLOSED;
    if (peer->reason == NULL)
        peer->reason = reason;
    else
        g_error_free(reason);
    berth_rpc_timers_clear(peer);
    berth_rpc_budget_wait_no_more(peer);
    berth_rpc_out_clear(peer);

    g_autoptr(GSource) source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, on_closed, berth_rpc_peer_hold(peer), drop_peer);
    g_source_attach(source, peer->context);
    end_io(peer);
}

void berth_rpc_peer_finish(BerthRpcPeer *peer, GError *reason)
{
    if (peer->state != PEER_OPEN) {
        g_error_free(reason);
        return;
    }
    peer->state = PEER_CLOSING;
    peer->reason = reason;
    g_clear_pointer(&peer->held, berth_rpc_frame_free);
    berth_rpc_budget_wait_no_more(peer);
    berth_rpc_timers_drain(peer);
    if (!peer->dispatching && !peer->reading)
        start_read(peer);
    berth_rpc_out_kick(peer);
}

void berth_rpc_peer_close(BerthRpcPeer *peer, gboolean abort)
{
    if (peer->state == PEER_CLOSED || (!abort && peer->state != PEER_OPEN))
        return;
    GError *reason =
        g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "the connection to %s was closed by this side", peer->identity.description);
    if (abort)
        berth_rpc_peer_fail(peer, reason);
    else
        berth_rpc_peer_finish(peer, reason);
}

void berth_rpc_peer_refuse(BerthRpcPeer *peer, const GError *reason)
{
    g_clear_error(&peer->refusal);
    peer->refusal = g_error_copy(reason);
}

gboolean berth_rpc_peer_is_closed(BerthRpcPeer *peer)
{
    return peer->state != PEER_OPEN;
}

/* --- frames ------------------------------------------------------------------------------- */

static void fail_protocol(BerthRpcPeer *peer, const char *what)
{
    berth_rpc_peer_fail(peer, g_error_new(BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                                          "closed the connection to %s: %s",
                                          peer->identity.description, what));
}

gboolean berth_rpc_peer_has_hello(const BerthRpcPeer *peer)
{
    return peer->version != NULL;
}

static void send_hello(BerthRpcPeer *peer)
{
    Berth__Hello hello = BERTH__HELLO__INIT;
    hello.protocol = BERTH_RPC_PROTOCOL;
    hello.protocol_min = BERTH_RPC_PROTOCOL_MIN;
    hello.version = (char *)PACKAGE_VERSION;
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__HELLO;
    frame.hello = &hello;
    berth_rpc_out_send(peer, &frame);
}

static void handle_hello(BerthRpcPeer *peer, const Berth__Hello *hello)
{
    if (berth_rpc_peer_has_hello(peer)) {
        fail_protocol(peer, "it sent a second HELLO");
        return;
    }
    if (hello->protocol < BERTH_RPC_PROTOCOL_MIN || hello->protocol_min > BERTH_RPC_PROTOCOL) {
        /* Each side finds this out by itself, so ours must reach the other end. */
        berth_rpc_peer_finish(
            peer,
            g_error_new(BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                        "cannot talk to %s: it is Berth %.32s with protocol %u to %u, this is "
                        "Berth %s with protocol %u to %u; upgrade the older one",
                        peer->identity.description, hello->version, hello->protocol_min,
                        hello->protocol, PACKAGE_VERSION, BERTH_RPC_PROTOCOL_MIN,
                        BERTH_RPC_PROTOCOL));
        return;
    }
    peer->version = g_strndup(hello->version, 64);
    berth_rpc_timers_hello_done(peer);
    berth_rpc_out_kick(peer);
    BerthRpcClosedFunc func = peer->hello_func;
    peer->hello_func = NULL;
    if (func != NULL)
        func(peer, NULL, peer->hello_data);
}

static void dispatch(BerthRpcPeer *peer, Berth__Frame *frame)
{
    if (frame->kind != BERTH__FRAME__KIND__HELLO && !berth_rpc_peer_has_hello(peer)) {
        fail_protocol(peer, "it did not begin with HELLO");
        return;
    }
    Berth__Frame pong = BERTH__FRAME__INIT;
    switch (frame->kind) {
    case BERTH__FRAME__KIND__HELLO:
        handle_hello(peer, frame->hello);
        break;
    case BERTH__FRAME__KIND__REQUEST:
        berth_rpc_calls_in_request(peer, frame);
        break;
    case BERTH__FRAME__KIND__CANCEL:
        berth_rpc_calls_in_cancel(peer, frame->call_id);
        break;
    case BERTH__FRAME__KIND__PING:
        pong.kind = BERTH__FRAME__KIND__PONG;
        berth_rpc_out_send(peer, &pong);
        break;
    case BERTH__FRAME__KIND__PONG:
        break;
    default: /* RESPONSE, ITEM, END, FAILURE: the reader lets no other through */
        if (frame->call_id == 0 || frame->call_id > peer->last_call_id)
            fail_protocol(peer, "it answered a call that was never made");
        else
            berth_rpc_calls_out_reply(peer, frame);
        break;
    }
}

static void on_over(gpointer data)
{
    BerthRpcPeer *peer = berth_rpc_peer_hold(data);
    if (peer->state == PEER_OPEN && !peer->reading)
        berth_rpc_peer_lost(peer, NULL);
    berth_rpc_peer_drop(peer);
}

/* Is there room for BYTES more? Else PEER reads nothing until there is; but if the other end goes meanwhile, nobody waits for it. */
static gboolean has_room(BerthRpcPeer *peer, gsize bytes, gboolean is_call)
{
    if (berth_rpc_budget_has_room(peer, bytes, is_call))
        return TRUE;
    berth_rpc_watch_wait_over(&peer->watch, on_over, peer);
    return FALSE;
}

/* A peer that does not take its replies gets no more of them to wait for, and a request is not
 * begun before there is room for its answer. */
static gboolean must_wait(BerthRpcPeer *peer, const Berth__Frame *frame)
{
    gboolean is_request = frame->kind == BERTH__FRAME__KIND__REQUEST;
    if (!is_request && frame->kind != BERTH__FRAME__KIND__PING)
        return FALSE;
    if (berth_rpc_out_is_high(peer))
        return TRUE;
    gsize room = is_request ? frame->payload.len + berth_rpc_calls_in_answer_room(peer, frame) : 0;
    if (!has_room(peer, room, TRUE))
        return TRUE;
    return is_request && !berth_rpc_budget_has_turn(peer);
}

static void dispatch_all(BerthRpcPeer *peer)
{
    while (peer->state == PEER_OPEN) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Berth__Frame) frame = g_steal_pointer(&peer->held);
        if (frame == NULL && !berth_rpc_frame_reader_next(peer->reader, &frame, &error)) {
            fail_protocol(peer, error->message);
            return;
        }
        if (frame == NULL)
            return;
        if (must_wait(peer, frame)) {
            peer->held = g_steal_pointer(&frame);
            berth_rpc_timers_frame(peer, FALSE);
            return;
        }
        dispatch(peer, frame);
    }
}

void berth_rpc_peer_pump(BerthRpcPeer *peer)
{
    if (peer->dispatching)
        return;
    berth_rpc_peer_hold(peer);
    peer->dispatching = TRUE;
    peer->has_begun = FALSE;
    dispatch_all(peer);
    peer->dispatching = FALSE;
    if (peer->held == NULL && peer->state != PEER_CLOSED && !peer->reading)
        start_read(peer);
    berth_rpc_peer_drop(peer);
}

/* --- reading ------------------------------------------------------------------------------ */

void berth_rpc_peer_lost(BerthRpcPeer *peer, const GError *error)
{
    const char *who = peer->identity.description;
    GError *reason;
    if (!peer->identity.is_unix && !berth_rpc_peer_has_hello(peer))
        /* A server that refuses a certificate just closes: GLib sends no alert. */
        reason = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                             "%s ended the connection before its HELLO%s%s; if it refused this "
                             "side's certificate, its log says why",
                             who, error != NULL ? ": " : "", error != NULL ? error->message : "");
    else if (error != NULL)
        reason = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "lost the connection to %s: %s",
                             who, error->message);
    else if (berth_rpc_frame_reader_is_inside(peer->reader))
        reason = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                             "%s closed the connection in the middle of a frame", who);
    else
        reason = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "%s closed the connection", who);
    berth_rpc_peer_fail(peer, reason);
}

static void on_readable(gpointer data)
{
    BerthRpcPeer *peer = data;
    g_autoptr(GError) error = NULL;
    gsize room = 0;
    if (peer->state != PEER_OPEN) /* only waits for the end */
        berth_rpc_frame_reader_discard(peer->reader);
    guint8 *space = berth_rpc_frame_reader_space(peer->reader, &room);
    gssize bytes = g_pollable_input_stream_read_nonblocking(
        G_POLLABLE_INPUT_STREAM(g_io_stream_get_input_stream(peer->stream)), space, room, NULL,
        &error);
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK)) {
        berth_rpc_watch_wait(&peer->watch, &peer->watch.in, FALSE, on_readable, peer);
        return;
    }
    peer->reading = FALSE;
    if (bytes <= 0) {
        berth_rpc_peer_lost(peer, error);
    } else {
        peer->silent_ticks = 0;
        berth_rpc_frame_reader_added(peer->reader, (gsize)bytes);
        berth_rpc_peer_pump(peer);
    }
    berth_rpc_peer_drop(peer);
}

/* Is there room for the frame that has begun? Else it is read on when there is. */
static gboolean take_frame_room(BerthRpcPeer *peer)
{
    gsize wanted = berth_rpc_frame_reader_wanted(peer->reader);
    if (wanted > peer->frame_room && !has_room(peer, wanted - peer->frame_room, FALSE)) {
        berth_rpc_timers_frame(peer, FALSE);
        return FALSE;
    }
    peer->frame_room = wanted;
    berth_rpc_budget_update(peer);
    berth_rpc_timers_frame(peer, berth_rpc_frame_reader_is_inside(peer->reader));
    return TRUE;
}

/* It is tried before the socket is waited for: TLS may have read on already. */
static void start_read(BerthRpcPeer *peer)
{
    if (peer->state == PEER_OPEN && !take_frame_room(peer))
        return;
    peer->reading = TRUE;
    berth_rpc_watch_wait(&peer->watch, &peer->watch.in, TRUE, on_readable,
                         berth_rpc_peer_hold(peer));
}

/* --- making ------------------------------------------------------------------------------- */

static BerthRpcLimits complete_limits(const BerthRpcLimits *limits)
{
    const BerthRpcLimits defaults = BERTH_RPC_LIMITS_DEFAULT;
    if (limits == NULL)
        return defaults;
    BerthRpcLimits complete = *limits;
    if (complete.max_frame_bytes == 0)
        complete.max_frame_bytes = defaults.max_frame_bytes;
    if (complete.queue_high_bytes == 0)
        complete.queue_high_bytes = defaults.queue_high_bytes;
    if (complete.max_open_calls == 0)
        complete.max_open_calls = defaults.max_open_calls;
    if (complete.hello_timeout_msec == 0)
        complete.hello_timeout_msec = defaults.hello_timeout_msec;
    if (complete.frame_timeout_msec == 0)
        complete.frame_timeout_msec = defaults.frame_timeout_msec;
    return complete;
}

BerthRpcPeer *berth_rpc_peer_new(GIOStream *stream, ProtobufCService *const *services,
                                 const BerthRpcLimits *limits)
{
    BerthRpcPeer *peer = g_new0(BerthRpcPeer, 1);
    peer->refs = 1;
    peer->owners = 1;
    peer->context = g_main_context_ref_thread_default();
    peer->stream = g_object_ref(stream);
    peer->socket = g_object_ref(berth_rpc_stream_socket(stream));
    peer->poll = berth_rpc_poll_ref(peer->context);
    berth_rpc_watch_start(&peer->watch, peer->poll, g_socket_get_fd(peer->socket));
    peer->limits = complete_limits(limits);
    peer->services = services;
    peer->reader = berth_rpc_frame_reader_new(peer->limits.max_frame_bytes);
    g_queue_init(&peer->out);
    g_queue_init(&peer->waiting);
    berth_rpc_identity_read(stream, peer->socket, &peer->identity);
    berth_rpc_calls_out_init(peer);
    berth_rpc_calls_in_init(peer);
    berth_rpc_timers_start(peer);
    send_hello(peer);
    start_read(peer);
    return peer;
}

/* --- looking ------------------------------------------------------------------------------ */

void berth_rpc_peer_set_closed_func(BerthRpcPeer *peer, BerthRpcClosedFunc func, gpointer user_data)
{
    peer->closed_func = func;
    peer->closed_data = user_data;
}

void berth_rpc_peer_set_hello_func(BerthRpcPeer *peer, BerthRpcClosedFunc func, gpointer user_data)
{
    peer->hello_func = func;
    peer->hello_data = user_data;
}

const BerthRpcIdentity *berth_rpc_peer_identity(BerthRpcPeer *peer)
{
    return &peer->identity;
}

const char *berth_rpc_peer_version(BerthRpcPeer *peer)
{
    return peer->version != NULL ? peer->version : "";
}

void berth_rpc_peer_set_data(BerthRpcPeer *peer, gpointer data, GDestroyNotify destroy)
{
    gpointer old = peer->data;
    GDestroyNotify old_destroy = peer->data_destroy;
    peer->data = data;
    peer->data_destroy = destroy;
    if (old != NULL && old_destroy != NULL)
        old_destroy(old);
}

gpointer berth_rpc_peer_get_data(BerthRpcPeer *peer)
{
    return peer->data;
}
