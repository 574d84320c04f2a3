/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what counts as near a limit, as calm, and as a change, and when what is so is to be measured. */
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

/* What one near a limit has more or less of its memory: from where that begins to where the scheduler acts there are a dozen
 * of these steps. */
#define CHANGE_PART    128u
#define CHANGE_MIN_MIB 2u
/* Above what varies by itself where many wait for CPUs. */
#define CHANGE_WAIT_PERMILLE 100u

static gboolean is_memory_near(guint64 total, guint64 available, guint percent)
{
    return total > 0 && available * 100 < total * percent;
}

static gboolean is_pressed(guint32 psi, const BerthPaceLimits *limits)
{
    return psi >= limits->near_pressure_percent * 100;
}

BerthPaceKind berth_pace_of_work(const Berth__Usage *usage)
{
    gboolean is_busy = usage->memory_total_mib == 0 || usage->cpu_milli >= CALM_CPU_MILLI ||
                       usage->psi_memory_some >= CALM_PSI || usage->psi_io_some >= CALM_PSI ||
                       usage->rate_msec == 0;
    return is_busy ? BERTH_PACE_NORMAL : BERTH_PACE_CALM;
}

BerthPaceKind berth_pace_of_memory(const Berth__Usage *usage, const BerthPaceLimits *limits)
{
    if (is_pressed(usage->psi_memory_some, limits) ||
        is_memory_near(usage->memory_total_mib, usage->memory_available_mib,
                       limits->near_memory_percent))
        return BERTH_PACE_NEAR;
    return berth_pace_of_work(usage);
}

BerthPaceKind berth_pace_of_guest(const Berth__Usage *usage, const BerthPaceLimits *limits)
{
    guint32 wait_permille = limits->near_wait_percent * 10;
    if (usage->starved_permille >= wait_permille || usage->throttled_permille >= wait_permille)
        return BERTH_PACE_NEAR;
    return berth_pace_of_memory(usage, limits);
}

static gboolean differs(guint64 a, guint64 b, guint64 by)
{
    return (a > b ? a - b : b - a) >= by;
}

static gboolean has_memory_changed(const BerthPaceMark *mark, const BerthPaceMark *now)
{
    guint64 step_mib = MAX(now->memory_total_mib / CHANGE_PART, CHANGE_MIN_MIB);
    return mark->memory_total_mib != now->memory_total_mib || mark->oom_kills != now->oom_kills ||
           differs(mark->memory_available_mib, now->memory_available_mib, step_mib) ||
           differs(mark->swap_used_mib, now->swap_used_mib, step_mib) ||
           differs(mark->psi_memory_some, now->psi_memory_some, CALM_PSI);
}

gboolean berth_pace_has_changed(BerthPaceMark *mark, const Berth__Usage *usage,
                                const BerthPaceLimits *limits)
{
    BerthPaceMark now = {
        .memory_total_mib = usage->memory_total_mib,
        .memory_available_mib = usage->memory_available_mib,
        .swap_used_mib = usage->swap_used_mib,
        .oom_kills = usage->oom_kills,
        .psi_memory_some = usage->psi_memory_some,
        .starved_permille = usage->starved_permille,
        .throttled_permille = usage->throttled_permille,
    };
    if (!is_pressed(usage->psi_memory_some, limits) && !has_memory_changed(mark, &now) &&
        !differs(mark->starved_permille, now.starved_permille, CHANGE_WAIT_PERMILLE) &&
        !differs(mark->throttled_permille, now.throttled_permille, CHANGE_WAIT_PERMILLE))
        return FALSE;
    *mark = now;
    return TRUE;
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

void berth_pace_look_soon(BerthPace *pace)
{
    pace->is_due_soon = TRUE;
}

void berth_pace_looked(BerthPace *pace, gint64 now_usec)
{
    pace->looked_usec = now_usec;
    pace->is_due_soon = FALSE;
}

gint64 berth_pace_due_usec(const BerthPace *pace, const BerthPaceIntervals *intervals)
{
    if (pace->looked_usec == 0)
        return 0;
    BerthPaceKind kind = pace->is_due_soon ? BERTH_PACE_NEAR : pace->kind;
    return pace->looked_usec + (gint64)intervals->msec[kind] * 1000;
}
