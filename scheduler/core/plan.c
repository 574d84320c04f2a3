/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the planned starts: which waiting task, when, on which nodes. */
#include "scheduler/core/plan.h"

#include "scheduler/core/nodes.h"
#include "scheduler/core/timers.h"

typedef struct {
    guint64 job;
    gint64 rank;
    gint64 start_usec;
} Planned;

struct CorePlan {
    GArray *planned; /* Planned, in the order of the jobs */
    GArray *touched; /* CoreTouched */
};

CorePlan *core_plan_new(void)
{
    CorePlan *plan = g_new(CorePlan, 1);
    plan->planned = g_array_new(FALSE, FALSE, sizeof(Planned));
    plan->touched = g_array_new(FALSE, FALSE, sizeof(CoreTouched));
    return plan;
}

static void drop_touched(CorePlan *plan)
{
    for (guint i = 0; i < plan->touched->len; i++) {
        CoreTouched *touched = &g_array_index(plan->touched, CoreTouched, i);
        g_array_unref(touched->reservations);
        g_clear_pointer(&touched->left, g_array_unref);
    }
    g_array_set_size(plan->touched, 0);
}

void core_plan_free(CorePlan *plan)
{
    drop_touched(plan);
    g_array_unref(plan->planned);
    g_array_unref(plan->touched);
    g_free(plan);
}

void core_plan_clear(BerthCore *core)
{
    CorePlan *plan = core->plan;
    for (guint i = 0; i < plan->touched->len; i++) {
        CoreNode *node =
            core_nodes_get(&core->nodes, g_array_index(plan->touched, CoreTouched, i).node);
        node->planned = 0;
        core_nodes_fresh(&core->nodes, node);
    }
    drop_touched(plan);
    g_array_set_size(plan->planned, 0);
}

CoreTouched *core_plan_on(const BerthCore *core, const CoreNode *node)
{
    if (node->planned == 0)
        return NULL;
    return &g_array_index(core->plan->touched, CoreTouched, node->planned - 1);
}

const GArray *core_plan_reservations(const BerthCore *core, const CoreNode *node)
{
    const CoreTouched *touched = core_plan_on(core, node);
    return touched != NULL ? touched->reservations : NULL;
}

static CoreTouched *touch(BerthCore *core, CoreNode *node)
{
    CorePlan *plan = core->plan;
    if (node->planned == 0) {
        CoreTouched touched = {node->handle, g_array_new(FALSE, FALSE, sizeof(CoreReservation)),
                               NULL};
        g_array_append_val(plan->touched, touched);
        node->planned = plan->touched->len;
        node->left_is_old = TRUE;
    }
    return core_plan_on(core, node);
}

static void reserve(BerthCore *core, CoreNode *node, const CoreReservation *reservation)
{
    CoreTouched *touched = touch(core, node);
    g_array_append_vals(touched->reservations, reservation, 1);
    if (!node->left_is_old)
        core_profile_cut(touched->left, reservation);
}

void core_plan_add(BerthCore *core, const CoreJob *job, gint64 rank, gint64 start_usec,
                   const guint32 *nodes)
{
    const CoreShape *shape = &job->class->shape;
    gint64 limit_usec = shape->time_limit_usec > 0 ? shape->time_limit_usec
                                                   : core->tunings[BERTH_TUNING_ASSUMED_LIMIT_USEC];
    Planned planned = {job->id, rank, start_usec};
    g_array_append_val(core->plan->planned, planned);
    for (guint32 i = 0; i < shape->guests; i++) {
        CoreReservation reservation = {start_usec, core_time_add(start_usec, limit_usec),
                                       shape->size, core->plan->planned->len - 1};
        reserve(core, core_nodes_get(&core->nodes, nodes[i]), &reservation);
    }
}

guint core_plan_len(const CorePlan *plan)
{
    return plan->planned->len;
}

gboolean core_plan_is_before(const CorePlan *plan, gint64 rank, guint64 job)
{
    if (plan->planned->len == 0)
        return FALSE;
    const Planned *last = &g_array_index(plan->planned, Planned, plan->planned->len - 1);
    return last->rank != rank ? last->rank > rank : last->job < job;
}

gboolean core_plan_has_expired(const CorePlan *plan, gint64 now_usec)
{
    for (guint i = 0; i < plan->planned->len; i++)
        if (g_array_index(plan->planned, Planned, i).start_usec < now_usec)
            return TRUE;
    return FALSE;
}

gint64 core_plan_start_of(const CorePlan *plan, guint64 job)
{
    for (guint i = 0; i < plan->planned->len; i++) {
        const Planned *planned = &g_array_index(plan->planned, Planned, i);
        if (planned->job == job)
            return planned->start_usec;
    }
    return 0;
}

gsize core_plan_bytes(const CorePlan *plan)
{
    gsize bytes = sizeof *plan + plan->planned->len * sizeof(Planned) +
                  plan->touched->len * sizeof(CoreTouched);
    for (guint i = 0; i < plan->touched->len; i++) {
        const CoreTouched *touched = &g_array_index(plan->touched, CoreTouched, i);
        bytes += touched->reservations->len * sizeof(CoreReservation);
        bytes += touched->left != NULL ? touched->left->len * sizeof(CoreStep) : 0;
    }
    return bytes;
}
