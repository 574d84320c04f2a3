/* SPDX-License-Identifier: Apache-2.0 */
/* Owns who is to stand still, and why. What is wanted is in the task's record, and therefore in the
 * store; what is so is in the guest. Whenever a guest is at rest the two are compared, so that a wish
 * outlives what was under way when it came, a berthd that is restarted and a node that was away. So does
 * that the answer to FREEZE or THAW is open: what is so is not known until it is asked for again.
 *
 * A frozen guest keeps its memory and its place. Its time limit runs on, for it keeps others from
 * both, unless an operator wanted it to stand still: that is none of its user's doing. */
#include "scheduler/core/freeze.h"

#include "scheduler/core/charge.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/moves.h"

gboolean core_freeze_is_charged(BerthReason reason)
{
    return reason != BERTH_REASON_FROZEN_BY_OPERATOR;
}

void core_freeze_settle(BerthCore *core, CoreGuest *guest)
{
    gboolean is_wanted = guest->task->record.freeze_reason != BERTH_REASON_NONE;
    if (core_move_is_at_rest(guest) && is_wanted != guest->is_frozen)
        core_move_freeze(core, guest, is_wanted);
}

/* Who keeps it still has changed, and with that who pays for it. */
static void change_hands(BerthCore *core, CoreGuest *guest, BerthReason reason)
{
    BerthCoreTask *record = &guest->task->record;
    BerthReason before = record->reason;
    if (!guest->is_frozen)
        return;
    record->reason = reason;
    if (core_freeze_is_charged(before) == core_freeze_is_charged(reason))
        return;
    core_charge_thawed(core, guest, core_freeze_is_charged(before));
    core_charge_frozen(core, guest);
}

void core_freeze_want(BerthCore *core, CoreGuest *guest, BerthReason reason)
{
    BerthCoreTask *record = &guest->task->record;
    if (record->freeze_reason == reason)
        return;
    record->freeze_reason = reason;
    core_emit_changed(core, guest->task);
    if (reason != BERTH_REASON_NONE)
        change_hands(core, guest, reason);
    core_freeze_settle(core, guest);
}

static void set_frozen(BerthCore *core, CoreGuest *guest, gboolean is_frozen)
{
    BerthCoreTask *record = &guest->task->record;
    BerthReason was_for = record->reason;
    guest->is_frozen = is_frozen;
    record->state = is_frozen ? BERTH_JOB_SUSPENDED : BERTH_JOB_RUNNING;
    record->reason = record->freeze_reason;
    if (is_frozen)
        core_charge_frozen(core, guest);
    else
        core_charge_thawed(core, guest, core_freeze_is_charged(was_for));
    core_emit_changed(core, guest->task);
}

void core_freeze_done(BerthCore *core, CoreGuest *guest, gboolean is_frozen, gboolean ok)
{
    if (ok) {
        set_frozen(core, guest, is_frozen);
        core_freeze_settle(core, guest);
    } else if (is_frozen) {
        guest->task->record.freeze_reason = BERTH_REASON_NONE;
    }
}

gboolean core_freeze_is_open(const CoreGuest *guest)
{
    return guest->phase == BERTH_GUEST_RUNNING &&
           (guest->op == BERTH_OP_FREEZING || guest->op == BERTH_OP_THAWING);
}

void core_freeze_reopen(CoreGuest *guest)
{
    guest->op = guest->is_frozen ? BERTH_OP_THAWING : BERTH_OP_FREEZING;
    guest->op_reason = guest->task->record.freeze_reason;
}

void core_freeze_end(BerthCore *core, CoreGuest *guest)
{
    guest->task->record.freeze_reason = BERTH_REASON_NONE;
    if (guest->is_frozen)
        set_frozen(core, guest, FALSE);
}
