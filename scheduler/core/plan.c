/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the planned starts: which waiting task, when, on which nodes; and the nodes of which something
 * has changed since the firm ones were last gone through (replan.c).
 *
 * Invariants: places rise along the order; the reservations of a node are those of the planned starts
 * on it, by place; the places of firm ones are below CORE_HEEDS_FIRM. */
#include "scheduler/core/plan.h"

#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/timers.h"

/* So far apart are the places of firm ones, for others to come between them. */
#define PLACES_APART (1u << 10)

struct CorePlan {
    GArray *firm;     /* CorePlanned, in the order of the jobs */
    GArray *gathered; /* likewise; those behind them as of when they were planned */
    GArray *touched;  /* CoreTouched; those behind the first N_TOUCHED are kept to be used again */
    guint n_touched;
    GArray *changed; /* guint32: nodes, each once: CoreNode.is_replanned */
    guint64 seen;    /* changes of nodes before this one are in it; 0 = it is not known of any */
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
    plan->firm = g_array_new(FALSE, FALSE, sizeof(CorePlanned));
    plan->gathered = g_array_new(FALSE, FALSE, sizeof(CorePlanned));
    plan->touched = g_array_new(FALSE, FALSE, sizeof(CoreTouched));
    plan->changed = g_array_new(FALSE, FALSE, sizeof(guint32));
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
    g_array_unref(plan->changed);
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

/* --- what has changed ------------------------------------------------------------------------- */

static void note_changed(BerthCore *core, CoreNode *node)
{
    if (node->is_replanned)
        return;
    node->is_replanned = TRUE;
    g_array_append_val(core->plan->changed, node->handle);
}

const GArray *core_plan_changed(BerthCore *core)
{
    CorePlan *plan = core->plan;
    const CoreNodes *nodes = &core->nodes;
    guint64 newest = core_nodes_next_change(nodes);
    if (plan->seen < nodes->first_change)
        return NULL;
    for (; plan->seen < newest; plan->seen++)
        note_changed(core, core_nodes_get(nodes, g_array_index(nodes->changes, guint32,
                                                               plan->seen - nodes->first_change)));
    return plan->changed;
}

void core_plan_forget_changes(BerthCore *core)
{
    CorePlan *plan = core->plan;
    for (guint i = 0; i < plan->changed->len; i++)
        core_nodes_get(&core->nodes, g_array_index(plan->changed, guint32, i))->is_replanned =
            FALSE;
    g_array_set_size(plan->changed, 0);
    plan->seen = core_nodes_next_change(&core->nodes);
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
    if (reservation->place < CORE_HEEDS_FIRM)
        note_changed(core, node);
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
        if (planned->place < CORE_HEEDS_FIRM)
            note_changed(core, node);
    }
}

/* Unless something is planned. */
static void forget_touched(BerthCore *core)
{
    CorePlan *plan = core->plan;
    if (plan->firm->len > 0 || plan->gathered->len > 0)
        return;
    for (guint i = 0; i < plan->n_touched; i++)
        core_nodes_get(&core->nodes, g_array_index(plan->touched, CoreTouched, i).node)->planned =
            0;
    plan->n_touched = 0;
}

static void clear(BerthCore *core, GArray *part)
{
    for (guint i = 0; i < part->len; i++)
        unreserve(core, &g_array_index(part, CorePlanned, i));
    g_array_set_size(part, 0);
    forget_touched(core);
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

/* As number AT of PART. Its room is kept from FROM_USEC on. */
static void insert(BerthCore *core, GArray *part, guint at, guint place,
                   const CorePlannedStart *start, gint64 from_usec)
{
    const CoreClass *class = start->job->class;
    const CoreShape *shape = &class->shape;
    gint64 end_usec = core_time_add(start->start_usec, core_class_length_usec(core, class));
    CoreReservation reservation = {from_usec, end_usec, shape->size, place};
    CorePlanned planned = {.job = start->job->id,
                           .rank = start->rank,
                           .start_usec = start->start_usec,
                           .place = place,
                           .guests = shape->guests,
                           .supply = start->supply};
    planned.nodes = g_memdup2(start->nodes, shape->guests * sizeof *start->nodes);
    g_array_insert_val(part, at, planned);
    for (guint32 i = 0; i < shape->guests; i++)
        reserve(core, core_nodes_get(&core->nodes, start->nodes[i]), &reservation);
}

static CorePlanned *firm_at(const CorePlan *plan, guint at)
{
    return &g_array_index(plan->firm, CorePlanned, at);
}

const CorePlanned *core_plan_firm(const CorePlan *plan, guint at)
{
    return at < plan->firm->len ? firm_at(plan, at) : NULL;
}

guint core_plan_heeds_at(const CorePlan *plan, guint at)
{
    return at > 0 ? firm_at(plan, at - 1)->place + 1 : 0;
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
static guint place_between(BerthCore *core, guint at)
{
    const CorePlan *plan = core->plan;
    guint heeds = core_plan_heeds_at(plan, at);
    if (at == plan->firm->len)
        return heeds + PLACES_APART;
    if (firm_at(plan, at)->place == heeds)
        for (guint i = plan->firm->len; i > at; i--)
            move_up(core, firm_at(plan, i - 1));
    return heeds + (firm_at(plan, at)->place - heeds) / 2;
}

void core_plan_insert_firm(BerthCore *core, guint at, const CorePlannedStart *start)
{
    core_plan_drop_task(core, start->job->id);
    insert(core, core->plan->firm, at, place_between(core, at), start, start->start_usec);
}

void core_plan_set_rank(CorePlan *plan, guint at, gint64 rank)
{
    firm_at(plan, at)->rank = rank;
}

void core_plan_drop_firm(BerthCore *core, guint at)
{
    unreserve(core, firm_at(core->plan, at));
    g_array_remove_index(core->plan->firm, at);
    forget_touched(core);
}

gboolean core_plan_has_places(const CorePlan *plan)
{
    return plan->firm->len == 0 || firm_at(plan, plan->firm->len - 1)->place < CORE_HEEDS_FIRM / 2;
}

void core_plan_add_gathered(BerthCore *core, const CorePlannedStart *start)
{
    GArray *gathered = core->plan->gathered;
    guint place = CORE_HEEDS_FIRM;
    if (gathered->len > 0)
        place = g_array_index(gathered, CorePlanned, gathered->len - 1).place + 1;
    insert(core, gathered, gathered->len, place, start, core->now_usec);
}

static void drop_gathered(BerthCore *core, guint i)
{
    unreserve(core, &g_array_index(core->plan->gathered, CorePlanned, i));
    g_array_remove_index(core->plan->gathered, i);
}

void core_plan_drop_task(BerthCore *core, guint64 job)
{
    const GArray *gathered = core->plan->gathered;
    for (guint i = 0; i < gathered->len; i++)
        if (g_array_index(gathered, CorePlanned, i).job == job) {
            drop_gathered(core, i);
            return;
        }
}

gboolean core_planned_is_idle(const BerthCore *core, const CorePlanned *planned)
{
    const CoreJob *job = core_job_get(core, planned->job);
    if (job == NULL || !core_heap_has(&job->waiting) || !job->class->is_ordered)
        return TRUE;
    const CoreShape *shape = &job->class->shape;
    return core_owner_hinders(shape->owner, shape->size, shape->guests) != NULL;
}

void core_plan_drop_idle(BerthCore *core)
{
    const GArray *gathered = core->plan->gathered;
    for (guint i = gathered->len; i > 0; i--)
        if (core_planned_is_idle(core, &g_array_index(gathered, CorePlanned, i - 1)))
            drop_gathered(core, i - 1);
}

gboolean core_plan_has_idle_firm(const BerthCore *core)
{
    const GArray *firm = core->plan->firm;
    for (guint i = 0; i < firm->len; i++)
        if (core_planned_is_idle(core, &g_array_index(firm, CorePlanned, i)))
            return TRUE;
    return FALSE;
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
        n += g_array_index(plan->firm, CorePlanned, i).job == job;
    return n;
}

static gboolean is_before(const CorePlanned *planned, gint64 rank, guint64 job)
{
    return planned->rank != rank ? planned->rank > rank : planned->job < job;
}

guint core_plan_heeded_by(const BerthCore *core, const CoreClass *class)
{
    const GArray *gathered = core->plan->gathered;
    for (guint i = 0; i < gathered->len; i++) {
        const CorePlanned *planned = &g_array_index(gathered, CorePlanned, i);
        if (!is_before(planned, class->rank, class->head))
            return planned->place;
    }
    return CORE_HEEDS_ALL;
}

gboolean core_plan_is_before(const CorePlan *plan, gint64 rank, guint64 job)
{
    return plan->firm->len > 0 &&
           is_before(&g_array_index(plan->firm, CorePlanned, plan->firm->len - 1), rank, job);
}

gboolean core_plan_has_expired(const CorePlan *plan, gint64 now_usec)
{
    for (guint i = 0; i < plan->firm->len; i++)
        if (g_array_index(plan->firm, CorePlanned, i).start_usec < now_usec)
            return TRUE;
    return FALSE;
}

static gint64 start_of(const GArray *part, guint64 job)
{
    for (guint i = 0; i < part->len; i++) {
        const CorePlanned *planned = &g_array_index(part, CorePlanned, i);
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
    for (guint i = 0; i < part->len; i++) {
        const CorePlanned *planned = &g_array_index(part, CorePlanned, i);
        bytes += sizeof *planned + planned->guests * sizeof *planned->nodes;
        bytes += planned->supply != NULL ? core_supply_bytes(planned->supply) : 0;
    }
    return bytes;
}

gsize core_plan_bytes(const CorePlan *plan)
{
    gsize bytes = sizeof *plan + planned_bytes(plan->firm) + planned_bytes(plan->gathered) +
                  plan->touched->len * sizeof(CoreTouched) + plan->changed->len * sizeof(guint32);
    for (guint i = 0; i < plan->touched->len; i++) {
        const CoreTouched *touched = &g_array_index(plan->touched, CoreTouched, i);
        bytes += touched->reservations->len * sizeof(CoreReservation);
        bytes += touched->left != NULL ? touched->left->len * sizeof(CoreStep) : 0;
        bytes += touched->part != NULL ? touched->part->len * sizeof(CoreStep) : 0;
    }
    return bytes;
}
