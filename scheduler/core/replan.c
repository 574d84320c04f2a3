/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which of the planned starts stand, of the firm ones and of those for which room is gathered.
 * Searching for all of them again whenever anything changes costs a walk over the nodes for each, and
 * most would be what they were.
 *
 * Invariant, whenever those of a part have been gone through: a planned start is at the instant that a search of its own
 * says, made beside those before it in the order. It may be on other nodes than that search would
 * take, if these have room for it at the same instant.
 *
 * One stands if its nodes still have room for it, and if nowhere else there is any before it. What
 * nodes have left at an instant does not change as time passes; it changes with them, and with what is
 * planned there before it in the order. So only those nodes are asked that have changed, or that a
 * planned start before it has left or come to (core_plan_changed()): one guest may be on any of them
 * before its start; a gang if that makes enough of them (supply.c), each counted from now on, even
 * where somebody overstays. Who is late is searched for again.
 *
 * With one planned start only there is nothing to be won, and it is where a search would put it. */
#include "scheduler/core/replan.h"

#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/search.h"
#include "scheduler/core/timers.h"

static CoreNeed need_of(const BerthCore *core, const CorePlanned *planned, const CoreClass *class)
{
    return core_search_need(core, class, core_class_length_usec(core, class), planned->place);
}

void core_replan_begin(BerthCore *core, CorePlanPart part)
{
    if (core_plan_depth(core, part) == 1 || core->full_pass_wanted ||
        !core_plan_has_places(core->plan, part) || core_plan_changed(core, part) == NULL)
        core_plan_clear(core, part);
}

/* --- one planned start ------------------------------------------------------------------------ */

/* A guest could be on NODE at some instant from now until UNTIL_USEC. */
static gboolean may_be_before(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                              gint64 until_usec)
{
    CoreCurve curve;
    if (core_profile_earliest(core, node, need->size) >= until_usec)
        return FALSE;
    core_curve_begin(&curve, core, node, need, 1, core->now_usec);
    gboolean may_be = curve.count > 0 || (core_curve_next(&curve) && curve.at_usec < until_usec);
    core_curve_end(&curve);
    return may_be;
}

static gboolean has_room(const BerthCore *core, const CorePlanned *planned, CoreNode *node,
                         const CoreNeed *need, guint32 guests)
{
    return guests == 0 ||
           core_profile_count(core, node, need, planned->start_usec, guests) == guests;
}

static gboolean guest_stands(BerthCore *core, const CorePlanned *planned, const CoreClass *class,
                             const GArray *changed)
{
    CoreNeed need = need_of(core, planned, class);
    for (guint i = 0; i < changed->len; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, g_array_index(changed, guint32, i));
        if (!core_class_allows(class, node->handle))
            continue;
        if (!has_room(core, planned, node, &need, node->handle == planned->nodes[0]) ||
            may_be_before(core, node, &need, planned->start_usec))
            return FALSE;
    }
    return TRUE;
}

static gboolean gang_stands(BerthCore *core, const CorePlanned *planned, const CoreClass *class,
                            const GArray *changed)
{
    CoreNeed need = need_of(core, planned, class);
    if (planned->supply == NULL)
        return changed->len == 0;
    for (guint i = 0; i < changed->len; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, g_array_index(changed, guint32, i));
        if (!core_class_allows(class, node->handle))
            continue;
        if (!has_room(core, planned, node, &need, core_supply_planned_on(planned->supply, node)))
            return FALSE;
        core_supply_take(planned->supply, core, node, planned->place);
    }
    return !core_supply_may_be_earlier(planned->supply, core->now_usec);
}

static gboolean stands(BerthCore *core, CorePlanPart part, const CorePlanned *planned,
                       const CoreClass *class)
{
    const GArray *changed = core_plan_changed(core, part);
    if (changed == NULL || planned->start_usec <= core->now_usec)
        return FALSE;
    return planned->guests == 1 ? guest_stands(core, planned, class, changed)
                                : gang_stands(core, planned, class, changed);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Number AT is of a job that cannot start, or all tasks of which come before it. */
static gboolean is_idle(const BerthCore *core, CorePlanPart part, guint at)
{
    const CorePlanned *planned = core_plan_at(core->plan, part, at);
    if (core_planned_is_idle(core, planned))
        return TRUE;
    guint n = part == CORE_PLAN_GATHERED ? core_plan_n_firm_of(core->plan, planned->job) : 0;
    for (guint i = 0; i < at; i++)
        n += core_plan_at(core->plan, part, i)->job == planned->job;
    return n >= core_job_n_startable(core_job_get(core, planned->job));
}

gboolean core_replan_stands(BerthCore *core, CorePlanPart part, guint at, const CoreJob *job,
                            gint64 rank)
{
    const CorePlanned *planned;
    while ((planned = core_plan_at(core->plan, part, at)) != NULL && planned->job != job->id &&
           is_idle(core, part, at))
        core_plan_drop(core, part, at);
    if (planned == NULL || planned->job != job->id)
        return FALSE;
    if (!stands(core, part, planned, job->class)) {
        core_plan_drop(core, part, at);
        return FALSE;
    }
    core_plan_set_rank(core->plan, part, at, rank);
    return TRUE;
}

void core_replan_end(BerthCore *core, CorePlanPart part, guint n)
{
    while (core_plan_n(core->plan, part) > n)
        core_plan_drop(core, part, core_plan_n(core->plan, part) - 1);
    core_plan_forget_changes(core, part);
}

/* --- invariants ------------------------------------------------------------------------------- */

static gboolean is_where_searched(BerthCore *core, const CorePlanned *planned)
{
    const CoreJob *job = core_job_get(core, planned->job);
    if (job == NULL)
        return FALSE;
    const CoreClass *class = job->class;
    g_autofree guint32 *nodes = g_new(guint32, class->shape.guests);
    return planned->start_usec == core_search_first(core, class,
                                                    core_class_length_usec(core, class),
                                                    planned->place, nodes, NULL);
}

gboolean core_replan_is_sound(BerthCore *core, CorePlanPart part)
{
    const CorePlanned *before = NULL;
    const CorePlanned *planned;
    for (guint at = 0; (planned = core_plan_at(core->plan, part, at)) != NULL; at++) {
        gboolean is_in_order =
            before == NULL || (before->place < planned->place &&
                               (before->rank > planned->rank ||
                                (before->rank == planned->rank && before->job <= planned->job)));
        if (!is_in_order ||
            (planned->start_usec > core->now_usec && !is_where_searched(core, planned)))
            return FALSE;
        before = planned;
    }
    return TRUE;
}
