/* SPDX-License-Identifier: Apache-2.0 */
/* Random workloads through every policy, with nodes and actions that fail, and every invariant of
 * core and world checked after each step. A failing seed is printed and can be run alone with
 * BERTH_TEST_SEED=N. */
#include "tests/lib/sim_fixture.h"
#include "tests/lib/tempdir.h"

#ifdef __SANITIZE_ADDRESS__ /* ten times slower, and the plain build runs them all */
#define N_SEEDS   4
#define FEW_SEEDS 2
#else
#define N_SEEDS   60
#define FEW_SEEDS 8
#endif
#define N_JOBS 60

static const SimPolicy policies[] = {SIM_POLICY_FCFS, SIM_POLICY_EASY, SIM_POLICY_CONSERVATIVE,
                                     SIM_POLICY_RESERVED, SIM_POLICY_BERTH};

/* Jobs that use half of what they reserve: there is slack. Returns the CPU that they use, s. */
static char *random_trace(guint32 seed, double *out_cpu_s)
{
    GString *text = g_string_new("; MaxNodes: 6\n; MaxProcs: 24\n");
    gint64 now = 0;
    *out_cpu_s = 0;
    for (guint i = 0; i < N_JOBS; i++) {
        guint64 drawn = sim_mix(seed, i);
        guint64 run = 60 + drawn % 4000, procs = 1 + (drawn >> 48) % 12;
        guint64 used = run * (1 + (drawn >> 8) % 4) / 4;
        now += (gint64)((drawn >> 16) % 400);
        *out_cpu_s += (double)(used * procs);
        g_string_append_printf(text, "%u %d -1 %u %u %u %u %u %u 1048576 1 %u 1 %u 1 -1 -1 -1\n",
                               i + 1, (int)now, (guint)run, (guint)procs, (guint)used,
                               200000 + (guint)((drawn >> 24) % 800000), (guint)procs,
                               (guint)(2 * run), 1 + (guint)(drawn % 5), (guint)(drawn % 7) + 1);
    }
    return g_string_free(text, FALSE);
}

static SimFixtureRun *run_limits(const char *dir, guint32 seed, SimPolicy policy, gboolean fails,
                                 guint32 short_permille, double *out_cpu_s)
{
    SimConfig config;
    SimUsageModel usage = {.kind = SIM_USAGE_TRACE};
    SimWorkloadConfig workload = {
        .machine = {0, 0, 8192}, .short_permille = short_permille, .seed = seed};
    sim_fixture_config(policy, &config);
    config.seed = seed;
    /* Some fill half of what they reserve with page cache. */
    config.costs.values[SIM_COST_CACHE_PERMILLE] = seed % 3 == 0 ? 500 : 0;
    if (fails) {
        config.failures = (SimFailures){.mtbf_usec = 20000 * (gint64)G_USEC_PER_SEC,
                                        .mttr_usec = 600 * (gint64)G_USEC_PER_SEC,
                                        .action_permille = 100};
    }
    g_autofree char *text = random_trace(seed, out_cpu_s);
    return sim_fixture_run(dir, text, &config, &workload, &usage);
}

static SimFixtureRun *run_seed(const char *dir, guint32 seed, SimPolicy policy, gboolean fails,
                               double *out_cpu_s)
{
    return run_limits(dir, seed, policy, fails, 0, out_cpu_s);
}

static guint32 only_seed(void)
{
    const char *text = g_getenv("BERTH_TEST_SEED");
    guint64 seed = 0;
    if (text != NULL)
        assert_true(g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT32, &seed, NULL));
    return (guint32)seed;
}

/* The mean that a trace gives is rounded to 1/1000 vCPU. */
static void check_work(const SimMetrics *metrics, double cpu_s)
{
    double off = ABS(metrics->useful_cpu_s - cpu_s) / cpu_s;
    if (metrics->kills + metrics->lost == 0 && off > 0.002)
        fail_msg("%.1f CPU seconds were to be done, %.1f were", cpu_s, metrics->useful_cpu_s);
}

static void no_job_is_lost_and_work_adds_up(void **state)
{
    guint32 only = only_seed();
    guint64 balloons = 0;
    for (guint32 seed = only > 0 ? only : 1; seed <= (only > 0 ? only : N_SEEDS); seed++) {
        for (guint i = 0; i < G_N_ELEMENTS(policies); i++) {
            double cpu_s;
            if (only > 0)
                print_message("seed %u, %s\n", seed, sim_policy_name(policies[i]));
            g_autoptr(SimFixtureRun) run =
                run_seed(*state, seed, policies[i], seed % 2 == 0, &cpu_s);
            if (run->metrics.jobs != N_JOBS || run->metrics.refused != 0)
                fail_msg("seed %u, %s: %u of %u jobs ended", seed, sim_policy_name(policies[i]),
                         (guint)run->metrics.jobs, N_JOBS);
            check_work(&run->metrics, cpu_s);
            if (run->metrics.kills > 0 || (seed % 2 != 0 && run->metrics.lost > 0))
                fail_msg("seed %u, %s: %u jobs killed, %u lost", seed, sim_policy_name(policies[i]),
                         (guint)run->metrics.kills, (guint)run->metrics.lost);
            balloons += run->metrics.balloons;
        }
    }
    if (only == 0 && N_SEEDS >= 60)
        assert_true(balloons >= 5);
}

/* Every job ends in the end, whether it was killed at a limit that was too short, or went on beyond it. */
static void limits_that_are_too_short_end_no_job(void **state)
{
    guint64 n_extended = 0, n_stops_failed = 0;
    for (guint32 seed = 1; seed <= FEW_SEEDS; seed++) {
        guint64 n_short = 0;
        for (guint i = 0; i < G_N_ELEMENTS(policies); i++) {
            double cpu_s;
            gboolean fails = seed % 2 == 0;
            g_autoptr(SimFixtureRun) run =
                run_limits(*state, seed, policies[i], fails, 300, &cpu_s);
            const SimMetrics *metrics = &run->metrics;
            guint64 n_came = metrics->limit_kills + metrics->limit_extensions;
            gboolean in_guests = policies[i] >= SIM_POLICY_RESERVED;
            if (metrics->jobs != N_JOBS || metrics->kills != metrics->limit_kills)
                fail_msg("seed %u, %s: %u of %u jobs ended, %u killed", seed,
                         sim_policy_name(policies[i]), (guint)metrics->jobs, N_JOBS,
                         (guint)metrics->kills);
            assert_true(ABS(metrics->useful_cpu_s - cpu_s) / cpu_s < 0.002);
            assert_true(n_came > 0 && n_came < N_JOBS);
            assert_true((metrics->limit_extensions > 0) == (policies[i] == SIM_POLICY_BERTH));
            /* Whoever comes to his limit does so under every policy. */
            if (!fails && !in_guests)
                assert_true(n_short == 0 || n_came == n_short);
            n_short = fails || in_guests ? n_short : n_came;
            n_extended += metrics->limit_extensions;
            n_stops_failed += in_guests ? 0 : metrics->ends_failed;
        }
    }
    assert_true(n_extended > FEW_SEEDS);
    assert_true(n_stops_failed > 0);
}

static void guaranteed_guests_get_all_where_there_are_no_others(void **state)
{
    for (guint32 seed = 1; seed <= FEW_SEEDS; seed++) {
        double cpu_s;
        g_autoptr(SimFixtureRun) run = run_seed(*state, seed, SIM_POLICY_RESERVED, FALSE, &cpu_s);
        assert_true(run->metrics.guaranteed_short_cpu == 0);
        assert_true(run->metrics.guaranteed_short_mem == 0);
        assert_true(run->metrics.guaranteed_wanted_cpu > 0);
    }
}

static void same_seed_gives_the_same_stays(void **state)
{
    for (guint32 seed = 1; seed <= FEW_SEEDS; seed++) {
        double cpu_s;
        g_autoptr(SimFixtureRun) first = run_seed(*state, seed, SIM_POLICY_BERTH, TRUE, &cpu_s);
        g_autoptr(SimFixtureRun) second = run_seed(*state, seed, SIM_POLICY_BERTH, TRUE, &cpu_s);
        assert_true(first->log->len > 0);
        assert_string_equal(first->log->str, second->log->str);
    }
}

static void failing_nodes_cost_work_and_time(void **state)
{
    guint64 failures = 0, ends = 0, restarts = 0;
    double lost = 0;
    for (guint32 seed = 1; seed <= FEW_SEEDS; seed++) {
        double cpu_s;
        g_autoptr(SimFixtureRun) run = run_seed(*state, seed, SIM_POLICY_RESERVED, TRUE, &cpu_s);
        failures += run->metrics.node_failures;
        lost += run->metrics.lost_cpu_s;
        ends += run->metrics.ends_failed;
        restarts += run->metrics.agent_restarts;
    }
    assert_true(ends > restarts && restarts > 0);
    assert_true(failures > 0);
    assert_true(lost > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_job_is_lost_and_work_adds_up, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(limits_that_are_too_short_end_no_job, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(guaranteed_guests_get_all_where_there_are_no_others,
                                        tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(same_seed_gives_the_same_stays, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(failing_nodes_cost_work_and_time, tempdir_make,
                                        tempdir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
