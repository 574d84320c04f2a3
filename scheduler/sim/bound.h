/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What no scheduler can exceed: demand itself against capacity. */

#include "scheduler/sim/sim.h"

/* Instants at which the memory's bound may begin: the first arrival, and others at equal distances. */
#define SIM_BOUND_SPLITS 16u

/* Reads WORKLOAD once. METRICS as sim_run() fills them, of a machine without borders inside. Jobs that are too large
 * are refused.
 *
 * Work done by the trace's end T is the least of these. Let job i come at r, run for R, and have done c(p) of CPU and
 * needed m(p) of memory-time when it has come as far as p; the machine has C of CPU and M of memory. Whatever
 * is done, none has come further by t than a(t) = min(R, t - r), or 0 before r.
 *
 * - CPU, for each s: what is done by s is at most A(s), the sum of c(a(s)), and what is done after it at most C (T - s).
 *   The least of all s is what a queue of divisible work with arrivals A and rate C has served (min-plus).
 * - Memory, for each split s: let p be how far a job was at s, and q at T. What it has done is c(q) <= c(a(s)) + g, g =
 *   c(max(q, a(s))) - c(a(s)), and since p <= a(s) it has needed m(max(q, a(s))) - m(a(s)) at least after s. All jobs
 *   together can have needed M (T - s). So the sum of g is at most that of the knapsack in which each job, beyond a(s)
 *   and up to a(T), is a curve of work against memory-time, which may be followed as far as there is memory
 *   (knapsack.h). Its usage may vary: it is taken from its beginning, at the best ratios that can be had so.
 *
 * The makespan is the least that there can be: neither the last
 * job can end before, nor either of both queues. Waits are those of the CPU queue in order of arrival,
 * a figure to compare with and no bound (short jobs first wait less). */
gboolean sim_bound_run(const SimConfig *config, SimWorkload *workload, const SimUsageModel *usage,
                       SimMetrics *out_metrics, GError **error);
