/* SPDX-License-Identifier: Apache-2.0 */
/* How `berth exec` and `berth node exec` end before their commands do: never without a word, and with the
 * terminal as it was. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include <signal.h>

#define NOBODY 65534u

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

static void await_command(BerthdTest *test)
{
    run_until(fake_agent_exec(test->agent) != NULL);
}

static void node_exec_that_cannot_write_says_why(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) cli =
        CLI_SHELL(test->berthd, "\"$BERTH\" node exec n1 -- yes >/dev/full");
    await_command(test);
    fake_agent_exec_say(test->agent, FALSE, 0, "y\n", 2);
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "cannot write what node n1 says, and ended all");
    run_until(fake_agent_execs(test->agent)->n_cancelled == 1);
}

static void node_exec_runs_nowhere_if_one_node_is_unknown(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) cli = CLI(test->berthd, "node", "exec", "n1,n9", "--", "true");
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "there is no node \"n9\"");
    assert_null(fake_agent_execs(test->agent)->request);
}

/* berth thaw would be refused, too. */
static void exec_in_what_an_operator_froze_says_who_thaws_it(void **state)
{
    BerthdTest *test = *state;
    const char *socket = berthd_fixture_socket(test->berthd);
    g_autofree char *number = cli_output_of(
        cli_start_as(socket, NOBODY, (const char *const[]){"submit", "--", "true", NULL}));
    g_strchomp(number);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING,
                              g_ascii_strtoull(number, NULL, 10));
    g_autofree char *nothing = cli_output_of(CLI(test->berthd, "freeze", number));
    assert_string_equal(nothing, "");
    g_autoptr(CliProcess) cli =
        cli_start_as(socket, NOBODY, (const char *const[]){"exec", number, "--", "true", NULL});
    assert_cli_status(cli, 125);
    assert_contains(cli_err(cli), "frozen by an operator, who alone can thaw it");
}

/* To whom the log is shown; the node need not know. */
static void assert_why(BerthdTest *test, const char *command, const char *why)
{
    g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, command);
    await_command(test);
    assert_string_equal(fake_agent_exec(test->agent)->reason, "");
    fake_agent_exec_end(test->agent, 0, "");
    assert_cli_status(cli, 0);
    g_autofree char *events = cli_output_of(CLI(test->berthd, "events"));
    assert_contains(events, why);
}

static void exec_says_why_in_the_event_log(void **state)
{
    BerthdTest *test = *state;
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autofree char *command =
        g_strdup_printf("\"$BERTH\" exec --reason 'to look' %" G_GUINT64_FORMAT " -- true", job);
    assert_why(test, command, "by root: true (why: to look)");
}

static void node_exec_says_why_in_the_event_log(void **state)
{
    assert_why(*state, "\"$BERTH\" node exec -r 'to mend it' n1 -- true",
               "by root: true (why: to mend it)");
}

/* What ends it by a signal from outside: of the two, only one ends it by itself. */
static void terminal_is_as_it_was_after(BerthdTest *test, int number, const char *status)
{
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autofree char *script =
        g_strdup_printf("cat >inner <<'EOF'\n"
                        "ulimit -c 0; stty -g >before\n"
                        "sh -c 'echo $$ >pid; exec \"$BERTH\" exec -t %" G_GUINT64_FORMAT " sh'\n"
                        "echo $? >status; stty -g >after\nEOF\n"
                        "script -qc 'sh inner' /dev/null; cmp before after && cat status",
                        job);
    g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, script);
    await_command(test);
    g_autofree char *dir = g_path_get_dirname(berthd_fixture_socket(test->berthd));
    g_autofree char *path = g_build_filename(dir, "pid", NULL);
    g_autofree char *pid = NULL;
    assert_true(g_file_get_contents(path, &pid, NULL, NULL));
    run_until(fake_agent_execs(test->agent)->run != NULL);
    assert_int_equal(kill((pid_t)g_ascii_strtoll(pid, NULL, 10), number), 0);
    assert_cli_status(cli, 0);
    assert_true(g_str_has_suffix(cli_out(cli), status));
}

static void exec_that_is_hung_up_leaves_the_terminal_as_it_was(void **state)
{
    terminal_is_as_it_was_after(*state, SIGHUP, "125\n");
}

static void exec_that_is_ended_by_a_signal_leaves_the_terminal_as_it_was(void **state)
{
    terminal_is_as_it_was_after(*state, SIGQUIT, "131\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(node_exec_that_cannot_write_says_why),
        TEST(exec_says_why_in_the_event_log),
        TEST(node_exec_says_why_in_the_event_log),
        TEST(exec_in_what_an_operator_froze_says_who_thaws_it),
        TEST(node_exec_runs_nowhere_if_one_node_is_unknown),
        TEST(exec_that_is_hung_up_leaves_the_terminal_as_it_was),
        TEST(exec_that_is_ended_by_a_signal_leaves_the_terminal_as_it_was),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
