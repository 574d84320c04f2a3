/* SPDX-License-Identifier: Apache-2.0 */
/* The one source behind the connections of a loop: who is called, how often, and what he may do meanwhile. */
#include "common/rpc_poll.h"

#include "tests/lib/assert.h"

#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    GMainContext *context;
    BerthRpcPoll *poll;
    BerthRpcWatch watch;
    int ends[2]; /* the first is watched */
    guint in, out;
} Fixture;

static int setup(void **state)
{
    Fixture *fixture = g_new0(Fixture, 1);
    fixture->context = g_main_context_new();
    fixture->poll = berth_rpc_poll_ref(fixture->context);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fixture->ends), 0);
    berth_rpc_watch_start(&fixture->watch, fixture->poll, fixture->ends[0]);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    berth_rpc_watch_end(&fixture->watch);
    close(fixture->ends[0]);
    if (fixture->ends[1] >= 0)
        close(fixture->ends[1]);
    berth_rpc_poll_unref(fixture->poll);
    g_main_context_unref(fixture->context);
    g_free(fixture);
    return 0;
}

/* What is ready, without waiting. */
static void turn(Fixture *fixture)
{
    while (g_main_context_iteration(fixture->context, FALSE)) {
        /* as long as there is something */
    }
}

static void count_in(gpointer data)
{
    ((Fixture *)data)->in++;
}

static void count_out(gpointer data)
{
    ((Fixture *)data)->out++;
}

static void wait_in(Fixture *fixture, gboolean now)
{
    berth_rpc_watch_wait(&fixture->watch, &fixture->watch.in, now, count_in, fixture);
}

static void wait_out(Fixture *fixture, gboolean now)
{
    berth_rpc_watch_wait(&fixture->watch, &fixture->watch.out, now, count_out, fixture);
}

static void a_direction_is_told_of_once_for_each_wait(void **state)
{
    Fixture *fixture = *state;
    wait_in(fixture, FALSE);
    turn(fixture);
    assert_int_equal(fixture->in, 0);
    assert_int_equal(write(fixture->ends[1], "ab", 2), 2);
    turn(fixture);
    turn(fixture);
    assert_int_equal(fixture->in, 1);
    /* nobody has read: it is ready still */
    wait_in(fixture, FALSE);
    turn(fixture);
    assert_int_equal(fixture->in, 2);
}

static void both_directions_are_told_of(void **state)
{
    Fixture *fixture = *state;
    wait_in(fixture, FALSE);
    wait_out(fixture, FALSE);
    turn(fixture);
    assert_int_equal(fixture->in, 0);
    assert_int_equal(fixture->out, 1);
    wait_out(fixture, FALSE);
    assert_int_equal(write(fixture->ends[1], "a", 1), 1);
    turn(fixture);
    assert_int_equal(fixture->in, 1);
    assert_int_equal(fixture->out, 2);
}

static void the_other_ends_end_is_told_to_who_waits_and_is_quiet_else(void **state)
{
    Fixture *fixture = *state;
    close(fixture->ends[1]);
    fixture->ends[1] = -1;
    /* A loop that is told of it again and again would not come out of this. */
    turn(fixture);
    wait_in(fixture, FALSE);
    wait_out(fixture, FALSE);
    turn(fixture);
    turn(fixture);
    assert_int_equal(fixture->in, 1);
    assert_int_equal(fixture->out, 1);
}

static void what_is_called_at_the_next_turn_is_not_before(void **state)
{
    Fixture *fixture = *state;
    wait_in(fixture, TRUE);
    wait_in(fixture, TRUE); /* once, though */
    wait_out(fixture, TRUE);
    assert_int_equal(fixture->in + fixture->out, 0);
    turn(fixture);
    assert_int_equal(fixture->in, 1);
    assert_int_equal(fixture->out, 1);
}

static void nothing_is_called_after_the_end(void **state)
{
    Fixture *fixture = *state;
    wait_in(fixture, TRUE);
    wait_out(fixture, FALSE);
    berth_rpc_watch_end(&fixture->watch);
    berth_rpc_watch_end(&fixture->watch);
    turn(fixture);
    assert_int_equal(fixture->in + fixture->out, 0);
}

static void end_watch(gpointer data)
{
    Fixture *fixture = data;
    fixture->in++;
    berth_rpc_watch_end(&fixture->watch);
}

static void a_call_may_end_the_watch(void **state)
{
    Fixture *fixture = *state;
    assert_int_equal(write(fixture->ends[1], "a", 1), 1);
    berth_rpc_watch_wait(&fixture->watch, &fixture->watch.in, FALSE, end_watch, fixture);
    wait_out(fixture, FALSE); /* ready, too */
    turn(fixture);
    assert_int_equal(fixture->in, 1);
    assert_int_equal(fixture->out, 0);
}

static void run_the_loop(gpointer data)
{
    Fixture *fixture = data;
    wait_out(fixture, FALSE);
    turn(fixture);
    fixture->in += fixture->out;
}

static void a_call_may_run_the_loop(void **state)
{
    Fixture *fixture = *state;
    berth_rpc_watch_wait(&fixture->watch, &fixture->watch.in, TRUE, run_the_loop, fixture);
    turn(fixture);
    assert_int_equal(fixture->out, 1);
    assert_int_equal(fixture->in, 1);
}

typedef struct {
    BerthRpcWatch watch;
    int ends[2]; /* the first is watched */
    guint told;
} Busy;

static void tell_and_wait(gpointer data)
{
    Busy *busy = data;
    busy->told++;
    berth_rpc_watch_wait(&busy->watch, &busy->watch.in, FALSE, tell_and_wait, busy);
}

static void all_that_are_ready_have_their_turn(void **state)
{
    const Fixture *fixture = *state;
    Busy many[200] = {0};
    for (gsize i = 0; i < G_N_ELEMENTS(many); i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, many[i].ends), 0);
        assert_int_equal(write(many[i].ends[1], "a", 1), 1);
        berth_rpc_watch_start(&many[i].watch, fixture->poll, many[i].ends[0]);
        tell_and_wait(&many[i]);
    }
    assert_true(g_main_context_iteration(fixture->context, FALSE));
    for (gsize i = 0; i < G_N_ELEMENTS(many); i++) {
        assert_in_range(many[i].told, 2, 3);
        berth_rpc_watch_end(&many[i].watch);
        close(many[i].ends[0]);
        close(many[i].ends[1]);
    }
}

/* --- time limits ------------------------------------------------------------------------------ */

typedef struct {
    GString *order;
    BerthRpcTimer timers[3];
    guint left; /* ticks until all are stopped */
} Ticking;

static void tick(Ticking *ticking, char name)
{
    g_string_append_c(ticking->order, name);
    if (--ticking->left > 0)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(ticking->timers); i++)
        berth_rpc_poll_timer_stop(&ticking->timers[i]);
}

static void tick_a(gpointer data)
{
    tick(data, 'a');
}

static void tick_b(gpointer data)
{
    tick(data, 'b');
}

static void tick_c(gpointer data)
{
    tick(data, 'c');
}

static void run_until_stopped(Fixture *fixture, const Ticking *ticking)
{
    while (ticking->left > 0)
        g_main_context_iteration(fixture->context, TRUE);
    turn(fixture);
}

static void time_limits_come_in_their_order_and_one_may_stop_all(void **state)
{
    Fixture *fixture = *state;
    Ticking ticking = {.order = g_string_new(NULL), .left = 2};
    berth_rpc_poll_timer_start(fixture->poll, &ticking.timers[2], 60000, tick_c, &ticking);
    berth_rpc_poll_timer_start(fixture->poll, &ticking.timers[1], 2, tick_b, &ticking);
    berth_rpc_poll_timer_start(fixture->poll, &ticking.timers[0], 1, tick_a, &ticking);
    while (g_get_monotonic_time() <= ticking.timers[1].due_usec)
        g_thread_yield(); /* until both are due */
    run_until_stopped(fixture, &ticking);
    assert_string_equal(ticking.order->str, "ab");
    g_string_free(ticking.order, TRUE);
}

static void a_time_limit_ticks_until_it_is_stopped_and_may_be_started_anew(void **state)
{
    Fixture *fixture = *state;
    Ticking ticking = {.order = g_string_new(NULL), .left = 3};
    berth_rpc_poll_timer_start(fixture->poll, &ticking.timers[0], 60000, tick_a, &ticking);
    berth_rpc_poll_timer_start(fixture->poll, &ticking.timers[0], 1, tick_b, &ticking);
    run_until_stopped(fixture, &ticking);
    assert_string_equal(ticking.order->str, "bbb");
    berth_rpc_poll_timer_stop(&ticking.timers[0]);
    g_string_free(ticking.order, TRUE);
}

static void a_context_has_one_until_the_last_lets_it_go(void **state)
{
    Fixture *fixture = *state;
    BerthRpcPoll *same = berth_rpc_poll_ref(fixture->context);
    assert_ptr_equal(same, fixture->poll);
    berth_rpc_poll_unref(same);
    wait_in(fixture, TRUE);
    turn(fixture);
    assert_int_equal(fixture->in, 1);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_direction_is_told_of_once_for_each_wait),
        test(both_directions_are_told_of),
        test(the_other_ends_end_is_told_to_who_waits_and_is_quiet_else),
        test(what_is_called_at_the_next_turn_is_not_before),
        test(nothing_is_called_after_the_end),
        test(a_call_may_end_the_watch),
        test(a_call_may_run_the_loop),
        test(all_that_are_ready_have_their_turn),
        test(time_limits_come_in_their_order_and_one_may_stop_all),
        test(a_time_limit_ticks_until_it_is_stopped_and_may_be_started_anew),
        test(a_context_has_one_until_the_last_lets_it_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
