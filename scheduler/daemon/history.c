/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when what is over is forgotten. A round goes through the old jobs in parts: a part is found on a worker, its output is removed from
 * storage on another, and then its records go in one commit. At the end of a round events go that are of no job, in parts as well, and
 * small contents that no job names: such as were not named in the round before either, as whoever submits jobs of a kind again and again would only put them anew.
 *
 * Invariants: the output goes before the records that name it, so that nothing is left that nobody knows of; storage that is not ours
 * is left alone. */
#include "config.h"

#include "scheduler/daemon/history.h"

#include "common/id.h"
#include "scheduler/daemon/engine.h"
#include "scheduler/daemon/storage_link.h"

/* Between two rounds: a part of the time for which jobs are kept, an hour at most. */
#define ROUNDS        24u
#define ROUND_SEC_MAX 3600u

struct BerthHistory {
    BerthDaemon *daemon;
    guint keep_sec;
    guint timer;
    gboolean is_running;
    gboolean is_stopped;
    guint64 after_job;   /* in the round under way */
    guint64 n_forgotten; /* likewise */
    GHashTable
        *unnamed; /* digests (GBytes) of contents that no job named at the end of the last round */
};

BerthHistory *berth_history_new(BerthDaemon *daemon, guint keep_sec)
{
    BerthHistory *history = g_new0(BerthHistory, 1);
    history->daemon = daemon;
    history->keep_sec = keep_sec;
    history->unnamed =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    return history;
}

void berth_history_stop(BerthHistory *history)
{
    history->is_stopped = TRUE;
    g_clear_handle_id(&history->timer, g_source_remove);
}

void berth_history_free(BerthHistory *history)
{
    berth_history_stop(history);
    g_hash_table_unref(history->unnamed);
    g_free(history);
}

/* --- on workers --------------------------------------------------------------------------------- */

typedef struct {
    BerthStore *store;
    guint64 before_usec;
    guint64 after_job;
} FindInput;

/* What one look has found. */
typedef struct {
    guint64 before_seq;
    BerthStoreOld *old;
    GPtrArray *unnamed; /* with the last part of a round */
} Found;

static void found_free(gpointer data)
{
    Found *found = data;
    berth_store_old_free(found->old);
    g_clear_pointer(&found->unnamed, g_ptr_array_unref);
    g_free(found);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Found, found_free)

static gpointer find(gconstpointer data, GCancellable *cancellable, GError **error)
{
    const FindInput *input = data;
    g_autoptr(Found) found = g_new0(Found, 1);
    if (!berth_store_find_event(input->store, input->before_usec, &found->before_seq, error))
        return NULL;
    found->old = berth_store_find_old(input->store, found->before_seq, input->after_job, error);
    if (!found->old)
        return NULL;
    if (found->old->is_last &&
        !(found->unnamed = berth_store_list_unused_blobs(input->store, error)))
        return NULL;
    return g_steal_pointer(&found);
}

static void add_output(const BerthGuestId *guest, GPtrArray *names)
{
    g_autofree char *log_id = berth_log_id_format(guest);
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        g_ptr_array_add(names, berth_log_name_format(log_id, i));
}

/* Of each run of a task. */
static gpointer remove_outputs(BerthStorage *storage, gconstpointer data, GError **error)
{
    const GArray *guests = data;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < guests->len; i++) {
        BerthGuestId guest = g_array_index(guests, BerthGuestId, i);
        for (guint32 epoch = guest.epoch; epoch > 0; epoch--) {
            guest.epoch = epoch;
            add_output(&guest, names);
        }
    }
    berth_storage_logs_remove(storage, (const char *const *)names->pdata, names->len, error);
    return NULL;
}

/* --- a round ------------------------------------------------------------------------------------ */

static void look(BerthHistory *history);

static gboolean on_due(gpointer user_data)
{
    BerthHistory *history = user_data;
    history->timer = 0;
    berth_history_run(history);
    return G_SOURCE_REMOVE;
}

static void end_round(BerthHistory *history, const GError *error)
{
    history->is_running = FALSE;
    if (error)
        g_info("what is over for long stays until the next time: %s", error->message);
    if (history->n_forgotten > 0)
        g_info("forgot %" G_GUINT64_FORMAT " job(s) that ended more than %u s ago",
               history->n_forgotten, history->keep_sec);
    if (!history->is_stopped)
        history->timer = g_timeout_add_seconds(CLAMP(history->keep_sec / ROUNDS, 1, ROUND_SEC_MAX),
                                               on_due, history);
}

/* A part, between its finding and its commit. */
typedef struct {
    BerthHistory *history;
    Found *found;
} Part;

static void part_free(Part *part)
{
    found_free(part->found);
    g_free(part);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Part, part_free)

static void on_committed(const GError *error, gpointer user_data)
{
    g_autoptr(Part) part = user_data;
    BerthHistory *history = part->history;
    if (error || history->is_stopped || part->found->old->is_last)
        end_round(history, error);
    else
        look(history);
}

static void remove_unnamed(BerthHistory *history, const GPtrArray *unnamed, BerthStoreBatch *batch)
{
    g_autoptr(GHashTable) now =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    for (guint i = 0; i < unnamed->len; i++) {
        GBytes *digest = g_ptr_array_index(unnamed, i);
        if (g_hash_table_contains(history->unnamed, digest))
            berth_store_batch_remove_blob(batch, digest);
        else
            g_hash_table_add(now, g_bytes_ref(digest));
    }
    g_hash_table_unref(history->unnamed);
    history->unnamed = g_steal_pointer(&now);
}

static void commit(Part *part)
{
    BerthHistory *history = part->history;
    const BerthStoreOld *old = part->found->old;
    BerthTurn *turn = berth_engine_begin(history->daemon->engine);
    BerthStoreBatch *batch = berth_turn_batch(turn);
    for (guint i = 0; i < old->jobs->len; i++) {
        const BerthStoreOldJob *job = &g_array_index(old->jobs, BerthStoreOldJob, i);
        berth_store_batch_remove_old(batch, job);
        history->n_forgotten += job->is_whole;
    }
    history->after_job = old->after_job;
    if (old->events_to > 0)
        berth_store_batch_remove_events(batch, old->events_to);
    if (old->is_last)
        remove_unnamed(history, part->found->unnamed, batch);
    berth_turn_then(turn, on_committed, part);
    berth_turn_commit(turn);
}

/* Storage may be another's by now: then nothing was removed but what has our names. */
static void on_outputs_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Part *part = user_data;
    BerthHistory *history = part->history;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error || history->is_stopped || berth_engine_is_stopped(history->daemon->engine)) {
        end_round(history, error);
        part_free(part);
        return;
    }
    commit(part);
}

static void on_found(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthHistory *history = user_data;
    BerthDaemon *daemon = history->daemon;
    g_autoptr(GError) error = NULL;
    g_autoptr(Found) found = berth_work_finish(result, &error);
    if (!found || history->is_stopped || berth_engine_is_stopped(daemon->engine) ||
        !daemon->storage_is_ours) {
        end_round(history, error);
        return;
    }
    Part *part = g_new(Part, 1);
    *part = (Part){history, g_steal_pointer(&found)};
    if (part->found->old->guests->len == 0) {
        commit(part);
        return;
    }
    berth_storage_link_run(daemon->storage, BERTH_LANE_STORAGE_CLEAN, "remove old output",
                           remove_outputs, g_array_ref(part->found->old->guests),
                           (GDestroyNotify)g_array_unref, NULL, on_outputs_removed, part);
}

static void look(BerthHistory *history)
{
    BerthDaemon *daemon = history->daemon;
    gint64 before_usec =
        berth_engine_now_usec(daemon->engine) - (gint64)history->keep_sec * G_USEC_PER_SEC;
    FindInput *input = g_new(FindInput, 1);
    *input = (FindInput){daemon->store, (guint64)MAX(before_usec, 0), history->after_job};
    berth_workers_run(daemon->workers, BERTH_LANE_STORAGE_CLEAN, "look for what is over for long",
                      find, input, g_free, found_free, 0, on_found, history);
}

void berth_history_run(BerthHistory *history)
{
    if (history->keep_sec == 0 || history->is_running || history->is_stopped ||
        !history->daemon->storage_is_ours)
        return;
    g_clear_handle_id(&history->timer, g_source_remove);
    history->is_running = TRUE;
    history->after_job = history->n_forgotten = 0;
    look(history);
}
