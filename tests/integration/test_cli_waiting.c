/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits is told for what: for a job, why it does not begin; for an upload, how far it has come. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include <signal.h>

/* The node's 64 vCPUs, taken by a job that runs on. */
static guint64 fill_node(BerthdTest *test)
{
    test->plan = (FakePlan){.runs_on = TRUE};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.vcpus = 64;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

static void cancel(BerthdTest *test, guint64 job)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, job);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "cancel", text);
    assert_cli_status(cli, 0);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__CANCELLED);
}

static guint count(const char *text, const char *part)
{
    guint n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part)) {
        n++;
    }
    return n;
}

static void run_of_waiting_job_says_why_and_again_when_it_is_another_reason(void **state)
{
    BerthdTest *test = *state;
    guint64 filler = fill_node(test);
    test->plan = (FakePlan){.out = "done\n"};
    g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--hold", "--", "true");
    run_until(strstr(cli_err(cli), " is pending: held-by-user"));
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, berthd_test_newest_job(test));
    g_autoptr(CliProcess) release = CLI(test->berthd, "release", job);
    assert_cli_status(release, 0);
    run_until(strstr(cli_err(cli), " is pending: resources: no node has enough left"));
    cancel(test, filler);
    assert_cli_status(cli, 0);
    assert_string_equal(cli_out(cli), "done\n");
    assert_int_equal(count(cli_err(cli), "is pending"), 2);
    assert_int_equal(count(cli_err(cli), "\n"), 2);
}

static void logs_of_waiting_job_say_why_if_they_follow(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "done\n"};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    guint64 number = berthd_fixture_submit(test->berthd, &spec);
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, number);
    g_autofree char *expected = g_strdup_printf("berth logs: job %s is pending: held-by-user", job);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "logs", "-f", job);
    run_until(strstr(cli_err(cli), expected));
    g_autoptr(CliProcess) at_once = CLI(test->berthd, "logs", job);
    assert_cli_status(at_once, 0);
    assert_string_equal(cli_err(at_once), "");
    g_autoptr(CliProcess) release = CLI(test->berthd, "release", job);
    assert_cli_status(release, 0);
    assert_cli_status(cli, 0);
    assert_string_equal(cli_out(cli), "done\n");
    assert_int_equal(count(cli_err(cli), "\n"), 1);
}

/* Who wants something of it, and who reads its output. */
static void who_waits_for_a_node_that_is_away_is_told(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, fill_node(test));
    g_autofree char *away = g_strdup_printf(": job %s: n1 has had no session since ", job);
    static const char *const verbs[] = {"freeze", "thaw"};
    g_autoptr(CliProcess) logs = CLI(test->berthd, "logs", "-f", job);
    for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
        g_autofree char *command = g_strdup_printf("\"$BERTH\" %s %s", verbs[i], job);
        fake_agent_cut(test->agent);
        g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, command);
        run_until(strstr(cli_err(cli), away));
        run_until(count(cli_err(logs), away) == i + 1);
        g_autoptr(CliProcess) show = CLI(test->berthd, "show", job);
        assert_cli_status(show, 0);
        assert_contains(cli_out(show), "\nAway ");
        fake_agent_heal(test->agent);
        assert_cli_status(cli, 0);
        assert_int_equal(count(cli_err(cli), "\n"), 1);
    }
    g_autoptr(CliProcess) show = CLI(test->berthd, "show", job);
    assert_cli_status(show, 0);
    assert_null(strstr(cli_out(show), "\nAway "));
    cancel(test, g_ascii_strtoull(job, NULL, 10));
    assert_cli_status(logs, 0);
}

/* Before it is waited for, and while it is; each time once. */
static void wait_says_of_a_job_that_it_stands_still(void **state)
{
    BerthdTest *test = *state;
    guint64 number = fill_node(test);
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, number);
    g_autofree char *still =
        g_strdup_printf("berth wait: job %s stands still (frozen-by-user); berth show %s says "
                        "what lets it go on\n",
                        job, job);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "wait", job);
    static const char *const verbs[] = {"freeze", "thaw", "freeze"};
    for (guint i = 0; i < G_N_ELEMENTS(verbs); i++) {
        g_autoptr(CliProcess) change = CLI(test->berthd, verbs[i], job);
        assert_cli_status(change, 0);
        run_until(count(cli_err(cli), still) == (i + 2) / 2);
    }
    g_autoptr(CliProcess) second = CLI(test->berthd, "wait", job);
    run_until(count(cli_err(second), still) == 1);
    cancel(test, number);
    assert_cli_status(cli, 128 + 15);
    assert_cli_status(second, 128 + 15);
    assert_int_equal(count(cli_err(cli), "\n"), 2);
    assert_int_equal(count(cli_err(second), "\n"), 1);
}

/* What berth wait says of who is held. (transfer full) */
static char *held_line(const char *name)
{
    return g_strdup_printf(
        "berth wait: job %s is held (held-by-user); berth show %s says what lets "
        "it go on\n",
        name, name);
}

/* Likewise; of all that is named, and of one of its tasks. */
static void wait_says_of_a_job_that_it_is_held(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) submit =
        CLI(test->berthd, "submit", "--hold", "--array", "0-1", "--", "true");
    assert_cli_status(submit, 0);
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, berthd_test_newest_job(test));
    g_autofree char *task = g_strdup_printf("%s[1]", job);
    g_autofree char *all_held = held_line(job);
    g_autofree char *one_held = held_line(task);
    g_autoptr(CliProcess) all = CLI(test->berthd, "wait", job);
    g_autoptr(CliProcess) one = CLI(test->berthd, "wait", task);
    run_until(count(cli_err(all), all_held) == 1);
    run_until(count(cli_err(one), one_held) == 1);
    cancel(test, g_ascii_strtoull(job, NULL, 10));
    assert_cli_status(all, 1);
    assert_cli_status(one, 125);
}

static guint64 submit_array(BerthdTest *test, const char *tasks)
{
    g_autoptr(CliProcess) submit = CLI(test->berthd, "submit", "--array", tasks, "--", "true");
    assert_cli_status(submit, 0);
    return berthd_test_newest_job(test);
}

static void change(BerthdTest *test, const char *verb, const char *tasks)
{
    g_autoptr(CliProcess) cli = CLI(test->berthd, verb, tasks);
    assert_cli_status(cli, 0);
}

/* No event says so: the last of the others has ended. */
static void wait_says_that_only_held_tasks_of_an_array_are_left(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 number = submit_array(test, "0-3%1");
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, number);
    g_autofree char *held = g_strdup_printf("%s[1-2]", job);
    g_autofree char *line = held_line(job);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, number);
    change(test, "hold", held);
    g_autoptr(CliProcess) wait = CLI(test->berthd, "wait", job);
    g_autoptr(CliProcess) list = CLI(test->berthd, "ls", "--watch");
    run_until(strstr(cli_out(list), ", 2 of the waiting held"));
    run_until(fake_agent_end_task(test->agent, number, 0, 0));
    run_until(fake_agent_end_task(test->agent, number, 3, 0)); /* which has begun since */
    run_until(count(cli_err(wait), line) == 1);
    cancel(test, number);
    assert_cli_status(wait, 1);
    assert_string_equal(cli_err(wait), line);
    cli_signal(list, SIGTERM);
    assert_cli_status(list, 128 + SIGTERM);
}

/* Once, as long as it is: that another one is released and held again is no news of it. */
static void wait_says_of_each_task_that_it_is_held(void **state)
{
    BerthdTest *test = *state;
    guint64 filler = fill_node(test);
    guint64 number = submit_array(test, "0-3");
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, number);
    g_autofree char *both = g_strdup_printf("%s[1-2]", job);
    g_autofree char *first = g_strdup_printf("%s[1]", job);
    g_autofree char *second = g_strdup_printf("%s[2]", job);
    g_autofree char *first_line = held_line(first);
    g_autofree char *second_line = held_line(second);
    change(test, "hold", both);
    g_autoptr(CliProcess) wait = CLI(test->berthd, "wait", first, second);
    run_until(count(cli_err(wait), first_line) == 1 && count(cli_err(wait), second_line) == 1);
    change(test, "release", first);
    change(test, "hold", first);
    cancel(test, number);
    assert_cli_status(wait, 125);
    assert_int_equal(count(cli_err(wait), second_line), 1);
    assert_true(count(cli_err(wait), first_line) <= 2); /* it may have been seen in between */
    cancel(test, filler);
}

/* It waits again, for what was asked for while it ran. */
static void wait_says_of_a_task_that_lost_its_guest_that_it_is_held(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 number = submit_array(test, "0-1%1");
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, number);
    g_autofree char *task = g_strdup_printf("%s[0]", job);
    g_autofree char *line = held_line(task);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, number);
    g_autoptr(CliProcess) wait = CLI(test->berthd, "wait", task);
    change(test, "hold", job);
    fake_agent_crash(test->agent);
    fake_agent_drop(test->agent);
    run_until(count(cli_err(wait), line) == 1);
    cancel(test, number);
    assert_cli_status(wait, 125);
    assert_string_equal(cli_err(wait), line);
}

/* VERB, of N tasks from FIRST on that are as many ranges. */
static void change_some(BerthdTest *test, const char *verb, guint64 job, guint first, guint n)
{
    g_autoptr(GString) tasks = g_string_new(NULL);
    for (guint i = 0; i < n; i++)
        g_string_append_printf(tasks, "%s%u", i > 0 ? "," : "", first + i * (i + 1) / 2);
    g_autofree char *name = g_strdup_printf("%" G_GUINT64_FORMAT "[%s]", job, tasks->str);
    change(test, verb, name);
}

/* In more ranges than an answer has. */
static void ls_counts_all_tasks_that_are_held(void **state)
{
    BerthdTest *test = *state;
    guint64 filler = fill_node(test);
    guint64 number = submit_array(test, "0-999999");
    g_autofree char *half = g_strdup_printf("%" G_GUINT64_FORMAT "[500000-999999]", number);
    change(test, "hold", half);
    change_some(test, "hold", number, 0, 900);
    change_some(test, "cancel", number, 500000, 400);
    g_autoptr(CliProcess) list = CLI(test->berthd, "ls");
    assert_cli_status(list, 0);
    assert_contains(cli_out(list), ", 500500 of the waiting held\n");
    cancel(test, number);
    cancel(test, filler);
}

static void submit_shows_progress_of_a_large_input_on_a_terminal_only(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) terminal =
        CLI_SHELL(test->berthd, "truncate -s 64M large && "
                                "script -qec '\"$BERTH\" submit -I large -- x' /dev/null");
    assert_cli_status(terminal, 0);
    assert_contains(cli_out(terminal), "\033[Kberth submit: sending \"large\": ");
    assert_contains(cli_out(terminal), " of 64 MiB (");
    g_autoptr(CliProcess) small =
        CLI_SHELL(test->berthd, "truncate -s 63M small && "
                                "script -qec '\"$BERTH\" submit -I small -- x' /dev/null");
    assert_cli_status(small, 0);
    assert_null(strstr(cli_out(small), "sending"));
    g_autoptr(CliProcess) file =
        CLI_SHELL(test->berthd, "truncate -s 65M other && \"$BERTH\" submit -I other -- x");
    assert_cli_status(file, 0);
    assert_string_equal(cli_err(file), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_of_waiting_job_says_why_and_again_when_it_is_another_reason),
        cmocka_unit_test(logs_of_waiting_job_say_why_if_they_follow),
        cmocka_unit_test(who_waits_for_a_node_that_is_away_is_told),
        cmocka_unit_test(wait_says_of_a_job_that_it_stands_still),
        cmocka_unit_test(wait_says_of_a_job_that_it_is_held),
        cmocka_unit_test(wait_says_that_only_held_tasks_of_an_array_are_left),
        cmocka_unit_test(wait_says_of_each_task_that_it_is_held),
        cmocka_unit_test(wait_says_of_a_task_that_lost_its_guest_that_it_is_held),
        cmocka_unit_test(ls_counts_all_tasks_that_are_held),
        cmocka_unit_test(submit_shows_progress_of_a_large_input_on_a_terminal_only),
    };
    return cmocka_run_group_tests(tests, berthd_test_setup, berthd_test_teardown);
}
