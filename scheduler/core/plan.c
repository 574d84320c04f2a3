/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the planned starts: which waiting task, when, on which nodes. */
#include "scheduler/core/plan.h"

#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/timers.h"

typedef struct {
    guint64 job;
    gint64 rank;
    gint64 start_usec;
    guint place;
    guint32 guests;
    guint32 *nodes; /* of each guest */
} Planned;

struct CorePlan {
    GArray *firm;     /* Planned, in the order of the jobs */
    GArray *gathered; /* likewise; those behind them as of when they were planned */
    GArray *touched;  /* CoreTouched; those behind the first N_TOUCHED are kept to be used again */
    guint n_touched;
};

static void clear_planned(gpointer data)
{
    Planned *planned = data;
    g_free(planned->nodes);
}

static void clear_touched(gpointer data)
{
    CoreTouched *touched = data;
    g_array_unref(touched->reservations);
    g_clear_pointer(&touched->left, g_array_unref);
    g_clear_pointer(&touched->part, g_array_unref);
}

CorePlan *core_plan_new(void)
{
    CorePlan *plan = g_new0(CorePlan, 1);
    plan->firm = g_array_new(FALSE, FALSE, sizeof(Planned));
    plan->gathered = g_array_new(FALSE, FALSE, sizeof(Planned));
    plan->touched = g_array_new(FALSE, FALSE, sizeof(CoreTouched));
    g_array_set_clear_func(plan->firm, clear_planned);
    g_array_set_clear_func(plan->gathered, clear_planned);
    g_array_set_clear_func(plan->touched, clear_touched);
    return plan;
}

void core_plan_free(CorePlan *plan)
{
    g_array_unref(plan->firm);
    g_array_unref(plan->gathered);
    g_array_unref(plan->touched);
    g_free(plan);
}

guint core_plan_firm_depth(const BerthCore *core)
{
    return core->config.policy == BERTH_POLICY_EASY ? 1
                                                    : (guint)core->tunings[BERTH_TUNING_PLAN_DEPTH];
}

guint core_plan_gathered_depth(const BerthCore *core)
{
    gboolean has_slack = (core->config.features & BERTH_FEATURE_OPPORTUNISTIC) != 0;
    return has_slack ? (guint)core->tunings[BERTH_TUNING_SLACK_PLAN_DEPTH] : 0;
}

/* --- what is planned on nodes ----------------------------------------------------------------- */

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
    if (node->planned > 0)
        return core_plan_on(core, node);
    if (plan->n_touched == plan->touched->len) {
        CoreTouched touched = {.reservations = g_array_new(FALSE, FALSE, sizeof(CoreReservation))};
        g_array_append_val(plan->touched, touched);
    }
    node->planned = ++plan->n_touched;
    node->left_is_old = node->part_is_old = TRUE;
    CoreTouched *touched = core_plan_on(core, node);
    touched->node = node->handle;
    return touched;
}

static void reserve(BerthCore *core, CoreNode *node, const CoreReservation *reservation)
{
    CoreTouched *touched = touch(core, node);
    GArray *reservations = touched->reservations;
    guint i = reservations->len;
    while (i > 0 && g_array_index(reservations, CoreReservation, i - 1).place > reservation->place)
        i--;
    g_array_insert_vals(reservations, i, reservation, 1);
    if (!node->left_is_old)
        core_profile_cut(touched->left, reservation);
    node->part_is_old |= i < touched->n_part;
}

/* There is more room for others. */
static void unreserve(BerthCore *core, const Planned *planned)
{
    for (guint32 i = 0; i < planned->guests; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, planned->nodes[i]);
        GArray *reservations = core_plan_on(core, node)->reservations;
        for (guint k = reservations->len; k > 0; k--)
            if (g_array_index(reservations, CoreReservation, k - 1).place == planned->place)
                g_array_remove_index(reservations, k - 1);
        node->left_is_old = node->part_is_old = TRUE;
        core_nodes_fresh(&core->nodes, node);
    }
}

static void clear(BerthCore *core, GArray *part)
{
    CorePlan *plan = core->plan;
    for (guint i = 0; i < part->len; i++)
        unreserve(core, &g_array_index(part, Planned, i));
    g_array_set_size(part, 0);
    if (plan->firm->len > 0 || plan->gathered->len > 0)
        return;
    for (guint i = 0; i < plan->n_touched; i++)
        core_nodes_get(&core->nodes, g_array_index(plan->touched, CoreTouched, i).node)->planned =
            0;
    plan->n_touched = 0;
}

void core_plan_clear_firm(BerthCore *core)
{
    clear(core, core->plan->firm);
}

void core_plan_clear_gathered(BerthCore *core)
{
    clear(core, core->plan->gathered);
}

/* --- planned starts --------------------------------------------------------------------------- */

/* Its room is kept from FROM_USEC on. */
static void add(BerthCore *core, GArray *part, guint place, const CorePlannedStart *start,
                gint64 from_usec)
{
    const CoreClass *class = start->job->class;
    const CoreShape *shape = &class->shape;
    gint64 end_usec = core_time_add(start->start_usec, core_class_length_usec(core, class));
    CoreReservation reservation = {from_usec, end_usec, shape->size, place};
    Planned planned = {.job = start->job->id,
                       .rank = start->rank,
                       .start_usec = start->start_usec,
                       .place = place,
                       .guests = shape->guests};
    planned.nodes = g_memdup2(start->nodes, shape->guests * sizeof *start->nodes);
    g_array_append_val(part, planned);
    for (guint32 i = 0; i < shape->guests; i++)
        reserve(core, core_nodes_get(&core->nodes, start->nodes[i]), &reservation);
}

void core_plan_add_firm(BerthCore *core, const CorePlannedStart *start)
{
    core_plan_drop_task(core, start->job->id);
    add(core, core->plan->firm, core->plan->firm->len, start, start->start_usec);
}

void core_plan_add_gathered(BerthCore *core, const CorePlannedStart *start)
{
    GArray *gathered = core->plan->gathered;
    guint place = core_plan_firm_depth(core);
    if (gathered->len > 0)
        place = g_array_index(gathered, Planned, gathered->len - 1).place + 1;
    add(core, gathered, place, start, core->now_usec);
}

static void drop_gathered(BerthCore *core, guint i)
{
    unreserve(core, &g_array_index(core->plan->gathered, Planned, i));
    g_array_remove_index(core->plan->gathered, i);
}

void core_plan_drop_task(BerthCore *core, guint64 job)
{
    const GArray *gathered = core->plan->gathered;
    for (guint i = 0; i < gathered->len; i++)
        if (g_array_index(gathered, Planned, i).job == job) {
            drop_gathered(core, i);
            return;
        }
}

void core_plan_drop_idle(BerthCore *core)
{
    const GArray *gathered = core->plan->gathered;
    for (guint i = gathered->len; i > 0; i--) {
        const CoreJob *job = core_job_get(core, g_array_index(gathered, Planned, i - 1).job);
        if (job == NULL || !core_heap_has(&job->waiting) || !job->class->is_ordered)
            drop_gathered(core, i - 1);
    }
}

guint core_plan_n_firm(const CorePlan *plan)
{
    return plan->firm->len;
}

guint core_plan_n_gathered(const CorePlan *plan)
{
    return plan->gathered->len;
}

guint core_plan_n_firm_of(const CorePlan *plan, guint64 job)
{
    guint n = 0;
    for (guint i = 0; i < plan->firm->len; i++)
        n += g_array_index(plan->firm, Planned, i).job == job;
    return n;
}

static gboolean is_before(const Planned *planned, gint64 rank, guint64 job)
{
    return planned->rank != rank ? planned->rank > rank : planned->job < job;
}

guint core_plan_heeded_by(const BerthCore *core, const CoreClass *class)
{
    const GArray *gathered = core->plan->gathered;
    for (guint i = 0; i < gathered->len; i++) {
        const Planned *planned = &g_array_index(gathered, Planned, i);
        if (!is_before(planned, class->rank, class->head))
            return planned->place;
    }
    return CORE_HEEDS_ALL;
}

gboolean core_plan_is_before(const CorePlan *plan, gint64 rank, guint64 job)
{
    return plan->firm->len > 0 &&
           is_before(&g_array_index(plan->firm, Planned, plan->firm->len - 1), rank, job);
}

gboolean core_plan_has_expired(const CorePlan *plan, gint64 now_usec)
{
    for (guint i = 0; i < plan->firm->len; i++)
        if (g_array_index(plan->firm, Planned, i).start_usec < now_usec)
            return TRUE;
    return FALSE;
}

static gint64 start_of(const GArray *part, guint64 job)
{
    for (guint i = 0; i < part->len; i++) {
        const Planned *planned = &g_array_index(part, Planned, i);
        if (planned->job == job)
            return planned->start_usec;
    }
    return 0;
}

gint64 core_plan_start_of(const CorePlan *plan, guint64 job)
{
    gint64 start_usec = start_of(plan->firm, job);
    return start_usec != 0 ? start_usec : start_of(plan->gathered, job);
}

static gsize planned_bytes(const GArray *part)
{
    gsize bytes = 0;
    for (guint i = 0; i < part->len; i++)
        bytes += sizeof(Planned) + g_array_index(part, Planned, i).guests * sizeof(guint32);
    return bytes;
}

gsize core_plan_bytes(const CorePlan *plan)
{
    gsize bytes = sizeof *plan + planned_bytes(plan->firm) + planned_bytes(plan->gathered) +
                  plan->touched->len * sizeof(CoreTouched);
    for (guint i = 0; i < plan->touched->len; i++) {
        const CoreTouched *touched = &g_array_index(plan->touched, CoreTouched, i);
        bytes += touched->reservations->len * sizeof(CoreReservation);
        bytes += touched->left != NULL ? touched->left->len * sizeof(CoreStep) : 0;
        bytes += touched->part != NULL ? touched->part->len * sizeof(CoreStep) : 0;
    }
    return bytes;
}
