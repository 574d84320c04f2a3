/* SPDX-License-Identifier: Apache-2.0 */
/* Owns small simulations for tests. */
#include "tests/lib/sim_fixture.h"

char *sim_fixture_file(const char *dir, const char *name, const char *text)
{
    char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) error = NULL;
    g_file_set_contents(path, text, -1, &error);
    assert_no_error(error);
    return path;
}

char *sim_fixture_swf(guint32 nodes, guint32 vcpus, const SimFixtureJob *jobs, guint n)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "; MaxNodes: %u\n; MaxProcs: %u\n", nodes, nodes * vcpus);
    for (guint i = 0; i < n; i++)
        g_string_append_printf(text,
                               "%u %" G_GINT64_FORMAT " -1 %" G_GINT64_FORMAT
                               " %u -1 -1 %u %" G_GINT64_FORMAT " -1 1 1 1 -1 1 -1 -1 -1\n",
                               i + 1, jobs[i].submit_sec, jobs[i].run_sec, jobs[i].procs,
                               jobs[i].procs, jobs[i].limit_sec);
    return g_string_free(text, FALSE);
}

void sim_fixture_config(SimPolicy policy, SimConfig *out_config)
{
    *out_config = (SimConfig){.policy = policy,
                              .seed = 1,
                              .report_interval_usec = 5 * (gint64)G_USEC_PER_SEC,
                              .react_usec = 1200 * (gint64)G_USEC_PER_SEC,
                              .check = TRUE};
    sim_costs_of_guests(&out_config->costs);
}

static void on_stay(const SimStay *stay, gpointer user_data)
{
    SimFixtureRun *run = user_data;
    guint64 job = stay->job->id;
    if (run->stays->len < job)
        g_array_set_size(run->stays, (guint)job);
    SimFixtureStay *all = &g_array_index(run->stays, SimFixtureStay, job - 1);
    all->start_usec = all->n_stays == 0 ? stay->from_usec : MIN(all->start_usec, stay->from_usec);
    all->end_usec = MAX(all->end_usec, stay->to_usec);
    all->n_stays++;
    g_string_append_printf(run->log,
                           "%" G_GUINT64_FORMAT ".%u@%u %" G_GINT64_FORMAT "-%" G_GINT64_FORMAT
                           " %d %d %d\n",
                           job, stay->guest, stay->node, stay->from_usec, stay->to_usec,
                           stay->is_opportunistic, stay->origin, stay->is_checkpointed);
}

SimFixtureRun *sim_fixture_run(const char *dir, const char *text, const SimConfig *config,
                               const SimWorkloadConfig *workload_config, SimUsageModel *usage)
{
    static const SimWorkloadConfig as_it_is = {0};
    SimUsageModel reserved = {.kind = SIM_USAGE_RESERVED};
    SimFixtureRun *run = g_new0(SimFixtureRun, 1);
    SimConfig with_hooks = *config;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = sim_fixture_file(dir, "trace", text);
    const char *paths[] = {path, NULL};
    g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    g_autoptr(SimWorkload) workload =
        sim_workload_new(trace, workload_config != NULL ? workload_config : &as_it_is, &error);
    assert_no_error(error);
    run->stays = g_array_new(FALSE, TRUE, sizeof(SimFixtureStay));
    run->log = g_string_new(NULL);
    with_hooks.hooks = (SimHooks){.stay = on_stay, .user_data = run};
    sim_run(&with_hooks, workload, usage != NULL ? usage : &reserved, &run->metrics, &error);
    assert_no_error(error);
    return run;
}

void sim_fixture_run_free(SimFixtureRun *run)
{
    sim_metrics_clear(&run->metrics);
    g_array_unref(run->stays);
    g_string_free(run->log, TRUE);
    g_free(run);
}

gint64 sim_fixture_start_sec(const SimFixtureRun *run, guint64 job)
{
    assert_true(job <= run->stays->len);
    return g_array_index(run->stays, SimFixtureStay, job - 1).start_usec / (gint64)G_USEC_PER_SEC;
}
