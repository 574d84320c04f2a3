/* SPDX-License-Identifier: Apache-2.0 */
/* The upper bound, by hand and against the policies. */
#include "scheduler/sim/bound.h"
#include "tests/lib/sim_fixture.h"
#include "tests/lib/tempdir.h"

static void bound_of(const char *dir, const char *text, guint64 memory_mib,
                     const SimUsageModel *usage, SimFigures *out_figures)
{
    SimConfig config;
    SimMetrics metrics;
    SimWorkloadConfig workload_config = {.machine = {0, 0, memory_mib}};
    g_autoptr(GError) error = NULL;
    g_autofree char *path = sim_fixture_file(dir, "trace", text);
    const char *paths[] = {path, NULL};
    g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    g_autoptr(SimWorkload) workload = sim_workload_new(trace, &workload_config, &error);
    assert_no_error(error);
    sim_fixture_config(SIM_POLICY_BOUND, &config);
    assert_true(sim_bound_run(&config, workload, usage, &metrics, &error));
    sim_figures(&metrics, out_figures);
    sim_metrics_clear(&metrics);
}

static void bound(const char *dir, const char *text, guint64 memory_mib, SimFigures *out_figures)
{
    static const SimUsageModel usage = {.kind = SIM_USAGE_TRACE};
    bound_of(dir, text, memory_mib, &usage, out_figures);
}

#define HEAD "; MaxNodes: 2\n; MaxProcs: 4\n"

static void sim_bound_of_little_demand_is_the_demand(void **state)
{
    /* 2 processors busy half of 60 s; the other arrives at the end. */
    static const char text[] = HEAD "1 0 -1 60 2 30 1024 2 90 -1 1 1 1 1 1 1 -1 -1\n"
                                    "2 100 -1 60 2 30 1024 2 90 -1 1 1 1 1 1 1 -1 -1\n";
    SimFigures figures;
    bound(*state, text, 0, &figures);
    assert_true(ABS(figures.work_done_cpu_s - 60) < 1e-6);
    assert_true(ABS(figures.useful_cpu_utilisation - 60.0 / 400) < 1e-6);
    assert_true(figures.mean_wait_s == 0);
}

static void sim_bound_of_much_demand_is_the_capacity_from_then_on(void **state)
{
    /* Nothing before 50; from then on 8 are wanted, and 4 are there. Up to 100: 200. */
    static const char text[] = HEAD "1 0 -1 1 1 0 1024 1 90 -1 1 1 1 1 1 1 -1 -1\n"
                                    "2 50 -1 500 4 500 1024 4 900 -1 1 1 1 1 1 1 -1 -1\n"
                                    "3 50 -1 500 4 500 1024 4 900 -1 1 1 1 1 1 1 -1 -1\n"
                                    "4 100 -1 1 1 0 1024 1 90 -1 1 1 1 1 1 1 -1 -1\n";
    SimFigures figures;
    bound(*state, text, 0, &figures);
    /* CPU of 0 in SWF is unknown: the first job uses its processor for its second. */
    assert_true(ABS(figures.work_done_cpu_s - 201) < 1e-6);
}

static void sim_bound_knows_memory(void **state)
{
    /* Two jobs of 100 s, each busy with 1 vCPU and with all memory of both nodes (1 GiB in all): only one of
     * them can be there, although there are four processors. */
    static const char text[] = HEAD "1 0 -1 100 4 25 262144 4 200 262144 1 1 1 1 1 1 -1 -1\n"
                                    "2 0 -1 100 4 25 262144 4 200 262144 1 1 1 1 1 1 -1 -1\n"
                                    "3 100 -1 1 1 1 1024 1 90 1024 1 1 1 1 1 1 -1 -1\n";
    SimFigures roomy, narrow;
    bound(*state, text, 2048, &roomy);
    bound(*state, text, 512, &narrow);
    assert_true(ABS(roomy.work_done_cpu_s - 200) < 1e-6);
    assert_true(narrow.work_done_cpu_s >= 100 - 1e-6);
    /* What is of one ratio is counted with the largest in its bucket. */
    assert_true(narrow.work_done_cpu_s <= 102);
}

static void no_policy_exceeds_the_bound(void **state)
{
    for (guint32 seed = 1; seed <= 10; seed++) {
        SimFixtureJob jobs[50];
        SimFigures most;
        for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
            guint64 drawn = sim_mix(seed, i);
            jobs[i] = (SimFixtureJob){i * 100, 1 + (gint64)(drawn % 3000), 4000,
                                      1 + (guint32)(drawn >> 40) % 4};
        }
        g_autofree char *text = sim_fixture_swf(2, 2, jobs, G_N_ELEMENTS(jobs));
        bound(*state, text, 0, &most);
        for (SimPolicy policy = SIM_POLICY_FCFS; policy < SIM_POLICY_BOUND; policy++) {
            SimConfig config;
            SimFigures figures;
            sim_fixture_config(policy, &config);
            g_autoptr(SimFixtureRun) run = sim_fixture_run(*state, text, &config, NULL, NULL);
            sim_figures(&run->metrics, &figures);
            assert_true(figures.work_done_cpu_s <= most.work_done_cpu_s * 1.0000001);
            assert_true(figures.work_done_cpu_s > 0);
            assert_true(figures.makespan_s >= most.makespan_s);
            assert_true(run->metrics.useful_cpu_s <= most.makespan_s * 4); /* on 4 vCPUs */
        }
    }
}

/* --- usage that varies -------------------------------------------------------------------------- */

#define N_SAMPLES 4
#define N_VARYING 6
#define HORIZON   1200 /* s: of as many samples */

static void add_series(SimSeriesSet *set, guint64 drawn, gboolean has_memory)
{
    SimSeries *series = g_new0(SimSeries, 1);
    series->n_samples = N_SAMPLES;
    series->cpu = g_new(guint16, N_SAMPLES);
    series->memory = has_memory ? g_new(guint16, N_SAMPLES) : NULL;
    for (guint i = 0; i < N_SAMPLES; i++) {
        guint64 of_sample = sim_mix(drawn, i);
        series->cpu[i] = (guint16)(of_sample % 4 == 0 ? 10000 : of_sample >> 8 & 0x3ff);
        if (has_memory)
            series->memory[i] = (guint16)(100 + (of_sample >> 32) % 9900);
    }
    g_ptr_array_add(set->series, series);
}

/* Jobs of a GiB and half of a processor on average, all there at 0; the last one says when the trace ends. */
static char *varying_trace(void)
{
    GString *text = g_string_new(HEAD);
    for (guint i = 0; i < N_VARYING; i++)
        g_string_append_printf(text, "%u 0 -1 %u 1 %u 1048576 1 9000 1048576 1 1 1 1 1 1 -1 -1\n",
                               i + 1, HORIZON, HORIZON / 2);
    g_string_append_printf(text, "%u %u -1 1 1 1 1024 1 9000 1024 1 1 1 1 1 1 -1 -1\n",
                           N_VARYING + 1, HORIZON);
    return g_string_free(text, FALSE);
}

/* CPU and memory-time of job I in its first SAMPLES of five minutes. */
static void reckon(const SimUsageModel *model, guint i, guint samples, double *cpu_s, double *mib_s)
{
    SimJob job = {.id = i + 1,
                  .vcpus = 1,
                  .guests = 1,
                  .memory_mib = 1024,
                  .run_usec = HORIZON * (gint64)G_USEC_PER_SEC,
                  .cpu_used_milli = 500,
                  .memory_used_mib = 1024};
    SimUsage usage;
    sim_usage_init(model, &job, &usage);
    for (gint64 sec = 0; sec < (gint64)samples * SIM_SAMPLE_SEC; sec++) {
        gint64 until;
        SimDemand demand = sim_usage_at(&usage, sec * (gint64)G_USEC_PER_SEC, &until);
        *cpu_s += demand.cpu_milli / 1000.0;
        *mib_s += (double)demand.memory_mib;
    }
}

/* The most CPU of all ways to do so many samples of each job that fit into MIB_S. */
static double most_by_trial(const SimUsageModel *model, double mib_s)
{
    double most = 0, cpu[N_VARYING][N_SAMPLES + 1] = {{0}}, mib[N_VARYING][N_SAMPLES + 1] = {{0}};
    guint n_ways = 1;
    for (guint i = 0; i < N_VARYING; i++, n_ways *= N_SAMPLES + 1)
        for (guint k = 1; k <= N_SAMPLES; k++)
            reckon(model, i, k, &cpu[i][k], &mib[i][k]);
    for (guint way = 0; way < n_ways; way++) {
        double cpu_sum = 0, mib_sum = 0;
        for (guint i = 0, left = way; i < N_VARYING; i++, left /= N_SAMPLES + 1) {
            cpu_sum += cpu[i][left % (N_SAMPLES + 1)];
            mib_sum += mib[i][left % (N_SAMPLES + 1)];
        }
        if (mib_sum <= mib_s)
            most = MAX(most, cpu_sum);
    }
    return most;
}

/* Nothing but memory is short; a part of one job is at most what is not whole samples. */
static void sim_bound_of_usage_that_varies_is_near_the_best_by_trial(void **state)
{
    guint n_short = 0;
    g_autofree char *text = varying_trace();
    for (guint32 seed = 1; seed <= 40; seed++) {
        g_autoptr(SimSeriesSet) set = sim_series_set_new();
        for (guint i = 0; i < 8; i++)
            add_series(set, sim_mix(seed, i), seed % 2 == 0);
        SimUsageModel usage = {.kind = SIM_USAGE_SHAPES, .seed = seed, .shapes = set};
        SimFigures figures;
        bound_of(*state, text, 1024, &usage, &figures); /* on each of two nodes */
        double mib_s = 2.0 * 1024 * HORIZON;
        double most = most_by_trial(&usage, mib_s), all = most_by_trial(&usage, 1e18);
        n_short += most < 0.9 * all;
        if (figures.work_done_cpu_s < most * 0.999999 ||
            figures.work_done_cpu_s > most * 1.02 + HORIZON / 2)
            fail_msg("seed %u: %.1f, and %.1f by trial", seed, figures.work_done_cpu_s, most);
    }
    assert_in_range(n_short, 10, 40);
}

/* Each begins with all of its work, and then holds its memory idle: four nodes' worth of memory-time holds eight
 * such beginnings, and only four jobs as a whole. */
static void sim_bound_counts_beginnings_that_are_richer_than_what_follows(void **state)
{
    static const guint16 cpu[] = {10000, 10000, 1, 1};
    g_autoptr(SimSeriesSet) set = sim_series_set_new();
    g_autofree char *text = varying_trace();
    SimUsageModel usage = {.kind = SIM_USAGE_SHAPES, .shapes = set};
    SimFigures figures;
    guint n_first = 0;
    add_series(set, 0, FALSE);
    memcpy(((SimSeries *)g_ptr_array_index(set->series, 0))->cpu, cpu, sizeof cpu);
    do {
        usage.seed++;
        n_first = 0;
        for (guint64 i = 0; i < N_VARYING; i++) {
            SimUsage of_job;
            SimJob job = {.id = i + 1, .vcpus = 1, .run_usec = G_USEC_PER_SEC, .memory_mib = 1};
            sim_usage_init(&usage, &job, &of_job);
            n_first += of_job.first == 0;
        }
    } while (n_first < 4);
    bound_of(*state, text, 1024, &usage, &figures);
    assert_true(figures.work_done_cpu_s >= 4 * 599.0);
    assert_true(figures.work_done_cpu_s <= 4 * 600.0 * 1.02);
}

static void no_policy_exceeds_the_bound_where_usage_varies(void **state)
{
    for (guint32 seed = 1; seed <= 12; seed++) {
        g_autoptr(SimSeriesSet) set = sim_series_set_new();
        g_autoptr(GString) text = g_string_new(HEAD);
        SimUsageModel usage = {.kind = SIM_USAGE_SHAPES, .seed = seed, .shapes = set};
        SimWorkloadConfig workload = {.machine = {0, 0, 2048}};
        SimFigures most;
        for (guint i = 0; i < 8; i++)
            add_series(set, sim_mix(seed, i), TRUE);
        for (guint i = 0; i < 40; i++) {
            guint64 drawn = sim_mix(seed + 100, i), run = 60 + drawn % 3000;
            g_string_append_printf(
                text, "%u %u -1 %u 1 %u 900000 1 6000 1048576 1 %u 1 1 1 1 -1 -1\n", i + 1, i * 100,
                (guint)run, (guint)(run * (1 + (drawn >> 16) % 4) / 4), i % 3 + 1);
        }
        bound_of(*state, text->str, 2048, &usage, &most);
        for (SimPolicy policy = SIM_POLICY_FCFS; policy < SIM_POLICY_BOUND; policy++) {
            SimConfig config;
            SimFigures figures;
            sim_fixture_config(policy, &config);
            g_autoptr(SimFixtureRun) run =
                sim_fixture_run(*state, text->str, &config, &workload, &usage);
            sim_figures(&run->metrics, &figures);
            if (figures.work_done_cpu_s > most.work_done_cpu_s * 1.0000001)
                fail_msg("seed %u, %s: %.1f of %.1f", seed, sim_policy_name(policy),
                         figures.work_done_cpu_s, most.work_done_cpu_s);
            assert_true(figures.work_done_cpu_s > most.work_done_cpu_s / 4);
            assert_true(figures.makespan_s >= most.makespan_s * 0.9999999);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sim_bound_of_little_demand_is_the_demand),
        TEST(sim_bound_of_much_demand_is_the_capacity_from_then_on),
        TEST(sim_bound_knows_memory),
        TEST(no_policy_exceeds_the_bound),
        TEST(sim_bound_of_usage_that_varies_is_near_the_best_by_trial),
        TEST(sim_bound_counts_beginnings_that_are_richer_than_what_follows),
        TEST(no_policy_exceeds_the_bound_where_usage_varies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
