/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the questions that a running daemon asks: jobs, tasks, lists, events, blobs. Each is
 * answered from one snapshot, in whatever thread asks. */
#include "scheduler/store/read.h"

#include "common/error.h"
#include "scheduler/store/requests.h"
#include "scheduler/store/tasks.h"

#define LIMIT_MAX    10000u
#define SHA256_BYTES 32
/* Of an array, if nobody says otherwise, and in lists. */
#define TASKS_SHOWN  1000u
#define TASKS_LISTED 100u
/* Bit N = JobState N exists. */
#define KNOWN_STATES ((2u << BERTH__JOB_STATE__OUT_OF_MEMORY) - 1)

/* --- one job -------------------------------------------------------------------------------- */

typedef struct {
    guint64 job;
    guint32 number;
    const BerthStoreTasks *tasks;
    gpointer out; /* the message that was found */
} Lookup;

/* The record that SQL finds by the number of JOB. WHAT is for messages. (transfer full) */
static gpointer read_record(StoreDb *db, const char *sql, guint64 job, const char *what,
                            const ProtobufCMessageDescriptor *descriptor, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(db, sql, error);
    if (select == NULL)
        return NULL;
    store_bind_uint64(select, 1, job);
    gboolean row = FALSE;
    if (!store_db_step(db, select, what, &row, error))
        return NULL;
    if (!row) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "no job %" G_GUINT64_FORMAT, job);
        return NULL;
    }
    return store_column_message(select, 0, descriptor, what, error);
}

gboolean store_read_dependencies(StoreDb *db, Berth__JobSpec *spec, GError **error)
{
    for (size_t i = 0; i < spec->n_dependencies; i++) {
        Berth__Dependency *dependency = spec->dependencies[i];
        if (dependency->job != 0 &&
            !store_read_job_state(db, dependency->job, &dependency->state, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean read_spec(StoreDb *db, gpointer data, GError **error)
{
    Lookup *lookup = data;
    lookup->out = read_record(db, "SELECT record FROM spec WHERE job = ?1", lookup->job,
                              "read a job's specification", &berth__job_spec__descriptor, error);
    if (lookup->out == NULL || store_read_dependencies(db, lookup->out, error))
        return lookup->out != NULL;
    berth__job_spec__free_unpacked(g_steal_pointer(&lookup->out), NULL);
    return FALSE;
}

Berth__JobSpec *berth_store_get_spec(BerthStore *store, guint64 job, GError **error)
{
    Lookup lookup = {.job = job};
    return store_read(store, read_spec, &lookup, error) ? lookup.out : NULL;
}

static gboolean read_job(StoreDb *db, gpointer data, GError **error)
{
    Lookup *lookup = data;
    g_autoptr(StoreJob) job = read_record(db, "SELECT record FROM job WHERE id = ?1", lookup->job,
                                          "read a job", &berth__job__descriptor, error);
    if (job == NULL || !store_tasks_attach(db, job, lookup->tasks, error) ||
        !store_requests_attach(db, job, error))
        return FALSE;
    Lookup spec = {.job = lookup->job};
    if (!read_spec(db, &spec, error))
        return FALSE;
    job->spec = spec.out;
    lookup->out = g_steal_pointer(&job);
    return TRUE;
}

Berth__Job *berth_store_get_job_with(BerthStore *store, guint64 job, const BerthStoreTasks *tasks,
                                     GError **error)
{
    Lookup lookup = {.job = job, .tasks = tasks};
    return store_read(store, read_job, &lookup, error) ? lookup.out : NULL;
}

Berth__Job *berth_store_get_job(BerthStore *store, guint64 job, GError **error)
{
    static const BerthStoreTasks tasks = {.limit = TASKS_SHOWN};
    return berth_store_get_job_with(store, job, &tasks, error);
}

static gboolean read_task(StoreDb *db, gpointer data, GError **error)
{
    Lookup *lookup = data;
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT record FROM task WHERE job = ?1 AND number = ?2", error);
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, lookup->job);
    sqlite3_bind_int64(select, 2, lookup->number);
    gboolean row = FALSE;
    if (!store_db_step(db, select, "read a task", &row, error))
        return FALSE;
    if (!row) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "no task %" G_GUINT32_FORMAT " of job %" G_GUINT64_FORMAT, lookup->number,
                    lookup->job);
        return FALSE;
    }
    lookup->out = store_column_task(select, 0, error);
    return lookup->out != NULL;
}

Berth__StoredTask *berth_store_get_task(BerthStore *store, guint64 job, guint32 index,
                                        GError **error)
{
    Lookup lookup = {.job = job, .number = index};
    return store_read(store, read_task, &lookup, error) ? lookup.out : NULL;
}

/* --- lists of jobs -------------------------------------------------------------------------- */

typedef struct {
    const BerthStoreQuery *query;
    GPtrArray *jobs; /* Berth__Job */
    gboolean more;
} JobList;

static guint32 limit_of(guint32 limit)
{
    return CLAMP(limit, 1, LIMIT_MAX);
}

/* Bit N = state N is wanted. */
static guint state_mask(const BerthStoreQuery *query)
{
    if (query->states == NULL)
        return ~0u;
    guint mask = 0;
    for (gsize i = 0; i < query->n_states; i++)
        if (query->states[i] >= 0 && query->states[i] < 32)
            mask |= 1u << query->states[i];
    return mask;
}

static void add_filter(GString *sql, const BerthStoreQuery *query)
{
    g_string_append(sql, "id > ?1");
    if (!query->any_uid)
        g_string_append(sql, " AND uid = ?3");
    if (query->jobs != NULL)
        g_string_append(sql, " AND id IN (SELECT value FROM json_each(?4))");
}

/* One walk for each state, each along an index and no longer than the page: whatever the states,
 * and however many other jobs there are. */
static char *list_states_sql(const BerthStoreQuery *query, guint mask)
{
    GString *sql = g_string_new("SELECT record FROM job WHERE id IN (SELECT id FROM (");
    gboolean is_first = TRUE;
    for (guint state = 0; state < 32; state++) {
        if (!(mask >> state & 1))
            continue;
        g_string_append_printf(sql, "%sSELECT id FROM (SELECT id FROM job WHERE state = %u AND ",
                               is_first ? "" : " UNION ALL ", state);
        add_filter(sql, query);
        g_string_append(sql, " ORDER BY id LIMIT ?5)");
        is_first = FALSE;
    }
    if (is_first)
        g_string_append(sql, "SELECT id FROM job WHERE 0");
    g_string_append(sql, ") ORDER BY id LIMIT ?5) ORDER BY id");
    return g_string_free(sql, FALSE);
}

/* The text differs only in what lets SQLite use an index; values of the user are always bound. */
static char *list_sql(const BerthStoreQuery *query)
{
    guint mask = state_mask(query) & KNOWN_STATES;
    if (query->states != NULL && mask != KNOWN_STATES)
        return list_states_sql(query, mask);
    GString *sql = g_string_new("SELECT record FROM job WHERE ");
    add_filter(sql, query);
    g_string_append(sql, " ORDER BY id LIMIT ?5");
    return g_string_free(sql, FALSE);
}

static char *numbers_as_json(const guint64 *numbers, gsize n)
{
    GString *json = g_string_new("[");
    for (gsize i = 0; i < n; i++)
        g_string_append_printf(json, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : "",
                               MIN(numbers[i], (guint64)G_MAXINT64));
    g_string_append_c(json, ']');
    return g_string_free(json, FALSE);
}

static gboolean collect_jobs(StoreDb *db, StoreStatement *select, JobList *list, GError **error)
{
    static const BerthStoreTasks listed = {.limit = TASKS_LISTED};
    guint32 limit = limit_of(list->query->limit);
    gsize bytes_max = list->query->bytes_max > 0 ? list->query->bytes_max : G_MAXSIZE;
    gsize bytes = 0;
    for (;;) {
        gboolean row = FALSE;
        if (!store_db_step(db, select, "list jobs", &row, error))
            return FALSE;
        if (!row)
            return TRUE;
        if (list->jobs->len == limit || bytes >= bytes_max) {
            list->more = TRUE;
            return TRUE;
        }
        Berth__Job *job =
            store_column_message(select, 0, &berth__job__descriptor, "list jobs", error);
        if (job == NULL)
            return FALSE;
        g_ptr_array_add(list->jobs, job);
        if (!store_tasks_attach(db, job, &listed, error))
            return FALSE;
        bytes += berth__job__get_packed_size(job);
    }
}

static gboolean read_list(StoreDb *db, gpointer data, GError **error)
{
    JobList *list = data;
    const BerthStoreQuery *query = list->query;
    g_autofree char *sql = list_sql(query);
    g_autofree char *numbers = NULL;
    g_autoptr(StoreStatement) select = store_db_statement(db, sql, error);
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, query->after_job);
    if (!query->any_uid)
        sqlite3_bind_int64(select, 3, query->uid);
    if (query->jobs != NULL) {
        numbers = numbers_as_json(query->jobs, query->n_jobs);
        sqlite3_bind_text(select, 4, numbers, -1, SQLITE_STATIC);
    }
    sqlite3_bind_int64(select, 5, limit_of(query->limit) + 1);
    store_db_set_stop(db, query->stop);
    gboolean ok = collect_jobs(db, select, list, error);
    store_db_set_stop(db, NULL);
    return ok;
}

GPtrArray *berth_store_list_jobs(BerthStore *store, const BerthStoreQuery *query,
                                 gboolean *out_more, GError **error)
{
    g_autoptr(GPtrArray) jobs = g_ptr_array_new_with_free_func((GDestroyNotify)store_job_free);
    JobList list = {.query = query, .jobs = jobs};
    if (!store_read(store, read_list, &list, error))
        return NULL;
    *out_more = list.more;
    return g_steal_pointer(&jobs);
}

/* --- events --------------------------------------------------------------------------------- */

typedef struct {
    guint64 after_seq;
    guint64 job;
    guint32 limit;
    GPtrArray *events; /* Berth__Event */
} EventList;

static void event_free(Berth__Event *event)
{
    berth__event__free_unpacked(event, NULL);
}

static gboolean read_events(StoreDb *db, gpointer data, GError **error)
{
    EventList *list = data;
    const char *sql = list->job == 0
                          ? "SELECT record FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2"
                          : "SELECT record FROM event WHERE job <> 0 AND job = ?3 AND seq > ?1"
                            " ORDER BY seq LIMIT ?2";
    g_autoptr(StoreStatement) select = store_db_statement(db, sql, error);
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, list->after_seq);
    sqlite3_bind_int64(select, 2, list->limit);
    if (list->job != 0)
        store_bind_uint64(select, 3, list->job);
    for (;;) {
        gboolean row = FALSE;
        if (!store_db_step(db, select, "list events", &row, error))
            return FALSE;
        if (!row)
            return TRUE;
        Berth__Event *event =
            store_column_message(select, 0, &berth__event__descriptor, "list events", error);
        if (event == NULL)
            return FALSE;
        g_ptr_array_add(list->events, event);
    }
}

GPtrArray *berth_store_list_events(BerthStore *store, guint64 after_seq, guint64 job, guint32 limit,
                                   GError **error)
{
    g_autoptr(GPtrArray) events = g_ptr_array_new_with_free_func((GDestroyNotify)event_free);
    EventList list = {
        .after_seq = after_seq, .job = job, .limit = limit_of(limit), .events = events};
    return store_read(store, read_events, &list, error) ? g_steal_pointer(&events) : NULL;
}

typedef struct {
    guint64 time_usec;
    guint64 before_seq;
} EventSearch;

/* *OUT_SEQ: of the newest event; 0 = there is none. */
static gboolean read_newest(StoreDb *db, guint64 *out_seq, GError **error)
{
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT coalesce(max(seq), 0) FROM event", error);
    gboolean row = FALSE;
    if (select == NULL || !store_db_step(db, select, "find an event", &row, error))
        return FALSE;
    *out_seq = (guint64)sqlite3_column_int64(select, 0);
    return TRUE;
}

/* *OUT_TIME_USEC: of the first event from SEQ on. */
static gboolean read_time(StoreDb *db, guint64 seq, guint64 *out_time_usec, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(
        db, "SELECT record FROM event WHERE seq >= ?1 ORDER BY seq LIMIT 1", error);
    gboolean row = FALSE;
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, seq);
    if (!store_db_step(db, select, "find an event", &row, error))
        return FALSE;
    Berth__Event *event =
        row ? store_column_message(select, 0, &berth__event__descriptor, "find an event", error)
            : NULL;
    if (row && event == NULL)
        return FALSE;
    *out_time_usec = row ? event->time_usec : G_MAXUINT64;
    g_clear_pointer(&event, event_free);
    return TRUE;
}

/* Times are in the records alone, so that the log is halved again and again: 40 reads for a million million. */
static gboolean search_events(StoreDb *db, gpointer data, GError **error)
{
    EventSearch *search = data;
    guint64 before = 0, from = 0;
    if (!read_newest(db, &from, error))
        return FALSE;
    from++; /* the first that is known not to be before that time */
    while (before + 1 < from) {
        guint64 middle = before + (from - before) / 2;
        guint64 time_usec;
        if (!read_time(db, middle, &time_usec, error))
            return FALSE;
        if (time_usec < search->time_usec)
            before = middle;
        else
            from = middle;
    }
    search->before_seq = before;
    return TRUE;
}

gboolean berth_store_find_event(BerthStore *store, guint64 time_usec, guint64 *out_before_seq,
                                GError **error)
{
    EventSearch search = {.time_usec = time_usec};
    if (!store_read(store, search_events, &search, error))
        return FALSE;
    *out_before_seq = search.before_seq;
    return TRUE;
}

/* --- the state of a job --------------------------------------------------------------------- */

gboolean store_read_job_state(StoreDb *db, guint64 job, Berth__JobState *out_state, GError **error)
{
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT state FROM job WHERE id = ?1", error);
    gboolean row = FALSE;
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, job);
    if (!store_db_step(db, select, "read a job's state", &row, error))
        return FALSE;
    *out_state = row ? (Berth__JobState)sqlite3_column_int(select, 0)
                     : BERTH__JOB_STATE__JOB_STATE_UNSPECIFIED;
    return TRUE;
}

static gboolean read_states(StoreDb *db, gpointer data, GError **error)
{
    GHashTableIter iter;
    gpointer job;
    g_hash_table_iter_init(&iter, data);
    while (g_hash_table_iter_next(&iter, &job, NULL)) {
        Berth__JobState state;
        if (!store_read_job_state(db, *(const guint64 *)job, &state, error))
            return FALSE;
        g_hash_table_iter_replace(&iter, GINT_TO_POINTER(state));
    }
    return TRUE;
}

gboolean berth_store_get_job_states(BerthStore *store, GHashTable *states, GError **error)
{
    return g_hash_table_size(states) == 0 || store_read(store, read_states, states, error);
}

typedef struct {
    guint64 job;
    BerthIndexRange wanted;
    GArray *completed;
} CompletedLookup;

static gboolean read_completed(StoreDb *db, gpointer data, GError **error)
{
    const CompletedLookup *lookup = data;
    return store_tasks_read_completed(db, lookup->job, &lookup->wanted, lookup->completed, error);
}

gboolean berth_store_get_completed(BerthStore *store, guint64 job, guint32 first, guint32 last,
                                   GArray *completed, GError **error)
{
    CompletedLookup lookup = {job, {first, last, 1}, completed};
    return store_read(store, read_completed, &lookup, error);
}

/* --- keys and blobs ------------------------------------------------------------------------- */

typedef struct {
    guint32 uid;
    const char *key;
    guint64 job;
} KeyLookup;

static gboolean read_key(StoreDb *db, gpointer data, GError **error)
{
    KeyLookup *lookup = data;
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT job FROM idempotency WHERE uid = ?1 AND key = ?2", error);
    if (select == NULL)
        return FALSE;
    sqlite3_bind_int64(select, 1, lookup->uid);
    sqlite3_bind_text(select, 2, lookup->key, -1, SQLITE_STATIC);
    gboolean row = FALSE;
    if (!store_db_step(db, select, "look up an idempotency key", &row, error))
        return FALSE;
    lookup->job = row ? (guint64)sqlite3_column_int64(select, 0) : 0;
    return TRUE;
}

guint64 berth_store_find_idempotency_key(BerthStore *store, guint32 uid, const char *key,
                                         GError **error)
{
    KeyLookup lookup = {.uid = uid, .key = key};
    return store_read(store, read_key, &lookup, error) ? lookup.job : 0;
}

typedef struct {
    const guint8 *sha256;
    GBytes *content;
    gboolean used;
} BlobLookup;

static gboolean read_blob(StoreDb *db, gpointer data, GError **error)
{
    BlobLookup *lookup = data;
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT content FROM blob WHERE sha256 = ?1", error);
    if (select == NULL)
        return FALSE;
    sqlite3_bind_blob(select, 1, lookup->sha256, SHA256_BYTES, SQLITE_STATIC);
    gboolean row = FALSE;
    if (!store_db_step(db, select, "read a blob", &row, error))
        return FALSE;
    if (row)
        lookup->content =
            g_bytes_new(sqlite3_column_blob(select, 0), (gsize)sqlite3_column_bytes(select, 0));
    return TRUE;
}

GBytes *berth_store_get_blob(BerthStore *store, const guint8 sha256[32], GError **error)
{
    BlobLookup lookup = {.sha256 = sha256};
    return store_read(store, read_blob, &lookup, error) ? lookup.content : NULL;
}

static gboolean read_blob_use(StoreDb *db, gpointer data, GError **error)
{
    BlobLookup *lookup = data;
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT 1 FROM job_blob WHERE sha256 = ?1 LIMIT 1", error);
    if (select == NULL)
        return FALSE;
    sqlite3_bind_blob(select, 1, lookup->sha256, SHA256_BYTES, SQLITE_STATIC);
    return store_db_step(db, select, "look for uses of a blob", &lookup->used, error);
}

gboolean berth_store_blob_is_used(BerthStore *store, const guint8 sha256[32], gboolean *out_used,
                                  GError **error)
{
    BlobLookup lookup = {.sha256 = sha256};
    if (!store_read(store, read_blob_use, &lookup, error))
        return FALSE;
    *out_used = lookup.used;
    return TRUE;
}
