/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays at the command line through a real berthd. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

/* The number of the job that was submitted. (transfer full) */
static char *submitted(CliProcess *cli)
{
    return g_strchomp(cli_output_of(cli));
}

static CliProcess *with_tasks(BerthdTest *test, const char *verb, const char *job,
                              const char *tasks)
{
    g_autofree char *named = g_strconcat(job, tasks, NULL);
    return CLI(test->berthd, verb, named);
}

static void submit_of_a_script_is_an_array_by_its_own_lines(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "hello\n"};
    g_autofree char *job = submitted(
        CLI_SHELL(test->berthd, "printf '#!/bin/sh\\n#BERTH --array 1-5:2,9%%2 -o out-%%j-%%a\\n' "
                                "| \"$BERTH\" submit -"));
    g_autofree char *ended = g_strconcat(job, " COMPLETED\n", NULL);
    g_autofree char *waited = cli_output_of(CLI(test->berthd, "wait", job));
    assert_string_equal(waited, ended);
    g_autofree char *line = g_strconcat(job, "[1-5:2,9%2]  stdin", NULL);
    g_autofree char *listed = cli_output_of(CLI(test->berthd, "ls", job));
    assert_contains(listed, line);
    assert_contains(listed, "4 completed\n");
    g_autofree char *logged = cli_output_of(with_tasks(test, "logs", job, "[9]"));
    assert_string_equal(logged, "hello\n");
    /* Whoever has waited finds the files. */
    for (guint i = 0; i < 4; i++) {
        g_autofree char *name = g_strdup_printf("out-%s-%u", job, i < 3 ? 2 * i + 1 : 9);
        g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), name, NULL);
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(path, &text, NULL, NULL));
        assert_string_equal(text, "hello\n");
    }
}

/* TASK, and all that run with it. */
static gboolean has_booted(BerthdTest *test, const char *task)
{
    g_autofree char *tasks = cli_output_of(CLI(test->berthd, "ls", "--tasks"));
    return strstr(tasks, task) != NULL && strstr(tasks, "booting") == NULL;
}

static void tasks_are_listed_and_cancelled_by_their_indices(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    g_autofree char *job =
        submitted(CLI(test->berthd, "submit", "--array", "0-999999%2", "--", "true"));
    g_autofree char *two = g_strconcat(job, "[1]", NULL);
    run_until(has_booted(test, two));
    g_autofree char *cancelled = cli_output_of(with_tasks(test, "cancel", job, "[4-999999]"));
    assert_string_equal(cancelled, "");
    g_autofree char *listed = cli_output_of(with_tasks(test, "ls", job, "[0,3-5,999999]"));
    g_auto(GStrv) lines = g_strsplit(listed, "\n", -1);
    assert_int_equal(g_strv_length(lines), 1 + 5 + 1);
    assert_contains(lines[1], "RUNNING");
    assert_contains(lines[2], "PENDING");
    assert_contains(lines[2], "array-throttle");
    assert_contains(lines[5], "[999999]  true");
    assert_contains(lines[5], "CANCELLED");
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", job));
    assert_contains(shown, "Now              2 running, 2 waiting, 999996 cancelled\n");
    assert_contains(shown, "Not started      2-3\n");
    g_autofree char *range = g_strdup_printf("  job %s[4-999999] CANCELLED", job);
    g_autofree char *events = cli_output_of(CLI(test->berthd, "events", job));
    assert_contains(events, range);
    g_autofree char *all = cli_output_of(CLI(test->berthd, "cancel", job));
    g_autoptr(CliProcess) waited = CLI(test->berthd, "wait", two, job);
    g_autofree char *ends = g_strdup_printf("%s CANCELLED\n%s CANCELLED\n", two, job);
    assert_cli_status(waited, 143);
    assert_string_equal(cli_out(waited), ends);
}

static void wait_for_an_array_of_which_a_task_fails_is_1(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.status = 3};
    g_autofree char *job = submitted(CLI(test->berthd, "submit", "-a", "0-2", "--", "false"));
    g_autoptr(CliProcess) all = CLI(test->berthd, "wait", job);
    assert_cli_status(all, 1);
    g_autoptr(CliProcess) one = with_tasks(test, "wait", job, "[2]");
    assert_cli_status(one, 3);
    g_autoptr(CliProcess) none = with_tasks(test, "wait", job, "[3]");
    assert_cli_status(none, 125);
    assert_contains(cli_err(none), "its tasks are 0-2");
}

/* All are told of that were, and that there are more. */
static void wait_for_an_array_says_whose_output_is_lost(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "hi\n"};
    g_autofree char *job = submitted(
        CLI_SHELL(test->berthd, "mkdir gone && \"$BERTH\" submit -a 0-6%1 -o gone/out-%a -- true"));
    guint64 number = g_ascii_strtoull(job, NULL, 10);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, number);
    g_autofree char *nothing = cli_output_of(CLI_SHELL(test->berthd, "rmdir gone"));
    test->plan = (FakePlan){.out = "hi\n"};
    assert_true(fake_agent_end(test->agent, number, 0));
    g_autoptr(CliProcess) waited = CLI(test->berthd, "wait", job);
    assert_cli_status(waited, 0);
    g_autofree char *first =
        g_strdup_printf("berth wait: job %s[0]: its output was not copied: ", job);
    g_autofree char *fifth = g_strdup_printf("\nberth wait: job %s[4]: its output was not ", job);
    g_autofree char *rest = g_strdup_printf("\nberth wait: job %s: the output of 2 more of ", job);
    assert_true(g_str_has_prefix(cli_err(waited), first));
    assert_contains(cli_err(waited), fifth);
    assert_contains(cli_err(waited), rest);
    assert_null(strstr(cli_err(waited), "[5]"));
}

static void logs_of_tasks_are_followed_one_after_the_other(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "hello\n"};
    g_autofree char *job = submitted(CLI(test->berthd, "submit", "-a", "0-2", "--", "true"));
    guint64 number = g_ascii_strtoull(job, NULL, 10);
    g_autofree char *last = g_strconcat(job, "[2]", NULL);
    g_autofree char *second = g_strconcat(job, "[1]", NULL);
    g_autofree char *all = g_strconcat(job, "[0-2]", NULL);
    g_autofree char *last_heading = g_strdup_printf("\n==> %s <==\nhello\n", last);
    run_until(has_booted(test, last));
    g_autoptr(CliProcess) logs = CLI(test->berthd, "logs", "-f", all);
    run_until(strstr(cli_out(logs), "hello\n") != NULL);
    assert_true(fake_agent_end_task(test->agent, number, 1, 0));
    g_free(cli_output_of(CLI(test->berthd, "wait", second)));
    assert_null(strstr(cli_out(logs), second));
    assert_true(fake_agent_end_task(test->agent, number, 0, 0));
    run_until(strstr(cli_out(logs), last_heading) != NULL);
    assert_false(cli_has_ended(logs));
    assert_true(fake_agent_end_task(test->agent, number, 2, 0));
    assert_cli_status(logs, 0);
    g_autofree char *expected =
        g_strdup_printf("==> %s[0] <==\nhello\n\n==> %s <==\nhello\n%s", job, second, last_heading);
    assert_string_equal(cli_out(logs), expected);
}

/* One waits, the other has ended with others. */
static void logs_of_tasks_that_never_started_are_their_headings(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *job =
        submitted(CLI(test->berthd, "submit", "--hold", "-a", "0-5", "--", "true"));
    g_free(cli_output_of(with_tasks(test, "cancel", job, "[2-4]")));
    g_autofree char *headings = g_strdup_printf("==> %s[3] <==\n\n==> %s[5] <==\n", job, job);
    g_autofree char *logged = cli_output_of(with_tasks(test, "logs", job, "[3,5]"));
    assert_string_equal(logged, headings);
}

/* Some ended together, before they started. */
static void events_of_tasks_are_theirs_and_those_of_all(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *job =
        submitted(CLI(test->berthd, "submit", "--hold", "-a", "0-5", "--", "true"));
    g_free(cli_output_of(with_tasks(test, "cancel", job, "[2-4]")));
    g_free(cli_output_of(with_tasks(test, "cancel", job, "[0]")));
    g_autofree char *submission = g_strdup_printf("  job %s job-submitted by root", job);
    g_autofree char *own = g_strdup_printf("  job %s[2-4] CANCELLED", job);
    g_autofree char *other = g_strdup_printf("  job %s[0] CANCELLED", job);
    g_autofree char *events = cli_output_of(with_tasks(test, "events", job, "[3]"));
    assert_contains(events, submission);
    assert_contains(events, own);
    assert_null(strstr(events, other));
    g_autofree char *both = cli_output_of(with_tasks(test, "events", job, "[0-4:4]"));
    assert_contains(both, own);
    assert_contains(both, other);
    g_autoptr(CliProcess) none = with_tasks(test, "events", job, "[6-7]");
    assert_cli_status(none, 1);
    assert_contains(cli_err(none), "[6-7]: its tasks are 0-5\n");
    assert_string_equal(cli_out(none), "");
}

static void submit_of_too_many_tasks_says_how_many_there_may_be(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) cli = CLI(test->berthd, "submit", "-a", "0-1000000", "--", "true");
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "more than 1000000");
}

static void tasks_of_a_plain_job_are_refused(void **state)
{
    BerthdTest *test = *state;
    static const char *const verbs[] = {"cancel", "freeze", "show", "ls", "migrate", "events"};
    test->plan = (FakePlan){.runs_on = TRUE};
    g_autofree char *job = cli_job(berthd_fixture_submit_plain(test->berthd));
    for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
        g_autoptr(CliProcess) cli = with_tasks(test, verbs[i], job, "[3]");
        assert_cli_status(cli, 1);
        assert_contains(cli_err(cli), "is no array");
    }
}

/* Nobody knows which one is meant. */
static void verbs_of_one_task_refuse_an_array(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    g_autofree char *job = submitted(CLI(test->berthd, "submit", "-a", "0-2", "--", "true"));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING,
                              g_ascii_strtoull(job, NULL, 10));
    CliProcess *asked[] = {
        CLI(test->berthd, "logs", job),         CLI(test->berthd, "logs", "-f", job),
        CLI(test->berthd, "restore", job),      CLI(test->berthd, "checkpoint", "rm", job, "1"),
        CLI(test->berthd, "exec", job, "true"),
    };
    g_autofree char *why = g_strdup_printf("job %s is an array, whose tasks have this each by "
                                           "itself: name one, as %s[INDEX]\n",
                                           job, job);
    for (gsize i = 0; i < G_N_ELEMENTS(asked); i++) {
        g_autoptr(CliProcess) cli = asked[i];
        assert_cli_status(cli, i < 4 ? 1 : 125);
        assert_contains(cli_err(cli), why);
    }
}

static void verbs_of_one_task_refuse_a_task_of_a_plain_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 number = berthd_fixture_submit_plain(test->berthd);
    g_autofree char *job = cli_job(number);
    g_autofree char *first = g_strconcat(job, "[0]", NULL);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, number);
    CliProcess *asked[] = {
        CLI(test->berthd, "logs", first),
        CLI(test->berthd, "restore", first),
        CLI(test->berthd, "checkpoint", "rm", first, "1"),
        CLI(test->berthd, "exec", first, "true"),
    };
    for (gsize i = 0; i < G_N_ELEMENTS(asked); i++) {
        g_autoptr(CliProcess) cli = asked[i];
        assert_cli_status(cli, i < 3 ? 1 : 125);
        assert_contains(cli_err(cli), " is no array: name it without indices\n");
    }
}

static void the_first_task_is_called_by_its_index(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    g_autofree char *job = submitted(CLI(test->berthd, "submit", "-a", "0", "--", "true"));
    g_autofree char *first = g_strconcat(job, "[0]", NULL);
    g_autofree char *line = g_strdup_printf("\n%s  ", first);
    g_autofree char *subject = g_strdup_printf("job %s ", first);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING,
                              g_ascii_strtoull(job, NULL, 10));
    g_autofree char *top = cli_output_of(CLI(test->berthd, "top", "--once"));
    assert_contains(top, line);
    g_autoptr(CliProcess) restored = CLI(test->berthd, "restore", first);
    assert_cli_status(restored, 1);
    assert_contains(cli_err(restored), subject);
    g_autoptr(CliProcess) removed = CLI(test->berthd, "checkpoint", "rm", first, "7");
    assert_cli_status(removed, 1);
    assert_contains(cli_err(removed), subject);
    g_autofree char *frozen = cli_output_of(CLI(test->berthd, "freeze", first));
    g_autoptr(CliProcess) run = CLI(test->berthd, "exec", first, "true");
    assert_cli_status(run, 125);
    assert_contains(cli_err(run), subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(submit_of_a_script_is_an_array_by_its_own_lines),
        BERTHD_TEST(tasks_are_listed_and_cancelled_by_their_indices),
        BERTHD_TEST(wait_for_an_array_of_which_a_task_fails_is_1),
        BERTHD_TEST(wait_for_an_array_says_whose_output_is_lost),
        BERTHD_TEST(logs_of_tasks_are_followed_one_after_the_other),
        BERTHD_TEST(logs_of_tasks_that_never_started_are_their_headings),
        BERTHD_TEST(events_of_tasks_are_theirs_and_those_of_all),
        BERTHD_TEST(submit_of_too_many_tasks_says_how_many_there_may_be),
        BERTHD_TEST(tasks_of_a_plain_job_are_refused),
        BERTHD_TEST(verbs_of_one_task_refuse_an_array),
        BERTHD_TEST(verbs_of_one_task_refuse_a_task_of_a_plain_job),
        BERTHD_TEST(the_first_task_is_called_by_its_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
