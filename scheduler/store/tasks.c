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

GPtrArray *store_tasks_read(StoreDb *db, guint64 job, GError **error)
{
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT record FROM task WHERE job = ?1 ORDER BY number", error);
    if (select == NULL)
        return NULL;
    store_bind_uint64(select, 1, job);
    g_autoptr(GPtrArray) tasks = g_ptr_array_new_with_free_func((GDestroyNotify)stored_task_free);
    for (;;) {
        gboolean row = FALSE;
        if (!store_db_step(db, select, "read a job's tasks", &row, error))
            return NULL;
        if (!row)
            return g_steal_pointer(&tasks);
        Berth__StoredTask *task = store_column_task(select, 0, error);
        if (task == NULL)
            return NULL;
        g_ptr_array_add(tasks, task);
    }
}

gboolean store_tasks_attach(StoreDb *db, Berth__Job *job, GError **error)
{
    g_autoptr(GPtrArray) stored = store_tasks_read(db, job->id, error);
    if (stored == NULL)
        return FALSE;
    /* The message is freed by protobuf-c, with free(): what g_new() gives is of malloc(). */
    job->tasks = g_new(Berth__Task *, stored->len);
    job->n_tasks = stored->len;
    for (guint i = 0; i < stored->len; i++) {
        Berth__StoredTask *task = g_ptr_array_index(stored, i);
        job->tasks[i] = g_steal_pointer(&task->task);
    }
    return TRUE;
}
