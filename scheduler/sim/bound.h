/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What no scheduler can exceed: demand itself against capacity. */

#include "scheduler/sim/sim.h"

/* Reads WORKLOAD once. METRICS as sim_run() fills them, of a machine without borders inside, for which each job is work
 * that can be divided at will. Jobs that are too large are refused.
 *
 * Work done by the trace's end, T, is the least of three bounds. Of job j, which arrives at a_j, let C_j(p) and M_j(p)
 * be the CPU and the memory-time that it uses up to progress p; neither ever falls. Whatever a policy does, up to t its
 * job has come to a progress p_j(t) <= t - a_j, as nothing goes faster than with all that it uses, and has had at least
 * M_j(p_j(t)) of memory-time for that, as a guest that has less than it uses stands still. What is lost and done again
 * only costs more.
 *
 * 1. Offered: the sum of C_j(t - a_j), A(t). Each job from its arrival on, at full speed.
 * 2. CPU: for any s <= t, what is done up to s is A(s) at most, and after it C (t - s) at most: W(t) = min over s of
 *    A(s) + C (t - s), a queue of divisible work with that arrival curve and the machine's rate (min-plus).
 * 3. Memory: likewise the sum of M_j(p_j(T)) is at most what a queue of memory-time has served by T, W_M. Let H_j be the
 *    least concave curve from 0 with C_j(p) <= H_j(M_j(p)) for all p <= T - a_j, whatever the order in which the job
 *    uses much and little of either. The sum of C_j(p_j(T)) is at most the sum of H_j(M_j(p_j(T))), and so at most
 *    the largest sum of H_j(m_j) where the m_j come to W_M. As all are concave, that is the fractional knapsack of
 *    their straight parts: by CPU per memory-time, largest first, until W_M is used up. Of a job whose usage is constant
 *    H_j is one part. Parts whose ratios differ by less than a 64th of a doubling are counted together, and with the
 *    largest of these ratios where not all of them fit. But for that it exceeds the largest sum of C_j(p_j) for which
 *    the M_j(p_j) come to W_M by less than the CPU of one part of one job: all others are done in whole parts, at whose
 *    ends C_j is H_j.
 *
 * The makespan is the least that there can be: neither the last job can end before, nor either of both queues. Waits
 * are those of the CPU queue in order of arrival, a figure to compare with and no bound (short jobs first wait less). */
gboolean sim_bound_run(const SimConfig *config, SimWorkload *workload, const SimUsageModel *usage,
                       SimMetrics *out_metrics, GError **error);
