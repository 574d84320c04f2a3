/* SPDX-License-Identifier: Apache-2.0 */
/* Several connections of one user that ask for much and take nothing: what they cost, who waits and
 * who is ended. */
#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

#include "common/message.h"
#include "common/rpc_internal.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB          ((gsize)1 << 20)
#define N_WIRES      4
#define FRAME_MIB    2
#define BUDGET_BYTES (6 * MIB)
#define ALL_BYTES    (5 * MIB)
/* For users of whom each has as much as his least with one open call, and of whom one at a time may have two. */
#define CROWD_BYTES (MIB + MIB / 4)
#define CROWD_LEAST (3 * MIB)

typedef struct {
    BerthRpcPeer *peer;
    int fd;
    BerthRpcFrameReader *reader;
    GError *reason;
} Wire;

typedef struct {
    RpcFixture *server;
    BerthRpcBudget *budget;           /* of the first wire */
    BerthRpcBudget *budgets[N_WIRES]; /* of each, a reference each */
    BerthRpcPool *pool;               /* in the tests of what users share; or NULL */
    Wire wires[N_WIRES];
} User;

static const BerthRpcLimits limits = {.max_frame_bytes = FRAME_MIB << 20,
                                      .queue_high_bytes = 1u << 20,
                                      .max_open_calls = 64,
                                      .frame_timeout_msec = 60000};

static void connect_all(User *user)
{
    user->server = rpc_fixture_new();
    for (guint i = 0; i < N_WIRES; i++) {
        Wire *wire = &user->wires[i];
        wire->peer = rpc_fixture_raw(user->server, &limits, &wire->fd);
        wire->reader = berth_rpc_frame_reader_new(8 << 20);
        berth_rpc_peer_set_budget(wire->peer, user->budgets[i]);
        berth_rpc_peer_set_closed_func(wire->peer, rpc_fixture_store_reason, &wire->reason);
        rpc_fixture_say(wire->fd, rpc_fixture_hello(1, 1));
        g_autoptr(Berth__Frame) hello = rpc_fixture_hear(wire->fd, wire->reader);
        assert_int_equal(hello->kind, BERTH__FRAME__KIND__HELLO);
    }
}

/* The wires from FIRST to before END are those of one user. */
static void give_budget(User *user, guint first, guint end)
{
    g_autoptr(BerthRpcBudget) budget = berth_rpc_budget_new(BUDGET_BYTES);
    if (user->pool != NULL)
        berth_rpc_budget_share(budget, user->pool);
    for (guint i = first; i < end; i++)
        user->budgets[i] = berth_rpc_budget_ref(budget);
    user->budget = user->budgets[0];
}

static int setup(void **state)
{
    User *user = g_new0(User, 1);
    give_budget(user, 0, N_WIRES);
    connect_all(user);
    *state = user;
    return 0;
}

/* Two users, who have less together than each may. */
static int setup_shared(void **state)
{
    User *user = g_new0(User, 1);
    user->pool = berth_rpc_pool_new(ALL_BYTES, MIB);
    give_budget(user, 0, N_WIRES - 1);
    give_budget(user, N_WIRES - 1, N_WIRES);
    connect_all(user);
    *state = user;
    return 0;
}

/* Each wire is that of another user, but those from SAME on. */
static void setup_users(void **state, guint same)
{
    User *user = g_new0(User, 1);
    user->pool = berth_rpc_pool_new(CROWD_BYTES, CROWD_LEAST);
    for (guint i = 0; i < same; i++)
        give_budget(user, i, i + 1);
    give_budget(user, same, N_WIRES);
    connect_all(user);
    *state = user;
}

static int setup_crowd(void **state)
{
    setup_users(state, N_WIRES - 1);
    return 0;
}

static int setup_three(void **state)
{
    setup_users(state, N_WIRES - 2);
    return 0;
}

static void settle(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static int teardown(void **state)
{
    User *user = *state;
    for (guint i = 0; i < N_WIRES; i++) {
        Wire *wire = &user->wires[i];
        if (wire->fd >= 0)
            close(wire->fd);
        berth_rpc_peer_unref(wire->peer);
        berth_rpc_frame_reader_free(wire->reader);
        g_clear_error(&wire->reason);
    }
    settle();
    rpc_fixture_free(user->server);
    settle();
    /* What was taken has been given back, whatever happened. */
    for (guint i = 0; i < N_WIRES; i++)
        assert_int_equal(berth_rpc_budget_used(user->budgets[i]), 0);
    if (user->pool != NULL)
        assert_int_equal(berth_rpc_pool_used(user->pool), 0);
    for (guint i = 0; i < N_WIRES; i++)
        berth_rpc_budget_unref(user->budgets[i]);
    g_clear_pointer(&user->pool, berth_rpc_pool_unref);
    g_free(user);
    return 0;
}

static void ask(Wire *wire, guint64 id, const char *method)
{
    Berth__HoldRequest request = BERTH__HOLD_REQUEST__INIT;
    rpc_fixture_say(wire->fd, rpc_fixture_request(id, method, &request.base));
}

static void answer(User *user, guint i_call, gsize bytes)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    g_autofree char *name = g_strnfill(bytes, 'x');
    job.name = name;
    reply.job = &job;
    BerthRpcCall *call = g_ptr_array_steal_index(user->server->open, i_call);
    berth_rpc_call_set_cancelled_func(call, NULL, NULL);
    berth_rpc_call_reply(call, &reply.base);
}

/* Answers the oldest call of Hold with BYTES. */
static void answer_one(User *user, gsize bytes)
{
    answer(user, 0, bytes);
}

static void hear_answer(Wire *wire, guint64 id)
{
    g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
    assert_non_null(frame);
    assert_int_equal(frame->kind, BERTH__FRAME__KIND__RESPONSE);
    assert_int_equal(frame->call_id, id);
}

static void burst_of_requests_begins_only_what_has_room_for_its_answer(void **state)
{
    User *user = *state;
    for (guint i = 0; i < N_WIRES; i++)
        for (guint64 id = 1; id <= 60; id++)
            ask(&user->wires[i], id, "Jobs.Hold");
    settle();
    assert_int_equal(user->server->held, BUDGET_BYTES / (FRAME_MIB * MIB) - 1);
    assert_true(berth_rpc_budget_used(user->budget) <= BUDGET_BYTES);
}

static void answers_of_the_largest_size_stay_within_the_budget(void **state)
{
    User *user = *state;
    for (guint i = 0; i < N_WIRES; i++)
        for (guint64 id = 1; id <= 60; id++)
            ask(&user->wires[i], id, "Jobs.Hold");
    settle();
    while (user->server->open->len > 0) {
        answer_one(user, FRAME_MIB * MIB - 1000);
        settle();
        assert_true(berth_rpc_budget_used(user->budget) <= BUDGET_BYTES);
    }
    assert_true(user->server->held < 8);
}

static void request_that_waits_for_room_goes_on_when_there_is(void **state)
{
    User *user = *state;
    for (guint i = 0; i < N_WIRES; i++)
        ask(&user->wires[i], 7, "Jobs.Hold");
    settle();
    assert_int_equal(user->server->held, 2);
    for (guint i = 0; i < N_WIRES; i++) {
        run_until(user->server->open->len > 0);
        answer_one(user, 1000);
    }
    for (guint i = 0; i < N_WIRES; i++)
        hear_answer(&user->wires[i], 7);
    assert_int_equal(user->server->held, N_WIRES);
}

static void small_answers_pass_in_any_number(void **state)
{
    User *user = *state;
    for (guint i = 0; i < N_WIRES; i++)
        for (guint64 id = 1; id <= 60; id++)
            ask(&user->wires[i], id, "Jobs.Submit");
    settle();
    assert_int_equal(user->server->held, N_WIRES * 60);
}

static void peer_that_takes_nothing_is_ended_while_others_wait(void **state)
{
    User *user = *state;
    berth_rpc_budget_set_stall(user->budget, 100);
    for (guint i = 0; i < 3; i++) {
        ask(&user->wires[i], 1, "Jobs.Hold");
        run_until(user->server->open->len > 0);
        answer_one(user, FRAME_MIB * MIB - 1000);
    }
    settle();
    /* Nobody waits yet: they may take their time. */
    assert_false(berth_rpc_peer_is_closed(user->wires[0].peer));
    ask(&user->wires[3], 1, "Jobs.Hold");
    run_until(user->wires[0].reason != NULL);
    assert_berth_error(user->wires[0].reason, BERTH_ERROR_RESOURCE_EXHAUSTED,
                       "does not take its answers");
    run_until(user->server->open->len > 0);
    answer_one(user, 1000);
    hear_answer(&user->wires[3], 1);
}

/* The length of a frame, and its first bytes. */
static void begin_frame(const Wire *wire, guint32 bytes)
{
    guint8 start[64] = {0};
    guint32 big_endian = htonl(bytes);
    memcpy(start, &big_endian, sizeof big_endian);
    start[4] = 0x08; /* kind = REQUEST */
    start[5] = 0x01;
    assert_int_equal(write(wire->fd, start, 6), 6);
}

static void large_frames_that_have_begun_are_charged_and_wait(void **state)
{
    User *user = *state;
    for (guint i = 0; i < N_WIRES; i++) {
        begin_frame(&user->wires[i], FRAME_MIB << 20);
        settle();
    }
    assert_int_equal(berth_rpc_budget_used(user->budget), BUDGET_BYTES);
    /* The fourth is read on when one of them has gone. */
    close(user->wires[0].fd);
    user->wires[0].fd = -1;
    run_until(user->wires[0].reason != NULL);
    berth_rpc_peer_unref(g_steal_pointer(&user->wires[0].peer));
    settle();
    assert_int_equal(berth_rpc_budget_used(user->budget), BUDGET_BYTES);
}

typedef struct {
    int fd;
    GBytes *bytes;
} Writing;

static gpointer write_blocking(gpointer data)
{
    const Writing *writing = data;
    gsize size = 0;
    const guint8 *bytes = g_bytes_get_data(writing->bytes, &size);
    for (gsize at = 0; at < size;) {
        gssize n = write(writing->fd, bytes + at, size - at);
        if (n <= 0)
            return NULL;
        at += (gsize)n;
    }
    return NULL;
}

/* Their frames fill the budget, and each still wants room for its answer. */
static void assert_full_frames_are_answered(User *user)
{
    Berth__SubmitRequest submit = BERTH__SUBMIT_REQUEST__INIT;
    g_autofree char *key = g_strnfill(FRAME_MIB * MIB - 1000, 'k');
    submit.idempotency_key = key;
    g_autoptr(GBytes) request = rpc_fixture_request(1, "Jobs.Release", &submit.base);
    Writing writings[N_WIRES];
    GThread *threads[N_WIRES];
    for (guint i = 0; i < N_WIRES; i++) {
        writings[i] = (Writing){user->wires[i].fd, request};
        threads[i] = g_thread_new("writer", write_blocking, &writings[i]);
    }
    for (guint i = 0; i < N_WIRES; i++) {
        run_until(user->server->open->len > 0);
        answer_one(user, 1000);
    }
    for (guint i = 0; i < N_WIRES; i++) {
        g_thread_join(threads[i]);
        hear_answer(&user->wires[i], 1);
    }
}

static void requests_in_full_frames_do_not_wait_for_each_other_for_ever(void **state)
{
    assert_full_frames_are_answered(*state);
}

static void do_nothing(BerthRpcCall *call, gpointer user_data)
{
}

/* As one of who follows what happens. */
static void requests_in_full_frames_do_not_wait_for_the_end_of_a_stream(void **state)
{
    User *user = *state;
    ask(&user->wires[0], 2, "Jobs.Hold");
    run_until(user->server->open->len == 1);
    BerthRpcCall *stream = g_ptr_array_steal_index(user->server->open, 0);
    berth_rpc_call_set_ready_func(stream, do_nothing, NULL);
    assert_full_frames_are_answered(user);
    g_ptr_array_add(user->server->open, stream);
    answer_one(user, 1000);
    hear_answer(&user->wires[0], 2);
}

/* --- several users ------------------------------------------------------------------------- */

/* The first has two answers of the largest size, and takes neither. */
static void take_most(User *user)
{
    ask(&user->wires[0], 1, "Jobs.Hold");
    ask(&user->wires[0], 2, "Jobs.Hold");
    for (guint i = 0; i < 2; i++) {
        run_until(user->server->open->len > 0);
        answer_one(user, FRAME_MIB * MIB - 1000);
    }
    settle();
    assert_int_equal(user->server->held, 2);
}

static void users_wait_for_what_all_of_them_take(void **state)
{
    User *user = *state;
    Wire *other = &user->wires[N_WIRES - 1];
    berth_rpc_pool_set_stall(user->pool, 100);
    take_most(user);
    assert_false(berth_rpc_peer_is_closed(user->wires[0].peer)); /* nobody waits yet */
    ask(other, 1, "Jobs.Hold");
    ask(other, 2, "Jobs.Hold");
    run_until(user->wires[0].reason != NULL);
    assert_berth_error(user->wires[0].reason, BERTH_ERROR_RESOURCE_EXHAUSTED,
                       "other commands wait");
    run_until(user->server->held == 4);
    assert_null(other->reason);
    answer_one(user, 1000);
    answer_one(user, 1000);
    hear_answer(other, 1);
    hear_answer(other, 2);
}

static void user_with_little_does_not_wait_for_others(void **state)
{
    User *user = *state;
    take_most(user);
    for (guint64 id = 1; id <= 60; id++)
        ask(&user->wires[N_WIRES - 1], id, "Jobs.Submit");
    settle();
    assert_int_equal(user->server->held, 2 + 60);
    assert_false(berth_rpc_peer_is_closed(user->wires[0].peer));
}

/* --- many users ----------------------------------------------------------------------------- */

static void assert_held(const User *user, guint held)
{
    settle();
    assert_int_equal(user->server->held, held);
}

/* Each has one open call, which is within his least. */
static void take_least(User *user)
{
    for (guint i = 0; i < N_WIRES; i++) {
        ask(&user->wires[i], 1, "Jobs.Hold");
        assert_held(user, i + 1);
    }
}

/* The latest call that was begun is one on the wire I. */
static void assert_latest(const User *user, guint i)
{
    const GPtrArray *open = user->server->open;
    assert_ptr_equal(berth_rpc_call_peer(open->pdata[open->len - 1]), user->wires[i].peer);
}

static void users_at_their_least_leave_the_pool_empty(void **state)
{
    User *user = *state;
    take_least(user);
    for (guint i = 0; i < N_WIRES - 1; i++)
        answer_one(user, FRAME_MIB * MIB - 1000); /* which nobody takes */
    settle();
    for (guint i = 0; i < N_WIRES; i++)
        assert_true(berth_rpc_budget_used(user->budgets[i]) > MIB);
    assert_int_equal(berth_rpc_pool_used(user->pool), 0);
    ask(&user->wires[N_WIRES - 1], 2, "Jobs.Hold");
    assert_held(user, N_WIRES + 1);
    assert_int_equal(berth_rpc_pool_used(user->pool),
                     berth_rpc_budget_used(user->budgets[N_WIRES - 1]) - CROWD_LEAST);
}

static void who_waits_for_the_pool_is_woken_in_order_while_there_is_room(void **state)
{
    User *user = *state;
    const guint order[] = {0, 2, 1, 3};
    take_least(user);
    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        ask(&user->wires[order[i]], 2, "Jobs.Hold");
        assert_held(user, N_WIRES + 1); /* the first has taken what there is */
    }
    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        assert_held(user, N_WIRES + 1 + i);
        assert_latest(user, order[i]);
        answer(user, user->server->open->len - 1, 1000);
    }
    assert_held(user, 2 * N_WIRES);
    assert_int_equal(berth_rpc_pool_used(user->pool), 0);
}

/* One of two has all there is, the second waits for as much, and the first wants a little more. */
static void fill_pool(User *user)
{
    take_least(user);
    ask(&user->wires[0], 2, "Jobs.Hold");
    settle();
    ask(&user->wires[2], 2, "Jobs.Hold");
    settle();
    ask(&user->wires[0], 3, "Jobs.Submit");
    assert_held(user, N_WIRES + 1);
}

static void who_wants_little_does_not_pass_who_waits_for_much(void **state)
{
    User *user = *state;
    fill_pool(user);
    answer(user, user->server->open->len - 1, 1000);
    assert_held(user, N_WIRES + 3);
}

static void connection_that_ends_does_not_keep_those_behind_it(void **state)
{
    User *user = *state;
    user->server->answer_cancelled = FALSE;
    fill_pool(user);
    berth_rpc_peer_close(user->wires[2].peer, TRUE);
    assert_held(user, N_WIRES + 2);
    assert_latest(user, 0);
}

static void connection_whose_other_end_goes_does_not_keep_those_behind_it(void **state)
{
    User *user = *state;
    user->server->answer_cancelled = FALSE;
    fill_pool(user);
    close(user->wires[2].fd);
    user->wires[2].fd = -1;
    run_until(user->wires[2].reason != NULL);
    assert_held(user, N_WIRES + 2);
    assert_latest(user, 0);
}

static void who_has_come_below_his_least_does_not_wait_for_the_pool(void **state)
{
    User *user = *state;
    const guint wires[] = {0, 1, 2, 0}; /* and by then the pool is full */
    for (guint i = 0; i < G_N_ELEMENTS(wires); i++) {
        ask(&user->wires[wires[i]], 1 + i, "Jobs.Hold");
        assert_held(user, 1 + i);
    }
    ask(&user->wires[1], 9, "Jobs.Hold");
    settle();
    ask(&user->wires[3], 9, "Jobs.Hold");
    assert_held(user, 4);
    answer(user, 2, 1000);
    assert_held(user, 5); /* the second user waits on */
    assert_latest(user, 3);
}

static void only_who_has_more_than_his_least_is_ended_while_others_wait(void **state)
{
    User *user = *state;
    berth_rpc_pool_set_stall(user->pool, 100);
    take_least(user);
    ask(&user->wires[0], 2, "Jobs.Hold");
    assert_held(user, N_WIRES + 1);
    const guint unread[] = {N_WIRES, 2, 0}; /* both of the first user, and one of the third */
    for (guint i = 0; i < G_N_ELEMENTS(unread); i++)
        answer(user, unread[i], FRAME_MIB * MIB - 1000);
    ask(&user->wires[1], 2, "Jobs.Hold");
    assert_held(user, N_WIRES + 1);
    run_until(user->wires[0].reason != NULL);
    assert_berth_error(user->wires[0].reason, BERTH_ERROR_RESOURCE_EXHAUSTED,
                       "other commands wait");
    run_until(user->server->held == N_WIRES + 2);
    for (guint i = 1; i < N_WIRES; i++)
        assert_null(user->wires[i].reason);
}

#define TEST(name)        cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_SHARED(name) cmocka_unit_test_setup_teardown(name, setup_shared, teardown)
#define TEST_CROWD(name)  cmocka_unit_test_setup_teardown(name, setup_crowd, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(burst_of_requests_begins_only_what_has_room_for_its_answer),
        TEST(answers_of_the_largest_size_stay_within_the_budget),
        TEST(request_that_waits_for_room_goes_on_when_there_is),
        TEST(small_answers_pass_in_any_number),
        TEST(peer_that_takes_nothing_is_ended_while_others_wait),
        TEST(large_frames_that_have_begun_are_charged_and_wait),
        TEST(requests_in_full_frames_do_not_wait_for_each_other_for_ever),
        TEST(requests_in_full_frames_do_not_wait_for_the_end_of_a_stream),
        TEST_SHARED(users_wait_for_what_all_of_them_take),
        TEST_SHARED(user_with_little_does_not_wait_for_others),
        TEST_CROWD(users_at_their_least_leave_the_pool_empty),
        TEST_CROWD(who_waits_for_the_pool_is_woken_in_order_while_there_is_room),
        TEST_CROWD(who_wants_little_does_not_pass_who_waits_for_much),
        TEST_CROWD(connection_that_ends_does_not_keep_those_behind_it),
        TEST_CROWD(connection_whose_other_end_goes_does_not_keep_those_behind_it),
        cmocka_unit_test_setup_teardown(who_has_come_below_his_least_does_not_wait_for_the_pool,
                                        setup_three, teardown),
        TEST_CROWD(only_who_has_more_than_his_least_is_ended_while_others_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
