/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when timers are due, in a tree by time and then by the order in which they were armed.
 * Invariant: the source is ready when the first of the tree is due. */
#include "config.h"

#include "bench/rig_timers.h"

struct RigTimers {
    GSource *source;
    GTree *armed; /* RigTimer, not owned */
    guint64 serial;
};

typedef struct {
    GSource base;
    RigTimers *timers;
} TimersSource;

static gint compare(gconstpointer a, gconstpointer b, gpointer unused)
{
    const RigTimer *timer_a = a;
    const RigTimer *timer_b = b;
    if (timer_a->due_usec != timer_b->due_usec)
        return timer_a->due_usec < timer_b->due_usec ? -1 : 1;
    return (timer_a->serial > timer_b->serial) - (timer_a->serial < timer_b->serial);
}

static RigTimer *first(const RigTimers *timers)
{
    GTreeNode *node = g_tree_node_first(timers->armed);
    return node == NULL ? NULL : g_tree_node_key(node);
}

static void set_ready_time(RigTimers *timers)
{
    const RigTimer *timer = first(timers);
    g_source_set_ready_time(timers->source, timer == NULL ? -1 : timer->due_usec);
}

static gboolean run_due(GSource *source, GSourceFunc callback, gpointer data)
{
    RigTimers *timers = ((TimersSource *)source)->timers;
    gint64 now_usec = g_source_get_time(source);
    RigTimer *timer;
    while ((timer = first(timers)) != NULL && timer->due_usec <= now_usec) {
        RigTimerFunc func = timer->func;
        rig_timers_disarm(timers, timer);
        func(timer->data);
    }
    set_ready_time(timers);
    return G_SOURCE_CONTINUE;
}

RigTimers *rig_timers_new(GMainContext *context)
{
    static GSourceFuncs funcs = {.dispatch = run_due};
    RigTimers *timers = g_new0(RigTimers, 1);
    timers->armed = g_tree_new_full(compare, NULL, NULL, NULL);
    timers->source = g_source_new(&funcs, sizeof(TimersSource));
    ((TimersSource *)timers->source)->timers = timers;
    g_source_attach(timers->source, context);
    return timers;
}

void rig_timers_free(RigTimers *timers)
{
    g_assert(g_tree_nnodes(timers->armed) == 0);
    g_source_destroy(timers->source);
    g_source_unref(timers->source);
    g_tree_unref(timers->armed);
    g_free(timers);
}

void rig_timers_arm(RigTimers *timers, RigTimer *timer, gint64 due_usec, RigTimerFunc func,
                    gpointer data)
{
    rig_timers_disarm(timers, timer);
    timer->due_usec = due_usec;
    timer->serial = ++timers->serial;
    timer->func = func;
    timer->data = data;
    g_tree_insert(timers->armed, timer, NULL);
    set_ready_time(timers);
}

void rig_timers_disarm(RigTimers *timers, RigTimer *timer)
{
    if (timer->func == NULL)
        return;
    g_tree_remove(timers->armed, timer);
    timer->func = NULL;
    set_ready_time(timers);
}
