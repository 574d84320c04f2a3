/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest may cost: a burst, and then so much a second. */
#include <config.h>

#include "nodeagent/allowance.h"
#include "tests/lib/assert.h"

#define START 1000000000

static BerthAllowance new_allowance(void)
{
    return (BerthAllowance){.burst_bytes = 1000, .bytes_per_sec = 100, .usec = START};
}

static void use_within_the_burst_waits_for_nothing(void **state)
{
    BerthAllowance allowance = new_allowance();
    assert_int_equal(berth_allowance_use(&allowance, 400, START), 0);
    assert_int_equal(berth_allowance_use(&allowance, 600, START), 0);
}

static void use_beyond_the_burst_waits_until_that_is_earned(void **state)
{
    BerthAllowance allowance = new_allowance();
    assert_int_equal(berth_allowance_use(&allowance, 1050, START), G_USEC_PER_SEC / 2 + 1);
    assert_int_equal(berth_allowance_use(&allowance, 0, START + G_USEC_PER_SEC / 2), 0);
    assert_int_equal(berth_allowance_use(&allowance, 1, START + G_USEC_PER_SEC / 2), 10001);
}

static void use_at_the_rate_never_waits(void **state)
{
    BerthAllowance allowance = new_allowance();
    assert_int_equal(berth_allowance_use(&allowance, 1000, START), 0);
    for (guint i = 1; i <= 1000; i++)
        assert_int_equal(berth_allowance_use(&allowance, 10, START + i * G_USEC_PER_SEC / 10), 0);
}

/* Over a long time it takes what bytes_per_sec says, whatever the pieces. */
static void use_as_fast_as_it_may_has_the_rate(void **state)
{
    BerthAllowance allowance = new_allowance();
    gint64 now = START;
    guint64 used = 0;
    while (now < START + 100 * G_USEC_PER_SEC) {
        used += 77;
        now += berth_allowance_use(&allowance, 77, now);
    }
    assert_in_range(used, 11000, 11000 + 77);
}

static void pause_earns_no_more_than_the_burst(void **state)
{
    BerthAllowance allowance = new_allowance();
    berth_allowance_use(&allowance, 5000, START);
    gint64 later = START + G_GINT64_CONSTANT(1000000000) * G_USEC_PER_SEC;
    assert_int_equal(berth_allowance_use(&allowance, 1000, later), 0);
    assert_true(berth_allowance_use(&allowance, 1, later) > 0);
}

static void extreme_values_do_not_overflow(void **state)
{
    const guint64 most = G_GUINT64_CONSTANT(1) << 40;
    BerthAllowance allowance = {.burst_bytes = most, .bytes_per_sec = most, .usec = 0};
    assert_int_equal(berth_allowance_use(&allowance, 2 * most, 0), G_USEC_PER_SEC + 1);
    assert_int_equal(berth_allowance_use(&allowance, most, G_MAXINT64), 0);
    allowance = (BerthAllowance){.burst_bytes = 0, .bytes_per_sec = 1, .usec = 5};
    assert_int_equal(berth_allowance_use(&allowance, 3, 5), 3 * G_USEC_PER_SEC + 1);
    assert_int_equal(berth_allowance_use(&allowance, 0, 4), 3 * G_USEC_PER_SEC + 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(use_within_the_burst_waits_for_nothing),
        cmocka_unit_test(use_beyond_the_burst_waits_until_that_is_earned),
        cmocka_unit_test(use_at_the_rate_never_waits),
        cmocka_unit_test(use_as_fast_as_it_may_has_the_rate),
        cmocka_unit_test(pause_earns_no_more_than_the_burst),
        cmocka_unit_test(extreme_values_do_not_overflow),
    };
    return cmocka_run_group_tests_name("allowance", tests, NULL, NULL);
}
