/* SPDX-License-Identifier: Apache-2.0 */
/* Owns until when a guest that is being taken off its node is thought to be there.
 *
 * What takes longer than it was thought to, and no less than overstay_usec, is thought to take as long again as it has so
 * far. Agents try again until a thing works; of one that is stuck nobody may ever hear, and who comes first in the queue
 * would be planned for the very next moment on its node, for ever, and kept from where others come and go. */
#include "scheduler/core/leaving.h"

#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/timers.h"

/* One that only waits for room elsewhere may never leave. */
static gboolean is_taken_away(const CoreGuest *guest)
{
    if (guest->op == BERTH_OP_MIGRATING)
        return !guest->waits_for_room;
    return guest->op == BERTH_OP_CHECKPOINTING && guest->task->record.checkpoint_stops;
}

/* A limit that comes meanwhile may wait for what is under way. */
gint64 core_leaving_usec(const CoreGuest *guest)
{
    return guest->leaves_usec != 0 ? guest->leaves_usec : guest->task->planned_end_usec;
}

gint64 core_leaving_there_usec(const CoreGuest *guest)
{
    return MAX(guest->leaves_usec, guest->task->planned_end_usec);
}

gint64 core_leaving_again_usec(const BerthCore *core, gint64 since_usec)
{
    gint64 taken_usec = core->now_usec - since_usec;
    return core_time_add(core->now_usec,
                         MAX(taken_usec, core->tunings[BERTH_TUNING_OVERSTAY_USEC]));
}

static gint64 takes_usec(const BerthCore *core, const CoreGuest *guest)
{
    return guest->op == BERTH_OP_MIGRATING ? core_move_migrate_usec(core, guest)
                                           : core_move_checkpoint_usec(core, guest);
}

static void expect(BerthCore *core, CoreGuest *guest, gint64 leaves_usec)
{
    gint64 patience_usec = core->tunings[BERTH_TUNING_OVERSTAY_USEC];
    guest->leaves_usec = leaves_usec;
    guest->timer.kind = CORE_TIMER_LEAVING;
    core_timer_set(core, &guest->timer,
                   MAX(leaves_usec, core_time_add(guest->op_usec, patience_usec)));
    core_nodes_changed(&core->nodes, core_nodes_get(&core->nodes, guest->node));
    if (guest->op == BERTH_OP_MIGRATING)
        core_nodes_changed(&core->nodes, core_nodes_get(&core->nodes, guest->to));
}

void core_leaving_begins(BerthCore *core, CoreGuest *guest)
{
    if (is_taken_away(guest))
        expect(core, guest, core_time_add(guest->op_usec, takes_usec(core, guest)));
}

void core_leaving_ends(BerthCore *core, CoreGuest *guest)
{
    if (guest->leaves_usec == 0)
        return;
    guest->leaves_usec = 0;
    core_timer_clear(core, &guest->timer);
    core_nodes_changed(&core->nodes, core_nodes_get(&core->nodes, guest->node));
}

void core_leaving_due(BerthCore *core, CoreGuest *guest)
{
    expect(core, guest, core_leaving_again_usec(core, guest->op_usec));
    core->pass_wanted = core->plan_wanted = TRUE;
}
