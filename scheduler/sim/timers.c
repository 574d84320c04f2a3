/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of what happens: a heap of timers, total and therefore deterministic. */
#include "config.h"

#include "scheduler/sim/state.h"

int sim_timer_compare(const CoreHeapLink *a, const CoreHeapLink *b)
{
    const SimTimer *x = CORE_CONTAINER_OF(a, const SimTimer, link);
    const SimTimer *y = CORE_CONTAINER_OF(b, const SimTimer, link);
    if (x->due_usec != y->due_usec)
        return x->due_usec < y->due_usec ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

void sim_timer_set(Sim *sim, SimTimer *timer, SimTimerKind kind, gint64 due_usec)
{
    if (core_heap_has(&timer->link)) {
        if (timer->due_usec == due_usec)
            return;
        core_heap_remove(&sim->timers, &timer->link);
    }
    timer->kind = kind;
    timer->due_usec = due_usec;
    timer->order = ++sim->n_timers_set;
    core_heap_push(&sim->timers, &timer->link);
}

void sim_timer_clear(Sim *sim, SimTimer *timer)
{
    if (core_heap_has(&timer->link))
        core_heap_remove(&sim->timers, &timer->link);
}

SimTimer *sim_timer_first(Sim *sim)
{
    CoreHeapLink *first = core_heap_first(&sim->timers);
    return first != NULL ? CORE_CONTAINER_OF(first, SimTimer, link) : NULL;
}
