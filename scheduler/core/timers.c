/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the instants at which the core wants to be woken: time limits, backoffs, node timeouts, rounds,
 * maintenance, the ends of waits for room, guests that should have left. Ties are broken by kind, then by node handle or guest, so that the order of
 * firing does not depend on history. */
#include "scheduler/core/timers.h"

static gboolean is_of_guest(const CoreTimer *timer)
{
    return timer->kind == CORE_TIMER_ROOM || timer->kind == CORE_TIMER_LEAVING;
}

static guint64 owner_of(const CoreTimer *timer)
{
    switch (timer->kind) {
    case CORE_TIMER_NODE:
        return CORE_CONTAINER_OF(timer, const CoreNode, timer)->handle;
    case CORE_TIMER_TASK:
        return CORE_CONTAINER_OF(timer, const CoreTask, timer)->record.job;
    case CORE_TIMER_CHECKPOINT:
        return CORE_CONTAINER_OF(timer, const CoreTask, checkpoint_timer)->record.job;
    case CORE_TIMER_ROOM:
    case CORE_TIMER_LEAVING:
        return CORE_CONTAINER_OF(timer, const CoreGuest, timer)->task->record.job;
    case CORE_TIMER_OVERSTAY:
        return CORE_CONTAINER_OF(timer, const CoreTask, overstay_timer)->record.job;
    default:
        return 0;
    }
}

static guint32 part_of(const CoreTimer *timer)
{
    if (timer->kind == CORE_TIMER_TASK)
        return CORE_CONTAINER_OF(timer, const CoreTask, timer)->record.task;
    if (timer->kind == CORE_TIMER_CHECKPOINT)
        return CORE_CONTAINER_OF(timer, const CoreTask, checkpoint_timer)->record.task;
    if (is_of_guest(timer))
        return CORE_CONTAINER_OF(timer, const CoreGuest, timer)->task->record.task;
    if (timer->kind == CORE_TIMER_OVERSTAY)
        return CORE_CONTAINER_OF(timer, const CoreTask, overstay_timer)->record.task;
    return 0;
}

static guint32 index_of(const CoreTimer *timer)
{
    return is_of_guest(timer) ? CORE_CONTAINER_OF(timer, const CoreGuest, timer)->index : 0;
}

static int compare_timers(const CoreHeapLink *link_a, const CoreHeapLink *link_b)
{
    const CoreTimer *a = CORE_CONTAINER_OF(link_a, const CoreTimer, link);
    const CoreTimer *b = CORE_CONTAINER_OF(link_b, const CoreTimer, link);
    if (a->due_usec != b->due_usec)
        return a->due_usec < b->due_usec ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    guint64 owner_a = owner_of(a);
    guint64 owner_b = owner_of(b);
    if (owner_a != owner_b)
        return owner_a < owner_b ? -1 : 1;
    if (part_of(a) != part_of(b))
        return part_of(a) < part_of(b) ? -1 : 1;
    return index_of(a) < index_of(b) ? -1 : index_of(a) > index_of(b);
}

void core_timers_init(CoreHeap *timers)
{
    core_heap_init(timers, compare_timers);
}

void core_timer_set(BerthCore *core, CoreTimer *timer, gint64 due_usec)
{
    core_timer_clear(core, timer);
    if (due_usec == G_MAXINT64)
        return;
    timer->due_usec = due_usec;
    core_heap_push(&core->timers, &timer->link);
}

void core_timer_clear(BerthCore *core, CoreTimer *timer)
{
    if (core_heap_has(&timer->link))
        core_heap_remove(&core->timers, &timer->link);
}

CoreTimer *core_timers_pop_due(BerthCore *core, gint64 now_usec)
{
    CoreHeapLink *first = core_heap_first(&core->timers);
    if (first == NULL)
        return NULL;
    CoreTimer *timer = CORE_CONTAINER_OF(first, CoreTimer, link);
    if (timer->due_usec > now_usec)
        return NULL;
    core_heap_remove(&core->timers, first);
    return timer;
}

gint64 core_time_add(gint64 a_usec, gint64 b_usec)
{
    return a_usec > G_MAXINT64 - b_usec ? G_MAXINT64 : a_usec + b_usec;
}

gint64 core_backoff_end(const BerthCore *core, guint32 failures)
{
    guint32 most = (guint32)core->tunings[BERTH_TUNING_START_DOUBLINGS_MAX];
    guint doublings = failures > 0 ? MIN(failures - 1, most) : 0;
    gint64 pause = core->config.start_backoff_usec;
    for (guint i = 0; i < doublings; i++)
        pause = core_time_add(pause, pause);
    return core_time_add(core->now_usec, pause);
}
