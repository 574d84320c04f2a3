/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a task is charged of its time limit: the time for which its command ran, less what it
 * lost because its node gave it less than it wanted. A job asks for so much time on vCPUs of its
 * own; who sits in the slack of others gets what these leave, and must not come to its limit earlier
 * in its work for that. Waiting, booting and being checkpointed are not charged either.
 *
 * What a guest lost is known up to its latest report. After that it is expected to go on as before, to
 * say when its limit comes; what is expected is nowhere booked, so that the next report replaces it.
 *
 * A gang goes at the pace of its slowest guest: loss.c tells what it lost of what its guests did. */
#include "scheduler/core/charge.h"

#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/loss.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

/* The driver is told of a loss when a minute is full: it stores what it is told. Plans are as coarse:
 * each change makes its nodes' anew. */
#define STEP_USEC (60 * (gint64)G_USEC_PER_SEC)

/* Nobody is expected to lose more: a guest that is not heard of any more comes to its limit. */
#define EXPECTED_MAX_PERMILLE 990u

void core_charge_clear(CoreTask *task)
{
    g_clear_pointer(&task->loss, core_loss_free);
    core_charge_saves(task);
}

void core_charge_saves(CoreTask *task)
{
    g_clear_pointer(&task->saving_loss, core_loss_free);
}

void core_charge_begin(BerthCore *core, CoreTask *task)
{
    core_charge_clear(task);
    task->record.starved_usec = 0;
    for (guint32 i = 0; i < task->n_guests; i++) {
        CoreGuest *guest = &task->guests[i];
        guest->still_usec = guest->owed_usec = guest->owed_ran_usec = 0;
        guest->starved_permille = 0;
        guest->starved_usec = 0;
        guest->charged_usec = guest->told_usec = core->now_usec;
        guest->is_charged_late = FALSE;
    }
}

/* When a guest reported last is not known: at most it lost all the rest of its time since then. Its limit
 * waits for what it says. Nor is when a gang lost that much: as if all of it came first. */
void core_charge_restored(CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    for (guint32 i = 0; i < task->n_guests; i++) {
        CoreGuest *guest = &task->guests[i];
        guest->charged_usec = core_time_add(record->start_usec, record->starved_usec);
        guest->told_usec = guest->charged_usec;
        guest->is_charged_late = TRUE;
    }
}

/* It stands still, and that is not charged. */
static gboolean stands_free(const CoreTask *task)
{
    return task->record.frozen_usec > 0 && !core_freeze_is_charged(task->record.reason);
}

/* --- what is expected ----------------------------------------------------------------------- */

/* Who is frozen is mostly charged (freeze.c says who). */
static gint64 frozen_since_usec(const CoreGuest *guest)
{
    return guest->is_frozen ? guest->task->record.frozen_usec : G_MAXINT64;
}

/* For a checkpoint nobody is charged: core_charge_pause(). Since when it stands still for that is not known meanwhile. */
static gint64 stands_since_usec(const CoreGuest *guest)
{
    if (!guest->is_frozen && guest->op == BERTH_OP_CHECKPOINTING)
        return guest->op_usec;
    return frozen_since_usec(guest);
}

/* How long it ran until UNTIL_USEC, of the time after its latest report. */
static gint64 ran_until_usec(const CoreGuest *guest, gint64 until_usec)
{
    return MAX(until_usec - guest->charged_usec - guest->still_usec, 0);
}

static gint64 ran_since_report_usec(const CoreGuest *guest, gint64 at_usec)
{
    return ran_until_usec(guest, MIN(at_usec, stands_since_usec(guest)));
}

static gint64 expected_permille(const CoreGuest *guest)
{
    return MIN(guest->starved_permille, EXPECTED_MAX_PERMILLE);
}

static gint64 expected_lost_usec(const CoreGuest *guest, gint64 at_usec)
{
    return guest->owed_usec +
           ran_since_report_usec(guest, at_usec) * expected_permille(guest) / 1000;
}

void core_charge_feed(CoreGuest *guest, gint64 at_usec)
{
    guest->owed_usec = expected_lost_usec(guest, at_usec);
    guest->owed_ran_usec = ran_since_report_usec(guest, at_usec);
    guest->starved_permille = 0;
    guest->starved_usec = 0;
}

/* What its task had lost when GUEST's losses were last told. */
static gint64 lost_until_told_usec(const CoreGuest *guest)
{
    const CoreTask *task = guest->task;
    return task->loss != NULL ? core_loss_at_usec(task->loss, guest->told_usec)
                              : task->record.starved_usec;
}

/* When TASK would be at its limit if all that was lost is known. */
static gint64 known_end_usec(const BerthCore *core, const CoreTask *task)
{
    return core_time_add(task->record.start_usec, core_task_time_left_usec(core, task));
}

/* When TASK would be at its limit if only GUEST lost anything since that was last told. */
static gint64 end_of_usec(const BerthCore *core, const CoreGuest *guest)
{
    gint64 others_usec = guest->task->record.starved_usec - lost_until_told_usec(guest);
    gint64 end_usec = known_end_usec(core, guest->task) - others_usec;
    gint64 from_usec = guest->charged_usec + guest->still_usec;
    gint64 left_usec = end_usec - from_usec;
    if (left_usec <= 0 || left_usec > G_MAXINT64 / 1000 - 1)
        return end_usec;
    if (stands_since_usec(guest) != G_MAXINT64)
        return core_time_add(end_usec, expected_lost_usec(guest, G_MAXINT64));
    gint64 gets_permille = 1000 - expected_permille(guest);
    return core_time_add(from_usec + guest->owed_usec,
                         (left_usec * 1000 + gets_permille - 1) / gets_permille);
}

/* Until then a guest that was put back is waited for: its node has as long to come back as any node,
 * and as long again for its first report. */
static gint64 waited_for_until_usec(const BerthCore *core)
{
    return core_time_add(core->resumed_usec, 2 * core->config.node_timeout_usec);
}

gint64 core_charge_known_end_usec(const BerthCore *core, const CoreTask *task)
{
    return stands_free(task) ? G_MAXINT64 : known_end_usec(core, task);
}

gint64 core_charge_end_usec(const BerthCore *core, const CoreTask *task)
{
    gint64 end_usec = 0;
    if (stands_free(task))
        return G_MAXINT64;
    for (guint32 i = 0; i < task->n_guests; i++) {
        const CoreGuest *guest = &task->guests[i];
        end_usec = MAX(end_usec, end_of_usec(core, guest));
        if (guest->is_charged_late)
            end_usec = MAX(end_usec, waited_for_until_usec(core));
    }
    return end_usec;
}

void core_charge_plan(BerthCore *core, CoreTask *task)
{
    gint64 end_usec = core_charge_end_usec(core, task);
    gint64 known_usec = known_end_usec(core, task);
    gint64 wanted_usec = known_usec > core->now_usec ? known_usec : end_usec;
    gboolean is_over = task->planned_end_usec <= core->now_usec && wanted_usec > core->now_usec;
    if (ABS(wanted_usec - task->planned_end_usec) >= STEP_USEC || is_over) {
        task->planned_end_usec = wanted_usec;
        for (guint32 i = 0; i < task->n_guests; i++)
            if (!task->guests[i].is_opportunistic)
                core_nodes_changed(&core->nodes,
                                   core_nodes_get(&core->nodes, task->guests[i].node));
    }
    if (core_heap_has(&task->timer.link) && task->timer.due_usec > end_usec)
        core_task_arm(core, task);
}

/* --- what is known -------------------------------------------------------------------------- */

/* What a task has lost when one of its guests lost LOST_USEC of the time from FROM_USEC to UNTIL_USEC. */
static gint64 sum_usec(CoreTask *task, gint64 from_usec, gint64 until_usec, gint64 lost_usec)
{
    const BerthCoreTask *record = &task->record;
    if (task->n_guests == 1)
        return record->starved_usec + lost_usec;
    if (task->loss == NULL && lost_usec == 0)
        return record->starved_usec;
    if (task->loss == NULL)
        task->loss = core_loss_new(core_time_add(record->start_usec, record->starved_usec),
                                   record->starved_usec);
    core_loss_add(task->loss, from_usec, until_usec, lost_usec);
    return core_loss_sum_usec(task->loss);
}

static void add(BerthCore *core, CoreGuest *guest, gint64 from_usec, gint64 until_usec,
                gint64 lost_usec)
{
    CoreTask *task = guest->task;
    gint64 before_usec = task->record.starved_usec;
    task->record.starved_usec = sum_usec(task, from_usec, until_usec, lost_usec);
    guest->told_usec = until_usec;
    if (task->record.starved_usec / STEP_USEC > before_usec / STEP_USEC)
        core_emit_changed(core, task);
    core_charge_plan(core, task);
}

static gint64 permille(gint64 lost_usec, gint64 ran_usec)
{
    return CLAMP(lost_usec, 0, ran_usec) * 1000 / ran_usec;
}

/* Of how it fares where it is now, what it lost before it came there says nothing. But that is only thought, and the
 * whole error of it would be in what may have been seconds: it is never taken for more than of all the time. */
static void note_pace(CoreGuest *guest, gint64 ran_usec, gint64 lost_usec)
{
    gint64 ran_here_usec = ran_usec - guest->owed_ran_usec;
    if (ran_here_usec <= 0)
        return;
    guest->starved_permille = (guint32)MIN(permille(lost_usec - guest->owed_usec, ran_here_usec),
                                           permille(lost_usec, ran_usec));
}

/* What is saved is one guest. */
static void note_saving(CoreGuest *guest, gint64 until_usec, gint64 lost_usec)
{
    CoreTask *task = guest->task;
    if (task->saving_loss == NULL && lost_usec > 0)
        task->saving_loss = core_loss_new(guest->told_usec, 0);
    if (task->saving_loss != NULL)
        core_loss_add(task->saving_loss, guest->told_usec, until_usec, lost_usec);
}

/* Told to be lost after AT_USEC. */
static gint64 lost_since_usec(const CoreTask *task, gint64 at_usec)
{
    return task->saving_loss == NULL ? 0
                                     : core_loss_sum_usec(task->saving_loss) -
                                           core_loss_at_usec(task->saving_loss, at_usec);
}

void core_charge_report(BerthCore *core, CoreGuest *guest, gint64 lost_usec)
{
    gint64 ran_until = MIN(core->now_usec, frozen_since_usec(guest));
    gint64 ran_usec = ran_until_usec(guest, ran_until);
    lost_usec = CLAMP(lost_usec, 0, ran_usec);
    gboolean is_new = lost_usec > 0 || guest->starved_permille > 0 || guest->owed_usec > 0 ||
                      guest->is_charged_late;
    if (!guest->is_charged_late)
        note_pace(guest, ran_usec, lost_usec);
    guest->owed_usec = guest->owed_ran_usec = 0;
    if (guest->starved_permille < core->tunings[BERTH_TUNING_STARVED_PERMILLE])
        guest->starved_usec = 0;
    else if (guest->starved_usec == 0)
        guest->starved_usec = core->now_usec;
    guest->charged_usec = core->now_usec;
    guest->still_usec = 0;
    guest->is_charged_late = FALSE;
    gint64 until_usec = MAX(ran_until, guest->told_usec);
    if (guest->task->record.checkpoint_open != 0)
        note_saving(guest, until_usec, lost_usec);
    if (is_new)
        add(core, guest, guest->told_usec, until_usec, lost_usec);
    guest->told_usec = until_usec;
}

static void stood_still(const BerthCore *core, CoreGuest *guest, gint64 from_usec)
{
    guest->still_usec += core->now_usec - MAX(from_usec, guest->charged_usec);
}

void core_charge_pause(BerthCore *core, CoreGuest *guest, gint64 from_usec)
{
    if (stands_free(guest->task)) /* all of that time is told when it is thawed */
        return;
    if (!guest->is_frozen)
        stood_still(core, guest, from_usec);
    add(core, guest, MAX(from_usec, guest->told_usec), core->now_usec, core->now_usec - from_usec);
}

void core_charge_failed_save(BerthCore *core, CoreGuest *guest, gint64 from_usec)
{
    from_usec = core_time_add(from_usec, lost_since_usec(guest->task, from_usec));
    core_charge_pause(core, guest, MIN(from_usec, core->now_usec));
}

void core_charge_frozen(BerthCore *core, CoreGuest *guest)
{
    guest->task->record.frozen_usec = core->now_usec;
}

void core_charge_thawed(BerthCore *core, CoreGuest *guest, gboolean is_charged)
{
    gint64 from_usec = guest->task->record.frozen_usec;
    core_charge_feed(guest, from_usec);
    guest->task->record.frozen_usec = 0;
    stood_still(core, guest, from_usec);
    if (is_charged)
        core_charge_plan(core, guest->task);
    else
        add(core, guest, MAX(from_usec, guest->told_usec), core->now_usec,
            core->now_usec - from_usec);
    if (!core_heap_has(&guest->task->timer.link))
        core_task_arm(core, guest->task);
}

gint64 core_charge_used_usec(const CoreTask *task, gint64 at_usec)
{
    const BerthCoreTask *record = &task->record;
    gint64 until_usec = stands_free(task) ? MIN(at_usec, record->frozen_usec) : at_usec;
    gint64 ran_usec = MAX(until_usec - record->start_usec, 0);
    gint64 lost_usec = record->starved_usec;
    for (guint32 i = 0; i < task->n_guests; i++)
        lost_usec = MAX(lost_usec, lost_until_told_usec(&task->guests[i]) +
                                       expected_lost_usec(&task->guests[i], at_usec));
    lost_usec = MAX(lost_usec - lost_since_usec(task, at_usec), 0);
    return core_time_add(record->ran_usec, ran_usec - MIN(ran_usec, lost_usec));
}
