/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the merging of classes into one line of tasks. The first is looked for when it is asked for:
 * there are few classes before the plan is full. */
#include "scheduler/core/ahead.h"

#include "scheduler/core/job.h"

/* The tasks of one class. */
typedef struct {
    gint64 rank;
    CoreHeapWalk jobs;
    CoreJob *job; /* whose tasks are next */
    guint32 left; /* so many of them */
} Cursor;

struct CoreAhead {
    GArray *cursors; /* Cursor, in any order */
};

CoreAhead *core_ahead_new(void)
{
    CoreAhead *ahead = g_new(CoreAhead, 1);
    ahead->cursors = g_array_new(FALSE, FALSE, sizeof(Cursor));
    return ahead;
}

void core_ahead_free(CoreAhead *ahead)
{
    for (guint i = 0; i < ahead->cursors->len; i++)
        core_heap_walk_end(&g_array_index(ahead->cursors, Cursor, i).jobs);
    g_array_unref(ahead->cursors);
    g_free(ahead);
}

/* FALSE: there are no more. */
static gboolean advance(Cursor *cursor)
{
    CoreHeapLink *link = core_heap_walk_next(&cursor->jobs);
    if (link == NULL)
        return FALSE;
    cursor->job = CORE_CONTAINER_OF(link, CoreJob, waiting);
    cursor->left = core_job_n_startable(cursor->job);
    return TRUE;
}

void core_ahead_add(CoreAhead *ahead, const CoreClass *class)
{
    Cursor cursor = {.rank = class->rank};
    core_heap_walk_begin(&cursor.jobs, &class->waiting);
    if (advance(&cursor))
        g_array_append_val(ahead->cursors, cursor);
    else
        core_heap_walk_end(&cursor.jobs);
}

static Cursor *first_of(const CoreAhead *ahead)
{
    Cursor *first = NULL;
    for (guint i = 0; i < ahead->cursors->len; i++) {
        Cursor *cursor = &g_array_index(ahead->cursors, Cursor, i);
        if (first == NULL || cursor->rank > first->rank ||
            (cursor->rank == first->rank && cursor->job->id < first->job->id))
            first = cursor;
    }
    return first;
}

CoreJob *core_ahead_first(CoreAhead *ahead, gint64 *out_rank)
{
    const Cursor *first = first_of(ahead);
    if (first == NULL)
        return NULL;
    *out_rank = first->rank;
    return first->job;
}

gboolean core_ahead_is_behind(CoreAhead *ahead, const CoreClass *class)
{
    const Cursor *first = first_of(ahead);
    return first == NULL || class->rank > first->rank ||
           (class->rank == first->rank && class->head < first->job->id);
}

void core_ahead_skip(CoreAhead *ahead, gboolean all)
{
    Cursor *first = first_of(ahead);
    first->left--;
    if (!all && (first->left > 0 || advance(first)))
        return;
    core_heap_walk_end(&first->jobs);
    g_array_remove_index_fast(ahead->cursors,
                              (guint)(first - (Cursor *)(void *)ahead->cursors->data));
}
