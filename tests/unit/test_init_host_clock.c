/* SPDX-License-Identifier: Apache-2.0 */
/* A guest's clock and a kernel that are only numbers: what an answer leaves open, and where the clock is after many of
 * them. */
#include "tests/lib/assert.h"

#include "images/init/host_clock.h"

#include <glib.h>
#include <sys/timex.h>

#define SEC ((gint64)G_USEC_PER_SEC)

/* ---- the kernel */

/* Of the host's time, in microseconds since the test began; the host's own clock is EPOCH ahead of that. */
typedef struct {
    gint64 now;
    gint64 error;     /* of the guest's clock */
    gint64 to_slew;   /* what is left of a slow move */
    gint64 drift_ppm; /* how much faster both of the guest's clocks are */
    gint64 drifted;   /* of NOW, on account of that */
    guint steps;
    guint slews;
} World;

#define EPOCH    (1700000000 * SEC)
#define SLEW_PPM 500

static World world;

int __wrap_adjtimex(struct timex *change);
int __wrap_adjtimex(struct timex *change)
{
    if (change->modes == ADJ_SETOFFSET) {
        assert_in_range(change->time.tv_usec, 0, SEC - 1);
        world.error += change->time.tv_sec * SEC + change->time.tv_usec;
        world.to_slew = 0;
        world.steps++;
    } else {
        assert_int_equal(change->modes, ADJ_OFFSET_SINGLESHOT);
        world.to_slew = change->offset;
        world.slews++;
    }
    return TIME_OK;
}

static void pass(gint64 usec)
{
    gint64 most = usec * SLEW_PPM / 1000000;
    gint64 slewed = CLAMP(world.to_slew, -most, most);
    gint64 drift = usec * world.drift_ppm / 1000000;

    world.now += usec;
    world.drifted += drift;
    world.error += drift + slewed;
    world.to_slew -= slewed;
}

static guint64 guest_monotonic(void)
{
    return (guint64)(5 * SEC + world.now + world.drifted);
}

static guint64 guest_clock(void)
{
    return (guint64)(EPOCH + world.now + world.error);
}

/* One question; its way there and back takes so long. */
static void exchange(HostClock *clock, gint64 there_usec, gint64 back_usec, bool nobody_looks)
{
    HostClockAnswer answer = {.stamp_usec = host_clock_ask(clock, guest_monotonic())};

    pass(there_usec);
    answer.host_usec = (guint64)(EPOCH + world.now);
    pass(back_usec);
    answer.clock_usec = guest_clock();
    answer.monotonic_usec = guest_monotonic();
    assert_true(host_clock_move(host_clock_offset(clock, &answer), nobody_looks));
}

/* ---- one answer */

static void host_clock_offset_is_what_an_answer_is_sure_of(void **state)
{
    static const struct {
        const char *name;
        guint64 stamp, host, clock, monotonic; /* asked at 1000 */
        gint64 offset;
        guint wait_msec;
    } cases[] = {
        {"the same time", 1000, 70000, 70000, 1000, 0, 16000},
        {"behind", 1000, 70000, 69000, 1200, 1000, 16000},
        {"ahead of all that can be", 1000, 70000, 71000, 1200, -800, 16000},
        {"ahead as far as can be", 1000, 70000, 70200, 1200, 0, 16000},
        {"within", 1000, 70000, 70100, 1200, 0, 16000},
        {"a good answer", 1000, 70000, 70000, 11000, 0, 16000},
        {"a poor answer", 1000, 70000, 70000, 11002, 0, 1000},
        {"a poor answer and a clock far ahead", 1000, 70000, 5070000, 2001000, -3000000, 1000},
        {"another question's", 999, 70000, 50, 1200, 0, 16000},
        {"no question's", 0, 70000, 50, 1200, 0, 16000},
        {"a clock that goes back", 1000, 70000, 50, 999, 0, 16000},
        {"no time", 1000, 0, 70000, 1200, 0, 16000},
        {"no clock's time", 1000, G_MAXUINT64, 70000, 1200, 0, 16000},
        {"the first that is none", 1000, G_MAXINT64 / 4, 70000, 1200, 0, 16000},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        HostClockAnswer answer = {cases[i].stamp, cases[i].host, cases[i].clock,
                                  cases[i].monotonic};
        HostClock clock = {0};
        gint64 offset;

        assert_int_equal(host_clock_offset(&clock, &answer), 0); /* nobody has asked */
        assert_int_equal(host_clock_ask(&clock, 1000), 1000);
        offset = host_clock_offset(&clock, &answer);
        if (offset != cases[i].offset || clock.wait_msec != cases[i].wait_msec)
            fail_msg("%s: %" G_GINT64_FORMAT ", then %u ms", cases[i].name, offset,
                     clock.wait_msec);
    }
}

static void host_clock_answer_counts_once_and_for_the_last_question(void **state)
{
    HostClockAnswer answer = {1000, 70000, 60000, 1100};
    HostClock clock = {0};

    host_clock_ask(&clock, 1000);
    host_clock_ask(&clock, 1050);
    assert_int_equal(host_clock_offset(&clock, &answer), 0);
    answer.stamp_usec = 1050;
    assert_int_equal(host_clock_offset(&clock, &answer), 10000);
    assert_int_equal(host_clock_offset(&clock, &answer), 0);
}

static void host_clock_poor_answers_are_asked_for_again_three_times(void **state)
{
    static const guint waits[] = {1000, 1000, 1000, 16000, 1000, 1000, 1000, 16000};
    HostClock clock = {0};

    world = (World){.now = 0};
    for (size_t i = 0; i < G_N_ELEMENTS(waits); i++) {
        exchange(&clock, 20000, 20000, false);
        assert_int_equal(clock.wait_msec, waits[i]);
    }
    exchange(&clock, 20000, 20000, false);
    exchange(&clock, 1000, 1000, false);
    assert_int_equal(clock.wait_msec, 16000);
    exchange(&clock, 20000, 20000, false);
    assert_int_equal(clock.wait_msec, 1000);
}

static void host_clock_move_steps_what_is_much_or_unseen(void **state)
{
    static const struct {
        gint64 offset;
        bool nobody_looks;
        guint steps, slews;
    } cases[] = {
        {0, false, 0, 0},           {0, true, 0, 0},
        {1, false, 0, 1},           {-1, true, 1, 0},
        {100000, false, 0, 1},      {-100000, false, 0, 1},
        {100001, false, 1, 0},      {-100001, false, 1, 0},
        {-3000000, false, 1, 0},    {-3000001, false, 1, 0},
        {86400 * SEC, false, 1, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        world = (World){.to_slew = 7};
        assert_true(host_clock_move(cases[i].offset, cases[i].nobody_looks));
        assert_int_equal(world.steps, cases[i].steps);
        assert_int_equal(world.slews, cases[i].slews);
        assert_int_equal(world.error, cases[i].steps > 0 ? cases[i].offset : 0);
        if (cases[i].slews > 0)
            assert_int_equal(world.to_slew, cases[i].offset);
    }
}

/* ---- a life */

/* The clock is off by ERROR at first and drifts; for a day of questions, whose ways take up to WAY_USEC, in any
 * proportion. It never gets further off than an answer left open, and it ends within BOUND_USEC. */
static void live(guint32 seed, gint64 error, gint64 drift_ppm, gint64 way_usec, gint64 bound_usec)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    HostClock clock = {0};

    world = (World){.error = error, .drift_ppm = drift_ppm};
    for (guint i = 0; world.now < 86400 * SEC; i++) {
        gint64 there = g_rand_int_range(rand, 1, (gint32)way_usec);
        gint64 back = g_rand_int_range(rand, 1, (gint32)way_usec);
        gint64 before = ABS(world.error) + ABS(world.to_slew);
        /* Both ways and the wait drift; a slow move changes the length of a second too. */
        gint64 slack = (there + back) * (ABS(drift_ppm) + SLEW_PPM) / 1000000 + 2;

        exchange(&clock, there, back, false);
        if (ABS(world.error + world.to_slew) > before + slack)
            fail_msg("seed %u: answer %u moved a clock that was off by %" G_GINT64_FORMAT
                     " to %" G_GINT64_FORMAT,
                     seed, i, before, world.error + world.to_slew);
        assert_true(clock.wait_msec >= 1000);
        pass((gint64)clock.wait_msec * 1000);
        if (world.now > 3600 * SEC && ABS(world.error) > bound_usec)
            fail_msg("seed %u: off by %" G_GINT64_FORMAT " after %" G_GINT64_FORMAT " s", seed,
                     world.error, world.now / SEC);
    }
}

static void host_clock_stays_at_the_hosts(void **state)
{
    static const struct {
        gint64 error, drift_ppm, way_usec, bound_usec;
    } cases[] = {
        {0, 0, 300, 600},                 /* an idle host under KVM */
        {0, 100, 300, 3000},              /* ... whose NTP corrects it by much */
        {0, -100, 300, 3000},             /* */
        {47 * SEC, 0, 300, 600},          /* a clock that has run away */
        {-86400 * SEC, 0, 300, 600},      /* a guest that stood still for a day */
        {50000, 40, 300, 2000},           /* little enough to be made up slowly */
        {-30 * SEC, 50, 2000000, 400000}, /* an overloaded host */
        {30 * SEC, -50, 2000000, 400000}, /* */
        {0, 20000, 5000, 440000},         /* a clock that nobody can hold: 2 % too fast */
        {0, -20000, 5000, 440000},        /* */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        for (guint32 seed = 1; seed <= 5; seed++)
            live(seed, cases[i].error, cases[i].drift_ppm, cases[i].way_usec, cases[i].bound_usec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_clock_offset_is_what_an_answer_is_sure_of),
        cmocka_unit_test(host_clock_answer_counts_once_and_for_the_last_question),
        cmocka_unit_test(host_clock_poor_answers_are_asked_for_again_three_times),
        cmocka_unit_test(host_clock_move_steps_what_is_much_or_unseen),
        cmocka_unit_test(host_clock_stays_at_the_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
