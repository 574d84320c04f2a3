/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are frozen and thawed: what berthd tells whom, and what outlives a connection and a kill. */
#include "config.h"

#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#define ALICE    12345u
#define BOB      12346u
#define NO_GROUP 65534u

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

static void freeze(BerthdTest *test, guint64 job)
{
    Berth__FreezeRequest request = BERTH__FREEZE_REQUEST__INIT;
    request.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Freeze", &request.base);
}

static void thaw(BerthdTest *test, guint64 job)
{
    Berth__ThawRequest request = BERTH__THAW_REQUEST__INIT;
    request.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Thaw", &request.base);
}

static guint64 submit_running(BerthdTest *test)
{
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__RUNNING);
    run_until(fake_agent_runs(test->agent, job) == 1);
    return job;
}

static const Berth__Event *event_of(BerthdTest *test, Berth__Event__Kind kind, guint64 job)
{
    berthd_fixture_wait_event(test->berthd, kind, job);
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = events->len; i > 0; i--) {
        const Berth__Event *event = g_ptr_array_index(events, i - 1);
        if (event->kind == kind && event->job == job)
            return event;
    }
    return NULL;
}

static void assert_suspended(BerthdTest *test, guint64 job, Berth__Reason reason)
{
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__SUSPENDED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    const Berth__Task *task = berthd_test_task(record);
    assert_int_equal(task->reason, reason);
    assert_true(task->frozen_usec >= task->start_usec);
    assert_non_null(strstr(task->reason_text, "frozen by"));
}

static void freeze_stops_a_guest_and_thaw_lets_it_go(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    freeze(test, job);
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
    assert_true(fake_agent_is_frozen(test->agent, job));
    const Berth__Event *asked = event_of(test, BERTH__EVENT__KIND__JOB_FREEZE_REQUESTED, job);
    assert_string_equal(asked->user, "root");
    thaw(test, job);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__RUNNING);
    assert_false(fake_agent_is_frozen(test->agent, job));
    asked = event_of(test, BERTH__EVENT__KIND__JOB_THAW_REQUESTED, job);
    assert_string_equal(asked->user, "root");
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->frozen_usec, 0);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

static void freeze_that_a_node_refuses_is_told_with_its_reason(void **state)
{
    BerthdTest *test = *state;
    test->plan.freeze_error = "the guest is made of quicksilver";
    guint64 job = submit_running(test);
    freeze(test, job);
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_FREEZE_FAILED, job);
    assert_non_null(strstr(failed->text, "quicksilver"));
    assert_string_equal(failed->node, "n1");
    assert_int_equal(berthd_fixture_state_of(test->berthd, job), BERTH__JOB_STATE__RUNNING);
    assert_int_equal(fake_agent_n_freezes(test->agent), 1);
}

static void freeze_whose_answer_is_lost_is_asked_for_again(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    fake_agent_set_delay(test->agent, 60000);
    freeze(test, job);
    run_until(fake_agent_is_frozen(test->agent, job));
    fake_agent_set_delay(test->agent, 0);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    fake_agent_heal(test->agent);
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
    assert_int_equal(fake_agent_n_freezes(test->agent), 2);
}

static void frozen_job_stays_so_when_berthd_is_killed(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    freeze(test, job);
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
    g_autoptr(Berth__Job) before = berthd_fixture_get(test->berthd, job);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
    g_autoptr(Berth__Job) after = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(after)->frozen_usec, berthd_test_task(before)->frozen_usec);
    assert_int_equal(fake_agent_n_freezes(test->agent), 1);
    thaw(test, job);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__RUNNING);
    assert_false(fake_agent_is_frozen(test->agent, job));
}

static void wish_that_was_not_carried_out_outlives_berthd(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    freeze(test, job);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(fake_agent_n_freezes(test->agent), 0);
    fake_agent_heal(test->agent);
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
}

/* The guest stands still, and nobody has heard of it; by now it is to run. */
static void thaw_that_came_before_an_answer_outlives_berthd(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    fake_agent_set_delay(test->agent, 60000);
    freeze(test, job);
    run_until(fake_agent_is_frozen(test->agent, job));
    fake_agent_set_delay(test->agent, 0);
    thaw(test, job);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(!fake_agent_is_frozen(test->agent, job));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__RUNNING);
}

/* NULL: it was taken. (transfer full) */
static GError *ask_as(BerthRpcPeer *peer, const char *method, guint64 job)
{
    Berth__FreezeRequest freeze = BERTH__FREEZE_REQUEST__INIT;
    Berth__ThawRequest thaw = BERTH__THAW_REQUEST__INIT;
    freeze.job = thaw.job = job;
    GError *error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call(
        peer, &berth__jobs__descriptor, method,
        strcmp(method, "Freeze") == 0 ? &freeze.base : &thaw.base, 30000, &error);
    return error;
}

static guint64 submit_running_as(BerthdTest *test, BerthRpcPeer *peer)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, &berth__jobs__descriptor, "Submit", &request.base, 30000, &error);
    assert_no_error(error);
    guint64 job = ((Berth__SubmitReply *)reply)->job;
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__RUNNING);
    run_until(fake_agent_runs(test->agent, job) == 1);
    return job;
}

static void freeze_is_for_its_user_and_for_operators(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    guint64 job = submit_running_as(test, alice);
    g_autoptr(GError) denied = ask_as(bob, "Freeze", job);
    assert_berth_error(denied, BERTH_ERROR_PERMISSION_DENIED, "belongs to another user");
    assert_int_equal(fake_agent_n_freezes(test->agent), 0);
    assert_null(ask_as(alice, "Freeze", job));
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
    freeze(test, job); /* root */
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_OPERATOR);
    g_autoptr(GError) refused = ask_as(alice, "Thaw", job);
    assert_berth_error(refused, BERTH_ERROR_FAILED_PRECONDITION, "an operator, who alone");
    thaw(test, job);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__RUNNING);
}

static void frozen_job_is_cancelled_as_any_other(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    freeze(test, job);
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Cancel", &request.base);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__CANCELLED);
    assert_int_equal(fake_agent_n_stops(test->agent), 1);
}

static guint count_of(BerthdTest *test, Berth__Event__Kind kind)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    guint n = 0;
    for (guint i = 0; i < events->len; i++)
        n += ((const Berth__Event *)g_ptr_array_index(events, i))->kind == kind;
    return n;
}

static void say_held(BerthdTest *test, guint64 job, guint64 since_usec)
{
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    id.job = job;
    id.epoch = 1;
    status.id = &id;
    status.phase = BERTH__GUEST_STATUS__PHASE__ACTIVE;
    status.held_back_usec = since_usec;
    fake_agent_say(test->agent, &status);
}

static guint64 held_since(BerthdTest *test, guint64 job)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    return berthd_test_task(record)->held_back_usec;
}

/* The node does it by itself; that it says it again changes nothing, and its clock is not believed. */
static void guest_that_its_node_holds_back_is_shown(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    say_held(test, job, G_MAXINT64);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__GUEST_HELD_BACK, job)->node, "n1");
    guint64 since = held_since(test, job);
    assert_true(since > 0 && since <= (guint64)g_get_real_time());
    say_held(test, job, 1);
    say_held(test, job, 0);
    event_of(test, BERTH__EVENT__KIND__GUEST_LET_GO, job);
    assert_int_equal(held_since(test, job), 0);
    assert_int_equal(count_of(test, BERTH__EVENT__KIND__GUEST_HELD_BACK), 1);
}

/* The record is as it is; the event log has the first of them. */
static void guest_that_is_held_back_again_and_again_is_told_of_once(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    for (guint i = 0; i < 5; i++) {
        say_held(test, job, 1);
        run_until(held_since(test, job) != 0);
        say_held(test, job, 0);
        run_until(held_since(test, job) == 0);
    }
    assert_int_equal(count_of(test, BERTH__EVENT__KIND__GUEST_HELD_BACK), 1);
    assert_int_equal(count_of(test, BERTH__EVENT__KIND__GUEST_LET_GO), 1);
    freeze(test, job); /* what is told of later is told */
    assert_suspended(test, job, BERTH__REASON__REASON_FROZEN_BY_USER);
    assert_int_equal(count_of(test, BERTH__EVENT__KIND__GUEST_HELD_BACK), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(freeze_stops_a_guest_and_thaw_lets_it_go),
        TEST(freeze_that_a_node_refuses_is_told_with_its_reason),
        TEST(freeze_whose_answer_is_lost_is_asked_for_again),
        TEST(frozen_job_stays_so_when_berthd_is_killed),
        TEST(wish_that_was_not_carried_out_outlives_berthd),
        TEST(thaw_that_came_before_an_answer_outlives_berthd),
        TEST(freeze_is_for_its_user_and_for_operators),
        TEST(frozen_job_is_cancelled_as_any_other),
        TEST(guest_that_its_node_holds_back_is_shown),
        TEST(guest_that_is_held_back_again_and_again_is_told_of_once),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
