/* SPDX-License-Identifier: Apache-2.0 */
/* The guests of bench/rig: what they are measured to have used, in virtual time. */
#include <config.h>

#include "bench/rig_guest.h"
#include "tests/lib/assert.h"

#define SECOND (gint64) G_USEC_PER_SEC

#define VCPUS        2u
#define BUSY_PERCENT 80u
#define CPU_SECOND   1600000u /* that these use in a second */

static const BerthPaceIntervals intervals = {{5000, 5000, 5000}};

gint64 __real_g_get_monotonic_time(void);
gint64 __wrap_g_get_monotonic_time(void);

static gint64 now_usec;

gint64 __wrap_g_get_monotonic_time(void)
{
    return now_usec;
}

typedef struct {
    RigPlan plan;
    RigThread thread;
    BerthGuest *guest;
} Test;

static void on_changed(BerthGuest *guest, gpointer data)
{
}

/* Its command runs. The loop's timers are due by the real time, which is later than that at which they are armed here. */
static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__StartGuestRequest request = BERTH__START_GUEST_REQUEST__INIT;
    now_usec = __real_g_get_monotonic_time();
    test->plan = (RigPlan){.run_msec = 3600 * 1000, .busy_percent = BUSY_PERCENT, .trace_fd = -1};
    test->thread.plan = &test->plan;
    test->thread.poll = berth_rpc_poll_ref(g_main_context_default());
    request.id = &id;
    request.vcpus = VCPUS;
    request.memory_mib = 64;
    test->guest = rig_guest_new(&test->thread, &request, on_changed, NULL);
    while (berth_guest_phase(test->guest) != BERTH_PHASE_RUNNING)
        g_main_context_iteration(NULL, TRUE);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    berth_guest_free(test->guest);
    berth_rpc_poll_unref(test->thread.poll);
    g_free(test);
    return 0;
}

static void pass(gint64 usec)
{
    now_usec += usec;
}

static guint64 measured_cpu(Test *test)
{
    rig_guest_look(test->guest, now_usec, &intervals, 5 * SECOND);
    assert_int_equal(berth_guest_usage(test->guest)->guest_cpu_usec,
                     berth_guest_usage(test->guest)->cpu_usec);
    return berth_guest_usage(test->guest)->cpu_usec;
}

static void look_of_running_guest_counts_what_passed(void **state)
{
    Test *test = *state;
    pass(SECOND);
    assert_int_equal(measured_cpu(test), CPU_SECOND);
    pass(2 * SECOND);
    assert_int_equal(measured_cpu(test), 3 * CPU_SECOND);
    assert_int_equal(rig_guest_cpu_milli(test->guest), 1600);
}

static void look_of_frozen_guest_counts_until_it_was_frozen(void **state)
{
    Test *test = *state;
    pass(SECOND);
    assert_true(rig_guest_freeze(test->guest, TRUE));
    pass(10 * SECOND);
    assert_int_equal(measured_cpu(test), CPU_SECOND);
    assert_int_equal(rig_guest_cpu_milli(test->guest), 0);
    assert_true(rig_guest_freeze(test->guest, TRUE));
    pass(10 * SECOND);
    assert_int_equal(measured_cpu(test), CPU_SECOND);
}

static void look_of_thawed_guest_leaves_out_what_it_stood(void **state)
{
    Test *test = *state;
    for (guint i = 0; i < 3; i++) {
        pass(SECOND);
        assert_true(rig_guest_freeze(test->guest, TRUE));
        pass(10 * SECOND);
        if (i == 1) /* whether anybody looked meanwhile or not */
            assert_int_equal(measured_cpu(test), 3 * CPU_SECOND);
        assert_true(rig_guest_freeze(test->guest, FALSE));
        pass(SECOND);
        assert_int_equal(measured_cpu(test), (i + 1) * 2 * CPU_SECOND);
    }
}

static void stop_of_frozen_or_thawed_guest_counts_what_it_ran(void **state)
{
    Test *test = *state;
    pass(SECOND);
    assert_true(rig_guest_freeze(test->guest, TRUE));
    pass(10 * SECOND);
    assert_true(rig_guest_freeze(test->guest, FALSE));
    pass(SECOND);
    assert_true(rig_guest_freeze(test->guest, TRUE));
    pass(10 * SECOND);
    rig_guest_stop(test->guest);
    assert_int_equal(berth_guest_phase(test->guest), BERTH_PHASE_ENDED);
    assert_int_equal(berth_guest_usage(test->guest)->cpu_usec, 2 * CPU_SECOND);
    assert_false(rig_guest_freeze(test->guest, FALSE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(look_of_running_guest_counts_what_passed, setup, teardown),
        cmocka_unit_test_setup_teardown(look_of_frozen_guest_counts_until_it_was_frozen, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(look_of_thawed_guest_leaves_out_what_it_stood, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(stop_of_frozen_or_thawed_guest_counts_what_it_ran, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
