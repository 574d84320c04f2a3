/* SPDX-License-Identifier: Apache-2.0 */
/* Owns who is to stand still, and why. What is wanted is in the task's record, and therefore in the
 * store; what is so is in the guest. Whenever a guest is at rest the two are compared, so that a wish
 * outlives what was under way when it came, a berthd that is restarted and a node that was away. So does
 * that the answer to FREEZE or THAW is open: what is so is not known until it is asked for again.
 *
 * Who is to stand still without a guest is checkpointed first, and stands still when that is done (checkpoint.h).
 *
 * A frozen guest keeps its memory and its place. Its time limit runs on, for it keeps others from
 * both, unless an operator wanted it to stand still: that is none of its user's doing. */
#include "scheduler/core/freeze.h"

#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/moves.h"

gboolean core_freeze_is_charged(BerthReason reason)
{
    return reason != BERTH_REASON_FROZEN_BY_OPERATOR;
}

/* So that it may go on, if it stands still at its limit. */
static gboolean is_given_more_by(BerthReason reason)
{
    return reason == BERTH_REASON_RESIZED_BY_USER || reason == BERTH_REASON_RESIZED_BY_OPERATOR ||
           reason == BERTH_REASON_AT_LIMIT;
}

static void set_to_disk(BerthCore *core, CoreGuest *guest, gboolean to_disk)
{
    guest->task->record.freeze_to_disk = to_disk;
    core_checkpoint_count_slack(core, guest);
}

void core_freeze_settle(BerthCore *core, CoreGuest *guest)
{
    BerthCoreTask *record = &guest->task->record;
    gboolean is_wanted = record->freeze_reason != BERTH_REASON_NONE;
    gboolean may_stand = guest->is_frozen && !is_given_more_by(guest->op_reason);
    if (is_wanted && (!may_stand || record->freeze_to_disk) && core_move_is_free(guest))
        core_move_let_go(core, guest);
    if (!core_move_is_at_rest(guest))
        return;
    if (is_wanted && record->freeze_to_disk) {
        set_to_disk(core, guest, core_checkpoint_to_disk(core, guest));
        if (record->freeze_to_disk)
            return;
        core_emit_changed(core, guest->task); /* without space it stands still where it is */
    }
    if (is_wanted != guest->is_frozen || (is_wanted && guest->may_run))
        core_move_freeze(core, guest, is_wanted);
    else
        core_checkpoint_settle(core, guest);
}

/* Who keeps it still has changed, and with that who pays for it: without a guest nobody does. */
static void change_hands(BerthCore *core, CoreGuest *guest, BerthReason reason)
{
    BerthCoreTask *record = &guest->task->record;
    BerthReason before = record->reason;
    if (record->state == BERTH_JOB_SUSPENDED && record->phase != BERTH_GUEST_RUNNING)
        record->reason = reason;
    if (!guest->is_frozen || record->phase != BERTH_GUEST_RUNNING)
        return;
    record->reason = reason;
    if (core_freeze_is_charged(before) == core_freeze_is_charged(reason))
        return;
    core_charge_thawed(core, guest, core_freeze_is_charged(before));
    core_charge_frozen(core, guest);
}

static void not_to_disk(BerthCore *core, CoreGuest *guest)
{
    set_to_disk(core, guest, FALSE);
    core_checkpoint_free_space(core, guest->task);
}

void core_freeze_want(BerthCore *core, CoreGuest *guest, BerthReason reason)
{
    BerthCoreTask *record = &guest->task->record;
    if (record->freeze_reason == reason)
        return;
    record->freeze_reason = reason;
    core_emit_changed(core, guest->task);
    if (reason == BERTH_REASON_NONE)
        not_to_disk(core, guest);
    if (reason != BERTH_REASON_NONE)
        change_hands(core, guest, reason);
    core_freeze_settle(core, guest);
}

void core_freeze_want_to_disk(BerthCore *core, CoreGuest *guest)
{
    BerthCoreTask *record = &guest->task->record;
    if (record->freeze_to_disk)
        return;
    set_to_disk(core, guest, TRUE);
    core_emit_changed(core, guest->task);
    core_freeze_settle(core, guest);
}

void core_freeze_at_time_limit(BerthCore *core, CoreGuest *guest)
{
    BerthCoreTask *record = &guest->task->record;
    record->freeze_reason = BERTH_REASON_TIME_LIMIT;
    set_to_disk(core, guest, TRUE);
    change_hands(core, guest, BERTH_REASON_TIME_LIMIT);
    core_move_checkpoint(core, guest, TRUE, BERTH_REASON_TIME_LIMIT);
}

void core_freeze_goes_on(CoreGuest *guest)
{
    if (guest->task->record.freeze_reason == BERTH_REASON_AT_LIMIT)
        guest->task->record.freeze_reason = BERTH_REASON_NONE;
}

void core_freeze_went_on(CoreGuest *guest)
{
    guest->may_run |= guest->is_frozen && guest->goal.memory_mib > guest->old_size.memory_mib;
}

void core_freeze_stays(const BerthCore *core, CoreGuest *guest, BerthReason reason)
{
    BerthCoreTask *record = &guest->task->record;
    if (is_given_more_by(reason) && core->now_usec >= guest->limit_rest_usec &&
        guest->op == BERTH_OP_NONE && guest->is_frozen && record->reason == BERTH_REASON_AT_LIMIT &&
        record->freeze_reason == BERTH_REASON_NONE)
        record->freeze_reason = BERTH_REASON_AT_LIMIT;
}

gboolean core_freeze_is_at_time_limit(const CoreTask *task)
{
    return task->record.freeze_reason == BERTH_REASON_TIME_LIMIT;
}

void core_freeze_to_disk_failed(BerthCore *core, CoreGuest *guest)
{
    BerthCoreTask *record = &guest->task->record;
    not_to_disk(core, guest);
    if (!guest->is_frozen)
        record->freeze_reason = BERTH_REASON_NONE;
    core_emit_changed(core, guest->task);
}

static void set_frozen(BerthCore *core, CoreGuest *guest, gboolean is_frozen)
{
    BerthCoreTask *record = &guest->task->record;
    BerthReason was_for = record->reason;
    /* Asked to stand still once more, it has done so until now. */
    if (guest->is_frozen && is_frozen)
        core_charge_thawed(core, guest, core_freeze_is_charged(was_for));
    guest->is_frozen = is_frozen;
    record->short_usec = 0;
    record->state = is_frozen ? BERTH_JOB_SUSPENDED : BERTH_JOB_RUNNING;
    record->reason = record->freeze_reason;
    if (is_frozen)
        core_charge_frozen(core, guest);
    else
        core_charge_thawed(core, guest, core_freeze_is_charged(was_for));
    core_emit_changed(core, guest->task);
}

/* One that went on with RESIZE, and cannot be frozen, is to be known to run: it is asked to. */
void core_freeze_done(BerthCore *core, CoreGuest *guest, gboolean is_frozen, gboolean ok)
{
    gboolean may_run = guest->may_run;
    guest->may_run = FALSE;
    if (!ok && is_frozen) {
        guest->task->record.freeze_reason = BERTH_REASON_NONE;
        not_to_disk(core, guest);
    }
    if (ok)
        set_frozen(core, guest, is_frozen);
    if (ok || may_run)
        core_freeze_settle(core, guest);
}

gboolean core_freeze_is_open(const CoreGuest *guest)
{
    return guest->phase == BERTH_GUEST_RUNNING &&
           (guest->op == BERTH_OP_FREEZING || guest->op == BERTH_OP_THAWING);
}

void core_freeze_reopen(CoreGuest *guest)
{
    guest->may_run = guest->is_frozen && guest->task->record.freeze_reason != BERTH_REASON_NONE;
    guest->op = guest->is_frozen && !guest->may_run ? BERTH_OP_THAWING : BERTH_OP_FREEZING;
    guest->op_reason = guest->task->record.freeze_reason;
}

void core_freeze_end(BerthCore *core, CoreGuest *guest)
{
    guest->task->record.freeze_reason = BERTH_REASON_NONE;
    not_to_disk(core, guest);
    guest->may_run = FALSE;
    if (guest->is_frozen)
        set_frozen(core, guest, FALSE);
}
