/* SPDX-License-Identifier: Apache-2.0 */
/* `berth ls --watch`, with a real daemon and a node that is fake. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"
#include "tests/lib/cli_terminal.h"

#include <signal.h>

/* Of a list without a job. */
#define EMPTY "NODE OR REASON\n"

static guint64 submit_held(BerthdTest *test)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    return berthd_fixture_submit(test->berthd, &spec);
}

static void release(BerthdTest *test, guint64 job)
{
    Berth__ReleaseRequest request = BERTH__RELEASE_REQUEST__INIT;
    request.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Release", &request.base);
}

static const char *newest_list(CliProcess *cli)
{
    const char *list = g_strrstr(cli_out(cli), "\n\n");
    return list != NULL ? list + 2 : cli_out(cli);
}

static void ls_watch_lists_again_when_something_has_happened(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit_held(test);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "ls", "--watch");
    run_until(strstr(newest_list(cli), " PENDING ") != NULL);
    release(test, job);
    run_until(strstr(newest_list(cli), " RUNNING ") != NULL);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    assert_true(fake_agent_end(test->agent, job, 0));
    run_until(g_str_has_suffix(newest_list(cli), EMPTY));
    guint64 next = submit_held(test); /* which it has not had before */
    g_autofree char *row = g_strdup_printf("\n%3" G_GUINT64_FORMAT "  test", next);
    run_until(strstr(newest_list(cli), row) != NULL);
    assert_false(cli_has_ended(cli));
    cli_signal(cli, SIGTERM);
    assert_cli_status(cli, 128 + SIGTERM);
    assert_string_equal(cli_err(cli), "");
    g_auto(GStrv) lists = g_strsplit(cli_out(cli), "\n\n", -1);
    for (char **list = lists; *list != NULL; list++) {
        g_auto(GStrv) lines = g_strsplit(*list, "\n", 3);
        assert_true(g_regex_match_simple("^20..-..-.. ..:..:..$", lines[0], 0, 0));
        assert_true(g_str_has_prefix(g_strchug(lines[1]), "JOB  NAME"));
    }
}

static void ls_watch_marks_whose_node_goes_and_comes(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "ls", "--watch");
    run_until(strstr(newest_list(cli), "  n1\n") != NULL);
    fake_agent_cut(test->agent);
    run_until(strstr(newest_list(cli), "  n1 (no session)\n") != NULL);
    fake_agent_heal(test->agent);
    run_until(strstr(newest_list(cli), "  n1\n") != NULL);
    cli_signal(cli, SIGTERM);
    assert_cli_status(cli, 128 + SIGTERM);
}

static void ls_watch_outlives_the_daemon(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit_held(test);
    g_autofree char *text = cli_job(job);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "ls", "--watch", text);
    run_until(strstr(newest_list(cli), " PENDING ") != NULL);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    release(test, job);
    run_until(strstr(newest_list(cli), " RUNNING ") != NULL);
    cli_signal(cli, SIGINT);
    assert_cli_status(cli, 128 + SIGINT);
}

/* It is said once, and not with each list. */
static void ls_watch_leaves_out_what_there_is_not(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit_held(test);
    g_autofree char *text = cli_job(job);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "ls", "--watch", "999998", text, "999999[3]");
    run_until(strstr(newest_list(cli), " PENDING ") != NULL);
    release(test, job);
    run_until(strstr(newest_list(cli), " RUNNING ") != NULL);
    cli_signal(cli, SIGTERM);
    assert_cli_status(cli, 128 + SIGTERM);
    assert_string_equal(cli_err(cli), "berth ls: no job 999998\nberth ls: no job 999999\n");
    g_autoptr(CliProcess) none = CLI(test->berthd, "ls", "--watch", "999998");
    assert_cli_status(none, 1); /* by itself: nothing is left that could change */
    assert_string_equal(cli_err(none), "berth ls: no job 999998\n");
}

static void ls_watch_is_refused_as_json(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) cli = CLI(test->berthd, "ls", "--watch", "--json");
    assert_cli_status(cli, 2);
    assert_contains(cli_err(cli), "`berth events --follow --json`");
    assert_string_equal(cli_out(cli), "");
}

static void ls_watch_is_refused_with_tasks_that_have_ended(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) cli =
        CLI(test->berthd, "ls", "--watch", "--tasks", "--state", "running,failed");
    assert_cli_status(cli, 2);
    assert_contains(cli_err(cli), "`berth events --follow`");
    assert_string_equal(cli_out(cli), "");
}

/* --- on a terminal -------------------------------------------------------------------------------- */

static CliTerminal on_terminal(BerthdTest *test)
{
    return cli_terminal_start(berthd_fixture_socket(test->berthd), "ls --watch");
}

static void ls_watch_on_a_terminal_is_drawn_anew_until_q(void **state)
{
    BerthdTest *test = *state;
    guint64 job = submit_held(test);
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), " PENDING ") != NULL);
    assert_contains(cli_out(terminal.cli), "\033[?1049h");
    test->plan = (FakePlan){.runs_on = TRUE};
    release(test, job);
    run_until(strstr(cli_terminal_screen(&terminal), " RUNNING ") != NULL);
    cli_terminal_type(&terminal, "x\033[Bq");
    cli_terminal_assert_ended(&terminal, "status 0");
    cli_terminal_clear(&terminal);
}

/* It asks for the list, as its terminal has another size, and has no answer. */
static void ls_watch_that_is_left_while_it_asks_ends_well(void **state)
{
    BerthdTest *test = *state;
    submit_held(test);
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), " PENDING ") != NULL);
    berthd_fixture_signal(test->berthd, SIGSTOP);
    cli_terminal_signal(&terminal, SIGWINCH);
    cli_terminal_type(&terminal, "q");
    cli_terminal_assert_ended(&terminal, "status 0");
    berthd_fixture_signal(test->berthd, SIGCONT);
    cli_terminal_clear(&terminal);
}

static void ls_watch_that_is_left_while_the_daemon_is_away_ends_well(void **state)
{
    BerthdTest *test = *state;
    submit_held(test);
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), " PENDING ") != NULL);
    berthd_fixture_kill(test->berthd);
    cli_terminal_type(&terminal, "q");
    cli_terminal_assert_ended(&terminal, "status 0");
    berthd_fixture_restart(test->berthd);
    cli_terminal_clear(&terminal);
}

static void ls_watch_on_a_terminal_says_how_many_lines_it_leaves_out(void **state)
{
    BerthdTest *test = *state;
    for (guint i = 0; i < 40; i++)
        submit_held(test);
    CliTerminal terminal = on_terminal(test);
    /* Of 42 lines, with the time and the titles, 29 and this one. */
    run_until(strstr(cli_terminal_screen(&terminal), "\n(13 more)\033[K\033[J") != NULL);
    cli_terminal_type(&terminal, "q");
    cli_terminal_assert_ended(&terminal, "status 0");
    cli_terminal_clear(&terminal);
}

static void ls_watch_that_is_ended_by_a_signal_leaves_the_terminal_as_it_was(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        int number;
        const char *status;
    } cases[] = {{SIGTERM, "status 143"}, {SIGINT, "status 130"}, {SIGQUIT, "status 131"}};
    submit_held(test);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        CliTerminal terminal = on_terminal(test);
        run_until(strstr(cli_terminal_screen(&terminal), " PENDING ") != NULL);
        cli_terminal_signal(&terminal, cases[i].number);
        cli_terminal_assert_ended(&terminal, cases[i].status);
        cli_terminal_clear(&terminal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(ls_watch_lists_again_when_something_has_happened),
        BERTHD_TEST(ls_watch_marks_whose_node_goes_and_comes),
        BERTHD_TEST(ls_watch_outlives_the_daemon),
        BERTHD_TEST(ls_watch_leaves_out_what_there_is_not),
        BERTHD_TEST(ls_watch_is_refused_as_json),
        BERTHD_TEST(ls_watch_is_refused_with_tasks_that_have_ended),
        BERTHD_TEST(ls_watch_on_a_terminal_is_drawn_anew_until_q),
        BERTHD_TEST(ls_watch_that_is_left_while_it_asks_ends_well),
        BERTHD_TEST(ls_watch_that_is_left_while_the_daemon_is_away_ends_well),
        BERTHD_TEST(ls_watch_on_a_terminal_says_how_many_lines_it_leaves_out),
        BERTHD_TEST(ls_watch_that_is_ended_by_a_signal_leaves_the_terminal_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
