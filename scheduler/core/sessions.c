/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sessions of nodes: what a joining node has is compared with what it should have, and a
 * node that stays away is given up.
 *
 * Strays are guests that a node has and should not: of an older epoch, or of a task that was given
 * up. They are released, and until then the node gets no new guest: nobody knows how large they
 * are. A node that leaves again names them again when it joins.
 *
 * A node on which starts fail is closed for a while, so that it does not swallow the queue. */
#include "scheduler/core/sessions.h"

#include "scheduler/core/drain.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/room.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

/* The first pause of a node on which starts have failed is eight start_backoffs, as a job's after four failures: those
 * that failed there have been tried elsewhere by then. */
#define CLOSED_AS_AFTER 3u

/* --- strays --------------------------------------------------------------------------------- */

static gboolean guest_id_equal(const BerthGuestId *a, const BerthGuestId *b)
{
    return a->job == b->job && a->task == b->task && a->guest == b->guest && a->epoch == b->epoch;
}

static void drop_strays_of(BerthCore *core, CoreNode *node)
{
    for (guint i = core->strays->len; i > 0; i--)
        if (g_array_index(core->strays, CoreStray, i - 1).node == node->handle)
            g_array_remove_index(core->strays, i - 1);
    node->n_strays = 0;
}

static void add_stray(BerthCore *core, CoreNode *node, const BerthGuestId *guest)
{
    CoreStray stray = {*guest, node->handle};
    g_array_append_val(core->strays, stray);
    node->n_strays++;
    core_emit_release_of_stray(core, node, *guest);
}

void core_session_expect_stray(BerthCore *core, CoreNode *node, const CoreGuest *guest)
{
    BerthGuestId id = core_guest_id(guest);
    if (node->state != BERTH_NODE_UP)
        return; /* it names the guest itself when it joins */
    add_stray(core, node, &id);
    core_nodes_changed(&core->nodes, node);
}

gboolean core_session_stray_released(BerthCore *core, const BerthGuestId *guest, guint32 from)
{
    for (guint i = 0; i < core->strays->len; i++) {
        const CoreStray *stray = &g_array_index(core->strays, CoreStray, i);
        if (!guest_id_equal(&stray->guest, guest) || (from != 0 && from != stray->node))
            continue;
        CoreNode *node = core_nodes_get(&core->nodes, stray->node);
        g_array_remove_index(core->strays, i);
        node->n_strays--;
        core_nodes_one_left(&core->nodes, node);
        core_nodes_changed(&core->nodes, node);
        core_nodes_fresh(&core->nodes, node);
        core_room_vacated(core, node);
        core->pass_wanted = TRUE;
        return TRUE;
    }
    return FALSE;
}

/* --- failed starts -------------------------------------------------------------------------- */

static void forgive(CoreNode *node)
{
    node->is_closed = FALSE;
    node->start_failures = 0;
    node->closings = 0;
    node->failed_job = 0;
}

void core_session_start_worked(CoreNode *node)
{
    if (!node->is_closed)
        forgive(node);
}

/* After so many failed starts in a row, of different jobs, a node that is not shut off from storage
 * together with all others gets no new guests for a pause, and then one chance more. A start that works makes it
 * good again, and so does a new session. */
void core_session_start_failed(BerthCore *core, CoreNode *node, guint64 job)
{
    if (core->storage_down || node->state != BERTH_NODE_UP || node->is_closed ||
        node->failed_job == job)
        return;
    node->failed_job = job;
    if (++node->start_failures < core->tunings[BERTH_TUNING_NODE_FAILURES_MAX])
        return;
    node->is_closed = TRUE;
    node->closings++;
    core_timer_set(core, &node->timer, core_backoff_end(core, CLOSED_AS_AFTER + node->closings));
    core_nodes_changed(&core->nodes, node);
    core->pass_wanted = core->plan_wanted = TRUE;
}

/* With one failure left until it is closed again. */
static void reopen(BerthCore *core, CoreNode *node)
{
    node->is_closed = FALSE;
    node->start_failures = (guint32)core->tunings[BERTH_TUNING_NODE_FAILURES_MAX] - 1;
    node->failed_job = 0;
    core_nodes_changed(&core->nodes, node);
    core_nodes_fresh(&core->nodes, node);
    core->pass_wanted = TRUE;
}

void core_session_reopen_all(BerthCore *core)
{
    for (guint i = 0; i < core->nodes.nodes->len; i++) {
        CoreNode *node = g_ptr_array_index(core->nodes.nodes, i);
        if (!node->is_closed)
            continue;
        core_timer_clear(core, &node->timer);
        reopen(core, node);
    }
}

/* --- joining -------------------------------------------------------------------------------- */

static void set_state(BerthCore *core, CoreNode *node, BerthNodeState state)
{
    node->state = state;
    node->since_usec = core->now_usec;
    core_nodes_changed(&core->nodes, node);
    core_nodes_fresh(&core->nodes, node);
    core_emit_node(core, node);
    core->pass_wanted = TRUE;
}

/* The guest, on NODE, that FOUND is; NULL = it is a stray. */
static CoreGuest *guest_of_found(const BerthCore *core, const CoreNode *node,
                                 const BerthFoundGuest *found)
{
    CoreGuest *guest = core_guest_get(core, &found->id);
    if (guest == NULL || guest->phase == BERTH_GUEST_NONE || guest->node != node->handle)
        return NULL;
    return guest;
}

static gboolean is_expected_there(const BerthCore *core, const CoreNode *node,
                                  const BerthFoundGuest *found)
{
    const CoreGuest *guest = core_guest_get(core, &found->id);
    return guest != NULL && guest->op == BERTH_OP_MIGRATING && !guest->waits_for_room &&
           guest->to == node->handle;
}

static void reconcile_found(BerthCore *core, CoreGuest *guest, const BerthFoundGuest *found)
{
    CoreTaskInput input = {.start_usec = found->start_usec,
                           .end_usec = found->end_usec,
                           .exit = found->exit,
                           .reason = found->reason,
                           .not_begun = found->phase == BERTH_FOUND_NOT_BEGUN,
                           .has_left = found->phase == BERTH_FOUND_LEFT};
    gboolean is_going =
        guest->phase == BERTH_GUEST_RELEASING || guest->phase == BERTH_GUEST_FENCING;
    if (is_going || found->phase == BERTH_FOUND_STARTING) {
        core_guest_handle(core, guest, CORE_TASK_FOUND, &input);
    } else if (found->phase == BERTH_FOUND_RUNNING) {
        core_guest_handle(core, guest, CORE_TASK_RUNNING, &input);
        core_guest_handle(core, guest, CORE_TASK_FOUND, &input);
    } else {
        core_guest_handle(core, guest,
                          found->phase == BERTH_FOUND_EXITED ? CORE_TASK_EXITED : CORE_TASK_GONE,
                          &input);
    }
}

static void reconcile(BerthCore *core, CoreNode *node, const BerthFoundGuest *guests,
                      gsize n_guests)
{
    g_autoptr(GPtrArray) expected = core_node_guests_sorted(node);
    for (gsize i = 0; i < n_guests; i++) {
        CoreGuest *guest = guest_of_found(core, node, &guests[i]);
        if (guest == NULL && is_expected_there(core, node, &guests[i])) {
            continue; /* the other end of a migration; its source has the say */
        } else if (guest == NULL) {
            add_stray(core, node, &guests[i].id);
        } else if (guest->found_at != core->event) {
            guest->found_at = core->event;
            reconcile_found(core, guest, &guests[i]);
        }
    }
    for (guint i = 0; i < expected->len; i++) {
        CoreGuest *guest = g_ptr_array_index(expected, i);
        if (guest->found_at != core->event)
            core_guest_handle(core, guest, CORE_TASK_MISSING, NULL);
        core_task_stop_if_up(core, guest->task);
    }
}

static void take_info(BerthCore *core, CoreNode *node, const BerthCoreNodeInfo *info)
{
    core_nodes_set_info(&core->nodes, node, info);
    node->oversubscribed = !core_size_fits(node->reserved, core_node_capacity(node));
}

void core_session_joined(BerthCore *core, CoreNode *node, const BerthCoreNodeInfo *info,
                         const BerthFoundGuest *guests, gsize n_guests)
{
    core_timer_clear(core, &node->timer);
    drop_strays_of(core, node);
    forgive(node);
    node->refused_until_usec = 0;
    take_info(core, node, info);
    node->has_joined = TRUE;
    set_state(core, node, BERTH_NODE_UP);
    reconcile(core, node, guests, n_guests);
    core_nodes_changed(&core->nodes, node);
    core_room_vacated(core, node);
    core_drain_move_some(core, node);
}

/* --- leaving -------------------------------------------------------------------------------- */

void core_session_left(BerthCore *core, CoreNode *node)
{
    if (node->state != BERTH_NODE_UP)
        return;
    drop_strays_of(core, node);
    forgive(node);
    set_state(core, node, BERTH_NODE_DOWN);
    core_timer_set(core, &node->timer,
                   core_time_add(core->now_usec, core->config.node_timeout_usec));
    core_room_forsake(core, node);
}

void core_session_give_up_guests(BerthCore *core, CoreNode *node)
{
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    for (guint i = 0; i < guests->len; i++)
        core_guest_handle(core, g_ptr_array_index(guests, i), CORE_TASK_NODE_LOST, NULL);
}

void core_session_changed(BerthCore *core, CoreNode *node, const BerthCoreNodeInfo *info)
{
    if (node->state != BERTH_NODE_UP)
        return;
    take_info(core, node, info);
    core_nodes_changed(&core->nodes, node);
    core_nodes_fresh(&core->nodes, node);
    core->pass_wanted = TRUE;
    if (node->cannot_start || node->oversubscribed)
        core_room_forsake(core, node);
}

void core_session_timed_out(BerthCore *core, CoreNode *node)
{
    if (node->state == BERTH_NODE_UP) {
        reopen(core, node);
        return;
    }
    set_state(core, node, BERTH_NODE_LOST);
    core_room_forsake(core, node);
    core_session_give_up_guests(core, node);
}

void core_session_given_up(BerthCore *core, CoreNode *node)
{
    if (node->state != BERTH_NODE_DOWN)
        return;
    core_timer_clear(core, &node->timer);
    core_session_timed_out(core, node);
}
