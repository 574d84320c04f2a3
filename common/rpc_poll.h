/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* What the connections of a main context wait for, behind one source of it: their sockets through epoll, their time limits
 * in a heap. A source for each of them would make every turn of the loop look at all that there are.
 *
 * Of one thread, that of the context. */

typedef struct BerthRpcPoll BerthRpcPoll;

/* That of CONTEXT, which is made with the first reference and goes with the last. */
BerthRpcPoll *berth_rpc_poll_ref(GMainContext *context);
void berth_rpc_poll_unref(BerthRpcPoll *poll);

typedef void (*BerthRpcPollFunc)(gpointer data);

/* --- sockets ---------------------------------------------------------------------------------- */

/* One direction of a socket. Within the structure of who waits; zeroed. */
typedef struct {
    BerthRpcPollFunc func; /* while it waits */
    gpointer data;
    GList link; /* in the poll's queue, before the socket is waited for */
    gboolean is_queued;
} BerthRpcDirection;

typedef struct {
    BerthRpcPoll *poll;
    int fd;         /* -1 = it is not watched */
    guint32 events; /* that epoll is to tell of */
    BerthRpcDirection in, out;
    BerthRpcPollFunc over; /* NULL: nobody waits for that alone */
    gpointer over_data;
} BerthRpcWatch;

/* Until it ends, FD is not closed. */
void berth_rpc_watch_start(BerthRpcWatch *watch, BerthRpcPoll *poll, int fd);
/* FUNC from the loop, once: at its next turn (NOW), or when DIRECTION of the socket is ready, or has failed. */
void berth_rpc_watch_wait(BerthRpcWatch *watch, BerthRpcDirection *direction, gboolean now,
                          BerthRpcPollFunc func, gpointer data);
/* FUNC from the loop, once: when both directions have ended, or the socket has failed, while neither is waited for. */
void berth_rpc_watch_wait_over(BerthRpcWatch *watch, BerthRpcPollFunc func, gpointer data);
/* Nothing is called any more. */
void berth_rpc_watch_end(BerthRpcWatch *watch);

/* --- time limits ------------------------------------------------------------------------------ */

/* Within the structure of who waits; zeroed. */
typedef struct {
    BerthRpcPoll *poll;
    gint64 due_usec;
    guint interval_msec;
    BerthRpcPollFunc func;
    gpointer data;
    GSequenceIter *place; /* NULL = it does not run */
} BerthRpcTimer;

/* FUNC every MSEC until it is stopped; after the loop stood still, once. One that runs is started anew. */
void berth_rpc_poll_timer_start(BerthRpcPoll *poll, BerthRpcTimer *timer, guint msec,
                                BerthRpcPollFunc func, gpointer data);
void berth_rpc_poll_timer_stop(BerthRpcTimer *timer);
