/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is counted, and the formulas of what is derived per job. */
#include "config.h"

#include "scheduler/sim/metrics.h"

#define SLOWDOWN_BOUND_S 10.0

static const struct {
    guint64 most;
    const char *name;
} widths[SIM_WIDTH_CLASSES] = {
    {1, "1"},        {4, "2-4"},         {16, "5-16"},          {64, "17-64"},
    {256, "65-256"}, {1024, "257-1024"}, {G_MAXUINT64, ">1024"}};

guint sim_width_class(guint64 vcpus)
{
    guint class = 0;
    while (vcpus > widths[class].most)
        class ++;
    return class;
}

const char *sim_width_name(guint class)
{
    return widths[class].name;
}

void sim_metrics_init(SimMetrics *metrics)
{
    *metrics = (SimMetrics){.first_submit_usec = G_MAXINT64};
    metrics->waits = g_new0(SimQuantiles, 1);
    for (guint i = 0; i < SIM_WIDTH_CLASSES; i++)
        metrics->waits_by_width[i] = g_new0(SimQuantiles, 1);
    metrics->timeline = sim_timeline_new();
}

void sim_metrics_clear(SimMetrics *metrics)
{
    g_free(metrics->waits);
    for (guint i = 0; i < SIM_WIDTH_CLASSES; i++)
        g_free(metrics->waits_by_width[i]);
    g_clear_pointer(&metrics->timeline, sim_timeline_free);
    *metrics = (SimMetrics){0};
}

static double seconds(gint64 usec)
{
    return (double)usec / (double)G_USEC_PER_SEC;
}

double sim_metrics_wait_s(const SimJob *job, const SimOutcome *outcome)
{
    gint64 response = outcome->end_usec - job->submit_usec;
    return seconds(MAX(response - job->run_usec, 0));
}

double sim_metrics_slowdown(const SimJob *job, const SimOutcome *outcome)
{
    double response = seconds(outcome->end_usec - job->submit_usec);
    return MAX(response / MAX(seconds(job->run_usec), SLOWDOWN_BOUND_S), 1.0);
}

void sim_metrics_add_job(SimMetrics *metrics, const SimJob *job, const SimOutcome *outcome)
{
    double wait = sim_metrics_wait_s(job, outcome);
    guint class = sim_width_class(sim_job_width(job));
    metrics->jobs++;
    metrics->kills += outcome->is_killed;
    metrics->lost += !outcome->is_completed && !outcome->is_killed;
    metrics->wait_sum_s += wait;
    metrics->start_wait_sum_s += seconds(MAX(outcome->start_usec - job->submit_usec, 0));
    metrics->slowdown_sum += sim_metrics_slowdown(job, outcome);
    sim_quantiles_add(metrics->waits, (guint64)(wait + 0.5), 1);
    sim_quantiles_add(metrics->waits_by_width[class], (guint64)(wait + 0.5), 1);
    metrics->wait_sum_by_width_s[class] += wait;
    metrics->first_submit_usec = MIN(metrics->first_submit_usec, job->submit_usec);
    metrics->last_end_usec = MAX(metrics->last_end_usec, outcome->end_usec);
}

void sim_metrics_pass(SimMetrics *metrics, const SimTotals *totals, gint64 now_usec,
                      gint64 length_usec)
{
    SimSum length = (SimSum)length_usec;
    metrics->guaranteed_wanted_cpu += totals->guaranteed_wanted_milli * length;
    metrics->guaranteed_short_cpu += totals->guaranteed_short_milli * length;
    metrics->guaranteed_wanted_mem += totals->guaranteed_wanted_mib * length;
    metrics->guaranteed_short_mem += totals->guaranteed_short_mib * length;
    double values[SIM_LINE_N] = {
        [SIM_LINE_CPU_USED] = (double)totals->cpu_served_milli / 1000,
        [SIM_LINE_CPU_RESERVED] = (double)totals->reserved_vcpus,
        [SIM_LINE_CPU_WANTED] = (double)totals->cpu_wanted_milli / 1000,
        [SIM_LINE_CPU_SLACK] = (double)totals->slack_vcpus,
        [SIM_LINE_MEMORY_USED] = (double)totals->memory_held_mib,
        [SIM_LINE_MEMORY_RESERVED] = (double)totals->reserved_mib,
        [SIM_LINE_WAITING] = (double)totals->waiting,
        [SIM_LINE_RUNNING] = (double)totals->running,
    };
    sim_timeline_add(metrics->timeline, now_usec - length_usec, now_usec, values);
}
