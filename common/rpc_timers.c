/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the time limits of a connection: HELLO in time, signs of life, an orderly end in time. */
#include "common/rpc_internal.h"

#include "common/error.h"

GSource *berth_rpc_timer_start(GMainContext *context, guint msec, GSourceFunc func, gpointer data)
{
    GSource *timer = g_timeout_source_new(msec);
    g_source_set_callback(timer, func, data, NULL);
    g_source_attach(timer, context);
    return timer;
}

void berth_rpc_timer_clear(GSource **timer)
{
    if (*timer == NULL)
        return;
    g_source_destroy(*timer);
    g_clear_pointer(timer, g_source_unref);
}

/* A timer never outlives the peer: all are cleared at its end. */
void berth_rpc_timers_clear(BerthRpcPeer *peer)
{
    berth_rpc_poll_timer_stop(&peer->hello_timer);
    berth_rpc_poll_timer_stop(&peer->keepalive_timer);
    berth_rpc_poll_timer_stop(&peer->frame_timer);
}

static void on_hello_late(gpointer data)
{
    BerthRpcPeer *peer = data;
    berth_rpc_peer_fail(peer,
                        g_error_new(BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                                    "%s sent no HELLO within %u ms", peer->identity.description,
                                    peer->limits.hello_timeout_msec));
}

static void on_drain_late(gpointer data)
{
    BerthRpcPeer *peer = data;
    berth_rpc_peer_fail(peer, g_error_copy(peer->reason));
}

void berth_rpc_timers_start(BerthRpcPeer *peer)
{
    berth_rpc_poll_timer_start(peer->poll, &peer->hello_timer, peer->limits.hello_timeout_msec,
                               on_hello_late, peer);
}

void berth_rpc_timers_drain(BerthRpcPeer *peer)
{
    berth_rpc_timers_clear(peer);
    berth_rpc_poll_timer_start(peer->poll, &peer->hello_timer, peer->limits.hello_timeout_msec,
                               on_drain_late, peer);
}

/* --- a frame that does not come to its end: in ticks, as the keepalive ----------------------- */

#define FRAME_TICKS 4u

static void on_frame_tick(gpointer data)
{
    BerthRpcPeer *peer = data;
    if (++peer->frame_ticks < FRAME_TICKS)
        return;
    berth_rpc_peer_fail(peer,
                        g_error_new(BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                                    "closed the connection to %s: it stopped in the middle "
                                    "of a frame for %u ms",
                                    peer->identity.description, peer->limits.frame_timeout_msec));
}

void berth_rpc_timers_frame(BerthRpcPeer *peer, gboolean inside)
{
    peer->frame_ticks = 0;
    if (!inside)
        berth_rpc_poll_timer_stop(&peer->frame_timer);
    else if (peer->frame_timer.place == NULL)
        berth_rpc_poll_timer_start(peer->poll, &peer->frame_timer,
                                   MAX(peer->limits.frame_timeout_msec / FRAME_TICKS, 1),
                                   on_frame_tick, peer);
}

/* --- keepalive: in ticks, not by the clock. A loop that stood still for a while ticks once then, and
 * reads what came meanwhile, before it gives up on everybody at once. -------------------------- */

static void ping(BerthRpcPeer *peer)
{
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__PING;
    if (!berth_rpc_out_is_high(peer))
        berth_rpc_out_send(peer, &frame);
}

static void on_keepalive(gpointer data)
{
    BerthRpcPeer *peer = data;
    guint interval_msec = peer->limits.keepalive_interval_msec;
    guint timeout_msec = peer->limits.keepalive_timeout_msec;
    peer->silent_ticks++;
    if (timeout_msec > 0 && (guint64)peer->silent_ticks * peer->keepalive_msec >= timeout_msec) {
        berth_rpc_peer_fail(peer, g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                                              "no sign of life from %s for %u ms",
                                              peer->identity.description, timeout_msec));
        return;
    }
    if (interval_msec > 0 && peer->silent_ticks % (interval_msec / peer->keepalive_msec) == 0)
        ping(peer);
}

void berth_rpc_timers_hello_done(BerthRpcPeer *peer)
{
    berth_rpc_poll_timer_stop(&peer->hello_timer);
    guint interval_msec = peer->limits.keepalive_interval_msec;
    guint timeout_msec = peer->limits.keepalive_timeout_msec;
    if (interval_msec == 0 && timeout_msec == 0)
        return;
    /* Often enough that neither is late by more than a quarter. */
    guint shorter = interval_msec == 0  ? timeout_msec
                    : timeout_msec == 0 ? interval_msec
                                        : MIN(interval_msec, timeout_msec);
    peer->keepalive_msec = MAX(shorter / 4, 1);
    berth_rpc_poll_timer_start(peer->poll, &peer->keepalive_timer, peer->keepalive_msec,
                               on_keepalive, peer);
}
