/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the steps of which the transitions of a task are made, and its start. */
#include "scheduler/core/task_steps.h"

#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/depend.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/hold.h"
#include "scheduler/core/job.h"
#include "scheduler/core/leaving.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/outcome.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/room.h"
#include "scheduler/core/rounds.h"
#include "scheduler/core/timers.h"

void core_step_finish(BerthCore *core, CoreTask *task, CoreOutcome outcome, gint64 end_usec)
{
    BerthCoreTask *record = &task->record;
    record->state = outcome.state;
    record->reason = outcome.reason;
    record->not_before_usec = 0;
    record->freeze_reason = BERTH_REASON_NONE;
    record->freeze_to_disk = FALSE;
    record->frozen_usec = record->short_usec = 0;
    record->end_usec =
        end_usec > 0 ? CLAMP(end_usec, MIN(record->start_usec, core->now_usec), core->now_usec)
                     : core->now_usec;
    core_hold_ended(task->job,
                    berth_index_range_of(record->task, record->rest_last, record->rest_step));
    core_emit_changed(core, task);
}

static void set_record_phase(BerthCore *core, CoreTask *task, BerthGuestPhase phase)
{
    if (task->record.phase == phase)
        return;
    task->record.phase = phase;
    core_emit_changed(core, task);
}

/* All guests go on to PHASE. */
void core_step_set_phase(BerthCore *core, CoreTask *task, BerthGuestPhase phase)
{
    core_timer_clear(core, &task->timer);
    for (guint32 i = 0; i < task->n_guests; i++) {
        task->guests[i].phase = phase;
        task->guests[i].heard = FALSE;
        core_checkpoint_count_slack(core, &task->guests[i]);
    }
    set_record_phase(core, task, phase);
}

/* Guests are being removed: the task's phase is that of the one with most left to do. */
void core_step_update_phase(BerthCore *core, CoreTask *task)
{
    gboolean releasing = FALSE;
    gboolean fencing = FALSE;
    /* From the last one on: guests go in their order, mostly, so that this finds one soon. */
    for (guint32 i = task->n_guests; i > 0 && !releasing; i--) {
        BerthGuestPhase phase = task->guests[i - 1].phase;
        fencing |= phase == BERTH_GUEST_FENCING;
        /* In the midst of an event the others are still to follow. */
        releasing |= phase != BERTH_GUEST_FENCING && phase != BERTH_GUEST_NONE;
    }
    set_record_phase(core, task,
                     releasing ? BERTH_GUEST_RELEASING
                     : fencing ? BERTH_GUEST_FENCING
                               : BERTH_GUEST_NONE);
}

static gboolean is_leaving(const CoreTask *task)
{
    return task->record.phase == BERTH_GUEST_STOPPING ||
           task->record.phase == BERTH_GUEST_RELEASING || task->record.phase == BERTH_GUEST_FENCING;
}

/* Whoever waits for an agent that cannot end a guest, as its QEMU hangs, hears nothing: neither STOP nor RELEASE is
 * ever answered by a failure. */
void core_step_expect_to_leave(BerthCore *core, CoreTask *task)
{
    gint64 due_usec = core_time_add(core->now_usec, core->tunings[BERTH_TUNING_OVERSTAY_USEC]);
    if (task->leaving_usec == 0)
        task->leaving_usec = core->now_usec;
    core_timer_set(core, &task->overstay_timer, MAX(due_usec, task->planned_end_usec));
}

static void expect_to_leave_no_more(BerthCore *core, CoreTask *task)
{
    core_timer_clear(core, &task->overstay_timer);
    task->leaving_usec = 0;
}

/* Else who comes first would be planned there for the very next moment, for ever, and kept from where others come and
 * go. */
void core_task_overstays(BerthCore *core, CoreTask *task)
{
    if (!is_leaving(task))
        return;
    task->planned_end_usec = core_leaving_again_usec(core, task->leaving_usec);
    for (guint32 i = 0; i < task->n_guests; i++)
        if (task->guests[i].phase != BERTH_GUEST_NONE)
            core_nodes_changed(&core->nodes, core_step_node_of(core, &task->guests[i]));
    core_timer_set(core, &task->overstay_timer, task->planned_end_usec);
    core->pass_wanted = core->plan_wanted = TRUE;
}

gboolean core_step_is_unasked(const CoreGuest *guest)
{
    return guest->waits_for_room && guest->op == BERTH_OP_NONE;
}

/* It is thought to be gone any moment: nobody is to be started in its place whom only its time
 * limit would let end in time. */
void core_step_release_guest(BerthCore *core, CoreGuest *guest)
{
    if (core_step_is_unasked(guest)) {
        core_step_free_guest(core, guest);
        return;
    }
    core_move_drop_op(core, guest);
    core_room_await_no_more(core, guest);
    guest->phase = BERTH_GUEST_RELEASING;
    core_checkpoint_count_slack(core, guest);
    guest->removed_at = core->event;
    guest->task->planned_end_usec = MIN(guest->task->planned_end_usec, core->now_usec);
    core_step_expect_to_leave(core, guest->task);
    core_nodes_changed(&core->nodes, core_step_node_of(core, guest));
    core_emit_changed(core, guest->task);
    core_emit(core, BERTH_ACTION_RELEASE, guest, guest->task->record.reason);
}

void core_step_release(BerthCore *core, CoreTask *task)
{
    core_timer_clear(core, &task->timer);
    for (guint32 i = 0; i < task->n_guests; i++)
        if (task->guests[i].phase != BERTH_GUEST_NONE)
            core_step_release_guest(core, &task->guests[i]);
    core_step_update_phase(core, task);
}

/* It waits for a guest; or, frozen to disk, until it is thawed. Who was not saved at his time limit goes on from
 * before it. */
void core_step_set_pending(BerthCore *core, CoreTask *task, BerthReason reason)
{
    BerthCoreTask *record = &task->record;
    if (reason != BERTH_REASON_RESTORING) /* somebody said from which it is to go on */
        core_checkpoint_doubt(core, task);
    if (core_freeze_is_at_time_limit(task) && reason != BERTH_REASON_TIME_LIMIT) {
        record->freeze_reason = BERTH_REASON_NONE;
        record->freeze_to_disk = FALSE;
    }
    gboolean stands_still = record->freeze_to_disk && record->checkpoint_epoch != 0;
    record->state = stands_still ? BERTH_JOB_SUSPENDED : BERTH_JOB_PENDING;
    record->reason = stands_still ? record->freeze_reason : reason;
    record->stop_reason = BERTH_REASON_NONE;
    record->start_usec = 0;
    record->end_usec = 0;
    record->frozen_usec = stands_still ? core->now_usec : 0;
    record->short_usec = 0;
    if (record->freeze_reason == BERTH_REASON_AT_LIMIT) /* it begins below its limit */
        record->freeze_reason = BERTH_REASON_NONE;
    core_charge_clear(task);
    record->starved_usec = 0;
    record->ran_usec = record->checkpoint_ran_usec;
    record->checkpoint_usec = 0;
    core_emit_changed(core, task);
}

/* The guest was lost through no fault of the job: it goes on from its checkpoint, or begins again where that is
 * allowed. */
void core_step_requeue_or_fail(BerthCore *core, CoreTask *task, BerthReason reason)
{
    if ((task->job->no_requeue && task->record.checkpoint_epoch == 0) ||
        task->record.requeues - task->record.checkpoint_requeues >= core->config.requeues_max) {
        core_step_finish(core, task, (CoreOutcome){BERTH_JOB_NODE_FAIL, reason}, 0);
        return;
    }
    task->record.requeues++;
    core_step_set_pending(core, task, BERTH_REASON_REQUEUED);
}

void core_step_crowded_out(BerthCore *core, CoreTask *task)
{
    if (task->job->no_requeue && task->record.checkpoint_epoch == 0) {
        core_step_finish(core, task, (CoreOutcome){BERTH_JOB_NODE_FAIL, BERTH_REASON_CROWDED_OUT},
                         0);
        return;
    }
    task->record.wants_backing = TRUE;
    core_step_set_pending(core, task, BERTH_REASON_CROWDED_OUT);
}

CoreNode *core_step_node_of(const BerthCore *core, const CoreGuest *guest)
{
    return core_nodes_get(&core->nodes, guest->node);
}

void core_step_stop_now(BerthCore *core, CoreTask *task)
{
    core_step_set_phase(core, task, BERTH_GUEST_STOPPING);
    core_step_expect_to_leave(core, task);
    core_freeze_end(core, &task->guests[0]);
    for (guint32 i = 0; i < task->n_guests; i++)
        core_emit(core, BERTH_ACTION_STOP, &task->guests[i], task->record.stop_reason);
}

gboolean core_step_all_nodes_are_up(const BerthCore *core, const CoreTask *task)
{
    for (guint32 i = 0; i < task->n_guests; i++)
        if (core_step_node_of(core, &task->guests[i])->state != BERTH_NODE_UP)
            return FALSE;
    return TRUE;
}

gboolean core_step_is_ended_by_stop(const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    return record->stop_reason != BERTH_REASON_NONE &&
           (record->stop_reason != BERTH_REASON_TIME_LIMIT ||
            record->phase == BERTH_GUEST_STOPPING);
}

static gboolean are_all_unasked(const CoreTask *task)
{
    for (guint32 i = 0; i < task->n_guests; i++)
        if (!core_step_is_unasked(&task->guests[i]))
            return FALSE;
    return TRUE;
}

/* STOP leaves at once, or when the last of the nodes joins; until then who cancels it has the last word
 * over its time limit. */
void core_task_stop(BerthCore *core, CoreTask *task, BerthReason reason)
{
    if (core_step_is_ended_by_stop(task) || task->record.stop_reason == reason)
        return;
    task->record.stop_reason = reason;
    if (are_all_unasked(task)) {
        core_step_end_by_stop(core, task, 0);
        return;
    }
    for (guint32 i = 0; i < task->n_guests; i++) {
        core_move_let_go(core, &task->guests[i]);
        core_room_await_no_more(core, &task->guests[i]);
    }
    core_timer_clear(core, &task->timer);
    core_timer_clear(core, &task->checkpoint_timer);
    core_emit_changed(core, task);
    if (core_step_all_nodes_are_up(core, task))
        core_step_stop_now(core, task);
}

/* Nothing of the guest is left: its room is free; after the last the task is over or waits again. */
void core_step_free_guest(BerthCore *core, CoreGuest *guest)
{
    CoreTask *task = guest->task;
    CoreNode *node = core_step_node_of(core, guest);
    core_move_drop_op(core, guest);
    core_room_await_no_more(core, guest);
    core_nodes_unreserve(&core->nodes, node, guest);
    guest->is_opportunistic = FALSE;
    core_checkpoint_count_slack(core, guest);
    core->pass_wanted = TRUE;
    guest->phase = BERTH_GUEST_NONE;
    guest->has_left = FALSE;
    core_relief_room_changed(core, node);
    core_emit_changed(core, task);
    core_step_update_phase(core, task);
    if (task->record.phase != BERTH_GUEST_NONE)
        return;
    core_checkpoint_doubt_no_more(core, task);
    expect_to_leave_no_more(core, task);
    core_timer_clear(core, &task->timer);
    task->job->n_active--;
    core_owner_end(core, task);
    if (berth_job_state_is_final(task->record.state)) {
        core_task_over(core, task);
        core_order_update(core, task->job);
    } else if (task->record.state == BERTH_JOB_PENDING) {
        core_task_wait(core, task);
    } else {
        core_order_update(core, task->job);
    }
}

/* Who was being moved may be where he was to go by now. */
void core_step_fence(BerthCore *core, CoreGuest *guest)
{
    guest->has_left |= guest->op == BERTH_OP_MIGRATING && !guest->waits_for_room;
    core_move_drop_op(core, guest);
    core_room_await_no_more(core, guest);
    guest->phase = BERTH_GUEST_FENCING;
    core_checkpoint_count_slack(core, guest);
    core_emit_changed(core, guest->task);
    guest->found_at = core->event;
    core_step_update_phase(core, guest->task);
    core_emit(core, BERTH_ACTION_FENCE, guest, BERTH_REASON_NODE_LOST);
}

/* --- the guest starts and runs -------------------------------------------------------------- */

/* Who has outrun what was assumed is thought to run for as long again: else whoever comes first would be planned in his place
 * for the very next moment, for ever. */
static gint64 assumed_limit_usec(const BerthCore *core, const CoreTask *task)
{
    gint64 assumed_usec = MAX(task->assumed_usec, core->tunings[BERTH_TUNING_ASSUMED_LIMIT_USEC]);
    gint64 ran_usec = task->record.ran_usec;
    return ran_usec < assumed_usec ? assumed_usec : core_time_add(ran_usec, ran_usec);
}

gint64 core_task_time_left_usec(const BerthCore *core, const CoreTask *task)
{
    gint64 limit_usec = task->job->class->shape.time_limit_usec;
    if (limit_usec == 0)
        limit_usec = assumed_limit_usec(core, task);
    return MAX(core_time_add(limit_usec - task->record.ran_usec, task->record.starved_usec), 0);
}

/* When it is thought to leave has changed. */
void core_step_plan_end(BerthCore *core, CoreTask *task, gint64 start_usec)
{
    task->planned_end_usec = core_time_add(start_usec, core_task_time_left_usec(core, task));
    for (guint32 i = 0; i < task->n_guests; i++)
        core_nodes_changed(&core->nodes, core_step_node_of(core, &task->guests[i]));
}

BerthResources core_guest_resources_of(const CoreGuest *guest, CoreSize size)
{
    const CoreJob *job = guest->task->job;
    guint64 overhead_mib = job->class->shape.size.memory_mib - job->class->shape.memory_mib;
    return (BerthResources){size.vcpus, size.memory_mib - overhead_mib, job->disk_mib};
}

BerthResources core_guest_resources(const CoreGuest *guest)
{
    return core_guest_resources_of(guest, guest->size);
}

void core_step_emit_start(BerthCore *core, const CoreGuest *guest)
{
    gboolean restores = guest->task->record.checkpoint_epoch != 0;
    BerthCoreAction action = core_action(core, restores ? BERTH_ACTION_RESTORE : BERTH_ACTION_START,
                                         guest, BERTH_REASON_NONE);
    action.is_opportunistic = guest->is_opportunistic;
    if (!guest->waits_for_room)
        core_emit_action(core, &action);
}

void core_task_room_is_free(BerthCore *core, CoreGuest *guest)
{
    core_room_await_no_more(core, guest);
    core_step_emit_start(core, guest);
}

/* START leaves now, or when guests in slack have made room for a backed one. */
static void begin_guest(BerthCore *core, CoreGuest *guest)
{
    if (!guest->is_opportunistic && !core_relief_make_room(core, core_step_node_of(core, guest)))
        core_room_await(core, guest);
    core_step_emit_start(core, guest);
}

static void place_guest(BerthCore *core, CoreGuest *guest, guint32 node, gboolean is_opportunistic)
{
    guest->size = core_job_start_size(core, guest->task->job, guest->task);
    guest->has_exited = guest->is_frozen = FALSE;
    guest->balloon_mib = guest->to_balloon_mib = 0;
    guest->moves_failed = guest->saves_failed = 0;
    guest->move_rest_usec = guest->save_rest_usec = guest->stuck_usec = guest->limit_rest_usec = 0;
    guest->is_drain_missed = FALSE;
    guest->vcpus_short_usec = guest->grow_rest_usec = guest->resized_until_usec = 0;
    guest->ungrown = 0;
    guest->stalls = FALSE;
    guest->fill_usec = 0;
    guest->is_opportunistic = is_opportunistic;
    core_checkpoint_count_slack(core, guest);
    core_predict_begin(core, guest);
    core_nodes_reserve(&core->nodes, core_nodes_get(&core->nodes, node), guest);
}

void core_task_start(BerthCore *core, CoreTask *task, const guint32 *nodes,
                     gboolean is_opportunistic)
{
    BerthCoreTask *record = &task->record;
    record->state = BERTH_JOB_RUNNING;
    record->reason = BERTH_REASON_NONE;
    record->stop_reason = BERTH_REASON_NONE;
    record->node = nodes[0];
    record->epoch++;
    record->start_taken = FALSE;
    record->not_before_usec = 0;
    record->start_usec = 0;
    record->end_usec = 0;
    task->end_usec = task->assumed_usec = 0;
    task->job->n_active++;
    for (guint32 i = 0; i < task->n_guests; i++)
        place_guest(core, &task->guests[i], nodes[i], is_opportunistic);
    core_owner_start(core, task);
    core_step_plan_end(core, task, core->now_usec);
    core_step_set_phase(core, task, BERTH_GUEST_STARTING);
    for (guint32 i = 0; i < task->n_guests; i++)
        begin_guest(core, &task->guests[i]);
    core_arm_round(core);
    core_depend_started(core, task->job);
}

void core_step_end_by_stop(BerthCore *core, CoreTask *task, gint64 end_usec)
{
    core_step_finish(core, task, core_outcome_of_stop(task->record.stop_reason), end_usec);
    core_step_release(core, task);
}

/* --- waiting -------------------------------------------------------------------------------- */

void core_task_wait(BerthCore *core, CoreTask *task)
{
    gboolean is_held = core_hold_reason(task->job, task->record.task) != BERTH_REASON_NONE;
    if (!is_held && task->record.not_before_usec > core->now_usec) {
        core_timer_set(core, &task->timer, task->record.not_before_usec);
    } else if (!is_held) {
        core_job_return(task);
    }
    core_order_update(core, task->job);
}

void core_task_wait_no_more(BerthCore *core, CoreTask *task)
{
    core_timer_clear(core, &task->timer);
    core_job_return_no_more(task);
}

void core_task_arm(BerthCore *core, CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    if (record->phase != BERTH_GUEST_RUNNING || record->stop_reason != BERTH_REASON_NONE)
        return;
    gint64 end_usec = core_charge_end_usec(core, task);
    /* What it is planned to end at is put off first where it will not. */
    gboolean is_planned = task->planned_end_usec > core->now_usec;
    core_timer_set(core, &task->timer,
                   is_planned ? MIN(task->planned_end_usec, end_usec) : end_usec);
}

void core_task_restored(BerthCore *core, CoreTask *task)
{
    gint64 start_usec = task->record.start_usec;
    task->job->n_active++;
    core_owner_start(core, task);
    core_step_plan_end(core, task, start_usec > 0 ? start_usec : core->now_usec);
    core_task_arm(core, task);
}
