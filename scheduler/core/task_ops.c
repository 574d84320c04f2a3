/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the results of migrations, checkpoints and the like mean for a task. */
#include "scheduler/core/task_steps.h"

#include "scheduler/core/balloon.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/exchange.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/outcome.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/timers.h"

static gboolean answers(const CoreGuest *guest, BerthGuestOp op, const CoreTaskInput *input)
{
    return guest->op == op && guest->waits_for_room == input->has_not_left &&
           (input->serial == 0 || input->serial == guest->op_serial);
}

void core_on_migrated(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    if (!answers(guest, BERTH_OP_MIGRATING, input))
        return;
    CoreNode *from = core_step_node_of(core, guest);
    BerthReason reason = guest->op_reason;
    guint32 serial = guest->op_serial;
    core_move_migrated(core, guest, input->ok);
    core_freeze_stays(core, guest, reason);
    core_relief_room_changed(core, from);
    if (core_step_node_of(core, guest)->state == BERTH_NODE_LOST)
        core_guest_handle(core, guest, CORE_TASK_NODE_LOST, NULL);
    else if (input->ok && guest->phase == BERTH_GUEST_STOPPING)
        core_emit(core, BERTH_ACTION_STOP, guest, task->record.stop_reason);
    else
        core_balloon_settled(core, guest);
    core_task_stop_if_up(core, task); /* it has left the node that it waited for */
    core_freeze_settle(core, guest);
    core_exchange_moved(core, guest, serial);
}

/* It runs on. */
static void go_on(BerthCore *core, CoreTask *task, CoreGuest *guest)
{
    core_task_arm(core, task);
    core_checkpoint_arm(core, task);
    core_relief_room_changed(core, core_step_node_of(core, guest));
    core_freeze_settle(core, guest);
}

/* REASON: of the checkpoint. Whose time limit was extended meanwhile goes on. */
static BerthReason pending_reason(const CoreTask *task, BerthReason reason)
{
    switch (reason) {
    case BERTH_REASON_DRAIN:
    case BERTH_REASON_STARVED:
        return reason;
    case BERTH_REASON_TIME_LIMIT:
        return core_freeze_is_at_time_limit(task) ? reason : BERTH_REASON_RESTORING;
    case BERTH_REASON_FROZEN_BY_USER:
    case BERTH_REASON_FROZEN_BY_OPERATOR:
        return BERTH_REASON_RESTORING;
    default:
        return BERTH_REASON_EVICTED;
    }
}

/* Where it stands still: over if it was to be stopped; else it waits to go on, or until somebody lets it. */
void core_on_checkpointed(BerthCore *core, CoreTask *task, CoreGuest *guest,
                          const CoreTaskInput *input)
{
    BerthCoreTask *record = &task->record;
    BerthReason reason = guest->op_reason;
    gboolean stops = record->checkpoint_stops;
    gboolean is_at_limit = reason == BERTH_REASON_TIME_LIMIT && core_freeze_is_at_time_limit(task);
    gboolean to_disk = is_at_limit || reason == BERTH_REASON_FROZEN_BY_USER ||
                       reason == BERTH_REASON_FROZEN_BY_OPERATOR;
    if (!answers(guest, BERTH_OP_CHECKPOINTING, input))
        return;
    core_move_op_done(core, guest);
    core_checkpoint_close(core, task, input);
    if (!input->ok && to_disk)
        core_freeze_to_disk_failed(core, guest);
    if (!input->ok && reason == BERTH_REASON_DRAIN)
        core_move_rest(core, guest);
    if (reason == BERTH_REASON_ROOM_NEEDED || reason == BERTH_REASON_PRESSURE ||
        reason == BERTH_REASON_SLACK_FULL || reason == BERTH_REASON_STARVED)
        core_move_saved_for_room(core, guest, input->ok);
    if (reason == BERTH_REASON_STARVED)
        record->wants_backing = input->ok;
    if (record->stop_reason != BERTH_REASON_NONE) {
        if (input->ok && stops)
            core_step_end_by_stop(core, task, 0);
    } else if (!input->ok && is_at_limit) {
        core_task_stop(core, task, reason);
    } else if (!input->ok || !stops) {
        go_on(core, task, guest);
    } else {
        core_step_set_pending(core, task, pending_reason(task, reason));
        core_step_release(core, task);
    }
}

void core_on_resized(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    if (!answers(guest, BERTH_OP_RESIZING, input))
        return;
    gboolean was_balloon = guest->to_balloon_mib != guest->balloon_mib;
    gboolean gives_back = !core_size_fits(guest->size, guest->goal);
    if (!input->has_not_left)
        core_freeze_went_on(guest);
    core_move_resized(core, guest, input->ok, &input->has);
    if (input->has_not_left) /* one that was asked for it has gone on */
        core_freeze_stays(core, guest, guest->op_reason);
    if (was_balloon || gives_back) /* meanwhile it could not leave, or held the room */
        core_relief_room_changed(core, core_step_node_of(core, guest));
    if (was_balloon && input->ok)
        core_balloon_settled(core, guest);
    core_freeze_settle(core, guest);
    if (input->ok) /* it was backed for that */
        core_limit_grow_again(core, guest);
}

void core_on_frozen(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    if (!answers(guest, BERTH_OP_FREEZING, input))
        return;
    core_move_op_done(core, guest);
    core_freeze_done(core, guest, TRUE, input->ok);
}

void core_on_thawed(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    if (!answers(guest, BERTH_OP_THAWING, input))
        return;
    core_move_op_done(core, guest);
    core_freeze_done(core, guest, FALSE, input->ok);
}

/* Whoever is sent there next would have to go, too, as long as others come who are backed: a boot each time,
 * for nothing. So nobody is, for a while. */
void core_on_evict_starting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input)
{
    core_step_node_of(core, &task->guests[0])->slack_rest_usec =
        core_time_add(core->now_usec, core->tunings[BERTH_TUNING_COOLDOWN_USEC]);
    core_step_set_pending(core, task, BERTH_REASON_EVICTED);
    core_step_release(core, task);
}

static gboolean may_have_begun(const CoreTask *task)
{
    gboolean heard = FALSE;
    for (guint32 i = 0; i < task->n_guests; i++)
        heard |= task->guests[i].heard;
    return heard || task->record.start_taken;
}

/* It waits in its place of the order, and another node is taken first. A gang whose other guests have begun
 * what may not begin again waits on for this one; a stop that waits for one of its nodes decides how it ends. */
void core_on_no_room(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input)
{
    if (task->record.stop_reason != BERTH_REASON_NONE ||
        (task->job->no_requeue && may_have_begun(task)))
        return;
    core_step_set_pending(core, task, BERTH_REASON_STARTING_LATER);
    task->record.node = guest->node; /* to be avoided */
    core_step_release(core, task);
}
