/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is over for so long that nobody wants to know it any more: which that is, and its removal in parts, each of
 * which holds up other commits by little.
 *
 * Invariant: of a job that is removed in parts its row goes last, so that what is left of it is found again. */
#include "scheduler/store/history.h"

#include "common/error.h"
#include "scheduler/store/batch.h"
#include "scheduler/store/read.h"
#include "scheduler/store/tasks.h"

#define SHA256_BYTES 32
/* What is found, and removed, at a time. */
#define JOBS_MAX   500u
#define TASKS_MAX  500u
#define EVENTS_MAX 20000u
#define BLOBS_MAX  5000u

void berth_store_old_free(BerthStoreOld *old)
{
    if (old == NULL)
        return;
    g_array_unref(old->jobs);
    g_array_unref(old->guests);
    g_free(old);
}

/* --- finding -------------------------------------------------------------------------------- */

typedef struct {
    guint64 before_seq;
    guint64 after_job;
    BerthStoreOld *out;
    guint n_tasks, n_events;
} Search;

/* The first and the last event of JOB; 0: it has none. */
static gboolean read_span(StoreDb *db, guint64 job, guint64 *out_first, guint64 *out_last,
                          GError **error)
{
    static const char *const sql[] = {
        "SELECT seq FROM event WHERE job = ?1 AND job <> 0 ORDER BY seq LIMIT 1",
        "SELECT seq FROM event WHERE job = ?1 AND job <> 0 ORDER BY seq DESC LIMIT 1",
    };
    guint64 *const out[] = {out_first, out_last};
    for (gsize i = 0; i < G_N_ELEMENTS(sql); i++) {
        g_autoptr(StoreStatement) select = store_db_statement(db, sql[i], error);
        gboolean row = FALSE;
        if (select == NULL)
            return FALSE;
        store_bind_uint64(select, 1, job);
        if (!store_db_step(db, select, "look for a job's events", &row, error))
            return FALSE;
        *out[i] = row ? (guint64)sqlite3_column_int64(select, 0) : 0;
    }
    return TRUE;
}

/* Up to which task rows go now, and whether others are left. */
static gboolean take_tasks(StoreDb *db, Search *search, BerthStoreOldJob *old, gboolean *out_more,
                           GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(
        db, "SELECT record FROM task WHERE job = ?1 ORDER BY number LIMIT ?2", error);
    gboolean row = FALSE;
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, old->job);
    store_bind_uint64(select, 2, TASKS_MAX + 1);
    *out_more = FALSE;
    for (;;) {
        if (!store_db_step(db, select, "read the tasks of an old job", &row, error))
            return FALSE;
        if (!row)
            return TRUE;
        if (search->n_tasks >= TASKS_MAX) {
            *out_more = TRUE;
            return TRUE;
        }
        Berth__StoredTask *stored = store_column_task(select, 0, error);
        if (stored == NULL)
            return FALSE;
        BerthGuestId guest = {
            .job = old->job, .task = stored->task->index, .epoch = stored->task->epoch};
        berth__stored_task__free_unpacked(stored, NULL);
        old->n_tasks++;
        old->tasks_to = guest.task;
        search->n_tasks++;
        if (guest.epoch > 0)
            g_array_append_val(search->out->guests, guest);
    }
}

static gboolean count_events(StoreDb *db, guint64 job, guint limit, guint *out_n, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(
        db, "SELECT count(*) FROM (SELECT 1 FROM event WHERE job = ?1 AND job <> 0 LIMIT ?2)",
        error);
    gboolean row = FALSE;
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, job);
    store_bind_uint64(select, 2, limit);
    if (!store_db_step(db, select, "count the events of an old job", &row, error))
        return FALSE;
    *out_n = row ? (guint)sqlite3_column_int64(select, 0) : 0;
    return TRUE;
}

/* Likewise of events. */
static gboolean take_events(StoreDb *db, Search *search, BerthStoreOldJob *old, guint64 last,
                            gboolean *out_more, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(
        db, "SELECT seq FROM event WHERE job = ?1 AND job <> 0 ORDER BY seq LIMIT 1 OFFSET ?2",
        error);
    guint room = EVENTS_MAX - MIN(search->n_events, EVENTS_MAX);
    guint n = 0;
    gboolean row = FALSE;
    if (select == NULL || !count_events(db, old->job, room, &n, error))
        return FALSE;
    store_bind_uint64(select, 1, old->job);
    store_bind_uint64(select, 2, room);
    if (!store_db_step(db, select, "read the events of an old job", &row, error))
        return FALSE;
    *out_more = row;
    old->events_to = row ? (guint64)sqlite3_column_int64(select, 0) - 1 : last;
    search->n_events += n;
    return TRUE;
}

/* *OUT_FULL: it is more than goes at a time, or the last that fits. */
static gboolean take(StoreDb *db, Search *search, guint64 job, guint64 last, gboolean *out_full,
                     GError **error)
{
    BerthStoreOldJob old = {.job = job};
    gboolean more_tasks = FALSE, more_events = FALSE;
    if (!take_tasks(db, search, &old, &more_tasks, error) ||
        !take_events(db, search, &old, last, &more_events, error))
        return FALSE;
    old.is_whole = !more_tasks && !more_events;
    g_array_append_val(search->out->jobs, old);
    *out_full = !old.is_whole || search->out->jobs->len >= JOBS_MAX ||
                search->n_tasks >= TASKS_MAX || search->n_events >= EVENTS_MAX;
    search->out->after_job = old.is_whole ? job : job - 1;
    return TRUE;
}

/* Of no job. They have no index: what is read for them are the oldest events, of which few are of jobs that stay. */
static gboolean find_events(StoreDb *db, Search *search, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(
        db, "SELECT seq FROM event WHERE seq <= ?1 AND job = 0 ORDER BY seq LIMIT 1 OFFSET ?2",
        error);
    gboolean row = FALSE;
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, search->before_seq);
    store_bind_uint64(select, 2, EVENTS_MAX - MIN(search->n_events, EVENTS_MAX));
    if (!store_db_step(db, select, "look for old events", &row, error))
        return FALSE;
    search->out->events_to =
        row ? (guint64)sqlite3_column_int64(select, 0) - 1 : search->before_seq;
    search->out->is_last = !row;
    return TRUE;
}

/* In the order of their numbers, which is that in which they were submitted: behind the first that was not before that time
 * no other is old. */
static gboolean find_old(StoreDb *db, gpointer data, GError **error)
{
    Search *search = data;
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT id, open FROM job WHERE id > ?1 ORDER BY id", error);
    gboolean row = FALSE, is_full = FALSE;
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, search->after_job);
    while (!is_full) {
        guint64 first = 0, last = 0;
        if (!store_db_step(db, select, "look for old jobs", &row, error))
            return FALSE;
        if (!row)
            break;
        guint64 job = (guint64)sqlite3_column_int64(select, 0);
        gboolean is_open = sqlite3_column_int(select, 1) != 0;
        if (!read_span(db, job, &first, &last, error))
            return FALSE;
        if (first > search->before_seq)
            break;
        search->out->after_job = job; /* what stays need not be looked at again */
        if (!is_open && last <= search->before_seq && !take(db, search, job, last, &is_full, error))
            return FALSE;
    }
    search->out->is_last = !is_full;
    return is_full || find_events(db, search, error);
}

/* The newest event stays, whatever its age: numbers and times go on from it. */
static gboolean find_old_but_newest(StoreDb *db, gpointer data, GError **error)
{
    Search *search = data;
    gint64 newest = 0;
    if (!store_db_get_int64(db, "SELECT max(seq) FROM event", "look for the newest event", &newest,
                            error))
        return FALSE;
    search->before_seq = MIN(search->before_seq, (guint64)MAX(newest - 1, 0));
    return find_old(db, search, error);
}

BerthStoreOld *berth_store_find_old(BerthStore *store, guint64 before_seq, guint64 after_job,
                                    GError **error)
{
    BerthStoreOld *old = g_new0(BerthStoreOld, 1);
    Search search = {before_seq, after_job, old, 0, 0};
    old->after_job = after_job;
    old->jobs = g_array_new(FALSE, FALSE, sizeof(BerthStoreOldJob));
    old->guests = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    if (store_read(store, find_old_but_newest, &search, error))
        return old;
    berth_store_old_free(old);
    return NULL;
}

/* --- removing ------------------------------------------------------------------------------- */

/* SQL with two numbers. */
static gboolean run(StoreDb *db, const char *sql, guint64 first, guint64 second, const char *what,
                    GError **error)
{
    g_autoptr(StoreStatement) statement = store_db_statement(db, sql, error);
    if (statement == NULL)
        return FALSE;
    store_bind_uint64(statement, 1, first);
    if (sqlite3_bind_parameter_count(statement) > 1)
        store_bind_uint64(statement, 2, second);
    return store_db_run(db, statement, what, NULL, error);
}

static gboolean remove_use(StoreDb *db, const guint8 *sha256, guint64 job, GError **error)
{
    g_autoptr(StoreStatement) statement =
        store_db_statement(db, "DELETE FROM job_blob WHERE sha256 = ?1 AND job = ?2", error);
    if (statement == NULL)
        return FALSE;
    sqlite3_bind_blob(statement, 1, sha256, SHA256_BYTES, SQLITE_STATIC);
    store_bind_uint64(statement, 2, job);
    return store_db_run(db, statement, "remove an old job's use of a blob", NULL, error);
}

/* What the job names; that costs no index of what each job names. */
static gboolean remove_uses(StoreDb *db, guint64 job, GError **error)
{
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT record FROM spec WHERE job = ?1", error);
    gboolean row = FALSE;
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, job);
    if (!store_db_step(db, select, "read an old job's specification", &row, error))
        return FALSE;
    Berth__JobSpec *spec = row ? store_column_message(select, 0, &berth__job_spec__descriptor,
                                                      "read an old job's specification", error)
                               : NULL;
    if (spec == NULL)
        return !row;
    g_autoptr(GBytes) digests = store_digests_of(spec);
    berth__job_spec__free_unpacked(spec, NULL);
    for (gsize at = 0; at < g_bytes_get_size(digests); at += SHA256_BYTES)
        if (!remove_use(db, (const guint8 *)g_bytes_get_data(digests, NULL) + at, job, error))
            return FALSE;
    return TRUE;
}

static gboolean remove_whole(StoreDb *db, guint64 job, GError **error)
{
    static const char *const sql[] = {
        "DELETE FROM idempotency WHERE job = ?1",
        "DELETE FROM spec WHERE job = ?1",
        "DELETE FROM job WHERE id = ?1",
    };
    if (!remove_uses(db, job, error))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(sql); i++)
        if (!run(db, sql[i], job, 0, "remove an old job", error))
            return FALSE;
    return TRUE;
}

gboolean store_history_remove(StoreDb *db, const BerthStoreOldJob *old, GError **error)
{
    return (old->n_tasks == 0 || run(db, "DELETE FROM task WHERE job = ?1 AND number <= ?2",
                                     old->job, old->tasks_to, "remove old tasks", error)) &&
           run(db, "DELETE FROM event WHERE job = ?1 AND job <> 0 AND seq <= ?2", old->job,
               old->events_to, "remove old events", error) &&
           (!old->is_whole || remove_whole(db, old->job, error));
}

gboolean store_history_remove_events(StoreDb *db, guint64 up_to_seq, GError **error)
{
    return run(db,
               "DELETE FROM event WHERE seq <= ?1 AND job = 0"
               " AND seq < (SELECT max(seq) FROM event)",
               up_to_seq, 0, "remove old events", error);
}

gboolean store_history_remove_blob(StoreDb *db, GBytes *sha256, GError **error)
{
    g_autoptr(StoreStatement) statement =
        store_db_statement(db,
                           "DELETE FROM blob WHERE sha256 = ?1"
                           " AND NOT EXISTS (SELECT 1 FROM job_blob WHERE sha256 = ?1)",
                           error);
    if (statement == NULL)
        return FALSE;
    store_bind_bytes(statement, 1, sha256);
    return store_db_run(db, statement, "remove an unused blob", NULL, error);
}

/* --- blobs that nobody names ------------------------------------------------------------------ */

static gboolean find_unused(StoreDb *db, gpointer data, GError **error)
{
    GPtrArray *found = data;
    g_autoptr(StoreStatement) select =
        store_db_statement(db,
                           "SELECT sha256 FROM blob WHERE NOT EXISTS"
                           " (SELECT 1 FROM job_blob WHERE job_blob.sha256 = blob.sha256)",
                           error);
    gboolean row = FALSE;
    if (select == NULL)
        return FALSE;
    for (;;) {
        if (!store_db_step(db, select, "look for unused blobs", &row, error))
            return FALSE;
        if (!row)
            return TRUE;
        if (sqlite3_column_bytes(select, 0) == SHA256_BYTES)
            g_ptr_array_add(found, g_bytes_new(sqlite3_column_blob(select, 0), SHA256_BYTES));
    }
}

GPtrArray *berth_store_list_unused_blobs(BerthStore *store, GError **error)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    return store_read(store, find_unused, found, error) ? g_steal_pointer(&found) : NULL;
}
