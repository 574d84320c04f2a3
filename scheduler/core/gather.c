/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, for whom room is gathered: behind the firm starts slack_plan_depth more are planned. They
 * are in the way of those alone that could start in slack instead, and of guests there that would
 * like to be backed.
 *
 * Their room is kept from now on and not from their start, which time limits put off: most guests end
 * long before them, and what these leave would go to one small job after the other that is short enough
 * to be over by then, until that start has come.
 *
 * That is a wish and no promise, so that it may be somewhat old, and has to be known only when such a
 * one has room beside the firm starts: they are planned then, and stand for slack_plan_interval_usec, as
 * Slurm's backfill does with bf_interval. Whoever starts or waits no more leaves the plan at once. To
 * plan anew is to search for those again that do not stand as they are (replan.c). */
#include "scheduler/core/gather.h"

#include "scheduler/core/ahead.h"
#include "scheduler/core/class.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/replan.h"
#include "scheduler/core/search.h"
#include "scheduler/core/timers.h"

typedef struct {
    BerthCore *core;
    CoreAhead *ahead;
    guint at;        /* in the order: classes before it are ahead */
    guint64 job;     /* whose tasks are passed over */
    guint n_skipped; /* so many were, because their start is firm */
    guint n_planned;
    guint32 *nodes;
    guint32 n_nodes;
} Gathering;

static CoreJob *next_job(Gathering *gathering, gint64 *out_rank)
{
    BerthCore *core = gathering->core;
    const CoreClass *class;
    for (; (class = core_order_at(core, gathering->at)) != NULL; gathering->at++) {
        const CoreShape *shape = &class->shape;
        if (!core_ahead_is_behind(gathering->ahead, class))
            break;
        if (core_owner_hinders(shape->owner, shape->start, shape->guests) == NULL)
            core_ahead_add(gathering->ahead, class);
    }
    return core_ahead_first(gathering->ahead, out_rank);
}

/* The next task of JOB is one of those whose start is firm. */
static gboolean is_firm(Gathering *gathering, const CoreJob *job)
{
    if (gathering->job != job->id) {
        gathering->job = job->id;
        gathering->n_skipped = 0;
    }
    if (gathering->n_skipped >= core_plan_n_firm_of(gathering->core->plan, job->id))
        return FALSE;
    gathering->n_skipped++;
    core_owner_plan(gathering->core, job->class, CORE_PLAN_GATHERED);
    return TRUE;
}

static gboolean search(Gathering *gathering, const CoreJob *job, gint64 rank)
{
    BerthCore *core = gathering->core;
    guint at = gathering->n_planned;
    CoreSupply *supply = NULL;
    const CoreClass *class = job->class;
    if (gathering->n_nodes < class->shape.guests) {
        gathering->n_nodes = class->shape.guests;
        gathering->nodes = g_renew(guint32, gathering->nodes, gathering->n_nodes);
    }
    gint64 start_usec = core_search_first(core, class, core_class_length_usec(core, class),
                                          core_plan_heeds_at(core->plan, CORE_PLAN_GATHERED, at),
                                          gathering->nodes, &supply);
    if (start_usec == G_MAXINT64)
        return FALSE;
    core_plan_insert(core, CORE_PLAN_GATHERED, at,
                     &(CorePlannedStart){job, rank, start_usec, gathering->nodes, supply});
    return TRUE;
}

/* FALSE: no task of its class can start, as things are. */
static gboolean plan(Gathering *gathering, const CoreJob *job, gint64 rank)
{
    if (is_firm(gathering, job))
        return TRUE;
    if (core_owner_hinders_plan(gathering->core, job->class, CORE_PLAN_GATHERED))
        return FALSE;
    if (!core_replan_stands(gathering->core, CORE_PLAN_GATHERED, gathering->n_planned, job, rank) &&
        !search(gathering, job, rank))
        return FALSE;
    core_owner_plan(gathering->core, job->class, CORE_PLAN_GATHERED);
    gathering->n_planned++;
    return TRUE;
}

static gboolean may_stand(const BerthCore *core)
{
    gint64 interval_usec = core->tunings[BERTH_TUNING_SLACK_PLAN_INTERVAL_USEC];
    return (core->gathered_in == core->pass && core->gathered_usec == core->now_usec) ||
           (core->gathered_in != 0 &&
            core->now_usec < core_time_add(core->gathered_usec, interval_usec));
}

gboolean core_gather(BerthCore *core)
{
    guint depth = core_plan_depth(core, CORE_PLAN_GATHERED);
    if (depth == 0 || may_stand(core))
        return FALSE;
    g_autoptr(CoreAhead) ahead = core_ahead_new();
    Gathering gathering = {.core = core, .ahead = ahead};
    gint64 rank = 0;
    const CoreJob *job;
    core_replan_begin(core, CORE_PLAN_GATHERED);
    while (gathering.n_planned < depth && (job = next_job(&gathering, &rank)) != NULL)
        core_ahead_skip(ahead, !plan(&gathering, job, rank));
    core_replan_end(core, CORE_PLAN_GATHERED, gathering.n_planned);
    g_assert(!core->is_checked || core_replan_is_sound(core, CORE_PLAN_GATHERED));
    g_free(gathering.nodes);
    core->gathered_in = core->pass;
    core->gathered_usec = core->now_usec;
    return TRUE;
}
