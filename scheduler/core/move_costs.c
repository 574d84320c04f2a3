/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what moves and checkpoints cost, how many of them there may be at a time, and for how long who could not be moved is
 * left alone. */
#include "scheduler/core/moves.h"

#include "scheduler/core/class.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

/* --- costs ---------------------------------------------------------------------------------- */

static guint64 to_copy_mib(const CoreGuest *guest)
{
    guint64 all_mib = core_guest_resources(guest).memory_mib;
    return guest->touched_mib > 0 ? MIN(guest->touched_mib, all_mib) : all_mib;
}

static gint64 copied_usec(gint64 fixed_usec, guint64 mib, gint64 mib_per_sec)
{
    gint64 copy_usec = (gint64)mib * (gint64)G_USEC_PER_SEC / MAX(mib_per_sec, 1);
    return core_time_add(fixed_usec, copy_usec);
}

/* Pre-copy sends what was dirtied meanwhile again: with rate R and bandwidth B it sends M / (1 - R/B)
 * in all (Clark et al., NSDI 2005; bench/costs measures it, within 3 % up to R = 3/4 B). It is taken as
 * twice M at most: that a guest which dirties faster than half of B is made to dirty less is assumed.
 * QEMU's auto-converge alone does not see to it: bench/costs measured 3.4 M at R = 0.9 B. */
gint64 core_move_migrate_usec(const BerthCore *core, const CoreGuest *guest)
{
    gint64 per_sec = core->tunings[BERTH_TUNING_MIGRATE_MIB_PER_SEC];
    gint64 dirty = MIN((gint64)guest->dirty_mib_per_sec, per_sec / 2);
    return copied_usec(core->tunings[BERTH_TUNING_MIGRATE_FIXED_USEC], to_copy_mib(guest),
                       per_sec - dirty);
}

gint64 core_move_checkpoint_usec(const BerthCore *core, const CoreGuest *guest)
{
    gint64 signal_usec = guest->is_frozen ? 0 : guest->task->job->checkpoint_signal_usec;
    gint64 saved_usec =
        copied_usec(core->tunings[BERTH_TUNING_CHECKPOINT_FIXED_USEC], to_copy_mib(guest),
                    core->tunings[BERTH_TUNING_CHECKPOINT_MIB_PER_SEC]);
    return core_time_add(signal_usec, saved_usec);
}

gint64 core_move_away_usec(const BerthCore *core, const CoreClass *class, guint64 mib,
                           gint64 signal_usec)
{
    const gint64 *tunings = core->tunings;
    gint64 moved_usec = copied_usec(tunings[BERTH_TUNING_MIGRATE_FIXED_USEC], mib,
                                    tunings[BERTH_TUNING_MIGRATE_MIB_PER_SEC]);
    gint64 saved_usec = copied_usec(tunings[BERTH_TUNING_CHECKPOINT_FIXED_USEC], mib,
                                    tunings[BERTH_TUNING_CHECKPOINT_MIB_PER_SEC]);
    return MAX(core_class_can_move(core, class) ? moved_usec : 0,
               core_class_can_checkpoint(core, class) ? core_time_add(signal_usec, saved_usec) : 0);
}

/* --- how many ------------------------------------------------------------------------------- */

gboolean core_move_is_counted(BerthGuestOp op)
{
    return op == BERTH_OP_MIGRATING || op == BERTH_OP_CHECKPOINTING;
}

void core_move_count(BerthCore *core, CoreGuest *guest, gint sign)
{
    core->n_moves += sign;
    core->was_capped |= (gint64)core->n_moves >= core_move_cluster_cap(core);
    core_nodes_get(&core->nodes, guest->node)->n_moves += sign;
    if (guest->op == BERTH_OP_MIGRATING)
        core_nodes_get(&core->nodes, guest->to)->n_moves += sign;
}

gint64 core_move_cluster_cap(const BerthCore *core)
{
    gint64 cap = (gint64)core->nodes.nodes->len *
                 core->tunings[BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] / 1000;
    return MAX(cap, core->tunings[BERTH_TUNING_MOVES_PER_NODE]);
}

gboolean core_move_are_below_caps(const BerthCore *core, const CoreNode *node, guint n)
{
    return node->n_moves + node->n_held + n <= core->tunings[BERTH_TUNING_MOVES_PER_NODE] &&
           (gint64)core->n_moves + core->held->len + n <= core_move_cluster_cap(core);
}

gboolean core_move_is_below_caps(const BerthCore *core, const CoreNode *node)
{
    return core_move_are_below_caps(core, node, 1);
}

gboolean core_move_is_any_left(const BerthCore *core)
{
    return core->n_moves < core_move_cluster_cap(core);
}

gboolean core_move_has_turn_at(const BerthCore *core, const CoreNode *node)
{
    return node->n_moves < core->tunings[BERTH_TUNING_MOVES_PER_NODE] &&
           core_move_is_any_left(core);
}

gboolean core_move_has_turn(const BerthCore *core, const CoreGuest *guest)
{
    const CoreNode *from = core_nodes_get(&core->nodes, guest->node);
    return from->state == BERTH_NODE_UP && core_move_has_turn_at(core, from) &&
           core_move_has_turn_at(core, core_nodes_get(&core->nodes, guest->to));
}

gint64 core_move_back_off_usec(const BerthCore *core, const CoreGuest *guest)
{
    guint32 doublings =
        MIN(guest->balanced, (guint32)core->tunings[BERTH_TUNING_BACKOFF_DOUBLINGS_MAX]);
    return core->tunings[BERTH_TUNING_COOLDOWN_USEC] << doublings;
}

void core_move_back_off(BerthCore *core, CoreGuest *guest)
{
    guest->pause_usec = core_move_back_off_usec(core, guest);
    guest->balanced++;
}

/* A round, and twice as long each time, so that others get their turn. */
static gint64 rest_end_usec(const BerthCore *core, guint32 failed)
{
    guint32 doublings = MIN(failed, (guint32)core->tunings[BERTH_TUNING_BACKOFF_DOUBLINGS_MAX]);
    return core_time_add(core->now_usec,
                         core->tunings[BERTH_TUNING_BALANCE_INTERVAL_USEC] << doublings);
}

void core_move_rest(BerthCore *core, CoreGuest *guest)
{
    guest->move_rest_usec = rest_end_usec(core, guest->moves_failed++);
}

void core_move_saved_for_room(BerthCore *core, CoreGuest *guest, gboolean ok)
{
    guest->save_rest_usec = ok ? 0 : rest_end_usec(core, guest->saves_failed);
    guest->saves_failed = ok ? 0 : guest->saves_failed + 1;
}

gboolean core_move_was_refused(const BerthCore *core, const CoreNode *node)
{
    return node->refused_until_usec > core->now_usec;
}
