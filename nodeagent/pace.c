/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what counts as near a limit, and as calm, and when what is so is to be measured. */
#include <config.h>

#include "nodeagent/pace.h"

/* Near for so long after it was found to be last: what relieves it takes seconds, and is to be seen. */
#define NEAR_LINGER_USEC (10 * G_USEC_PER_SEC)
/* Nothing to do for so long, then it is calm: a job that waits for its disk or for another is not. */
#define CALM_AFTER_USEC (30 * G_USEC_PER_SEC)

/* Above what a guest that runs nothing takes for its timers, also where it is emulated. */
#define CALM_CPU_MILLI 20u
/* Of the time, in hundredths of a percent. */
#define CALM_PSI 100u

static gboolean is_memory_near(guint64 total, guint64 available, guint percent)
{
    return total > 0 && available * 100 < total * percent;
}

static gboolean is_pressed(guint32 psi, const BerthPaceLimits *limits)
{
    return psi >= limits->near_pressure_percent * 100;
}

BerthPaceKind berth_pace_of_memory(const Berth__Usage *usage, const BerthPaceLimits *limits)
{
    if (is_pressed(usage->psi_memory_some, limits) ||
        is_memory_near(usage->memory_total_mib, usage->memory_available_mib,
                       limits->near_memory_percent))
        return BERTH_PACE_NEAR;
    gboolean is_busy = usage->memory_total_mib == 0 || usage->cpu_milli >= CALM_CPU_MILLI ||
                       usage->psi_memory_some >= CALM_PSI || usage->psi_io_some >= CALM_PSI ||
                       usage->rate_msec == 0;
    return is_busy ? BERTH_PACE_NORMAL : BERTH_PACE_CALM;
}

BerthPaceKind berth_pace_of_guest(const Berth__Usage *usage, const BerthPaceLimits *limits)
{
    guint32 wait_permille = limits->near_wait_percent * 10;
    if (usage->starved_permille >= wait_permille || usage->throttled_permille >= wait_permille)
        return BERTH_PACE_NEAR;
    return berth_pace_of_memory(usage, limits);
}

BerthPaceKind berth_pace_of_node(const Berth__NodeUsage *usage, const BerthPaceLimits *limits)
{
    if (is_pressed(usage->psi_memory_some, limits) ||
        is_memory_near(usage->memory_total_mib, usage->memory_free_mib,
                       limits->near_node_memory_percent))
        return BERTH_PACE_NEAR;
    gboolean is_busy = usage->psi_cpu_some >= CALM_PSI || usage->psi_memory_some >= CALM_PSI ||
                       usage->cpu_milli >= CALM_CPU_MILLI * 5;
    return is_busy ? BERTH_PACE_NORMAL : BERTH_PACE_CALM;
}

void berth_pace_set(BerthPace *pace, BerthPaceKind kind, gint64 now_usec)
{
    if (kind == BERTH_PACE_NEAR || !pace->is_known)
        pace->near_usec = kind == BERTH_PACE_NEAR ? now_usec : now_usec - NEAR_LINGER_USEC;
    if (kind != BERTH_PACE_CALM || !pace->is_known)
        pace->awake_usec = now_usec;
    if (now_usec - pace->near_usec < NEAR_LINGER_USEC)
        pace->kind = BERTH_PACE_NEAR;
    else if (now_usec - pace->awake_usec < CALM_AFTER_USEC)
        pace->kind = BERTH_PACE_NORMAL;
    else
        pace->kind = BERTH_PACE_CALM;
    pace->is_known = TRUE;
}

void berth_pace_looked(BerthPace *pace, gint64 now_usec)
{
    pace->looked_usec = now_usec;
}

gint64 berth_pace_due_usec(const BerthPace *pace, const BerthPaceIntervals *intervals)
{
    if (pace->looked_usec == 0)
        return 0;
    return pace->looked_usec + (gint64)intervals->msec[pace->kind] * 1000;
}
