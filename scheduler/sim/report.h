/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What came out, for people and for programs. */

#include "scheduler/sim/options.h"

typedef struct {
    SimPolicy policy;
    SimMetrics metrics;
} SimResult;

/* The figures that both show, derived from METRICS. 0 where there is nothing to divide by. */
typedef struct {
    double mean_wait_s, p50_wait_s, p95_wait_s, mean_start_wait_s, mean_bounded_slowdown;
    double makespan_s;
    /* over the time from the first arrival to the last (the trace's end); where all arrive at once,
     * over the makespan */
    double useful_cpu_utilisation, useful_memory_utilisation, work_done_cpu_s;
    double guaranteed_cpu_shortfall, guaranteed_memory_shortfall; /* not served / demand */
} SimFigures;
void sim_figures(const SimMetrics *metrics, SimFigures *out_figures);

/* What was simulated, and the names of columns; then a row for each policy. Where nodes or actions
 * fail, or limits are too short, what that did has columns of its own. Of the bound waits and slowdown are "-".
 * (transfer full) */
char *sim_report_head(const SimWorkload *workload, SimUsageKind usage, const SimFailures *failures);
char *sim_report_row(const SimWorkload *workload, const SimResult *result,
                     const SimFailures *failures);
/* An array with one object per policy (transfer full). */
char *sim_report_json(const SimWorkload *workload, const SimOptions *options,
                      const SimResult *results, guint n);
