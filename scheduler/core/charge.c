/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a task is charged of its time limit: the time for which its command ran, less what it
 * lost because its node gave it less than it wanted. A job asks for so much time on vCPUs of its
 * own; who sits in the slack of others gets what these leave, and must not come to its limit earlier
 * in its work for that. Waiting, booting and being checkpointed are not charged either.
 *
 * A gang goes at the pace of its slowest guest, and has lost what the one has that lost most. */
#include "scheduler/core/charge.h"

#include "scheduler/core/effects.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/timers.h"

/* The driver is told of a loss when a minute is full: it stores what it is told. */
#define TOLD_USEC (60 * (gint64)G_USEC_PER_SEC)

void core_charge_begin(BerthCore *core, CoreTask *task)
{
    task->record.starved_usec = 0;
    for (guint32 i = 0; i < task->n_guests; i++) {
        CoreGuest *guest = &task->guests[i];
        guest->starved_usec = 0;
        guest->starved_permille = 0;
        guest->charged_usec = core->now_usec;
    }
}

/* Of a gang it is not known which of its guests has lost that much. */
void core_charge_restored(CoreTask *task)
{
    for (guint32 i = 0; i < task->n_guests; i++) {
        task->guests[i].starved_usec = task->record.starved_usec;
        task->guests[i].charged_usec = task->record.start_usec;
    }
}

/* Its end is thought to be as much later. */
static void add(BerthCore *core, CoreGuest *guest, gint64 lost_usec)
{
    CoreTask *task = guest->task;
    guest->starved_usec += lost_usec;
    gint64 more_usec = guest->starved_usec - task->record.starved_usec;
    if (more_usec <= 0)
        return;
    if ((task->record.starved_usec + more_usec) / TOLD_USEC > task->record.starved_usec / TOLD_USEC)
        core_emit_changed(core, task);
    task->record.starved_usec += more_usec;
    task->planned_end_usec = core_time_add(task->planned_end_usec, more_usec);
    for (guint32 i = 0; i < task->n_guests; i++)
        if (!task->guests[i].is_opportunistic)
            core_nodes_changed(&core->nodes, core_nodes_get(&core->nodes, task->guests[i].node));
}

/* Frozen at its own limit it is charged. In a checkpoint it stands still: core_charge_pause(). */
static gboolean is_charged_by_loss(const CoreGuest *guest)
{
    return !guest->is_frozen && guest->op != BERTH_OP_CHECKPOINTING;
}

void core_charge_report(BerthCore *core, CoreGuest *guest, gint64 lost_usec)
{
    gint64 passed_usec = core->now_usec - guest->charged_usec;
    if (passed_usec <= 0 || !is_charged_by_loss(guest))
        return;
    lost_usec = CLAMP(lost_usec, 0, passed_usec);
    guest->charged_usec = core->now_usec;
    guest->starved_permille = (guint32)(lost_usec / MAX(passed_usec / 1000, 1));
    if (lost_usec > 0)
        add(core, guest, lost_usec);
}

void core_charge_until_now(BerthCore *core, CoreGuest *guest)
{
    gint64 passed_usec = core->now_usec - guest->charged_usec;
    if (guest->starved_permille > 0)
        core_charge_report(core, guest, passed_usec / 1000 * guest->starved_permille);
}

void core_charge_pause(BerthCore *core, CoreGuest *guest, gint64 from_usec)
{
    guest->charged_usec = core->now_usec;
    add(core, guest, core->now_usec - from_usec);
}

gint64 core_charge_used_usec(const CoreTask *task, gint64 at_usec)
{
    const BerthCoreTask *record = &task->record;
    gint64 ran_usec = MAX(at_usec - record->start_usec, 0);
    return core_time_add(record->ran_usec, ran_usec - MIN(ran_usec, record->starved_usec));
}
