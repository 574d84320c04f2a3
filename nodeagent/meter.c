/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when guests and node are measured. Three things are measured, each at its own price: what the kernel counts of
 * each QEMU and of the host, by reading small files from the loop, every interval, and of what is near a
 * limit more often; the domains' traffic, for which libvirt has to ask each QEMU, rarely; and their states with it, and
 * when one has stopped. A libvirt that does not answer skips measurements; one question is under way at a
 * time. Guests' small duties hang on it (consoles are bounded, paused guests resumed), so that it goes
 * on whether or not a scheduler wants reports. */
#include <config.h>

#include "nodeagent/meter.h"

#include "common/error.h"
#include "nodeagent/host_usage.h"

#define INTERVAL_MIN_MSEC 100u
/* As long as nobody asks for anything else. */
#define INTERVAL_DEFAULT_MSEC 5000u
/* After a domain has stopped, and again as long as it has: what it met may pass. */
#define STATES_MSEC 5000u

struct BerthMeter {
    grefcount refs;
    gboolean is_closed;
    BerthGuestTable *table;
    BerthHypervisor *hypervisor;
    const BerthNodeConfig *config;
    const BerthBackstop *backstop;
    BerthMeterFunc func;
    gpointer user_data;
    BerthPaceIntervals intervals;
    guint traffic_source;
    guint states_source; /* 0: no domain is known to stand still */
    guint look_source;
    gint64 look_usec;  /* when that is due */
    gboolean is_asked; /* somebody wants to be told */
    gboolean is_busy;  /* libvirt was asked */
    guint64 cpu_usec;  /* of all guests, since the meter was made */
    BerthPace node;
    gint64 node_told_usec;
};

static void meter_unref(BerthMeter *meter)
{
    if (g_ref_count_dec(&meter->refs))
        g_free(meter);
}

/* --- libvirt -------------------------------------------------------------------------------- */

static void take(BerthMeter *meter, const BerthDomainStats *stats)
{
    BerthGuest *guest = berth_guest_table_find_name(meter->table, stats->name);
    if (guest == NULL)
        return;
    berth_guest_measured(guest, stats);
    if (stats->paused_by_io_error)
        berth_meter_check_states(meter); /* it may not go on */
}

static void on_measured(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthMeter *meter = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) all = berth_hypervisor_stats_finish(result, &error);
    meter->is_busy = FALSE;
    if (!meter->is_closed) {
        for (guint i = 0; all != NULL && i < all->len; i++)
            take(meter, g_ptr_array_index(all, i));
        if (error != NULL) {
            g_debug("no measurement: %s", error->message);
            berth_meter_check_states(meter);
        }
    }
    meter_unref(meter);
}

/* A question that is under way is as good as a new one about traffic. */
static void ask_libvirt(BerthMeter *meter, gboolean with_traffic)
{
    if (meter->is_busy)
        return;
    meter->is_busy = TRUE;
    g_ref_count_inc(&meter->refs);
    berth_hypervisor_stats_async(meter->hypervisor, with_traffic, on_measured, meter);
}

static gboolean on_traffic_due(gpointer data)
{
    ask_libvirt(data, TRUE);
    return G_SOURCE_CONTINUE;
}

static void on_states_due(gpointer data)
{
    BerthMeter *meter = data;
    meter->states_source = 0;
    if (meter->is_busy)
        berth_meter_check_states(meter); /* it may have looked at a domain before that stopped */
    else
        ask_libvirt(meter, FALSE);
}

void berth_meter_check_states(BerthMeter *meter)
{
    if (meter->states_source == 0)
        meter->states_source = g_timeout_add_once(STATES_MSEC, on_states_due, meter);
}

/* --- the node ------------------------------------------------------------------------------- */

static void add_guest(Berth__NodeUsage *usage, const BerthGuest *guest)
{
    const Berth__Usage *of_guest = berth_guest_usage(guest);
    if (!berth_guest_is_ours(guest) || !berth_guest_has_domain(guest))
        return;
    usage->cpu_milli += of_guest->cpu_milli;
    usage->guests_host_mib += of_guest->host_memory_mib;
    usage->guests_used_mib += of_guest->memory_total_mib - of_guest->memory_available_mib;
}

/* Of what is offered, so much is left for guests, whatever else the host has. */
static BerthPaceKind pace_of_node(const BerthMeter *meter, Berth__NodeUsage *usage)
{
    guint64 offered_mib, free_mib;
    Berth__NodeUsage offered = *usage;
    if (berth_backstop_free_mib(meter->backstop, &offered_mib, &free_mib)) {
        usage->memory_free_mib = MIN(usage->memory_free_mib, MAX(free_mib, 1));
        offered.memory_total_mib = offered_mib;
        offered.memory_free_mib = usage->memory_free_mib;
    } else if (offered_mib > 0) { /* no guest is there */
        usage->memory_free_mib = MIN(usage->memory_free_mib, offered_mib);
    }
    return berth_pace_of_node(&offered, &meter->config->pace);
}

static void measure_node(BerthMeter *meter, const GPtrArray *guests, gint64 now_usec,
                         Berth__NodeUsage *usage)
{
    usage->cpu_usec = meter->cpu_usec;
    for (guint i = 0; i < guests->len; i++)
        add_guest(usage, g_ptr_array_index(guests, i));
    berth_host_usage_measure("/proc", usage);
    berth_pace_looked(&meter->node, now_usec);
    berth_pace_set(&meter->node, pace_of_node(meter, usage), now_usec);
}

static gboolean is_node_to_tell(const BerthMeter *meter, gint64 now_usec)
{
    /* Looks are made together: one that comes a little early is as good. */
    gint64 early_usec = (gint64)meter->intervals.msec[BERTH_PACE_NEAR] * 1000 / 2;
    gint64 pause_usec = (gint64)meter->intervals.msec[meter->node.kind] * 1000 - early_usec;
    return meter->node_told_usec == 0 || now_usec - meter->node_told_usec >= pause_usec;
}

static void tell_node(BerthMeter *meter, const Berth__NodeUsage *usage, gint64 now_usec)
{
    gboolean is_due = usage != NULL && is_node_to_tell(meter, now_usec);
    if (!meter->is_asked)
        return;
    if (is_due)
        meter->node_told_usec = now_usec;
    meter->func(is_due ? usage : NULL, meter->user_data);
}

/* --- looking -------------------------------------------------------------------------------- */

/* What is calm is looked at as often as all others: it costs little, and is how it is seen to wake. */
static BerthPaceIntervals look_intervals(const BerthMeter *meter)
{
    BerthPaceIntervals intervals = meter->intervals;
    intervals.msec[BERTH_PACE_CALM] = intervals.msec[BERTH_PACE_NORMAL];
    return intervals;
}

static gint64 window_usec(const BerthMeter *meter)
{
    return (gint64)meter->intervals.msec[BERTH_PACE_NORMAL] * 1000;
}

static void arm(BerthMeter *meter, const GPtrArray *guests, gint64 now_usec);

/* Together with those that are due soon. */
static void look(BerthMeter *meter)
{
    gint64 now_usec = g_get_monotonic_time();
    BerthPaceIntervals intervals = look_intervals(meter);
    gint64 until_usec = now_usec + (gint64)intervals.msec[BERTH_PACE_NEAR] * 1000 / 2;
    Berth__NodeUsage usage = BERTH__NODE_USAGE__INIT;
    g_autoptr(GPtrArray) guests = berth_guest_table_list(meter->table);
    for (guint i = 0; i < guests->len; i++) {
        BerthGuest *guest = g_ptr_array_index(guests, i);
        if (berth_pace_due_usec(berth_guest_pace(guest), &intervals) <= until_usec)
            berth_guest_look(guest, now_usec, window_usec(meter));
    }
    gboolean with_node = berth_pace_due_usec(&meter->node, &intervals) <= until_usec;
    if (with_node)
        measure_node(meter, guests, now_usec, &usage);
    arm(meter, guests, now_usec);
    tell_node(meter, with_node ? &usage : NULL, now_usec);
}

static void on_look_due(gpointer data)
{
    BerthMeter *meter = data;
    meter->look_source = 0;
    look(meter);
}

static gint64 due_usec(const BerthMeter *meter, const GPtrArray *guests)
{
    BerthPaceIntervals intervals = look_intervals(meter);
    gint64 usec = berth_pace_due_usec(&meter->node, &intervals);
    for (guint i = 0; i < guests->len; i++)
        usec = MIN(usec,
                   berth_pace_due_usec(berth_guest_pace(g_ptr_array_index(guests, i)), &intervals));
    return usec;
}

/* Guests that come are looked at with the next. What is due already is waited for a little, so that there are more by then, but
 * not once more for each of them. */
static void arm(BerthMeter *meter, const GPtrArray *guests, gint64 now_usec)
{
    gint64 least_usec = now_usec + INTERVAL_MIN_MSEC * 1000;
    if (meter->look_source != 0)
        least_usec = MIN(least_usec, meter->look_usec);
    gint64 look_usec = MAX(due_usec(meter, guests), least_usec);
    if (meter->look_source != 0 && meter->look_usec == look_usec)
        return;
    g_clear_handle_id(&meter->look_source, g_source_remove);
    meter->look_usec = look_usec;
    meter->look_source = g_timeout_add_once((guint)((MAX(look_usec - now_usec, 0) + 999) / 1000),
                                            on_look_due, meter);
}

/* --- life ----------------------------------------------------------------------------------- */

BerthMeter *berth_meter_new(BerthGuestTable *table, BerthHypervisor *hypervisor,
                            const BerthNodeConfig *config, const BerthBackstop *backstop,
                            BerthMeterFunc func, gpointer user_data)
{
    BerthMeter *meter = g_new0(BerthMeter, 1);
    g_ref_count_init(&meter->refs);
    meter->table = table;
    meter->hypervisor = hypervisor;
    meter->config = config;
    meter->backstop = backstop;
    meter->func = func;
    meter->user_data = user_data;
    for (guint i = 0; i < BERTH_N_PACES; i++)
        meter->intervals.msec[i] = INTERVAL_DEFAULT_MSEC;
    meter->traffic_source =
        g_timeout_add(config->traffic_interval_sec * 1000, on_traffic_due, meter);
    ask_libvirt(meter, TRUE);
    look(meter);
    return meter;
}

void berth_meter_free(BerthMeter *meter)
{
    if (meter == NULL)
        return;
    meter->is_closed = TRUE;
    g_clear_handle_id(&meter->traffic_source, g_source_remove);
    g_clear_handle_id(&meter->states_source, g_source_remove);
    g_clear_handle_id(&meter->look_source, g_source_remove);
    meter_unref(meter);
}

void berth_meter_report(BerthMeter *meter)
{
    meter->node_told_usec = 0;
    meter->node.looked_usec = 0;
    look(meter);
}

void berth_meter_count(BerthMeter *meter, guint64 cpu_usec)
{
    meter->cpu_usec += cpu_usec;
}

void berth_meter_press(BerthMeter *meter, BerthGuest *guest)
{
    gint64 now_usec = g_get_monotonic_time();
    g_autoptr(GPtrArray) guests = berth_guest_table_list(meter->table);
    berth_guest_look(guest, now_usec, window_usec(meter));
    arm(meter, guests, now_usec);
    tell_node(meter, NULL, now_usec);
}

void berth_meter_look_soon(BerthMeter *meter)
{
    g_autoptr(GPtrArray) guests = berth_guest_table_list(meter->table);
    arm(meter, guests, g_get_monotonic_time());
}

void berth_meter_set_intervals(BerthMeter *meter, const BerthPaceIntervals *intervals)
{
    for (guint i = 0; i < BERTH_N_PACES; i++)
        meter->intervals.msec[i] = MAX(intervals->msec[i], INTERVAL_MIN_MSEC);
    meter->is_asked = TRUE;
    meter->node_told_usec = 0;
    meter->node.looked_usec = 0;
    look(meter);
}
