/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's time when the wall clock is set. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/clock.h"

#define SEC  ((gint64)G_USEC_PER_SEC)
#define HOUR (3600 * SEC)
#define WALL (1000000 * SEC)

static void clock_runs_with_the_wall_clock(void **state)
{
    BerthClock clock;
    berth_clock_start(&clock, 5 * SEC, WALL, 0);
    for (gint64 passed = 0; passed < HOUR; passed += SEC / 3) {
        assert_int_equal(berth_clock_step(&clock, 5 * SEC + passed, WALL + passed), WALL + passed);
    }
}

static void clock_start_is_after_what_is_stored(void **state)
{
    BerthClock clock;
    berth_clock_start(&clock, 0, WALL, WALL + HOUR);
    assert_true(berth_clock_step(&clock, 0, WALL) > WALL + HOUR);
}

static void clock_step_after_the_wall_clock_jumped_passes_as_before(void **state)
{
    static const gint64 jumps[] = {HOUR, -HOUR, 365 * 24 * HOUR, -365 * 24 * HOUR, 2 * SEC};
    for (gsize i = 0; i < G_N_ELEMENTS(jumps); i++) {
        BerthClock clock;
        berth_clock_start(&clock, 0, WALL, 0);
        gint64 before = berth_clock_step(&clock, 10 * SEC, WALL + 10 * SEC);
        gint64 last = before;
        for (gint64 passed = SEC / 7; passed < 600 * SEC; passed += SEC / 7) {
            gint64 now =
                berth_clock_step(&clock, 10 * SEC + passed, WALL + 10 * SEC + jumps[i] + passed);
            assert_true(now >= last);
            assert_true(now - last < SEC);
            last = now;
        }
        /* Ten minutes took ten minutes, give or take half a minute. */
        assert_in_range(last - before, 569 * SEC, 631 * SEC);
    }
}

static void clock_that_differs_comes_to_the_wall_clock_again(void **state)
{
    static const gint64 jumps[] = {HOUR, -HOUR};
    for (gsize i = 0; i < G_N_ELEMENTS(jumps); i++) {
        BerthClock clock;
        gint64 now = 0;
        berth_clock_start(&clock, 0, WALL, 0);
        for (gint64 passed = 0; passed <= 24 * HOUR; passed += 10 * SEC) {
            now = berth_clock_step(&clock, passed, WALL + jumps[i] + passed);
        }
        assert_int_equal(now, WALL + jumps[i] + 24 * HOUR);
    }
}

static void clock_step_over_sleep_counts_it(void **state)
{
    BerthClock clock;
    berth_clock_start(&clock, 0, WALL, 0);
    assert_int_equal(berth_clock_step(&clock, 8 * HOUR, WALL + 8 * HOUR), WALL + 8 * HOUR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_runs_with_the_wall_clock),
        cmocka_unit_test(clock_start_is_after_what_is_stored),
        cmocka_unit_test(clock_step_after_the_wall_clock_jumped_passes_as_before),
        cmocka_unit_test(clock_that_differs_comes_to_the_wall_clock_again),
        cmocka_unit_test(clock_step_over_sleep_counts_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
