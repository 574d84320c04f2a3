/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes can do to a real berthd: come, go, come twice, lie, and speak nonsense. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#include <gio/gunixsocketaddress.h>

static int setup_impatient(void **state)
{
    return berthd_test_setup_with(state, "node_timeout = 1s\n");
}

static Berth__Node *get_node(BerthdTest *test, const char *name)
{
    Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
    request.name = (char *)name;
    return berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Get", &request.base);
}

/* By name: one of each, after SKIP guests. */
static Berth__TopReply *get_top(BerthdTest *test, guint32 skip)
{
    Berth__TopRequest request = BERTH__TOP_REQUEST__INIT;
    request.node_limit = request.guest_limit = 1;
    request.guest_skip = skip;
    return berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Top", &request.base);
}

static void wait_running(BerthdTest *test, guint64 job)
{
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
}

/* --- coming and going -------------------------------------------------------------------------- */

static void node_shows_what_runs_on_it(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, job);
    Berth__Node *node = get_node(test, "n1");
    assert_int_equal(node->state, BERTH__NODE_STATE__NODE_UP);
    assert_int_equal(node->guests, 1);
    assert_int_equal(node->vcpus_reserved, 1);
    assert_int_equal(node->info->vcpus, 64);
    berth_message_free(&node->base);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

static void connection_lost_job_runs_on(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, job);
    fake_agent_drop(test->agent);
    run_until(fake_agent_is_joined(test->agent));
    assert_true(fake_agent_end(test->agent, job, 7));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__FAILED);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->exit->status, 7);
    assert_int_equal(berthd_test_task(record)->epoch, 1);
}

/* Whether or not the ranking is that of before. */
static void top_shows_no_guest_that_has_gone_since_it_looked(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 goes = berthd_fixture_submit_plain(test->berthd);
    guint64 stays = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, goes);
    wait_running(test, stays);
    Berth__TopReply *both = get_top(test, 0);
    assert_int_equal(both->guests_total, 2);
    assert_int_equal(both->n_nodes, 1);
    assert_int_equal(both->n_guests, 1);
    assert_int_equal(both->guests[0]->task->job, goes);
    assert_string_equal(both->guests[0]->task->node, "n1");
    berth_message_free(&both->base);
    assert_true(fake_agent_end(test->agent, goes, 0));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, goes);
    Berth__TopReply *one = get_top(test, 0);
    assert_int_equal(one->n_guests, 1);
    assert_int_equal(one->guests[0]->task->job, stays);
    berth_message_free(&one->base);
    Berth__TopReply *none = get_top(test, 2);
    assert_int_equal(none->n_guests, 0);
    berth_message_free(&none->base);
}

/* Who waits for it to run reads the event log. */
static void guest_that_runs_when_its_node_joins_again_is_said_to_run(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .boot_msec = 300};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    run_until(fake_agent_start(test->agent, job) != NULL);
    fake_agent_cut(test->agent);
    run_until(fake_agent_runs(test->agent, job) == 1);
    fake_agent_heal(test->agent);
    run_until(fake_agent_is_joined(test->agent));
    wait_running(test, job);
    assert_int_equal(fake_agent_n_strays(test->agent), 0);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

/* Whether the node has taken the guest on is unknown then: only the node can tell. */
static void connection_lost_before_the_answer_start_goes_on(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .boot_msec = 300};
    fake_agent_set_delay(test->agent, 60000);
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    run_until(fake_agent_start(test->agent, job) != NULL);
    fake_agent_drop(test->agent);
    fake_agent_set_delay(test->agent, 0);
    run_until(fake_agent_is_joined(test->agent) && fake_agent_runs(test->agent, job) > 0);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->epoch, 1);
}

static void command_ends_while_cut_off_counts_after_join(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, job);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    assert_true(fake_agent_end(test->agent, job, 0));
    fake_agent_heal(test->agent);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
}

static void guest_vanished_is_requeued(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, job);
    test->plan = (FakePlan){.out = "second\n"};
    fake_agent_crash(test->agent);
    fake_agent_drop(test->agent);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->requeues, 1);
    assert_int_equal(berthd_test_task(record)->epoch, 2);
    g_autofree char *out = berthd_fixture_logs(test->berthd, job, FALSE, FALSE);
    assert_string_equal(out, "second\n");
}

/* The node had it, and nobody knows whether its command ran. */
static void guest_lost_before_it_was_heard_of_is_not_run_again(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .boot_msec = 3600000};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.no_requeue = TRUE;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    run_until(fake_agent_start(test->agent, job) != NULL);
    /* The answer to what is said after the answer to StartGuest comes after its commit. */
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    status.id = fake_agent_start(test->agent, job)->id;
    status.phase = BERTH__GUEST_STATUS__PHASE__STARTING;
    fake_agent_say(test->agent, &status);
    run_until(fake_agent_n_answers(test->agent) > 0);
    fake_agent_cut(test->agent);
    berthd_fixture_kill(test->berthd);
    fake_agent_crash(test->agent);
    berthd_fixture_restart(test->berthd);
    fake_agent_heal(test->agent);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__NODE_FAIL);
}

/* A directory cannot cut a node off, so that nobody knows whether the guest still runs: the job is
 * not started elsewhere, and what the node still has when it is back is removed. */
static void node_lost_without_fence_ends_the_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, job);
    FakePlan second = {0};
    FakeAgent *other = berthd_fixture_add_agent(test->berthd, "n2", berthd_test_plan, &second);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__NODE_FAIL);
    assert_int_equal(fake_agent_n_guests(test->agent), 1);
    fake_agent_heal(test->agent);
    run_until(fake_agent_n_guests(test->agent) == 0);
    assert_int_equal(fake_agent_runs(other, job), 0);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->reason, BERTH__REASON__REASON_NODE_LOST);
}

static void second_session_replaces_the_first(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, job);
    /* As if the agent were started again before its first connection was found dead: the new one
     * has no guest, so that the job's is gone. */
    FakePlan plan = {0};
    FakeAgent *again = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &plan);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(again, job), 1);
}

static void changes_sent_often_count_once(void **state)
{
    BerthdTest *test = *state;
    fake_agent_set_repeats(test->agent, 5);
    guint64 numbers[10];
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        numbers[i] = berthd_fixture_submit_plain(test->berthd);
    }
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        berthd_fixture_wait_state(test->berthd, numbers[i], BERTH__JOB_STATE__COMPLETED);
        assert_int_equal(fake_agent_runs(test->agent, numbers[i]), 1);
    }
    guint n_exits = 0;
    GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        n_exits += event->kind == BERTH__EVENT__KIND__GUEST_EXITED;
    }
    assert_int_equal(n_exits, G_N_ELEMENTS(numbers));
}

static void slow_answers_change_nothing(void **state)
{
    BerthdTest *test = *state;
    fake_agent_set_delay(test->agent, 300);
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
}

/* --- lies -------------------------------------------------------------------------------------- */

static void stray_guest_is_released_and_changes_nothing(void **state)
{
    BerthdTest *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    id.job = job;
    id.epoch = 99;
    exit.status = 9;
    status.id = &id;
    status.exit = &exit;
    status.phase = BERTH__GUEST_STATUS__PHASE__ENDED;
    guint answers = fake_agent_n_answers(test->agent);
    guint kept = fake_agent_n_kept(test->agent);
    assert_true(kept > 0);
    fake_agent_say(test->agent, &status);
    run_until(fake_agent_n_answers(test->agent) == answers + 1);
    assert_int_equal(fake_agent_n_kept(test->agent), kept);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(record->state, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(berthd_test_task(record)->epoch, 1);
}

static void node_speaking_for_another_changes_nothing(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    wait_running(test, job);
    FakePlan plan = {0};
    FakeAgent *liar = berthd_fixture_add_agent(test->berthd, "n2", berthd_test_plan, &plan);
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    id.job = job;
    id.epoch = 1;
    status.id = &id;
    status.phase = BERTH__GUEST_STATUS__PHASE__GONE;
    fake_agent_say(liar, &status);
    run_until(fake_agent_n_answers(liar) == 1);
    assert_int_equal(fake_agent_n_kept(liar), 0);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(record->state, BERTH__JOB_STATE__RUNNING);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

typedef struct {
    const char *name; /* in the certificate */
    const char *claims;
    gboolean is_foreign; /* signed by another CA than berthd's, while berthd's own is trusted */
    BerthErrorCode code;
    const char *text; /* in the node's own error */
} BadNode;

static const BadNode bad_nodes[] = {
    {"n7", "n1", FALSE, BERTH_ERROR_PERMISSION_DENIED, "was issued for \"n7\""},
    {"n8", NULL, TRUE, BERTH_ERROR_UNAVAILABLE, "if it refused this side's certificate"},
};

/* A file with berthd's CA and the other one: whoever trusts both finds its own certificate good, and
 * berthd's, so that only berthd can refuse. (transfer full) */
static char *both_authorities(BerthdTest *test)
{
    const char *dir = berthd_fixture_dir(test->berthd);
    g_autofree char *foreign = g_build_filename(dir, "foreign-ca.pem", NULL);
    g_autofree char *own_text = NULL;
    g_autofree char *foreign_text = NULL;
    assert_true(g_file_get_contents(berthd_fixture_ca(test->berthd), &own_text, NULL, NULL));
    assert_true(g_file_get_contents(foreign, &foreign_text, NULL, NULL));
    g_autofree char *both = g_strconcat(own_text, foreign_text, NULL);
    char *path = g_build_filename(dir, "both-ca.pem", NULL);
    assert_true(g_file_set_contents(path, both, -1, NULL));
    return path;
}

static void wrong_certificate_does_not_join(void **state)
{
    BerthdTest *test = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(bad_nodes); i++) {
        g_autofree char *certificate = NULL;
        g_autofree char *key = NULL;
        berthd_fixture_certificate(test->berthd, bad_nodes[i].name, bad_nodes[i].is_foreign,
                                   &certificate, &key);
        g_autofree char *authorities = bad_nodes[i].is_foreign ? both_authorities(test) : NULL;
        FakeAgentConfig config = {
            .name = bad_nodes[i].name,
            .claims = bad_nodes[i].claims,
            .port = berthd_fixture_port(test->berthd),
            .certificate = certificate,
            .key = key,
            .ca = authorities ? authorities : berthd_fixture_ca(test->berthd),
        };
        FakeAgent *agent = fake_agent_new(&config);
        run_until(fake_agent_error(agent));
        assert_false(fake_agent_is_joined(agent));
        assert_berth_error(fake_agent_error(agent), bad_nodes[i].code, bad_nodes[i].text);
        fake_agent_free(agent);
    }
    assert_true(fake_agent_is_joined(test->agent)); /* n1 is still who it was */
}

/* --- nonsense ---------------------------------------------------------------------------------- */

static GSocketConnection *dial(BerthdTest *test, gboolean is_unix)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GSocketConnectable) address =
        is_unix
            ? G_SOCKET_CONNECTABLE(g_unix_socket_address_new(berthd_fixture_socket(test->berthd)))
            : g_network_address_new("127.0.0.1", berthd_fixture_port(test->berthd));
    GSocketConnection *connection = g_socket_client_connect(client, address, NULL, &error);
    assert_no_error(error);
    g_socket_set_timeout(g_socket_connection_get_socket(connection), 30);
    return connection;
}

/* Writes what berthd takes and reads until it hangs up. */
static void expect_hang_up(GSocketConnection *connection, const void *data, gsize length)
{
    char answer[4096];
    gssize got = 0;
    g_autoptr(GError) error = NULL;
    GOutputStream *out = g_io_stream_get_output_stream(G_IO_STREAM(connection));
    GInputStream *in = g_io_stream_get_input_stream(G_IO_STREAM(connection));
    g_output_stream_write_all(out, data, length, NULL, NULL, NULL);
    do {
        got = g_input_stream_read(in, answer, sizeof answer, NULL, &error);
    } while (got > 0);
    assert_false(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT));
}

static void garbage_ends_only_its_connection(void **state)
{
    BerthdTest *test = *state;
    g_autofree guint8 *garbage = g_malloc(100000);
    for (guint i = 0; i < 100000; i++) {
        garbage[i] = (guint8)(i * 31 + 7);
    }
    static const guint8 huge[] = {0xff, 0xff, 0xff, 0xff, 1, 2, 3};
    for (guint is_unix = 0; is_unix < 2; is_unix++) {
        g_autoptr(GSocketConnection) first = dial(test, is_unix);
        expect_hang_up(first, garbage, 100000);
        g_autoptr(GSocketConnection) second = dial(test, is_unix);
        expect_hang_up(second, huge, sizeof huge);
        g_autoptr(GSocketConnection) silent = dial(test, is_unix); /* and stays so */
        guint64 job = berthd_fixture_submit_plain(test->berthd);
        berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    }
}

static void oversized_request_is_refused(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *name = g_strnfill(8u << 20, 'x');
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.name = name;
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    g_autoptr(GError) error = NULL;
    BerthRpcLimits generous = BERTH_RPC_LIMITS_DEFAULT;
    generous.max_frame_bytes = 64u << 20;
    g_autoptr(BerthRpcPeer) peer =
        berth_rpc_connect_unix(berthd_fixture_socket(test->berthd), &generous, &error);
    assert_no_error(error);
    ProtobufCMessage *reply =
        berth_rpc_peer_call(peer, &berth__jobs__descriptor, "Submit", &request.base, 30000, &error);
    assert_null(reply);
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "connection"); /* berthd cut it */
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

/* --- nodes that cannot start guests ------------------------------------------------------------- */

static int setup_quick_retry(void **state)
{
    return berthd_test_setup_with(state, "[guests]\nstart_backoff = 1s\n");
}

static void assert_closed(BerthdTest *test, const char *name, const char *text)
{
    Berth__Node *node = get_node(test, name);
    assert_int_equal(node->state, BERTH__NODE_STATE__NODE_UP);
    if (strstr(node->closed_reason, text) == NULL) {
        fail_msg("no \"%s\" in: %s", text, node->closed_reason);
    }
    berth_message_free(&node->base);
}

static void node_with_a_fault_fails_no_job_and_is_closed(void **state)
{
    BerthdTest *test = *state;
    FakePlan good = {0};
    berthd_fixture_add_agent(test->berthd, "n2", berthd_test_plan, &good);
    test->plan = (FakePlan){.refuse = BERTH__START_GUEST_REPLY__FAULT__NODE};
    guint64 jobs[6];
    for (gsize i = 0; i < G_N_ELEMENTS(jobs); i++) {
        jobs[i] = berthd_fixture_submit_plain(test->berthd);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(jobs); i++) {
        berthd_fixture_wait_state(test->berthd, jobs[i], BERTH__JOB_STATE__COMPLETED);
    }
    assert_closed(test, "n1", "the fake node refuses");
    Berth__Node *node = get_node(test, "n2");
    assert_string_equal(node->closed_reason, "");
    berth_message_free(&node->base);
}

static gboolean any_event_has(BerthdTest *test, guint64 job, Berth__Reason reason)
{
    GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        if (event->job == job && event->kind == BERTH__EVENT__KIND__TASK_STATE &&
            event->reason == reason) {
            return TRUE;
        }
    }
    return FALSE;
}

static void node_without_storage_is_avoided_and_is_no_outage(void **state)
{
    BerthdTest *test = *state;
    FakePlan good = {0};
    berthd_fixture_add_agent(test->berthd, "n2", berthd_test_plan, &good);
    test->plan = (FakePlan){.refuse = BERTH__START_GUEST_REPLY__FAULT__STORAGE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_true(any_event_has(test, job, BERTH__REASON__REASON_STARTING_LATER));
    assert_false(any_event_has(test, job, BERTH__REASON__REASON_STORAGE_UNAVAILABLE));
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_string_equal(berthd_test_task(record)->node, "n2");
}

static void node_that_cannot_start_gets_nothing_until_it_can(void **state)
{
    BerthdTest *test = *state;
    fake_agent_set_cannot_start(test->agent, "libvirt is away");
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_CHANGED, 0);
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->reason, BERTH__REASON__REASON_NODE_UNAVAILABLE);
    assert_closed(test, "n1", "libvirt is away");
    /* Its word outlives berthd, and its own sessions. */
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_closed(test, "n1", "libvirt is away");
    assert_null(fake_agent_start(test->agent, job));
    fake_agent_set_cannot_start(test->agent, "");
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

/* Names of a page of LIMIT nodes after AFTER, and whether more follow. */
static void assert_page(BerthdTest *test, const char *after, guint32 limit, const char *names,
                        const char *next)
{
    Berth__ListNodesRequest request = BERTH__LIST_NODES_REQUEST__INIT;
    request.after = (char *)after;
    request.limit = limit;
    Berth__ListNodesReply *reply =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "List", &request.base);
    g_autoptr(GString) got = g_string_new(NULL);
    for (gsize i = 0; i < reply->n_nodes; i++) {
        g_string_append_printf(got, "%s ", reply->nodes[i]->info->name);
    }
    assert_string_equal(got->str, names);
    assert_string_equal(reply->next_after, next);
    berth_message_free(&reply->base);
}

static void list_of_nodes_comes_in_pages(void **state)
{
    BerthdTest *test = *state; /* has n1 */
    berthd_fixture_add_agent(test->berthd, "n3", NULL, NULL);
    berthd_fixture_add_agent(test->berthd, "n2", NULL, NULL);
    assert_page(test, "", 0, "n1 n2 n3 ", "");
    assert_page(test, "", 2, "n1 n2 ", "n2");
    assert_page(test, "n2", 2, "n3 ", "");
    assert_page(test, "", 3, "n1 n2 n3 ", "");
    assert_page(test, "n3", 2, "", "");
    assert_page(test, "n0", 1, "n1 ", "n1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(node_shows_what_runs_on_it),
        BERTHD_TEST(top_shows_no_guest_that_has_gone_since_it_looked),
        BERTHD_TEST(connection_lost_job_runs_on),
        BERTHD_TEST(guest_that_runs_when_its_node_joins_again_is_said_to_run),
        BERTHD_TEST(connection_lost_before_the_answer_start_goes_on),
        BERTHD_TEST(command_ends_while_cut_off_counts_after_join),
        BERTHD_TEST(guest_vanished_is_requeued),
        BERTHD_TEST(guest_lost_before_it_was_heard_of_is_not_run_again),
        cmocka_unit_test_setup_teardown(node_lost_without_fence_ends_the_job, setup_impatient,
                                        berthd_test_teardown),
        BERTHD_TEST(second_session_replaces_the_first),
        BERTHD_TEST(changes_sent_often_count_once),
        BERTHD_TEST(slow_answers_change_nothing),
        BERTHD_TEST(stray_guest_is_released_and_changes_nothing),
        BERTHD_TEST(node_speaking_for_another_changes_nothing),
        BERTHD_TEST(wrong_certificate_does_not_join),
        BERTHD_TEST(garbage_ends_only_its_connection),
        BERTHD_TEST(oversized_request_is_refused),
        cmocka_unit_test_setup_teardown(node_with_a_fault_fails_no_job_and_is_closed,
                                        setup_quick_retry, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(node_without_storage_is_avoided_and_is_no_outage,
                                        setup_quick_retry, berthd_test_teardown),
        BERTHD_TEST(node_that_cannot_start_gets_nothing_until_it_can),
        BERTHD_TEST(list_of_nodes_comes_in_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
