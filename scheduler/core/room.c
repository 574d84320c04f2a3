/* SPDX-License-Identifier: Apache-2.0 */
/* Owns who waits for room, and for how long. Who makes it is relief.c's.
 *
 * Invariants: nobody waits for longer than the evacuation bound at a time: at that very instant a start is made anew,
 * elsewhere if it can, and a guest that was to be moved, or to grow, stays as it is. But for a gang of which a part has begun what may not begin
 * again: that waits on, without a timer. A move that waits takes no turn from those that make room for it: it counts in
 * CoreNode.n_held, and in n_moves from when it leaves. */
#include "scheduler/core/room.h"

#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

CoreNode *core_room_node(const BerthCore *core, const CoreGuest *guest)
{
    return core_nodes_get(&core->nodes, guest->op == BERTH_OP_MIGRATING ? guest->to : guest->node);
}

guint64 core_room_need_mib(const BerthCore *core, const CoreGuest *guest)
{
    switch (guest->op) {
    case BERTH_OP_MIGRATING:
        return guest->held.memory_mib + guest->held_extra_mib;
    case BERTH_OP_RESIZING:
        return core_predict_growth_mib(core, guest);
    default:
        return core_predict_taken_mib(guest);
    }
}

static void count(BerthCore *core, CoreGuest *guest, gint sign)
{
    core_room_node(core, guest)->n_waiting_for_room += (guint)sign;
    if (guest->op != BERTH_OP_MIGRATING)
        return;
    core_nodes_get(&core->nodes, guest->node)->n_held += (guint)sign;
    core_nodes_get(&core->nodes, guest->to)->n_held += (guint)sign;
}

static void arm(BerthCore *core, CoreGuest *guest)
{
    guest->timer.kind = CORE_TIMER_ROOM;
    core_timer_set(core, &guest->timer,
                   core_time_add(core->now_usec, core->tunings[BERTH_TUNING_EVACUATION_MAX_USEC]));
}

void core_room_await(BerthCore *core, CoreGuest *guest)
{
    guest->waits_for_room = TRUE;
    count(core, guest, 1);
    if (guest->op == BERTH_OP_MIGRATING)
        g_ptr_array_add(core->held, guest);
    arm(core, guest);
}

gboolean core_room_await_no_more(BerthCore *core, CoreGuest *guest)
{
    if (!guest->waits_for_room)
        return FALSE;
    guest->waits_for_room = FALSE;
    count(core, guest, -1);
    if (guest->op == BERTH_OP_MIGRATING)
        g_ptr_array_remove(core->held, guest);
    core_timer_clear(core, &guest->timer);
    core->may_save = TRUE;
    return TRUE;
}

void core_room_resume(BerthCore *core, CoreGuest *guest)
{
    if (guest->waits_for_room)
        arm(core, guest);
}

/* --- in their order -------------------------------------------------------------------------- */

static int compare_waiting(gconstpointer a, gconstpointer b)
{
    const CoreGuest *guest_a = *(CoreGuest *const *)a;
    const CoreGuest *guest_b = *(CoreGuest *const *)b;
    const BerthCoreTask *task_a = &guest_a->task->record;
    const BerthCoreTask *task_b = &guest_b->task->record;
    if (guest_a->timer.due_usec != guest_b->timer.due_usec)
        return guest_a->timer.due_usec < guest_b->timer.due_usec ? -1 : 1;
    if (task_a->job != task_b->job)
        return task_a->job < task_b->job ? -1 : 1;
    if (task_a->task != task_b->task)
        return task_a->task < task_b->task ? -1 : 1;
    return guest_a->index < guest_b->index ? -1 : guest_a->index > guest_b->index;
}

GPtrArray *core_room_waiting_on(const CoreNode *node)
{
    GPtrArray *waiting = g_ptr_array_new();
    for (guint i = 0; i < node->guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (guest->waits_for_room && guest->op != BERTH_OP_MIGRATING)
            g_ptr_array_add(waiting, guest);
    }
    for (guint i = 0; i < node->incoming->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->incoming, i);
        if (guest->waits_for_room)
            g_ptr_array_add(waiting, guest);
    }
    g_ptr_array_sort(waiting, compare_waiting);
    return waiting;
}

/* --- the end of waiting ---------------------------------------------------------------------- */

void core_room_let_in(BerthCore *core, CoreGuest *guest)
{
    if (guest->op != BERTH_OP_NONE)
        core_move_leaves(core, guest);
    else
        core_task_room_is_free(core, guest);
}

/* All in slack could have been written out by then: one that is not done, or fails, may never be. What else the
 * node has is no reason to wait for it while others have room. */
void core_room_due(BerthCore *core, CoreGuest *guest)
{
    if (guest->op != BERTH_OP_NONE)
        core_move_give_up(core, guest, FALSE);
    else
        core_guest_handle(core, guest, CORE_TASK_NO_ROOM, NULL);
}

void core_room_forsake(BerthCore *core, CoreNode *node)
{
    if (node->n_waiting_for_room == 0)
        return;
    g_autoptr(GPtrArray) waiting = core_room_waiting_on(node);
    node->is_forsaken = TRUE; /* what one leaves is not for the next */
    for (guint i = 0; i < waiting->len; i++) {
        CoreGuest *guest = g_ptr_array_index(waiting, i);
        if (guest->waits_for_room && guest->op == BERTH_OP_MIGRATING)
            core_move_give_up(core, guest, TRUE);
        else if (guest->waits_for_room && guest->op == BERTH_OP_NONE)
            core_guest_handle(core, guest, CORE_TASK_NO_ROOM, NULL);
    }
    node->is_forsaken = FALSE;
    if (node->n_waiting_for_room > 0)
        core_room_vacated(core, node);
}

/* --- turns ----------------------------------------------------------------------------------- */

void core_room_vacated(BerthCore *core, CoreNode *node)
{
    if (node->is_vacated)
        return;
    node->is_vacated = TRUE;
    g_array_append_val(core->vacated, node->handle);
}

/* Where nothing has come free at either end of a move, and the cluster's cap has not kept it, it has no more of a turn than
 * before. */
static GPtrArray *held_that_may_leave(BerthCore *core)
{
    gboolean is_below_cap = (gint64)core->n_moves < core_move_cluster_cap(core);
    gboolean any_may = core->was_capped && is_below_cap;
    GPtrArray *held = g_ptr_array_new();
    for (guint i = 0; i < core->held->len; i++) {
        CoreGuest *guest = g_ptr_array_index(core->held, i);
        if (any_may || core_nodes_get(&core->nodes, guest->node)->served_at == core->n_served ||
            core_room_node(core, guest)->served_at == core->n_served)
            g_ptr_array_add(held, guest);
    }
    core->was_capped &= !is_below_cap;
    g_ptr_array_sort(held, compare_waiting);
    return held;
}

/* That there is room for it does not mean that one more move may be under way. */
static void serve_held(BerthCore *core)
{
    g_autoptr(GPtrArray) held = held_that_may_leave(core);
    for (guint i = 0; i < held->len; i++) {
        CoreGuest *guest = g_ptr_array_index(held, i);
        if (guest->waits_for_room && guest->op == BERTH_OP_MIGRATING &&
            core_move_has_turn(core, guest))
            core_relief_room_changed(core, core_room_node(core, guest));
    }
}

void core_room_serve(BerthCore *core)
{
    while (core->vacated->len > 0) {
        g_autoptr(GArray) handles = core->vacated;
        core->vacated = g_array_new(FALSE, FALSE, sizeof(guint32));
        core->n_served++;
        for (guint i = 0; i < handles->len; i++) {
            CoreNode *node = core_nodes_get(&core->nodes, g_array_index(handles, guint32, i));
            node->is_vacated = FALSE;
            node->served_at = core->n_served;
            core_relief_room_changed(core, node);
        }
        if (core->held->len > 0)
            serve_held(core);
    }
}

gboolean core_room_is_vacated(BerthCore *core)
{
    for (guint i = 0; i < core->vacated->len; i++)
        core_nodes_fresh(&core->nodes,
                         core_nodes_get(&core->nodes, g_array_index(core->vacated, guint32, i)));
    core->pass_wanted |= core->vacated->len > 0;
    return core->vacated->len > 0;
}
