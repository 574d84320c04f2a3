/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which tasks of an array have not ended as they were to. The array's record has how many, and each task's its own state. */
#include "cli/failed_tasks.h"

#include "cli/tasks.h"
#include "common/types.h"

void berth_failed_tasks_clear(BerthFailedTasks *failed)
{
    for (guint state = 0; state < G_N_ELEMENTS(failed->by_state); state++)
        g_clear_pointer(&failed->by_state[state], berth_index_set_free);
}

static gboolean has_failed(const Berth__Task *task)
{
    return berth_job_state_is_final((BerthJobState)task->state) &&
           task->state != BERTH__JOB_STATE__COMPLETED && task->state < BERTH_TASK_STATES;
}

static guint64 add(BerthFailedTasks *failed, const Berth__Task *task)
{
    BerthIndexSet **indices = &failed->by_state[task->state];
    const BerthIndexRange range =
        berth_index_range_of(task->index, task->rest_last, task->rest_step);
    if (*indices == NULL)
        *indices = berth_index_set_new();
    berth_index_set_add(*indices, range);
    return berth_index_range_count(&range);
}

static guint64 take_page(const Berth__Job *page, gpointer user_data)
{
    guint64 n = 0;
    for (size_t i = 0; i < page->n_tasks; i++)
        if (has_failed(page->tasks[i]))
            n += add(user_data, page->tasks[i]);
    return n;
}

gboolean berth_failed_tasks_find(BerthCli *cli, const Berth__Job *job, BerthFailedTasks *out_failed,
                                 GError **error)
{
    const Berth__TaskCounts counts = berth_job_count(job, FALSE);
    BerthTaskSearch search = {.take = take_page, .user_data = out_failed};
    guint64 n_failed = (guint64)counts.failed + counts.timeout + counts.out_of_memory +
                       counts.node_fail + counts.cancelled;
    return berth_task_search(cli, &search, job, n_failed, &out_failed->rest, error);
}
