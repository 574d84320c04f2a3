/* SPDX-License-Identifier: Apache-2.0 */
/* The upper bound, by hand and against the policies. */
#include "scheduler/sim/bound.h"
#include "tests/lib/sim_fixture.h"
#include "tests/lib/tempdir.h"

static void bound(const char *dir, const char *text, guint64 memory_mib, SimFigures *out_figures)
{
    SimConfig config;
    SimMetrics metrics;
    SimUsageModel usage = {.kind = SIM_USAGE_TRACE};
    SimWorkloadConfig workload_config = {.machine = {0, 0, memory_mib}};
    g_autoptr(GError) error = NULL;
    g_autofree char *path = sim_fixture_file(dir, "trace", text);
    const char *paths[] = {path, NULL};
    g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    g_autoptr(SimWorkload) workload = sim_workload_new(trace, &workload_config, &error);
    assert_no_error(error);
    sim_fixture_config(SIM_POLICY_BOUND, &config);
    assert_true(sim_bound_run(&config, workload, &usage, &metrics, &error));
    sim_figures(&metrics, out_figures);
    sim_metrics_clear(&metrics);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sim_bound_of_little_demand_is_the_demand),
        TEST(sim_bound_of_much_demand_is_the_capacity_from_then_on),
        TEST(sim_bound_knows_memory),
        TEST(no_policy_exceeds_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
