/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answer to "why does it wait": computed when asked, from what the latest pass left. */
#include "scheduler/core/class.h"
#include "scheduler/core/fit.h"
#include "scheduler/core/hold.h"
#include "scheduler/core/job.h"
#include "scheduler/core/order_tree.h"

/* For one of CLASS now, if nothing were planned for others. */
static gboolean has_room(BerthCore *core, const CoreClass *class)
{
    CoreBarriers none = {NULL, 0};
    g_autofree guint32 *nodes = g_new(guint32, class->shape.guests);
    return core_fit(core, class, 0, none, nodes);
}

static BerthReason reason_in_order(BerthCore *core, const CoreJob *job)
{
    const CoreClass *class = job->class;
    CoreBarriers none = {NULL, 0};
    gboolean is_first = core_order_at(core, 0) == class;
    if (!core_fit_could(core, class, none))
        return BERTH_REASON_NODE_UNAVAILABLE;
    if (core->config.policy != BERTH_POLICY_FCFS && is_first && core_class_head(class) == job)
        return BERTH_REASON_RESOURCES;
    if (core->config.policy != BERTH_POLICY_FCFS)
        return has_room(core, class) ? BERTH_REASON_ROOM_KEPT : BERTH_REASON_PRIORITY;
    /* The first of its class, with a node that is kept for nobody before it. */
    gboolean is_next =
        core_class_head(class) == job && class->looked_at == core->pass && !class->is_blocked;
    return is_next ? BERTH_REASON_RESOURCES : BERTH_REASON_PRIORITY;
}

BerthReason berth_core_array_reason(BerthCore *core, guint64 number)
{
    const CoreJob *job = core_job_get(core, number);
    return job != NULL && core_job_n_fresh(job) > 0
               ? berth_core_pending_reason(core, number, job->next)
               : BERTH_REASON_NONE;
}

BerthReason berth_core_pending_reason(BerthCore *core, guint64 number, guint32 index)
{
    const CoreJob *job = core_job_get(core, number);
    BerthCoreTask record;
    if (job == NULL || !core_job_get_record(job, index, &record))
        return BERTH_REASON_NONE;
    if (record.state != BERTH_JOB_PENDING)
        return record.reason;
    if (core_hold_reason(job, index) != BERTH_REASON_NONE)
        return core_hold_reason(job, index);
    if (core->storage_down)
        return BERTH_REASON_STORAGE_UNAVAILABLE;
    const CoreTask *task = core_job_task(job, index);
    if (job->n_unmet > 0 || (task == NULL && !core_job_is_open(job, index)))
        return BERTH_REASON_DEPENDENCY;
    if (task != NULL && !core_heap_has(&task->returned))
        return record.reason; /* backing off, or its last guest is being removed */
    if (!core_heap_has(&job->waiting))
        return BERTH_REASON_ARRAY_THROTTLE;
    if (job->class->parked != NULL)
        return BERTH_REASON_ACCOUNT_LIMIT;
    return reason_in_order(core, job);
}
