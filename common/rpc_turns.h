/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose request is begun next where more come than can be dealt with at once: that of the user who has had fewest of late
 * (least attained service: Nuyens and Wierman, "The Foreground-Background queue: a survey", 2008), whatever the number of his
 * connections and however fast he asks. So who asks for little is served as if the others were not there, and those who ask
 * for much share what is left alike. A user may also have a rate, as a token bucket. What waits is not read on, so that the other
 * end waits as well.
 *
 * Internal to common's RPC; of one thread. */

#include "common/rpc.h"

/* A user's part in it; within the budget of his connections. Zeroed, he takes no turns. */
typedef struct {
    BerthRpcTurns *turns;
    guint n_open;         /* calls that are being dealt with */
    GQueue waiting;       /* of BerthRpcPeer: each holds a request */
    GSequenceIter *place; /* among those who wait; NULL = it does not */
    GList link;           /* among the dry */
    gint64 listed_usec;   /* monotonic: since when it is there */
    gboolean is_dry;
    gdouble served;     /* how much it was of late: see rpc_turns.c */
    guint rate;         /* requests a second; 0 = any */
    gdouble tokens;     /* requests that may begin now; a second's at most */
    gint64 filled_usec; /* monotonic: when TOKENS was right */
} BerthRpcTurnUser;

/* A call's part in it; within the call. Zeroed, it takes none. */
typedef struct {
    BerthRpcTurnUser *user; /* NULL = it counts no more */
    gint64 began_usec;
    GList link;
} BerthRpcTurn;

void berth_rpc_turn_user_init(BerthRpcTurnUser *user, BerthRpcTurns *turns, guint rate);
/* None of his connections is there any more. */
void berth_rpc_turn_user_clear(BerthRpcTurnUser *user);

/* FALSE: PEER, of USER, has to hold its request, and is pumped when it is its turn. */
gboolean berth_rpc_turn_may_begin(BerthRpcTurnUser *user, BerthRpcPeer *peer);
/* PEER does not wait any more. */
void berth_rpc_turn_leave(BerthRpcTurnUser *user, BerthRpcPeer *peer);

/* A call of USER begins. */
void berth_rpc_turn_begin(BerthRpcTurnUser *user, BerthRpcTurn *turn);
/* It is answered, or waits for something else than this process from now on. Any number of times. */
void berth_rpc_turn_end(BerthRpcTurn *turn);
