/* SPDX-License-Identifier: Apache-2.0 */
/* berth node roll: the order of its steps, and what is left and said when one of them fails. */
#include "config.h"

#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include <signal.h>

#define REASON    "new firmware"
#define WORDS     "upgrade -y"
#define LINE      "-- 'upgrade' '-y'\n"
#define ROLL(...) CLI(test->base.berthd, "node", "roll", __VA_ARGS__, "--", "upgrade", "-y")

typedef struct {
    BerthdTest base;
    FakeAgent *nodes[2];
} Test;

static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    test->base.berthd = berthd_fixture_new(NULL);
    berthd_fixture_start(test->base.berthd);
    test->base.plan = (FakePlan){.runs_on = TRUE};
    test->nodes[0] =
        berthd_fixture_add_agent(test->base.berthd, "n1", berthd_test_plan, &test->base.plan);
    berthd_fixture_import(test->base.berthd, "tiny");
    *state = test;
    return 0;
}

static int setup_two(void **state)
{
    setup(state);
    Test *test = *state;
    test->nodes[1] =
        berthd_fixture_add_agent(test->base.berthd, "n2", berthd_test_plan, &test->base.plan);
    return 0;
}

static gboolean runs(FakeAgent *agent, const char *command)
{
    const Berth__ExecRequest *exec = fake_agent_exec(agent);
    return exec && g_str_equal(exec->command[0], command);
}

/* Each node is asked first whether it runs commands at all. */
static void let_begin(Test *test)
{
    for (guint i = 0; i < 2 && test->nodes[i]; i++) {
        run_until(runs(test->nodes[i], "true"));
        fake_agent_exec_end(test->nodes[i], 0, "");
    }
}

static void end_command(CliProcess *cli, FakeAgent *agent, guint32 status)
{
    run_until(runs(agent, "upgrade") || cli_has_ended(cli));
    if (cli_has_ended(cli))
        fail_msg("it has ended: stdout \"%s\", stderr \"%s\"", cli_out(cli), cli_err(cli));
    assert_int_equal(fake_agent_exec(agent)->n_command, 2);
    fake_agent_exec_end(agent, status, "");
}

static Berth__NodeAdmission__Kind admission(Test *test, const char *name)
{
    Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
    request.name = (char *)name;
    Berth__Node *node =
        berthd_fixture_call(test->base.berthd, &berth__nodes__descriptor, "Get", &request.base);
    Berth__NodeAdmission__Kind kind =
        node->admission ? node->admission->kind : BERTH__NODE_ADMISSION__KIND__OPEN;
    berth_message_free(&node->base);
    return kind;
}

static void assert_admissions(Test *test, gboolean first_is_drained, gboolean second_is_drained)
{
    assert_int_equal(admission(test, "n1"), first_is_drained ? BERTH__NODE_ADMISSION__KIND__DRAINING
                                                             : BERTH__NODE_ADMISSION__KIND__OPEN);
    assert_int_equal(admission(test, "n2"), second_is_drained
                                                ? BERTH__NODE_ADMISSION__KIND__DRAINING
                                                : BERTH__NODE_ADMISSION__KIND__OPEN);
}

static void roll_takes_one_node_after_the_other(void **state)
{
    Test *test = *state;
    FakeAgent *first = test->nodes[0], *second = test->nodes[1];
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--reason", REASON);
    let_begin(test);
    run_until(runs(first, "upgrade"));
    assert_admissions(test, TRUE, FALSE);
    assert_null(fake_agent_exec(second));
    fake_agent_set_version(first, "9.9");
    fake_agent_cut(first); /* as by a restart of the agent, with the command */
    run_until(strstr(cli_out(cli), "n1: the connection to its agent ended before the command "));
    assert_null(strstr(cli_out(cli), "has joined"));
    fake_agent_restart(first);
    fake_agent_heal(first);
    run_until(runs(second, "upgrade"));
    assert_contains(cli_out(cli), "n1: berth-node 9.9 (it was " PACKAGE_VERSION ") has joined\n"
                                  "n1: is open again\n");
    assert_admissions(test, FALSE, TRUE);
    fake_agent_exec_say(second, FALSE, 0, "done\n", 5);
    run_until(strstr(cli_out(cli), "n2: done\n"));
    fake_agent_restart(second);
    assert_cli_status(cli, 0);
    assert_contains(cli_out(cli), "n2: berth-node " PACKAGE_VERSION " has joined\n"
                                  "n2: is open again\n");
    assert_string_equal(cli_err(cli), "");
    assert_admissions(test, FALSE, FALSE);
}

static void command_that_fails_stops_it_and_it_can_be_gone_on_with(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--reason", REASON, "--no-restart");
    let_begin(test);
    end_command(cli, test->nodes[0], 3);
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "n1 (status 3)");
    assert_contains(cli_err(cli), "0 of 2 nodes done; n1 is drained");
    assert_contains(cli_err(cli), "`berth node undrain n1` opens it as it is\n");
    assert_contains(cli_err(cli),
                    "to go on: berth node roll n1,n2 --reason '" REASON "' --no-restart " LINE);
    assert_admissions(test, TRUE, FALSE);
    g_autoptr(CliProcess) other = ROLL("n[1-2]", "--no-restart"); /* for another reason */
    assert_cli_status(other, 1);
    assert_contains(cli_err(other), "node n1 is closed already, by root: " REASON);
    assert_admissions(test, TRUE, FALSE);
    g_autoptr(CliProcess) again = ROLL("n1,n2", "--reason", REASON, "--no-restart");
    let_begin(test);
    end_command(again, test->nodes[0], 0);
    end_command(again, test->nodes[1], 0);
    assert_cli_status(again, 0);
    assert_admissions(test, FALSE, FALSE);
}

static void agent_that_does_not_join_again_stops_it(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--rejoin", "1");
    let_begin(test);
    end_command(cli, test->nodes[0], 0);
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "node n1: its agent has not joined again");
    assert_contains(cli_err(cli), "--no-restart");
    assert_contains(cli_err(cli),
                    "n1,n2 --reason 'a rolling update by root: " WORDS "' --rejoin 1 " LINE);
    assert_admissions(test, TRUE, FALSE);
}

/* And has told so, as the node's next turn does. */
static void run_until_begun(Test *test)
{
    run_until(runs(test->nodes[0], "upgrade"));
    while (g_main_context_iteration(NULL, FALSE)) {
        /* what is queued is sent */
    }
}

/* Which ends the command, and is no restart of the agent. */
static void connection_that_is_lost_is_no_success(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--reason", REASON);
    let_begin(test);
    run_until_begun(test);
    fake_agent_drop(test->nodes[0]);
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "node n1: its agent was not restarted");
    assert_contains(cli_err(cli), "0 of 2 nodes done; n1 is drained, and the command may have");
    assert_admissions(test, TRUE, FALSE);
}

/* The restart that the command asked for is still to come. */
static void agent_that_joins_as_it_was_is_waited_for(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n1");
    let_begin(test);
    end_command(cli, test->nodes[0], 0);
    run_until(strstr(cli_out(cli), "n1: its agent is waited for, "));
    fake_agent_drop(test->nodes[0]);
    run_until(fake_agent_is_joined(test->nodes[0]));
    fake_agent_set_version(test->nodes[0], "9.9");
    fake_agent_restart(test->nodes[0]);
    assert_cli_status(cli, 0);
    assert_contains(cli_out(cli), "n1: berth-node 9.9 (it was " PACKAGE_VERSION ") has joined\n");
}

/* BEFORE: what it is closed for until then, of which the caller hears; NULL: it is open. */
static void close_node(Test *test, const char *verb, const char *node, const char *before)
{
    g_autoptr(CliProcess) cli =
        CLI(test->base.berthd, "node", verb, node, "--reason", "its fan rattles");
    assert_cli_status(cli, 0);
    if (before != NULL)
        assert_contains(cli_err(cli), before);
    else
        assert_string_equal(cli_err(cli), "");
}

static void node_that_others_close_meanwhile_is_left_to_them(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--reason", REASON, "--no-restart");
    let_begin(test);
    run_until(runs(test->nodes[0], "upgrade"));
    close_node(test, "cordon", "n2", NULL);
    end_command(cli, test->nodes[0], 0);
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "node n2 is closed for something else, by root: its fan rattles");
    assert_contains(cli_err(cli), "1 of 2 nodes done; n2 is as before\n");
    assert_int_equal(admission(test, "n2"), BERTH__NODE_ADMISSION__KIND__CORDONED);
    g_autoptr(CliProcess) other = ROLL("n1", "--reason", REASON, "--no-restart");
    run_until(runs(test->nodes[0], "true"));
    fake_agent_exec_end(test->nodes[0], 0, "");
    run_until(runs(test->nodes[0], "upgrade"));
    close_node(test, "drain", "n1", ": " REASON "; that is so no more\n");
    fake_agent_exec_end(test->nodes[0], 0, "");
    assert_cli_status(other, 1);
    assert_contains(cli_err(other), "node n1 is closed for something else");
    assert_int_equal(admission(test, "n1"), BERTH__NODE_ADMISSION__KIND__DRAINING);
}

static void agent_that_can_start_no_guests_stops_it(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--rejoin", "3");
    let_begin(test);
    run_until(runs(test->nodes[0], "upgrade"));
    fake_agent_cut(test->nodes[0]);
    fake_agent_set_cannot_start(test->nodes[0], "there is no kernel");
    fake_agent_restart(test->nodes[0]);
    fake_agent_heal(test->nodes[0]);
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "node n1: its agent has joined again, and can start no guests: "
                                  "there is no kernel");
    assert_admissions(test, TRUE, FALSE);
    g_autoptr(CliProcess) again = ROLL("n1");
    run_until(runs(test->nodes[0], "true"));
    fake_agent_exec_end(test->nodes[0], 0, "");
    run_until_begun(test);
    fake_agent_restart(test->nodes[0]);
    run_until(strstr(cli_out(again), "ended before") && fake_agent_is_joined(test->nodes[0]));
    fake_agent_set_cannot_start(test->nodes[0], ""); /* it takes a while to come up */
    assert_cli_status(again, 0);
}

static void guest_that_stays_stops_it_at_the_deadline(void **state)
{
    Test *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->base.berthd);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) cli = ROLL("n1", "--deadline", "1");
    let_begin(test);
    assert_cli_status(cli, 1);
    assert_contains(cli_out(cli),
                    "n1: job 1 is still there: it can be neither moved nor checkpointed\n");
    assert_contains(cli_err(cli), "1 job has not left n1 by the deadline");
    assert_contains(cli_err(cli), "0 of 1 node done; n1 is being drained");
    assert_contains(cli_err(cli), "--deadline 1 " LINE);
    assert_int_equal(admission(test, "n1"), BERTH__NODE_ADMISSION__KIND__DRAINING);
    g_autoptr(CliProcess) drain =
        CLI(test->base.berthd, "node", "drain", "n1", "--reason", REASON, "--deadline", "1s");
    assert_cli_status(drain, 1);
    assert_contains(cli_out(drain), "n1: job 1 is still there");
    assert_contains(cli_err(drain), "ends nobody");
    g_autoptr(CliProcess) wrong =
        CLI(test->base.berthd, "node", "drain", "n1", "--reason", REASON, "--deadline", "soon");
    assert_cli_status(wrong, 2);
}

static void roll_that_is_interrupted_says_how_things_stand(void **state)
{
    Test *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->base.berthd);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) cli = ROLL("n1", "--reason", REASON);
    let_begin(test);
    run_until(strstr(cli_out(cli), "is waited for"));
    cli_signal(cli, SIGINT);
    assert_cli_status(cli, 130);
    assert_contains(cli_err(cli), "interrupted\n0 of 1 node done; n1 is being drained");
    assert_contains(cli_err(cli), "to go on: berth node roll n1 --reason '" REASON "' " LINE);
    assert_int_equal(admission(test, "n1"), BERTH__NODE_ADMISSION__KIND__DRAINING);
    fake_agent_end(test->nodes[0], job, 0);
    g_autoptr(CliProcess) again = ROLL("n1", "--reason", REASON);
    let_begin(test);
    run_until(runs(test->nodes[0], "upgrade"));
    cli_signal(again, SIGTERM);
    assert_cli_status(again, 130);
    assert_contains(cli_err(again), "n1 is drained, and the command may have run there");
    run_until(fake_agent_execs(test->nodes[0])->n_cancelled == 1);
    g_autoptr(CliProcess) hung_up = ROLL("n1", "--reason", REASON);
    let_begin(test);
    run_until(runs(test->nodes[0], "upgrade"));
    cli_signal(hung_up, SIGHUP);
    assert_cli_status(hung_up, 130);
    assert_contains(cli_err(hung_up), "n1 is drained, and the command may have run there");
    run_until(fake_agent_execs(test->nodes[0])->n_cancelled == 2);
}

static void drain_that_somebody_ends_stops_it(void **state)
{
    Test *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->base.berthd);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) cli = ROLL("n1");
    let_begin(test);
    run_until(strstr(cli_out(cli), "is waited for"));
    g_autofree char *none = cli_output_of(CLI(test->base.berthd, "node", "undrain", "n1"));
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "somebody has ended the drain of n1");
    assert_null(fake_agent_exec(test->nodes[0]));
}

static void drain_that_somebody_takes_over_stops_it(void **state)
{
    Test *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->base.berthd);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) cli = ROLL("n1");
    let_begin(test);
    run_until(strstr(cli_out(cli), "is waited for"));
    g_autoptr(CliProcess) taken =
        CLI(test->base.berthd, "node", "drain", "n1", "--no-wait", "--reason", "its fan rattles");
    assert_cli_status(taken, 0);
    assert_contains(cli_err(taken), "berth node drain: n1 was drained by root since 2");
    assert_contains(cli_err(taken), ": a rolling update by root: upgrade -y; that is so no more\n");
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "n1 is not to be empty any more for this: root has drained it");
    assert_null(fake_agent_exec(test->nodes[0]));
}

static void nothing_is_drained_where_it_could_not_go_on(void **state)
{
    Test *test = *state;
    g_autofree char *none = cli_output_of(
        CLI(test->base.berthd, "node", "cordon", "n2", "--reason", "its fan rattles"));
    g_autoptr(CliProcess) closed = ROLL("n[1-2]");
    assert_cli_status(closed, 1);
    assert_contains(cli_err(closed), "node n2 is closed already, by root: its fan rattles");
    g_autofree char *open = cli_output_of(CLI(test->base.berthd, "node", "uncordon", "n2"));
    g_autoptr(CliProcess) refused = ROLL("n[1-2]");
    run_until(runs(test->nodes[0], "true") && runs(test->nodes[1], "true"));
    fake_agent_exec_end(test->nodes[0], 0, "");
    fake_agent_exec_end(test->nodes[1], 1, "");
    assert_cli_status(refused, 1);
    assert_contains(cli_err(refused), "n2 (status 1)");
    fake_agent_cut(test->nodes[1]);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    g_autoptr(CliProcess) down = ROLL("n[1-2]");
    assert_cli_status(down, 1);
    assert_contains(cli_err(down), "node n2 is not up");
    g_autoptr(CliProcess) unknown = ROLL("n[1-3]");
    assert_cli_status(unknown, 1);
    assert_admissions(test, FALSE, FALSE);
    g_autoptr(CliProcess) none_named = CLI(test->base.berthd, "node", "roll", "n1");
    assert_cli_status(none_named, 2);
}

static void of_several_at_a_time_those_that_did_well_are_opened(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--parallel", "2", "--reason", REASON);
    let_begin(test);
    run_until(runs(test->nodes[0], "upgrade") && runs(test->nodes[1], "upgrade"));
    assert_admissions(test, TRUE, TRUE);
    fake_agent_exec_end(test->nodes[0], 7, "");
    fake_agent_restart(test->nodes[1]);
    assert_cli_status(cli, 1);
    assert_contains(cli_out(cli), "n2: is open again\n");
    assert_contains(cli_err(cli), "n1 (status 7)");
    assert_contains(cli_err(cli), "1 of 2 nodes done; n1 is drained");
    assert_contains(cli_err(cli), "roll n1 --reason '" REASON "' --parallel 2 " LINE);
    assert_admissions(test, TRUE, FALSE);
}

static void nodes_whose_agents_are_back_do_not_wait_for_one_that_is_not(void **state)
{
    Test *test = *state;
    g_autoptr(CliProcess) cli = ROLL("n[1-2]", "--parallel", "2", "--reason", REASON);
    let_begin(test);
    run_until(runs(test->nodes[0], "upgrade") && runs(test->nodes[1], "upgrade"));
    fake_agent_exec_say(test->nodes[1], FALSE, 0, "goes\n", 5);
    run_until(strstr(cli_out(cli), "n2: goes\n")); /* it is known to have begun */
    fake_agent_exec_end(test->nodes[0], 0, "");
    fake_agent_restart(test->nodes[1]);
    run_until(strstr(cli_out(cli), "n2: is open again\n"));
    assert_admissions(test, TRUE, FALSE);
    cli_signal(cli, SIGINT); /* n1 is waited for on */
    assert_cli_status(cli, 130);
    assert_contains(cli_err(cli), "1 of 2 nodes done; n1 is drained");
    assert_contains(cli_err(cli), "roll n1 --reason '" REASON "' --parallel 2 " LINE);
}

static void roll_outlives_berthd_while_it_waits(void **state)
{
    Test *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->base.berthd);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) cli = ROLL("n1");
    let_begin(test);
    run_until(strstr(cli_out(cli), "is waited for"));
    berthd_fixture_kill(test->base.berthd);
    berthd_fixture_restart(test->base.berthd);
    run_until(fake_agent_is_joined(test->nodes[0]));
    fake_agent_end(test->nodes[0], job, 0);
    end_command(cli, test->nodes[0], 0);
    run_until(strstr(cli_out(cli), "n1: its agent is waited for, "));
    fake_agent_restart(test->nodes[0]);
    berthd_fixture_kill(test->base.berthd);
    berthd_fixture_restart(test->base.berthd);
    assert_cli_status(cli, 0);
    assert_contains(cli_out(cli), "n1: is open again\n");
    assert_int_equal(admission(test, "n1"), BERTH__NODE_ADMISSION__KIND__OPEN);
}

/* It counts also while there is nobody to ask. */
static void deadline_passes_also_while_berthd_is_away(void **state)
{
    Test *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->base.berthd);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) rolled = ROLL("n2", "--rejoin", "2");
    run_until(runs(test->nodes[1], "true"));
    fake_agent_exec_end(test->nodes[1], 0, "");
    end_command(rolled, test->nodes[1], 0);
    g_autoptr(CliProcess) drained =
        CLI(test->base.berthd, "node", "drain", "n1", "--reason", REASON, "--deadline", "2s");
    run_until(strstr(cli_out(drained), "is waited for") &&
              strstr(cli_out(rolled), "is waited for"));
    berthd_fixture_kill(test->base.berthd);
    assert_cli_status(drained, 1);
    assert_contains(cli_err(drained), "the deadline has passed: ");
    assert_cli_status(rolled, 1);
    assert_contains(cli_err(rolled), "the deadline has passed: ");
}

#define ONE(function) cmocka_unit_test_setup_teardown(function, setup, berthd_test_teardown)
#define TWO(function) cmocka_unit_test_setup_teardown(function, setup_two, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TWO(roll_takes_one_node_after_the_other),
        TWO(command_that_fails_stops_it_and_it_can_be_gone_on_with),
        TWO(agent_that_does_not_join_again_stops_it),
        TWO(connection_that_is_lost_is_no_success),
        ONE(agent_that_joins_as_it_was_is_waited_for),
        TWO(node_that_others_close_meanwhile_is_left_to_them),
        TWO(agent_that_can_start_no_guests_stops_it),
        ONE(guest_that_stays_stops_it_at_the_deadline),
        ONE(roll_that_is_interrupted_says_how_things_stand),
        ONE(drain_that_somebody_ends_stops_it),
        ONE(drain_that_somebody_takes_over_stops_it),
        TWO(nothing_is_drained_where_it_could_not_go_on),
        TWO(of_several_at_a_time_those_that_did_well_are_opened),
        TWO(nodes_whose_agents_are_back_do_not_wait_for_one_that_is_not),
        ONE(roll_outlives_berthd_while_it_waits),
        TWO(deadline_passes_also_while_berthd_is_away),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
