/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from stored tasks to the tasks of a job message. */
#include "scheduler/store/tasks.h"

#include "common/error.h"
#include "common/message.h"

void store_job_free(StoreJob *job)
{
    berth__job__free_unpacked(job, NULL);
}

static void stored_task_free(Berth__StoredTask *task)
{
    berth__stored_task__free_unpacked(task, NULL);
}

Berth__StoredTask *store_column_task(StoreStatement *statement, int column, GError **error)
{
    Berth__StoredTask *task = store_column_message(
        statement, column, &berth__stored_task__descriptor, "read a task", error);
    if (task == NULL || task->task != NULL)
        return task;
    stored_task_free(task);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "cannot read a task in the state database: its record is incomplete; put a backup "
                "in its place");
    return NULL;
}

/* The next record that SELECT finds (transfer full), or NULL after the last. */
static gboolean next_record(StoreDb *db, StoreStatement *select, Berth__StoredTask **out_record,
                            GError **error)
{
    gboolean row = FALSE;
    *out_record = NULL;
    if (!store_db_step(db, select, "read a job's tasks", &row, error))
        return FALSE;
    if (row)
        *out_record = store_column_task(select, 0, error);
    return !row || *out_record != NULL;
}

/* All that SELECT finds go into OUT. */
static gboolean collect(StoreDb *db, StoreStatement *select, GPtrArray *out, GError **error)
{
    Berth__StoredTask *record;
    while (next_record(db, select, &record, error)) {
        if (record == NULL)
            return TRUE;
        g_ptr_array_add(out, record);
    }
    return FALSE;
}

static GPtrArray *new_tasks(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)stored_task_free);
}

GPtrArray *store_tasks_read_open(StoreDb *db, guint64 job, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(
        db, "SELECT record FROM task WHERE job = ?1 AND done = 0 ORDER BY number", error);
    if (select == NULL)
        return NULL;
    store_bind_uint64(select, 1, job);
    g_autoptr(GPtrArray) tasks = new_tasks();
    return collect(db, select, tasks, error) ? g_steal_pointer(&tasks) : NULL;
}

/* --- some of an array ------------------------------------------------------------------------- */

/* A record of its own, of RECORD that stands for it. */
static Berth__StoredTask *own_record(const Berth__StoredTask *record, guint32 index)
{
    Berth__StoredTask *own = (Berth__StoredTask *)berth_message_copy(&record->base);
    own->task->index = index;
    own->task->rest_last = own->task->rest_step = 0;
    return own;
}

static guint32 index_at(const GPtrArray *tasks, guint i)
{
    const Berth__StoredTask *stored = g_ptr_array_index(tasks, i);
    return stored->task->index;
}

static gint compare_tasks(gconstpointer a, gconstpointer b)
{
    const Berth__StoredTask *left = *(Berth__StoredTask *const *)a;
    const Berth__StoredTask *right = *(Berth__StoredTask *const *)b;
    return left->task->index < right->task->index ? -1 : left->task->index > right->task->index;
}

/* The first LIMIT of TASKS, in order. */
static void keep_first(GPtrArray *tasks, guint32 limit)
{
    g_ptr_array_sort(tasks, compare_tasks);
    if (tasks->len > limit)
        g_ptr_array_set_size(tasks, (gint)limit);
}

/* Those of WANTED, LIMIT at most, for which RECORD stands. */
static void pick(const Berth__StoredTask *record, const BerthIndexRange *wanted, guint32 limit,
                 GPtrArray *out)
{
    const Berth__Task *task = record->task;
    const BerthIndexRange own = berth_index_range_of(task->index, task->rest_last, task->rest_step);
    BerthIndexRange both;
    if (!berth_index_range_intersect(&own, wanted, &both))
        return;
    guint32 n = MIN(berth_index_range_count(&both), limit);
    for (guint32 i = 0; i < n; i++)
        g_ptr_array_add(out, own_record(record, both.first + i * both.step));
}

/* SQL about tasks of JOB, ?1, from ?2 to ?3. */
static StoreStatement *select_of(StoreDb *db, const char *sql, guint64 job,
                                 const BerthIndexRange *wanted, GError **error)
{
    StoreStatement *select = store_db_statement(db, sql, error);
    if (select == NULL)
        return NULL;
    store_bind_uint64(select, 1, job);
    sqlite3_bind_int64(select, 2, wanted->first);
    sqlite3_bind_int64(select, 3, wanted->last);
    return select;
}

/* One that follows the last is added to that. */
static void add_completed(GArray *completed, guint64 job, guint32 index)
{
    BerthTaskRange *last =
        completed->len > 0 ? &g_array_index(completed, BerthTaskRange, completed->len - 1) : NULL;
    BerthTaskRange alone = {job, {index, index, 1}};
    if (last != NULL && last->job == job && last->tasks.last + 1 == index)
        last->tasks.last = index;
    else
        g_array_append_val(completed, alone);
}

/* A row that stands for others is of tasks that have never started. */
gboolean store_tasks_read_completed(StoreDb *db, guint64 job, const BerthIndexRange *wanted,
                                    GArray *completed, GError **error)
{
    static const char sql[] = "SELECT record FROM task WHERE job = ?1 AND number BETWEEN ?2 AND ?3"
                              " AND rest_last = 0 ORDER BY number";
    g_autoptr(StoreStatement) select = select_of(db, sql, job, wanted, error);
    if (select == NULL)
        return FALSE;
    Berth__StoredTask *record;
    while (next_record(db, select, &record, error)) {
        if (record == NULL)
            return TRUE;
        if (record->task->state == BERTH__JOB_STATE__COMPLETED)
            add_completed(completed, job, record->task->index);
        stored_task_free(record);
    }
    return FALSE;
}

/* Those of WANTED that have rows of their own. */
static gboolean select_own(StoreDb *db, guint64 job, const BerthIndexRange *wanted, guint32 limit,
                           GPtrArray *out, GError **error)
{
    static const char sql[] = "SELECT record FROM task WHERE job = ?1 AND number BETWEEN ?2 AND ?3"
                              " AND rest_last = 0 AND (number - ?2) % ?4 = 0"
                              " ORDER BY number LIMIT ?5";
    g_autoptr(StoreStatement) select = select_of(db, sql, job, wanted, error);
    if (select == NULL)
        return FALSE;
    sqlite3_bind_int64(select, 4, wanted->step);
    sqlite3_bind_int64(select, 5, limit);
    return collect(db, select, out, error);
}

/* Those of WANTED for which rows of others stand, whose tasks may lie between each other's: the first LIMIT are among what
 * is left in OUT. */
static gboolean select_rest(StoreDb *db, guint64 job, const BerthIndexRange *wanted, guint32 limit,
                            GPtrArray *out, GError **error)
{
    static const char sql[] = "SELECT record FROM task WHERE job = ?1 AND number <= ?3"
                              " AND rest_last > 0 AND rest_last >= ?2 ORDER BY number";
    g_autoptr(StoreStatement) select = select_of(db, sql, job, wanted, error);
    if (select == NULL)
        return FALSE;
    Berth__StoredTask *record;
    while (next_record(db, select, &record, error)) {
        if (record == NULL)
            return TRUE;
        pick(record, wanted, limit, out);
        guint32 index = record->task->index;
        stored_task_free(record);
        if (out->len < 2 * limit)
            continue;
        keep_first(out, limit);
        if (index_at(out, limit - 1) < index)
            return TRUE; /* what follows is behind all of these */
    }
    return FALSE;
}

static gboolean read_range(StoreDb *db, guint64 job, const BerthIndexRange *range,
                           const BerthStoreTasks *tasks, GPtrArray *out, GError **error)
{
    BerthIndexRange behind = {0, G_MAXUINT32, 1};
    BerthIndexRange wanted;
    guint32 limit = tasks->limit - out->len;
    g_autoptr(GPtrArray) found = new_tasks();
    if (tasks->follows && tasks->after == G_MAXUINT32)
        return TRUE;
    if (tasks->follows)
        behind.first = tasks->after + 1;
    if (!berth_index_range_intersect(range, &behind, &wanted))
        return TRUE;
    if (!select_own(db, job, &wanted, limit, found, error) ||
        !select_rest(db, job, &wanted, limit, found, error))
        return FALSE;
    keep_first(found, limit);
    g_ptr_array_extend_and_steal(out, g_steal_pointer(&found));
    return TRUE;
}

static gboolean read_only(StoreDb *db, guint64 job, const BerthStoreTasks *tasks, GPtrArray *out,
                          GError **error)
{
    for (guint i = 0; i < berth_index_set_n_ranges(tasks->only) && out->len < tasks->limit; i++)
        if (!read_range(db, job, berth_index_set_range(tasks->only, i), tasks, out, error))
            return FALSE;
    return TRUE;
}

/* What SQL finds of JOB from FIRST on, LIMIT at most. */
static gboolean select_from(StoreDb *db, const char *sql, guint64 job, gint64 first, guint32 limit,
                            GPtrArray *out, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(db, sql, error);
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, job);
    sqlite3_bind_int64(select, 2, first);
    sqlite3_bind_int64(select, 3, limit);
    return collect(db, select, out, error);
}

static GPtrArray *read_tasks(StoreDb *db, const Berth__Job *job, const BerthStoreTasks *tasks,
                             GError **error)
{
    static const char all[] = "SELECT record FROM task WHERE job = ?1 AND number >= ?2"
                              " ORDER BY number LIMIT ?3";
    static const char open[] = "SELECT record FROM task WHERE job = ?1 AND done = 0"
                               " AND number >= ?2 ORDER BY number LIMIT ?3";
    g_autoptr(GPtrArray) found = new_tasks();
    gint64 first = tasks->follows ? (gint64)tasks->after + 1 : 0;
    gboolean ok;
    if (job->array == NULL)
        ok = select_from(db, all, job->id, 0, 1, found, error);
    else if (tasks->only != NULL)
        ok = read_only(db, job->id, tasks, found, error);
    else
        ok = select_from(db, tasks->done ? all : open, job->id, first, tasks->limit, found, error);
    return ok ? g_steal_pointer(&found) : NULL;
}

gboolean store_tasks_attach(StoreDb *db, Berth__Job *job, const BerthStoreTasks *tasks,
                            GError **error)
{
    g_autoptr(GPtrArray) stored = read_tasks(db, job, tasks, error);
    if (stored == NULL)
        return FALSE;
    /* The message is freed by protobuf-c, with free(): what g_new() gives is of malloc(). */
    job->tasks = g_new(Berth__Task *, MAX(stored->len, 1));
    job->n_tasks = stored->len;
    for (guint i = 0; i < stored->len; i++) {
        Berth__StoredTask *task = g_ptr_array_index(stored, i);
        job->tasks[i] = g_steal_pointer(&task->task);
    }
    return TRUE;
}
