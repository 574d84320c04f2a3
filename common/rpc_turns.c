/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of users who wait for a turn, and the number of calls that are being dealt with.
 *
 * Invariants: a user is in that order, or among the dry, exactly while a connection of his waits; nobody waits for a turn while
 * there is room, but until the loop comes around; a call that takes SLOW_MSEC waits for something else than this process
 * (a node, storage), and makes room while it does.
 *
 * What a user was served is the number of his requests, each of which counts for half as much HALF_LIFE_USEC after it began.
 * It is kept as the instant from which one request alone would have come to so little by now: that stands still while nothing is
 * begun, so that the order of those who wait need not be looked at again as time passes (forward decay: Cormode et al.,
 * 2009). */
#include "common/rpc_internal.h"

#include "common/rpc_turns.h"

#include <math.h>

/* As long as somebody remembers that another one made him wait. */
#define HALF_LIFE_USEC 1000000.0
#define SLOW_MSEC      100u
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
    GQueue open;      /* BerthRpcTurn.link, the oldest first */
    GSequence *order; /* BerthRpcTurnUser: who waits, whose turn is next first */
    GQueue dry;       /* BerthRpcTurnUser.link: who has no tokens */
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
    turns->order = g_sequence_new(NULL);
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
    g_sequence_free(turns->order);
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

/* --- the order -------------------------------------------------------------------------------- */

static void schedule(BerthRpcTurns *turns);

static gboolean has_room(const BerthRpcTurns *turns)
{
    return turns->open.length < turns->open_max;
}

/* Another request of USER begins. */
static void count_served(BerthRpcTurnUser *user)
{
    gdouble now = (gdouble)g_get_monotonic_time();
    user->served = now + HALF_LIFE_USEC * log2(1 + exp2((user->served - now) / HALF_LIFE_USEC));
}

static gint compare_served(gconstpointer a, gconstpointer b, gpointer unused)
{
    gdouble of_a = ((const BerthRpcTurnUser *)a)->served,
            of_b = ((const BerthRpcTurnUser *)b)->served;
    return (of_a > of_b) - (of_a < of_b);
}

static BerthRpcTurnUser *first_waiting(const BerthRpcTurns *turns)
{
    GSequenceIter *first = g_sequence_get_begin_iter(turns->order);
    return g_sequence_iter_is_end(first) ? NULL : g_sequence_get(first);
}

static void unlist(BerthRpcTurnUser *user)
{
    g_clear_pointer(&user->place, g_sequence_remove);
    if (user->is_dry)
        g_queue_unlink(&user->turns->dry, &user->link);
    user->is_dry = FALSE;
}

/* Who has a connection that waits, and is in neither. Of those who were served as much, who came first is first. */
static void list(BerthRpcTurnUser *user)
{
    BerthRpcTurns *turns = user->turns;
    user->listed_usec = g_get_monotonic_time();
    user->is_dry = !has_token(user);
    if (user->is_dry) {
        user->link = (GList){.data = user};
        g_queue_push_tail_link(&turns->dry, &user->link);
    } else {
        user->place = g_sequence_insert_sorted(turns->order, user, compare_served, NULL);
    }
    schedule(turns);
}

/* Whose turn it is: the first. Others who have nothing under way may take all room there is, again and again: then it is who has
 * waited for SLOW_MSEC and has nothing under way either. NULL: nobody's. */
static BerthRpcTurnUser *next_user(const BerthRpcTurns *turns)
{
    BerthRpcTurnUser *user = first_waiting(turns);
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
    count_served(user); /* before he waits again */
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
    if (first_waiting(turns) != NULL && !is_somebodys_turn && turns->slow == NULL)
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

/* Whom USER would pass by if he began something at once: the first who waits, or else whose call has held room longest. */
static const BerthRpcTurnUser *rival_of(const BerthRpcTurns *turns)
{
    const BerthRpcTurn *oldest = turns->open.head != NULL ? turns->open.head->data : NULL;
    const BerthRpcTurnUser *waiting = first_waiting(turns);
    return waiting != NULL || oldest == NULL ? waiting : oldest->user;
}

/* One request each time that something was read. Who has nothing under way, and was served less than all who wait, waits for
 * nobody, whether there is room or not: there are not more of those than users. */
static gboolean is_free(const BerthRpcTurnUser *user, const BerthRpcPeer *peer)
{
    const BerthRpcTurns *turns = user->turns;
    if (peer->has_begun || user->waiting.length > 0)
        return FALSE;
    if (first_waiting(turns) == NULL && has_room(turns))
        return TRUE;
    const BerthRpcTurnUser *rival = rival_of(turns);
    return user->n_open == 0 && (rival == NULL || compare_served(user, rival, NULL) < 0);
}

static void wait_for_turn(BerthRpcTurnUser *user, BerthRpcPeer *peer)
{
    BerthRpcTurns *turns = user->turns;
    if (peer->waits_for_turn)
        return;
    peer->waits_for_turn = TRUE;
    g_queue_push_tail(&user->waiting, peer);
    if (user->place != NULL || user->is_dry)
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
    if (!peer->has_turn) {
        take_token(user);
        count_served(user);
    }
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
