/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory that the connections of one user may take together: who waits for room in it, and
 * who is ended because it keeps room from the others without taking its answers. Whose turn it is, of several users, is
 * rpc_turns.c's.
 *
 * Invariants: `used` is the sum of what its peers are charged with; a peer is in `waiting` only
 * while it reads nothing for want of room; a request that needs more than there is gets its turn
 * once no call is open and no answer waits. */
#include "common/rpc_internal.h"

#include "common/error.h"

/* While somebody waits, an answer has to make some progress in this time. */
#define STALL_MSEC 10000u

struct BerthRpcBudget {
    guint refs;
    gsize max_bytes;
    gsize used;
    gsize busy; /* of it: calls and their answers, which end by themselves */
    guint stall_msec;
    GMainContext *context;
    GPtrArray *peers; /* of BerthRpcPeer: charged by this */
    GQueue waiting;   /* of BerthRpcPeer */
    GSource *wake;
    GSource *stall;
    BerthRpcTurnUser turns;
};

BerthRpcBudget *berth_rpc_budget_new(gsize max_bytes)
{
    BerthRpcBudget *budget = g_new0(BerthRpcBudget, 1);
    budget->refs = 1;
    budget->max_bytes = max_bytes;
    budget->stall_msec = STALL_MSEC;
    budget->context = g_main_context_ref_thread_default();
    budget->peers = g_ptr_array_new();
    g_queue_init(&budget->waiting);
    return budget;
}

void berth_rpc_budget_take_turns(BerthRpcBudget *budget, BerthRpcTurns *turns, guint per_sec)
{
    g_return_if_fail(budget->turns.turns == NULL && budget->peers->len == 0);
    berth_rpc_turn_user_init(&budget->turns, turns, per_sec);
}

void berth_rpc_budget_set_stall(BerthRpcBudget *budget, guint stall_msec)
{
    budget->stall_msec = stall_msec;
}

gsize berth_rpc_budget_used(const BerthRpcBudget *budget)
{
    return budget->used;
}

BerthRpcBudget *berth_rpc_budget_ref(BerthRpcBudget *budget)
{
    budget->refs++;
    return budget;
}

void berth_rpc_budget_unref(BerthRpcBudget *budget)
{
    if (--budget->refs > 0)
        return;
    berth_rpc_turn_user_clear(&budget->turns);
    berth_rpc_timer_clear(&budget->wake);
    berth_rpc_timer_clear(&budget->stall);
    g_ptr_array_unref(budget->peers);
    g_queue_clear(&budget->waiting);
    g_main_context_unref(budget->context);
    g_free(budget);
}

/* --- waiting ------------------------------------------------------------------------------ */

static gboolean on_wake(gpointer data)
{
    BerthRpcBudget *budget = berth_rpc_budget_ref(data);
    berth_rpc_timer_clear(&budget->wake);
    /* One round: who finds no room queues again, behind the others. */
    for (guint n = g_queue_get_length(&budget->waiting); n > 0; n--) {
        BerthRpcPeer *peer = g_queue_pop_head(&budget->waiting);
        if (peer == NULL)
            break;
        peer->waits_for_budget = FALSE;
        berth_rpc_peer_pump(peer);
    }
    if (g_queue_is_empty(&budget->waiting))
        berth_rpc_timer_clear(&budget->stall);
    berth_rpc_budget_unref(budget);
    return G_SOURCE_REMOVE;
}

static gboolean on_stall(gpointer data)
{
    BerthRpcBudget *budget = berth_rpc_budget_ref(data);
    for (guint i = 0; i < budget->peers->len; i++) {
        BerthRpcPeer *peer = g_ptr_array_index(budget->peers, i);
        gboolean is_stalled = peer->out_bytes > 0 && peer->written_bytes == peer->stall_mark;
        peer->stall_mark = peer->written_bytes;
        if (is_stalled)
            berth_rpc_peer_fail(peer, g_error_new(BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                                                  "closed the connection to %s: it does not take "
                                                  "its answers, and other commands of its user "
                                                  "wait for the room that these take",
                                                  peer->identity.description));
    }
    berth_rpc_budget_unref(budget);
    return G_SOURCE_CONTINUE;
}

static void watch_for_stalls(BerthRpcBudget *budget)
{
    if (budget->stall != NULL)
        return;
    for (guint i = 0; i < budget->peers->len; i++) {
        BerthRpcPeer *peer = g_ptr_array_index(budget->peers, i);
        peer->stall_mark = peer->written_bytes;
    }
    budget->stall = berth_rpc_timer_start(budget->context, budget->stall_msec, on_stall, budget);
}

static gboolean fits(const BerthRpcBudget *budget, gsize bytes)
{
    return budget->used < budget->max_bytes && bytes <= budget->max_bytes - budget->used;
}

gboolean berth_rpc_budget_fits_frame(const BerthRpcPeer *peer, gsize bytes)
{
    return peer->budget == NULL || peer->budget->used == 0 || fits(peer->budget, bytes);
}

gboolean berth_rpc_budget_fits_call(const BerthRpcPeer *peer, gsize bytes)
{
    return peer->budget == NULL || peer->budget->busy == 0 || fits(peer->budget, bytes);
}

gboolean berth_rpc_budget_is_over(const BerthRpcPeer *peer)
{
    return peer->budget != NULL && peer->budget->used > peer->budget->max_bytes;
}

void berth_rpc_budget_wait(BerthRpcPeer *peer)
{
    if (peer->budget == NULL || peer->waits_for_budget)
        return;
    peer->waits_for_budget = TRUE;
    g_queue_push_tail(&peer->budget->waiting, peer);
    watch_for_stalls(peer->budget);
}

/* --- turns -------------------------------------------------------------------------------- */

gboolean berth_rpc_budget_has_turn(BerthRpcPeer *peer)
{
    return peer->budget == NULL || berth_rpc_turn_may_begin(&peer->budget->turns, peer);
}

void berth_rpc_budget_begin(BerthRpcPeer *peer, BerthRpcTurn *turn)
{
    if (peer->budget != NULL)
        berth_rpc_turn_begin(&peer->budget->turns, turn);
}

/* --- charging ----------------------------------------------------------------------------- */

void berth_rpc_budget_update(BerthRpcPeer *peer)
{
    BerthRpcBudget *budget = peer->budget;
    if (budget == NULL)
        return;
    gsize busy = peer->out_bytes + peer->calls_in_room + peer->calls_in_memory;
    gsize now = busy + peer->frame_room;
    gboolean is_less = now < peer->charged_bytes || busy < peer->charged_busy;
    budget->used = budget->used - peer->charged_bytes + now;
    budget->busy = budget->busy - peer->charged_busy + busy;
    peer->charged_bytes = now;
    peer->charged_busy = busy;
    if (is_less && !g_queue_is_empty(&budget->waiting) && budget->wake == NULL)
        budget->wake = berth_rpc_timer_start(budget->context, 0, on_wake, budget);
}

void berth_rpc_peer_set_budget(BerthRpcPeer *peer, BerthRpcBudget *budget)
{
    g_return_if_fail(peer->budget == NULL);
    peer->budget = berth_rpc_budget_ref(budget);
    g_ptr_array_add(budget->peers, peer);
    berth_rpc_budget_update(peer);
}

void berth_rpc_budget_leave(BerthRpcPeer *peer)
{
    BerthRpcBudget *budget = peer->budget;
    if (budget == NULL)
        return;
    if (peer->waits_for_budget)
        g_queue_remove(&budget->waiting, peer);
    berth_rpc_turn_leave(&budget->turns, peer);
    g_ptr_array_remove_fast(budget->peers, peer);
    peer->out_bytes = 0;
    peer->calls_in_room = 0;
    peer->calls_in_memory = 0;
    peer->frame_room = 0;
    berth_rpc_budget_update(peer);
    peer->budget = NULL;
    berth_rpc_budget_unref(budget);
}
