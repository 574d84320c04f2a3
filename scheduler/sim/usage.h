/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a job's guests use over their run, as a function of their progress: the truth that the
 * scheduler does not know. */

#include "scheduler/sim/job.h"
#include "scheduler/sim/series.h"

typedef enum {
    SIM_USAGE_RESERVED, /* all that is reserved, all the time */
    SIM_USAGE_TRACE,    /* the trace's mean of CPU and peak of memory, all the time */
    SIM_USAGE_SHAPES,   /* with the same mean and peak, over time as a VM that was drawn */
} SimUsageKind;

/* What a trace does not say is taken as the reservation. A job that has a series of its own uses
 * what that says, unless the kind is RESERVED.
 *
 * SHAPES: from SEED and the job's number a VM and a first sample are drawn (splitmix64, Steele,
 * Lea and Flood 2014). The job follows that VM's samples of five minutes, in real time, from the
 * start again after the last. CPU is the sample times a factor, at most the reservation; the factor
 * is such that the mean over the run is that of the trace; an idle sample counts as 0.01 %. Memory
 * is the sample times the factor that makes the largest one the trace's peak; between samples it
 * goes straight from one to the next, in steps of 30 s. All guests of a gang do the same at once. */
typedef struct {
    SimUsageKind kind;
    guint64 seed;
    const SimSeriesSet *shapes; /* SHAPES: at least one series */
    const SimSeriesSet *own;    /* SimJob.series refers to it; NULL = none has any */
} SimUsageModel;

/* Of each guest. */
typedef struct {
    guint32 cpu_milli;
    guint64 memory_mib;
} SimDemand;

typedef struct {
    const SimSeries *series; /* NULL: MOST, all the time */
    guint32 first;           /* sample at the start */
    SimDemand most;
    guint64 cpu_factor; /* 1/65536 milli per 1/10000 of the VM's CPU; 0: always MOST's */
    guint32 memory_top; /* the sample at which memory is MOST's; 0: always MOST's */
} SimUsage;

void sim_usage_init(const SimUsageModel *model, const SimJob *job, SimUsage *out_usage);
/* At PROGRESS_USEC; *OUT_UNTIL_USEC: it stays so up to there (G_MAXINT64: to the end). */
SimDemand sim_usage_at(const SimUsage *usage, gint64 progress_usec, gint64 *out_until_usec);
/* Mean of CPU and of memory over the run of JOB. */
void sim_usage_mean(const SimUsage *usage, const SimJob *job, double *out_cpu_milli,
                    double *out_memory_mib);

/* A well mixed number that depends on both. */
guint64 sim_mix(guint64 seed, guint64 n);
