/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE: when there is a pass, and what a start is. The policies have a file each. */
#include "scheduler/core/placement.h"

#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/task.h"

/* The lowest of those that wait to start again and those that never started; NULL = one of the
 * latter, without a record. */
CoreTask *core_placement_next(const CoreJob *job)
{
    if (job->returned == NULL)
        return NULL;
    return CORE_CONTAINER_OF(core_heap_first(job->returned), CoreTask, returned);
}

/* After a failed start another node is better than the same one, whether it counted or not. */
guint32 core_placement_avoid_for(const CoreTask *task)
{
    gboolean has_failed = task != NULL && (task->record.start_failures > 0 ||
                                           task->record.reason == BERTH_REASON_STARTING_LATER);
    return has_failed ? task->record.node : 0;
}

guint32 core_placement_avoid(const CoreClass *class)
{
    return core_placement_avoid_for(core_placement_next(core_class_head(class)));
}

gboolean core_placement_park(BerthCore *core, CoreClass *class)
{
    const CoreShape *shape = &class->shape;
    CoreOwner *owner = core_owner_hinders(shape->owner, shape->start, shape->guests);
    if (owner == NULL)
        return FALSE;
    core_order_park(core, class, owner);
    return TRUE;
}

static void start(BerthCore *core, CoreClass *class, const guint32 *nodes,
                  gboolean is_opportunistic)
{
    CoreJob *job = core_class_head(class);
    CoreTask *task = core_placement_next(job);
    core_plan_drop_task(core, job->id);
    if (task == NULL)
        task = core_job_add_task(job, job->next);
    core_task_wait_no_more(core, task);
    core_task_start(core, task, nodes, is_opportunistic);
    /* What is behind it in its class is not new to this pass. */
    gboolean was_untried = class->is_untried;
    core_order_update(core, job);
    if (class->is_untried && !was_untried) {
        class->is_untried = FALSE;
        g_ptr_array_set_size(core->untried, (gint)core->untried->len - 1);
    }
}

void core_placement_start(BerthCore *core, CoreClass *class, const guint32 *nodes)
{
    start(core, class, nodes, FALSE);
}

void core_placement_start_in_slack(BerthCore *core, CoreClass *class, guint32 node)
{
    start(core, class, &node, TRUE);
}

static void end_pass(BerthCore *core)
{
    for (guint i = 0; i < core->nodes.fresh->len; i++)
        core_nodes_get(&core->nodes, g_array_index(core->nodes.fresh, guint32, i))->fresh = 0;
    g_array_set_size(core->nodes.fresh, 0);
    for (guint i = 0; i < core->untried->len; i++)
        ((CoreClass *)g_ptr_array_index(core->untried, i))->is_untried = FALSE;
    g_ptr_array_set_size(core->untried, 0);
    core->pass_wanted = core->plan_wanted = core->full_pass_wanted = FALSE;
}

/* Who started may have used up the limits of one whose start is firm: what is kept for him is free. */
static gboolean has_more_to_do(BerthCore *core)
{
    gboolean may_start_in_slack =
        core->slack_wanted || core->untried->len > 0 || core->nodes.fresh->len > 0;
    return core_order_suit(core) || core->pass_again || core_plan_has_idle_firm(core) ||
           (may_start_in_slack && (core_slack_pass(core) || core_plan_has_idle_firm(core)));
}

void core_placement_pass(BerthCore *core)
{
    core_order_suit(core);
    if (!core->pass_wanted || core->more_follow || core->storage_down)
        return;
    core_order_rank(core);
    do {
        core->pass++;
        core->pass_again = FALSE;
        if (core->config.policy == BERTH_POLICY_FCFS)
            core_fcfs_pass(core);
        else
            core_backfill_pass(core);
        /* Who starts in slack no longer keeps anything from others. */
        core->plan_wanted = TRUE;
    } while (has_more_to_do(core));
    core->slack_wanted = FALSE;
    end_pass(core);
}
