/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What actions cost in the simulated world: time, during which room is held at both ends. */

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
    SIM_COST_N,
} SimCost;

typedef struct {
    gint64 values[SIM_COST_N];
} SimCosts;

typedef struct {
    const char *name;
    gint64 value; /* the default */
    const char *meaning;
    const char *source;
} SimCostInfo;

const SimCostInfo *sim_cost_info(SimCost cost);
/* Of guests; and of processes on bare nodes, where all is free. */
void sim_costs_of_guests(SimCosts *out_costs);
void sim_costs_of_processes(SimCosts *out_costs);
/* "boot_usec=2000000": sets one of the table by its name. */
gboolean sim_costs_parse(SimCosts *costs, const char *text, GError **error);

/* Copying MEMORY_MIB while CPU_MILLI dirty it; N_TRANSFERS (at least 1) share the link. What is
 * dirtied while copying is copied again: 1 / (1 - dirty rate / bandwidth) as much (Clark et al.
 * 2005), at most four times, as a migration that does not converge is throttled until it does. */
gint64 sim_costs_migrate_usec(const SimCosts *costs, guint64 memory_mib, guint32 cpu_milli,
                              guint n_transfers);
gint64 sim_costs_checkpoint_usec(const SimCosts *costs, guint64 memory_mib, guint n_transfers);
gint64 sim_costs_restore_usec(const SimCosts *costs, guint64 memory_mib, guint n_transfers);
