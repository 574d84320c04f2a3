/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how counters become rates. Nodes are trusted with their own guests, so that what they count
 * is only kept within what can be: the core does the rest.
 *
 * Invariant: what a guest was starved of is given to the core once, however reports are lost,
 * repeated or late, and whoever restarts. */
#include "config.h"

#include "scheduler/daemon/usage.h"

/* Hundredths of a percent. */
static guint32 permille(guint32 psi)
{
    return MIN(psi / 10, 1000);
}

static void note(BerthTaskEntry *entry, const Berth__Usage *usage, gint64 now_usec)
{
    entry->measured_usec = now_usec;
    entry->cpu_seen_usec = usage->cpu_usec;
}

static guint32 cpu_milli(guint64 used_usec, gint64 passed_usec)
{
    /* Reports that come late, and then at once, say more than there is. */
    return (guint32)MIN(used_usec / MAX((guint64)passed_usec / 1000, 1), G_MAXINT32);
}

gboolean berth_usage_to_core(BerthTaskEntry *entry, gboolean runs, const Berth__Usage *usage,
                             gint64 now_usec, BerthCoreUsage *out_usage)
{
    gboolean can_compare = entry->measured_usec != 0 && entry->measured_usec < now_usec &&
                           usage->cpu_usec >= entry->cpu_seen_usec;
    gboolean is_enough = entry->measured_usec == 0 && usage->rate_msec > 0;
    guint64 available_mib = MIN(usage->memory_available_mib, usage->memory_total_mib);
    if (!runs) { /* its boot is not its command's */
        entry->starved_seen_usec = usage->starved_usec;
        entry->measured_usec = 0;
        return FALSE;
    }
    if ((!can_compare && !is_enough) || usage->memory_total_mib == 0) {
        note(entry, usage, now_usec);
        return FALSE;
    }
    /* Reports come after pauses of any length, and what is used now is not the mean since the last one: the node
     * says it, if it knows. */
    guint32 mean_milli = can_compare ? cpu_milli(usage->cpu_usec - entry->cpu_seen_usec,
                                                 now_usec - entry->measured_usec)
                                     : 0;
    *out_usage = (BerthCoreUsage){
        .cpu_milli = usage->rate_msec > 0 ? usage->cpu_milli : mean_milli,
        .memory_used_mib = usage->memory_total_mib - available_mib,
        .memory_available_mib = available_mib,
        .cpu_pressure_permille = permille(usage->psi_cpu_some),
        .memory_pressure_permille = permille(usage->psi_memory_some),
        .dirty_mib_per_sec = (guint32)MIN(entry->dirty_bytes_per_sec >> 20, G_MAXINT32),
        .starved_usec = usage->starved_usec > entry->starved_seen_usec
                            ? (gint64)(usage->starved_usec - entry->starved_seen_usec)
                            : 0,
        .touched_mib = usage->host_memory_mib,
    };
    entry->starved_seen_usec = usage->starved_usec;
    note(entry, usage, now_usec);
    return TRUE;
}

static guint64 used_mib(const Berth__ReportRequest *report)
{
    guint64 sum = 0;
    for (gsize i = 0; i < report->n_guests; i++) {
        const Berth__Usage *usage = report->guests[i]->usage;
        if (usage)
            sum +=
                usage->memory_total_mib - MIN(usage->memory_available_mib, usage->memory_total_mib);
    }
    return sum;
}

void berth_usage_node_to_core(BerthNodeEntry *entry, const Berth__ReportRequest *report,
                              gint64 now_usec, BerthCoreNodeUsage *out_usage)
{
    const Berth__NodeUsage *usage = report->node;
    const Berth__NodeUsage *before = entry->usage;
    gboolean can_compare =
        before && entry->measured_usec < now_usec && usage->cpu_usec >= before->cpu_usec;
    gboolean is_told =
        usage->memory_total_mib > 0; /* by an agent that tells only of what has changed */
    guint32 mean_milli =
        can_compare ? cpu_milli(usage->cpu_usec - before->cpu_usec, now_usec - entry->measured_usec)
                    : 0;
    *out_usage = (BerthCoreNodeUsage){
        .cpu_milli = is_told ? usage->cpu_milli : mean_milli,
        .memory_used_mib = is_told ? usage->guests_used_mib : used_mib(report),
        .cpu_pressure_permille = permille(usage->psi_cpu_some),
        .memory_pressure_permille = permille(usage->psi_memory_some),
        .memory_available_mib = usage->memory_free_mib,
    };
    berth__node_usage__free_unpacked(entry->usage, NULL);
    entry->usage = berth_pb_dup(&usage->base);
    entry->measured_usec = now_usec;
}
