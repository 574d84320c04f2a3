/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory that the connections of one user may take together, and those of all users: who waits for room in it, and
 * who is ended because it keeps room from the others without taking its answers. Whose turn it is, of several users, is
 * rpc_turns.c's.
 *
 * Invariants: a budget's `used` is the sum of what its peers are charged with, a pool's that of what its budgets have above their
 * least; a peer is in `waiting` or `waiting_for_pool` only while it reads nothing for want of room; a budget is in its pool's
 * `waiting` exactly while a peer of it is in `waiting_for_pool`; a request that needs more than there is gets its turn once no
 * call of its user is open and no answer waits. */
#include "common/rpc_internal.h"

#include "common/error.h"

/* While somebody waits, an answer has to make some progress in this time. */
#define STALL_MSEC 10000u

struct BerthRpcPool {
    guint refs;
    gsize max_bytes, least_bytes;
    gsize used;
    GQueue waiting;            /* of BerthRpcBudget: whose turn is next first */
    const BerthRpcPeer *woken; /* whose turn it is, while it is pumped */
    guint stall_msec;
    GMainContext *context;
    GPtrArray *budgets; /* of BerthRpcBudget */
    GSource *wake;
    GSource *stall;
};

struct BerthRpcBudget {
    guint refs;
    BerthRpcPool *pool; /* or NULL */
    gsize max_bytes;
    gsize used;
    gsize busy; /* of it: calls that end by themselves, and all that is to be sent */
    guint stall_msec;
    GMainContext *context;
    GPtrArray *peers;        /* of BerthRpcPeer: charged by this */
    GQueue waiting;          /* of BerthRpcPeer: for room in this */
    GQueue waiting_for_pool; /* likewise: there is room in this, and none in the pool */
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
    g_queue_init(&budget->waiting_for_pool);
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
    if (budget->pool != NULL) {
        g_ptr_array_remove_fast(budget->pool->budgets, budget);
        berth_rpc_pool_unref(budget->pool);
    }
    berth_rpc_turn_user_clear(&budget->turns);
    berth_rpc_timer_clear(&budget->wake);
    berth_rpc_timer_clear(&budget->stall);
    g_ptr_array_unref(budget->peers);
    g_queue_clear(&budget->waiting);
    g_queue_clear(&budget->waiting_for_pool);
    g_main_context_unref(budget->context);
    g_free(budget);
}

/* --- stalls ------------------------------------------------------------------------------- */

static guint64 *mark_of(BerthRpcPeer *peer, gboolean for_all)
{
    return for_all ? &peer->pool_mark : &peer->stall_mark;
}

static void end_stalled(BerthRpcBudget *budget, gboolean for_all)
{
    for (guint i = 0; i < budget->peers->len; i++) {
        BerthRpcPeer *peer = g_ptr_array_index(budget->peers, i);
        guint64 *mark = mark_of(peer, for_all);
        gboolean is_stalled = peer->out_bytes > 0 && peer->written_bytes == *mark;
        *mark = peer->written_bytes;
        if (is_stalled)
            berth_rpc_peer_fail(peer, g_error_new(BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                                                  "closed the connection to %s: it does not take "
                                                  "its answers, and other commands%s wait for the "
                                                  "room that these take",
                                                  peer->identity.description,
                                                  for_all ? "" : " of its user"));
    }
}

static void mark_all(const BerthRpcBudget *budget, gboolean for_all)
{
    for (guint i = 0; i < budget->peers->len; i++) {
        BerthRpcPeer *peer = g_ptr_array_index(budget->peers, i);
        *mark_of(peer, for_all) = peer->written_bytes;
    }
}

static gboolean on_stall(gpointer data)
{
    BerthRpcBudget *budget = data;
    if (g_queue_is_empty(&budget->waiting)) {
        berth_rpc_timer_clear(&budget->stall);
        return G_SOURCE_REMOVE;
    }
    berth_rpc_budget_ref(budget);
    end_stalled(budget, FALSE);
    berth_rpc_budget_unref(budget);
    return G_SOURCE_CONTINUE;
}

static void watch_for_stalls(BerthRpcBudget *budget)
{
    if (budget->stall != NULL)
        return;
    mark_all(budget, FALSE);
    budget->stall = berth_rpc_timer_start(budget->context, budget->stall_msec, on_stall, budget);
}

/* --- what all users take ------------------------------------------------------------------ */

BerthRpcPool *berth_rpc_pool_new(gsize max_bytes, gsize least_bytes)
{
    BerthRpcPool *pool = g_new0(BerthRpcPool, 1);
    pool->refs = 1;
    pool->max_bytes = max_bytes;
    pool->least_bytes = least_bytes;
    pool->stall_msec = STALL_MSEC;
    pool->context = g_main_context_ref_thread_default();
    pool->budgets = g_ptr_array_new();
    g_queue_init(&pool->waiting);
    return pool;
}

void berth_rpc_pool_set_stall(BerthRpcPool *pool, guint stall_msec)
{
    pool->stall_msec = stall_msec;
}

gsize berth_rpc_pool_used(const BerthRpcPool *pool)
{
    return pool->used;
}

void berth_rpc_pool_unref(BerthRpcPool *pool)
{
    if (--pool->refs > 0)
        return;
    berth_rpc_timer_clear(&pool->wake);
    berth_rpc_timer_clear(&pool->stall);
    g_ptr_array_unref(pool->budgets);
    g_queue_clear(&pool->waiting);
    g_main_context_unref(pool->context);
    g_free(pool);
}

void berth_rpc_budget_share(BerthRpcBudget *budget, BerthRpcPool *pool)
{
    g_return_if_fail(budget->pool == NULL && budget->peers->len == 0);
    pool->refs++;
    budget->pool = pool;
    g_ptr_array_add(pool->budgets, budget);
}

static gpointer ref_budget(gconstpointer budget, gpointer unused)
{
    return berth_rpc_budget_ref((BerthRpcBudget *)budget);
}

/* Whatever is done to one of them, they are there (transfer full). */
static GPtrArray *budgets_of(const BerthRpcPool *pool)
{
    GPtrArray *budgets = g_ptr_array_copy(pool->budgets, ref_budget, NULL);
    g_ptr_array_set_free_func(budgets, (GDestroyNotify)berth_rpc_budget_unref);
    return budgets;
}

/* Those who have little are not in the way of others. */
static gboolean on_pool_stall(gpointer data)
{
    BerthRpcPool *pool = data;
    g_autoptr(GPtrArray) budgets = budgets_of(pool);
    for (guint i = 0; !g_queue_is_empty(&pool->waiting) && i < budgets->len; i++) {
        BerthRpcBudget *budget = g_ptr_array_index(budgets, i);
        if (budget->used > pool->least_bytes)
            end_stalled(budget, TRUE);
        else
            mark_all(budget, TRUE);
    }
    if (!g_queue_is_empty(&pool->waiting))
        return G_SOURCE_CONTINUE;
    berth_rpc_timer_clear(&pool->stall);
    return G_SOURCE_REMOVE;
}

static void watch_pool_for_stalls(BerthRpcPool *pool)
{
    if (pool->stall != NULL)
        return;
    for (guint i = 0; i < pool->budgets->len; i++)
        mark_all(g_ptr_array_index(pool->budgets, i), TRUE);
    pool->stall = berth_rpc_timer_start(pool->context, pool->stall_msec, on_pool_stall, pool);
}

/* --- room --------------------------------------------------------------------------------- */

static gsize above_least(const BerthRpcPool *pool, gsize used)
{
    return used - MIN(used, pool->least_bytes);
}

/* Nobody passes those who wait. Who has waited for his turn (rpc_turns.c) was let pass before that. */
static gboolean may_pass(const BerthRpcPool *pool, const BerthRpcPeer *peer)
{
    return pool->waiting.length == 0 || pool->woken == peer || peer->has_turn;
}

/* What one has at least is his, whatever the others have. */
static gboolean fits_pool(const BerthRpcPeer *peer)
{
    const BerthRpcBudget *budget = peer->budget;
    const BerthRpcPool *pool = budget->pool;
    if (pool == NULL)
        return TRUE;
    gsize more =
        above_least(pool, budget->used + peer->wanted_bytes) - above_least(pool, budget->used);
    return more == 0 || (may_pass(pool, peer) && pool->used < pool->max_bytes &&
                         more <= pool->max_bytes - pool->used);
}

/* Where PEER has to wait for the room that it wants. NULL: there is room. */
static GQueue *queue_for(const BerthRpcPeer *peer)
{
    BerthRpcBudget *budget = peer->budget;
    if ((peer->wants_call ? budget->busy : budget->used) == 0)
        return NULL;
    if (budget->used >= budget->max_bytes || peer->wanted_bytes > budget->max_bytes - budget->used)
        return &budget->waiting;
    return fits_pool(peer) ? NULL : &budget->waiting_for_pool;
}

gboolean berth_rpc_budget_is_over(const BerthRpcPeer *peer)
{
    const BerthRpcBudget *budget = peer->budget;
    if (budget == NULL)
        return FALSE;
    const BerthRpcPool *pool = budget->pool;
    return budget->used > budget->max_bytes ||
           (pool != NULL && pool->used > pool->max_bytes && budget->used > pool->least_bytes);
}

/* --- waiting ------------------------------------------------------------------------------ */

static gboolean on_pool_wake(gpointer data);

static void schedule_pool_wake(BerthRpcPool *pool)
{
    if (!g_queue_is_empty(&pool->waiting) && pool->wake == NULL)
        pool->wake = berth_rpc_timer_start(pool->context, 0, on_pool_wake, pool);
}

static void wait_in(BerthRpcPeer *peer, GQueue *queue)
{
    BerthRpcBudget *budget = peer->budget;
    peer->waits_in = queue;
    g_queue_push_tail(queue, peer);
    if (queue == &budget->waiting) {
        watch_for_stalls(budget);
        return;
    }
    if (queue->length == 1)
        g_queue_push_tail(&budget->pool->waiting, budget);
    watch_pool_for_stalls(budget->pool);
}

void berth_rpc_budget_wait_no_more(BerthRpcPeer *peer)
{
    BerthRpcBudget *budget = peer->budget;
    GQueue *queue = peer->waits_in;
    if (queue == NULL)
        return;
    peer->waits_in = NULL;
    g_queue_remove(queue, peer);
    /* Whoever waits next is to wait as long before others are ended for it. */
    if (g_queue_is_empty(&budget->waiting))
        berth_rpc_timer_clear(&budget->stall);
    if (queue == &budget->waiting)
        return;
    if (g_queue_is_empty(queue))
        g_queue_remove(&budget->pool->waiting, budget);
    if (g_queue_is_empty(&budget->pool->waiting))
        berth_rpc_timer_clear(&budget->pool->stall);
    /* There may be room for who comes next, if not for this one. */
    schedule_pool_wake(budget->pool);
}

gboolean berth_rpc_budget_has_room(BerthRpcPeer *peer, gsize bytes, gboolean is_call)
{
    if (peer->budget == NULL)
        return TRUE;
    peer->wanted_bytes = bytes;
    peer->wants_call = is_call;
    GQueue *queue = queue_for(peer);
    if (queue != peer->waits_in) {
        berth_rpc_budget_wait_no_more(peer);
        if (queue != NULL)
            wait_in(peer, queue);
    }
    if (peer->budget->pool != NULL)
        peer->budget->pool->woken = NULL; /* for one request */
    return queue == NULL;
}

/* FALSE: it still lacks what it waits for, and keeps its place. */
static gboolean wake(BerthRpcPeer *peer)
{
    if (queue_for(peer) == peer->waits_in)
        return FALSE;
    berth_rpc_budget_wait_no_more(peer);
    berth_rpc_peer_pump(peer);
    return TRUE;
}

/* One round: who is woken and finds no room again queues behind the others. */
static void wake_all(GQueue *queue)
{
    for (guint n = queue->length; n > 0 && !g_queue_is_empty(queue); n--) {
        g_queue_push_tail_link(queue, g_queue_pop_head_link(queue));
        wake(g_queue_peek_tail(queue));
    }
}

static gboolean on_wake(gpointer data)
{
    BerthRpcBudget *budget = berth_rpc_budget_ref(data);
    berth_rpc_timer_clear(&budget->wake);
    wake_all(&budget->waiting);
    wake_all(&budget->waiting_for_pool); /* who wants no more than the least, by now */
    if (g_queue_is_empty(&budget->waiting))
        berth_rpc_timer_clear(&budget->stall);
    berth_rpc_budget_unref(budget);
    return G_SOURCE_REMOVE;
}

/* The connection that has waited longest, of the budget whose turn it is. FALSE: for that there is no room. */
static gboolean wake_next(BerthRpcPool *pool)
{
    BerthRpcBudget *budget = berth_rpc_budget_ref(g_queue_peek_head(&pool->waiting));
    BerthRpcPeer *peer = g_queue_peek_head(&budget->waiting_for_pool);
    pool->woken = peer;
    gboolean has_room = wake(peer);
    pool->woken = NULL;
    if (has_room && g_queue_peek_head(&pool->waiting) == budget)
        g_queue_push_tail(&pool->waiting, g_queue_pop_head(&pool->waiting));
    berth_rpc_budget_unref(budget);
    return has_room;
}

static gboolean on_pool_wake(gpointer data)
{
    BerthRpcPool *pool = data;
    pool->refs++;
    berth_rpc_timer_clear(&pool->wake);
    while (!g_queue_is_empty(&pool->waiting) && wake_next(pool))
        ;
    berth_rpc_pool_unref(pool);
    return G_SOURCE_REMOVE;
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

static void schedule_wake(BerthRpcBudget *budget)
{
    gboolean waits =
        !g_queue_is_empty(&budget->waiting) || !g_queue_is_empty(&budget->waiting_for_pool);
    if (waits && budget->wake == NULL)
        budget->wake = berth_rpc_timer_start(budget->context, 0, on_wake, budget);
    if (budget->pool != NULL)
        schedule_pool_wake(budget->pool);
}

/* The budget has come from BEFORE to what it has now. */
static void charge_pool(const BerthRpcBudget *budget, gsize before)
{
    BerthRpcPool *pool = budget->pool;
    if (pool != NULL)
        pool->used = pool->used - above_least(pool, before) + above_least(pool, budget->used);
}

void berth_rpc_budget_update(BerthRpcPeer *peer)
{
    BerthRpcBudget *budget = peer->budget;
    if (budget == NULL)
        return;
    gsize busy =
        peer->out_bytes + peer->calls_in_room + peer->calls_in_memory - peer->streams_memory;
    gsize now = busy + peer->streams_memory + peer->frame_room;
    gsize before = budget->used;
    gboolean is_less = now < peer->charged_bytes || busy < peer->charged_busy;
    budget->used = budget->used - peer->charged_bytes + now;
    charge_pool(budget, before);
    budget->busy = budget->busy - peer->charged_busy + busy;
    peer->charged_bytes = now;
    peer->charged_busy = busy;
    if (is_less)
        schedule_wake(budget);
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
    berth_rpc_budget_wait_no_more(peer);
    berth_rpc_turn_leave(&budget->turns, peer);
    g_ptr_array_remove_fast(budget->peers, peer);
    peer->out_bytes = 0;
    peer->calls_in_room = 0;
    peer->calls_in_memory = peer->streams_memory = 0;
    peer->frame_room = 0;
    berth_rpc_budget_update(peer);
    peer->budget = NULL;
    berth_rpc_budget_unref(budget);
}
