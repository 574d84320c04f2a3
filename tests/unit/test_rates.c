/* SPDX-License-Identifier: Apache-2.0 */
/* How counters become rates, whatever the pauses between measurements. */
#include <config.h>

#include "nodeagent/rates.h"
#include "tests/lib/assert.h"

#define SECOND (gint64) G_USEC_PER_SEC
#define WINDOW (5 * SECOND)

static BerthRate add(BerthRates *rates, gint64 at_usec, guint64 cpu_usec)
{
    const BerthQemuUsage usage = {.cpu_usec = cpu_usec};
    return berth_rates_add(rates, at_usec, &usage, WINDOW);
}

static void first_measurement_has_no_rate(void **state)
{
    BerthRates rates = {0};
    BerthRate rate = add(&rates, 100 * SECOND, 77);
    assert_int_equal(rate.over_msec, 0);
    assert_int_equal(rate.cpu_milli, 0);
    rate = add(&rates, 100 * SECOND, 77); /* at once again */
    assert_int_equal(rate.over_msec, 0);
}

/* Busy for the last second of ten: whether it was measured each second or twice, no more is said than a window has. */
static void rate_is_over_a_window_however_often_it_is_measured(void **state)
{
    BerthRates often = {0}, seldom = {0};
    BerthRate rate = {0};
    for (gint64 second = 0; second <= 9; second++)
        rate = add(&often, second * SECOND, 0);
    assert_int_equal(rate.cpu_milli, 0);
    rate = add(&often, 10 * SECOND, 1000000);
    assert_int_equal(rate.over_msec, 5000);
    assert_int_equal(rate.cpu_milli, 200);
    add(&seldom, 0, 0);
    add(&seldom, 5 * SECOND, 0);
    rate = add(&seldom, 10 * SECOND, 1000000);
    assert_int_equal(rate.over_msec, 5000);
    assert_int_equal(rate.cpu_milli, 200);
}

/* After a pause it is over all of that; nothing older counts. */
static void rate_after_a_pause_is_over_the_pause(void **state)
{
    BerthRates rates = {0};
    add(&rates, 0, 0);
    add(&rates, 5 * SECOND, 5000000);
    BerthRate rate = add(&rates, 25 * SECOND, 15000000);
    assert_int_equal(rate.over_msec, 20000);
    assert_int_equal(rate.cpu_milli, 500);
}

static void more_measurements_than_there_is_room_for_keep_the_window(void **state)
{
    BerthRates rates = {0};
    BerthRate rate = {0};
    for (gint64 tenth = 0; tenth <= 45; tenth++)
        rate = add(&rates, tenth * SECOND / 10, (guint64)tenth * 100000);
    assert_int_equal(rate.over_msec, 4500);
    assert_int_equal(rate.cpu_milli, 1000);
    assert_true(rates.n <= BERTH_RATES_SAMPLES);
}

static void waiting_and_throttling_are_parts(void **state)
{
    BerthRates rates = {0};
    BerthQemuUsage usage = {.cpu_usec = 100, .starved_usec = 200, .throttled_usec = 300};
    berth_rates_add(&rates, SECOND, &usage, WINDOW);
    usage.cpu_usec += 1000000;
    usage.starved_usec += 500000;
    usage.throttled_usec += 3000000; /* of several vCPUs */
    BerthRate rate = berth_rates_add(&rates, 3 * SECOND, &usage, WINDOW);
    assert_int_equal(rate.cpu_milli, 500);
    assert_int_equal(rate.starved_permille, 250);
    assert_int_equal(rate.throttled_permille, 750);
}

static void counters_that_fall_are_of_another_qemu(void **state)
{
    BerthRates rates = {0};
    add(&rates, SECOND, 5000000);
    BerthRate rate = add(&rates, 2 * SECOND, 100);
    assert_int_equal(rate.over_msec, 0);
    rate = add(&rates, 3 * SECOND, 500100);
    assert_int_equal(rate.cpu_milli, 500);
    berth_rates_reset(&rates);
    assert_int_equal(add(&rates, 4 * SECOND, 600000).over_msec, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_measurement_has_no_rate),
        cmocka_unit_test(rate_is_over_a_window_however_often_it_is_measured),
        cmocka_unit_test(rate_after_a_pause_is_over_the_pause),
        cmocka_unit_test(more_measurements_than_there_is_room_for_keep_the_window),
        cmocka_unit_test(waiting_and_throttling_are_parts),
        cmocka_unit_test(counters_that_fall_are_of_another_qemu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
