/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the true demand of jobs. Integers only: the same on every machine. */
#include "config.h"

#include "scheduler/sim/usage.h"

#define SAMPLE_USEC   (SIM_SAMPLE_SEC * (gint64)G_USEC_PER_SEC)
#define STEPS         10 /* of memory between two samples */
#define STEP_USEC     (SAMPLE_USEC / STEPS)
#define FACTOR_SHIFT  16
#define CPU_SHARE_MIN 1u

guint64 sim_mix(guint64 seed, guint64 n)
{
    guint64 z = seed + (n + 1) * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static guint32 cpu_share(const SimUsage *usage, gint64 sample)
{
    guint32 at = (guint32)((usage->first + (guint64)sample) % usage->series->n_samples);
    return MAX(usage->series->cpu[at], CPU_SHARE_MIN);
}

static guint32 memory_share(const SimUsage *usage, gint64 sample)
{
    guint32 at = (guint32)((usage->first + (guint64)sample) % usage->series->n_samples);
    return usage->series->memory[at];
}

static guint32 cpu_at(const SimUsage *usage, gint64 sample)
{
    if (usage->cpu_factor == 0)
        return usage->most.cpu_milli;
    guint64 milli = usage->cpu_factor * cpu_share(usage, sample) >> FACTOR_SHIFT;
    return (guint32)MIN(milli, usage->most.cpu_milli);
}

static guint64 memory_at(const SimUsage *usage, gint64 sample)
{
    if (usage->memory_top == 0)
        return usage->most.memory_mib;
    guint64 mib = usage->most.memory_mib * memory_share(usage, sample) / usage->memory_top;
    return CLAMP(mib, 1, usage->most.memory_mib);
}

/* CPU over the first RUN_USEC, in milli-vCPU times seconds. */
static guint64 cpu_sum(const SimUsage *usage, gint64 run_usec)
{
    guint64 sum = 0;
    gint64 n = run_usec / SAMPLE_USEC;
    for (gint64 i = 0; i < n; i++)
        sum += (guint64)cpu_at(usage, i) * SIM_SAMPLE_SEC;
    gint64 rest_sec = run_usec % SAMPLE_USEC / (gint64)G_USEC_PER_SEC;
    return sum + (guint64)cpu_at(usage, n) * (guint64)rest_sec;
}

/* The largest factor with which the run uses at most WANTED_MILLI on average. */
static void fit_cpu(SimUsage *usage, gint64 run_usec, guint32 wanted_milli)
{
    guint64 wanted = (guint64)wanted_milli * (guint64)(run_usec / (gint64)G_USEC_PER_SEC);
    guint64 low = 1, high = (guint64)usage->most.cpu_milli << FACTOR_SHIFT;
    while (low < high) {
        usage->cpu_factor = low + (high - low + 1) / 2;
        if (cpu_sum(usage, run_usec) <= wanted)
            low = usage->cpu_factor;
        else
            high = usage->cpu_factor - 1;
    }
    usage->cpu_factor = low;
}

static guint32 memory_top(const SimUsage *usage, gint64 run_usec)
{
    guint32 top = 0;
    if (usage->series->memory == NULL)
        return 0;
    gint64 n = MIN(run_usec / SAMPLE_USEC + 2, (gint64)usage->series->n_samples);
    for (gint64 i = 0; i < n; i++)
        top = MAX(top, memory_share(usage, i));
    return top;
}

static void init_own(const SimUsageModel *model, const SimJob *job, SimUsage *usage)
{
    usage->series = sim_series_get(model->own, job->series - 1);
    usage->most = (SimDemand){job->vcpus * 1000, job->memory_mib};
    usage->cpu_factor = ((guint64)usage->most.cpu_milli << FACTOR_SHIFT) / SIM_SERIES_FULL;
    usage->memory_top = usage->series->memory != NULL ? SIM_SERIES_FULL : 0;
}

static void init_shape(const SimUsageModel *model, const SimJob *job, SimUsage *usage)
{
    guint64 drawn = sim_mix(model->seed, job->id);
    const SimSeriesSet *set = model->shapes;
    usage->series = sim_series_get(set, (guint)(drawn % set->series->len));
    usage->first = (guint32)(sim_mix(drawn, 0) % usage->series->n_samples);
    if (job->cpu_used_milli != SIM_UNKNOWN && job->cpu_used_milli > 0) {
        usage->most.cpu_milli = job->vcpus * 1000;
        fit_cpu(usage, job->run_usec, job->cpu_used_milli);
    }
    if (job->memory_used_mib > 0)
        usage->memory_top = memory_top(usage, job->run_usec);
}

void sim_usage_init(const SimUsageModel *model, const SimJob *job, SimUsage *out_usage)
{
    *out_usage = (SimUsage){.most = {job->vcpus * 1000, job->memory_mib}};
    if (model->kind == SIM_USAGE_RESERVED)
        return;
    if (job->series > 0) {
        init_own(model, job, out_usage);
        return;
    }
    if (job->cpu_used_milli != SIM_UNKNOWN)
        out_usage->most.cpu_milli = job->cpu_used_milli;
    if (job->memory_used_mib > 0)
        out_usage->most.memory_mib = job->memory_used_mib;
    if (model->kind == SIM_USAGE_SHAPES)
        init_shape(model, job, out_usage);
}

static guint64 memory_between(const SimUsage *usage, gint64 sample, gint64 step)
{
    gint64 from = (gint64)memory_at(usage, sample);
    gint64 to = (gint64)memory_at(usage, sample + 1);
    return (guint64)(from + (to - from) * step / STEPS);
}

SimDemand sim_usage_at(const SimUsage *usage, gint64 progress_usec, gint64 *out_until_usec)
{
    *out_until_usec = G_MAXINT64;
    if (usage->series == NULL || (usage->cpu_factor == 0 && usage->memory_top == 0))
        return usage->most;
    gint64 sample = progress_usec / SAMPLE_USEC;
    gint64 step = progress_usec % SAMPLE_USEC / STEP_USEC;
    SimDemand demand = {cpu_at(usage, sample), usage->most.memory_mib};
    gint64 next = STEPS;
    if (usage->memory_top != 0) {
        demand.memory_mib = memory_between(usage, sample, step);
        for (next = step + 1; next < STEPS; next++)
            if (memory_between(usage, sample, next) != demand.memory_mib)
                break;
    }
    *out_until_usec = sample * SAMPLE_USEC + next * STEP_USEC;
    return demand;
}

void sim_usage_mean(const SimUsage *usage, const SimJob *job, double *out_cpu_milli,
                    double *out_memory_mib)
{
    double cpu = 0, memory = 0;
    for (gint64 at = 0; at < job->run_usec;) {
        gint64 until;
        SimDemand demand = sim_usage_at(usage, at, &until);
        gint64 length = MIN(until, job->run_usec) - at;
        cpu += (double)demand.cpu_milli * (double)length;
        memory += (double)demand.memory_mib * (double)length;
        at += length;
    }
    *out_cpu_milli = cpu / (double)job->run_usec;
    *out_memory_mib = memory / (double)job->run_usec;
}
