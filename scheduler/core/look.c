/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers to what people ask: what a task waits for, and who is where. Computed when asked, from what
 * the latest pass left; decides nothing, and changes nothing. */
#include "scheduler/core/look.h"

#include "scheduler/core/ahead.h"
#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/job.h"
#include "scheduler/core/leaving.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/slack.h"

/* So many shapes, and jobs of one rank with it, are looked at for those that come before a job. */
#define CLASSES_MAX 1000u
#define JOBS_MAX    10000u

/* --- who is before it ------------------------------------------------------------------------ */

/* Jobs of CLASS that come before JOB, which has the same rank. *LEFT: so many more may be looked at. */
static guint32 count_elder(const CoreClass *class, const CoreJob *job, guint32 *left)
{
    guint32 n = core_heap_count_before(&class->waiting, &job->waiting, *left);
    *left -= n;
    return n;
}

static void count_before(BerthCore *core, const CoreJob *job, BerthCoreWait *wait)
{
    guint32 left = JOBS_MAX;
    const CoreClass *class;
    guint at = 0;
    for (; at < CLASSES_MAX && left > 0 && (class = core_order_at(core, at)) != NULL; at++) {
        if (class->rank < job->class->rank)
            return;
        wait->jobs_before +=
            class->rank > job->class->rank ? class->waiting.n : count_elder(class, job, &left);
    }
    wait->has_more_before = left == 0 || (at == CLASSES_MAX && core_order_at(core, at) != NULL);
}

/* The N-th of all is of one of the first N classes: the first of each class before its own is before it. */
static void name_before(BerthCore *core, const CoreJob *job, BerthCoreWait *wait)
{
    CoreAhead *ahead = core_ahead_new();
    const CoreClass *class;
    for (guint at = 0; at < BERTH_WAIT_BEFORE_MAX && (class = core_order_at(core, at)) != NULL;
         at++)
        core_ahead_add(ahead, class);
    while (wait->n_before < BERTH_WAIT_BEFORE_MAX) {
        gint64 rank;
        const CoreJob *first = core_ahead_first(ahead, &rank);
        if (first == NULL || first == job || rank < job->class->rank ||
            (rank == job->class->rank && first->id > job->id))
            break;
        guint n = wait->n_before;
        if (n == 0 || wait->before[n - 1] != first->id)
            wait->before[wait->n_before++] = first->id;
        core_ahead_skip(ahead, FALSE);
        while (core_ahead_first(ahead, &rank) == first)
            core_ahead_skip(ahead, FALSE);
    }
    core_ahead_free(ahead);
}

/* --- what it needs --------------------------------------------------------------------------- */

/* Of those that could take a guest of CLASS by themselves. */
static gboolean may_use(BerthCore *core, const CoreClass *class, const CoreNode *node)
{
    return core_class_allows(class, node->handle) && core_node_is_open(node) &&
           core_size_fits(class->shape.start, core_node_capacity(node));
}

static void find_nearest(BerthCore *core, const CoreClass *class, BerthCoreWait *wait)
{
    CoreSize need = class->shape.start;
    guint64 least = 0, most = 0;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        const CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (!may_use(core, class, node))
            continue;
        CoreSize free = core_node_free(node);
        guint64 lacks = core_nodes_left(&core->nodes, core_size_sub(need, free));
        guint64 has = core_nodes_left(&core->nodes, free);
        wait->nodes_open++;
        if (wait->nearest != 0 && (lacks > least || (lacks == least && has <= most)))
            continue;
        least = lacks;
        most = has;
        wait->nearest = handle;
        wait->nearest_vcpus = free.vcpus;
        wait->nearest_mib = free.memory_mib;
    }
}

/* Who names no nodes is not told of each. */
static void find_closed(BerthCore *core, const CoreClass *class, BerthCoreWait *wait)
{
    for (guint32 i = 0; i < class->shape.n_nodes; i++) {
        if (core_node_is_open(core_nodes_get(&core->nodes, class->shape.nodes[i])))
            continue;
        wait->nodes_closed++;
        if (wait->n_closed < BERTH_WAIT_NODES_MAX)
            wait->closed[wait->n_closed++] = class->shape.nodes[i];
    }
}

/* --- its planned start ----------------------------------------------------------------------- */

static const CorePlanned *planned_in(const CorePlan *plan, CorePlanPart part, const CoreJob *job)
{
    const CorePlanned *planned;
    for (guint i = 0; (planned = core_plan_at(plan, part, i)) != NULL; i++)
        if (planned->job == job->id)
            return planned;
    return NULL;
}

static gboolean is_named(const BerthCoreWait *wait, guint32 node)
{
    for (guint i = 0; i < wait->n_planned_nodes; i++)
        if (wait->planned_nodes[i] == node)
            return TRUE;
    return FALSE;
}

/* Those that leave first are kept. */
static void add_leaving(BerthCoreWait *wait, const CoreGuest *guest)
{
    const BerthCoreTask *record = &guest->task->record;
    BerthCoreLeaving leaving = {record->job, record->task, guest->node, core_leaving_usec(guest)};
    guint at = wait->n_leavings;
    while (at > 0 && wait->leavings[at - 1].time_usec > leaving.time_usec)
        at--;
    if (at == BERTH_WAIT_LEAVINGS_MAX)
        return;
    guint n = MIN(wait->n_leavings, BERTH_WAIT_LEAVINGS_MAX - 1);
    for (guint i = n; i > at; i--)
        wait->leavings[i] = wait->leavings[i - 1];
    wait->leavings[at] = leaving;
    wait->n_leavings = n + 1;
}

/* Who is in slack leaves when his room is needed, whatever his limit is. */
static void add_leavings(BerthCoreWait *wait, const CoreNode *node)
{
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    for (guint i = 0; i < guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(guests, i);
        if (!guest->is_opportunistic && core_leaving_usec(guest) <= wait->planned_usec)
            add_leaving(wait, guest);
    }
}

static void look_at_plan(BerthCore *core, const CoreJob *job, BerthCoreWait *wait)
{
    const CorePlanned *planned = planned_in(core->plan, CORE_PLAN_FIRM, job);
    if (planned == NULL) {
        planned = planned_in(core->plan, CORE_PLAN_GATHERED, job);
        wait->is_gathered = planned != NULL;
    }
    if (planned == NULL)
        return;
    wait->planned_usec = planned->start_usec;
    for (guint32 i = 0; i < planned->guests; i++) {
        if (wait->n_planned_nodes == BERTH_WAIT_NODES_MAX || is_named(wait, planned->nodes[i]))
            continue;
        wait->planned_nodes[wait->n_planned_nodes++] = planned->nodes[i];
        add_leavings(wait, core_nodes_get(&core->nodes, planned->nodes[i]));
    }
}

/* --- slack ----------------------------------------------------------------------------------- */

/* It might come to: all that is asked of it but room is given. */
static BerthCoreSlackAnswer slack_answer(BerthCore *core, const CoreClass *class,
                                         const CoreTask *task)
{
    if (!(core->config.features & BERTH_FEATURE_OPPORTUNISTIC))
        return BERTH_SLACK_OFF;
    if (!class->shape.opportunistic)
        return BERTH_SLACK_NOT_WANTED;
    if (!core_class_may_be_in_slack(core, class))
        return BERTH_SLACK_CANNOT_LEAVE;
    if (task != NULL && task->record.wants_backing)
        return BERTH_SLACK_WANTS_BACKING;
    if (!core_checkpoint_has_space_in_slack(core, class))
        return BERTH_SLACK_NO_SPACE;
    return BERTH_SLACK_ROOM;
}

static void count_hindrances(BerthCore *core, const CoreLodger *lodger, guint32 avoid,
                             BerthCoreWait *wait)
{
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        const CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (may_use(core, lodger->class, node))
            wait->hindrances[handle == avoid ? BERTH_HINDRANCE_LOST
                                             : core_slack_hindrance(core, node, lodger)]++;
    }
}

static void look_at_slack(BerthCore *core, const CoreJob *job, const CoreTask *task,
                          BerthCoreWait *wait)
{
    CoreLodger lodger = core_slack_newcomer(core, job, task);
    guint32 avoid = core_placement_avoid_for(task);
    wait->slack = slack_answer(core, job->class, task);
    if (wait->slack != BERTH_SLACK_ROOM || core_slack_find(core, &lodger, avoid) != NULL)
        return;
    wait->slack = BERTH_SLACK_NO_ROOM;
    count_hindrances(core, &lodger, avoid, wait);
}

/* --- asked ----------------------------------------------------------------------------------- */

gboolean berth_core_get_wait(BerthCore *core, guint64 number, guint32 index,
                             BerthCoreWait *out_wait)
{
    const CoreJob *job = core_job_get(core, number);
    BerthCoreTask record;
    if (job == NULL || !core_job_get_record(job, index, &record) ||
        record.state != BERTH_JOB_PENDING)
        return FALSE;
    const CoreTask *task = core_job_task(job, index);
    const CoreShape *shape = &job->class->shape;
    CoreNeeds needs = core_predict_new(core, job, task);
    BerthCoreWait wait = {
        .reason = berth_core_pending_reason(core, number, index),
        .not_before_usec = record.not_before_usec > core->now_usec ? record.not_before_usec : 0,
        .guests = shape->guests,
        .need_vcpus = shape->start.vcpus,
        .need_mib = shape->start.memory_mib,
        .slack_need_milli = needs.cpu_milli,
        .slack_need_mib = needs.memory_mib,
    };
    if (core_heap_has(&job->waiting) && job->class->is_ordered) {
        count_before(core, job, &wait);
        name_before(core, job, &wait);
    }
    find_nearest(core, job->class, &wait);
    find_closed(core, job->class, &wait);
    look_at_plan(core, job, &wait);
    look_at_slack(core, job, task, &wait);
    *out_wait = wait;
    return TRUE;
}

gint64 berth_core_next_look_usec(BerthCore *core)
{
    return core_heap_has(&core->round.link) ? core->round.due_usec : 0;
}

void berth_core_add_guests_of(BerthCore *core, guint32 handle, GArray *guests)
{
    const CoreNode *node = core_nodes_get(&core->nodes, handle);
    for (guint i = 0; node != NULL && i < node->guests->len; i++) {
        BerthGuestId id = core_guest_id(g_ptr_array_index(node->guests, i));
        g_array_append_val(guests, id);
    }
}

guint64 berth_core_n_waiting(BerthCore *core)
{
    return core->n_waiting;
}

gint64 berth_core_limit_usec(BerthCore *core, guint64 number, guint32 index)
{
    const CoreJob *job = core_job_get(core, number);
    const CoreTask *task = job != NULL ? core_job_task(job, index) : NULL;
    if (task == NULL || job->class->shape.time_limit_usec == 0 ||
        task->record.phase != BERTH_GUEST_RUNNING || berth_job_state_is_final(task->record.state))
        return G_MAXINT64;
    return core_charge_known_end_usec(core, task);
}
