/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the life of a task: what each event does in each phase of its guests, as a table. Decides
 * neither who starts nor where.
 *
 * Invariants: what a guest takes from its node is held from START until RELEASED or FENCED, or
 * until a lost node is given up; a task's outcome is decided once, and RELEASE follows it; a new
 * guest is not started before nothing of the old one can run.
 *
 * The guests of a gang go through the phases together up to the outcome: it runs when all of them
 * do, ends well when all of them have, and ends otherwise with the first that does. They are removed
 * each by itself; the task goes on when the last one is.
 *
 * A stop that was asked for decides the outcome once STOP has left (phase STOPPING), even if the
 * command had just ended well by itself. A stop that still waits for the node to come back
 * (STARTING or RUNNING with a stop_reason) does not undo an end that the command came to before. */
#include "scheduler/core/task_steps.h"

#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/drain.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/outcome.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/sessions.h"
#include "scheduler/core/timers.h"

/* GUEST: the one that the event is about; NULL where it is about the task. */
typedef void (*TaskHandler)(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input);

/* The instant comes from another clock: it is not before the submission and not after now. */
static void note_start(BerthCore *core, CoreTask *task, gint64 start_usec)
{
    gint64 earliest = MIN(task->job->submit_usec, core->now_usec);
    task->record.start_usec =
        start_usec > 0 ? CLAMP(start_usec, earliest, core->now_usec) : core->now_usec;
    core_emit_changed(core, task);
}

static void on_start_taken(BerthCore *core, CoreTask *task, CoreGuest *guest,
                           const CoreTaskInput *input)
{
    if (task->record.start_taken)
        return;
    task->record.start_taken = TRUE;
    core_emit_changed(core, task);
}

static void on_running(BerthCore *core, CoreTask *task, CoreGuest *guest,
                       const CoreTaskInput *input)
{
    note_start(core, task, input->start_usec);
    task->record.start_failures = 0;
    task->record.wants_backing = FALSE;
    for (guint32 i = 0; i < task->n_guests; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, task->guests[i].node);
        core_session_start_worked(node);
        core_drain_look_again(core, node);
    }
    core_step_set_phase(core, task, BERTH_GUEST_RUNNING);
    core_charge_begin(core, task);
    gint64 planned_end_usec = task->planned_end_usec;
    core_step_plan_end(core, task, task->record.start_usec);
    core->plan_wanted |= task->planned_end_usec != planned_end_usec;
    core_task_arm(core, task);
    core_checkpoint_arm(core, task);
    core_freeze_settle(core, &task->guests[0]);
}

static void on_running_while_stopping(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                      const CoreTaskInput *input)
{
    if (task->record.start_usec == 0)
        note_start(core, task, input->start_usec);
}

/* It WANTED_SPACE for a checkpoint: that there was none is told. */
static void end_at_time_limit(BerthCore *core, CoreTask *task, gboolean wanted_space)
{
    if (wanted_space)
        task->record.checkpoint_missed_usec = core->now_usec;
    core_task_stop(core, task, BERTH_REASON_TIME_LIMIT);
}

static void outrun_assumption(BerthCore *core, CoreTask *task)
{
    gint64 used_usec = core_charge_used_usec(task, core->now_usec);
    task->assumed_usec = core_time_add(used_usec, used_usec);
    core_charge_plan(core, task);
    core_task_arm(core, task);
    core->pass_wanted = core->plan_wanted = TRUE;
}

/* While it is checkpointed it stands still, and its time too; what is to be saved at its limit waits
 * for what is being done to it. After that there is a timer again. */
static void on_time_limit(BerthCore *core, CoreTask *task, CoreGuest *guest,
                          const CoreTaskInput *input)
{
    CoreGuest *only = &task->guests[0];
    gboolean saves = task->job->class->shape.on_timeout == BERTH_ON_TIMEOUT_CHECKPOINT &&
                     core_move_could_checkpoint(core, only);
    if (core_charge_end_usec(core, task) > core->now_usec) {
        core_charge_plan(core, task);
        core_task_arm(core, task);
        return;
    }
    if (task->job->class->shape.time_limit_usec == 0) {
        outrun_assumption(core, task);
        return;
    }
    if (saves)
        core_move_let_go(core, only);
    if (only->op == BERTH_OP_CHECKPOINTING || (saves && only->op != BERTH_OP_NONE))
        return;
    else if (saves && core_checkpoint_keep_space_to_leave(core, task))
        core_freeze_at_time_limit(core, only);
    else
        end_at_time_limit(core, task, saves);
}

static void on_cancel_guest(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input)
{
    core_task_stop(core, task, input->reason);
}

/* --- the guest ends ------------------------------------------------------------------------- */

static void on_exited(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    if (task->record.start_usec == 0 && !input->exit.not_started)
        note_start(core, task, input->start_usec);
    if (task->record.phase == BERTH_GUEST_STOPPING) {
        core_step_end_by_stop(core, task, input->end_usec);
        return;
    }
    core_step_finish(core, task, core_outcome_of_exit(&input->exit), input->end_usec);
    if (task->record.state == BERTH_JOB_COMPLETED)
        core_predict_learn(core, &task->guests[0]);
    core_step_release(core, task);
}

static void start_again(BerthCore *core, CoreTask *task, const CoreGuest *guest)
{
    core_step_set_pending(core, task,
                          core->storage_down ? BERTH_REASON_STORAGE_UNAVAILABLE
                                             : BERTH_REASON_STARTING_LATER);
    task->record.node = guest->node; /* to be avoided */
    task->record.not_before_usec = core_backoff_end(core, task->record.start_failures);
}

static void on_start_failed(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input)
{
    BerthCoreTask *record = &task->record;
    gboolean counts =
        input->reason != BERTH_REASON_STORAGE_UNAVAILABLE && !core->storage_down && !input->passes;
    if (record->stop_reason != BERTH_REASON_NONE) {
        core_step_end_by_stop(core, task, 0);
        return;
    }
    if (counts)
        record->start_failures++;
    /* Who goes on from a checkpoint can do so as long as that is there: nothing of its work is given up. */
    gboolean gives_up = counts && record->checkpoint_epoch == 0 &&
                        record->start_failures > core->config.start_retries_max;
    if (input->permanent || gives_up) {
        core_step_finish(core, task, (CoreOutcome){BERTH_JOB_FAILED, BERTH_REASON_START_FAILED}, 0);
    } else {
        start_again(core, task, guest);
    }
    core_step_release(core, task);
}

/* The node could not, or would not. */
static void on_start_refused(BerthCore *core, CoreTask *task, CoreGuest *guest,
                             const CoreTaskInput *input)
{
    if (task->record.stop_reason == BERTH_REASON_NONE && !input->permanent && !input->passes)
        core_session_start_failed(core, core_nodes_get(&core->nodes, guest->node),
                                  task->record.job);
    on_start_failed(core, task, guest, input);
}

static void end_gone(BerthCore *core, CoreTask *task, const CoreTaskInput *input)
{
    BerthReason reason = input->reason;
    /* What ran when it was saved may be put back elsewhere. */
    gboolean is_put_back =
        reason == BERTH_REASON_BOOT_DEADLINE && task->record.checkpoint_epoch != 0;
    gboolean is_lost = reason == BERTH_REASON_NONE || reason == BERTH_REASON_NODE_LOST ||
                       reason == BERTH_REASON_GUEST_VANISHED ||
                       reason == BERTH_REASON_CROWDED_OUT || is_put_back;
    if (core_step_is_ended_by_stop(task))
        core_step_finish(core, task, core_outcome_of_stop(task->record.stop_reason), 0);
    else if (!is_lost)
        core_step_finish(core, task, core_outcome_of_gone(reason), 0);
    else if (input->has_left && !core->config.can_fence) /* it may run on, wherever it is */
        core_step_finish(core, task,
                         (CoreOutcome){BERTH_JOB_NODE_FAIL, BERTH_REASON_GUEST_VANISHED}, 0);
    else if (reason == BERTH_REASON_CROWDED_OUT && task->guests[0].is_opportunistic)
        core_step_crowded_out(core, task);
    else
        core_step_requeue_or_fail(core, task, BERTH_REASON_GUEST_VANISHED);
}

void core_on_gone(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    end_gone(core, task, input);
    if (input->has_left && core->config.can_fence)
        core_task_fence_left(core, task, guest);
    else
        core_step_release(core, task);
}

/* Elsewhere if possible. Nothing of the job has run: that its guest crashed, or did not boot in time on a node that may be slow, is
 * none of its own, unless that happens again and again. The commands of a gang begin each by itself. */
static gboolean may_boot_again(const BerthCore *core, const CoreTask *task,
                               const CoreTaskInput *input)
{
    gboolean may_pass = input->reason == BERTH_REASON_GUEST_CRASHED ||
                        input->reason == BERTH_REASON_GUEST_VANISHED ||
                        input->reason == BERTH_REASON_BOOT_DEADLINE;
    gint64 most =
        MIN((gint64)core->config.start_retries_max, core->tunings[BERTH_TUNING_BOOT_RETRIES_MAX]);
    return input->not_begun && may_pass && task->n_guests == 1 &&
           task->record.stop_reason == BERTH_REASON_NONE && task->record.start_failures < most;
}

static void on_gone_while_starting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                   const CoreTaskInput *input)
{
    if (!input->has_left && may_boot_again(core, task, input)) {
        task->record.start_failures++;
        start_again(core, task, guest);
        core_step_release(core, task);
        return;
    }
    if (input->reason == BERTH_REASON_START_FAILED ||
        input->reason == BERTH_REASON_STORAGE_UNAVAILABLE)
        on_start_failed(core, task, guest, input);
    else
        core_on_gone(core, task, guest, input);
}

static void on_released(BerthCore *core, CoreTask *task, CoreGuest *guest,
                        const CoreTaskInput *input)
{
    core_step_free_guest(core, guest);
}

/* What is left of the guest is being removed: only whether it will start again can change. */
static void on_cancel_pending(BerthCore *core, CoreTask *task, CoreGuest *guest,
                              const CoreTaskInput *input)
{
    if (!berth_job_state_is_final(task->record.state))
        core_step_finish(core, task, core_outcome_of_stop(input->reason), 0);
}

/* --- waiting -------------------------------------------------------------------------------- */

static void on_backoff_over(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input)
{
    core_task_wait(core, task);
}

static void on_cancel_waiting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                              const CoreTaskInput *input)
{
    core_task_wait_no_more(core, task);
    core_step_finish(core, task, core_outcome_of_stop(input->reason), 0);
    core_task_over(core, task);
    core_order_update(core, task->job);
}

/* --- the table ------------------------------------------------------------------------------ */

/* An empty cell: the event says nothing new in that phase, or comes too late. */
static const TaskHandler table[BERTH_GUEST_FENCING + 1][CORE_TASK_N_EVENTS] = {
    [BERTH_GUEST_NONE] =
        {
            [CORE_TASK_CANCEL] = on_cancel_waiting,
            [CORE_TASK_TIMER] = on_backoff_over,
        },
    [BERTH_GUEST_STARTING] =
        {
            [CORE_TASK_START_TAKEN] = on_start_taken,
            [CORE_TASK_RUNNING] = on_running,
            [CORE_TASK_EXITED] = on_exited,
            [CORE_TASK_GONE] = on_gone_while_starting,
            [CORE_TASK_START_FAILED] = on_start_refused,
            [CORE_TASK_EVICT] = core_on_evict_starting,
            [CORE_TASK_NO_ROOM] = core_on_no_room,
            [CORE_TASK_CANCEL] = on_cancel_guest,
            [CORE_TASK_FOUND] = core_on_found_starting,
            [CORE_TASK_MISSING] = core_on_missing_while_starting,
            [CORE_TASK_NODE_LOST] = core_on_node_lost,
        },
    [BERTH_GUEST_RUNNING] =
        {
            [CORE_TASK_MIGRATED] = core_on_migrated,
            [CORE_TASK_CHECKPOINTED] = core_on_checkpointed,
            [CORE_TASK_FROZEN] = core_on_frozen,
            [CORE_TASK_THAWED] = core_on_thawed,
            [CORE_TASK_RESIZED] = core_on_resized,
            [CORE_TASK_EXITED] = on_exited,
            [CORE_TASK_GONE] = core_on_gone,
            [CORE_TASK_CANCEL] = on_cancel_guest,
            [CORE_TASK_TIMER] = on_time_limit,
            [CORE_TASK_FOUND] = core_on_found_alive,
            [CORE_TASK_MISSING] = core_on_missing,
            [CORE_TASK_NODE_LOST] = core_on_node_lost,
        },
    [BERTH_GUEST_STOPPING] =
        {
            [CORE_TASK_MIGRATED] = core_on_migrated,
            [CORE_TASK_CHECKPOINTED] = core_on_checkpointed,
            [CORE_TASK_RESIZED] = core_on_resized,
            [CORE_TASK_RUNNING] = on_running_while_stopping,
            [CORE_TASK_EXITED] = on_exited,
            [CORE_TASK_GONE] = core_on_gone,
            [CORE_TASK_START_FAILED] = on_start_refused,
            [CORE_TASK_FOUND] = core_on_found_alive,
            [CORE_TASK_MISSING] = core_on_missing,
            [CORE_TASK_NODE_LOST] = core_on_node_lost,
        },
    [BERTH_GUEST_RELEASING] =
        {
            [CORE_TASK_RELEASED] = on_released,
            [CORE_TASK_CANCEL] = on_cancel_pending,
            [CORE_TASK_TIMER] = core_on_fence_again, /* of another guest of its gang */
            [CORE_TASK_FOUND] = core_on_joined_while_removing,
            [CORE_TASK_MISSING] = core_on_joined_while_removing,
            [CORE_TASK_NODE_LOST] = core_on_node_lost_while_removing,
        },
    [BERTH_GUEST_FENCING] =
        {
            [CORE_TASK_RELEASED] = on_released,
            [CORE_TASK_FENCED] = core_on_fenced,
            [CORE_TASK_FENCE_FAILED] = core_on_fence_failed,
            [CORE_TASK_CANCEL] = on_cancel_pending,
            [CORE_TASK_TIMER] = core_on_fence_again,
            [CORE_TASK_FOUND] = core_on_joined_while_removing,
            [CORE_TASK_MISSING] = core_on_joined_while_removing,
            [CORE_TASK_NODE_LOST] = core_on_node_lost_while_removing,
        },
};

void core_task_apply(BerthCore *core, CoreTask *task, CoreGuest *guest, CoreTaskEvent event,
                     const CoreTaskInput *input)
{
    BerthGuestPhase phase = guest != NULL ? guest->phase : task->record.phase;
    TaskHandler handler = table[phase][event];
    if (handler != NULL)
        handler(core, task, guest, input);
}

void core_task_handle(BerthCore *core, CoreTask *task, CoreTaskEvent event,
                      const CoreTaskInput *input)
{
    static const CoreTaskInput nothing;
    core_task_apply(core, task, NULL, event, input != NULL ? input : &nothing);
}
