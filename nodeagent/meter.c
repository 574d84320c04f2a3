/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when and how guests and node are measured. A libvirt that does not answer skips measurements;
 * one is under way at a time. Guests' small duties hang on it (consoles are bounded, paused guests
 * resumed), so that it goes on whether or not a scheduler wants reports. */
#include <config.h>

#include "nodeagent/meter.h"

#include "common/error.h"
#include "nodeagent/host_usage.h"

#define INTERVAL_MIN_MSEC 100u
#define DUTY_MSEC         5000u

struct BerthMeter {
    grefcount refs;
    gboolean is_closed;
    BerthGuestTable *table;
    BerthHypervisor *hypervisor;
    BerthMeterFunc func;
    gpointer user_data;
    guint duty_source;
    guint report_source; /* 0: nobody has asked for reports yet */
    gboolean is_busy;
    gboolean is_told; /* the measurement under way is to be told of */
    guint64 cpu_usec; /* of all guests, since the meter was made */
};

static void meter_unref(BerthMeter *meter)
{
    if (g_ref_count_dec(&meter->refs))
        g_free(meter);
}

static void tell(BerthMeter *meter)
{
    Berth__NodeUsage usage = BERTH__NODE_USAGE__INIT;
    usage.cpu_usec = meter->cpu_usec;
    berth_host_usage_measure("/proc", &usage);
    meter->func(&usage, meter->user_data);
}

static void take(BerthMeter *meter, const BerthDomainStats *stats)
{
    BerthGuest *guest = berth_guest_table_find_name(meter->table, stats->name);
    if (guest == NULL)
        return;
    berth_guest_measured(guest, stats);
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
        if (error != NULL)
            g_debug("no measurement: %s", error->message);
        if (meter->is_told)
            tell(meter);
        meter->is_told = FALSE;
    }
    meter_unref(meter);
}

/* TELL: of the result. A measurement that is under way is as good as a new one. */
static void measure(BerthMeter *meter, gboolean tell)
{
    meter->is_told = meter->is_told || tell;
    if (meter->is_busy)
        return;
    meter->is_busy = TRUE;
    g_ref_count_inc(&meter->refs);
    berth_hypervisor_stats_async(meter->hypervisor, on_measured, meter);
}

static gboolean on_duty_due(gpointer data)
{
    measure(data, FALSE);
    return G_SOURCE_CONTINUE;
}

static gboolean on_report_due(gpointer data)
{
    measure(data, TRUE);
    return G_SOURCE_CONTINUE;
}

BerthMeter *berth_meter_new(BerthGuestTable *table, BerthHypervisor *hypervisor,
                            BerthMeterFunc func, gpointer user_data)
{
    BerthMeter *meter = g_new0(BerthMeter, 1);
    g_ref_count_init(&meter->refs);
    meter->table = table;
    meter->hypervisor = hypervisor;
    meter->func = func;
    meter->user_data = user_data;
    meter->duty_source = g_timeout_add(DUTY_MSEC, on_duty_due, meter);
    measure(meter, FALSE);
    return meter;
}

void berth_meter_free(BerthMeter *meter)
{
    if (meter == NULL)
        return;
    meter->is_closed = TRUE;
    g_clear_handle_id(&meter->duty_source, g_source_remove);
    g_clear_handle_id(&meter->report_source, g_source_remove);
    meter_unref(meter);
}

void berth_meter_count(BerthMeter *meter, guint64 cpu_usec)
{
    meter->cpu_usec += cpu_usec;
}

void berth_meter_set_interval(BerthMeter *meter, guint interval_msec)
{
    g_clear_handle_id(&meter->report_source, g_source_remove);
    meter->report_source =
        g_timeout_add(MAX(interval_msec, INTERVAL_MIN_MSEC), on_report_due, meter);
    measure(meter, TRUE);
}
