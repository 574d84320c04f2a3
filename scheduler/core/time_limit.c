/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers to who wants a job to have another time limit, and what follows for its tasks: those that run are
 * thought to leave at another time, those that wait are planned for as long, and those that stand still at their
 * limit wait to go on.
 *
 * What runs was let in by its limit, and others are planned behind it: more time for it is an operator's to give.
 * Who stands still has given up his place, and waits for one anew. */
#include "common/units.h"
#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/order.h"
#include "scheduler/core/requests.h"
#include "scheduler/core/running.h"
#include "scheduler/core/task_steps.h"
#include "scheduler/core/timers.h"

/* --- may it --------------------------------------------------------------------------------- */

/* It has an end to come, which its limit is about. */
static gboolean is_unfinished(const CoreTask *task)
{
    return !berth_job_state_is_final(task->record.state) &&
           task->record.phase != BERTH_GUEST_STOPPING;
}

/* In its place, and others behind it. */
static gboolean runs(const CoreTask *task)
{
    return is_unfinished(task) && task->record.phase != BERTH_GUEST_NONE &&
           task->record.phase <= BERTH_GUEST_STOPPING && !core_freeze_is_at_time_limit(task);
}

/* Who is being checkpointed stands still, or is not charged for it if he runs on. */
static gint64 used_usec(const BerthCore *core, const CoreTask *task)
{
    const CoreGuest *guest = &task->guests[0];
    if (task->record.phase != BERTH_GUEST_RUNNING)
        return task->record.ran_usec;
    return core_charge_used_usec(task, guest->op == BERTH_OP_CHECKPOINTING ? guest->op_usec
                                                                           : core->now_usec);
}

static gboolean is_more(gint64 limit_usec, gint64 than_usec)
{
    return than_usec > 0 && (limit_usec == 0 || limit_usec > than_usec);
}

static gboolean refuse_runs(const CoreJob *job, GError **error)
{
    gboolean saves = job->class->shape.on_timeout == BERTH_ON_TIMEOUT_CHECKPOINT;
    return core_refuse(error, BERTH_ERROR_PERMISSION_DENIED, job->id,
                       "runs, and others are planned behind its time limit: while it does, only an "
                       "operator may put that off; %s",
                       saves
                           ? "ask one, or let it come to its limit, where it is checkpointed, and "
                             "extend it then"
                           : "ask one");
}

static gboolean refuse_used(const CoreJob *job, gint64 limit_usec, gint64 used, GError **error)
{
    g_autofree char *limit = berth_format_duration_sec((guint64)limit_usec / G_USEC_PER_SEC);
    g_autofree char *has_used = berth_format_duration_sec((guint64)used / G_USEC_PER_SEC);
    return core_refuse(error, BERTH_ERROR_INVALID_ARGUMENT, job->id,
                       "cannot have a time limit of %s: it has used %s already", limit, has_used);
}

static gboolean check(const BerthCore *core, const CoreJob *job, gint64 limit_usec,
                      gboolean by_operator, GError **error)
{
    gboolean is_any = core_job_n_fresh(job) > 0;
    gboolean has_more = is_more(limit_usec, job->class->shape.time_limit_usec);
    if (limit_usec < 0)
        return core_refuse(error, BERTH_ERROR_INVALID_ARGUMENT, job->id,
                           "cannot have a time limit below 0");
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const CoreTask *task = job->tasks[i];
        if (!is_unfinished(task))
            continue;
        is_any = TRUE;
        if (has_more && !by_operator && runs(task))
            return refuse_runs(job, error);
        if (limit_usec > 0 && used_usec(core, task) >= limit_usec)
            return refuse_used(job, limit_usec, used_usec(core, task), error);
    }
    return is_any || core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                                 "is ending: there is nothing left to limit");
}

/* --- what follows --------------------------------------------------------------------------- */

/* What is being done to it for that goes on, and it after it. */
static void go_on(BerthCore *core, CoreTask *task)
{
    if (core_saves_is_on_disk(task))
        core_saves_thaw(core, task);
    else
        core_freeze_want(core, &task->guests[0], BERTH_REASON_NONE);
}

/* Its limit had come while its node was away, and nobody could tell it. */
static void unstop(BerthCore *core, CoreTask *task)
{
    if (task->record.stop_reason != BERTH_REASON_TIME_LIMIT)
        return;
    task->record.stop_reason = BERTH_REASON_NONE;
    core_checkpoint_arm(core, task);
}

static void plan_anew(BerthCore *core, CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    gboolean has_begun = record->phase == BERTH_GUEST_RUNNING;
    core_step_plan_end(core, task, has_begun ? record->start_usec : core->now_usec);
    if (!has_begun)
        return;
    core_timer_clear(core, &task->timer);
    core_charge_plan(core, task);
    core_task_arm(core, task);
}

static void apply(BerthCore *core, CoreTask *task)
{
    if (!is_unfinished(task))
        return;
    core_emit_changed(core, task);
    if (core_freeze_is_at_time_limit(task))
        go_on(core, task);
    if (task->record.phase == BERTH_GUEST_RUNNING)
        unstop(core, task);
    if (task->record.phase == BERTH_GUEST_STARTING || task->record.phase == BERTH_GUEST_RUNNING)
        plan_anew(core, task);
}

gboolean core_set_time_limit(BerthCore *core, const CoreAsk *ask, gint64 limit_usec, GError **error)
{
    CoreJob *job = core_get_unfinished(core, ask, error);
    if (job == NULL || !check(core, job, limit_usec, ask->by_operator, error))
        return FALSE;
    CoreShape shape = job->class->shape;
    shape.time_limit_usec = limit_usec;
    core_order_set_shape(core, job, &shape);
    core_emit_job_changed(core, job);
    for (guint32 i = 0; i < job->n_tasks; i++)
        apply(core, job->tasks[i]);
    core->pass_wanted = core->plan_wanted = core->full_pass_wanted = TRUE;
    return TRUE;
}
