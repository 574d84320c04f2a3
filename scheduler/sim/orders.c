/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the simulated agents do with the core's actions: each takes its time, and is answered
 * once it is done, or has failed.
 *
 * STOP and RELEASE are asked for again until they are done, as berthd does with a call that fails: after a second, twice
 * as long each time, or when the call's time is over. What hangs for as long as that is given up with the agent's session.
 *
 * An order names a guest with its epoch. When the guest ends or its node fails while something is
 * done to it, that order is dropped: its end is the answer, or the core asks again. */
#include "config.h"

#include "scheduler/sim/state.h"

/* scheduler/daemon/actions.c */
#define RETRY_MIN_USEC       ((gint64)G_USEC_PER_SEC)
#define RETRY_MAX_USEC       (30 * (gint64)G_USEC_PER_SEC)
#define STOP_TIMEOUT_USEC    (30 * (gint64)G_USEC_PER_SEC)
#define RELEASE_TIMEOUT_USEC (120 * (gint64)G_USEC_PER_SEC)

/* --- orders ------------------------------------------------------------------------------------- */

static SimOrder *order_new(Sim *sim, const BerthCoreAction *action, gint64 length_usec)
{
    SimOrder *order = g_new0(SimOrder, 1);
    order->action = *action;
    order->fails = sim_failures_hits(sim, &order->fault);
    sim_timer_set(sim, &order->timer, SIM_TIMER_ORDER, sim->now_usec + length_usec);
    return order;
}

static void order_free(Sim *sim, SimOrder *order)
{
    if (order == NULL)
        return;
    sim_timer_clear(sim, &order->timer);
    g_free(order);
}

static gint64 cost(const Sim *sim, SimCost which)
{
    return sim->costs.values[which];
}

static SimNode *node_of(Sim *sim, const SimGuest *guest)
{
    return sim_world_node(sim, guest->node);
}

static gboolean uses_link(const SimOrder *order)
{
    return order->action.kind == BERTH_ACTION_CHECKPOINT ||
           order->action.kind == BERTH_ACTION_RESTORE;
}

/* What was done to GUEST is over, one way or the other. */
static void end_order(Sim *sim, SimGuest *guest)
{
    if (guest->order == NULL)
        return;
    if (uses_link(guest->order))
        node_of(sim, guest)->n_transfers--;
    order_free(sim, guest->order);
    guest->order = NULL;
}

void sim_orders_cancel(Sim *sim, SimGuest *guest)
{
    end_order(sim, guest);
    if (guest->to != 0)
        sim_world_end_move(sim, guest, FALSE, guest->is_opportunistic);
    order_free(sim, guest->stop);
    guest->stop = NULL;
}

void sim_orders_forget_stop(Sim *sim, SimGuest *guest)
{
    order_free(sim, guest->stop);
    guest->stop = NULL;
}

static void set_phase(Sim *sim, SimGuest *guest, SimGuestPhase phase)
{
    guest->phase = phase;
    sim_world_update(sim, guest);
}

/* --- begin -------------------------------------------------------------------------------------- */

static void begin_start(Sim *sim, const BerthCoreAction *action)
{
    SimRun *run = sim_run_find(sim, action->guest.job);
    gboolean restores = action->kind == BERTH_ACTION_RESTORE;
    g_assert(run != NULL && action->guest.guest < run->job.guests);
    SimGuest *guest = &run->guests[action->guest.guest];
    if (guest->node != 0) /* asked again: it is under way */
        return;
    sim_run_rewind(sim, run, restores);
    guest->epoch = action->guest.epoch;
    guest->is_told = FALSE;
    guest->phase = SIM_GUEST_BOOTING;
    if (action->resources.vcpus > 0)
        guest->size = action->resources;
    sim_world_place(sim, guest, action->node, action->is_opportunistic);
    guest->origin = restores ? SIM_STAY_RESTORED : SIM_STAY_STARTED;
    sim->metrics->guest_starts++;
    sim->metrics->opportunistic_starts += action->is_opportunistic;
    gint64 length = cost(sim, SIM_COST_BOOT_USEC);
    if (restores)
        length = sim_costs_restore_usec(&sim->costs, run->demand.memory_mib + run->saved_cache_mib,
                                        ++node_of(sim, guest)->n_transfers);
    guest->order = order_new(sim, action, length);
}

/* FALSE: there is no guest to do it to, or it has something else in hand: what comes of that is
 * the answer. */
static gboolean is_ready(const SimGuest *guest)
{
    return guest != NULL && guest->order == NULL && guest->phase == SIM_GUEST_RUNNING &&
           guest->stop == NULL;
}

static void begin_migrate(Sim *sim, SimGuest *guest, const BerthCoreAction *action)
{
    if (!is_ready(guest))
        return;
    sim_world_begin_move(sim, guest, action->to);
    guint shared =
        MAX(node_of(sim, guest)->n_transfers, sim_world_node(sim, action->to)->n_transfers);
    gint64 length = sim_costs_migrate_usec(&sim->costs, guest->held_mib + guest->cache_mib,
                                           guest->served_milli, shared);
    guest->order = order_new(sim, action, length);
}

static void begin_checkpoint(Sim *sim, SimGuest *guest, const BerthCoreAction *action)
{
    if (!is_ready(guest))
        return;
    guint shared = ++node_of(sim, guest)->n_transfers;
    gint64 length =
        sim_costs_checkpoint_usec(&sim->costs, guest->held_mib + guest->cache_mib, shared);
    guest->order = order_new(sim, action, length);
    set_phase(sim, guest, SIM_GUEST_PAUSED);
}

static void begin_simple(Sim *sim, SimGuest *guest, const BerthCoreAction *action, SimCost which)
{
    if (is_ready(guest))
        guest->order = order_new(sim, action, cost(sim, which));
}

static void begin_resize(Sim *sim, SimGuest *guest, const BerthCoreAction *action)
{
    if (!is_ready(guest))
        return;
    gint64 length = cost(sim, SIM_COST_RESIZE_USEC);
    if (action->balloon_mib > guest->balloon_mib)
        length = sim_costs_balloon_usec(&sim->costs, action->balloon_mib - guest->balloon_mib);
    guest->order = order_new(sim, action, length);
}

static void begin_stop(Sim *sim, SimGuest *guest, const BerthCoreAction *action)
{
    if (guest == NULL || guest->stop != NULL || guest->phase == SIM_GUEST_STOPPED)
        return;
    gint64 length = cost(sim, SIM_COST_STOP_USEC);
    if (action->grace_usec > 0)
        length = MIN(length, action->grace_usec);
    guest->stop = order_new(sim, action, length);
}

void sim_orders_take(Sim *sim, const BerthCoreAction *action)
{
    SimGuest *guest = sim_run_find_guest(sim, &action->guest);
    switch (action->kind) {
    case BERTH_ACTION_START:
    case BERTH_ACTION_RESTORE:
        begin_start(sim, action);
        break;
    case BERTH_ACTION_MIGRATE:
        begin_migrate(sim, guest, action);
        break;
    case BERTH_ACTION_CHECKPOINT:
        begin_checkpoint(sim, guest, action);
        break;
    case BERTH_ACTION_FREEZE:
    case BERTH_ACTION_THAW:
        begin_simple(sim, guest, action, SIM_COST_FREEZE_USEC);
        break;
    case BERTH_ACTION_STAY:
        break; /* nobody calls anything off here */
    case BERTH_ACTION_RESIZE:
        begin_resize(sim, guest, action);
        break;
    case BERTH_ACTION_STOP:
        begin_stop(sim, guest, action);
        break;
    case BERTH_ACTION_RELEASE:
        order_new(sim, action, cost(sim, SIM_COST_RELEASE_USEC));
        break;
    case BERTH_ACTION_FENCE:
        order_new(sim, action, cost(sim, SIM_COST_FENCE_USEC));
        break;
    }
}

/* --- done --------------------------------------------------------------------------------------- */

static void send_result(Sim *sim, BerthEventKind kind, const SimGuest *guest, guint32 node,
                        gboolean ok)
{
    BerthCoreEvent event = {.kind = kind, .guest = sim_guest_id(guest), .node = node};
    event.result.ok = ok;
    sim->metrics->failed_actions += !ok;
    sim_send(sim, &event);
}

static void remove_guest(Sim *sim, SimGuest *guest)
{
    sim_orders_cancel(sim, guest);
    sim_reports_end(sim, guest);
    sim_world_remove(sim, guest);
}

static void start_failed(Sim *sim, SimGuest *guest)
{
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_START_FAILED, .guest = sim_guest_id(guest), .node = guest->node};
    event.start_failed.reason = BERTH_REASON_START_FAILED;
    sim->metrics->failed_actions++;
    remove_guest(sim, guest);
    sim_send(sim, &event);
}

static void started(Sim *sim, SimGuest *guest, gboolean restored)
{
    SimRun *run = guest->run;
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_GUEST_RUNNING, .guest = sim_guest_id(guest), .node = guest->node};
    event.running.start_usec = sim->now_usec;
    sim->metrics->restores += restored;
    if (!run->has_started)
        run->start_usec = sim->now_usec;
    run->has_started = TRUE;
    set_phase(sim, guest, SIM_GUEST_RUNNING);
    sim_reports_begin(sim, guest);
    sim_send(sim, &event);
}

static void start_due(Sim *sim, SimGuest *guest, const SimOrder *order)
{
    gboolean fails = order->fails, restored = order->action.kind == BERTH_ACTION_RESTORE;
    end_order(sim, guest);
    if (fails)
        start_failed(sim, guest);
    else
        started(sim, guest, restored);
}

/* First all is copied, then the guest stands still for a moment. */
static void migrate_due(Sim *sim, SimGuest *guest, SimOrder *order)
{
    BerthCoreAction action = order->action;
    gboolean ok = !order->fails;
    if (ok && !order->is_pause) {
        order->is_pause = TRUE;
        set_phase(sim, guest, SIM_GUEST_PAUSED);
        sim_timer_set(sim, &order->timer, SIM_TIMER_ORDER,
                      sim->now_usec + cost(sim, SIM_COST_MIGRATE_PAUSE_USEC));
        return;
    }
    end_order(sim, guest);
    sim_world_end_move(sim, guest, ok, action.is_opportunistic);
    set_phase(sim, guest, SIM_GUEST_RUNNING);
    sim->metrics->migrations += ok;
    guest->run->n_moves += ok;
    send_result(sim, BERTH_EVENT_GUEST_MIGRATED, guest, guest->node, ok);
}

static void checkpoint_due(Sim *sim, SimGuest *guest, const SimOrder *order)
{
    gboolean ok = !order->fails;
    end_order(sim, guest);
    if (ok)
        sim_run_save(sim, guest->run);
    set_phase(sim, guest, ok ? SIM_GUEST_STOPPED : SIM_GUEST_RUNNING);
    if (ok)
        sim_reports_end(sim, guest);
    guest->is_told |= ok;
    guest->is_checkpointed = ok;
    sim->metrics->checkpoints += ok;
    guest->run->n_checkpoints += ok;
    send_result(sim, BERTH_EVENT_GUEST_CHECKPOINTED, guest, guest->node, ok);
}

static void freeze_due(Sim *sim, SimGuest *guest, const SimOrder *order)
{
    gboolean ok = !order->fails, freezes = order->action.kind == BERTH_ACTION_FREEZE;
    end_order(sim, guest);
    if (ok)
        guest->is_frozen = freezes;
    sim_world_update(sim, guest);
    sim->metrics->freezes += ok && freezes;
    sim->metrics->thaws += ok && !freezes;
    send_result(sim, freezes ? BERTH_EVENT_GUEST_FROZEN : BERTH_EVENT_GUEST_THAWED, guest,
                guest->node, ok);
}

static void resize_due(Sim *sim, SimGuest *guest, const SimOrder *order)
{
    gboolean ok = !order->fails;
    BerthCoreAction action = order->action;
    end_order(sim, guest);
    sim->metrics->balloons += ok && action.balloon_mib > guest->balloon_mib;
    if (ok)
        sim_world_resize(sim, guest, &action);
    sim->metrics->resizes += ok;
    send_result(sim, BERTH_EVENT_GUEST_RESIZED, guest, guest->node, ok);
}

/* --- ends --------------------------------------------------------------------------------------- */

static gint64 timeout_of(SimCost which)
{
    return which == SIM_COST_STOP_USEC ? STOP_TIMEOUT_USEC : RELEASE_TIMEOUT_USEC;
}

/* ORDER, which was not done or not heard of, is there again after a pause. */
static void ask_again(Sim *sim, SimOrder *order, SimCost which)
{
    gint64 pause = MIN(RETRY_MIN_USEC << MIN(order->tries, 5u), RETRY_MAX_USEC);
    if (order->fault == SIM_END_UNHEARD)
        pause = timeout_of(which);
    order->tries += order->fault == SIM_END_REFUSED;
    order->fails = sim_failures_hits(sim, &order->fault);
    sim_timer_set(sim, &order->timer, SIM_TIMER_ORDER, sim->now_usec + pause + cost(sim, which));
}

static void hang(Sim *sim, SimOrder *order, SimCost which)
{
    SimNode *node = sim_world_node(sim, order->action.node);
    if (!order->is_hung) {
        order->is_hung = TRUE;
        sim_timer_set(sim, &order->timer, SIM_TIMER_ORDER, sim->now_usec + timeout_of(which));
        return;
    }
    if (which == SIM_COST_RELEASE_USEC) /* a STOP goes with the agent */
        order_free(sim, order);
    sim_failures_restart_agent(sim, node);
}

/* TRUE: ORDER was not done, and may be gone. */
static gboolean is_not_done(Sim *sim, SimOrder *order, SimCost which)
{
    SimEndFault fault = order->fault;
    if (!order->fails || !sim_world_node(sim, order->action.node)->is_up)
        return FALSE;
    sim->metrics->failed_actions += !order->is_hung;
    sim->metrics->ends_failed += !order->is_hung;
    if (fault == SIM_END_REFUSED)
        ask_again(sim, order, which);
    else if (fault == SIM_END_HANGS)
        hang(sim, order, which);
    return fault != SIM_END_UNHEARD;
}

/* That it has ended is told by itself; and once more if STOP is asked for again, as its answer was lost. */
static void stop_due(Sim *sim, SimGuest *guest)
{
    gboolean is_unheard = guest->stop->fails && guest->stop->fault == SIM_END_UNHEARD;
    BerthGuestId id = sim_guest_id(guest);
    if (is_not_done(sim, guest->stop, SIM_COST_STOP_USEC))
        return;
    sim_orders_cancel(sim, guest);
    guest->run->end_usec = sim->now_usec;
    set_phase(sim, guest, SIM_GUEST_STOPPED);
    sim_reports_end(sim, guest);
    guest->is_told = TRUE;
    sim_send_guest(sim, BERTH_EVENT_GUEST_EXITED, guest);
    if (is_unheard && sim_run_find_guest(sim, &id) != NULL)
        sim_send_guest(sim, BERTH_EVENT_GUEST_EXITED, guest);
}

/* Of a guest, or of what is left of one; also where there is nothing any more. */
static void release_due(Sim *sim, SimOrder *order)
{
    BerthCoreAction action = order->action;
    gboolean is_down = !sim_world_node(sim, action.node)->is_up;
    gboolean is_unheard = order->fails && order->fault == SIM_END_UNHEARD;
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_GUEST_RELEASED, .guest = action.guest, .node = action.node};
    if (is_not_done(sim, order, SIM_COST_RELEASE_USEC))
        return;
    SimGuest *guest = sim_run_find_guest(sim, &action.guest);
    if (guest != NULL && guest->node == action.node && !is_down)
        remove_guest(sim, guest);
    if (is_unheard && !is_down) {
        ask_again(sim, order, SIM_COST_RELEASE_USEC);
        return;
    }
    order_free(sim, order);
    if (!is_down) /* else nobody is there to answer: the core asks again, or fences */
        sim_send(sim, &event);
}

static void fence_due(Sim *sim, SimOrder *order)
{
    gboolean fails = order->fails;
    BerthCoreEvent event = {.kind = fails ? BERTH_EVENT_FENCE_FAILED : BERTH_EVENT_GUEST_FENCED,
                            .guest = order->action.guest,
                            .node = order->action.node};
    SimGuest *guest = sim_run_find_guest(sim, &event.guest);
    order_free(sim, order);
    if (!fails && guest != NULL)
        remove_guest(sim, guest);
    sim->metrics->failed_actions += fails;
    sim_send(sim, &event);
}

void sim_orders_due(Sim *sim, SimOrder *order)
{
    SimGuest *guest = sim_run_find_guest(sim, &order->action.guest);
    switch (order->action.kind) {
    case BERTH_ACTION_START:
    case BERTH_ACTION_RESTORE:
        start_due(sim, guest, order);
        break;
    case BERTH_ACTION_MIGRATE:
        migrate_due(sim, guest, order);
        break;
    case BERTH_ACTION_CHECKPOINT:
        checkpoint_due(sim, guest, order);
        break;
    case BERTH_ACTION_FREEZE:
    case BERTH_ACTION_THAW:
        freeze_due(sim, guest, order);
        break;
    case BERTH_ACTION_RESIZE:
        resize_due(sim, guest, order);
        break;
    case BERTH_ACTION_STAY:
        break;
    case BERTH_ACTION_STOP:
        stop_due(sim, guest);
        break;
    case BERTH_ACTION_RELEASE:
        release_due(sim, order);
        break;
    case BERTH_ACTION_FENCE:
        fence_due(sim, order);
        break;
    }
}
