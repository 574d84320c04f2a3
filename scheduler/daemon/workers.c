/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pools of worker threads, whose turn it is in each, and the count of what is under way, so
 * that the daemon can end without freeing what a callback still needs.
 *
 * Invariants: a lane has given its pool as much as there are threads at most, the rest waits here; a
 * client is in `turn` if and only if it has work that waits and may have one thread more. */
#include "config.h"

#include "scheduler/daemon/workers.h"

#include "common/error.h"

/* Every thread that reads the store has a connection of its own: store.c, N_READERS. */
static const struct {
    const char *name;
    guint threads;
    guint per_user; /* threads that one user may have */
} lanes[BERTH_N_LANES] = {
    [BERTH_LANE_READ] = {"state readers", 4, 2},
    [BERTH_LANE_NAMES] = {"user database", 4, 1},
    [BERTH_LANE_START] = {"guest starters", 2, 2},
    [BERTH_LANE_STORAGE_CONTROL] = {"storage control", 4, 4},
    [BERTH_LANE_STORAGE_DATA] = {"storage", 16, 8},
    [BERTH_LANE_STORAGE_CLEAN] = {"storage cleaning", 1, 1},
    [BERTH_LANE_OUTPUT] = {"output copiers", 16, 1},
};

typedef struct {
    guint32 uid;
    guint running;
    gboolean in_turn;
    GQueue waiting; /* Flight */
} Client;

typedef struct {
    BerthWorkPool *pool;
    guint threads;
    guint per_user;
    guint running;
    GHashTable *clients; /* uid -> Client, with work under way */
    GQueue turn;         /* Client */
} Lane;

struct BerthWorkers {
    Lane lanes[BERTH_N_LANES];
    guint in_flight;
};

typedef struct {
    BerthWorkers *workers;
    Lane *lane;
    Client *client;
    char *what;
    BerthWorkFunc func;
    gpointer input;
    GDestroyNotify input_free;
    GDestroyNotify result_free;
    guint timeout_msec;
    gint64 asked_usec;
    guint timer; /* while it waits */
    GAsyncReadyCallback callback;
    gpointer user_data;
} Flight;

static void client_free(gpointer data)
{
    Client *client = data;
    g_queue_clear(&client->waiting);
    g_free(client);
}

BerthWorkers *berth_workers_new(void)
{
    BerthWorkers *workers = g_new0(BerthWorkers, 1);
    for (guint i = 0; i < BERTH_N_LANES; i++) {
        Lane *lane = &workers->lanes[i];
        lane->threads = lanes[i].threads;
        lane->per_user = lanes[i].per_user;
        /* What has timed out may still hold its thread while the next is given to the pool. */
        lane->pool = berth_work_pool_new(lanes[i].name, lanes[i].threads, G_MAXINT);
        lane->clients = g_hash_table_new_full(NULL, NULL, NULL, client_free);
        g_queue_init(&lane->turn);
    }
    return workers;
}

void berth_workers_free(BerthWorkers *workers)
{
    g_return_if_fail(workers->in_flight == 0);
    for (guint i = 0; i < BERTH_N_LANES; i++) {
        berth_work_pool_free(workers->lanes[i].pool);
        g_hash_table_unref(workers->lanes[i].clients);
        g_queue_clear(&workers->lanes[i].turn);
    }
    g_free(workers);
}

/* --- turns -------------------------------------------------------------------------------------- */

static guint most_of(const Lane *lane, const Client *client)
{
    return client->uid == BERTH_WORKERS_SELF ? lane->threads : lane->per_user;
}

/* Brings CLIENT into the line, out of it, or to its end; CLIENT may be gone afterwards. */
static void settle(Lane *lane, Client *client)
{
    gboolean may_have_turn =
        !g_queue_is_empty(&client->waiting) && client->running < most_of(lane, client);
    if (may_have_turn && !client->in_turn)
        g_queue_push_tail(&lane->turn, client);
    else if (!may_have_turn && client->in_turn)
        g_queue_remove(&lane->turn, client);
    client->in_turn = may_have_turn;
    if (client->running == 0 && g_queue_is_empty(&client->waiting))
        g_hash_table_remove(lane->clients, GUINT_TO_POINTER(client->uid));
}

static void flight_free(Flight *flight)
{
    g_clear_handle_id(&flight->timer, g_source_remove);
    g_free(flight->what);
    g_free(flight);
}

static void dispatch(Lane *lane);

static void on_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Flight *flight = user_data;
    Lane *lane = flight->lane;
    flight->workers->in_flight--;
    lane->running--;
    flight->client->running--;
    settle(lane, flight->client);
    dispatch(lane);
    flight->callback(source, result, flight->user_data);
    flight_free(flight);
}

static void start(Flight *flight)
{
    guint timeout_msec = flight->timeout_msec;
    g_clear_handle_id(&flight->timer, g_source_remove);
    if (timeout_msec > 0) {
        gint64 waited_msec = (g_get_monotonic_time() - flight->asked_usec) / 1000;
        timeout_msec -= (guint)CLAMP(waited_msec, 0, (gint64)timeout_msec - 1);
    }
    flight->lane->running++;
    flight->client->running++;
    berth_work_pool_run(flight->lane->pool, flight->what, flight->func, flight->input,
                        flight->input_free, flight->result_free, timeout_msec, NULL, on_done,
                        flight);
}

static void dispatch(Lane *lane)
{
    while (lane->running < lane->threads && !g_queue_is_empty(&lane->turn)) {
        Client *client = g_queue_pop_head(&lane->turn);
        client->in_turn = FALSE;
        start(g_queue_pop_head(&client->waiting));
        settle(lane, client);
    }
}

static gboolean on_late(gpointer user_data)
{
    Flight *flight = user_data;
    flight->timer = 0;
    g_queue_remove(&flight->client->waiting, flight);
    settle(flight->lane, flight->client);
    flight->workers->in_flight--;
    if (flight->input_free)
        flight->input_free(flight->input);
    berth_work_fail(g_error_new(BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                                "%s: not begun after %u ms", flight->what, flight->timeout_msec),
                    flight->callback, flight->user_data);
    flight_free(flight);
    return G_SOURCE_REMOVE;
}

/* --- asking ------------------------------------------------------------------------------------- */

static Client *client_of(Lane *lane, guint32 uid)
{
    Client *client = g_hash_table_lookup(lane->clients, GUINT_TO_POINTER(uid));
    if (!client) {
        client = g_new0(Client, 1);
        client->uid = uid;
        g_queue_init(&client->waiting);
        g_hash_table_insert(lane->clients, GUINT_TO_POINTER(uid), client);
    }
    return client;
}

void berth_workers_run_for(BerthWorkers *workers, BerthLane which, guint32 uid, const char *what,
                           BerthWorkFunc func, gpointer input, GDestroyNotify input_free,
                           GDestroyNotify result_free, guint timeout_msec,
                           GAsyncReadyCallback callback, gpointer user_data)
{
    Lane *lane = &workers->lanes[which];
    Flight *flight = g_new0(Flight, 1);
    flight->workers = workers;
    flight->lane = lane;
    flight->client = client_of(lane, uid);
    flight->what = g_strdup(what);
    flight->func = func;
    flight->input = input;
    flight->input_free = input_free;
    flight->result_free = result_free;
    flight->timeout_msec = timeout_msec;
    flight->asked_usec = g_get_monotonic_time();
    flight->callback = callback;
    flight->user_data = user_data;
    if (timeout_msec > 0)
        flight->timer = g_timeout_add(timeout_msec, on_late, flight);
    workers->in_flight++;
    g_queue_push_tail(&flight->client->waiting, flight);
    settle(lane, flight->client);
    dispatch(lane);
}

void berth_workers_run(BerthWorkers *workers, BerthLane lane, const char *what, BerthWorkFunc func,
                       gpointer input, GDestroyNotify input_free, GDestroyNotify result_free,
                       guint timeout_msec, GAsyncReadyCallback callback, gpointer user_data)
{
    berth_workers_run_for(workers, lane, BERTH_WORKERS_SELF, what, func, input, input_free,
                          result_free, timeout_msec, callback, user_data);
}

static gboolean on_deadline(gpointer user_data)
{
    *(gboolean *)user_data = TRUE;
    return G_SOURCE_CONTINUE;
}

gboolean berth_workers_drain(BerthWorkers *workers, guint timeout_msec)
{
    gboolean is_late = FALSE;
    guint timer = g_timeout_add(timeout_msec, on_deadline, &is_late);
    while (workers->in_flight > 0 && !is_late)
        g_main_context_iteration(NULL, TRUE);
    g_source_remove(timer);
    return workers->in_flight == 0;
}
