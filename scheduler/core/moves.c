/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is under way with running guests. What it costs, and how much of it there may be, is
 * move_costs.c's, what is recorded of it move_records.c's, and until when a guest that leaves is thought to be there leaving.c's.
 *
 * Invariant: one thing at a time per guest; a migrating guest is in the incoming ones of the node
 * that it goes to, and its room is held there until the result or its end; one that is being resized
 * holds what it has and what it is to have. What waits for room (room.h) has begun, but nobody was asked for it: it can be
 * given up at any time, and the guest is as it was. */
#include "scheduler/core/moves.h"

#include "scheduler/core/cells.h"
#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/drain.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/job.h"
#include "scheduler/core/leaving.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/room.h"
#include "scheduler/core/sessions.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

/* Pressure is told as an average of 10 s, which forgets 19 parts of 20 in three times that: until then it may be of what
 * a guest had before it was resized. */
#define PRESSURE_FORGOTTEN_USEC (30 * (gint64)G_USEC_PER_SEC)
/* A guest that has less by such a part than it had has not been given back yet what was taken of it. */
#define STALE_PART 32

/* --- may ------------------------------------------------------------------------------------ */

gboolean core_move_is_free(const CoreGuest *guest)
{
    return guest->phase == BERTH_GUEST_RUNNING &&
           (guest->op == BERTH_OP_NONE || guest->waits_for_room) &&
           guest->task->record.stop_reason == BERTH_REASON_NONE && guest->task->n_guests == 1;
}

gboolean core_move_is_at_rest(const CoreGuest *guest)
{
    return core_move_is_free(guest) && guest->op == BERTH_OP_NONE;
}

gboolean core_move_could_migrate(const BerthCore *core, const CoreGuest *guest)
{
    return core_class_can_move(core, guest->task->job->class) &&
           guest->phase <= BERTH_GUEST_RUNNING &&
           guest->task->record.stop_reason == BERTH_REASON_NONE;
}

gboolean core_move_may_migrate(const BerthCore *core, const CoreGuest *guest)
{
    return core_move_could_migrate(core, guest) && core_move_is_at_rest(guest);
}

gboolean core_move_could_checkpoint(const BerthCore *core, const CoreGuest *guest)
{
    return core_class_can_checkpoint(core, guest->task->job->class);
}

gboolean core_move_may_checkpoint(const BerthCore *core, const CoreGuest *guest)
{
    return core_move_could_checkpoint(core, guest) && core_move_is_at_rest(guest);
}

/* --- beginning ------------------------------------------------------------------------------ */

static void emit_op(BerthCore *core, const CoreGuest *guest, gboolean is_again)
{
    static const BerthActionKind kinds[] = {[BERTH_OP_MIGRATING] = BERTH_ACTION_MIGRATE,
                                            [BERTH_OP_CHECKPOINTING] = BERTH_ACTION_CHECKPOINT,
                                            [BERTH_OP_RESIZING] = BERTH_ACTION_RESIZE,
                                            [BERTH_OP_FREEZING] = BERTH_ACTION_FREEZE,
                                            [BERTH_OP_THAWING] = BERTH_ACTION_THAW};
    BerthCoreAction action = core_action(core, kinds[guest->op], guest, guest->op_reason);
    action.serial = guest->op_serial;
    if (guest->op == BERTH_OP_MIGRATING)
        action.to = guest->to;
    if (guest->op == BERTH_OP_CHECKPOINTING) {
        action.checkpoint = guest->task->record.checkpoint_open;
        action.stops = guest->task->record.checkpoint_stops;
        action.space_mib = core_checkpoint_space_mib(core, guest);
    }
    action.is_again =
        is_again && (guest->op == BERTH_OP_MIGRATING || guest->op == BERTH_OP_RESIZING);
    action.cells = guest->op == BERTH_OP_MIGRATING  ? guest->to_cells
                   : guest->op == BERTH_OP_RESIZING ? guest->cells
                                                    : 0;
    if (guest->op == BERTH_OP_RESIZING) {
        action.resources = core_guest_resources_of(guest, guest->goal);
        action.balloon_mib = guest->to_balloon_mib;
        action.thaws = guest->is_frozen && guest->task->record.freeze_reason == BERTH_REASON_NONE;
    }
    action.is_opportunistic =
        guest->op == BERTH_OP_MIGRATING ? guest->is_opportunistic_there : guest->is_opportunistic;
    core_emit_action(core, &action);
}

gboolean berth_core_action_is_pressing(const BerthCoreAction *action)
{
    gboolean is_save = action->kind == BERTH_ACTION_CHECKPOINT && action->stops;
    switch (action->reason) {
    case BERTH_REASON_PRESSURE:
    case BERTH_REASON_SLACK_FULL:
    case BERTH_REASON_ROOM_NEEDED:
    case BERTH_REASON_STARVED:
        return is_save || action->kind == BERTH_ACTION_MIGRATE;
    case BERTH_REASON_TIME_LIMIT: /* it is not to run on any more */
    case BERTH_REASON_FROZEN_BY_USER:
    case BERTH_REASON_FROZEN_BY_OPERATOR:
        return is_save;
    default:
        return FALSE;
    }
}

static void leave(BerthCore *core, CoreGuest *guest)
{
    core_leaving_begins(core, guest);
    if (core_move_is_counted(guest->op))
        core_move_count(core, guest, 1);
    emit_op(core, guest, FALSE);
}

static void begin_when(BerthCore *core, CoreGuest *guest, BerthGuestOp op, BerthReason reason,
                       gboolean has_room)
{
    guest->op = op;
    guest->is_unwanted = FALSE;
    guest->op_serial++;
    guest->op_usec = core->now_usec;
    guest->op_reason = reason;
    core_emit_changed(core, guest->task);
    if (has_room)
        leave(core, guest);
    else
        core_room_await(core, guest);
}

static void begin(BerthCore *core, CoreGuest *guest, BerthGuestOp op, BerthReason reason)
{
    begin_when(core, guest, op, reason, TRUE);
}

void core_move_leaves(BerthCore *core, CoreGuest *guest)
{
    core_room_await_no_more(core, guest);
    guest->op_usec = core->now_usec;
    core_emit_changed(core, guest->task);
    leave(core, guest);
}

void core_move_migrate(BerthCore *core, CoreGuest *guest, CoreNode *to, gboolean is_opportunistic,
                       BerthReason reason)
{
    guest->is_opportunistic_there = is_opportunistic;
    guest->to_size = guest->goal = guest->size;
    core_nodes_hold(&core->nodes, to, guest);
    begin_when(core, guest, BERTH_OP_MIGRATING, reason,
               is_opportunistic || core_relief_make_room(core, to));
    core_checkpoint_count_slack(core, guest);
}

void core_move_migrate_to_resize(BerthCore *core, CoreGuest *guest, CoreNode *to, CoreSize size,
                                 BerthReason reason)
{
    guest->is_opportunistic_there = FALSE;
    guest->goal = size;
    guest->to_size = core_size_max(guest->size, size);
    core_nodes_hold(&core->nodes, to, guest);
    begin_when(core, guest, BERTH_OP_MIGRATING, reason, core_relief_make_room(core, to));
    core_owner_recount(core, guest->task);
}

void core_move_checkpoint(BerthCore *core, CoreGuest *guest, gboolean stops, BerthReason reason)
{
    core_checkpoint_open(core, guest->task, stops, reason);
    begin(core, guest, BERTH_OP_CHECKPOINTING, reason);
}

/* Where it is. */
static void set_backed(BerthCore *core, CoreGuest *guest, gboolean is_backed)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    core_nodes_unreserve(&core->nodes, node, guest);
    guest->is_opportunistic = !is_backed;
    core_checkpoint_count_slack(core, guest);
    core_nodes_reserve(&core->nodes, node, guest);
}

void core_move_promote(BerthCore *core, CoreGuest *guest)
{
    guest->old_size = guest->goal = guest->size;
    guest->to_balloon_mib = 0;
    set_backed(core, guest, TRUE);
    begin(core, guest, BERTH_OP_RESIZING, BERTH_REASON_PROMOTION);
}

void core_move_hold_size(BerthCore *core, CoreGuest *guest, CoreSize size)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    guint32 cells = guest->cells;
    core_nodes_unreserve(&core->nodes, node, guest);
    guest->size = size;
    guest->cells = core_cells_fit(node, cells, size) ? cells : 0;
    core_checkpoint_count_slack(core, guest);
    core_nodes_reserve(&core->nodes, node, guest);
    core_owner_recount(core, guest->task);
}

/* It may take all that it is given at once. Vcpus need no room: who is in slack yields them. */
static gboolean has_room_to_grow(BerthCore *core, CoreGuest *guest)
{
    if (guest->size.memory_mib <= guest->old_size.memory_mib)
        return TRUE;
    core_predict_grows(core, guest);
    return guest->is_opportunistic ||
           core_relief_make_room(core, core_nodes_get(&core->nodes, guest->node));
}

void core_move_resize(BerthCore *core, CoreGuest *guest, CoreSize size, BerthReason reason)
{
    guest->old_size = guest->size;
    guest->goal = size;
    guest->to_balloon_mib = 0;
    core_move_hold_size(core, guest, core_size_max(guest->size, size));
    begin_when(core, guest, BERTH_OP_RESIZING, reason, has_room_to_grow(core, guest));
}

void core_move_balloon(BerthCore *core, CoreGuest *guest, guint64 to_mib, BerthReason reason)
{
    guint32 most = (guint32)core->tunings[BERTH_TUNING_BACKOFF_DOUBLINGS_MAX];
    if (to_mib > guest->balloon_mib) {
        gint64 rest_usec = core->tunings[BERTH_TUNING_COOLDOWN_USEC] << MIN(guest->ballooned, most);
        guest->balloon_rest_usec = core_time_add(core->now_usec, rest_usec);
        guest->ballooned++;
    }
    guest->old_size = guest->goal = guest->size;
    guest->to_balloon_mib = to_mib;
    begin(core, guest, BERTH_OP_RESIZING, reason);
}

void core_move_freeze(BerthCore *core, CoreGuest *guest, gboolean freeze)
{
    begin(core, guest, freeze ? BERTH_OP_FREEZING : BERTH_OP_THAWING,
          guest->task->record.freeze_reason);
}

static void emit_stay(BerthCore *core, const CoreGuest *guest)
{
    BerthCoreAction action = core_action(core, BERTH_ACTION_STAY, guest, guest->op_reason);
    action.serial = guest->op_serial;
    core_emit_action(core, &action);
}

void core_move_again(BerthCore *core, const CoreGuest *guest)
{
    if (guest->waits_for_room)
        return;
    if (guest->op != BERTH_OP_NONE)
        emit_op(core, guest, TRUE);
    if (guest->op == BERTH_OP_MIGRATING && guest->is_unwanted)
        emit_stay(core, guest);
}

void core_move_call_off(BerthCore *core, CoreGuest *guest)
{
    if (guest->is_unwanted)
        return;
    if (guest->waits_for_room) {
        core_move_give_up(core, guest, TRUE);
        return;
    }
    guest->is_unwanted = TRUE;
    core_emit_changed(core, guest->task);
    if (core_nodes_get(&core->nodes, guest->node)->state == BERTH_NODE_UP)
        emit_stay(core, guest);
}

/* --- ending --------------------------------------------------------------------------------- */

/* Whether the node that it did not come to is at fault nobody knows: another one is tried first. */
static void note_failure(BerthCore *core, CoreGuest *guest, CoreNode *to)
{
    core_move_rest(core, guest);
    to->refused_until_usec =
        core_time_add(core->now_usec, core->tunings[BERTH_TUNING_COOLDOWN_USEC]);
}

static void note_success(CoreGuest *guest, CoreNode *to)
{
    guest->moves_failed = 0;
    guest->move_rest_usec = guest->stuck_usec = 0;
    to->refused_until_usec = 0;
}

/* Of drains that wait for any such end, and of those of both nodes: one has a guest that can be moved, or one less. */
static void tell_drains(BerthCore *core, const CoreGuest *guest)
{
    core->has_move_ended |= core_move_is_counted(guest->op);
    core_drain_look_again(core, core_nodes_get(&core->nodes, guest->node));
    if (guest->op == BERTH_OP_MIGRATING)
        core_drain_look_again(core, core_nodes_get(&core->nodes, guest->to));
}

/* At both of its ends. */
static void leave_nodes(BerthCore *core, CoreGuest *guest, gboolean waited)
{
    core_room_vacated(core, core_nodes_get(&core->nodes, guest->node));
    if (guest->op == BERTH_OP_MIGRATING) {
        CoreNode *to = core_nodes_get(&core->nodes, guest->to);
        core_nodes_unhold(&core->nodes, to, guest);
        core_room_vacated(core, to);
    }
    if (core_move_is_counted(guest->op) && !waited) {
        core_move_count(core, guest, -1);
        core->may_save = TRUE;
    }
    core_leaving_ends(core, guest);
}

/* One that has only waited for room was not moved. */
static void end(BerthCore *core, CoreGuest *guest)
{
    gboolean waited = core_room_await_no_more(core, guest);
    leave_nodes(core, guest, waited);
    tell_drains(core, guest);
    guest->op = BERTH_OP_NONE;
    core_checkpoint_count_slack(core, guest);
    core_owner_recount(core, guest->task);
    if (!waited)
        guest->cooldown_usec = core_time_add(
            core->now_usec, MAX(core->tunings[BERTH_TUNING_COOLDOWN_USEC], guest->pause_usec));
    guest->pause_usec = 0;
    core_emit_changed(core, guest->task);
    core->pass_wanted = TRUE;
}

/* The guest goes on, and so does its time limit, which may have come meanwhile. */
static void end_by_result(BerthCore *core, CoreGuest *guest)
{
    end(core, guest);
    if (!core_heap_has(&guest->task->timer.link))
        core_task_arm(core, guest->task);
}

/* Never more than is held for it. */
static CoreSize size_instead(const BerthCore *core, const CoreGuest *guest,
                             const BerthResources *has)
{
    CoreSize size = core_move_size_or(core, has, guest->old_size);
    return core_size_fits(size, guest->size) ? size : guest->size;
}

/* Each time that it did not take more it is left alone for twice as long: others may have had to leave for it. */
static void note_growth(const BerthCore *core, CoreGuest *guest, gboolean ok)
{
    guint32 most = (guint32)core->tunings[BERTH_TUNING_BACKOFF_DOUBLINGS_MAX];
    gint64 rest_usec = core->tunings[BERTH_TUNING_COOLDOWN_USEC] << MIN(guest->ungrown, most);
    guest->grow_rest_usec = ok ? 0 : core_time_add(core->now_usec, rest_usec);
    guest->ungrown = ok ? 0 : guest->ungrown + 1;
}

/* Where it did not grow its kernel has nothing left with which to take more, or its host does not give it: until it is
 * tried again there is no more for it. Where it was to give memory back it was pressed for that, and is not, now. */
static void note_memory_resized(BerthCore *core, CoreGuest *guest, gboolean ok)
{
    gboolean grows = guest->goal.memory_mib > guest->old_size.memory_mib;
    if (guest->goal.memory_mib == guest->old_size.memory_mib)
        return;
    if (grows)
        note_growth(core, guest, ok);
    if (grows && !ok)
        return;
    guest->resized_until_usec = guest->limit_rest_usec =
        core_time_add(core->now_usec, PRESSURE_FORGOTTEN_USEC);
    if (grows)
        guest->stale_mib = guest->told_mib;
    else
        guest->stale_mib = ok ? 0 : guest->told_mib - guest->told_mib / STALE_PART;
}

void core_move_resized(BerthCore *core, CoreGuest *guest, gboolean ok, const BerthResources *has)
{
    CoreSize instead = size_instead(core, guest, has);
    gint64 cooldown_usec = guest->cooldown_usec;
    gboolean is_promotion = guest->op_reason == BERTH_REASON_PROMOTION;
    gboolean is_balloon = guest->to_balloon_mib != guest->balloon_mib && !is_promotion;
    end_by_result(core, guest);
    if (is_balloon) /* it has not moved */
        guest->cooldown_usec = cooldown_usec;
    if (!ok && is_balloon && guest->to_balloon_mib < guest->balloon_mib)
        guest->relax_rest_usec =
            core_time_add(core->now_usec, core->tunings[BERTH_TUNING_COOLDOWN_USEC]);
    if (!ok && is_promotion) { /* it still has the weight of one in slack */
        guest->promotion_rest_usec = guest->cooldown_usec;
        set_backed(core, guest, FALSE);
    }
    note_memory_resized(core, guest, ok);
    /* Likewise; a promotion gives it back, too. */
    if (ok && guest->to_balloon_mib < guest->balloon_mib)
        guest->limit_rest_usec =
            MAX(guest->limit_rest_usec, core_time_add(core->now_usec, PRESSURE_FORGOTTEN_USEC));
    if (ok || instead.memory_mib > guest->old_size.memory_mib)
        core_predict_grew(guest);
    if (!ok) {
        core_move_hold_size(core, guest, instead);
        core_predict_fits(core, guest);
        return;
    }
    if (!core_size_equal(guest->old_size, guest->goal))
        guest->limit_rest_usec = core_time_add(core->now_usec, PRESSURE_FORGOTTEN_USEC);
    if (!core_size_equal(guest->goal, guest->size)) {
        core_move_hold_size(core, guest, guest->goal);
        core_predict_fits(core, guest);
    }
    if (guest->goal.memory_mib > guest->old_size.memory_mib)
        core_limit_set_short(core, guest->task, FALSE);
    guest->balloon_mib = guest->to_balloon_mib;
    if (guest->balloon_mib == 0)
        return;
    guint64 left = core_guest_resources(guest).memory_mib - guest->balloon_mib;
    core_predict_touched(core, guest, MIN(guest->touched_mib, left));
    core_nodes_slack_changed(&core->nodes, core_nodes_get(&core->nodes, guest->node));
}

void core_move_op_done(BerthCore *core, CoreGuest *guest)
{
    end_by_result(core, guest);
}

void core_move_migrated(BerthCore *core, CoreGuest *guest, gboolean ok)
{
    CoreNode *to = core_nodes_get(&core->nodes, guest->to);
    end_by_result(core, guest);
    if (!ok && !guest->is_unwanted)
        note_failure(core, guest, to);
    if (!ok)
        return;
    note_success(guest, to);
    core_charge_feed(guest, core->now_usec);
    core_charge_plan(core, guest->task);
    core_nodes_unreserve(&core->nodes, core_nodes_get(&core->nodes, guest->node), guest);
    guest->is_opportunistic = guest->is_opportunistic_there;
    core_checkpoint_count_slack(core, guest);
    guest->cells = guest->to_cells;
    core_nodes_reserve(&core->nodes, to, guest);
    guest->task->record.node = to->handle;
    CoreSize more = core_size_sub(guest->goal, guest->size);
    if (!core_size_equal(guest->goal, guest->size) && core_move_is_at_rest(guest) &&
        core_size_fits(more, core_node_unreserved(to)))
        core_move_resize(core, guest, guest->goal, guest->op_reason);
}

void core_move_drop_op(BerthCore *core, CoreGuest *guest)
{
    core_checkpoint_drop(core, guest->task);
    if (guest->op == BERTH_OP_NONE)
        return;
    guint32 to = guest->op == BERTH_OP_MIGRATING && !guest->waits_for_room ? guest->to : 0;
    end(core, guest);
    core_predict_grew(guest);
    if (to != 0)
        core_session_expect_stray(core, core_nodes_get(&core->nodes, to), guest);
}

/* --- what waits for room is given up ---------------------------------------------------------- */

static void tell_given_up(BerthCore *core, const CoreGuest *guest)
{
    BerthActionKind kind =
        guest->op == BERTH_OP_MIGRATING ? BERTH_ACTION_MIGRATE : BERTH_ACTION_RESIZE;
    BerthCoreAction action = core_action(core, kind, guest, guest->op_reason);
    action.serial = guest->op_serial;
    action.to = guest->op == BERTH_OP_MIGRATING ? guest->to : 0;
    g_array_append_val(core->effects->given_up, action);
}

void core_move_give_up(BerthCore *core, CoreGuest *guest, gboolean is_unwanted)
{
    static const CoreTaskInput given_up = {.ok = FALSE, .has_not_left = TRUE};
    CoreTaskEvent event = guest->op == BERTH_OP_MIGRATING ? CORE_TASK_MIGRATED : CORE_TASK_RESIZED;
    guest->is_unwanted |= is_unwanted;
    tell_given_up(core, guest);
    core_guest_handle(core, guest, event, &given_up);
}

void core_move_let_go(BerthCore *core, CoreGuest *guest)
{
    if (!guest->waits_for_room || guest->op == BERTH_OP_NONE)
        return;
    gboolean is_resize = guest->op == BERTH_OP_RESIZING;
    tell_given_up(core, guest);
    end(core, guest);
    core_freeze_stays(core, guest, guest->op_reason);
    if (!is_resize)
        return;
    core_move_hold_size(core, guest, guest->old_size);
    core_predict_fits(core, guest);
}
