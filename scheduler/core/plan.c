/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the planned starts: which waiting task, when, on which nodes; and, for firm and for gathered ones,
 * the nodes of which something has changed since they were last gone through (replan.c).
 *
 * Invariants: places rise along the order; the reservations of a node are those of the planned starts
 * on it, by place; the places of firm ones are below CORE_HEEDS_FIRM. */
#include "scheduler/core/plan.h"

#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/timers.h"

/* So far apart are places, for others to come between them. */
#define PLACES_APART (1u << 10)
/* No place is given so far behind the first one of its part. */
#define PLACES_MAX (CORE_HEEDS_FIRM / 2)

typedef struct {
    GArray *starts;    /* CorePlanned, in the order of the jobs as of when they were planned */
    guint first_place; /* none is lower */
    GArray *changed;   /* guint32: nodes, each once: CoreNode.replanned has the bit of this part */
    guint64 seen;      /* changes of nodes before this one are in it; 0 = it is not known of any */
} Part;

struct CorePlan {
    Part parts[CORE_PLAN_N_PARTS];
    GArray *touched; /* CoreTouched; those behind the first N_TOUCHED are kept to be used again */
    guint n_touched;
};

static void clear_planned(gpointer data)
{
    CorePlanned *planned = data;
    g_free(planned->nodes);
    g_clear_pointer(&planned->supply, core_supply_free);
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
    for (guint i = 0; i < CORE_PLAN_N_PARTS; i++) {
        Part *part = &plan->parts[i];
        part->starts = g_array_new(FALSE, FALSE, sizeof(CorePlanned));
        part->changed = g_array_new(FALSE, FALSE, sizeof(guint32));
        g_array_set_clear_func(part->starts, clear_planned);
    }
    plan->parts[CORE_PLAN_GATHERED].first_place = CORE_HEEDS_FIRM;
    plan->touched = g_array_new(FALSE, FALSE, sizeof(CoreTouched));
    g_array_set_clear_func(plan->touched, clear_touched);
    return plan;
}

void core_plan_free(CorePlan *plan)
{
    for (guint i = 0; i < CORE_PLAN_N_PARTS; i++) {
        g_array_unref(plan->parts[i].starts);
        g_array_unref(plan->parts[i].changed);
    }
    g_array_unref(plan->touched);
    g_free(plan);
}

static guint firm_depth(const BerthCore *core)
{
    return core->config.policy == BERTH_POLICY_EASY ? 1
                                                    : (guint)core->tunings[BERTH_TUNING_PLAN_DEPTH];
}

static guint gathered_depth(const BerthCore *core)
{
    gboolean has_slack = (core->config.features & BERTH_FEATURE_OPPORTUNISTIC) != 0;
    return has_slack ? (guint)core->tunings[BERTH_TUNING_SLACK_PLAN_DEPTH] : 0;
}

guint core_plan_depth(const BerthCore *core, CorePlanPart part)
{
    return part == CORE_PLAN_FIRM ? firm_depth(core) : gathered_depth(core);
}

/* --- what has changed ------------------------------------------------------------------------- */

static void note_changed(BerthCore *core, CorePlanPart part, CoreNode *node)
{
    guint bit = 1u << part;
    if ((node->replanned & bit) != 0)
        return;
    node->replanned |= bit;
    g_array_append_val(core->plan->parts[part].changed, node->handle);
}

/* Something of PART is planned there, or no longer: gathered ones heed the firm ones, too. */
static void note_replanned(BerthCore *core, CorePlanPart part, CoreNode *node)
{
    for (guint i = part; i < CORE_PLAN_N_PARTS; i++)
        note_changed(core, i, node);
}

const GArray *core_plan_changed(BerthCore *core, CorePlanPart which)
{
    Part *part = &core->plan->parts[which];
    const CoreNodes *nodes = &core->nodes;
    guint64 newest = core_nodes_next_change(nodes);
    if (part->seen < nodes->first_change)
        return NULL;
    for (; part->seen < newest; part->seen++) {
        guint32 handle = g_array_index(nodes->changes, guint32, part->seen - nodes->first_change);
        note_changed(core, which, core_nodes_get(nodes, handle));
    }
    return part->changed;
}

void core_plan_forget_changes(BerthCore *core, CorePlanPart which)
{
    Part *part = &core->plan->parts[which];
    for (guint i = 0; i < part->changed->len; i++)
        core_nodes_get(&core->nodes, g_array_index(part->changed, guint32, i))->replanned &=
            ~(1u << which);
    g_array_set_size(part->changed, 0);
    part->seen = core_nodes_next_change(&core->nodes);
}

void core_plan_doubt(CorePlan *plan, CorePlanPart part)
{
    plan->parts[part].seen = 0;
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

static CorePlanPart part_of(guint place)
{
    return place < CORE_HEEDS_FIRM ? CORE_PLAN_FIRM : CORE_PLAN_GATHERED;
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
    note_replanned(core, part_of(reservation->place), node);
}

/* There is more room for others. */
static void unreserve(BerthCore *core, const CorePlanned *planned)
{
    for (guint32 i = 0; i < planned->guests; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, planned->nodes[i]);
        GArray *reservations = core_plan_on(core, node)->reservations;
        for (guint k = reservations->len; k > 0; k--)
            if (g_array_index(reservations, CoreReservation, k - 1).place == planned->place)
                g_array_remove_index(reservations, k - 1);
        node->left_is_old = node->part_is_old = TRUE;
        core_nodes_fresh(&core->nodes, node);
        note_replanned(core, part_of(planned->place), node);
    }
}

/* Unless something is planned. */
static void forget_touched(BerthCore *core)
{
    CorePlan *plan = core->plan;
    for (guint i = 0; i < CORE_PLAN_N_PARTS; i++)
        if (plan->parts[i].starts->len > 0)
            return;
    for (guint i = 0; i < plan->n_touched; i++)
        core_nodes_get(&core->nodes, g_array_index(plan->touched, CoreTouched, i).node)->planned =
            0;
    plan->n_touched = 0;
}

void core_plan_clear(BerthCore *core, CorePlanPart part)
{
    GArray *starts = core->plan->parts[part].starts;
    for (guint i = 0; i < starts->len; i++)
        unreserve(core, &g_array_index(starts, CorePlanned, i));
    g_array_set_size(starts, 0);
    forget_touched(core);
}

/* --- planned starts --------------------------------------------------------------------------- */

static CorePlanned *start_at(const CorePlan *plan, CorePlanPart part, guint at)
{
    return &g_array_index(plan->parts[part].starts, CorePlanned, at);
}

const CorePlanned *core_plan_at(const CorePlan *plan, CorePlanPart part, guint at)
{
    return at < core_plan_n(plan, part) ? start_at(plan, part, at) : NULL;
}

guint core_plan_heeds_at(const CorePlan *plan, CorePlanPart part, guint at)
{
    return at > 0 ? start_at(plan, part, at - 1)->place + 1 : plan->parts[part].first_place;
}

/* Its reservations keep where they are among those of their nodes, as others' do. */
static void move_up(BerthCore *core, CorePlanned *planned)
{
    for (guint32 i = 0; i < planned->guests; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, planned->nodes[i]);
        GArray *reservations = core_plan_on(core, node)->reservations;
        for (guint k = 0; k < reservations->len; k++) {
            CoreReservation *reservation = &g_array_index(reservations, CoreReservation, k);
            if (reservation->place == planned->place)
                reservation->place += PLACES_APART;
        }
    }
    planned->place += PLACES_APART;
}

/* For one between number AT - 1 and number AT. */
static guint place_between(BerthCore *core, CorePlanPart part, guint at)
{
    const CorePlan *plan = core->plan;
    guint n = core_plan_n(plan, part);
    guint heeds = core_plan_heeds_at(plan, part, at);
    if (at == n)
        return heeds + PLACES_APART;
    if (start_at(plan, part, at)->place == heeds)
        for (guint i = n; i > at; i--)
            move_up(core, start_at(plan, part, i - 1));
    return heeds + (start_at(plan, part, at)->place - heeds) / 2;
}

void core_plan_insert(BerthCore *core, CorePlanPart part, guint at, const CorePlannedStart *start)
{
    const CoreClass *class = start->job->class;
    const CoreShape *shape = &class->shape;
    guint place = place_between(core, part, at);
    gint64 end_usec = core_time_add(start->start_usec, core_class_length_usec(core, class));
    gint64 from_usec = part == CORE_PLAN_FIRM ? start->start_usec : core->now_usec;
    CoreReservation reservation = {from_usec, end_usec, shape->start, place};
    CorePlanned planned = {.job = start->job->id,
                           .rank = start->rank,
                           .start_usec = start->start_usec,
                           .place = place,
                           .guests = shape->guests,
                           .supply = start->supply};
    planned.nodes = g_memdup2(start->nodes, shape->guests * sizeof *start->nodes);
    if (part == CORE_PLAN_FIRM)
        core_plan_drop_task(core, start->job->id);
    g_array_insert_val(core->plan->parts[part].starts, at, planned);
    for (guint32 i = 0; i < shape->guests; i++)
        reserve(core, core_nodes_get(&core->nodes, start->nodes[i]), &reservation);
}

void core_plan_set_rank(CorePlan *plan, CorePlanPart part, guint at, gint64 rank)
{
    start_at(plan, part, at)->rank = rank;
}

void core_plan_drop(BerthCore *core, CorePlanPart part, guint at)
{
    unreserve(core, start_at(core->plan, part, at));
    g_array_remove_index(core->plan->parts[part].starts, at);
    forget_touched(core);
}

gboolean core_plan_has_places(const CorePlan *plan, CorePlanPart part)
{
    guint n = core_plan_n(plan, part);
    return n == 0 ||
           start_at(plan, part, n - 1)->place - plan->parts[part].first_place < PLACES_MAX;
}

void core_plan_drop_task(BerthCore *core, guint64 job)
{
    guint n = core_plan_n(core->plan, CORE_PLAN_GATHERED);
    for (guint i = 0; i < n; i++)
        if (start_at(core->plan, CORE_PLAN_GATHERED, i)->job == job) {
            core_plan_drop(core, CORE_PLAN_GATHERED, i);
            return;
        }
}

void core_plan_drop_job(BerthCore *core, guint64 job)
{
    for (guint part = 0; part < CORE_PLAN_N_PARTS; part++)
        for (guint i = core_plan_n(core->plan, part); i > 0; i--)
            if (start_at(core->plan, part, i - 1)->job == job)
                core_plan_drop(core, part, i - 1);
}

gboolean core_planned_is_idle(const BerthCore *core, const CorePlanned *planned)
{
    const CoreJob *job = core_job_get(core, planned->job);
    if (job == NULL || !core_heap_has(&job->waiting) || !job->class->is_ordered)
        return TRUE;
    const CoreShape *shape = &job->class->shape;
    return core_owner_hinders(shape->owner, shape->start, shape->guests) != NULL;
}

void core_plan_drop_idle(BerthCore *core)
{
    const CorePlan *plan = core->plan;
    for (guint i = core_plan_n(plan, CORE_PLAN_GATHERED); i > 0; i--)
        if (core_planned_is_idle(core, start_at(plan, CORE_PLAN_GATHERED, i - 1)))
            core_plan_drop(core, CORE_PLAN_GATHERED, i - 1);
}

gboolean core_plan_has_idle_firm(const BerthCore *core)
{
    const CorePlan *plan = core->plan;
    guint n = core_plan_n(plan, CORE_PLAN_FIRM);
    for (guint i = 0; i < n; i++)
        if (core_planned_is_idle(core, start_at(plan, CORE_PLAN_FIRM, i)))
            return TRUE;
    return FALSE;
}

guint core_plan_n(const CorePlan *plan, CorePlanPart part)
{
    return plan->parts[part].starts->len;
}

guint core_plan_n_firm_of(const CorePlan *plan, guint64 job)
{
    guint n = core_plan_n(plan, CORE_PLAN_FIRM);
    guint n_of = 0;
    for (guint i = 0; i < n; i++)
        n_of += start_at(plan, CORE_PLAN_FIRM, i)->job == job;
    return n_of;
}

static gboolean is_before(const CorePlanned *planned, gint64 rank, guint64 job)
{
    return planned->rank != rank ? planned->rank > rank : planned->job < job;
}

guint core_plan_heeded_by(const BerthCore *core, const CoreClass *class)
{
    const CorePlanned *planned;
    for (guint i = 0; (planned = core_plan_at(core->plan, CORE_PLAN_GATHERED, i)) != NULL; i++) {
        if (!is_before(planned, class->rank, class->head))
            return planned->place;
    }
    return CORE_HEEDS_ALL;
}

gboolean core_plan_is_before(const CorePlan *plan, gint64 rank, guint64 job)
{
    guint n = core_plan_n(plan, CORE_PLAN_FIRM);
    return n > 0 && is_before(start_at(plan, CORE_PLAN_FIRM, n - 1), rank, job);
}

gboolean core_plan_has_expired(const CorePlan *plan, gint64 now_usec)
{
    const CorePlanned *planned;
    for (guint i = 0; (planned = core_plan_at(plan, CORE_PLAN_FIRM, i)) != NULL; i++)
        if (planned->start_usec < now_usec)
            return TRUE;
    return FALSE;
}

gint64 core_plan_start_of(const CorePlan *plan, guint64 job)
{
    const CorePlanned *planned;
    for (guint part = 0; part < CORE_PLAN_N_PARTS; part++)
        for (guint i = 0; (planned = core_plan_at(plan, part, i)) != NULL; i++)
            if (planned->job == job)
                return planned->start_usec;
    return 0;
}

static gsize part_bytes(const CorePlan *plan, CorePlanPart part)
{
    gsize bytes = plan->parts[part].changed->len * sizeof(guint32);
    const CorePlanned *planned;
    for (guint i = 0; (planned = core_plan_at(plan, part, i)) != NULL; i++) {
        bytes += sizeof *planned + planned->guests * sizeof *planned->nodes;
        bytes += planned->supply != NULL ? core_supply_bytes(planned->supply) : 0;
    }
    return bytes;
}

gsize core_plan_bytes(const CorePlan *plan)
{
    gsize bytes = sizeof *plan + part_bytes(plan, CORE_PLAN_FIRM) +
                  part_bytes(plan, CORE_PLAN_GATHERED) + plan->touched->len * sizeof(CoreTouched);
    for (guint i = 0; i < plan->touched->len; i++) {
        const CoreTouched *touched = &g_array_index(plan->touched, CoreTouched, i);
        bytes += touched->reservations->len * sizeof(CoreReservation);
        bytes += touched->left != NULL ? touched->left->len * sizeof(CoreStep) : 0;
        bytes += touched->part != NULL ? touched->part->len * sizeof(CoreStep) : 0;
    }
    return bytes;
}
