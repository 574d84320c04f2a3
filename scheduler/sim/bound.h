/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What no scheduler can exceed: demand itself against capacity. */

#include "scheduler/sim/sim.h"

/* Reads WORKLOAD once. METRICS as sim_run() fills them, of a machine without borders inside:
 *
 * Work done by the trace's end is the least of three bounds: what was offered (each job from its
 * arrival on, at full speed); what fits the CPU, a queue of divisible work with that arrival curve
 * and the machine's rate (min-plus: W(t) = min over s of A(s) + C (t - s)); and what fits the
 * memory, the fractional knapsack: jobs by CPU per memory-second, largest first, until the
 * memory-time of the machine is used up. The makespan is the least that there can be: neither the last
 * job can end before, nor either of both queues. Jobs that are too large are refused. Waits are those of the CPU queue in order of arrival,
 * a figure to compare with and no bound (short jobs first wait less). */
gboolean sim_bound_run(const SimConfig *config, SimWorkload *workload, const SimUsageModel *usage,
                       SimMetrics *out_metrics, GError **error);
