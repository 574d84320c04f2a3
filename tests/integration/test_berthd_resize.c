/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are given more or less while they run: what berthd asks of their node, who may ask for it, and what
 * outlives a connection and a kill. The jobs begin with 1 vCPU and 64 MiB, and may have 4 and 256. */
#include "config.h"

#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#include <string.h>

#define ALICE    12345u
#define BOB      12346u
#define NO_GROUP 65534u

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

/* Who lacks vCPUs is grown after a second. */
static int setup_hasty(void **state)
{
    int status = berthd_test_setup_with(state, "[policy]\nlimit_cpu_usec=1000000\n");
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

static Berth__JobSpec spec_with_ceiling(void)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.vcpus_max = 4;
    spec.memory_max_mib = 256;
    return spec;
}

static void await_run(BerthdTest *test, guint64 job)
{
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    run_until(fake_agent_runs(test->agent, job) == 1);
}

static guint64 submit_running(BerthdTest *test)
{
    Berth__JobSpec spec = spec_with_ceiling();
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    await_run(test, job);
    return job;
}

static Berth__ResizeRequest request_of(guint64 job, guint32 vcpus, guint64 memory_mib)
{
    Berth__ResizeRequest request = BERTH__RESIZE_REQUEST__INIT;
    request.job = job;
    request.vcpus = vcpus;
    request.memory_mib = memory_mib;
    return request;
}

static void resize(BerthdTest *test, guint64 job, guint32 vcpus, guint64 memory_mib)
{
    Berth__ResizeRequest request = request_of(job, vcpus, memory_mib);
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Resize", &request.base);
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

static void assert_has(BerthdTest *test, guint64 job, guint32 vcpus, guint64 memory_mib)
{
    const Berth__ResizeGuestRequest *size = fake_agent_size(test->agent, job);
    assert_non_null(size);
    assert_int_equal(size->vcpus, vcpus);
    assert_int_equal(size->memory_mib, memory_mib);
    assert_int_equal(size->balloon_mib, 0);
    assert_false(size->opportunistic);
}

/* VCPUS 0: what it was submitted with. Nothing is under way. */
static void assert_shown(BerthdTest *test, guint64 job, guint32 vcpus, guint64 memory_mib)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    const Berth__Task *task = berthd_test_task(record);
    assert_int_equal(task->vcpus, vcpus);
    assert_int_equal(task->memory_mib, memory_mib);
    assert_null(task->resize);
}

static void guest_is_started_with_its_ceiling(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    const Berth__StartGuestRequest *start = fake_agent_start(test->agent, job);
    assert_int_equal(start->vcpus, 1);
    assert_int_equal(start->memory_mib, 64);
    assert_int_equal(start->vcpus_max, 4);
    assert_int_equal(start->memory_max_mib, 256);
    assert_shown(test, job, 0, 0);
}

static void resize_gives_a_guest_more_and_says_so(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    resize(test, job, 2, 128);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__GUEST_RESIZED, job)->text,
                        "2 vCPUs, 128M");
    assert_has(test, job, 2, 128);
    assert_shown(test, job, 2, 128);
    const Berth__Event *asked = event_of(test, BERTH__EVENT__KIND__JOB_RESIZE_REQUESTED, job);
    assert_string_equal(asked->user, "root");
    assert_string_equal(asked->text, "2 vCPUs, 128M");
    const Berth__Event *begun = event_of(test, BERTH__EVENT__KIND__GUEST_RESIZE, job);
    assert_string_equal(begun->node, "n1");
    assert_int_equal(begun->reason, BERTH__REASON__REASON_RESIZED_BY_USER);
    resize(test, job, 0, 64);
    run_until(fake_agent_size(test->agent, job)->memory_mib == 64);
    assert_has(test, job, 2, 64);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

static void resize_that_a_guest_does_not_go_along_with_is_told_with_its_reason(void **state)
{
    BerthdTest *test = *state;
    test->plan.resize_error = "the guest is made of concrete";
    guint64 job = submit_running(test);
    resize(test, job, 2, 128);
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_RESIZE_FAILED, job);
    assert_non_null(strstr(failed->text, "concrete"));
    assert_string_equal(failed->node, "n1");
    assert_shown(test, job, 0, 0);
    assert_int_equal(berthd_fixture_state_of(test->berthd, job), BERTH__JOB_STATE__RUNNING);
}

static void resize_that_comes_half_way_is_told_and_counted(void **state)
{
    BerthdTest *test = *state;
    test->plan.resize_error = "the guest is made of concrete";
    test->plan.resize_has_mib = 96;
    guint64 job = submit_running(test);
    resize(test, job, 2, 128);
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_RESIZE_FAILED, job);
    assert_non_null(strstr(failed->text, "concrete"));
    assert_shown(test, job, 1, 96);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    assert_shown(test, job, 1, 96);
}

static void resize_whose_answer_is_lost_is_asked_for_again(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    fake_agent_set_delay(test->agent, 60000);
    resize(test, job, 3, 0);
    run_until(fake_agent_size(test->agent, job) != NULL);
    fake_agent_set_delay(test->agent, 0);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    fake_agent_heal(test->agent);
    event_of(test, BERTH__EVENT__KIND__GUEST_RESIZED, job);
    assert_has(test, job, 3, 64);
    assert_shown(test, job, 3, 64);
}

static void size_is_known_to_a_berthd_that_was_killed(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    resize(test, job, 3, 128);
    event_of(test, BERTH__EVENT__KIND__GUEST_RESIZED, job);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_shown(test, job, 3, 128);
    resize(test, job, 1, 0); /* the rest is what it has */
    run_until(fake_agent_size(test->agent, job)->vcpus == 1);
    assert_has(test, job, 1, 128);
}

static void resize_that_was_open_is_asked_for_again_by_the_next_berthd(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    fake_agent_set_delay(test->agent, 60000);
    resize(test, job, 4, 256);
    run_until(fake_agent_size(test->agent, job) != NULL);
    g_autoptr(Berth__Job) before = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(before)->resize->vcpus, 4);
    assert_int_equal(berthd_test_task(before)->resize->memory_mib, 256);
    assert_int_equal(berthd_test_task(before)->vcpus, 0);
    fake_agent_set_delay(test->agent, 0);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    event_of(test, BERTH__EVENT__KIND__GUEST_RESIZED, job);
    assert_has(test, job, 4, 256);
    assert_shown(test, job, 4, 256);
}

/* NULL: it was taken. (transfer full) */
static GError *ask_as(BerthRpcPeer *peer, guint64 job, guint32 vcpus, guint64 memory_mib)
{
    Berth__ResizeRequest request = request_of(job, vcpus, memory_mib);
    GError *error = NULL;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, &berth__jobs__descriptor, "Resize", &request.base, 30000, &error);
    return error;
}

static guint64 submit_running_as(BerthdTest *test, BerthRpcPeer *peer)
{
    Berth__JobSpec spec = spec_with_ceiling();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, &berth__jobs__descriptor, "Submit", &request.base, 30000, &error);
    assert_no_error(error);
    guint64 job = ((Berth__SubmitReply *)reply)->job;
    await_run(test, job);
    return job;
}

static void resize_is_for_its_user_and_for_operators(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    guint64 job = submit_running_as(test, alice);
    g_autoptr(GError) denied = ask_as(bob, job, 2, 0);
    assert_berth_error(denied, BERTH_ERROR_PERMISSION_DENIED, "belongs to another user");
    assert_null(fake_agent_size(test->agent, job));
    assert_null(ask_as(alice, job, 2, 0));
    event_of(test, BERTH__EVENT__KIND__GUEST_RESIZED, job);
    resize(test, job, 3, 0); /* root */
    run_until(fake_agent_size(test->agent, job)->vcpus == 3);
    assert_int_equal(event_of(test, BERTH__EVENT__KIND__GUEST_RESIZE, job)->reason,
                     BERTH__REASON__REASON_RESIZED_BY_OPERATOR);
}

static void resize_beyond_what_may_be_is_refused(void **state)
{
    static const struct {
        guint32 vcpus;
        guint64 memory_mib;
        const char *words;
    } cases[] = {
        {5, 0, "submitted for 4 at most"},
        {0, 257, "submitted for 256 MiB at most"},
        {0, 63, "64 to 16777216 MiB are allowed"},
        {1025, 0, "1 to 1024 are allowed"},
        {0, 0, "not said what"},
    };
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__ResizeRequest request = request_of(job, cases[i].vcpus, cases[i].memory_mib);
        g_autoptr(GError) error = berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor,
                                                            "Resize", &request.base);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].words);
    }
    assert_null(fake_agent_size(test->agent, job));
    Berth__JobSpec spec = spec_with_ceiling();
    spec.vcpus = 5;
    g_autoptr(GError) low = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(low, BERTH_ERROR_INVALID_ARGUMENT, "--vcpus-max");
    spec = spec_with_ceiling();
    spec.memory_mib = 300;
    g_autoptr(GError) little = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(little, BERTH_ERROR_INVALID_ARGUMENT, "--memory-max");
}

/* The guest that it is given anew has what the job reserves. */
static void size_ends_with_its_guest(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    resize(test, job, 2, 128);
    event_of(test, BERTH__EVENT__KIND__GUEST_RESIZED, job);
    assert_shown(test, job, 2, 128);
    fake_agent_crash(test->agent);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    fake_agent_heal(test->agent);
    run_until(fake_agent_runs(test->agent, job) == 2);
    assert_shown(test, job, 0, 0);
}

/* --- at its limits ------------------------------------------------------------------------------ */

static GError *extend_as(BerthRpcPeer *peer, guint64 job, guint64 limit_sec, guint64 by_sec)
{
    Berth__ExtendRequest request = BERTH__EXTEND_REQUEST__INIT;
    GError *error = NULL;
    request.job = job;
    request.time_limit_sec = limit_sec;
    request.by_sec = by_sec;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, &berth__jobs__descriptor, "Extend", &request.base, 30000, &error);
    return error;
}

static guint64 limit_of(BerthdTest *test, guint64 job)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    return record->time_limit_sec;
}

static void limit_of_what_runs_is_put_off_by_operators_only(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) root = berthd_fixture_connect_as(test->berthd, 0, 0);
    guint64 job = submit_running_as(test, alice);
    guint64 before_sec = limit_of(test, job);
    g_autoptr(GError) denied = extend_as(alice, job, 0, 60);
    assert_berth_error(denied, BERTH_ERROR_PERMISSION_DENIED, "only an operator");
    g_autoptr(GError) unsaid = extend_as(root, job, 0, 0);
    assert_berth_error(unsaid, BERTH_ERROR_INVALID_ARGUMENT, "not said for how long");
    g_autoptr(GError) too_long = extend_as(root, job, 99999ull * 86400, 0);
    assert_berth_error(too_long, BERTH_ERROR_INVALID_ARGUMENT, "at most 3660 days");
    assert_int_equal(limit_of(test, job), before_sec);
    assert_null(extend_as(root, job, 0, 60));
    assert_int_equal(limit_of(test, job), before_sec + 60);
    assert_null(extend_as(alice, job, before_sec, 0)); /* less */
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(limit_of(test, job), before_sec);
}

/* It loses half of its time for want of memory, of which next to nothing is left. */
static const Berth__Usage stalled = {.base = PROTOBUF_C_MESSAGE_INIT(&berth__usage__descriptor),
                                     .cpu_usec = 1,
                                     .memory_total_mib = 64,
                                     .memory_available_mib = 1,
                                     .psi_memory_some = 5000};

static void report_until(BerthdTest *test, guint64 job, Berth__JobState state)
{
    run_until(
        (fake_agent_report(test->agent), berthd_fixture_state_of(test->berthd, job) == state));
}

static void job_near_its_limit_is_grown(void **state)
{
    BerthdTest *test = *state;
    test->plan.usage = &stalled;
    guint64 job = submit_running(test);
    run_until(
        (fake_agent_report(test->agent), fake_agent_size(test->agent, job) != NULL &&
                                             fake_agent_size(test->agent, job)->memory_mib > 64));
    const Berth__Event *grown = event_of(test, BERTH__EVENT__KIND__GUEST_RESIZE, job);
    assert_int_equal(grown->reason, BERTH__REASON__REASON_AT_LIMIT);
    assert_string_equal(grown->user, "");
    assert_false(fake_agent_size(test->agent, job)->thaw);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(record->n_requests, 0); /* nobody asked for it */
}

static void job_that_lacks_vcpus_is_grown(void **state)
{
    BerthdTest *test = *state;
    Berth__Usage usage = stalled;
    usage.memory_available_mib = 40;
    usage.psi_memory_some = 0;
    usage.psi_cpu_some = 9000;
    usage.cpu_milli = 950;
    usage.rate_msec = 5000;
    test->plan.usage = &usage;
    guint64 job = submit_running(test);
    run_until((fake_agent_report(test->agent), fake_agent_size(test->agent, job) != NULL));
    assert_int_equal(fake_agent_size(test->agent, job)->vcpus, 2);
    assert_int_equal(fake_agent_size(test->agent, job)->memory_mib, 64);
    const Berth__Event *grown = event_of(test, BERTH__EVENT__KIND__GUEST_RESIZE, job);
    assert_int_equal(grown->reason, BERTH__REASON__REASON_AT_LIMIT);
}

static void job_at_its_limit_stands_still_or_is_ended(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    test->plan.usage = &stalled;
    guint64 frozen = berthd_fixture_submit(test->berthd, &spec);
    report_until(test, frozen, BERTH__JOB_STATE__SUSPENDED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, frozen);
    const Berth__Task *task = berthd_test_task(record);
    assert_int_equal(task->reason, BERTH__REASON__REASON_AT_LIMIT);
    assert_non_null(strstr(task->reason_text, "berth thaw"));
    spec.on_limit = BERTH__ON_LIMIT__ON_LIMIT_KILL;
    guint64 killed = berthd_fixture_submit(test->berthd, &spec);
    report_until(test, killed, BERTH__JOB_STATE__OUT_OF_MEMORY);
    g_autoptr(Berth__Job) ended = berthd_fixture_get(test->berthd, killed);
    assert_non_null(strstr(berthd_test_task(ended)->reason_text, "--on-limit=kill"));
}

static void checkpoint_at_the_time_limit_is_refused_where_storage_has_none(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.on_timeout = BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT;
    g_autoptr(GError) refused = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(refused, BERTH_ERROR_UNSUPPORTED, "--on-timeout=checkpoint");
    guint64 job = submit_running(test);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(record->spec->on_timeout, BERTH__ON_TIMEOUT__ON_TIMEOUT_KILL);
    assert_int_equal(record->spec->on_limit, BERTH__ON_LIMIT__ON_LIMIT_FREEZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(guest_is_started_with_its_ceiling, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(resize_gives_a_guest_more_and_says_so, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(resize_that_comes_half_way_is_told_and_counted, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(
            resize_that_a_guest_does_not_go_along_with_is_told_with_its_reason, setup,
            berthd_test_teardown),
        cmocka_unit_test_setup_teardown(resize_whose_answer_is_lost_is_asked_for_again, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(size_is_known_to_a_berthd_that_was_killed, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(resize_that_was_open_is_asked_for_again_by_the_next_berthd,
                                        setup, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(resize_is_for_its_user_and_for_operators, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(resize_beyond_what_may_be_is_refused, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(size_ends_with_its_guest, setup, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(limit_of_what_runs_is_put_off_by_operators_only, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(job_near_its_limit_is_grown, setup, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(job_that_lacks_vcpus_is_grown, setup_hasty,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(job_at_its_limit_stands_still_or_is_ended, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(
            checkpoint_at_the_time_limit_is_refused_where_storage_has_none, setup,
            berthd_test_teardown),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
