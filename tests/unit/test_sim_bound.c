/* SPDX-License-Identifier: Apache-2.0 */
/* The upper bound, by hand and against the policies. */
#include "scheduler/sim/bound.h"
#include "scheduler/sim/knapsack.h"
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

/* --- the knapsack ------------------------------------------------------------------------------- */

static gboolean is_near(double value, double wanted)
{
    return value >= wanted * (1 - 1e-9) && value <= wanted * (1 + 1.0 / 64) + 1e-9;
}

static void sim_knapsack_takes_the_best_ratio_first(void **state)
{
    g_autoptr(SimKnapsack) knapsack = sim_knapsack_new();
    g_autoptr(SimCurve) dear = sim_curve_new(), cheap = sim_curve_new();
    sim_curve_add(dear, 10, 100);
    sim_curve_add(cheap, 10, 20);
    sim_knapsack_add(knapsack, dear);
    sim_knapsack_add(knapsack, cheap);
    assert_true(is_near(sim_knapsack_most(knapsack, 10), 5));
    assert_true(sim_knapsack_most(knapsack, 20) == 10);
    assert_true(is_near(sim_knapsack_most(knapsack, 70), 15));
    assert_true(sim_knapsack_most(knapsack, 1000) == 20);
    assert_true(sim_knapsack_most(knapsack, 0) == 0);
}

/* What is done first, with little memory, counts as such; what comes last only with all before it. */
static void sim_knapsack_follows_a_curve_from_its_beginning(void **state)
{
    g_autoptr(SimKnapsack) early = sim_knapsack_new(), late = sim_knapsack_new();
    g_autoptr(SimCurve) falls = sim_curve_new(), rises = sim_curve_new();
    sim_curve_add(falls, 9, 10);
    sim_curve_add(falls, 1, 90);
    sim_curve_add(rises, 1, 90);
    sim_curve_add(rises, 9, 10);
    sim_knapsack_add(early, falls);
    sim_knapsack_add(late, rises);
    assert_true(sim_knapsack_most(early, 10) == 9);
    assert_true(is_near(sim_knapsack_most(late, 10), 1));
    assert_true(sim_knapsack_most(late, 100) == 10);
    sim_knapsack_add_all(early, late);
    assert_true(is_near(sim_knapsack_most(early, 60), 9 + 5));
}

/* --- usage that varies -------------------------------------------------------------------------- */

#define SLOT_SEC   300 /* a sample of usage */
#define N_VARYING  3
#define SLOTS      4 /* up to the trace's end */
#define VCPUS      4
#define MEMORY_MIB 2600

/* A job as it is slot by slot of its run. */
typedef struct {
    guint comes, length;
    double cpu[SLOTS], mem[SLOTS]; /* CPU seconds; the most memory in it, MiB */
} Slotted;

/* The most that can be done from SLOT on, if jobs can be stopped and continued at will, without any memory meanwhile:
 * all ways are tried. */
static double try_all(const Slotted *jobs, guint slot, guint *done)
{
    double best = 0;
    for (guint set = 0; slot < SLOTS && set < 1u << N_VARYING; set++) {
        double cpu = 0, mem = 0;
        gboolean fits = TRUE;
        for (guint i = 0; i < N_VARYING; i++) {
            if ((set >> i & 1) == 0)
                continue;
            fits &= jobs[i].comes <= slot && done[i] < jobs[i].length;
            cpu += jobs[i].cpu[MIN(done[i], SLOTS - 1)];
            mem += jobs[i].mem[MIN(done[i], SLOTS - 1)];
        }
        if (!fits || cpu > VCPUS * SLOT_SEC || mem > MEMORY_MIB)
            continue;
        for (guint i = 0; i < N_VARYING; i++)
            done[i] += set >> i & 1;
        best = MAX(best, cpu + try_all(jobs, slot + 1, done));
        for (guint i = 0; i < N_VARYING; i++)
            done[i] -= set >> i & 1;
    }
    return best;
}

static SimSeriesSet *make_shapes(guint32 seed)
{
    SimSeriesSet *set = sim_series_set_new();
    SimSeries *series = g_new0(SimSeries, 1);
    series->n_samples = 16;
    series->cpu = g_new0(guint16, 16);
    series->memory = g_new0(guint16, 16);
    for (guint k = 0; k < 16; k++) {
        guint64 drawn = sim_mix(seed, k);
        series->cpu[k] = (guint16)(drawn % 3 == 0 ? 300 : 3000 + drawn % 7000);
        series->memory[k] = (guint16)((drawn >> 32) % 3 == 0 ? 9000 : 1000 + (drawn >> 40) % 2000);
    }
    g_ptr_array_add(set->series, series);
    return set;
}

/* Three jobs that come within the first slots, and one that comes at the end of the last. */
static char *make_varying(guint32 seed)
{
    GString *text = g_string_new("; MaxNodes: 1\n; MaxProcs: 4\n");
    gint64 comes = 0;
    for (guint i = 0; i < N_VARYING; i++) {
        guint64 drawn = sim_mix(seed, 100 + i);
        gint64 run = SLOT_SEC * (gint64)(2 + drawn % 3);
        comes += i > 0 ? SLOT_SEC * (gint64)((drawn >> 16) % 2) : 0;
        g_string_append_printf(text, "%u %d -1 %d 2 %d %u 2 9000 1310720 1 1 1 1 1 1 -1 -1\n",
                               i + 1, (int)comes, (int)run, (int)run / 2,
                               600000 + (guint)((drawn >> 24) % 600000));
    }
    g_string_append_printf(text, "9 %d -1 60 1 30 1024 1 90 1024 1 1 1 1 1 1 -1 -1\n",
                           SLOTS * SLOT_SEC);
    return g_string_free(text, FALSE);
}

static void slot_job(const SimUsageModel *model, const SimJob *job, Slotted *out_slotted)
{
    const gint64 slot_usec = SLOT_SEC * (gint64)G_USEC_PER_SEC;
    SimUsage usage;
    sim_usage_init(model, job, &usage);
    *out_slotted = (Slotted){.comes = (guint)(job->submit_usec / slot_usec),
                             .length = (guint)(job->run_usec / slot_usec)};
    for (guint k = 0; k < out_slotted->length; k++) {
        for (gint64 at = k * slot_usec; at < (k + 1) * slot_usec; at += slot_usec / 10) {
            gint64 until;
            SimDemand demand = sim_usage_at(&usage, at, &until);
            out_slotted->cpu[k] += (double)demand.cpu_milli / 1000 * SLOT_SEC / 10;
            out_slotted->mem[k] = MAX(out_slotted->mem[k], (double)demand.memory_mib);
        }
    }
}

/* Each as one piece, as it is over all of its run: what is no bound where usage varies. */
static double most_of_whole_jobs(const Slotted *jobs)
{
    g_autoptr(SimKnapsack) knapsack = sim_knapsack_new();
    for (guint i = 0; i < N_VARYING; i++) {
        g_autoptr(SimCurve) curve = sim_curve_new();
        double cpu = 0, mem = 0;
        for (guint k = 0; k < MIN(jobs[i].length, SLOTS - jobs[i].comes); k++) {
            cpu += jobs[i].cpu[k];
            mem += jobs[i].mem[k] * SLOT_SEC;
        }
        sim_curve_add(curve, cpu, mem);
        sim_knapsack_add(knapsack, curve);
    }
    return sim_knapsack_most(knapsack, (double)MEMORY_MIB * SLOTS * SLOT_SEC);
}

/* What one seed's jobs can do at most: bound, and what was found by trying. */
typedef struct {
    double bound, best, whole;
} Most;

static void try_seed(const char *dir, guint32 seed, Most *out_most)
{
    SimConfig config;
    SimMetrics metrics;
    Slotted slotted[N_VARYING];
    guint done[N_VARYING] = {0};
    gboolean end;
    g_autoptr(SimSeriesSet) shapes = make_shapes(seed);
    SimUsageModel usage = {.kind = SIM_USAGE_SHAPES, .seed = seed, .shapes = shapes};
    SimWorkloadConfig workload_config = {.machine = {0, 0, MEMORY_MIB}};
    g_autoptr(GError) error = NULL;
    g_autofree char *text = make_varying(seed);
    g_autofree char *path = sim_fixture_file(dir, "varying", text);
    const char *paths[] = {path, NULL};
    g_autoptr(SimTrace) trace = sim_trace_open(paths, SIM_FORMAT_AUTO, &error);
    assert_no_error(error);
    g_autoptr(SimWorkload) workload = sim_workload_new(trace, &workload_config, &error);
    assert_no_error(error);
    assert_true(sim_workload_rewind(workload, NULL));
    for (guint i = 0; i < N_VARYING; i++) {
        SimJob job;
        assert_true(sim_workload_next(workload, &job, &end, NULL));
        slot_job(&usage, &job, &slotted[i]);
    }
    sim_fixture_config(SIM_POLICY_BOUND, &config);
    assert_true(sim_bound_run(&config, workload, &usage, &metrics, &error));
    *out_most = (Most){.bound = metrics.useful_cpu_end_s,
                       .best = try_all(slotted, 0, done),
                       .whole = most_of_whole_jobs(slotted)};
    sim_metrics_clear(&metrics);
}

static void try_policies(const char *dir, guint32 seed, double bound_s)
{
    g_autoptr(SimSeriesSet) shapes = make_shapes(seed);
    g_autofree char *text = make_varying(seed);
    for (SimPolicy policy = SIM_POLICY_FCFS; policy < SIM_POLICY_BOUND; policy++) {
        SimConfig config;
        SimUsageModel usage = {.kind = SIM_USAGE_SHAPES, .seed = seed, .shapes = shapes};
        SimWorkloadConfig workload = {.machine = {0, 0, MEMORY_MIB}};
        sim_fixture_config(policy, &config);
        config.costs.values[SIM_COST_BOOT_USEC] = 0;
        g_autoptr(SimFixtureRun) run = sim_fixture_run(dir, text, &config, &workload, &usage);
        assert_true(run->metrics.useful_cpu_end_s <= bound_s * 1.000001);
        assert_true(run->metrics.useful_cpu_end_s > 0);
    }
}

static void sim_bound_holds_where_usage_varies(void **state)
{
    double bounds = 0, bests = 0;
    guint n_memory = 0;
    for (guint32 seed = 1; seed <= 60; seed++) {
        Most most;
        try_seed(*state, seed, &most);
        if (most.best > most.bound * 1.000001)
            fail_msg("seed %u: %.1f CPU seconds can be done, the bound says %.1f", seed, most.best,
                     most.bound);
        try_policies(*state, seed, most.bound);
        bounds += most.bound;
        bests += most.best;
        n_memory += most.best > most.whole * 1.000001;
    }
    /* Of some of these jobs taken as a whole would say less than can be done; and the bound is near. */
    assert_true(n_memory > 0);
    assert_true(bests > 0.8 * bounds);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sim_bound_of_little_demand_is_the_demand),
        TEST(sim_bound_of_much_demand_is_the_capacity_from_then_on),
        TEST(sim_bound_knows_memory),
        TEST(no_policy_exceeds_the_bound),
        cmocka_unit_test(sim_knapsack_takes_the_best_ratio_first),
        cmocka_unit_test(sim_knapsack_follows_a_curve_from_its_beginning),
        TEST(sim_bound_holds_where_usage_varies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
