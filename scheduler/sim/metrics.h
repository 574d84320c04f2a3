/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a simulation is measured by. */

#include "scheduler/sim/job.h"
#include "scheduler/sim/quantile.h"
#include "scheduler/sim/timeline.h"

#define SIM_WIDTH_CLASSES 7

__extension__ typedef unsigned __int128 SimSum;

/* Instants of all nodes together; the world keeps them up to date. */
typedef struct {
    guint64 cpu_served_milli;
    guint64 cpu_wanted_milli;
    guint64 memory_held_mib;
    guint64 reserved_vcpus; /* by guaranteed guests */
    guint64 reserved_mib;
    guint64 slack_vcpus; /* by opportunistic ones */
    guint64 guaranteed_wanted_milli, guaranteed_short_milli;
    guint64 guaranteed_wanted_mib, guaranteed_short_mib;
    guint64 waiting; /* jobs */
    guint64 running;
} SimTotals;

typedef struct {
    gint64 start_usec; /* first */
    gint64 end_usec;
    gboolean is_completed;
    gboolean is_killed;
    gboolean is_refused;          /* it is larger than the machine; it has no times */
    guint n_moves, n_checkpoints; /* of its guests, that were done */
} SimOutcome;

typedef struct {
    /* of the run */
    double capacity_vcpus, capacity_mib;
    gint64 trace_end_usec;
    /* jobs */
    guint64 jobs;        /* that ended */
    guint64 refused;     /* larger than the machine */
    guint64 kills;       /* stopped before they were done */
    guint64 lost;        /* ended because of node failures */
    guint64 limit_kills; /* of the kills: at a limit that was too short, to be submitted again */
    guint64 limit_extensions; /* jobs that stood still at one, as checkpoints, and went on */
    double wait_sum_s, start_wait_sum_s, slowdown_sum;
    gint64 first_submit_usec, last_end_usec;
    SimQuantiles *waits; /* seconds */
    SimQuantiles *waits_by_width[SIM_WIDTH_CLASSES];
    double wait_sum_by_width_s[SIM_WIDTH_CLASSES];
    /* actions that were done */
    guint64 migrations, checkpoints, restores, freezes, thaws, resizes, node_failures,
        failed_actions;
    guint64 ends_failed;    /* of the failed actions: STOP and RELEASE */
    guint64 agent_restarts; /* as one of these hung */
    guint64 balloons;       /* of the resizes: those by which a guest gave memory back */
    guint64 guest_starts, opportunistic_starts;
    /* integrals over time, in usec times the unit of SimTotals */
    SimSum guaranteed_wanted_cpu, guaranteed_short_cpu, guaranteed_wanted_mem, guaranteed_short_mem;
    /* useful: of progress that was not lost */
    double useful_cpu_s, useful_mib_s;         /* in all */
    double useful_cpu_end_s, useful_mib_end_s; /* done by the trace's end */
    double lost_cpu_s;
    SimTimeline *timeline;
    guint64 steps; /* events handled */
} SimMetrics;

void sim_metrics_init(SimMetrics *metrics);
void sim_metrics_clear(SimMetrics *metrics);

/* Response time less the job's own run time: for a job that starts once and is never slowed, the
 * usual wait. */
double sim_metrics_wait_s(const SimJob *job, const SimOutcome *outcome);
/* max(1, response / max(run, 10 s)) (Feitelson et al. 1997). */
double sim_metrics_slowdown(const SimJob *job, const SimOutcome *outcome);
void sim_metrics_add_job(SimMetrics *metrics, const SimJob *job, const SimOutcome *outcome);
/* TOTALS were so for LENGTH_USEC, up to NOW_USEC. */
void sim_metrics_pass(SimMetrics *metrics, const SimTotals *totals, gint64 now_usec,
                      gint64 length_usec);

guint sim_width_class(guint64 vcpus);
const char *sim_width_name(guint class);
