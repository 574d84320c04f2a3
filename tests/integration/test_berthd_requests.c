/* SPDX-License-Identifier: Apache-2.0 */
/* What people asked of a job, and what came of it: what its record says, to whom, and what outlives a kill. */
#include "config.h"

#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/job_requests.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/refusals.h"

#define ALICE    12345u
#define BOB      12346u
#define NO_GROUP 65534u

#define KIND(name)    BERTH__EVENT__KIND__##name
#define OUTCOME(name) BERTH__JOB_REQUEST__OUTCOME__##name

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

static guint64 submit_running(BerthdTest *test)
{
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, KIND(GUEST_RUNNING), job);
    return job;
}

static void ask(BerthdTest *test, const char *method, const ProtobufCMessage *request)
{
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, method, request);
}

static void freeze(BerthdTest *test, guint64 job, const char *why)
{
    Berth__FreezeRequest request = BERTH__FREEZE_REQUEST__INIT;
    request.job = job;
    request.reason = (char *)why;
    ask(test, "Freeze", &request.base);
}

static void thaw(BerthdTest *test, guint64 job)
{
    Berth__ThawRequest request = BERTH__THAW_REQUEST__INIT;
    request.job = job;
    ask(test, "Thaw", &request.base);
}

static void extend(BerthdTest *test, guint64 job)
{
    Berth__ExtendRequest request = BERTH__EXTEND_REQUEST__INIT;
    request.job = job;
    request.by_sec = 60;
    ask(test, "Extend", &request.base);
}

static void cancel(BerthdTest *test, guint64 job, const char *why)
{
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = job;
    request.reason = (char *)why;
    ask(test, "Cancel", &request.base);
}

/* JOB's request AT, with its event. */
static void assert_request(const Berth__Job *job, gsize at, Berth__Event__Kind kind,
                           const char *why, Berth__JobRequest__Outcome outcome)
{
    assert_true(at < job->n_requests);
    const Berth__JobRequest *request = job->requests[at];
    assert_int_equal(request->kind, kind);
    assert_int_equal(request->outcome, outcome);
    assert_non_null(request->asked);
    assert_int_equal(request->asked->kind, kind);
    assert_int_equal(request->asked->seq, request->asked_seq);
    assert_int_equal(request->asked->job, job->id);
    assert_string_equal(request->asked->user, "root");
    assert_string_equal(request->asked->why, why);
}

/* The event that settled JOB's request AT is a change to JOB_STATE. */
static void assert_settled_by(const Berth__Job *job, gsize at, Berth__JobState job_state)
{
    const Berth__Event *settled = job->requests[at]->settled;
    assert_non_null(settled);
    assert_int_equal(settled->kind, KIND(TASK_STATE));
    assert_int_equal(settled->state, job_state);
    assert_int_equal(settled->seq, job->requests[at]->settled_seq);
}

static void requests_are_told_with_who_and_why_and_outcome(void **state)
{
    BerthdTest *test = *state;
    guint64 number = submit_running(test);
    freeze(test, number, "it is too hot");
    berthd_fixture_wait_state(test->berthd, number, BERTH__JOB_STATE__SUSPENDED);
    thaw(test, number);
    berthd_fixture_wait_state(test->berthd, number, BERTH__JOB_STATE__RUNNING);
    extend(test, number);
    cancel(test, number, "wrong data");
    berthd_fixture_wait_state(test->berthd, number, BERTH__JOB_STATE__CANCELLED);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, number);
    assert_int_equal(job->n_requests, 4);
    assert_request(job, 0, KIND(JOB_FREEZE_REQUESTED), "it is too hot", OUTCOME(DONE));
    assert_settled_by(job, 0, BERTH__JOB_STATE__SUSPENDED);
    assert_request(job, 1, KIND(JOB_THAW_REQUESTED), "", OUTCOME(DONE));
    assert_settled_by(job, 1, BERTH__JOB_STATE__RUNNING);
    assert_request(job, 2, KIND(JOB_EXTEND_REQUESTED), "", OUTCOME(DONE));
    assert_null(job->requests[2]->settled);
    assert_request(job, 3, KIND(JOB_CANCEL_REQUESTED), "wrong data", OUTCOME(DONE));
    assert_settled_by(job, 3, BERTH__JOB_STATE__CANCELLED);
}

static void request_that_fails_is_told_with_what_failed(void **state)
{
    BerthdTest *test = *state;
    test->plan.freeze_error = "the guest is made of quicksilver";
    guint64 number = submit_running(test);
    freeze(test, number, "");
    berthd_fixture_wait_event(test->berthd, KIND(GUEST_FREEZE_FAILED), number);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, number);
    assert_request(job, 0, KIND(JOB_FREEZE_REQUESTED), "", OUTCOME(FAILED));
    assert_non_null(strstr(job->requests[0]->settled->text, "quicksilver"));
}

/* It has been so for long, or another request comes before it is so. */
static void request_that_needs_no_answer_is_not_left_open(void **state)
{
    BerthdTest *test = *state;
    guint64 number = submit_running(test);
    Berth__ResizeRequest resize = BERTH__RESIZE_REQUEST__INIT;
    resize.job = number;
    resize.vcpus = 1;
    ask(test, "Resize", &resize.base);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, KIND(NODE_DOWN), 0);
    freeze(test, number, "");
    thaw(test, number);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, number);
    assert_int_equal(job->n_requests, 3);
    assert_request(job, 0, KIND(JOB_RESIZE_REQUESTED), "", OUTCOME(DONE));
    assert_request(job, 1, KIND(JOB_FREEZE_REQUESTED), "", OUTCOME(OVERTAKEN));
    assert_int_equal(job->requests[1]->settled_seq, job->requests[2]->asked_seq);
}

static void open_request_outlives_berthd(void **state)
{
    BerthdTest *test = *state;
    guint64 number = submit_running(test);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, KIND(NODE_DOWN), 0);
    freeze(test, number, "it is too hot");
    g_autoptr(Berth__Job) before = berthd_fixture_get(test->berthd, number);
    assert_request(before, 0, KIND(JOB_FREEZE_REQUESTED), "it is too hot", OUTCOME(OPEN));
    assert_int_equal(before->requests[0]->settled_seq, 0);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    fake_agent_heal(test->agent);
    berthd_fixture_wait_state(test->berthd, number, BERTH__JOB_STATE__SUSPENDED);
    g_autoptr(Berth__Job) after = berthd_fixture_get(test->berthd, number);
    assert_int_equal(after->n_requests, 1);
    assert_request(after, 0, KIND(JOB_FREEZE_REQUESTED), "it is too hot", OUTCOME(DONE));
    assert_settled_by(after, 0, BERTH__JOB_STATE__SUSPENDED);
}

static void requests_beyond_the_latest_are_in_the_event_log(void **state)
{
    BerthdTest *test = *state;
    guint64 number = submit_running(test);
    for (guint i = 0; i < BERTH_JOB_REQUESTS_MAX + 5; i++)
        extend(test, number);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, number);
    assert_int_equal(job->n_requests, BERTH_JOB_REQUESTS_MAX);
    for (gsize i = 0; i < job->n_requests; i++)
        assert_request(job, i, KIND(JOB_EXTEND_REQUESTED), "", OUTCOME(DONE));
    assert_non_null(strstr(job->requests[job->n_requests - 1]->asked->text, "01:21:00"));
}

static gpointer call_as(BerthRpcPeer *peer, const char *method, const ProtobufCMessage *request)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply =
        berth_rpc_peer_call(peer, &berth__jobs__descriptor, method, request, 30000, &error);
    assert_no_error(error);
    return reply;
}

/* An operator's is its owner's to know, too; nobody else's; and lists are short. */
static void requests_are_for_owner_and_operators(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest submit = BERTH__SUBMIT_REQUEST__INIT;
    submit.spec = &spec;
    g_autoptr(ProtobufCMessage) submitted = call_as(alice, "Submit", &submit.base);
    guint64 number = ((Berth__SubmitReply *)submitted)->job;
    berthd_fixture_wait_event(test->berthd, KIND(GUEST_RUNNING), number);
    freeze(test, number, "it is too hot"); /* root */
    berthd_fixture_wait_state(test->berthd, number, BERTH__JOB_STATE__SUSPENDED);
    Berth__GetJobRequest get = BERTH__GET_JOB_REQUEST__INIT;
    get.job = number;
    g_autoptr(Berth__Job) hers = call_as(alice, "Get", &get.base);
    assert_request(hers, 0, KIND(JOB_FREEZE_REQUESTED), "it is too hot", OUTCOME(DONE));
    g_autoptr(Berth__Job) his = call_as(bob, "Get", &get.base);
    assert_int_equal(his->n_requests, 0);
    Berth__ListJobsRequest list = BERTH__LIST_JOBS_REQUEST__INIT;
    list.jobs = &number;
    list.n_jobs = 1;
    g_autoptr(ProtobufCMessage) listed = call_as(alice, "List", &list.base);
    assert_int_equal(((Berth__ListJobsReply *)listed)->n_jobs, 1);
    assert_int_equal(((Berth__ListJobsReply *)listed)->jobs[0]->n_requests, 0);
}

/* The newest that was refused. */
static const Berth__Event *refusal_of(BerthdTest *test, guint64 job)
{
    berthd_fixture_wait_event(test->berthd, KIND(REQUEST_REFUSED), job);
    GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = events->len; i > 0; i--) {
        const Berth__Event *event = g_ptr_array_index(events, i - 1);
        if (event->kind == KIND(REQUEST_REFUSED))
            return event;
    }
    return NULL;
}

static void assert_refused(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                           const char *method, const ProtobufCMessage *request, const char *why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, service, method, request, 30000, &error);
    assert_null(reply);
    assert_non_null(error);
    assert_non_null(strstr(error->message, why));
}

static void refused_request_is_told_with_who_and_why_not(void **state)
{
    BerthdTest *test = *state;
    guint64 number = submit_running(test);
    Berth__ResizeRequest resize = BERTH__RESIZE_REQUEST__INIT;
    resize.job = number;
    resize.vcpus = 50;
    resize.reason = (char *)"it is slow";
    assert_refused(berthd_fixture_client(test->berthd), &berth__jobs__descriptor, "Resize",
                   &resize.base, "50 vCPUs");
    const Berth__Event *event = refusal_of(test, number);
    assert_int_equal(event->wanted, KIND(JOB_RESIZE_REQUESTED));
    assert_string_equal(event->user, "root");
    assert_string_equal(event->text, "50 vCPUs");
    assert_string_equal(event->why, "it is slow");
    berthd_fixture_kill(test->berthd); /* it was committed before the answer */
    berthd_fixture_restart(test->berthd);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, number);
    assert_int_equal(job->n_requests, 1);
    assert_int_equal(job->requests[0]->kind, KIND(JOB_RESIZE_REQUESTED));
    assert_int_equal(job->requests[0]->outcome, OUTCOME(REFUSED));
    assert_non_null(strstr(job->requests[0]->asked->refusal, "50 vCPUs"));
}

/* By who may not, too; and however often, the log has so many. */
static void strangers_requests_are_told_and_bounded(void **state)
{
    BerthdTest *test = *state;
    guint64 number = submit_running(test);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = number;
    guint n_told = 0;
    for (guint i = 0; i < BERTH_REFUSALS_MAX + 30; i++)
        assert_refused(bob, &berth__jobs__descriptor, "Cancel", &request.base, "another user");
    extend(test, number);
    berthd_fixture_wait_event(test->berthd, KIND(JOB_EXTEND_REQUESTED), number);
    assert_string_equal(refusal_of(test, number)->user, "12346");
    GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = 0; i < events->len; i++)
        n_told +=
            ((const Berth__Event *)g_ptr_array_index(events, i))->kind == KIND(REQUEST_REFUSED);
    assert_int_equal(n_told, BERTH_REFUSALS_MAX);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, number);
    assert_int_equal(job->n_requests, BERTH_JOB_REFUSALS_MAX + 1);
}

static void refused_request_about_a_node_is_told(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    char *names[] = {(char *)"n1"};
    request.names = names;
    request.n_names = 1;
    request.reason = (char *)"for fun";
    assert_refused(bob, &berth__nodes__descriptor, "Drain", &request.base, "only operators");
    const Berth__Event *event = refusal_of(test, 0);
    assert_string_equal(event->node, "n1");
    assert_string_equal(event->user, "12346");
    assert_int_equal(event->wanted, KIND(NODE_DRAINED));
    assert_non_null(strstr(event->refusal, "only operators"));
    assert_refused(berthd_fixture_client(test->berthd), &berth__nodes__descriptor, "Down",
                   &request.base, "has a session");
}

static void request_that_is_wrong_is_none(void **state)
{
    BerthdTest *test = *state;
    guint64 number = submit_running(test);
    g_autofree char *longer = g_strnfill(1025, 'y');
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = number;
    request.reason = longer;
    g_autoptr(GError) is_long =
        berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor, "Cancel", &request.base);
    assert_berth_error(is_long, BERTH_ERROR_INVALID_ARGUMENT, "the reason has 1025 bytes");
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, number);
    assert_int_equal(job->n_requests, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_are_told_with_who_and_why_and_outcome),
        TEST(request_that_fails_is_told_with_what_failed),
        TEST(request_that_needs_no_answer_is_not_left_open),
        TEST(open_request_outlives_berthd),
        TEST(requests_beyond_the_latest_are_in_the_event_log),
        TEST(requests_are_for_owner_and_operators),
        TEST(refused_request_is_told_with_who_and_why_not),
        TEST(strangers_requests_are_told_and_bounded),
        TEST(refused_request_about_a_node_is_told),
        TEST(request_that_is_wrong_is_none),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
