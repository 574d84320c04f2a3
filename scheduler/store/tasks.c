/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from stored tasks to the tasks of a job message. */
#include "scheduler/store/tasks.h"

#include "common/error.h"

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

/* All that SELECT finds go into OUT. */
static gboolean collect(StoreDb *db, StoreStatement *select, GPtrArray *out, GError **error)
{
    for (;;) {
        gboolean row = FALSE;
        if (!store_db_step(db, select, "read a job's tasks", &row, error))
            return FALSE;
        if (!row)
            return TRUE;
        Berth__StoredTask *task = store_column_task(select, 0, error);
        if (task == NULL)
            return FALSE;
        g_ptr_array_add(out, task);
    }
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

#define PAGE_ROWS 1000u

static const char all_sql[] = "SELECT record FROM task WHERE job = ?1 AND number BETWEEN ?2 AND ?3"
                              " ORDER BY number LIMIT ?4";

/* What SQL finds of JOB from FIRST to LAST, so many at most. */
static gboolean select_some(StoreDb *db, const char *sql, guint64 job, gint64 first, gint64 last,
                            guint32 limit, GPtrArray *out, GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(db, sql, error);
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, job);
    sqlite3_bind_int64(select, 2, first);
    sqlite3_bind_int64(select, 3, last);
    sqlite3_bind_int64(select, 4, limit);
    return collect(db, select, out, error);
}

/* A record of its own, of RECORD that stands for it. */
static Berth__StoredTask *own_record(const Berth__StoredTask *record, guint32 index)
{
    gsize size = berth__stored_task__get_packed_size(record);
    g_autofree guint8 *packed = g_malloc(MAX(size, 1));
    berth__stored_task__pack(record, packed);
    Berth__StoredTask *own = berth__stored_task__unpack(NULL, size, packed);
    own->task->index = index;
    own->task->rest_last = own->task->rest_step = 0;
    return own;
}

/* Those of RANGE, from FIRST on, for which RECORD stands. */
static void pick(const Berth__StoredTask *record, const BerthIndexRange *range, guint32 first,
                 guint32 limit, GPtrArray *out)
{
    const Berth__Task *task = record->task;
    BerthIndexRange own = {task->index, task->index, 1};
    if (task->rest_step > 0)
        own = (BerthIndexRange){task->index, task->rest_last, task->rest_step};
    guint64 index = first;
    if (own.first > first)
        index += ((guint64)own.first - first + range->step - 1) / range->step * range->step;
    for (; index <= MIN(range->last, own.last) && out->len < limit; index += range->step)
        if (berth_index_range_contains(&own, (guint32)index))
            g_ptr_array_add(out, own_record(record, (guint32)index));
}

/* Page after page of rows, as there may be many of none of the indices. */
static gboolean read_rows(StoreDb *db, guint64 job, const BerthIndexRange *range, guint32 first,
                          guint32 limit, GPtrArray *out, GError **error)
{
    for (gint64 from = first; from <= range->last && out->len < limit;) {
        g_autoptr(GPtrArray) found = new_tasks();
        if (!select_some(db, all_sql, job, from, range->last, PAGE_ROWS, found, error))
            return FALSE;
        for (guint i = 0; i < found->len; i++)
            pick(g_ptr_array_index(found, i), range, first, limit, out);
        if (found->len < PAGE_ROWS)
            return TRUE;
        const Berth__StoredTask *last = g_ptr_array_index(found, found->len - 1);
        from = (gint64)last->task->index + 1;
    }
    return TRUE;
}

static gboolean read_range(StoreDb *db, guint64 job, const BerthIndexRange *range,
                           const BerthStoreTasks *tasks, GPtrArray *out, GError **error)
{
    static const char before[] = "SELECT record FROM task WHERE job = ?1 AND number < ?2"
                                 " AND number <= ?3 ORDER BY number DESC LIMIT ?4";
    guint64 first = range->first;
    if (tasks->follows && tasks->after >= first)
        first += ((tasks->after - first) / range->step + 1) * range->step;
    if (first > range->last)
        return TRUE;
    /* The row before may stand for some. */
    g_autoptr(GPtrArray) found = new_tasks();
    if (!select_some(db, before, job, (gint64)first, range->last, 1, found, error))
        return FALSE;
    if (found->len > 0)
        pick(g_ptr_array_index(found, 0), range, (guint32)first, tasks->limit, out);
    return read_rows(db, job, range, (guint32)first, tasks->limit, out, error);
}

static gboolean read_only(StoreDb *db, guint64 job, const BerthStoreTasks *tasks, GPtrArray *out,
                          GError **error)
{
    for (guint i = 0; i < berth_index_set_n_ranges(tasks->only) && out->len < tasks->limit; i++)
        if (!read_range(db, job, berth_index_set_range(tasks->only, i), tasks, out, error))
            return FALSE;
    return TRUE;
}

static GPtrArray *read_tasks(StoreDb *db, const Berth__Job *job, const BerthStoreTasks *tasks,
                             GError **error)
{
    static const char open[] = "SELECT record FROM task WHERE job = ?1 AND done = 0"
                               " AND number BETWEEN ?2 AND ?3 ORDER BY number LIMIT ?4";
    g_autoptr(GPtrArray) found = new_tasks();
    gboolean ok;
    if (job->array == NULL)
        ok = select_some(db, all_sql, job->id, 0, G_MAXUINT32, 1, found, error);
    else if (tasks->only != NULL)
        ok = read_only(db, job->id, tasks, found, error);
    else
        ok = select_some(db, tasks->done ? all_sql : open, job->id,
                         tasks->follows ? (gint64)tasks->after + 1 : 0, G_MAXUINT32, tasks->limit,
                         found, error);
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
