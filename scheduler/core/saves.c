/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers to who wants a job checkpointed, frozen to disk, thawed from there, or put back to a checkpoint.
 * What follows is checkpoint.h's, freeze.h's and the task's. */
#include "common/error.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/hold.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/order.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/requests.h"
#include "scheduler/core/task_steps.h"

static gboolean refuse(GError **error, BerthErrorCode code, guint64 job, const char *why)
{
    g_set_error(error, BERTH_ERROR, (gint)code, "job %" G_GUINT64_FORMAT " %s", job, why);
    return FALSE;
}

/* --- checkpoint ----------------------------------------------------------------------------- */

static gboolean has_guest(const CoreTask *task)
{
    BerthGuestPhase phase = task->record.phase;
    return (phase == BERTH_GUEST_STARTING || phase == BERTH_GUEST_RUNNING) &&
           task->record.stop_reason == BERTH_REASON_NONE;
}

/* That those of JOB that would be saved need beyond what is kept for that. *OUT_OWN_MIB: of what is kept for guests in slack that of
 * those that leave. */
static guint64 space_needed_mib(const BerthCore *core, const CoreJob *job, const CoreAsk *ask,
                                gboolean to_disk, guint64 *out_own_mib)
{
    guint64 need_mib = 0;
    *out_own_mib = 0;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const CoreTask *task = job->tasks[i];
        if (!has_guest(task) || !core_ask_has(ask, task))
            continue;
        guint64 task_mib = to_disk ? core_checkpoint_needs_to_disk_mib(core, task)
                                   : core_checkpoint_needs_mib(core, task);
        need_mib += task_mib;
        if (to_disk && task_mib > 0)
            *out_own_mib += task->guests[0].space_mib;
    }
    return need_mib;
}

static gboolean can_be_saved(const BerthCore *core, const CoreJob *job, GError **error)
{
    if (job->class->shape.guests > 1)
        return refuse(error, BERTH_ERROR_UNSUPPORTED, job->id,
                      "has several guests, which cannot be checkpointed at one instant");
    if (!(core->config.features & BERTH_FEATURE_CHECKPOINT) || !job->class->shape.may_checkpoint)
        return refuse(error, BERTH_ERROR_UNSUPPORTED, job->id,
                      "cannot be checkpointed: that needs guests' disks in Ceph (kind = rbd in "
                      "[storage] of berthd.conf)");
    return TRUE;
}

gboolean core_saves_check(const BerthCore *core, const CoreJob *job, const CoreAsk *ask,
                          gboolean to_disk, GError **error)
{
    guint64 own_mib = 0;
    guint64 need_mib = space_needed_mib(core, job, ask, to_disk, &own_mib);
    guint64 left_mib = core_checkpoint_space_left_beside_mib(core, own_mib);
    if (!can_be_saved(core, job, error))
        return FALSE;
    if (need_mib <= left_mib)
        return TRUE;
    guint64 stored_mib = core->stored_mib - core->kept_mib;
    g_autofree char *stored =
        stored_mib > 0
            ? g_strdup_printf(", and %" G_GUINT64_FORMAT
                              " MiB of checkpoints, where berth checkpoint rm makes room",
                              stored_mib)
            : g_strdup("");
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "there is no space for a checkpoint of job %" G_GUINT64_FORMAT
                ": it may take %" G_GUINT64_FORMAT " MiB, and %" G_GUINT64_FORMAT
                " MiB are left (checkpoint_space_mib, checkpoint_room_permille of berthd.conf), "
                "beside %" G_GUINT64_FORMAT
                " MiB that are kept for jobs in slack and for checkpoints to come%s",
                job->id, need_mib, left_mib, core->kept_mib + core->space_mib - own_mib, stored);
    return FALSE;
}

gboolean core_checkpoint(BerthCore *core, const CoreAsk *ask, GError **error)
{
    CoreJob *job = core_get_unfinished(core, ask, error);
    guint32 n_wanted = 0;
    if (job == NULL || !core_saves_check(core, job, ask, FALSE, error))
        return FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        CoreTask *task = job->tasks[i];
        if (!has_guest(task) || !core_ask_has(ask, task))
            continue;
        n_wanted++;
        if (task->record.checkpoint_wanted != BERTH_REASON_NONE &&
            task->record.checkpoint_wanted != BERTH_REASON_CHECKPOINT_DUE)
            continue;
        core_checkpoint_keep_space(core, task);
        core_checkpoint_want(core, task,
                             ask->by_operator ? BERTH_REASON_CHECKPOINTED_BY_OPERATOR
                                              : BERTH_REASON_CHECKPOINTED_BY_USER);
    }
    return n_wanted > 0 || refuse(error, BERTH_ERROR_FAILED_PRECONDITION, ask->job,
                                  "does not run: only what runs can be checkpointed");
}

gboolean core_set_checkpoint_every(BerthCore *core, const CoreAsk *ask, gint64 every_usec,
                                   GError **error)
{
    CoreJob *job = core_get_unfinished(core, ask, error);
    if (job == NULL)
        return FALSE;
    if (every_usec < 0)
        return refuse(error, BERTH_ERROR_INVALID_ARGUMENT, job->id,
                      "cannot be checkpointed more often than at once");
    if (every_usec > 0 && !can_be_saved(core, job, error))
        return FALSE;
    job->checkpoint_every_usec = every_usec;
    core_emit_job_changed(core, job);
    for (guint32 i = 0; i < job->n_tasks; i++) {
        if (every_usec == 0)
            core_checkpoint_due_no_more(core, job->tasks[i]);
        core_checkpoint_arm(core, job->tasks[i]);
    }
    return TRUE;
}

/* --- restore -------------------------------------------------------------------------------- */

static gboolean may_be_put_back(const CoreTask *task, GError **error)
{
    const BerthCoreTask *record = &task->record;
    if (berth_job_state_is_final(record->state) || record->stop_reason != BERTH_REASON_NONE)
        return refuse(error, BERTH_ERROR_FAILED_PRECONDITION, record->job, "is ending");
    if (task->guests[0].phase == BERTH_GUEST_RUNNING && task->guests[0].op == BERTH_OP_MIGRATING &&
        !task->guests[0].waits_for_room)
        return refuse(
            error, BERTH_ERROR_FAILED_PRECONDITION, record->job,
            "is being moved: try again when that is done, or after berth migrate --cancel");
    return TRUE;
}

gboolean core_restore(BerthCore *core, const CoreAsk *ask, guint32 index,
                      const BerthCoreCheckpoint *checkpoint, GError **error)
{
    const CoreJob *job = core_get_unfinished(core, ask, error);
    CoreTask *task = job != NULL ? core_job_task(job, index) : NULL;
    if (job == NULL || !can_be_saved(core, job, error))
        return FALSE;
    if (task == NULL || checkpoint->serial == 0)
        return refuse(error, BERTH_ERROR_FAILED_PRECONDITION, ask->job, "has no checkpoint");
    if (!may_be_put_back(task, error))
        return FALSE;
    BerthGuestId id = {.job = ask->job, .task = index};
    core_checkpoints_changed(core, &id, checkpoint, task->record.checkpoints_mib);
    core_checkpoint_doubt_no_more(core, task);
    if (core_freeze_is_at_time_limit(task) && core_saves_is_on_disk(task) &&
        core_task_time_left_usec(core, task) > 0) {
        core_saves_thaw(core, task); /* it is not at its limit any more */
        return TRUE;
    }
    if (task->record.phase != BERTH_GUEST_STARTING && task->record.phase != BERTH_GUEST_RUNNING)
        return TRUE; /* it waits, or is frozen to disk */
    core_step_set_pending(core, task, BERTH_REASON_RESTORING);
    core_step_release(core, task);
    return TRUE;
}

/* --- thaw from disk ------------------------------------------------------------------------- */

gboolean core_saves_is_on_disk(const CoreTask *task)
{
    return task->record.state == BERTH_JOB_SUSPENDED && task->record.phase != BERTH_GUEST_RUNNING;
}

void core_saves_thaw(BerthCore *core, CoreTask *task)
{
    core_freeze_want(core, &task->guests[0], BERTH_REASON_NONE);
    core_step_set_pending(core, task, BERTH_REASON_RESTORING);
    if (task->record.phase != BERTH_GUEST_NONE)
        return; /* it waits when nothing is left of its last guest */
    core_task_wait(core, task);
    core->pass_wanted = TRUE;
}

static CoreTask *only_on_disk(const CoreJob *job, const CoreAsk *ask, GError **error)
{
    CoreTask *found = NULL;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        if (!core_saves_is_on_disk(job->tasks[i]) || core_freeze_is_at_time_limit(job->tasks[i]) ||
            !core_ask_has(ask, job->tasks[i]))
            continue;
        if (found != NULL) {
            refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                   "has several tasks on disk: they go on wherever there is room");
            return NULL;
        }
        found = job->tasks[i];
    }
    if (found == NULL)
        refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
               "is not frozen to disk: it goes on where it is, and berth migrate moves it");
    else if (found->record.phase != BERTH_GUEST_NONE)
        refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
               "is still leaving its node: try again when that is done");
    return found != NULL && found->record.phase == BERTH_GUEST_NONE ? found : NULL;
}

/* Its job may run one more task, and starts are made. */
static gboolean may_start(BerthCore *core, const CoreTask *task, CoreSize size, GError **error)
{
    const CoreJob *job = task->job;
    const CoreShape *shape = &job->class->shape;
    if (core->storage_down)
        return refuse(error, BERTH_ERROR_UNAVAILABLE, job->id,
                      "cannot start now: storage does not answer");
    if (core_hold_reason(job, task->record.task) != BERTH_REASON_NONE)
        return refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                      "is held: berth release lets it start");
    if (job->throttle > 0 && job->n_active >= job->throttle)
        return refuse(error, BERTH_ERROR_RESOURCE_EXHAUSTED, job->id,
                      "runs as many tasks as it may");
    if (core_owner_hinders(shape->owner, size, shape->guests) != NULL)
        return refuse(error, BERTH_ERROR_RESOURCE_EXHAUSTED, job->id,
                      "cannot start now: its user or account runs as much as it may");
    return TRUE;
}

gboolean core_saves_thaw_to(BerthCore *core, CoreJob *job, const CoreAsk *ask, guint32 handle,
                            GError **error)
{
    CoreTask *task = only_on_disk(job, ask, error);
    if (task == NULL)
        return FALSE;
    CoreSize size = core_job_start_size(core, job, task);
    if (!may_start(core, task, size, error))
        return FALSE;
    gint64 left_usec = MAX(core_task_time_left_usec(core, task), 1);
    if (core_migrate_check_node(core, job, size, left_usec, handle, error) == NULL)
        return FALSE;
    core_freeze_want(core, &task->guests[0], BERTH_REASON_NONE);
    core_step_set_pending(core, task, BERTH_REASON_RESTORING);
    core_task_start(core, task, &handle, FALSE);
    core_order_update(core, job);
    core->pass_wanted = core->plan_wanted = TRUE;
    return TRUE;
}
