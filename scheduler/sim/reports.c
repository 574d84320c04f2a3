/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the simulated agents tell the core about usage.
 *
 * A guest is reported one interval after what it uses has changed. While it stays the same, the
 * pauses between its reports double, up to an hour: a report that says nothing new would teach the
 * core nothing, but time must pass for predictions to sink. A node is reported one interval after
 * one of its guests was, and at once when it becomes short of something (the kernel's pressure
 * triggers). Only a policy that looks at usage gets reports. */
#include "config.h"

#include "scheduler/sim/state.h"

#define PPM            1000000u
#define PAUSE_MAX_USEC (3600 * (gint64)G_USEC_PER_SEC)

static gint64 interval(const Sim *sim)
{
    return sim->config->report_interval_usec;
}

static void arm(Sim *sim, SimGuest *guest)
{
    sim_timer_set(sim, &guest->report, SIM_TIMER_REPORT,
                  sim->now_usec + guest->report_interval_usec);
}

void sim_reports_begin(Sim *sim, SimGuest *guest)
{
    guest->reported_usec = guest->counted_usec = sim->now_usec;
    guest->served_since = guest->wanted_since = guest->lost_since = 0;
    guest->reported = (SimDemand){0, 0};
    guest->report_interval_usec = interval(sim);
    if (sim->wants_reports)
        arm(sim, guest);
}

void sim_reports_end(Sim *sim, SimGuest *guest)
{
    sim_timer_clear(sim, &guest->report);
}

void sim_reports_count(Sim *sim, SimGuest *guest)
{
    SimSum length = (SimSum)(sim->now_usec - guest->counted_usec);
    guest->served_since += length * guest->served_milli;
    guest->wanted_since += length * guest->want.cpu_milli;
    guest->lost_since += length * (PPM - guest->rate_ppm);
    guest->counted_usec = sim->now_usec;
}

void sim_reports_changed(Sim *sim, SimGuest *guest)
{
    if (!core_heap_has(&guest->report.link))
        return;
    guest->report_interval_usec = interval(sim);
    if (guest->report.due_usec > sim->now_usec + interval(sim))
        arm(sim, guest);
}

static void node_soon(Sim *sim, SimNode *node, gint64 pause_usec)
{
    gint64 due = sim->now_usec + pause_usec;
    if (!sim->wants_reports || !node->is_up ||
        (core_heap_has(&node->report.link) && node->report.due_usec <= due))
        return;
    sim_timer_set(sim, &node->report, SIM_TIMER_NODE_REPORT, due);
}

void sim_reports_pressure(Sim *sim, SimNode *node)
{
    node_soon(sim, node, 0);
}

static guint32 permille(SimSum part, SimSum whole)
{
    return whole > 0 ? (guint32)MIN(part * 1000 / whole, 1000) : 0;
}

static BerthCoreUsage usage_of(Sim *sim, const SimGuest *guest)
{
    SimSum length = (SimSum)(sim->now_usec - guest->reported_usec);
    guint64 dirty = (guint64)sim->costs.values[SIM_COST_DIRTY_MIB_PER_CPU_SEC];
    guint64 host_mib = (guint64)sim->costs.values[SIM_COST_HOST_MIB];
    return (BerthCoreUsage){
        .cpu_milli = length > 0 ? (guint32)(guest->served_since / length) : guest->served_milli,
        .memory_used_mib = guest->held_mib,
        .memory_available_mib = guest->size.memory_mib - guest->balloon_mib - guest->held_mib,
        .cpu_pressure_permille =
            permille(guest->wanted_since - guest->served_since, guest->wanted_since),
        .memory_pressure_permille =
            guest->run->demand.memory_mib > guest->size.memory_mib - guest->balloon_mib ? 1000 : 0,
        .starved_usec = (gint64)(guest->lost_since / PPM),
        .dirty_mib_per_sec = (guint32)(dirty * guest->served_milli / 1000),
        .touched_mib = MAX(guest->held_mib + guest->cache_mib + host_mib, 1),
    };
}

void sim_reports_due(Sim *sim, SimGuest *guest)
{
    sim_reports_count(sim, guest);
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_GUEST_REPORTED, .guest = sim_guest_id(guest), .node = guest->node};
    event.usage = usage_of(sim, guest);
    SimDemand now = {guest->served_milli, guest->held_mib};
    gboolean is_same =
        now.cpu_milli == guest->reported.cpu_milli && now.memory_mib == guest->reported.memory_mib;
    guest->report_interval_usec =
        is_same ? MIN(2 * guest->report_interval_usec, PAUSE_MAX_USEC) : interval(sim);
    guest->reported = now;
    guest->reported_usec = sim->now_usec;
    guest->served_since = guest->wanted_since = guest->lost_since = 0;
    arm(sim, guest);
    node_soon(sim, sim_world_node(sim, guest->node), interval(sim));
    sim_send(sim, &event);
}

void sim_reports_node_due(Sim *sim, SimNode *node)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_REPORTED, .node = node->handle};
    guint64 served = 0, held = 0, short_mib = 0;
    for (guint i = 0; i < node->guests->len; i++) {
        const SimGuest *guest = g_ptr_array_index(node->guests, i);
        served += guest->served_milli;
        held += guest->held_mib;
        short_mib += sim_world_may_hold_mib(guest) - guest->held_mib;
    }
    event.node_usage.cpu_milli = (guint32)served;
    event.node_usage.memory_used_mib = held;
    event.node_usage.cpu_pressure_permille =
        permille(node->wanted_milli - served, node->wanted_milli);
    event.node_usage.memory_pressure_permille =
        short_mib > 0 ? MAX(permille(short_mib, held + short_mib), 100) : 0;
    /* Without page cache it says nothing that predictions do not. */
    if (sim->costs.values[SIM_COST_CACHE_PERMILLE] > 0)
        event.node_usage.memory_available_mib = MAX(sim_world_available_mib(sim, node), 1);
    if (node->is_contended)
        node_soon(sim, node, interval(sim));
    sim_send(sim, &event);
}
