/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One simulation: a workload, a policy, a world; and what came out. */

#include "scheduler/core/core.h"
#include "scheduler/sim/costs.h"
#include "scheduler/sim/metrics.h"
#include "scheduler/sim/usage.h"
#include "scheduler/sim/workload.h"

#include <signal.h>

typedef enum {
    SIM_POLICY_FCFS,
    SIM_POLICY_EASY,
    SIM_POLICY_CONSERVATIVE,
    SIM_POLICY_RESERVED,
    SIM_POLICY_BERTH,
    SIM_POLICY_BOUND,
    SIM_POLICY_N,
} SimPolicy;

/* Planned starts of CONSERVATIVE, at least; the core's default is EASY's. */
#define SIM_CONSERVATIVE_DEPTH 32

const char *sim_policy_name(SimPolicy policy);

typedef struct {
    gint64 mtbf_usec;        /* of each node, exponential; 0 = nodes do not fail */
    gint64 mttr_usec;        /* likewise its repair */
    guint32 action_permille; /* of actions that fail */
} SimFailures;

typedef enum {
    SIM_STAY_STARTED,
    SIM_STAY_MOVED,
    SIM_STAY_RESTORED,
    SIM_STAY_PROMOTED, /* it was there before, in slack */
} SimStayOrigin;

/* A guest was on a node, from when it was placed there until nothing of it was left. */
typedef struct {
    const SimJob *job;
    guint32 guest, node;
    guint32 vcpus; /* when it left */
    gint64 from_usec, to_usec;
    gboolean is_opportunistic;
    SimStayOrigin origin;     /* how it came there */
    gboolean is_checkpointed; /* so it left */
} SimStay;

/* Where a run tells what happens; each may be NULL. */
typedef struct {
    void (*stay)(const SimStay *stay, gpointer user_data);
    /* A job has ended, or was refused. */
    void (*job)(const SimJob *job, const SimOutcome *outcome, gpointer user_data);
    /* Something about the job with the number EXPLAIN. */
    void (*explain)(gint64 now_usec, const SimJob *job, const char *text, gpointer user_data);
    /* Entries of the core's log (scheduler/core/journal.h), complete lines. */
    void (*journal)(const char *text, gpointer user_data);
    void (*progress)(guint64 n_arrived, guint64 n_ended, gint64 now_usec, gpointer user_data);
    gpointer user_data;
} SimHooks;

typedef struct {
    SimPolicy policy;
    guint32 features_off;  /* BerthCoreFeature, of BERTH */
    const gint64 *tunings; /* of the core; NULL = its defaults */
    SimCosts costs;        /* of guests: RESERVED and BERTH */
    guint64 overhead_mib;  /* per guest; likewise */
    SimFailures failures;
    guint64 seed;
    gint64 report_interval_usec;
    gint64
        react_usec; /* from when a job has come to a limit that is too short until its user asks for more */
    guint64 explain;                          /* job number in the trace; 0 = none */
    guint32 explain_task;                     /* likewise, as SimJob.task; 0 = whatever */
    gboolean check;                           /* all invariants after every step */
    const volatile sig_atomic_t *interrupted; /* not 0: the run ends; NULL = it never is */
    SimHooks hooks;
} SimConfig;

static inline gboolean sim_is_interrupted(const SimConfig *config)
{
    return config->interrupted != NULL && *config->interrupted != 0;
}

/* Runs WORKLOAD from its first arrival until all jobs have ended. Errors: the trace's; CANCELLED
 * (interrupted); INTERNAL (jobs wait, and nothing will ever happen). BOUND is sim_bound_run()'s. */
gboolean sim_run(const SimConfig *config, SimWorkload *workload, const SimUsageModel *usage,
                 SimMetrics *out_metrics, GError **error);
