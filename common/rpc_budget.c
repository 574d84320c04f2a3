/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory that the connections of one user may take together, and those of all users: who waits for room in it, and
 * who is ended because it keeps room from the others without taking its answers. Whose turn it is, of several users, is
 * rpc_turns.c's.
 *
 * Invariants: `used` is the sum of what its peers, or its budgets, are charged with; a peer is in `waiting` only
 * while it reads nothing for want of room; a request that needs more than there is gets its turn
 * once no call of its user is open and no answer waits. */
#include "common/rpc_internal.h"

#include "common/error.h"

/* While somebody waits, an answer has to make some progress in this time. */
#define STALL_MSEC 10000u

struct BerthRpcPool {
    guint refs;
    gsize max_bytes, least_bytes;
    gsize used;
    guint n_waiting; /* peers, of all budgets, for room here */
    guint first;     /* of the budgets: whose are woken first, the next time */
    guint stall_msec;
    GMainContext *context;
    GPtrArray *budgets; /* of BerthRpcBudget */
    GSource *wake;
    GSource *stall;
};

struct BerthRpcBudget {
    guint refs;
    BerthRpcPool *pool;  /* or NULL */
    gboolean lacks_pool; /* what did not fit the last time was in want of room in that alone */
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
    if (budget->pool != NULL) {
        g_ptr_array_remove_fast(budget->pool->budgets, budget);
        berth_rpc_pool_unref(budget->pool);
    }
    berth_rpc_turn_user_clear(&budget->turns);
    berth_rpc_timer_clear(&budget->wake);
    berth_rpc_timer_clear(&budget->stall);
    g_ptr_array_unref(budget->peers);
    g_queue_clear(&budget->waiting);
    g_main_context_unref(budget->context);
    g_free(budget);
}

/* --- waiting ------------------------------------------------------------------------------ */

static void wait_no_more(BerthRpcBudget *budget, BerthRpcPeer *peer)
{
    if (peer->waits_for_pool)
        budget->pool->n_waiting--;
    peer->waits_for_budget = peer->waits_for_pool = FALSE;
}

static void wake_all(BerthRpcBudget *budget)
{
    /* One round: who finds no room queues again, behind the others. */
    for (guint n = g_queue_get_length(&budget->waiting); n > 0; n--) {
        BerthRpcPeer *peer = g_queue_pop_head(&budget->waiting);
        if (peer == NULL)
            break;
        wait_no_more(budget, peer);
        berth_rpc_peer_pump(peer);
    }
    if (g_queue_is_empty(&budget->waiting))
        berth_rpc_timer_clear(&budget->stall);
}

static gboolean on_wake(gpointer data)
{
    BerthRpcBudget *budget = berth_rpc_budget_ref(data);
    berth_rpc_timer_clear(&budget->wake);
    wake_all(budget);
    berth_rpc_budget_unref(budget);
    return G_SOURCE_REMOVE;
}

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
    BerthRpcBudget *budget = berth_rpc_budget_ref(data);
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
    return pool;
}

void berth_rpc_pool_set_stall(BerthRpcPool *pool, guint stall_msec)
{
    pool->stall_msec = stall_msec;
}

void berth_rpc_pool_unref(BerthRpcPool *pool)
{
    if (--pool->refs > 0)
        return;
    berth_rpc_timer_clear(&pool->wake);
    berth_rpc_timer_clear(&pool->stall);
    g_ptr_array_unref(pool->budgets);
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

/* None of them comes first each time. */
static gboolean on_pool_wake(gpointer data)
{
    BerthRpcPool *pool = data;
    g_autoptr(GPtrArray) budgets = budgets_of(pool);
    berth_rpc_timer_clear(&pool->wake);
    pool->first++;
    for (guint i = 0; i < budgets->len; i++)
        wake_all(g_ptr_array_index(budgets, (pool->first + i) % budgets->len));
    return G_SOURCE_REMOVE;
}

/* Those who have little are not in the way of others. */
static gboolean on_pool_stall(gpointer data)
{
    BerthRpcPool *pool = data;
    g_autoptr(GPtrArray) budgets = budgets_of(pool);
    for (guint i = 0; pool->n_waiting > 0 && i < budgets->len; i++) {
        BerthRpcBudget *budget = g_ptr_array_index(budgets, i);
        if (budget->used > pool->least_bytes)
            end_stalled(budget, TRUE);
        else
            mark_all(budget, TRUE);
    }
    if (pool->n_waiting > 0)
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

/* What one has at least is his, whatever the others have. */
static gboolean fits_pool(const BerthRpcBudget *budget, gsize bytes)
{
    const BerthRpcPool *pool = budget->pool;
    if (pool == NULL || budget->used + bytes <= pool->least_bytes)
        return TRUE;
    return pool->used <= pool->max_bytes && bytes <= pool->max_bytes - pool->used;
}

/* --- room --------------------------------------------------------------------------------- */

static gboolean fits(BerthRpcBudget *budget, gsize bytes)
{
    gboolean has_own =
        budget->used < budget->max_bytes && bytes <= budget->max_bytes - budget->used;
    budget->lacks_pool = has_own && !fits_pool(budget, bytes);
    return has_own && !budget->lacks_pool;
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
    const BerthRpcBudget *budget = peer->budget;
    return budget != NULL && (budget->used > budget->max_bytes || !fits_pool(budget, 0));
}

void berth_rpc_budget_wait(BerthRpcPeer *peer)
{
    if (peer->budget == NULL || peer->waits_for_budget)
        return;
    peer->waits_for_budget = TRUE;
    peer->waits_for_pool = peer->budget->lacks_pool;
    g_queue_push_tail(&peer->budget->waiting, peer);
    if (!peer->waits_for_pool) {
        watch_for_stalls(peer->budget);
        return;
    }
    peer->budget->pool->n_waiting++;
    watch_pool_for_stalls(peer->budget->pool);
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

static void charge_pool(BerthRpcPool *pool, gsize before, gsize now)
{
    pool->used = pool->used - before + now;
    if (now < before && pool->n_waiting > 0 && pool->wake == NULL)
        pool->wake = berth_rpc_timer_start(pool->context, 0, on_pool_wake, pool);
}

void berth_rpc_budget_update(BerthRpcPeer *peer)
{
    BerthRpcBudget *budget = peer->budget;
    if (budget == NULL)
        return;
    gsize busy = peer->out_bytes + peer->calls_in_room + peer->calls_in_memory;
    gsize now = busy + peer->frame_room;
    gboolean is_less = now < peer->charged_bytes || busy < peer->charged_busy;
    budget->used = budget->used - peer->charged_bytes + now;
    if (budget->pool != NULL)
        charge_pool(budget->pool, peer->charged_bytes, now);
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
    wait_no_more(budget, peer);
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
