/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in guests, as berthd passes them on: who may, what the event log says, and what becomes of them when
 * one of the three goes away. */
#include "config.h"

#include "tests/lib/berthd_test.h"

#include "common/exec.h"

#define ALICE    12345u
#define BOB      12346u
#define NO_GROUP 65534u

/* A client's side of one command. */
typedef struct {
    guint64 id;
    GString *text;
    guint32 status;
    gboolean has_exit;
    gboolean is_over;
    GError *error;
} Run;

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

static void run_free(Run *run)
{
    g_string_free(run->text, TRUE);
    g_clear_error(&run->error);
    g_free(run);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Run, run_free)

static gboolean on_item(const ProtobufCMessage *message, gpointer user_data)
{
    const Berth__ExecOutput *item = (const Berth__ExecOutput *)(const void *)message;
    Run *run = user_data;
    if (item->body_case == BERTH__EXEC_OUTPUT__BODY_EXEC) {
        run->id = item->exec;
    } else if (item->body_case == BERTH__EXEC_OUTPUT__BODY_DATA) {
        g_string_append_len(run->text, (const char *)item->data->data.data,
                            (gssize)item->data->data.len);
    } else if (item->body_case == BERTH__EXEC_OUTPUT__BODY_EXIT) {
        run->has_exit = TRUE;
        run->status = item->exit->status;
    }
    return TRUE;
}

static void on_over(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *run = user_data;
    berth_rpc_peer_stream_finish(result, &run->error);
    run->is_over = TRUE;
}

static Run *ask(BerthRpcPeer *peer, guint64 job, guint32 task, guint32 guest)
{
    static char *command[] = {(char *)"echo", (char *)"two words"};
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__ExecRequest request = BERTH__EXEC_REQUEST__INIT;
    Run *run = g_new0(Run, 1);
    run->text = g_string_new(NULL);
    id.job = job;
    id.task = task;
    id.guest = guest;
    request.guest = &id;
    request.command = command;
    request.n_command = G_N_ELEMENTS(command);
    berth_rpc_peer_stream_async(peer, &berth__execs__descriptor, "Run", &request.base, 0, NULL,
                                on_item, on_over, run);
    return run;
}

static Run *refused(BerthRpcPeer *peer, guint64 job)
{
    Run *run = ask(peer, job, 0, 0);
    run_until(run->is_over);
    assert_int_equal(run->id, 0);
    return run;
}

static Run *begin(BerthdTest *test, guint64 job)
{
    Run *run = ask(berthd_fixture_client(test->berthd), job, 0, 0);
    run_until(run->id != 0 || run->is_over);
    assert_no_error(run->error);
    return run;
}

static guint64 submit_running(BerthdTest *test)
{
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

/* The newest event of KIND, which there must be COUNT of. */
static const Berth__Event *event_of(BerthdTest *test, Berth__Event__Kind kind, guint count)
{
    const Berth__Event *found = NULL;
    guint n = 0;
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        if (event->kind == kind) {
            found = event;
            n++;
        }
    }
    return n == count ? found : NULL;
}

static const Berth__Event *wait_ended(BerthdTest *test, guint count)
{
    run_until(event_of(test, BERTH__EVENT__KIND__EXEC_ENDED, count) != NULL);
    return event_of(test, BERTH__EVENT__KIND__EXEC_ENDED, count);
}

static void exec_is_passed_on_and_in_the_event_log(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    g_autoptr(Run) run = begin(test, job);
    const Berth__Event *begun = event_of(test, BERTH__EVENT__KIND__EXEC_BEGUN, 1);
    assert_non_null(begun); /* before the node was asked */
    assert_int_equal(begun->job, job);
    assert_int_equal(begun->exec, run->id);
    assert_string_equal(begun->user, "root");
    assert_string_equal(begun->node, "n1");
    assert_string_equal(begun->text, "echo 'two words'");
    const Berth__ExecRequest *asked = fake_agent_exec(test->agent);
    assert_int_equal(asked->guest->job, job);
    assert_int_equal(asked->guest->epoch, 1);
    assert_string_equal(asked->command[1], "two words");
    fake_agent_exec_say(test->agent, FALSE, 0, "said", 4);
    fake_agent_exec_end(test->agent, 3, "");
    run_until(run->is_over);
    assert_no_error(run->error);
    assert_string_equal(run->text->str, "said");
    assert_true(run->has_exit);
    assert_int_equal(run->status, 3);
    const Berth__Event *ended = wait_ended(test, 1);
    assert_int_equal(ended->exec, begun->exec);
    assert_string_equal(ended->text, "ended with status 3");
}

static void exec_is_for_owners_and_operators(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    guint64 job = submit_running(test); /* root's */
    g_autoptr(Run) others = refused(alice, job);
    assert_berth_error(others->error, BERTH_ERROR_PERMISSION_DENIED, "another user");
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest submit = BERTH__SUBMIT_REQUEST__INIT;
    submit.spec = &spec;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(alice, &berth__jobs__descriptor, "Submit", &submit.base, 0, &error);
    assert_no_error(error);
    guint64 own = ((Berth__SubmitReply *)(void *)reply)->job;
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, own);
    g_autoptr(Run) bobs = refused(bob, own);
    assert_berth_error(bobs->error, BERTH_ERROR_PERMISSION_DENIED, "another user");
    g_autoptr(Run) hers = ask(alice, own, 0, 0);
    run_until(hers->id != 0);
    fake_agent_exec_end(test->agent, 0, "");
    run_until(hers->is_over);
    assert_no_error(hers->error);
    g_autoptr(Run) roots = begin(test, own);
    fake_agent_exec_end(test->agent, 0, "");
    run_until(roots->is_over);
    assert_non_null(wait_ended(test, 2));
    const Berth__Event *refusal = event_of(test, BERTH__EVENT__KIND__REQUEST_REFUSED, 2);
    assert_int_equal(refusal->wanted, BERTH__EVENT__KIND__EXEC_BEGUN);
    assert_int_equal(refusal->job, own);
    assert_string_equal(refusal->user, "12346");
    assert_string_equal(refusal->text, "echo 'two words'");
}

/* Of the tasks 0 and 1. */
static guint64 submit_held_array(BerthdTest *test)
{
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT, *ranges[] = {&range};
    Berth__JobSpec spec = berthd_fixture_spec();
    range.last = 1;
    array.tasks = ranges;
    array.n_tasks = 1;
    spec.array = &array;
    spec.hold = TRUE;
    return berthd_fixture_submit(test->berthd, &spec);
}

static void exec_where_none_can_run_says_why(void **state)
{
    BerthdTest *test = *state;
    BerthRpcPeer *client = berthd_fixture_client(test->berthd);
    guint64 job = submit_running(test);
    g_autoptr(Run) unknown = refused(client, 999);
    assert_berth_error(unknown->error, BERTH_ERROR_NOT_FOUND,
                       "job 999 does not run: it has ended, or there is none");
    g_autoptr(Run) no_task = ask(client, job, 1, 0);
    run_until(no_task->is_over);
    assert_berth_error(no_task->error, BERTH_ERROR_INVALID_ARGUMENT, "is no array");
    g_autoptr(Run) no_guest = ask(client, job, 0, 1);
    run_until(no_guest->is_over);
    assert_berth_error(no_guest->error, BERTH_ERROR_NOT_FOUND, "no guest 1");
    Berth__FreezeRequest freeze = BERTH__FREEZE_REQUEST__INIT;
    freeze.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Freeze", &freeze.base);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__SUSPENDED);
    g_autoptr(Run) frozen = refused(client, job);
    assert_berth_error(frozen->error, BERTH_ERROR_FAILED_PRECONDITION, "berth thaw");
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    g_autoptr(Run) held = refused(client, berthd_fixture_submit(test->berthd, &spec));
    assert_berth_error(held->error, BERTH_ERROR_FAILED_PRECONDITION, "does not run");
    g_autoptr(Run) unstarted = ask(client, submit_held_array(test), 1, 0);
    run_until(unstarted->is_over);
    assert_berth_error(unstarted->error, BERTH_ERROR_NOT_FOUND,
                       "[1] does not run: it has not started, has ended, or there is none");
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    g_autoptr(Run) cut = refused(client, job);
    assert_non_null(cut->error);
}

static GError *send_input(BerthRpcPeer *peer, guint64 id, const char *text, guint64 read)
{
    Berth__ExecInputRequest request = BERTH__EXEC_INPUT_REQUEST__INIT;
    GError *error = NULL;
    request.exec = id;
    request.data = (ProtobufCBinaryData){strlen(text), (guint8 *)text};
    request.end = *text != '\0';
    request.signal = 10;
    request.stdout_bytes = read;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, &berth__execs__descriptor, "Input", &request.base, 0, &error);
    return error;
}

static void input_is_passed_on_from_the_same_connection_only(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) other = berthd_fixture_connect_as(test->berthd, 0, 0);
    g_autoptr(Run) run = begin(test, submit_running(test));
    g_autoptr(GError) foreign = send_input(other, run->id, "evil", 0);
    assert_berth_error(foreign, BERTH_ERROR_NOT_FOUND, "another connection");
    g_autoptr(GError) own = send_input(berthd_fixture_client(test->berthd), run->id, "good", 0);
    assert_no_error(own);
    const FakeExecs *execs = fake_agent_execs(test->agent);
    assert_string_equal(execs->input->str, "good");
    assert_true(execs->input_has_ended);
    assert_int_equal(execs->signal, 10);
    fake_agent_exec_end(test->agent, 0, "");
    run_until(run->is_over);
    g_autoptr(GError) late = send_input(berthd_fixture_client(test->berthd), run->id, "late", 0);
    assert_berth_error(late, BERTH_ERROR_NOT_FOUND, "has ended");
}

static void client_that_goes_away_ends_it(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    BerthRpcPeer *other = berthd_fixture_connect_as(test->berthd, 0, 0);
    g_autoptr(Run) run = ask(other, job, 0, 0);
    run_until(run->id != 0);
    berth_rpc_peer_close(other, TRUE);
    run_until(fake_agent_execs(test->agent)->n_cancelled == 1);
    assert_non_null(strstr(wait_ended(test, 1)->text, "left by who ran it"));
    run_until(run->is_over);
    berth_rpc_peer_unref(other);
}

static void agent_that_goes_away_ends_it(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(Run) run = begin(test, submit_running(test));
    fake_agent_drop(test->agent);
    run_until(run->is_over);
    assert_berth_error(run->error, BERTH_ERROR_UNAVAILABLE, "connection to node n1 was lost");
    assert_non_null(strstr(wait_ended(test, 1)->text, "connection to node n1 was lost"));
}

static void berthd_that_ends_ends_it(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(Run) run = begin(test, submit_running(test));
    berthd_fixture_kill(test->berthd);
    run_until(run->is_over);
    assert_int_equal(run->error->code, BERTH_ERROR_UNAVAILABLE);
    run_until(fake_agent_execs(test->agent)->n_cancelled == 1);
}

static void berthd_that_is_told_to_end_ends_it_and_itself(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(Run) run = begin(test, submit_running(test));
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    run_until(run->is_over);
    assert_non_null(run->error);
    run_until(fake_agent_execs(test->agent)->n_cancelled == 1);
}

static Run *ask_node(BerthRpcPeer *peer, const char *name)
{
    static char *command[] = {(char *)"reboot"};
    Berth__ExecRequest request = BERTH__EXEC_REQUEST__INIT;
    Run *run = g_new0(Run, 1);
    run->text = g_string_new(NULL);
    request.node = (char *)name;
    request.command = command;
    request.n_command = 1;
    berth_rpc_peer_stream_async(peer, &berth__execs__descriptor, "Run", &request.base, 0, NULL,
                                on_item, on_over, run);
    run_until(run->id != 0 || run->is_over);
    return run;
}

/* The text of the newest event of KIND as PEER sees it (transfer full). */
static gboolean keep_text(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)(const void *)item;
    char **text = user_data;
    if (event->kind == BERTH__EVENT__KIND__EXEC_BEGUN) {
        g_free(*text);
        *text = g_strdup(event->text);
    }
    return TRUE;
}

static char *begun_as_seen_by(BerthRpcPeer *peer, guint64 until)
{
    char *text = NULL;
    g_autoptr(GError) error = NULL;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.until_seq = until;
    berth_rpc_peer_stream(peer, &berth__jobs__descriptor, "Watch", &request.base, 0, keep_text,
                          &text, &error);
    assert_no_error(error);
    return text;
}

static void commands_on_nodes_are_for_operators(void **state)
{
    BerthdTest *test = *state;
    BerthRpcPeer *client = berthd_fixture_client(test->berthd);
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(Run) hers = ask_node(alice, "n1");
    assert_berth_error(hers->error, BERTH_ERROR_PERMISSION_DENIED, "only operators");
    g_autoptr(Run) nowhere = ask_node(client, "n99");
    assert_berth_error(nowhere->error, BERTH_ERROR_NOT_FOUND, "n99");
    g_autoptr(Run) run = ask_node(client, "n1");
    assert_no_error(run->error);
    const Berth__ExecRequest *asked = fake_agent_exec(test->agent);
    assert_null(asked->guest);
    assert_string_equal(asked->node, "n1");
    const Berth__Event *begun = event_of(test, BERTH__EVENT__KIND__EXEC_BEGUN, 1);
    assert_non_null(begun);
    assert_int_equal(begun->job, 0);
    assert_string_equal(begun->node, "n1");
    assert_string_equal(begun->user, "root");
    g_autofree char *to_root = begun_as_seen_by(client, begun->seq);
    assert_string_equal(to_root, "reboot");
    g_autofree char *to_alice = begun_as_seen_by(alice, begun->seq);
    assert_string_equal(to_alice, "");
    fake_agent_exec_end(test->agent, 0, "");
    run_until(run->is_over);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    g_autoptr(Run) cut = ask_node(client, "n1");
    assert_berth_error(cut->error, BERTH_ERROR_UNAVAILABLE, "not connected");
}

static void output_beyond_the_window_ends_it(void **state)
{
    static const guint8 zeroes[BERTH_EXEC_WINDOW_BYTES];
    BerthdTest *test = *state;
    g_autoptr(Run) run = begin(test, submit_running(test));
    fake_agent_exec_say(test->agent, FALSE, 0, zeroes, sizeof zeroes);
    run_until(run->text->len == sizeof zeroes);
    g_autoptr(GError) acked =
        send_input(berthd_fixture_client(test->berthd), run->id, "", sizeof zeroes);
    assert_no_error(acked);
    assert_int_equal(fake_agent_execs(test->agent)->acked, sizeof zeroes);
    fake_agent_exec_say(test->agent, FALSE, sizeof zeroes, zeroes, sizeof zeroes);
    run_until(run->text->len == 2 * sizeof zeroes);
    fake_agent_exec_say(test->agent, FALSE, 2 * sizeof zeroes, zeroes, 1);
    run_until(run->is_over);
    assert_berth_error(run->error, BERTH_ERROR_PROTOCOL, "more of its output");
    run_until(fake_agent_execs(test->agent)->n_cancelled == 1);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, berthd_test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(exec_is_passed_on_and_in_the_event_log),
        TEST(exec_is_for_owners_and_operators),
        TEST(exec_where_none_can_run_says_why),
        TEST(input_is_passed_on_from_the_same_connection_only),
        TEST(client_that_goes_away_ends_it),
        TEST(agent_that_goes_away_ends_it),
        TEST(berthd_that_ends_ends_it),
        TEST(output_beyond_the_window_ends_it),
        TEST(berthd_that_is_told_to_end_ends_it_and_itself),
        TEST(commands_on_nodes_are_for_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
