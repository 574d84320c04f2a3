/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which tasks of an array are meant, by a name, a record or an event, and how they are written. Pure. */
#include "cli/tasks.h"

#include "common/id.h"
#include "common/ranges.h"
#include "common/task_counts.h"

#include <string.h>

/* --- what is meant ----------------------------------------------------------------------------- */

const Berth__Task *berth_job_one_task(const Berth__Job *job, const BerthIndexSet *tasks)
{
    if (job->array == NULL)
        return job->n_tasks > 0 ? job->tasks[0] : NULL;
    if (tasks == NULL || berth_index_set_count(tasks) != 1)
        return NULL;
    for (size_t i = 0; i < job->n_tasks; i++)
        if (berth_index_set_contains(tasks, job->tasks[i]->index))
            return job->tasks[i];
    return NULL;
}

Berth__JobState berth_job_state_of(const Berth__Job *job, const Berth__Task *task)
{
    return job->array != NULL && task != NULL ? task->state : job->state;
}

BerthIndexRange berth_event_range(const Berth__Event *event)
{
    return berth_index_range_of(event->task, event->rest_last, event->rest_step);
}

gboolean berth_event_is_of(const Berth__Event *event, const BerthIndexSet *tasks)
{
    if (tasks == NULL || !event->of_array)
        return TRUE;
    const BerthIndexRange range = berth_event_range(event);
    return berth_index_set_meets(tasks, &range);
}

Berth__TaskCounts berth_job_count(const Berth__Job *job, gboolean only_present)
{
    Berth__TaskCounts counts = BERTH__TASK_COUNTS__INIT;
    if (!only_present)
        return job->counts != NULL ? *job->counts : counts;
    for (size_t i = 0; i < job->n_tasks; i++) {
        uint32_t *counter = berth_task_counter(&counts, job->tasks[i]->state);
        if (counter != NULL)
            ++*counter;
    }
    return counts;
}

guint64 berth_job_n_open(const Berth__Job *job)
{
    const Berth__TaskCounts counts = berth_job_count(job, FALSE);
    guint64 n_unended = (guint64)counts.pending + counts.running + counts.suspended;
    guint64 n_unstarted = 0;
    for (size_t i = 0; i < job->n_unstarted; i++) {
        const BerthIndexRange range = berth_range_of(job->unstarted[i]);
        n_unstarted += berth_index_range_count(&range);
    }
    n_unstarted =
        MAX(n_unstarted, job->unstarted_count); /* which a berthd of before does not tell */
    return n_unended - MIN(n_unended, n_unstarted);
}

/* --- how it is written -------------------------------------------------------------------------- */

/* Of tasks in messages. */
#define NAME_WIDTH 60u

/* FALSE: TEXT is long enough, and TEXT says that there are more. */
static gboolean append_range(GString *text, const BerthIndexRange *range, gsize width)
{
    g_autofree char *one = berth_index_range_format(range);
    if (text->len > 0 && text->len + 1 + strlen(one) > width) {
        g_string_append(text, ",...");
        return FALSE;
    }
    g_string_append_printf(text, "%s%s", text->len > 0 ? "," : "", one);
    return TRUE;
}

char *berth_ranges_format(Berth__IndexRange *const *ranges, gsize n_ranges, gsize width)
{
    GString *text = g_string_new(NULL);
    gboolean has_room = TRUE;
    for (gsize i = 0; has_room && i < n_ranges; i++) {
        const BerthIndexRange range = berth_range_of(ranges[i]);
        if (range.last >= range.first)
            has_room = append_range(text, &range, width);
    }
    return g_string_free(text, FALSE);
}

char *berth_array_format(const Berth__Job *job, gsize width)
{
    g_autofree char *tasks = berth_ranges_format(job->array->tasks, job->array->n_tasks, width);
    if (job->array->running_max == 0)
        return g_steal_pointer(&tasks);
    return g_strdup_printf("%s%%%u", tasks, job->array->running_max);
}

char *berth_tasks_format(guint64 job, const BerthIndexSet *tasks)
{
    g_autoptr(GString) text = g_string_new(NULL);
    gboolean has_room = TRUE;
    if (tasks == NULL)
        return berth_job_id_format(job);
    for (guint i = 0; has_room && i < berth_index_set_n_ranges(tasks); i++)
        has_room = append_range(text, berth_index_set_range(tasks, i), NAME_WIDTH);
    return g_strdup_printf("%" G_GUINT64_FORMAT "[%s]", job, text->str);
}

static char *format_range(guint64 job, gboolean of_array, BerthIndexRange range)
{
    if (!of_array)
        return berth_job_id_format(job);
    g_autofree char *indices = berth_index_range_format(&range);
    return g_strdup_printf("%" G_GUINT64_FORMAT "[%s]", job, indices);
}

char *berth_task_format(const Berth__Job *job, const Berth__Task *task)
{
    return format_range(job->id, job->array != NULL,
                        berth_index_range_of(task->index, task->rest_last, task->rest_step));
}

char *berth_event_task_format(const Berth__Event *event)
{
    return format_range(event->job, event->of_array, berth_event_range(event));
}

char *berth_counts_format(const Berth__TaskCounts *counts)
{
    const struct {
        guint32 n;
        const char *what;
    } parts[] = {
        {counts->running, "running"},
        {counts->suspended, "suspended"},
        {counts->pending, "waiting"},
        {counts->completed, "completed"},
        {counts->failed, "failed"},
        {counts->timeout, "out of time"},
        {counts->out_of_memory, "out of memory"},
        {counts->node_fail, "lost with nodes"},
        {counts->cancelled, "cancelled"},
    };
    GString *text = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        if (parts[i].n > 0)
            g_string_append_printf(text, "%s%u %s", text->len > 0 ? ", " : "", parts[i].n,
                                   parts[i].what);
    return g_string_free(text, FALSE);
}
