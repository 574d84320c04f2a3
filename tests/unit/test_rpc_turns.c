/* SPDX-License-Identifier: Apache-2.0 */
/* Users of whom some ask more than can be dealt with: who is served when. */
#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

#include "common/rpc_internal.h"

#include <unistd.h>

#define OPEN_MAX   3u
#define N_USERS    3
#define N_WIRES    2 /* of each user */
#define BUDGET_MIB 512u
#define FLOOD      20u

typedef struct {
    BerthRpcPeer *peer;
    int fd;
    BerthRpcFrameReader *reader;
    guint64 asked;
} Wire;

typedef struct {
    RpcFixture *server;
    BerthRpcTurns *turns;
    BerthRpcBudget *budgets[N_USERS];
    Wire wires[N_USERS][N_WIRES];
    guint dry;
    guint dry_per_sec;
} Test;

/* What the code under test is told: it stands still from a test's beginning on unless that says otherwise. */
static gint64 clock_usec;

gint64 __real_g_get_monotonic_time(void);
gint64 __wrap_g_get_monotonic_time(void);
gint64 __wrap_g_get_monotonic_time(void)
{
    return clock_usec;
}

static void settle(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static void on_dry(BerthRpcPeer *peer, guint per_sec, gpointer data)
{
    Test *test = data;
    test->dry++;
    test->dry_per_sec = per_sec;
}

static void open_wire(Test *test, guint user, Wire *wire)
{
    wire->peer = rpc_fixture_raw(test->server, NULL, &wire->fd);
    wire->reader = berth_rpc_frame_reader_new(8 << 20);
    berth_rpc_peer_set_budget(wire->peer, test->budgets[user]);
    rpc_fixture_say(wire->fd, rpc_fixture_hello(1, 1));
    g_autoptr(Berth__Frame) hello = rpc_fixture_hear(wire->fd, wire->reader);
    assert_int_equal(hello->kind, BERTH__FRAME__KIND__HELLO);
}

/* PER_SEC of the last user. */
static int setup_with(void **state, guint per_sec)
{
    Test *test = g_new0(Test, 1);
    clock_usec = __real_g_get_monotonic_time();
    test->server = rpc_fixture_new();
    test->turns = berth_rpc_turns_new(OPEN_MAX);
    berth_rpc_turns_set_dry_func(test->turns, on_dry, test);
    for (guint user = 0; user < N_USERS; user++) {
        test->budgets[user] = berth_rpc_budget_new((gsize)BUDGET_MIB << 20);
        berth_rpc_budget_take_turns(test->budgets[user], test->turns,
                                    user == N_USERS - 1 ? per_sec : 0);
        for (guint i = 0; i < N_WIRES; i++)
            open_wire(test, user, &test->wires[user][i]);
    }
    *state = test;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, 0);
}

static int setup_rated(void **state)
{
    return setup_with(state, 2);
}

static int teardown(void **state)
{
    Test *test = *state;
    for (guint i = 0; i < N_USERS * N_WIRES; i++) {
        Wire *wire = &test->wires[i / N_WIRES][i % N_WIRES];
        if (wire->fd >= 0)
            close(wire->fd);
        berth_rpc_peer_unref(wire->peer);
        berth_rpc_frame_reader_free(wire->reader);
    }
    settle();
    rpc_fixture_free(test->server);
    settle();
    for (guint user = 0; user < N_USERS; user++)
        berth_rpc_budget_unref(test->budgets[user]);
    berth_rpc_turns_unref(test->turns);
    g_free(test);
    return 0;
}

/* So many calls that stay open until they are answered. */
static void ask(Wire *wire, guint n)
{
    Berth__HoldRequest request = BERTH__HOLD_REQUEST__INIT;
    for (guint i = 0; i < n; i++)
        rpc_fixture_say(wire->fd, rpc_fixture_request(++wire->asked, "Jobs.Hold", &request.base));
}

static guint user_of(const Test *test, BerthRpcCall *call)
{
    for (guint i = 0; i < N_USERS * N_WIRES; i++)
        if (test->wires[i / N_WIRES][i % N_WIRES].peer == berth_rpc_call_peer(call))
            return i / N_WIRES;
    return N_USERS;
}

static void answer(Test *test, guint place)
{
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    BerthRpcCall *call = g_ptr_array_steal_index(test->server->open, place);
    berth_rpc_call_set_cancelled_func(call, NULL, NULL);
    berth_rpc_call_reply(call, &reply.base);
}

/* Of the call at PLACE among those that were begun and not answered. */
static guint user_at(const Test *test, guint place)
{
    return user_of(test, g_ptr_array_index(test->server->open, place));
}

static guint n_open_of(const Test *test, const Wire *wire)
{
    guint n = 0;
    for (guint i = 0; i < test->server->open->len; i++)
        n += berth_rpc_call_peer(g_ptr_array_index(test->server->open, i)) == wire->peer;
    return n;
}

/* Without what makes room for those that take long: the loop comes around only a few times. */
static void come_around(void)
{
    for (guint i = 0; i < 10; i++)
        g_main_context_iteration(NULL, FALSE);
}

static void who_asks_for_little_is_served_beside_a_flood(void **state)
{
    Test *test = *state;
    for (guint i = 0; i < N_WIRES; i++)
        ask(&test->wires[0][i], FLOOD);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX);
    ask(&test->wires[1][0], 1);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX + 1);
    assert_int_equal(user_at(test, OPEN_MAX), 1);
}

/* As the loop has read both before it begins the second of either. */
static void burst_on_one_connection_comes_after_the_first_of_another_user(void **state)
{
    Test *test = *state;
    ask(&test->wires[0][0], FLOOD);
    ask(&test->wires[1][0], 1);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX);
    assert_int_equal(user_at(test, 0), 0);
    assert_int_equal(user_at(test, 1), 1);
    assert_int_equal(user_at(test, 2), 0);
}

/* Of each user, how many calls were begun so far: none is answered but here. */
static void answer_and_count(Test *test, guint n, guint *of_user)
{
    for (guint i = 0; i < n; i++) {
        guint begun = test->server->held;
        answer(test, 0);
        come_around();
        for (guint more = test->server->held - begun; more > 0; more--)
            of_user[user_at(test, test->server->open->len - more)]++;
    }
}

static void users_take_turns_whatever_their_connections(void **state)
{
    Test *test = *state;
    guint of_user[N_USERS + 1] = {OPEN_MAX, 1, 1};
    for (guint i = 0; i < N_WIRES; i++)
        ask(&test->wires[0][i], FLOOD);
    come_around();
    ask(&test->wires[1][0], FLOOD);
    ask(&test->wires[2][0], FLOOD);
    come_around();
    /* What one more user has none of is begun beyond the most. */
    assert_int_equal(test->server->held, OPEN_MAX + 2);
    answer_and_count(test, 2 + 31, of_user);
    assert_int_equal(test->server->open->len, OPEN_MAX);
    for (guint user = 0; user < N_USERS; user++)
        assert_int_equal(of_user[user], 12);
}

static void who_was_served_less_of_late_comes_first(void **state)
{
    Test *test = *state;
    guint of_user[N_USERS + 1] = {0};
    ask(&test->wires[0][0], FLOOD);
    come_around();
    answer_and_count(test, 8, of_user);
    assert_int_equal(of_user[0], 8);
    ask(&test->wires[1][0], 10); /* the first of which waits for nobody */
    come_around();
    answer_and_count(test, 10, of_user);
    assert_int_equal(of_user[0], 8);
    assert_int_equal(of_user[1], 9);
}

/* Who has nothing under way waits for nobody only as long as he was served less than those who wait. */
static void who_asks_one_after_the_other_has_no_more_than_who_waits(void **state)
{
    Test *test = *state;
    ask(&test->wires[0][0], FLOOD);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX);
    for (guint i = 1; i <= OPEN_MAX; i++) {
        ask(&test->wires[1][0], 1);
        come_around();
        assert_int_equal(test->server->held, OPEN_MAX + i);
        answer(test, OPEN_MAX);
        come_around();
    }
    ask(&test->wires[1][0], 1);
    come_around();
    assert_int_equal(test->server->held, 2 * OPEN_MAX);
    answer(test, 0); /* who has waited longer */
    come_around();
    assert_int_equal(user_at(test, OPEN_MAX - 1), 0);
    answer(test, 0);
    come_around();
    assert_int_equal(user_at(test, OPEN_MAX - 1), 1);
}

static void what_was_served_long_ago_counts_no_more(void **state)
{
    Test *test = *state;
    guint of_user[N_USERS + 1] = {0};
    ask(&test->wires[0][0], FLOOD);
    come_around();
    answer_and_count(test, FLOOD - OPEN_MAX, of_user); /* the last ones are open now */
    while (test->server->open->len > 0)
        answer(test, 0);
    come_around();
    clock_usec += 60 * G_USEC_PER_SEC;
    ask(&test->wires[1][0], OPEN_MAX + 1);
    come_around();
    assert_int_equal(n_open_of(test, &test->wires[1][0]), OPEN_MAX);
    ask(&test->wires[0][0], 1); /* twenty a minute ago are less than three now */
    come_around();
    assert_int_equal(n_open_of(test, &test->wires[0][0]), 1);
}

static void all_are_answered_in_the_order_of_their_connection(void **state)
{
    Test *test = *state;
    Wire *wire = &test->wires[0][0];
    ask(wire, FLOOD);
    for (guint64 id = 1; id <= FLOOD; id++) {
        run_until(test->server->open->len > 0);
        answer(test, 0);
        g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
        assert_int_equal(frame->kind, BERTH__FRAME__KIND__RESPONSE);
        assert_int_equal(frame->call_id, id);
    }
    assert_int_equal(test->server->held, FLOOD);
}

/* Whatever it waits for, it is not this process. */
static void call_that_takes_long_makes_room(void **state)
{
    Test *test = *state;
    ask(&test->wires[0][0], OPEN_MAX + 1);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX);
    clock_usec += G_USEC_PER_SEC / 10;
    run_until(test->server->held == OPEN_MAX + 1);
    assert_int_equal(test->server->open->len, OPEN_MAX + 1);
}

static void never(BerthRpcCall *call, gpointer data)
{
}

static void stream_makes_room_once_it_has_begun(void **state)
{
    Test *test = *state;
    ask(&test->wires[0][0], OPEN_MAX + 1);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX);
    berth_rpc_call_set_ready_func(g_ptr_array_index(test->server->open, 0), never, NULL);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX + 1);
}

static gboolean keep_busy(gpointer count)
{
    (*(guint *)count)++;
    return G_SOURCE_CONTINUE;
}

/* As by somebody who always has something to say that takes no turn. */
static void loop_that_is_never_idle_keeps_nobody_waiting(void **state)
{
    Test *test = *state;
    guint count = 0;
    guint busy = g_timeout_add(0, keep_busy, &count); /* of the priority of sockets */
    ask(&test->wires[0][0], 2);
    run_until(test->server->held == 2);
    g_source_remove(busy);
    assert_true(count > 0);
}

static void connection_that_ends_while_it_waits_is_passed_by(void **state)
{
    Test *test = *state;
    ask(&test->wires[0][0], FLOOD);
    ask(&test->wires[0][1], 2);
    come_around();
    assert_int_equal(test->server->held, OPEN_MAX);
    close(test->wires[0][0].fd);
    test->wires[0][0].fd = -1;
    test->server->answer_cancelled = TRUE;
    answer(test, 0); /* which it does not take */
    run_until(berth_rpc_peer_is_closed(test->wires[0][0].peer) &&
              n_open_of(test, &test->wires[0][1]) == 2 && test->server->open->len == 2);
}

static void user_with_a_rate_waits_for_tokens(void **state)
{
    Test *test = *state;
    const guint user = N_USERS - 1;
    ask(&test->wires[user][0], 2);
    come_around();
    assert_int_equal(test->server->held, 2);
    assert_int_equal(test->dry, 0);
    answer(test, 0);
    answer(test, 0);
    ask(&test->wires[user][0], 1);
    ask(&test->wires[user][1], 1);
    come_around();
    assert_int_equal(test->server->held, 2);
    assert_int_equal(test->dry, 1);
    assert_int_equal(test->dry_per_sec, 2);
    clock_usec += G_USEC_PER_SEC / 2;
    run_until(test->server->held == 3);
    settle();
    assert_int_equal(test->server->held, 3);
    clock_usec += 10 * G_USEC_PER_SEC;
    run_until(test->server->held == 4);
    /* What was not used is kept for a second. */
    ask(&test->wires[user][0], 2);
    settle();
    assert_int_equal(test->server->held, 5);
    /* Others have none. */
    ask(&test->wires[0][0], 1);
    come_around();
    assert_int_equal(test->server->held, 6);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_asks_for_little_is_served_beside_a_flood),
        TEST(burst_on_one_connection_comes_after_the_first_of_another_user),
        TEST(users_take_turns_whatever_their_connections),
        TEST(who_was_served_less_of_late_comes_first),
        TEST(who_asks_one_after_the_other_has_no_more_than_who_waits),
        TEST(what_was_served_long_ago_counts_no_more),
        TEST(all_are_answered_in_the_order_of_their_connection),
        TEST(call_that_takes_long_makes_room),
        TEST(stream_makes_room_once_it_has_begun),
        TEST(loop_that_is_never_idle_keeps_nobody_waiting),
        TEST(connection_that_ends_while_it_waits_is_passed_by),
        cmocka_unit_test_setup_teardown(user_with_a_rate_waits_for_tokens, setup_rated, teardown),
    };
    return cmocka_run_group_tests_name("rpc_turns", tests, NULL, NULL);
}
