/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the checkpoints of tasks, as far as the core knows them: that one is wanted, or due, or under way, which one
 * a task goes on from, and what all of them take of storage. What a checkpoint is made of, and which of them are
 * kept, the driver knows.
 *
 * What is wanted is in the task's record, and begins when the guest is at rest and one more may be under way at its
 * node. Space is kept for it from the moment it is wanted; when it is done, what was really stored counts instead.
 * A guest that leaves its node for another reason is not saved any more, and the space is free.
 *
 * Invariant: stored_mib is the sum of what the records say, and kept_mib of that in them which is not stored yet. */
#include "scheduler/core/checkpoint.h"

#include "scheduler/core/charge.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/timers.h"

/* --- space ---------------------------------------------------------------------------------- */

static guint64 space_of_mib(const BerthCore *core, guint64 memory_mib)
{
    return memory_mib + memory_mib / 256 +
           (guint64)core->tunings[BERTH_TUNING_CHECKPOINT_MARGIN_MIB];
}

guint64 core_checkpoint_space_mib(const BerthCore *core, const CoreGuest *guest)
{
    return space_of_mib(core, core_guest_resources(guest).memory_mib);
}

/* Of what is kept for it: one that is wanted before it leaves has its own. */
static guint64 kept_to_leave_mib(const CoreGuest *guest, guint64 need_mib)
{
    const BerthCoreTask *record = &guest->task->record;
    guint64 kept_mib = record->freeze_to_disk ? record->checkpoint_space_mib : 0;
    guint64 wanted_mib = record->checkpoint_wanted != BERTH_REASON_NONE ? need_mib : 0;
    return kept_mib - MIN(kept_mib, wanted_mib);
}

/* Were it in slack. */
static guint64 need_in_slack_mib(const BerthCore *core, const CoreGuest *guest)
{
    guint64 need_mib = core_checkpoint_space_mib(core, guest);
    return need_mib - MIN(need_mib, kept_to_leave_mib(guest, need_mib));
}

static gboolean may_have_to_leave(const BerthCore *core, const CoreGuest *guest)
{
    gboolean will_be_there = guest->op == BERTH_OP_MIGRATING && guest->is_opportunistic_there;
    return (guest->is_opportunistic || will_be_there) && guest->phase <= BERTH_GUEST_RUNNING &&
           core_class_can_checkpoint(core, guest->task->job->class);
}

guint64 core_checkpoint_slack_mib(const BerthCore *core, const CoreGuest *guest)
{
    return may_have_to_leave(core, guest) ? need_in_slack_mib(core, guest) : 0;
}

void core_checkpoint_count_slack(BerthCore *core, CoreGuest *guest)
{
    guint64 space_mib = core_checkpoint_slack_mib(core, guest);
    core->space_mib += space_mib - guest->space_mib;
    guest->space_mib = space_mib;
}

static guint64 room_for_checkpoints_mib(const BerthCore *core)
{
    guint64 permille = (guint64)core->tunings[BERTH_TUNING_CHECKPOINT_ROOM_PERMILLE];
    if (core->room_mib == G_MAXUINT64)
        return G_MAXUINT64;
    return core->room_mib / 1000 * permille + core->room_mib % 1000 * permille / 1000;
}

guint64 core_checkpoint_space_left_beside_mib(const BerthCore *core, guint64 own_mib)
{
    guint64 all_mib = (guint64)core->tunings[BERTH_TUNING_CHECKPOINT_SPACE_MIB];
    guint64 slack_mib = core->space_mib - own_mib;
    guint64 given_mib = all_mib - MIN(all_mib, core->stored_mib + slack_mib);
    guint64 room_mib = room_for_checkpoints_mib(core);
    return MIN(given_mib, room_mib - MIN(room_mib, core->kept_mib + slack_mib));
}

guint64 core_checkpoint_space_left_mib(const BerthCore *core)
{
    return core_checkpoint_space_left_beside_mib(core, 0);
}

gboolean core_checkpoint_has_space_to_lodge(const BerthCore *core, const CoreGuest *guest,
                                            guint64 beside_mib)
{
    return guest->space_mib > 0 || !core_class_can_checkpoint(core, guest->task->job->class) ||
           need_in_slack_mib(core, guest) + beside_mib <= core_checkpoint_space_left_mib(core);
}

gboolean core_checkpoint_has_space_in_slack(const BerthCore *core, const CoreClass *class)
{
    return !core_class_can_checkpoint(core, class) ||
           space_of_mib(core, core_class_start_memory_mib(class)) <=
               core_checkpoint_space_left_mib(core);
}

void core_checkpoint_room_changed(BerthCore *core, guint64 room_mib)
{
    gboolean is_more = room_mib > core->room_mib;
    core->room_mib = room_mib;
    if (is_more)
        core->pass_wanted = core->slack_wanted = TRUE;
}

static void set_space(BerthCore *core, CoreTask *task, guint64 space_mib)
{
    if (task->record.checkpoint_space_mib == space_mib)
        return;
    core->stored_mib += space_mib - task->record.checkpoint_space_mib;
    core->kept_mib += space_mib - task->record.checkpoint_space_mib;
    task->record.checkpoint_space_mib = space_mib;
    core_checkpoint_count_slack(core, &task->guests[0]);
    core_emit_changed(core, task);
}

static void set_stored(BerthCore *core, CoreTask *task, guint64 stored_mib)
{
    if (task->record.checkpoints_mib == stored_mib)
        return;
    core->stored_mib += stored_mib - task->record.checkpoints_mib;
    task->record.checkpoints_mib = stored_mib;
    core_emit_changed(core, task);
}

guint64 core_checkpoint_needs_mib(const BerthCore *core, const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    const CoreGuest *guest = &task->guests[0];
    guint64 need_mib = core_checkpoint_space_mib(core, guest);
    if (record->checkpoint_wanted != BERTH_REASON_NONE)
        return 0;
    if (record->checkpoint_space_mib == 0)
        return need_mib;
    /* It is to leave with what is kept, which then is for this one. */
    return may_have_to_leave(core, guest) ? need_mib - guest->space_mib : 0;
}

static void keep_one(BerthCore *core, CoreTask *task)
{
    if (task->record.checkpoint_space_mib == 0)
        set_space(core, task, core_checkpoint_space_mib(core, &task->guests[0]));
}

gboolean core_checkpoint_keep_space(BerthCore *core, CoreTask *task)
{
    if (core_checkpoint_needs_mib(core, task) > core_checkpoint_space_left_mib(core))
        return FALSE;
    keep_one(core, task);
    return TRUE;
}

gboolean core_checkpoint_keep_space_to_leave(BerthCore *core, CoreTask *task)
{
    const CoreGuest *guest = &task->guests[0];
    if (task->record.checkpoint_space_mib == 0 &&
        core_checkpoint_space_mib(core, guest) >
            core_checkpoint_space_left_beside_mib(core, guest->space_mib))
        return FALSE;
    keep_one(core, task);
    return TRUE;
}

static gboolean runs_on_meanwhile(const CoreTask *task)
{
    return task->record.checkpoint_open != 0 && !task->record.checkpoint_stops;
}

guint64 core_checkpoint_needs_to_disk_mib(const BerthCore *core, const CoreTask *task)
{
    if (task->record.freeze_to_disk ||
        (task->record.checkpoint_space_mib > 0 && !runs_on_meanwhile(task)))
        return 0;
    return core_checkpoint_space_mib(core, &task->guests[0]);
}

void core_checkpoint_keep_space_to_disk(BerthCore *core, CoreTask *task)
{
    set_space(core, task,
              task->record.checkpoint_space_mib + core_checkpoint_needs_to_disk_mib(core, task));
}

/* That is kept beside one which another is to follow is for that one. */
static void keep_one_only(BerthCore *core, CoreTask *task)
{
    set_space(
        core, task,
        MIN(task->record.checkpoint_space_mib, core_checkpoint_space_mib(core, &task->guests[0])));
}

void core_checkpoint_free_space(BerthCore *core, CoreTask *task)
{
    if (runs_on_meanwhile(task))
        keep_one_only(core, task);
    else if (task->record.checkpoint_wanted == BERTH_REASON_NONE &&
             task->record.checkpoint_open == 0)
        set_space(core, task, 0);
}

static void set_wanted(BerthCore *core, CoreTask *task, BerthReason reason)
{
    task->record.checkpoint_wanted = reason;
    core_checkpoint_count_slack(core, &task->guests[0]);
}

/* --- what is wanted ------------------------------------------------------------------------- */

void core_checkpoint_want(BerthCore *core, CoreTask *task, BerthReason reason)
{
    set_wanted(core, task, reason);
    core_timer_clear(core, &task->checkpoint_timer);
    core_emit_changed(core, task);
    core_freeze_settle(core, &task->guests[0]);
}

/* It is tried again when another one has ended. */
static void wait(BerthCore *core, CoreGuest *guest)
{
    BerthGuestId id = core_guest_id(guest);
    if (!guest->is_unsaved)
        g_array_append_val(core->unsaved, id);
    guest->is_unsaved = TRUE;
}

/* As long as somebody waits for room there, those who make it come first. */
static gboolean may_begin(const BerthCore *core, const CoreGuest *guest)
{
    const CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    return core_move_is_below_caps(core, node) && node->n_waiting_for_room == 0;
}

/* One of them is who leaves by it. */
static gboolean may_begin_to_disk(const BerthCore *core, const CoreGuest *guest)
{
    return core_move_has_turn_at(core, core_nodes_get(&core->nodes, guest->node));
}

/* What stands still has not changed since it did; one that is due waits until it goes on. */
void core_checkpoint_settle(BerthCore *core, CoreGuest *guest)
{
    BerthReason reason = guest->task->record.checkpoint_wanted;
    if (reason == BERTH_REASON_NONE || !core_move_may_checkpoint(core, guest) ||
        (reason == BERTH_REASON_CHECKPOINT_DUE && guest->is_frozen))
        return;
    if (may_begin(core, guest))
        core_move_checkpoint(core, guest, FALSE, reason);
    else
        wait(core, guest);
}

gboolean core_checkpoint_to_disk(BerthCore *core, CoreGuest *guest)
{
    if (!core_move_may_checkpoint(core, guest))
        return FALSE;
    if (!core_checkpoint_keep_space_to_leave(core, guest->task)) {
        guest->task->record.checkpoint_missed_usec = core->now_usec;
        return FALSE;
    }
    if (may_begin_to_disk(core, guest))
        core_move_checkpoint(core, guest, TRUE, guest->task->record.freeze_reason);
    else
        wait(core, guest);
    return TRUE;
}

void core_checkpoint_begin_some(BerthCore *core)
{
    if (!core->may_save || core->unsaved->len == 0) {
        core->may_save = FALSE;
        return;
    }
    core->may_save = FALSE;
    g_autoptr(GArray) ids = core->unsaved;
    core->unsaved = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    guint i = 0;
    for (; i < ids->len && core_move_is_any_left(core); i++) {
        CoreGuest *guest = core_guest_get(core, &g_array_index(ids, BerthGuestId, i));
        if (guest == NULL || !guest->is_unsaved)
            continue;
        guest->is_unsaved = FALSE;
        core_freeze_settle(core, guest);
    }
    /* Where the cluster has no turn left the others are not looked at: all checkpoints of a large array are due at once. */
    if (i < ids->len)
        g_array_append_vals(core->unsaved, &g_array_index(ids, BerthGuestId, i), ids->len - i);
}

/* --- every so often ------------------------------------------------------------------------- */

void core_checkpoint_arm(BerthCore *core, CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    gint64 every_usec = task->job->checkpoint_every_usec;
    core_timer_clear(core, &task->checkpoint_timer);
    if (every_usec == 0 || record->phase != BERTH_GUEST_RUNNING ||
        record->checkpoint_wanted != BERTH_REASON_NONE || record->checkpoint_open != 0 ||
        record->stop_reason != BERTH_REASON_NONE ||
        !core_move_could_checkpoint(core, &task->guests[0]))
        return;
    gint64 from_usec = MAX(record->checkpoint_usec, record->checkpoint_missed_usec);
    core_timer_set(core, &task->checkpoint_timer,
                   core_time_add(MAX(from_usec, record->start_usec), every_usec));
}

/* Where there is no space, the next one is tried in its turn; that this one was missed is told. */
void core_checkpoint_due(BerthCore *core, CoreTask *task)
{
    if (core_checkpoint_keep_space(core, task)) {
        core_checkpoint_want(core, task, BERTH_REASON_CHECKPOINT_DUE);
        return;
    }
    task->record.checkpoint_missed_usec = core->now_usec;
    core_emit_changed(core, task);
    core_checkpoint_arm(core, task);
}

void core_checkpoint_due_no_more(BerthCore *core, CoreTask *task)
{
    BerthCoreTask *record = &task->record;
    if (record->checkpoint_wanted != BERTH_REASON_CHECKPOINT_DUE || record->checkpoint_open != 0)
        return;
    set_wanted(core, task, BERTH_REASON_NONE);
    if (!record->freeze_to_disk) /* which was promised the same space, and has not had its turn */
        core_checkpoint_free_space(core, task);
    core_emit_changed(core, task);
}

/* --- one of them ---------------------------------------------------------------------------- */

void core_checkpoint_open(BerthCore *core, CoreTask *task, gboolean stops, BerthReason reason)
{
    BerthCoreTask *record = &task->record;
    record->checkpoint_open = ++record->checkpoint_last;
    record->checkpoint_stops = stops;
    record->checkpoint_reason = reason;
    record->checkpoint_usec = core->now_usec;
    core_charge_saves(task);
    core_timer_clear(core, &task->checkpoint_timer); /* it is being saved, whatever for */
}

/* Since it was asked for, where nobody says for how long. */
static gint64 still_since_usec(const BerthCore *core, const CoreTask *task, gint64 still_usec)
{
    gint64 began_usec = MIN(task->record.checkpoint_usec, core->now_usec);
    return still_usec > 0 ? MAX(core->now_usec - still_usec, began_usec) : began_usec;
}

/* Who stands still for it does not use up time; who runs on, or did until then, uses what he was not kept from. */
static gint64 ran_usec(BerthCore *core, CoreTask *task, gint64 still_usec)
{
    CoreGuest *guest = &task->guests[0];
    if (task->record.checkpoint_stops)
        return core_charge_used_usec(task, still_since_usec(core, task, still_usec));
    if (!guest->is_frozen && still_usec > 0)
        core_charge_pause(core, guest, still_since_usec(core, task, still_usec));
    return core_charge_used_usec(task, core->now_usec);
}

static void go_on_from(BerthCore *core, CoreTask *task, const BerthCoreCheckpoint *checkpoint)
{
    BerthCoreTask *record = &task->record;
    record->checkpoint = checkpoint->serial;
    record->checkpoint_epoch = checkpoint->epoch;
    record->checkpoint_ran_usec = checkpoint->ran_usec;
    record->checkpoint_resources = checkpoint->resources;
    record->checkpoint_requeues = record->requeues;
    if (record->phase == BERTH_GUEST_NONE || record->phase >= BERTH_GUEST_RELEASING)
        record->ran_usec = checkpoint->ran_usec;
    core_emit_changed(core, task);
}

/* TO_DISK: another one follows. */
static void end(BerthCore *core, CoreTask *task, gboolean to_disk)
{
    BerthCoreTask *record = &task->record;
    if (!record->checkpoint_stops)
        set_wanted(core, task, BERTH_REASON_NONE);
    record->checkpoint_open = 0;
    record->checkpoint_stops = FALSE;
    record->checkpoint_reason = BERTH_REASON_NONE;
    core_charge_saves(task);
    if (to_disk)
        keep_one_only(core, task);
    else
        core_checkpoint_free_space(core, task);
}

void core_checkpoint_close(BerthCore *core, CoreTask *task, const CoreTaskInput *input)
{
    const BerthCoreTask *record = &task->record;
    gboolean to_disk = runs_on_meanwhile(task) && record->freeze_to_disk;
    if (input->ok) {
        BerthCoreCheckpoint done = {record->checkpoint_open, record->epoch,
                                    ran_usec(core, task, input->paused_usec),
                                    core_guest_resources(&task->guests[0])};
        go_on_from(core, task, &done);
        set_stored(core, task, input->stored_mib);
    } else { /* nobody says for how much of that time it stood still: for all of it */
        core_charge_failed_save(core, &task->guests[0],
                                still_since_usec(core, task, input->paused_usec));
    }
    end(core, task, to_disk);
}

void core_checkpoint_drop(BerthCore *core, CoreTask *task)
{
    task->guests[0].is_unsaved = FALSE;
    core_timer_clear(core, &task->checkpoint_timer);
    if (task->record.checkpoint_open != 0 || task->record.checkpoint_wanted != BERTH_REASON_NONE)
        core_emit_changed(core, task);
    task->record.checkpoint_stops = FALSE;
    end(core, task, FALSE);
}

void core_checkpoint_doubt(BerthCore *core, CoreTask *task)
{
    BerthCoreTask *record = &task->record;
    if (record->checkpoint_open == 0)
        return;
    record->checkpoint_doubted = record->checkpoint_open;
    record->checkpoint_doubted_ran_usec = core_charge_used_usec(task, record->checkpoint_usec);
    core_emit_changed(core, task);
}

void core_checkpoint_doubt_no_more(BerthCore *core, CoreTask *task)
{
    BerthCoreTask *record = &task->record;
    if (record->checkpoint_doubted == 0)
        return;
    record->checkpoint_doubted = 0;
    record->checkpoint_doubted_ran_usec = 0;
    core_emit_changed(core, task);
}

void core_checkpoint_restored(BerthCore *core, CoreTask *task)
{
    core->stored_mib += task->record.checkpoints_mib + task->record.checkpoint_space_mib;
    core->kept_mib += task->record.checkpoint_space_mib;
}

void core_checkpoint_forget(BerthCore *core, CoreTask *task)
{
    core->stored_mib -= task->record.checkpoints_mib + task->record.checkpoint_space_mib;
    core->kept_mib -= task->record.checkpoint_space_mib;
    task->record.checkpoints_mib = task->record.checkpoint_space_mib = 0;
}

void core_checkpoints_changed(BerthCore *core, const BerthGuestId *id,
                              const BerthCoreCheckpoint *newest, guint64 stored_mib)
{
    const CoreJob *job = core_job_get(core, id->job);
    CoreTask *task = job != NULL ? core_job_task(job, id->task) : NULL;
    if (task == NULL || berth_job_state_is_final(task->record.state))
        return;
    set_stored(core, task, stored_mib);
    if (newest->serial == task->record.checkpoint_doubted)
        core_checkpoint_doubt_no_more(core, task);
    if (newest->serial == task->record.checkpoint)
        return;
    go_on_from(core, task, newest);
    core_order_update(core, task->job); /* one that waits may take another size now */
}
