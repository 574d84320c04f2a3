/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what it means for a task that the node of one of its guests comes back, or does not. */
#include "scheduler/core/task_steps.h"

#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/outcome.h"
#include "scheduler/core/timers.h"

static gboolean stop_after_join(BerthCore *core, CoreTask *task, const CoreGuest *guest)
{
    if (task->record.stop_reason == BERTH_REASON_NONE)
        return FALSE;
    if (guest->phase == BERTH_GUEST_STOPPING) {
        core_emit(core, BERTH_ACTION_STOP, guest, task->record.stop_reason);
        core_step_expect_to_leave(core, task);
        if (guest->op == BERTH_OP_MIGRATING) /* it may have left meanwhile */
            core_move_again(core, guest);
    } else if (core_step_all_nodes_are_up(core, task))
        core_step_stop_now(core, task);
    return TRUE;
}

void core_task_stop_if_up(BerthCore *core, CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    if (record->stop_reason != BERTH_REASON_NONE &&
        (record->phase == BERTH_GUEST_STARTING || record->phase == BERTH_GUEST_RUNNING) &&
        core_step_all_nodes_are_up(core, task))
        core_step_stop_now(core, task);
}

void core_on_found_alive(BerthCore *core, CoreTask *task, CoreGuest *guest,
                         const CoreTaskInput *input)
{
    if (stop_after_join(core, task, guest))
        return;
    core_move_again(core, guest);
    core_freeze_settle(core, guest);
}

/* Its agent may have been killed half-way, and the task with it: it gets it again. */
void core_on_found_starting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input)
{
    if (!stop_after_join(core, task, guest) && !guest->heard)
        core_step_emit_start(core, guest);
}

void core_on_missing(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    static const CoreTaskInput vanished = {.reason = BERTH_REASON_GUEST_VANISHED};
    /* It may have arrived at the other end: who moves it knows. */
    if (guest->op == BERTH_OP_MIGRATING && !guest->waits_for_room)
        core_move_again(core, guest);
    else
        core_on_gone(core, task, guest, &vanished);
}

/* Once a node had it, its command may have run although nobody has heard of it. One that waits for room was
 * never asked for: others of its gang may have been. */
void core_on_missing_while_starting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                    const CoreTaskInput *input)
{
    if (guest->waits_for_room && task->record.stop_reason == BERTH_REASON_NONE)
        return;
    if (task->record.stop_reason != BERTH_REASON_NONE || task->record.start_taken || guest->heard) {
        core_on_missing(core, task, guest, input);
        return;
    }
    core_step_set_pending(core, task, BERTH_REASON_STARTING_LATER);
    core_step_release(core, task);
}

static gboolean is_any_fencing(const CoreTask *task)
{
    for (guint32 i = 0; i < task->n_guests; i++)
        if (task->guests[i].phase == BERTH_GUEST_FENCING)
            return TRUE;
    return FALSE;
}

/* The node itself can now say when nothing of it is left there, which is more than a fence; but not of one
 * that has left it. */
void core_on_joined_while_removing(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                   const CoreTaskInput *input)
{
    if (guest->removed_at == core->event)
        return; /* with another guest of its gang */
    if (guest->phase == BERTH_GUEST_FENCING && (guest->has_left || input->has_left)) {
        guest->has_left = TRUE;
        return;
    }
    core_step_release_guest(core, guest);
    core_step_update_phase(core, task);
    if (!is_any_fencing(task))
        core_timer_clear(core, &task->timer);
}

/* Without a fence nobody knows whether the guest still runs: it is not started elsewhere. */
static void abandon(BerthCore *core, CoreGuest *guest)
{
    CoreTask *task = guest->task;
    if (!berth_job_state_is_final(task->record.state))
        core_step_finish(core, task, (CoreOutcome){BERTH_JOB_NODE_FAIL, BERTH_REASON_NODE_LOST}, 0);
    core_step_free_guest(core, guest);
}

static void remove_lost(BerthCore *core, CoreGuest *guest)
{
    if (core_step_is_unasked(guest))
        core_step_free_guest(core, guest);
    else if (core->config.can_fence)
        core_step_fence(core, guest);
    else
        abandon(core, guest);
}

void core_on_node_lost(BerthCore *core, CoreTask *task, CoreGuest *guest,
                       const CoreTaskInput *input)
{
    core_timer_clear(core, &task->timer);
    if (core_step_is_ended_by_stop(task))
        core_step_finish(core, task, core_outcome_of_stop(task->record.stop_reason), 0);
    else if (core->config.can_fence)
        core_step_requeue_or_fail(core, task, BERTH_REASON_NODE_LOST);
    else
        core_step_finish(core, task, (CoreOutcome){BERTH_JOB_NODE_FAIL, BERTH_REASON_NODE_LOST}, 0);
    for (guint32 i = 0; i < task->n_guests; i++)
        if (core_step_node_of(core, &task->guests[i])->state != BERTH_NODE_LOST)
            core_step_release_guest(core, &task->guests[i]);
    for (guint32 i = 0; i < task->n_guests; i++)
        if (core_step_node_of(core, &task->guests[i])->state == BERTH_NODE_LOST)
            remove_lost(core, &task->guests[i]);
}

void core_on_node_lost_while_removing(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                      const CoreTaskInput *input)
{
    if (guest->found_at == core->event)
        return; /* with another guest of its gang */
    /* The outcome stands; if the node comes back with the guest, it is released as a stray. */
    if (berth_job_state_is_final(task->record.state) && guest->phase == BERTH_GUEST_RELEASING)
        core_step_free_guest(core, guest);
    else
        remove_lost(core, guest);
}

void core_task_fence_left(BerthCore *core, CoreTask *task, CoreGuest *guest)
{
    core_timer_clear(core, &task->timer);
    for (guint32 i = 0; i < task->n_guests; i++)
        if (&task->guests[i] != guest && task->guests[i].phase != BERTH_GUEST_NONE)
            core_step_release_guest(core, &task->guests[i]);
    guest->has_left = TRUE;
    core_step_fence(core, guest);
}

/* The node that it has left still knows of it. */
void core_on_fenced(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    if (core_step_node_of(core, guest)->state == BERTH_NODE_LOST) {
        core_step_free_guest(core, guest);
        return;
    }
    guest->has_left = FALSE;
    core_step_release_guest(core, guest);
    core_step_update_phase(core, task);
}

/* Guests of a gang share the timer: all that are still being fenced are tried again with the first that
 * failed. */
void core_on_fence_failed(BerthCore *core, CoreTask *task, CoreGuest *guest,
                          const CoreTaskInput *input)
{
    if (!core_heap_has(&task->timer.link))
        core_timer_set(core, &task->timer, core_backoff_end(core, 0));
}

void core_on_fence_again(BerthCore *core, CoreTask *task, CoreGuest *guest,
                         const CoreTaskInput *input)
{
    for (guint32 i = 0; i < task->n_guests; i++)
        if (task->guests[i].phase == BERTH_GUEST_FENCING)
            core_emit(core, BERTH_ACTION_FENCE, &task->guests[i], BERTH_REASON_NODE_LOST);
}
