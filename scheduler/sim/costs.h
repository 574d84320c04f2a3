/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What actions cost in the simulated world: time, during which room is held at both ends; and what
 * jobs do that traces do not tell. */

#include <glib.h>

typedef enum {
    SIM_COST_BOOT_USEC,
    SIM_COST_STOP_USEC,
    SIM_COST_RELEASE_USEC,
    SIM_COST_FENCE_USEC,
    SIM_COST_MIGRATE_FIXED_USEC,
    SIM_COST_MIGRATE_PAUSE_USEC,
    SIM_COST_MIGRATE_MIB_PER_SEC,
    SIM_COST_DIRTY_MIB_PER_CPU_SEC,
    SIM_COST_CHECKPOINT_FIXED_USEC,
    SIM_COST_RESTORE_FIXED_USEC,
    SIM_COST_CHECKPOINT_MIB_PER_SEC,
    SIM_COST_FREEZE_USEC,
    SIM_COST_RESIZE_USEC,
    SIM_COST_BALLOON_MIB_PER_SEC,
    SIM_COST_CACHE_PERMILLE,
    SIM_COST_HOST_MIB,
    SIM_COST_N,
} SimCost;

typedef struct {
    gint64 values[SIM_COST_N];
} SimCosts;

/* Of guests; and of processes on bare nodes, where all is free. */
void sim_costs_of_guests(SimCosts *out_costs);
void sim_costs_of_processes(SimCosts *out_costs);
/* "boot_usec=2000000": sets one of the table by its name. */
gboolean sim_costs_parse(SimCosts *costs, const char *text, GError **error);

/* Copying MEMORY_MIB while CPU_MILLI dirty it; N_TRANSFERS (at least 1) share the link. What is
 * dirtied while copying is copied again: 1 / (1 - dirty rate / bandwidth) as much (Clark et al.
 * 2005; measured by bench/costs at rates of 1/4, 1/2 and 3/4: within 3 %), at most four times. Beyond
 * that a migration does not converge by itself. QEMU's auto-converge slows the guest down then: one
 * that works all the time was measured to copy 3.4 times at 0.9 of the bandwidth and 8 times at 1.5 of
 * it, one that is paced by time, and hardly minds losing CPU, 16 times at all of it. That a migration is
 * ended earlier, by pausing the guest, is assumed. */
gint64 sim_costs_migrate_usec(const SimCosts *costs, guint64 memory_mib, guint32 cpu_milli,
                              guint n_transfers);
/* Until a balloon has taken MEMORY_MIB. What it gives back comes little by little, and a guest goes on
 * with the first of it: that takes as long as any resize. */
gint64 sim_costs_balloon_usec(const SimCosts *costs, guint64 memory_mib);
gint64 sim_costs_checkpoint_usec(const SimCosts *costs, guint64 memory_mib, guint n_transfers);
gint64 sim_costs_restore_usec(const SimCosts *costs, guint64 memory_mib, guint n_transfers);
