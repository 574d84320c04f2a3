/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of common's RPC know of each other. Not for use outside of common/rpc_*.c and
 * their tests. */

#include "common/rpc.h"
#include "common/rpc_frame.h"
#include "common/rpc_poll.h"
#include "common/rpc_turns.h"

typedef enum {
    PEER_OPEN,
    PEER_CLOSING,  /* writes what is queued, takes nothing new */
    PEER_DRAINING, /* has shut its side down, waits for the other's end */
    PEER_CLOSED,
} BerthRpcPeerState;

/* A peer lives as long as an owner or a pending operation holds it (refs). Its owners' part
 * (owners) closes it when the last one goes. */
struct BerthRpcPeer {
    guint refs;
    guint owners;
    GMainContext *context;
    GIOStream *stream;
    GSocket *socket; /* under the stream, maybe under TLS */
    BerthRpcPoll *poll;
    BerthRpcWatch watch;
    gboolean reading; /* it waits until it can; holds the peer */
    gboolean writing;
    BerthRpcLimits limits;
    BerthRpcIdentity identity;
    ProtobufCService *const *services;
    GError *refusal; /* of all requests, or NULL */

    BerthRpcPeerState state;
    GError *reason; /* why it ends; set from CLOSING on */
    BerthRpcClosedFunc closed_func;
    gpointer closed_data;
    BerthRpcClosedFunc hello_func; /* once, with reason NULL, when HELLO was exchanged */
    gpointer hello_data;
    gpointer data;
    GDestroyNotify data_destroy;
    char *version; /* the other end's; NULL until its HELLO */

    /* in */
    BerthRpcFrameReader *reader;
    Berth__Frame *held; /* asks for a reply, and waits until replies are taken */
    gboolean dispatching;
    gsize frame_room; /* of a large frame that is being read or held */

    /* rpc_budget.c; NULL = no limit but its own */
    BerthRpcBudget *budget;
    gsize charged_bytes;
    gsize charged_busy;
    GQueue *waits_in;        /* for room; or NULL */
    gsize wanted_bytes;      /* the last time that room was asked for */
    gboolean wants_call;     /* and that it was for a call, or for a frame */
    gboolean waits_for_turn; /* rpc_turns.c, and so the next two */
    gboolean has_turn;       /* for the request that it holds */
    gboolean has_begun;      /* a request, since something was read, or it got a turn */
    guint64 written_bytes;   /* in all */
    guint64 stall_mark,
        pool_mark; /* WRITTEN_BYTES when it was looked at, for its user and for all */

    /* out: rpc_out.c */
    GQueue out;      /* of GBytes: whole frames */
    gsize out_bytes; /* in `out` and in `chunk` */
    GBytes *chunk;   /* being written */
    gsize chunk_written;
    gboolean requests_first; /* when the queue has drained */
    gboolean hello_started;  /* our own HELLO is on its way */

    /* timers: rpc_timers.c */
    BerthRpcTimer hello_timer; /* for HELLO; later for the drain */
    BerthRpcTimer keepalive_timer;
    guint keepalive_msec;      /* of a tick of keepalive_timer */
    guint silent_ticks;        /* since the last sign of life */
    BerthRpcTimer frame_timer; /* while a part of a frame is there */
    guint frame_ticks;         /* since a byte of it came */

    /* calls */
    GHashTable *calls_out; /* id -> BerthRpcCallOut */
    guint64 last_call_id;
    GHashTable *calls_in; /* id -> BerthRpcCall, not cancelled */
    guint calls_in_open;  /* cancelled ones too, until they are ended */
    gsize calls_in_memory;
    gsize streams_memory; /* of it: of those that may not end by themselves */
    gsize calls_in_room;  /* kept for their answers */
    GQueue waiting;       /* of BerthRpcCall: wait for the queue to drain */
};

BerthRpcPeer *berth_rpc_peer_hold(BerthRpcPeer *peer); /* +1 on refs */
void berth_rpc_peer_drop(BerthRpcPeer *peer);
/* Ends the connection at once because of REASON (transfer full). Callbacks come from the loop. */
void berth_rpc_peer_fail(BerthRpcPeer *peer, GError *reason);
/* The connection ended by itself: at the end of the stream (ERROR NULL) or by an I/O error. */
void berth_rpc_peer_lost(BerthRpcPeer *peer, const GError *error);
/* Ends it after what is queued was written and the other end has seen it. */
void berth_rpc_peer_finish(BerthRpcPeer *peer, GError *reason);
/* Dispatches frames that came, then reads on. */
void berth_rpc_peer_pump(BerthRpcPeer *peer);
gboolean berth_rpc_peer_has_hello(const BerthRpcPeer *peer);
void berth_rpc_peer_set_hello_func(BerthRpcPeer *peer, BerthRpcClosedFunc func, gpointer user_data);

/* rpc_out.c: the queue */
void berth_rpc_out_send(BerthRpcPeer *peer, const Berth__Frame *frame);
void berth_rpc_out_kick(BerthRpcPeer *peer);
gboolean berth_rpc_out_is_high(const BerthRpcPeer *peer);
void berth_rpc_out_clear(BerthRpcPeer *peer);

/* rpc_budget.c */
/* Tells the budget what PEER takes now; after each change of out_bytes, calls_in_room,
 * calls_in_memory and frame_room. */
void berth_rpc_budget_update(BerthRpcPeer *peer);
gboolean berth_rpc_budget_is_over(const BerthRpcPeer *peer);
/* Is there room for BYTES more, of a call that is to begin, or else of a frame that has? FALSE: PEER waits, and is pumped once
 * there is. */
gboolean berth_rpc_budget_has_room(BerthRpcPeer *peer, gsize bytes, gboolean is_call);
/* For room, that is: PEER takes nothing more. */
void berth_rpc_budget_wait_no_more(BerthRpcPeer *peer);
/* May its request be begun? Else it is pumped when it is its user's turn. */
gboolean berth_rpc_budget_has_turn(BerthRpcPeer *peer);
/* TURN (zeroed) is that of a call on PEER, which begins. */
void berth_rpc_budget_begin(BerthRpcPeer *peer, BerthRpcTurn *turn);
void berth_rpc_budget_leave(BerthRpcPeer *peer);
/* For tests. */
void berth_rpc_budget_set_stall(BerthRpcBudget *budget, guint stall_msec);
void berth_rpc_pool_set_stall(BerthRpcPool *pool, guint stall_msec);
gsize berth_rpc_budget_used(const BerthRpcBudget *budget);
gsize berth_rpc_pool_used(const BerthRpcPool *pool);

/* rpc_timers.c */
GSource *berth_rpc_timer_start(GMainContext *context, guint msec, GSourceFunc func, gpointer data);
void berth_rpc_timer_clear(GSource **timer);
void berth_rpc_timers_start(BerthRpcPeer *peer);
void berth_rpc_timers_hello_done(BerthRpcPeer *peer);
void berth_rpc_timers_drain(BerthRpcPeer *peer);
void berth_rpc_timers_clear(BerthRpcPeer *peer);
/* INSIDE: a part of a frame is there and more of it is awaited; each call is a sign of progress. */
void berth_rpc_timers_frame(BerthRpcPeer *peer, gboolean inside);

/* rpc_call_out.c: replies to what this side asked */
void berth_rpc_calls_out_init(BerthRpcPeer *peer);
void berth_rpc_calls_out_reply(BerthRpcPeer *peer, const Berth__Frame *frame);
void berth_rpc_calls_out_fail_all(BerthRpcPeer *peer);

/* rpc_call_in.c: what the other side asks */
void berth_rpc_calls_in_init(BerthRpcPeer *peer);
void berth_rpc_calls_in_request(BerthRpcPeer *peer, Berth__Frame *frame);
/* Memory that the answer to FRAME, a request, may take. */
gsize berth_rpc_calls_in_answer_room(const BerthRpcPeer *peer, const Berth__Frame *frame);
void berth_rpc_calls_in_cancel(BerthRpcPeer *peer, guint64 call_id);
void berth_rpc_calls_in_cancel_all(BerthRpcPeer *peer);
void berth_rpc_calls_in_drained(BerthRpcPeer *peer);

/* rpc_identity.c */
void berth_rpc_identity_read(GIOStream *stream, GSocket *socket, BerthRpcIdentity *identity);
void berth_rpc_identity_clear(BerthRpcIdentity *identity);
/* (transfer none) the socket under STREAM */
GSocket *berth_rpc_stream_socket(GIOStream *stream);
/* "10.0.0.2:40112" (transfer full) */
char *berth_rpc_address_text(GSocketAddress *address);
