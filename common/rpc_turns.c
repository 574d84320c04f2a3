/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ring of users who wait for a turn, and the number of calls that are being dealt with.
 *
 * Invariants: a user is in the ring, or among the dry, exactly while a connection of his waits; nobody waits for a turn while
 * there is room, but until the loop comes around; a call that takes SLOW_MSEC waits for something else than this process
 * (a node, storage), and makes room while it does. */
#include "common/rpc_internal.h"

#include "common/rpc_turns.h"

#define SLOW_MSEC 100u
/* How often it is looked who has tokens again. */
#define FILL_MSEC 10u
/* Turns are given for so long before the loop looks at the sockets again, where somebody may wait who goes first. */
#define SLICE_USEC 1000
/* And when the loop has nothing else to do: answers that are on their way come first. One that always has waits no longer. */
#define IDLE_MSEC 5u

struct BerthRpcTurns {
    guint refs;
    GMainContext *context;
    guint open_max;
    GQueue open; /* BerthRpcTurn.link, the oldest first */
    GQueue ring; /* BerthRpcTurnUser.link: whose turn is next */
    GQueue dry;  /* BerthRpcTurnUser.link: who has no tokens */
    GSource *wake;
    GSource *late; /* does what WAKE is for */
    GSource *slow;
    GSource *fill;
    BerthRpcTurnsDryFunc dry_func;
    gpointer dry_data;
};

BerthRpcTurns *berth_rpc_turns_new(guint open_max)
{
    BerthRpcTurns *turns = g_new0(BerthRpcTurns, 1);
    turns->refs = 1;
    turns->context = g_main_context_ref_thread_default();
    turns->open_max = open_max;
    return turns;
}

void berth_rpc_turns_set_dry_func(BerthRpcTurns *turns, BerthRpcTurnsDryFunc func, gpointer data)
{
    turns->dry_func = func;
    turns->dry_data = data;
}

static BerthRpcTurns *turns_ref(BerthRpcTurns *turns)
{
    turns->refs++;
    return turns;
}

void berth_rpc_turns_unref(BerthRpcTurns *turns)
{
    if (turns == NULL || --turns->refs > 0)
        return;
    berth_rpc_timer_clear(&turns->wake);
    berth_rpc_timer_clear(&turns->late);
    berth_rpc_timer_clear(&turns->slow);
    berth_rpc_timer_clear(&turns->fill);
    g_main_context_unref(turns->context);
    g_free(turns);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static gboolean has_token(BerthRpcTurnUser *user)
{
    if (user->rate == 0)
        return TRUE;
    gint64 now_usec = g_get_monotonic_time();
    gdouble more = (gdouble)(now_usec - user->filled_usec) * user->rate / G_USEC_PER_SEC;
    user->tokens = MIN(user->tokens + more, (gdouble)user->rate);
    user->filled_usec = now_usec;
    return user->tokens >= 1;
}

static void take_token(BerthRpcTurnUser *user)
{
    if (user->rate != 0)
        user->tokens -= 1;
}

/* --- the ring --------------------------------------------------------------------------------- */

static void schedule(BerthRpcTurns *turns);

static gboolean has_room(const BerthRpcTurns *turns)
{
    return turns->open.length < turns->open_max;
}

static void unlist(BerthRpcTurnUser *user)
{
    if (user->is_in_ring)
        g_queue_unlink(&user->turns->ring, &user->link);
    if (user->is_dry)
        g_queue_unlink(&user->turns->dry, &user->link);
    user->is_in_ring = user->is_dry = FALSE;
}

/* Who has a connection that waits, and is in neither. */
static void list(BerthRpcTurnUser *user)
{
    BerthRpcTurns *turns = user->turns;
    user->link = (GList){.data = user};
    user->listed_usec = g_get_monotonic_time();
    user->is_dry = !has_token(user);
    user->is_in_ring = !user->is_dry;
    g_queue_push_tail_link(user->is_dry ? &turns->dry : &turns->ring, &user->link);
    schedule(turns);
}

/* Whose turn it is: the first. Others who have nothing under way may take all room there is, again and again: then it is who has
 * waited for SLOW_MSEC and has nothing under way either. NULL: nobody's. */
static BerthRpcTurnUser *next_user(const BerthRpcTurns *turns)
{
    BerthRpcTurnUser *user = turns->ring.head != NULL ? turns->ring.head->data : NULL;
    if (user == NULL || has_room(turns))
        return user;
    gboolean has_waited = g_get_monotonic_time() - user->listed_usec >= SLOW_MSEC * 1000;
    return has_waited && user->n_open == 0 ? user : NULL;
}

/* The connection of USER that has waited longest may begin one request: it is held for that. */
static void give_turn(BerthRpcTurnUser *user)
{
    BerthRpcPeer *peer = g_queue_pop_head(&user->waiting);
    unlist(user);
    take_token(user);
    peer->waits_for_turn = FALSE;
    peer->has_turn = TRUE;
    berth_rpc_peer_hold(peer);
    if (user->waiting.length > 0)
        list(user);
    berth_rpc_peer_pump(peer);
    peer->has_turn = FALSE; /* what it waits for now is not this */
    berth_rpc_peer_drop(peer);
}

static gboolean on_wake(gpointer data)
{
    BerthRpcTurns *turns = turns_ref(data);
    berth_rpc_timer_clear(&turns->wake);
    berth_rpc_timer_clear(&turns->late);
    gint64 end_usec = g_get_monotonic_time() + SLICE_USEC;
    BerthRpcTurnUser *user;
    while ((user = next_user(turns)) != NULL) {
        give_turn(user);
        if (g_get_monotonic_time() >= end_usec)
            break;
    }
    schedule(turns);
    berth_rpc_turns_unref(turns);
    return G_SOURCE_REMOVE;
}

static gboolean on_slow(gpointer data)
{
    BerthRpcTurns *turns = data;
    gint64 now_usec = g_get_monotonic_time();
    berth_rpc_timer_clear(&turns->slow);
    for (;;) {
        BerthRpcTurn *oldest = g_queue_peek_head(&turns->open);
        if (oldest == NULL || now_usec - oldest->began_usec < SLOW_MSEC * 1000)
            break;
        berth_rpc_turn_end(oldest);
    }
    schedule(turns);
    return G_SOURCE_REMOVE;
}

static gboolean on_fill(gpointer data)
{
    BerthRpcTurns *turns = data;
    berth_rpc_timer_clear(&turns->fill);
    for (guint n = turns->dry.length; n > 0; n--) {
        BerthRpcTurnUser *user = g_queue_peek_head(&turns->dry);
        unlist(user);
        list(user);
    }
    schedule(turns);
    return G_SOURCE_REMOVE;
}

static void schedule(BerthRpcTurns *turns)
{
    gboolean is_somebodys_turn = next_user(turns) != NULL;
    if (is_somebodys_turn && turns->wake == NULL) {
        turns->wake = berth_rpc_timer_start(turns->context, 0, on_wake, turns);
        g_source_set_priority(turns->wake, G_PRIORITY_DEFAULT_IDLE);
        turns->late = berth_rpc_timer_start(turns->context, IDLE_MSEC, on_wake, turns);
    }
    if (turns->ring.length > 0 && !is_somebodys_turn && turns->slow == NULL)
        turns->slow = berth_rpc_timer_start(turns->context, SLOW_MSEC, on_slow, turns);
    if (turns->dry.length > 0 && turns->fill == NULL)
        turns->fill = berth_rpc_timer_start(turns->context, FILL_MSEC, on_fill, turns);
}

/* --- users ------------------------------------------------------------------------------------ */

void berth_rpc_turn_user_init(BerthRpcTurnUser *user, BerthRpcTurns *turns, guint rate)
{
    *user = (BerthRpcTurnUser){
        .turns = turns_ref(turns),
        .rate = rate,
        .tokens = rate,
        .filled_usec = g_get_monotonic_time(),
    };
    g_queue_init(&user->waiting);
}

void berth_rpc_turn_user_clear(BerthRpcTurnUser *user)
{
    if (user->turns == NULL)
        return;
    g_assert(user->waiting.length == 0 && user->n_open == 0);
    unlist(user);
    g_clear_pointer(&user->turns, berth_rpc_turns_unref);
}

/* One request each time that something was read. Nobody is passed by; and who has nothing under way waits for nobody, as
 * there are not more of those than users. */
static gboolean is_free(const BerthRpcTurnUser *user, const BerthRpcPeer *peer)
{
    if (peer->has_begun || user->waiting.length > 0)
        return FALSE;
    return user->n_open == 0 || (user->turns->ring.length == 0 && has_room(user->turns));
}

static void wait_for_turn(BerthRpcTurnUser *user, BerthRpcPeer *peer)
{
    BerthRpcTurns *turns = user->turns;
    if (peer->waits_for_turn)
        return;
    peer->waits_for_turn = TRUE;
    g_queue_push_tail(&user->waiting, peer);
    if (user->is_in_ring || user->is_dry)
        return;
    list(user);
    if (user->is_dry && turns->dry_func != NULL)
        turns->dry_func(peer, user->rate, turns->dry_data);
}

gboolean berth_rpc_turn_may_begin(BerthRpcTurnUser *user, BerthRpcPeer *peer)
{
    if (user->turns == NULL)
        return TRUE;
    if (!peer->has_turn && !(is_free(user, peer) && has_token(user))) {
        wait_for_turn(user, peer);
        return FALSE;
    }
    if (!peer->has_turn)
        take_token(user);
    peer->has_turn = FALSE;
    peer->has_begun = TRUE;
    return TRUE;
}

void berth_rpc_turn_leave(BerthRpcTurnUser *user, BerthRpcPeer *peer)
{
    if (!peer->waits_for_turn)
        return;
    peer->waits_for_turn = FALSE;
    g_queue_remove(&user->waiting, peer);
    if (user->waiting.length == 0)
        unlist(user);
}

/* --- calls ------------------------------------------------------------------------------------ */

void berth_rpc_turn_begin(BerthRpcTurnUser *user, BerthRpcTurn *turn)
{
    if (user->turns == NULL)
        return;
    *turn = (BerthRpcTurn){user, g_get_monotonic_time(), {.data = turn}};
    user->n_open++;
    g_queue_push_tail_link(&user->turns->open, &turn->link);
}

void berth_rpc_turn_end(BerthRpcTurn *turn)
{
    BerthRpcTurnUser *user = g_steal_pointer(&turn->user);
    if (user == NULL)
        return;
    user->n_open--;
    g_queue_unlink(&user->turns->open, &turn->link);
    schedule(user->turns);
}
