/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nodeagent/convergence.h"

#define MIB (G_GUINT64_CONSTANT(1) << 20)

/* What is advised at each second from 1 on, up to N, while LEFT[second % n_left] MiB are left; the last advice
 * that is not to wait, with when it came. */
static BerthConvergenceAdvice play(BerthConvergence *convergence, const guint *left, guint n_left,
                                   guint seconds, guint *out_second)
{
    BerthConvergenceAdvice last = BERTH_CONVERGENCE_WAIT;
    *out_second = 0;
    for (guint i = 0; i < seconds; i++) {
        BerthConvergenceAdvice advice = berth_convergence_look(
            convergence, (gint64)(i + 1) * G_USEC_PER_SEC, left[i % n_left] * MIB);
        if (advice == BERTH_CONVERGENCE_WAIT)
            continue;
        last = advice;
        *out_second = i + 1;
        if (advice == BERTH_CONVERGENCE_GIVE_UP)
            break;
    }
    return last;
}

static void look_that_sees_less_each_time_waits(void **state)
{
    BerthConvergence convergence = {0};
    for (guint i = 0; i < 100; i++)
        assert_int_equal(berth_convergence_look(&convergence, (gint64)(i + 1) * G_USEC_PER_SEC,
                                                (1000 - 9 * (guint64)i) * MIB),
                         BERTH_CONVERGENCE_WAIT);
}

/* Each pass over the memory begins with more than the one before has left. */
static void look_that_sees_passes_compares_what_they_leave(void **state)
{
    BerthConvergence convergence = {0};
    for (guint i = 0; i < 100; i++) {
        guint64 least = 1000 - 9 * (guint64)i;
        assert_int_equal(berth_convergence_look(&convergence, (gint64)(i + 1) * G_USEC_PER_SEC,
                                                (i % 2 ? least : 2000) * MIB),
                         BERTH_CONVERGENCE_WAIT);
    }
}

static void look_that_sees_no_progress_raises_the_downtime_and_gives_up(void **state)
{
    const guint left[] = {500, 900, 700};
    BerthConvergence convergence = {0};
    guint second;
    assert_int_equal(play(&convergence, left, G_N_ELEMENTS(left), 25, &second),
                     BERTH_CONVERGENCE_RAISE_DOWNTIME);
    assert_int_equal(second, 21); /* two windows of 10 s, from second 1 on */
    assert_int_equal(convergence.downtime_msec, 600);
    convergence = (BerthConvergence){0};
    assert_int_equal(play(&convergence, left, G_N_ELEMENTS(left), 1000, &second),
                     BERTH_CONVERGENCE_GIVE_UP);
    assert_int_equal(convergence.downtime_msec, 2400);
    assert_int_equal(second, 51);
}

/* As much as there is may be written once more. */
static void must_stand_once_the_rest_may_not_fit(void **state)
{
    static const struct {
        guint copied, left, space;
        gboolean must_stand;
    } cases[] = {
        {0, 1000, 1600, FALSE}, {0, 0, 8, FALSE},       {700, 700, 1600, FALSE},
        {701, 700, 1600, TRUE}, {1400, 0, 1600, FALSE}, {1401, 0, 1600, TRUE},
        {0, 1401, 1600, TRUE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_int_equal(berth_convergence_must_stand(cases[i].copied * MIB, cases[i].left * MIB,
                                                      cases[i].space * MIB),
                         cases[i].must_stand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(look_that_sees_less_each_time_waits),
        cmocka_unit_test(look_that_sees_passes_compares_what_they_leave),
        cmocka_unit_test(look_that_sees_no_progress_raises_the_downtime_and_gives_up),
        cmocka_unit_test(must_stand_once_the_rest_may_not_fit),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
