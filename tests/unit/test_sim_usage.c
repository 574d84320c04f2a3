/* SPDX-License-Identifier: Apache-2.0 */
/* The true usage of jobs: totals and peaks are kept, whatever the shape. */
#include "scheduler/sim/usage.h"
#include "tests/lib/assert.h"

#define HOUR_USEC (3600 * (gint64)G_USEC_PER_SEC)
#define N_SERIES  4
#define N_SAMPLES 50

/* Spiky CPU with idle samples, memory that comes and goes. */
static SimSeriesSet *make_set(gboolean with_memory)
{
    SimSeriesSet *set = sim_series_set_new();
    for (guint i = 0; i < N_SERIES; i++) {
        SimSeries *series = g_new0(SimSeries, 1);
        series->vcpus = 4;
        series->memory_mib = 8192;
        series->n_samples = N_SAMPLES;
        series->cpu = g_new0(guint16, N_SAMPLES);
        series->memory = with_memory ? g_new0(guint16, N_SAMPLES) : NULL;
        for (guint k = 0; k < N_SAMPLES; k++) {
            guint64 drawn = sim_mix(i, k);
            series->cpu[k] = drawn % 3 == 0 ? 0 : (guint16)(drawn % 10001);
            if (with_memory)
                series->memory[k] = (guint16)(1 + (drawn >> 32) % 10000);
        }
        g_ptr_array_add(set->series, series);
    }
    return set;
}

static SimJob make_job(guint64 id, gint64 run_usec)
{
    return (SimJob){.id = id,
                    .run_usec = run_usec,
                    .guests = 1,
                    .vcpus = 8,
                    .memory_mib = 16384,
                    .cpu_used_milli = 2500,
                    .memory_used_mib = 6000};
}

/* Walks over the run. */
static void walk(const SimUsage *usage, const SimJob *job, guint64 *out_memory_max,
                 guint64 *out_memory_step_max, guint *out_n)
{
    guint64 before = 0;
    *out_memory_max = *out_memory_step_max = 0;
    *out_n = 0;
    for (gint64 at = 0; at < job->run_usec; (*out_n)++) {
        gint64 until;
        SimDemand demand = sim_usage_at(usage, at, &until);
        assert_true(until > at);
        assert_true(demand.cpu_milli <= job->vcpus * 1000);
        assert_true(demand.memory_mib >= 1 && demand.memory_mib <= job->memory_mib);
        *out_memory_max = MAX(*out_memory_max, demand.memory_mib);
        if (at > 0) {
            guint64 low = MIN(before, demand.memory_mib), high = MAX(before, demand.memory_mib);
            *out_memory_step_max = MAX(*out_memory_step_max, high - low);
        }
        before = demand.memory_mib;
        at = until;
    }
}

static void sim_usage_reserved_is_all_that_is_reserved(void **state)
{
    SimUsageModel model = {.kind = SIM_USAGE_RESERVED};
    SimJob job = make_job(1, HOUR_USEC);
    SimUsage usage;
    gint64 until;
    sim_usage_init(&model, &job, &usage);
    SimDemand demand = sim_usage_at(&usage, 0, &until);
    assert_int_equal(demand.cpu_milli, 8000);
    assert_int_equal(demand.memory_mib, 16384);
    assert_true(until == G_MAXINT64);
}

static void sim_usage_trace_is_mean_and_peak_and_else_the_reservation(void **state)
{
    SimUsageModel model = {.kind = SIM_USAGE_TRACE};
    SimJob job = make_job(1, HOUR_USEC);
    SimUsage usage;
    gint64 until;
    sim_usage_init(&model, &job, &usage);
    SimDemand demand = sim_usage_at(&usage, HOUR_USEC / 2, &until);
    assert_int_equal(demand.cpu_milli, 2500);
    assert_int_equal(demand.memory_mib, 6000);
    job.cpu_used_milli = SIM_UNKNOWN;
    job.memory_used_mib = 0;
    sim_usage_init(&model, &job, &usage);
    demand = sim_usage_at(&usage, 0, &until);
    assert_int_equal(demand.cpu_milli, 8000);
    assert_int_equal(demand.memory_mib, 16384);
}

static void sim_usage_shapes_keep_mean_and_peak(void **state)
{
    static const gint64 runs[] = {10 * (gint64)G_USEC_PER_SEC, HOUR_USEC, 3 * HOUR_USEC + 7000000,
                                  50 * HOUR_USEC};
    static const guint32 means[] = {0, 1, 100, 2500, 7900, 8000};
    g_autoptr(SimSeriesSet) set = make_set(TRUE);
    SimUsageModel model = {.kind = SIM_USAGE_SHAPES, .seed = 5, .shapes = set};
    for (guint i = 0; i < G_N_ELEMENTS(runs) * G_N_ELEMENTS(means); i++) {
        SimJob job = make_job(i, runs[i / G_N_ELEMENTS(means)]);
        guint64 memory_max, step_max;
        double cpu, memory;
        guint n;
        SimUsage usage;
        job.cpu_used_milli = means[i % G_N_ELEMENTS(means)];
        sim_usage_init(&model, &job, &usage);
        sim_usage_mean(&usage, &job, &cpu, &memory);
        /* What is cut to whole milli-vCPUs may be missing, in each sample. */
        if (!(ABS(cpu - job.cpu_used_milli) <= 1.5))
            fail_msg("mean %.3f, wanted %u", cpu, job.cpu_used_milli);
        walk(&usage, &job, &memory_max, &step_max, &n);
        assert_true(memory_max <= 6000);
        assert_true(memory > 0);
        if (job.run_usec > HOUR_USEC) {
            assert_true(memory_max >= 5990);
            assert_true(n > 10);
            /* A tenth of the way from one sample to the next at most. */
            assert_true(step_max <= 601);
        }
    }
}

static void sim_usage_shapes_depend_on_seed_and_job_alone(void **state)
{
    g_autoptr(SimSeriesSet) set = make_set(TRUE);
    guint n_different = 0;
    for (guint64 id = 1; id <= 20; id++) {
        SimUsageModel model = {.kind = SIM_USAGE_SHAPES, .seed = 5, .shapes = set};
        SimJob job = make_job(id, HOUR_USEC);
        SimUsage first, again, other;
        sim_usage_init(&model, &job, &first);
        sim_usage_init(&model, &job, &again);
        model.seed = 6;
        sim_usage_init(&model, &job, &other);
        assert_ptr_equal(first.series, again.series);
        assert_int_equal(first.first, again.first);
        n_different += first.series != other.series || first.first != other.first;
    }
    assert_true(n_different > 10);
}

static void sim_usage_without_memory_in_the_series_is_the_peak(void **state)
{
    g_autoptr(SimSeriesSet) set = make_set(FALSE);
    SimUsageModel model = {.kind = SIM_USAGE_SHAPES, .seed = 5, .shapes = set};
    SimJob job = make_job(1, HOUR_USEC);
    SimUsage usage;
    gint64 until;
    sim_usage_init(&model, &job, &usage);
    assert_int_equal(sim_usage_at(&usage, HOUR_USEC / 3, &until).memory_mib, 6000);
}

static void sim_usage_of_a_vm_is_its_own_series(void **state)
{
    g_autoptr(SimSeriesSet) set = make_set(TRUE);
    SimUsageModel model = {.kind = SIM_USAGE_TRACE, .own = set};
    SimJob job = make_job(1, N_SAMPLES * SIM_SAMPLE_SEC * (gint64)G_USEC_PER_SEC);
    const SimSeries *series = sim_series_get(set, 2);
    SimUsage usage;
    job.series = 3;
    job.vcpus = 4;
    job.memory_mib = 8192;
    sim_usage_init(&model, &job, &usage);
    for (guint k = 0; k < N_SAMPLES; k++) {
        gint64 until;
        SimDemand demand =
            sim_usage_at(&usage, k * SIM_SAMPLE_SEC * (gint64)G_USEC_PER_SEC, &until);
        gint64 cpu = MAX(series->cpu[k], 1) * 4000 / 10000;
        assert_true(ABS((gint64)demand.cpu_milli - cpu) <= 1);
        assert_int_equal(demand.memory_mib, MAX(series->memory[k] * 8192u / 10000u, 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_usage_reserved_is_all_that_is_reserved),
        cmocka_unit_test(sim_usage_trace_is_mean_and_peak_and_else_the_reservation),
        cmocka_unit_test(sim_usage_shapes_keep_mean_and_peak),
        cmocka_unit_test(sim_usage_shapes_depend_on_seed_and_job_alone),
        cmocka_unit_test(sim_usage_without_memory_in_the_series_is_the_peak),
        cmocka_unit_test(sim_usage_of_a_vm_is_its_own_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
