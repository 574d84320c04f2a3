/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how far arrays are searched for tasks that have ended, and what is said of where that stopped. */
#include "cli/task_search.h"

#include "cli/job_get.h"

/* A million take seconds. */
#define LOOKED_AT_MAX 100000u

typedef struct {
    BerthTaskSearch *search;
    BerthTaskRest rest;
} Walk;

static gboolean is_over(const Walk *walk)
{
    return walk->rest.n == 0 || walk->search->n_looked_at >= LOOKED_AT_MAX;
}

static guint32 last_of(const Berth__Job *job)
{
    guint32 last = 0;
    for (size_t i = 0; i < job->array->n_tasks; i++)
        last = MAX(last, job->array->tasks[i]->last);
    return last;
}

static gboolean take_page(const Berth__Job *page, gpointer user_data)
{
    Walk *walk = user_data;
    guint64 n_taken = walk->search->take(page, walk->search->user_data);
    walk->rest.n -= MIN(walk->rest.n, n_taken);
    walk->search->n_looked_at += page->n_tasks;
    if (page->n_tasks > 0)
        walk->rest.first = page->tasks[page->n_tasks - 1]->index + 1;
    return !is_over(walk);
}

gboolean berth_task_search(BerthCli *cli, BerthTaskSearch *search, const Berth__Job *job,
                           guint64 n_wanted, BerthTaskRest *out_rest, GError **error)
{
    Walk walk = {search, {.n = n_wanted, .first = 0}};
    if (!is_over(&walk) && !berth_get_all_task_pages(cli, job->id, take_page, &walk, error))
        return FALSE;
    /* All were looked at: those that are missing are in another state by now. */
    if (!is_over(&walk) || walk.rest.first > last_of(job))
        walk.rest.n = 0;
    *out_rest = walk.rest;
    return TRUE;
}

char *berth_task_rest_command(const BerthTaskRest *rest, const Berth__Job *job, const char *states)
{
    return g_strdup_printf("berth ls --state %s %" G_GUINT64_FORMAT "[%u-%u]", states, job->id,
                           rest->first, last_of(job));
}
