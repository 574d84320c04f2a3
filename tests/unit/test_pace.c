/* SPDX-License-Identifier: Apache-2.0 */
/* How often what is measured is measured, in virtual time. */
#include <config.h>

#include "nodeagent/pace.h"
#include "tests/lib/assert.h"

#define SECOND (gint64) G_USEC_PER_SEC

static const BerthPaceLimits limits = {15, 5, 20, 10};
static const BerthPaceIntervals intervals = {{20000, 5000, 1000}};

/* A guest that does nothing, and has room. */
static Berth__Usage calm_guest(void)
{
    Berth__Usage usage = BERTH__USAGE__INIT;
    usage.memory_total_mib = 1000;
    usage.memory_available_mib = 800;
    usage.rate_msec = 5000;
    usage.cpu_milli = 5;
    return usage;
}

static void guest_without_work_is_calm(void **state)
{
    Berth__Usage usage = calm_guest();
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_CALM);
    usage.cpu_milli = 20;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NORMAL);
    usage = calm_guest();
    usage.psi_io_some = 100;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NORMAL);
    usage = calm_guest();
    usage.memory_total_mib = usage.memory_available_mib = 0; /* it boots */
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NORMAL);
    usage = calm_guest();
    usage.rate_msec = 0;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NORMAL);
}

static void guest_is_near_a_limit_from_each_on(void **state)
{
    Berth__Usage usage = calm_guest();
    usage.memory_available_mib = 150;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_CALM);
    usage.memory_available_mib = 149;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NEAR);
    assert_int_equal(berth_pace_of_memory(&usage, &limits), BERTH_PACE_NEAR);
    usage = calm_guest();
    usage.psi_memory_some = 499;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NORMAL);
    usage.psi_memory_some = 500;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NEAR);
    usage = calm_guest();
    usage.starved_permille = 200;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NEAR);
    assert_int_equal(berth_pace_of_memory(&usage, &limits), BERTH_PACE_CALM);
    usage.starved_permille = 0;
    usage.throttled_permille = 200;
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NEAR);
}

/* One that is near its memory's end, and waits. */
static Berth__Usage near_guest(void)
{
    Berth__Usage usage = calm_guest();
    usage.memory_total_mib = 1280;
    usage.memory_available_mib = 100;
    usage.starved_permille = 300;
    usage.psi_memory_some = 50;
    return usage;
}

static void change_is_what_matters_near_a_limit(void **state)
{
    static const struct {
        gsize offset;
        gboolean is_32;
        guint64 small, enough;
    } cases[] = {
        {G_STRUCT_OFFSET(Berth__Usage, memory_available_mib), FALSE, 91, 90},
        {G_STRUCT_OFFSET(Berth__Usage, memory_available_mib), FALSE, 109, 110},
        {G_STRUCT_OFFSET(Berth__Usage, memory_total_mib), FALSE, 1280, 1284},
        {G_STRUCT_OFFSET(Berth__Usage, swap_used_mib), FALSE, 9, 10},
        {G_STRUCT_OFFSET(Berth__Usage, oom_kills), FALSE, 0, 1},
        {G_STRUCT_OFFSET(Berth__Usage, psi_memory_some), TRUE, 149, 150},
        {G_STRUCT_OFFSET(Berth__Usage, starved_permille), TRUE, 399, 400},
        {G_STRUCT_OFFSET(Berth__Usage, throttled_permille), TRUE, 99, 100},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthPaceMark mark = {0};
        Berth__Usage usage = near_guest();
        assert_true(berth_pace_has_changed(&mark, &usage, &limits)); /* it was not known */
        for (guint step = 0; step < 2; step++) {
            guint64 value = step == 0 ? cases[i].small : cases[i].enough;
            if (cases[i].is_32)
                *(guint32 *)G_STRUCT_MEMBER_P(&usage, cases[i].offset) = (guint32)value;
            else
                *(guint64 *)G_STRUCT_MEMBER_P(&usage, cases[i].offset) = value;
            assert_int_equal(berth_pace_has_changed(&mark, &usage, &limits), step == 1);
            assert_false(berth_pace_has_changed(&mark, &usage, &limits));
        }
    }
}

/* Who takes little at a time takes much. */
static void change_counts_from_the_last_one(void **state)
{
    BerthPaceMark mark = {0};
    Berth__Usage usage = near_guest();
    guint changes = 0;
    assert_true(berth_pace_has_changed(&mark, &usage, &limits));
    for (guint i = 0; i < 30; i++) {
        usage.memory_available_mib--;
        changes += berth_pace_has_changed(&mark, &usage, &limits);
    }
    assert_int_equal(changes, 3);
}

static void small_guest_changes_by_more_than_rounding(void **state)
{
    BerthPaceMark mark = {0};
    Berth__Usage usage = near_guest();
    usage.memory_total_mib = 64;
    usage.memory_available_mib = 5;
    assert_true(berth_pace_has_changed(&mark, &usage, &limits));
    usage.memory_available_mib = 4;
    assert_false(berth_pace_has_changed(&mark, &usage, &limits));
    usage.memory_available_mib = 3;
    assert_true(berth_pace_has_changed(&mark, &usage, &limits));
}

static void guest_that_stalls_is_news_as_long_as_it_does(void **state)
{
    BerthPaceMark mark = {0};
    Berth__Usage usage = near_guest();
    usage.psi_memory_some = 500;
    for (guint i = 0; i < 3; i++)
        assert_true(berth_pace_has_changed(&mark, &usage, &limits));
    usage.psi_memory_some = 499;
    assert_false(berth_pace_has_changed(&mark, &usage, &limits));
}

static void pace_of_work_knows_no_limits(void **state)
{
    Berth__Usage usage = near_guest();
    assert_int_equal(berth_pace_of_guest(&usage, &limits), BERTH_PACE_NEAR);
    assert_int_equal(berth_pace_of_work(&usage), BERTH_PACE_CALM);
    usage.cpu_milli = 20;
    assert_int_equal(berth_pace_of_work(&usage), BERTH_PACE_NORMAL);
}

static void node_is_near_when_it_is_short_of_memory(void **state)
{
    Berth__NodeUsage usage = BERTH__NODE_USAGE__INIT;
    assert_int_equal(berth_pace_of_node(&usage, &limits), BERTH_PACE_CALM); /* it does not say */
    usage.memory_total_mib = 1000;
    usage.memory_free_mib = 100;
    assert_int_equal(berth_pace_of_node(&usage, &limits), BERTH_PACE_CALM);
    usage.cpu_milli = 500;
    assert_int_equal(berth_pace_of_node(&usage, &limits), BERTH_PACE_NORMAL);
    usage.memory_free_mib = 99;
    assert_int_equal(berth_pace_of_node(&usage, &limits), BERTH_PACE_NEAR);
    usage.memory_free_mib = 500;
    usage.psi_memory_some = 500;
    assert_int_equal(berth_pace_of_node(&usage, &limits), BERTH_PACE_NEAR);
}

/* What it is due at, after it was looked at NOW and found to be KIND. */
static gint64 next(BerthPace *pace, BerthPaceKind kind, gint64 now_usec)
{
    berth_pace_looked(pace, now_usec);
    berth_pace_set(pace, kind, now_usec);
    return berth_pace_due_usec(pace, &intervals) - now_usec;
}

static void pace_follows_need_and_calms_down_later(void **state)
{
    BerthPace pace = {0};
    gint64 now = 1000 * SECOND;
    assert_int_equal(berth_pace_due_usec(&pace, &intervals), 0); /* at once */
    assert_int_equal(next(&pace, BERTH_PACE_CALM, now), 5 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_CALM, now + 29 * SECOND), 5 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_CALM, now + 30 * SECOND), 20 * SECOND);
    now += 100 * SECOND; /* it works: at once as all others */
    assert_int_equal(next(&pace, BERTH_PACE_NORMAL, now), 5 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_NEAR, now + SECOND), 1 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_NORMAL, now + 10 * SECOND), 1 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_NORMAL, now + 11 * SECOND), 5 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_CALM, now + 40 * SECOND), 5 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_CALM, now + 41 * SECOND), 20 * SECOND);
}

static void guest_that_is_near_from_the_first_is_measured_so(void **state)
{
    BerthPace pace = {0};
    assert_int_equal(next(&pace, BERTH_PACE_NEAR, SECOND), 1 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_NORMAL, 12 * SECOND), 5 * SECOND);
}

static void guest_to_be_looked_at_soon_is_so_once_as_one_that_is_near(void **state)
{
    BerthPace pace = {0};
    gint64 now = 1000 * SECOND;
    assert_int_equal(next(&pace, BERTH_PACE_NORMAL, now), 5 * SECOND);
    berth_pace_look_soon(&pace);
    berth_pace_look_soon(&pace);
    assert_int_equal(berth_pace_due_usec(&pace, &intervals), now + 1 * SECOND);
    assert_int_equal(next(&pace, BERTH_PACE_NORMAL, now + SECOND), 5 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guest_without_work_is_calm),
        cmocka_unit_test(guest_is_near_a_limit_from_each_on),
        cmocka_unit_test(change_is_what_matters_near_a_limit),
        cmocka_unit_test(change_counts_from_the_last_one),
        cmocka_unit_test(small_guest_changes_by_more_than_rounding),
        cmocka_unit_test(guest_that_stalls_is_news_as_long_as_it_does),
        cmocka_unit_test(pace_of_work_knows_no_limits),
        cmocka_unit_test(node_is_near_when_it_is_short_of_memory),
        cmocka_unit_test(pace_follows_need_and_calms_down_later),
        cmocka_unit_test(guest_that_is_near_from_the_first_is_measured_so),
        cmocka_unit_test(guest_to_be_looked_at_soon_is_so_once_as_one_that_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
