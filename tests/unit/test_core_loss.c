/* SPDX-License-Identifier: Apache-2.0 */
/* What a gang has lost, of what its guests say that they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/core/loss.h"

#define SEC        ((gint64)G_USEC_PER_SEC)
#define START_USEC (1000000 * SEC)
#ifdef __SANITIZE_ADDRESS__ /* thirty times slower, and the plain build has a day */
#define END_USEC (START_USEC + 2 * 3600 * SEC)
#else
#define END_USEC (START_USEC + 24 * 3600 * SEC)
#endif

/* A day in which each of N guests reports each INTERVAL, at instants of their own, in turn, and lost
 * PERMILLE of the time, all of them at once. */
static gint64 lost_by_all_usec(guint n, gint64 interval_usec, gint64 permille)
{
    gint64 step_usec = interval_usec / n;
    CoreLoss *loss = core_loss_new(START_USEC, 0);
    gint64 previous_usec = 0;
    for (gint64 k = 1; START_USEC + k * step_usec <= END_USEC; k++) {
        gint64 now_usec = START_USEC + k * step_usec;
        gint64 from_usec = MAX(now_usec - n * step_usec, START_USEC);
        core_loss_add(loss, from_usec, now_usec, (now_usec - from_usec) * permille / 1000);
        gint64 sum_usec = core_loss_sum_usec(loss);
        assert_true(sum_usec >= previous_usec && sum_usec <= now_usec - START_USEC);
        assert_int_equal(core_loss_at_usec(loss, now_usec), sum_usec);
        previous_usec = sum_usec;
    }
    core_loss_free(loss);
    return previous_usec;
}

static void what_all_lose_at_once_is_lost_once(void **state)
{
    static const guint guests[] = {2, 3, 7, 64, 200, 1000};
    static const gint64 intervals[] = {5, 30, 600, 3600};
    for (gsize i = 0; i < G_N_ELEMENTS(guests); i++)
        for (gsize k = 0; k < G_N_ELEMENTS(intervals); k++) {
            gint64 quarter_usec = (END_USEC - START_USEC) / 4;
            gint64 sum_usec = lost_by_all_usec(guests[i], intervals[k] * SEC, 250);
            assert_in_range(sum_usec, quarter_usec, quarter_usec + SEC / 10);
        }
}

/* Each reports when the next begins to lose: however many points were left out meanwhile. */
static void what_guests_lose_in_turn_is_lost_by_each(void **state)
{
    CoreLoss *loss = core_loss_new(START_USEC, 0);
    gint64 now_usec = START_USEC;
    for (guint i = 0; i < 1000; i++) {
        now_usec += 30 * SEC;
        core_loss_add(loss, now_usec - 30 * SEC, now_usec, i % 2 == 0 ? 7 * SEC : 0);
        core_loss_add(loss, now_usec - 30 * SEC, now_usec, i % 2 == 0 ? 0 : 11 * SEC);
        assert_int_equal(core_loss_sum_usec(loss), (i / 2 * 18 + (i % 2 == 0 ? 7 : 18)) * SEC);
    }
    assert_int_equal(core_loss_at_usec(loss, START_USEC), 0);
    assert_int_equal(core_loss_at_usec(loss, now_usec - 15 * SEC), (500 * 18 * 2 - 11) * SEC / 2);
    assert_int_equal(core_loss_at_usec(loss, now_usec + SEC), 500 * 18 * SEC);
    core_loss_free(loss);
}

static void what_is_said_late_is_of_its_time(void **state)
{
    CoreLoss *loss = core_loss_new(START_USEC + 10 * SEC, 10 * SEC);
    gint64 restored_usec = START_USEC + 10 * SEC;
    core_loss_add(loss, restored_usec, START_USEC + 110 * SEC, 50 * SEC);
    core_loss_add(loss, START_USEC + 40 * SEC, START_USEC + 60 * SEC, 20 * SEC);
    assert_int_equal(core_loss_at_usec(loss, START_USEC + 40 * SEC), 25 * SEC);
    assert_int_equal(core_loss_at_usec(loss, START_USEC + 60 * SEC), 45 * SEC);
    assert_int_equal(core_loss_sum_usec(loss), 70 * SEC);
    /* Nothing twice, and what has no time of its own besides what is known. */
    core_loss_add(loss, START_USEC + 45 * SEC, START_USEC + 55 * SEC, 10 * SEC);
    assert_int_equal(core_loss_sum_usec(loss), 70 * SEC);
    core_loss_add(loss, START_USEC + 110 * SEC, START_USEC + 110 * SEC, 5 * SEC);
    assert_int_equal(core_loss_sum_usec(loss), 75 * SEC);
    /* Never more than the time since the start. */
    core_loss_add(loss, START_USEC, START_USEC + 111 * SEC, 1000 * SEC);
    assert_int_equal(core_loss_sum_usec(loss), 111 * SEC);
    core_loss_free(loss);
}

/* Products of a year in microseconds do not fit. */
static void years_are_added_up(void **state)
{
    gint64 year_usec = 365 * 24 * 3600 * SEC;
    CoreLoss *loss = core_loss_new(START_USEC, 0);
    core_loss_add(loss, START_USEC, START_USEC + 2 * year_usec, year_usec);
    core_loss_add(loss, START_USEC + year_usec, START_USEC + 3 * year_usec, 2 * year_usec);
    gint64 error_usec = core_loss_sum_usec(loss) - (2 * year_usec + year_usec / 2);
    assert_in_range(error_usec + SEC, 0, 2 * SEC);
    core_loss_free(loss);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_all_lose_at_once_is_lost_once),
        cmocka_unit_test(what_guests_lose_in_turn_is_lost_by_each),
        cmocka_unit_test(what_is_said_late_is_of_its_time),
        cmocka_unit_test(years_are_added_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
