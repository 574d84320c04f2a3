/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what rounds want of guests. A guest moves only if two rounds in a row want it on the same node (as
 * Linux's NUMA balancing wants two faults from one node), within the caps of moves under way, and not in
 * its cooldown. The first that a round wants of a guest counts. */
#include "scheduler/core/want.h"

#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"

gboolean core_want_is_worth(const BerthCore *core, gint64 takes_usec, gint64 for_usec)
{
    gint64 worth = core->tunings[BERTH_TUNING_MOVE_WORTH_PERMILLE];
    return worth == 0 || takes_usec <= MIN(for_usec, G_MAXINT64 / 1000) * 1000 / worth;
}

gboolean core_want_may_move(const BerthCore *core, const CoreGuest *guest)
{
    gint64 left_usec = guest->task->planned_end_usec - core->now_usec;
    return core_move_may_migrate(core, guest) && guest->cooldown_usec <= core->now_usec &&
           left_usec >= core->tunings[BERTH_TUNING_NEAR_END_USEC] &&
           core_want_is_worth(core, core_move_migrate_usec(core, guest), left_usec);
}

gboolean core_want_again(BerthCore *core, CoreGuest *guest, const CoreNode *to)
{
    gboolean again = guest->wanted_to == to->handle && guest->wanted_round + 1 == core->rounds;
    if (guest->wanted_round == core->rounds)
        return FALSE;
    guest->wanted_round = core->rounds;
    guest->wanted_to = to->handle;
    return again;
}

gboolean core_want_on(BerthCore *core, CoreGuest *guest, CoreNode *to, gboolean is_opportunistic,
                      BerthReason reason)
{
    const CoreNode *from = core_nodes_get(&core->nodes, guest->node);
    if (!core_want_again(core, guest, to) || !core_move_is_below_caps(core, from) ||
        !core_move_is_below_caps(core, to))
        return FALSE;
    guest->wanted_to = 0;
    core_move_migrate(core, guest, to, is_opportunistic, reason);
    return TRUE;
}
