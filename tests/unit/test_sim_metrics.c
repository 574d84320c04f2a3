/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming quantiles, bins over time, and what is derived per job. */
#include "scheduler/sim/metrics.h"
#include "scheduler/sim/usage.h"
#include "tests/lib/assert.h"

#include <stdlib.h>

#define N_VALUES 20000
#define SEC      ((gint64)G_USEC_PER_SEC)

static int compare(const void *a, const void *b)
{
    guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;
    return x < y ? -1 : x > y;
}

static void sim_quantiles_are_within_the_stated_error(void **state)
{
    static const double shares[] = {0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.999, 1};
    g_autofree SimQuantiles *quantiles = g_new0(SimQuantiles, 1);
    g_autofree guint64 *values = g_new(guint64, N_VALUES);
    for (guint i = 0; i < N_VALUES; i++) {
        guint64 drawn = sim_mix(3, i);
        values[i] = drawn >> (14 + drawn % 50); /* over many magnitudes */
        sim_quantiles_add(quantiles, values[i], 1);
    }
    qsort(values, N_VALUES, sizeof *values, compare);
    for (guint i = 0; i < G_N_ELEMENTS(shares); i++) {
        guint rank = (guint)MAX(shares[i] * N_VALUES, 1) - 1;
        double exact = (double)values[rank], got = sim_quantiles_get(quantiles, shares[i]);
        if (!(ABS(got - exact) <= 0.008 * exact))
            fail_msg("%.3f: %.1f, exactly %.1f", shares[i], got, exact);
    }
}

static void sim_quantiles_count_weights(void **state)
{
    g_autofree SimQuantiles *quantiles = g_new0(SimQuantiles, 1);
    assert_true(sim_quantiles_get(quantiles, 0.5) == 0);
    sim_quantiles_add(quantiles, 10, 1);
    sim_quantiles_add(quantiles, 20, 3);
    assert_true(sim_quantiles_get(quantiles, 0.25) == 10);
    assert_true(sim_quantiles_get(quantiles, 0.26) == 20);
    sim_quantiles_add(quantiles, G_MAXUINT64, 100);
    assert_true(sim_quantiles_get(quantiles, 1) > 1.8e19);
}

static void sim_timeline_keeps_means_when_it_grows(void **state)
{
    SimTimeline *timeline = sim_timeline_new();
    double values[SIM_LINE_N] = {0};
    double area = 0;
    gint64 end = 100000 * SEC;
    for (gint64 at = 0; at < end; at += 250 * SEC) {
        values[SIM_LINE_WAITING] = (double)(at / SEC % 7);
        area += values[SIM_LINE_WAITING] * 250;
        sim_timeline_add(timeline, at, at + 250 * SEC, values);
    }
    double sum = 0;
    assert_true(timeline->n_bins <= SIM_TIMELINE_BINS);
    assert_true(timeline->n_bins * timeline->bin_usec >= end);
    for (guint i = 0; i < timeline->n_bins; i++)
        sum += sim_timeline_mean(timeline, i, SIM_LINE_WAITING) * timeline->usec[i] / (double)SEC;
    assert_true(ABS(sum - area) < 1e-6 * area);
    sim_timeline_free(timeline);
}

static void sim_metrics_wait_is_all_that_is_not_run_time(void **state)
{
    SimJob job = {.submit_usec = 100 * SEC, .run_usec = 50 * SEC, .guests = 2, .vcpus = 4};
    SimOutcome late = {.start_usec = 130 * SEC, .end_usec = 180 * SEC, .is_completed = TRUE};
    SimOutcome slow = {.start_usec = 100 * SEC, .end_usec = 200 * SEC, .is_completed = TRUE};
    assert_true(sim_metrics_wait_s(&job, &late) == 30);
    assert_true(sim_metrics_wait_s(&job, &slow) == 50);
    assert_true(sim_metrics_slowdown(&job, &late) == 80.0 / 50);
    job.run_usec = 2 * SEC; /* below the bound of 10 s */
    assert_true(sim_metrics_slowdown(&job, &late) == 8);
    late.end_usec = 103 * SEC;
    assert_true(sim_metrics_slowdown(&job, &late) == 1);
}

static void sim_metrics_add_job_counts_by_width(void **state)
{
    SimMetrics metrics;
    SimJob job = {.submit_usec = 0, .run_usec = SEC, .guests = 3, .vcpus = 4};
    SimOutcome killed = {.end_usec = 11 * SEC, .is_killed = TRUE};
    SimOutcome lost = {.end_usec = 21 * SEC};
    sim_metrics_init(&metrics);
    sim_metrics_add_job(&metrics, &job, &killed);
    sim_metrics_add_job(&metrics, &job, &lost);
    assert_int_equal(metrics.jobs, 2);
    assert_int_equal(metrics.kills, 1);
    assert_int_equal(metrics.lost, 1);
    assert_true(metrics.wait_sum_s == 30);
    assert_string_equal(sim_width_name(sim_width_class(12)), "5-16");
    assert_true(metrics.waits_by_width[sim_width_class(12)]->total == 2);
    assert_string_equal(sim_width_name(sim_width_class(1)), "1");
    assert_string_equal(sim_width_name(sim_width_class(1025)), ">1024");
    sim_metrics_clear(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_quantiles_are_within_the_stated_error),
        cmocka_unit_test(sim_quantiles_count_weights),
        cmocka_unit_test(sim_timeline_keeps_means_when_it_grows),
        cmocka_unit_test(sim_metrics_wait_is_all_that_is_not_run_time),
        cmocka_unit_test(sim_metrics_add_job_counts_by_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
