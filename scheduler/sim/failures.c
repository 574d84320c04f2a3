/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what goes wrong: nodes that fail and are repaired, actions that fail, agents that begin anew. All chance comes from
 * the seed, and that of one node does not depend on what others do. */
#include "config.h"

#include "scheduler/sim/state.h"

#include <math.h>

#define NODE_SALT   G_GUINT64_CONSTANT(0x6e6f6465)
#define ACTION_SALT G_GUINT64_CONSTANT(0x616374)

/* Exponential with this mean, at least a second. */
static gint64 draw(Sim *sim, SimNode *node, gint64 mean_usec)
{
    guint64 drawn = sim_mix(sim_mix(sim->config->seed ^ NODE_SALT, node->handle), ++node->n_events);
    double uniform = ((double)(drawn >> 11) + 1) / 9007199254740993.0; /* (0, 1) */
    double usec = -log(uniform) * (double)mean_usec;
    return (gint64)CLAMP(usec, (double)G_USEC_PER_SEC, 1e15);
}

void sim_failures_begin(Sim *sim)
{
    for (guint32 i = 0; sim->config->failures.mtbf_usec > 0 && i < sim->machine.nodes; i++)
        sim_timer_set(sim, &sim->nodes[i].timer, SIM_TIMER_NODE,
                      draw(sim, &sim->nodes[i], sim->config->failures.mtbf_usec));
}

gboolean sim_failures_hits(Sim *sim, SimEndFault *out_fault)
{
    guint32 permille = sim->config->failures.action_permille;
    guint64 drawn = sim_mix(sim->config->seed ^ ACTION_SALT, ++sim->n_orders);
    *out_fault = (SimEndFault)(drawn / 1000 % SIM_END_FAULT_N);
    return permille > 0 && drawn % 1000 < permille;
}

void sim_failures_restart_agent(Sim *sim, SimNode *node)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_LEFT, .node = node->handle};
    for (guint i = 0; i < node->guests->len; i++)
        sim_orders_forget_stop(sim, g_ptr_array_index(node->guests, i));
    sim->metrics->agent_restarts++;
    sim_send(sim, &event);
    sim_send_joined(sim, node);
}

static void lose_guests(Sim *sim, SimNode *node)
{
    while (node->incoming->len > 0) {
        SimGuest *guest = g_ptr_array_index(node->incoming, 0);
        BerthCoreEvent event = {
            .kind = BERTH_EVENT_GUEST_MIGRATED, .guest = sim_guest_id(guest), .node = guest->node};
        event.result.reason = BERTH_REASON_NODE_LOST;
        sim_orders_cancel(sim, guest);
        guest->phase = SIM_GUEST_RUNNING;
        sim_world_update(sim, guest);
        sim_send(sim, &event);
    }
    while (node->guests->len > 0) {
        SimGuest *guest = g_ptr_array_index(node->guests, node->guests->len - 1);
        sim_orders_cancel(sim, guest);
        sim_reports_end(sim, guest);
        sim_world_remove(sim, guest);
    }
}

static void fail(Sim *sim, SimNode *node)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_LEFT, .node = node->handle};
    sim->metrics->node_failures++;
    lose_guests(sim, node);
    node->is_up = FALSE;
    sim_timer_clear(sim, &node->report);
    sim_timer_set(sim, &node->timer, SIM_TIMER_NODE,
                  sim->now_usec + draw(sim, node, sim->config->failures.mttr_usec));
    sim_send(sim, &event);
}

static void repair(Sim *sim, SimNode *node)
{
    node->is_up = TRUE;
    sim_timer_set(sim, &node->timer, SIM_TIMER_NODE,
                  sim->now_usec + draw(sim, node, sim->config->failures.mtbf_usec));
    sim_send_joined(sim, node);
}

void sim_failures_due(Sim *sim, SimNode *node)
{
    if (node->is_up)
        fail(sim, node);
    else
        repair(sim, node);
}
