/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what operators let nodes be used for, and how a node becomes empty: guests that may be moved leave
 * it as the caps on moves allow, those for which there is no place in time go on in slack or are checkpointed, and the end of all
 * others is waited for. Nothing is ended for a drain.
 *
 * What was set is the node's until it is set anew, whatever becomes of its session; it is reported with
 * the node, and given back with it. */
#include "scheduler/core/drain.h"

#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/room.h"
#include "scheduler/core/rounds.h"
#include "scheduler/core/search.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

/* Where all that GUEST has now can be backed. NULL = nowhere. */
static CoreNode *find_best(BerthCore *core, const CoreGuest *guest)
{
    CoreNode *best = core_limit_find_backing(core, guest, CORE_HEEDS_ALL);
    return best != NULL ? best : core_limit_find_backing(core, guest, CORE_HEEDS_FIRM);
}

static CoreNode *find_refuge(BerthCore *core, const CoreGuest *guest)
{
    CoreNode *best = find_best(core, guest);
    if (best == NULL || !core_move_was_refused(core, best))
        return best;
    CoreNode *other = core_limit_find_place(core, guest, guest->size, CORE_HEEDS_FIRM);
    return other != NULL && !core_move_was_refused(core, other) ? other : best;
}

gboolean core_drain_is_under_way(const BerthCore *core, const CoreNode *node)
{
    return node->admission == BERTH_ADMISSION_DRAINING || core_maintenance_is_now(core, node);
}

/* As many are under way as may be: at NODE, where somebody would go, or in the cluster. */
static void note_capped(BerthCore *core, CoreNode *node)
{
    if (node->is_drain_capped)
        return;
    node->is_drain_capped = TRUE;
    g_array_append_val(core->drains_capped, node->handle);
}

/* FALSE: there is no place for it now. */
static gboolean move_away(BerthCore *core, CoreGuest *guest)
{
    CoreNode *refuge = find_refuge(core, guest);
    CoreLodger lodger = core_slack_lodger(guest);
    CoreNode *slack = guest->is_opportunistic ? core_slack_find(core, &lodger, guest->node) : NULL;
    if (refuge != NULL && core_move_is_below_caps(core, refuge))
        core_move_migrate(core, guest, refuge, FALSE, BERTH_REASON_DRAIN);
    else if (slack != NULL && core_move_is_below_caps(core, slack))
        core_move_migrate(core, guest, slack, TRUE, BERTH_REASON_DRAIN);
    else if (refuge != NULL || slack != NULL)
        note_capped(core, core_nodes_get(&core->nodes, guest->node));
    return refuge != NULL || slack != NULL;
}

gboolean core_drain_may_lodge(const BerthCore *core, const CoreGuest *guest, guint64 beside_mib)
{
    return (core->config.features & BERTH_FEATURE_OPPORTUNISTIC) != 0 && !guest->is_opportunistic &&
           core_class_may_be_in_slack(core, guest->task->job->class) &&
           core_checkpoint_has_space_to_lodge(core, guest, beside_mib);
}

/* Of one that is backed. FALSE: there is no slack for it either. */
static gboolean lodge(BerthCore *core, CoreGuest *guest)
{
    CoreLodger lodger = core_slack_lodger(guest);
    CoreNode *slack =
        core_drain_may_lodge(core, guest, 0) ? core_slack_find(core, &lodger, guest->node) : NULL;
    if (slack == NULL)
        return FALSE;
    if (core_move_is_below_caps(core, slack))
        core_move_migrate(core, guest, slack, TRUE, BERTH_REASON_DRAIN);
    else
        note_capped(core, core_nodes_get(&core->nodes, guest->node));
    return TRUE;
}

/* Once for each drain: that goes on, and tries again with each round. */
static void tell_missed(BerthCore *core, CoreGuest *guest)
{
    core->is_space_missed = TRUE;
    if (guest->is_drain_missed)
        return;
    guest->is_drain_missed = TRUE;
    guest->task->record.drain_missed_usec = core->now_usec;
    core_emit_changed(core, guest->task);
}

/* It goes on from there when it has its turn elsewhere, or here again. For what is in slack there is space.
 * FALSE: it cannot be. */
static gboolean save_away(BerthCore *core, CoreGuest *guest)
{
    if (!core_move_may_checkpoint(core, guest))
        return FALSE;
    if (!guest->is_opportunistic && !core_checkpoint_keep_space(core, guest->task)) {
        tell_missed(core, guest);
        return FALSE;
    }
    core_move_checkpoint(core, guest, TRUE, BERTH_REASON_DRAIN);
    return TRUE;
}

/* At all that are drained. */
static void look_at(BerthCore *core, gint64 due_usec)
{
    if (!core_heap_has(&core->drain.link) || due_usec < core->drain.due_usec)
        core_timer_set(core, &core->drain, due_usec);
}

/* Room may come: that is waited for for a while. As a checkpoint it could go on in slack, too, and would lose the time until
 * then. Where moves do not work out, both are tried by turns. */
static void empty_of(BerthCore *core, CoreGuest *guest)
{
    gint64 too_many = guest->moves_failed - core->tunings[BERTH_TUNING_DRAIN_FAILURES_MAX];
    if (too_many >= 0 && too_many % 2 == 0 && save_away(core, guest))
        return;
    gboolean may_migrate = core_move_may_migrate(core, guest);
    if (may_migrate && move_away(core, guest)) {
        guest->stuck_usec = 0;
        return;
    }
    if (guest->stuck_usec == 0)
        guest->stuck_usec = core->now_usec;
    gint64 due_usec =
        core_time_add(guest->stuck_usec, core->tunings[BERTH_TUNING_DRAIN_PATIENCE_USEC]);
    if (due_usec > core->now_usec)
        look_at(core, due_usec);
    else if (!may_migrate || !lodge(core, guest))
        save_away(core, guest);
}

/* Of GUESTS those that have failed to move, or those that have not. */
static void move_those(BerthCore *core, const CoreNode *node, const GPtrArray *guests,
                       gboolean that_failed)
{
    for (guint i = 0; i < guests->len && core_move_is_below_caps(core, node); i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        if ((guest->moves_failed > 0) != that_failed || !core_move_is_at_rest(guest))
            continue;
        if (guest->move_rest_usec <= core->now_usec)
            empty_of(core, guest);
        else
            look_at(core, guest->move_rest_usec);
    }
}

/* Those that cannot be moved would keep all others from it, were they tried before them. Where a cap keeps some, it is
 * tried again as soon as a move has ended, wherever. */
void core_drain_move_some(BerthCore *core, CoreNode *node)
{
    if (node->state != BERTH_NODE_UP || !core_drain_is_under_way(core, node))
        return;
    if (core_move_is_below_caps(core, node)) {
        g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
        move_those(core, node, guests, FALSE);
        move_those(core, node, guests, TRUE);
    }
    if (node->guests->len > 0 && !core_move_is_below_caps(core, node))
        note_capped(core, node);
}

void core_drain_due(BerthCore *core)
{
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        core_drain_move_some(core, core_nodes_get(&core->nodes, handle));
}

void core_drain_look_again(BerthCore *core, CoreNode *node)
{
    if (node->is_drain_wanted || !core_drain_is_under_way(core, node))
        return;
    node->is_drain_wanted = TRUE;
    g_array_append_val(core->drains_wanted, node->handle);
}

static gboolean lacks_space(const CoreNode *node)
{
    gboolean found = FALSE;
    for (guint i = 0; !found && i < node->guests->len; i++)
        found = ((const CoreGuest *)g_ptr_array_index(node->guests, i))->is_drain_missed;
    return found;
}

static void space_came(BerthCore *core)
{
    core->is_space_missed = FALSE;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (lacks_space(node))
            core_drain_look_again(core, node);
    }
}

static void move_ended(BerthCore *core)
{
    core->has_move_ended = FALSE;
    for (guint i = 0; i < core->drains_capped->len; i++) {
        CoreNode *node =
            core_nodes_get(&core->nodes, g_array_index(core->drains_capped, guint32, i));
        node->is_drain_capped = FALSE;
        core_drain_look_again(core, node);
    }
    g_array_set_size(core->drains_capped, 0);
}

void core_drain_go_on(BerthCore *core)
{
    if (core->is_space_missed && core_checkpoint_space_left_mib(core) > core->space_left_mib)
        space_came(core);
    if (core->has_move_ended)
        move_ended(core);
    guint n = core->drains_wanted->len;
    for (guint i = 0; i < n; i++) {
        CoreNode *node =
            core_nodes_get(&core->nodes, g_array_index(core->drains_wanted, guint32, i));
        node->is_drain_wanted = FALSE;
        core_drain_move_some(core, node);
    }
    if (n > 0)
        g_array_remove_range(core->drains_wanted, 0, n);
}

void core_drain_evacuate(BerthCore *core, CoreNode *node)
{
    core_drain_move_some(core, node);
    core_arm_round_for_drain(core);
}

/* Whoever wants it anew may have mended what was in the way. */
static void forget_failures(const CoreNode *node)
{
    for (guint i = 0; i < node->guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->guests, i);
        guest->moves_failed = 0;
        guest->is_drain_missed = FALSE;
        guest->move_rest_usec = guest->stuck_usec = 0;
    }
}

/* Who is being checkpointed for it leaves, and comes back when it has its turn. */
static void call_off_moves(BerthCore *core, const CoreNode *node)
{
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        if (guest->op == BERTH_OP_MIGRATING && guest->op_reason == BERTH_REASON_DRAIN)
            core_move_call_off(core, guest);
    }
}

void core_drain_admit(BerthCore *core, guint32 handle, BerthNodeAdmission admission)
{
    CoreNode *node = core_nodes_get(&core->nodes, handle);
    if (node == NULL || node->admission == admission)
        return;
    node->admission = admission;
    core_nodes_changed(&core->nodes, node);
    core_nodes_fresh(&core->nodes, node);
    core_emit_node(core, node);
    core->pass_wanted = core->plan_wanted = TRUE;
    if (admission != BERTH_ADMISSION_OPEN)
        core_room_forsake(core, node);
    if (admission == BERTH_ADMISSION_DRAINING) {
        forget_failures(node);
        core_drain_evacuate(core, node);
    } else {
        if (!core_drain_is_under_way(core, node))
            call_off_moves(core, node);
        core_arm_round(core);
    }
}

void core_drain_tell_emptied(BerthCore *core)
{
    for (guint i = 0; i < core->nodes.emptied->len; i++) {
        guint32 handle = g_array_index(core->nodes.emptied, guint32, i);
        const CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (node->admission == BERTH_ADMISSION_DRAINING && core_node_is_empty(node))
            core_emit_node(core, node);
    }
    g_array_set_size(core->nodes.emptied, 0);
}
