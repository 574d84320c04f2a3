/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a job is asked for, and that the tasks that were named are there. */
#include "cli/job_get.h"
#include "cli/tasks.h"

#include "common/error.h"
#include "common/ranges.h"

/* AFTER: only those that follow; NULL = all. */
static Berth__Job *ask(BerthCli *cli, const BerthCliTasks *named, gboolean of_all,
                       const guint32 *after, GError **error)
{
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = named->job;
    request.all_tasks = of_all;
    request.follows = after != NULL;
    request.after_task = after != NULL ? *after : 0;
    g_auto(BerthRanges) tasks = berth_ranges_of(named->tasks);
    request.tasks = tasks.ranges;
    request.n_tasks = tasks.n;
    Berth__Job *reply =
        (Berth__Job *)berth_cli_call(cli, &berth__jobs__descriptor, "Get", &request.base, error);
    return reply;
}

static gboolean check_array(const Berth__Job *job, GError **error)
{
    if (job->array == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "job %" G_GUINT64_FORMAT " is no array: name it without indices", job->id);
    return job->array != NULL;
}

/* TASKS are none of JOB's. */
static void refuse(const Berth__Job *job, const BerthIndexSet *tasks, GError **error)
{
    g_autofree char *name = berth_tasks_format(job->id, tasks);
    g_autofree char *all = berth_ranges_format(job->array->tasks, job->array->n_tasks, 60);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "there is no job %s: its tasks are %s",
                name, all);
}

/* Further ones than those before need not be there. */
static gboolean check(const Berth__Job *job, const BerthIndexSet *tasks, GError **error)
{
    if (tasks == NULL)
        return TRUE;
    if (!check_array(job, error))
        return FALSE;
    if (job->n_tasks == 0)
        refuse(job, tasks, error);
    return job->n_tasks > 0;
}

Berth__Job *berth_get_job_tasks(BerthCli *cli, guint64 job, const BerthIndexSet *tasks,
                                GError **error)
{
    const BerthCliTasks named = {job, (BerthIndexSet *)tasks};
    Berth__Job *reply = ask(cli, &named, FALSE, NULL, error);
    if (reply == NULL || check(reply, tasks, error))
        return reply;
    berth__job__free_unpacked(reply, NULL);
    return NULL;
}

Berth__Job *berth_get_job(BerthCli *cli, guint64 job, GError **error)
{
    return berth_get_job_tasks(cli, job, NULL, error);
}

/* No task follows those of PAGE: it has none, or the last that there can be. */
static gboolean is_last(const Berth__Job *page, const BerthIndexSet *tasks)
{
    guint32 end = 0;
    if (page->array == NULL || page->n_tasks == 0)
        return TRUE;
    const Berth__Task *last = page->tasks[page->n_tasks - 1];
    for (size_t i = 0; i < page->array->n_tasks; i++)
        end = MAX(end, page->array->tasks[i]->last);
    return MAX(last->index, last->rest_last) >= (tasks != NULL ? berth_index_set_last(tasks) : end);
}

static gboolean get_pages(BerthCli *cli, const BerthCliTasks *named, gboolean of_all,
                          const guint32 *after, BerthTaskPageFunc take, gpointer user_data,
                          GError **error)
{
    guint32 last = after != NULL ? *after : 0;
    gboolean is_first = after == NULL;
    gboolean goes_on = TRUE;
    while (goes_on) {
        Berth__Job *page = ask(cli, named, of_all, is_first ? NULL : &last, error);
        gboolean is_good = page != NULL && (!is_first || check(page, named->tasks, error));
        if (is_good && page->n_tasks > 0)
            last = page->tasks[page->n_tasks - 1]->index;
        gboolean is_wanted = is_good && (is_first || page->n_tasks > 0);
        goes_on = is_good && (!is_wanted || take(page, user_data)) && !is_last(page, named->tasks);
        is_first = FALSE;
        if (page != NULL)
            berth__job__free_unpacked(page, NULL);
        if (!is_good)
            return FALSE;
    }
    return TRUE;
}

gboolean berth_get_task_pages(BerthCli *cli, const BerthCliTasks *named, const guint32 *after,
                              BerthTaskPageFunc take, gpointer user_data, GError **error)
{
    return get_pages(cli, named, FALSE, after, take, user_data, error);
}

gboolean berth_get_all_task_pages(BerthCli *cli, guint64 job, BerthTaskPageFunc take,
                                  gpointer user_data, GError **error)
{
    const BerthCliTasks all = {job, NULL};
    return get_pages(cli, &all, TRUE, NULL, take, user_data, error);
}

BerthIndexSet *berth_job_find_tasks(const Berth__Job *job, const BerthIndexSet *tasks,
                                    GError **out_absent, GError **error)
{
    g_autoptr(BerthIndexSet) found = berth_index_set_new();
    if (!check_array(job, error))
        return NULL;
    for (size_t i = 0; i < job->array->n_tasks; i++) {
        const BerthIndexRange range = berth_range_of(job->array->tasks[i]);
        g_autoptr(BerthIndexSet) within = berth_index_set_within(tasks, &range);
        berth_index_set_add_all(found, within);
    }
    if (berth_index_set_count(found) == 0) {
        refuse(job, tasks, error);
        return NULL;
    }
    if (berth_index_set_count(found) < berth_index_set_count(tasks)) {
        g_autoptr(BerthIndexSet) absent = berth_index_set_without(tasks, found);
        refuse(job, absent, out_absent);
    }
    return g_steal_pointer(&found);
}
