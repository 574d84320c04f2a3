/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A trace on a machine: its jobs as guests that fit the nodes, their arrivals scaled to a load. */

#include "scheduler/sim/job.h"
#include "scheduler/sim/machine.h"
#include "scheduler/sim/trace.h"

typedef struct {
    SimMachine machine; /* its first three: 0 = the trace's own, member by member */
    gboolean is_pool;   /* one node of all the capacity: the machine of the literature */
    double load;        /* 0 = as in the trace */
    double
        estimates; /* time limits are drawn from 1 to so many times the run time, each as likely (the f-model of
                             Mu'alem and Feitelson 2001); from 1; 0 = the trace's, or more where a job ran longer */
    guint32
        short_permille; /* of jobs whose first limit is less than their run time: half of it at least, each
                             * as likely, in whole seconds. Jobs of one second have no such limit */
    guint64 seed;         /* of both */
    guint64 jobs_max;     /* 0 = all */
    guint64 explain;      /* number of a job that must be there; 0 = none */
    guint32 explain_task; /* likewise, as SimJob.task; 0 = whatever */
    guint64 overhead_mib; /* of a node's memory for each guest, kept when memory is shared out */
} SimWorkloadConfig;

/* What a first reading of the trace found; times as scaled. */
typedef struct {
    guint64 n_jobs;
    guint64 n_never_ran;
    guint64 n_too_large;  /* jobs that the machine could not hold, were it empty; in no load */
    guint64 n_memory_cut; /* jobs whose memory was cut to what a node can give a guest */
    /* Jobs that used more than they had reserved, which is cut: in all, of CPU, of memory. */
    guint64 n_usage_cut, n_cpu_used_cut, n_memory_used_cut;
    /* Jobs that ran longer than their limit, and those without any: they get their run time, known
     * exactly. */
    guint64 n_limit_raised, n_limit_unknown;
    guint64 n_limit_short;  /* jobs whose first limit is too short */
    guint64 n_number_again; /* SWF: jobs whose number is not above all before, so that another may
                               have it */
    guint64 n_cpu_known, n_memory_known; /* jobs of which the trace says what they used */
    gint64 end_usec;                     /* last arrival: the trace's end */
    double trace_load;                   /* before scaling; 0: all arrive at once, or none fits */
    double load;                         /* after it */
} SimSurvey;

typedef struct SimWorkload SimWorkload;

/* Reads TRACE (kept, not owned) once to its end. Errors: the trace's; INVALID_ARGUMENT (no job; no
 * machine; a load that cannot be had; the job to be explained is not there, or several are). */
SimWorkload *sim_workload_new(SimTrace *trace, const SimWorkloadConfig *config, GError **error);
void sim_workload_free(SimWorkload *workload);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimWorkload, sim_workload_free)

/* From the first job on; then one after the other in order of arrival. */
gboolean sim_workload_rewind(SimWorkload *workload, GError **error);
gboolean sim_workload_next(SimWorkload *workload, SimJob *out_job, gboolean *out_end,
                           GError **error);

const SimMachine *sim_workload_machine(const SimWorkload *workload);
double sim_workload_estimates(const SimWorkload *workload);       /* as in its configuration */
guint32 sim_workload_short_permille(const SimWorkload *workload); /* likewise */
const SimSurvey *sim_workload_survey(const SimWorkload *workload);
const SimSeriesSet *sim_workload_series(const SimWorkload *workload); /* NULL: none */
