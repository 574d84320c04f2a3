/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that operators cordon and drain: who may, what is told to whom, and what outlives a kill. And the
 * command that follows a drain. */
#include "config.h"

#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include "scheduler/daemon/pb.h"

#include <signal.h>

#define ALICE    12345u
#define NO_GROUP 65534u

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

static Berth__ChangeNodesRequest request_for(char **names, const char *reason)
{
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    request.names = names;
    request.n_names = g_strv_length(names);
    request.reason = (char *)reason;
    return request;
}

static void change(BerthdTest *test, const char *method, const char *name, const char *reason)
{
    char *names[] = {(char *)name, NULL};
    Berth__ChangeNodesRequest request = request_for(names, reason);
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, method, &request.base);
}

/* To be freed with berth_message_free(). */
static Berth__Node *get_node(BerthdTest *test, const char *name)
{
    Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
    request.name = (char *)name;
    return berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Get", &request.base);
}

static void assert_admission(BerthdTest *test, Berth__NodeAdmission__Kind kind, const char *reason,
                             gboolean is_empty)
{
    Berth__Node *node = get_node(test, "n1");
    assert_non_null(node->admission);
    assert_int_equal(node->admission->kind, kind);
    assert_string_equal(node->admission->reason, reason);
    assert_string_equal(node->admission->user, "root");
    assert_true(node->admission->since_usec > 0);
    assert_int_equal(node->admission->empty_usec != 0, is_empty);
    berth_message_free(&node->base);
}

static void assert_open(BerthdTest *test)
{
    Berth__Node *node = get_node(test, "n1");
    assert_null(node->admission);
    assert_string_equal(node->closed_reason, "");
    berth_message_free(&node->base);
}

/* What it has of before may still be on its way out. */
static void assert_admitted(BerthdTest *test)
{
    Berth__Node *node = get_node(test, "n1");
    assert_null(node->admission);
    assert_int_equal(node->state, BERTH__NODE_STATE__NODE_UP);
    berth_message_free(&node->base);
}

static const Berth__Event *newest(BerthdTest *test, Berth__Event__Kind kind)
{
    berthd_fixture_wait_event(test->berthd, kind, 0);
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = events->len; i > 0; i--) {
        const Berth__Event *event = g_ptr_array_index(events, i - 1);
        if (event->kind == kind)
            return event;
    }
    return NULL;
}

static guint count(BerthdTest *test, Berth__Event__Kind kind)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    guint n = 0;
    for (guint i = 0; i < events->len; i++)
        n += ((const Berth__Event *)g_ptr_array_index(events, i))->kind == kind;
    return n;
}

static guint64 submit_running(BerthdTest *test)
{
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__RUNNING);
    run_until(fake_agent_runs(test->agent, job) == 1);
    return job;
}

static gboolean waits_for(BerthdTest *test, guint64 job, Berth__Reason reason)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(record->state, BERTH__JOB_STATE__PENDING);
    return berthd_test_task(record)->reason == reason;
}

/* A berthd that has just begun may not have heard from storage yet, which is the first reason then. */
static void assert_waits_for_a_node(BerthdTest *test, guint64 job)
{
    run_until(!waits_for(test, job, BERTH__REASON__REASON_STORAGE_UNAVAILABLE));
    assert_true(waits_for(test, job, BERTH__REASON__REASON_NODE_UNAVAILABLE));
}

/* --- cordon ------------------------------------------------------------------------------------- */

static void cordoned_node_keeps_its_jobs_and_gets_no_others(void **state)
{
    BerthdTest *test = *state;
    guint64 running = submit_running(test);
    change(test, "Cordon", "n1", "a fan rattles");
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__CORDONED, "a fan rattles", FALSE);
    const Berth__Event *event = newest(test, BERTH__EVENT__KIND__NODE_CORDONED);
    assert_string_equal(event->node, "n1");
    assert_string_equal(event->user, "root");
    assert_string_equal(event->text, "a fan rattles");
    guint64 waiting = berthd_fixture_submit_plain(test->berthd);
    assert_waits_for_a_node(test, waiting);
    assert_int_equal(berthd_fixture_state_of(test->berthd, running), BERTH__JOB_STATE__RUNNING);
    change(test, "Uncordon", "n1", "");
    berthd_fixture_wait_state(test->berthd, waiting, BERTH__JOB_STATE__RUNNING);
    assert_open(test);
    assert_string_equal(newest(test, BERTH__EVENT__KIND__NODE_UNCORDONED)->node, "n1");
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_UNDRAINED), 0);
    /* Its state was the same all the time. */
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_UP), 1);
}

static void uncordon_of_what_is_open_says_nothing(void **state)
{
    BerthdTest *test = *state;
    change(test, "Uncordon", "n1", "");
    change(test, "Undrain", "n1", "");
    change(test, "Cordon", "n1", "x");
    newest(test, BERTH__EVENT__KIND__NODE_CORDONED);
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_UNDRAINED), 0);
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_UNCORDONED), 0);
}

/* --- drain -------------------------------------------------------------------------------------- */

static void drained_node_is_empty_when_its_last_job_has_ended(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    change(test, "Drain", "n1", "new firmware");
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__DRAINING, "new firmware", FALSE);
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_EMPTY), 0);
    assert_true(fake_agent_end(test->agent, job, 0));
    assert_string_equal(newest(test, BERTH__EVENT__KIND__NODE_EMPTY)->node, "n1");
    assert_int_equal(berthd_fixture_state_of(test->berthd, job), BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_n_guests(test->agent), 0);
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__DRAINING, "new firmware", TRUE);
    change(test, "Drain", "n1", "and new disks");
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__DRAINING, "and new disks", TRUE);
    change(test, "Undrain", "n1", "done");
    assert_open(test);
    assert_string_equal(newest(test, BERTH__EVENT__KIND__NODE_UNDRAINED)->text, "done");
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_EMPTY), 1);
}

static void drain_outlives_a_kill_of_berthd_and_goes_on(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    change(test, "Drain", "n1", "new firmware");
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__DRAINING, "new firmware", FALSE);
    guint64 waiting = berthd_fixture_submit_plain(test->berthd);
    assert_waits_for_a_node(test, waiting);
    assert_true(fake_agent_end(test->agent, job, 0));
    newest(test, BERTH__EVENT__KIND__NODE_EMPTY);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__DRAINING, "new firmware", TRUE);
    assert_waits_for_a_node(test, waiting);
    change(test, "Undrain", "n1", "");
    berthd_fixture_wait_state(test->berthd, waiting, BERTH__JOB_STATE__RUNNING);
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_EMPTY), 1);
}

static void all_nodes_that_are_named_are_changed_or_none(void **state)
{
    BerthdTest *test = *state;
    char first[] = "n1", unknown[] = "n9";
    char *names[] = {first, unknown, NULL};
    Berth__ChangeNodesRequest request = request_for(names, "x");
    g_autoptr(GError) error =
        berthd_fixture_call_error(test->berthd, &berth__nodes__descriptor, "Drain", &request.base);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "no node \"n9\"");
    assert_open(test);
    change(test, "Drain", "n1", "x");
    g_clear_error(&error);
    request.n_names = 1;
    error = berthd_fixture_call_error(test->berthd, &berth__nodes__descriptor, "Uncordon",
                                      &request.base);
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "is drained, by root: x");
}

static void drain_is_for_operators_and_needs_a_reason(void **state)
{
    BerthdTest *test = *state;
    char first[] = "n1";
    char *names[] = {first, NULL};
    Berth__ChangeNodesRequest request = request_for(names, "");
    static const char *const methods[] = {"Cordon", "Uncordon", "Drain", "Undrain"};
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        g_autoptr(GError) error = NULL;
        request.reason = (char *)"because";
        assert_null(berth_rpc_peer_call(alice, &berth__nodes__descriptor, methods[i], &request.base,
                                        30000, &error));
        assert_berth_error(error, BERTH_ERROR_PERMISSION_DENIED, "only operators");
    }
    static const char *const reasons[] = {"", "a\nb", "\377"};
    for (guint i = 0; i < G_N_ELEMENTS(reasons); i++) {
        request.reason = (char *)reasons[i];
        g_autoptr(GError) error = berthd_fixture_call_error(test->berthd, &berth__nodes__descriptor,
                                                            "Drain", &request.base);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "reason");
    }
    assert_open(test);
}

/* So that nobody undoes by accident what somebody else wanted meanwhile. */
static void change_may_be_for_nodes_of_one_reason_only(void **state)
{
    BerthdTest *test = *state;
    static const char *const methods[] = {"Cordon", "Drain", "Undrain"};
    char first[] = "n1", ours[] = "new firmware";
    char *names[] = {first, NULL};
    Berth__ChangeNodesRequest request = request_for(names, ours);
    request.if_reason = ours;
    change(test, "Drain", "n1", "its fan rattles");
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        g_autoptr(GError) error = berthd_fixture_call_error(test->berthd, &berth__nodes__descriptor,
                                                            methods[i], &request.base);
        assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION,
                           "is closed for something else, by root: its fan rattles");
    }
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__DRAINING, "its fan rattles", TRUE);
    change(test, "Undrain", "n1", "");
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        g_autoptr(ProtobufCMessage) reply =
            berthd_fixture_call(test->berthd, &berth__nodes__descriptor, methods[i], &request.base);
    }
    assert_open(test);
}

/* Its time limit (the daemon's default) and its grace. */
static void plan_says_what_is_waited_for_and_until_when(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    Berth__PlanDrainRequest request = BERTH__PLAN_DRAIN_REQUEST__INIT;
    request.name = (char *)"n1";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "PlanDrain", &request.base);
    const Berth__DrainPlan *plan = (const Berth__DrainPlan *)reply;
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(plan->n_steps, 1);
    assert_int_equal(plan->steps[0]->guest->job, job);
    assert_string_equal(plan->steps[0]->user, "root");
    assert_false(plan->steps[0]->moves);
    guint64 start_usec = berthd_test_task(record)->start_usec;
    guint64 limit_usec = record->time_limit_sec * G_USEC_PER_SEC;
    assert_true(plan->steps[0]->limit_usec > start_usec + limit_usec);
    assert_true(plan->steps[0]->limit_usec <= start_usec + limit_usec + 60 * G_USEC_PER_SEC);
    assert_open(test);
}

/* --- down --------------------------------------------------------------------------------------- */

static GError *down_error(BerthdTest *test)
{
    char first[] = "n1";
    char *names[] = {first, NULL};
    Berth__ChangeNodesRequest request = request_for(names, "its board has burnt");
    return berthd_fixture_call_error(test->berthd, &berth__nodes__descriptor, "Down",
                                     &request.base);
}

/* The storage of this test has no fence: its jobs are not started elsewhere. */
static void node_that_is_given_up_is_lost_at_once_and_may_not_join(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    g_autoptr(GError) alive = down_error(test);
    assert_berth_error(alive, BERTH_ERROR_FAILED_PRECONDITION, "has a session");
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    change(test, "Down", "n1", "its board has burnt");
    assert_string_equal(newest(test, BERTH__EVENT__KIND__NODE_GIVEN_UP)->text,
                        "its board has burnt");
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__NODE_FAIL);
    assert_int_equal(count(test, BERTH__EVENT__KIND__NODE_LOST), 1);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_error(test->agent) != NULL);
    assert_non_null(strstr(fake_agent_error(test->agent)->message, "given up by root"));
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__GIVEN_UP, "its board has burnt", FALSE);
    char first[] = "n1";
    char *names[] = {first, NULL};
    Berth__ChangeNodesRequest request = request_for(names, "x");
    g_autoptr(GError) refused = berthd_fixture_call_error(test->berthd, &berth__nodes__descriptor,
                                                          "Undrain", &request.base);
    assert_berth_error(refused, BERTH_ERROR_FAILED_PRECONDITION, "berth node up");
    change(test, "Up", "n1", "");
    fake_agent_heal(test->agent);
    run_until(fake_agent_is_joined(test->agent));
    assert_admitted(test);
    run_until(fake_agent_n_guests(test->agent) == 0); /* what was given up is a stray */
}

static void force_ends_the_session_of_a_node_first(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_running(test);
    g_autofree char *nothing =
        cli_output_of(CLI(test->berthd, "node", "down", "n1", "--reason", "it lies", "--force"));
    assert_string_equal(nothing, "");
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__NODE_FAIL);
    run_until(!fake_agent_is_joined(test->agent));
    g_autofree char *listed = cli_output_of(CLI(test->berthd, "node", "ls"));
    assert_contains(listed, "given up by root: it lies");
    g_autofree char *again = cli_output_of(CLI(test->berthd, "node", "up", "n1"));
    assert_string_equal(again, "");
    fake_agent_heal(test->agent);
    run_until(fake_agent_is_joined(test->agent));
    assert_admitted(test);
}

/* --- the command -------------------------------------------------------------------------------- */

static void command_follows_until_the_node_is_empty_over_a_restart(void **state)
{
    BerthdTest *test = *state;
    guint64 first = submit_running(test);
    guint64 second = submit_running(test);
    g_autofree char *ended =
        g_strdup_printf("n1: job %" G_GUINT64_FORMAT " has ended: COMPLETED", first);
    g_autoptr(CliProcess) drain =
        CLI(test->berthd, "node", "drain", "n[1]", "--reason", "new firmware");
    run_until(strstr(cli_out(drain), "is waited for") != NULL);
    assert_true(fake_agent_end(test->agent, first, 0));
    run_until(strstr(cli_out(drain), ended) != NULL);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_false(cli_has_ended(drain));
    assert_true(fake_agent_end(test->agent, second, 0));
    assert_cli_status(drain, 0);
    assert_contains(cli_out(drain), "n1: is empty");
    g_autofree char *listed = cli_output_of(CLI(test->berthd, "node", "ls"));
    assert_contains(listed, "drained");
    assert_contains(listed, "drained by root: new firmware");
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "node", "show", "n1"));
    assert_contains(shown, "by root since");
    assert_contains(shown, "Empty since");
    /* Nothing is left to wait for. */
    g_autoptr(CliProcess) again = CLI(test->berthd, "node", "drain", "n1", "--reason", "and disks");
    assert_cli_status(again, 0);
    assert_contains(cli_out(again), "n1: is empty");
    assert_contains(cli_err(again), "n1 was drained by root since 2");
    assert_contains(cli_err(again), "that is so no more\n");
    g_autoptr(CliProcess) same = CLI(test->berthd, "node", "cordon", "n1", "--reason", "and disks");
    assert_cli_status(same, 0);
    assert_string_equal(cli_err(same), "");
}

static void command_that_is_left_says_how_to_undo_it(void **state)
{
    BerthdTest *test = *state;
    submit_running(test);
    g_autoptr(CliProcess) drain = CLI(test->berthd, "node", "drain", "n1", "-r", "x");
    run_until(strstr(cli_out(drain), "is waited for") != NULL);
    cli_signal(drain, SIGINT);
    assert_cli_status(drain, 130);
    assert_contains(cli_err(drain), "berth node undrain n1");
    assert_admission(test, BERTH__NODE_ADMISSION__KIND__DRAINING, "x", FALSE);
}

static void command_ends_when_somebody_undrains_the_node(void **state)
{
    BerthdTest *test = *state;
    submit_running(test);
    g_autoptr(CliProcess) drain = CLI(test->berthd, "node", "drain", "n1", "-r", "x");
    run_until(strstr(cli_out(drain), "is waited for") != NULL);
    g_autofree char *nothing = cli_output_of(CLI(test->berthd, "node", "undrain", "n1"));
    assert_string_equal(nothing, "");
    assert_cli_status(drain, 1);
    assert_contains(cli_err(drain), "n1 is not to be empty any more: root has undrained it");
}

static void command_plans_without_changing_anything(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *none = cli_output_of(CLI(test->berthd, "node", "drain", "n1", "--plan"));
    assert_contains(none, "nothing runs there");
    submit_running(test);
    g_autofree char *plan = cli_output_of(CLI(test->berthd, "node", "drain", "n1", "--plan"));
    assert_contains(plan, "is waited for");
    assert_contains(plan, "all that is waited for comes to its time limit by 2");
    assert_open(test);
    g_autoptr(CliProcess) unexplained = CLI(test->berthd, "node", "drain", "n1");
    assert_cli_status(unexplained, 2);
    g_autoptr(CliProcess) wrong = CLI(test->berthd, "node", "cordon", "n[1-", "-r", "x");
    assert_cli_status(wrong, 2);
    assert_contains(cli_err(wrong), "is not a list of nodes");
    assert_open(test);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(cordoned_node_keeps_its_jobs_and_gets_no_others),
        TEST(uncordon_of_what_is_open_says_nothing),
        TEST(drained_node_is_empty_when_its_last_job_has_ended),
        TEST(drain_outlives_a_kill_of_berthd_and_goes_on),
        TEST(all_nodes_that_are_named_are_changed_or_none),
        TEST(drain_is_for_operators_and_needs_a_reason),
        TEST(change_may_be_for_nodes_of_one_reason_only),
        TEST(plan_says_what_is_waited_for_and_until_when),
        TEST(node_that_is_given_up_is_lost_at_once_and_may_not_join),
        TEST(force_ends_the_session_of_a_node_first),
        TEST(command_follows_until_the_node_is_empty_over_a_restart),
        TEST(command_that_is_left_says_how_to_undo_it),
        TEST(command_ends_when_somebody_undrains_the_node),
        TEST(command_plans_without_changing_anything),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
