/* SPDX-License-Identifier: Apache-2.0 */
/* `berth events`, as operators and users see it. */
#include "config.h"

#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include <signal.h>

#define NOBODY 65534u

static guint64 ended_job(BerthdTest *test)
{
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    return job;
}

static guint n_lines(const char *text)
{
    guint n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void events_of_a_job_are_its_life_in_order(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *job = cli_job(ended_job(test));
    g_autofree char *other = cli_job(ended_job(test));
    g_autofree char *text = cli_output_of(CLI(test->berthd, "events", job));
    const char *at = text;
    static const char *const steps[] = {" job-submitted by root", " guest-start on n1",
                                        " COMPLETED on n1", " guest-released on n1"};
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_autofree char *line = g_strdup_printf("job %s%s", job, steps[i]);
        assert_contains(at, line);
        at = strstr(at, line);
    }
    g_autofree char *name = g_strdup_printf("job %s ", other);
    assert_null(strstr(text, name));
    g_autofree char *both = cli_output_of(CLI(test->berthd, "events", job, other));
    assert_contains(both, name);
    assert_null(strstr(both, "node n1"));
}

static void events_without_a_job_are_all_of_them(void **state)
{
    BerthdTest *test = *state;
    ended_job(test);
    g_autofree char *text = cli_output_of(CLI(test->berthd, "events"));
    g_autofree char *json = cli_output_of(CLI(test->berthd, "events", "--json"));
    assert_contains(text, "       1  2");
    assert_contains(text, "cluster image-imported by root: tiny");
    assert_contains(text, "node n1 node-up");
    assert_contains(json, "\"seq\":\"1\"");
    assert_int_equal(n_lines(text), n_lines(json));
    assert_int_equal(n_lines(text), berthd_fixture_events(test->berthd)->len);
}

static void events_of_a_node_are_its_own_and_of_what_ran_there(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.status = 0};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autofree char *ran = g_strdup_printf("job %" G_GUINT64_FORMAT " guest-running on n1", job);
    g_autofree char *came = g_strdup_printf("job %" G_GUINT64_FORMAT " job-submitted", job);
    g_autoptr(CliProcess) here = CLI(test->berthd, "events", "--node", "n[1-2]");
    assert_cli_status(here, 1);
    assert_contains(cli_err(here), "there is no node \"n2\"");
    assert_contains(cli_out(here), ran);
    assert_contains(cli_out(here), "node n1 node-up");
    assert_null(strstr(cli_out(here), came));
    g_autoptr(CliProcess) elsewhere = CLI(test->berthd, "events", "-w", "n2");
    assert_cli_status(elsewhere, 1);
    assert_string_equal(cli_out(elsewhere), "");
    g_autoptr(CliProcess) wrong = CLI(test->berthd, "events", "--node", "n[2-");
    assert_cli_status(wrong, 2);
}

static void events_since_a_number_or_a_time_are_those_after_it(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *job = cli_job(ended_job(test));
    guint all = berthd_fixture_events(test->berthd)->len;
    g_autofree char *three = cli_output_of(CLI(test->berthd, "events", "--since", "3"));
    assert_int_equal(n_lines(three), all - 3);
    g_autofree char *hour = cli_output_of(CLI(test->berthd, "events", "-s", "1h"));
    assert_int_equal(n_lines(hour), all);
    g_autofree char *future = cli_output_of(CLI(test->berthd, "events", "-s", "2999-01-01", job));
    assert_string_equal(future, "");
    g_autoptr(CliProcess) wrong = CLI(test->berthd, "events", "-s", "yesterday");
    assert_cli_status(wrong, 2);
    g_autoptr(CliProcess) too_new = CLI(test->berthd, "events", "-f", "--since", "1000000");
    assert_cli_status(too_new, 1);
    assert_contains(cli_err(too_new), "cannot resume after event 1000000");
}

static void events_that_are_followed_go_on_over_a_restart_each_once(void **state)
{
    BerthdTest *test = *state;
    guint64 first = ended_job(test);
    g_autofree char *first_line =
        g_strdup_printf("job %" G_GUINT64_FORMAT " guest-released", first);
    g_autoptr(CliProcess) events = CLI(test->berthd, "events", "--follow", "--since", "0");
    run_until(strstr(cli_out(events), first_line) != NULL);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    guint64 second = ended_job(test);
    g_autofree char *second_line =
        g_strdup_printf("job %" G_GUINT64_FORMAT " guest-released", second);
    run_until(strstr(cli_out(events), second_line) != NULL);
    cli_signal(events, SIGTERM);
    assert_cli_status(events, 128 + SIGTERM);
    g_auto(GStrv) lines = g_strsplit(cli_out(events), "\n", -1);
    guint n = g_strv_length(lines) - 1;
    for (guint i = 0; i < n; i++)
        assert_int_equal(g_ascii_strtoull(g_strchug(lines[i]), NULL, 10), i + 1);
}

static void events_that_are_followed_from_now_on_are_new_ones(void **state)
{
    BerthdTest *test = *state;
    guint64 first = ended_job(test);
    g_autofree char *old = g_strdup_printf("job %" G_GUINT64_FORMAT " ", first);
    g_autoptr(CliProcess) events = CLI(test->berthd, "events", "-f");
    guint64 job = 0;
    /* It has begun when it says anything. */
    while (cli_out_length(events) == 0)
        job = ended_job(test);
    g_autofree char *line = g_strdup_printf("job %" G_GUINT64_FORMAT " ", job + 1);
    ended_job(test);
    run_until(strstr(cli_out(events), line) != NULL);
    assert_null(strstr(cli_out(events), old));
    cli_signal(events, SIGTERM);
    assert_cli_status(events, 128 + SIGTERM);
}

/* The words of a job are its owner's; that there is one is no secret. */
static void events_of_others_have_no_words(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.gone = BERTH__REASON__REASON_GUEST_CRASHED,
                            .console_tail = "a secret of root's"};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__FAILED);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    g_autofree char *mine = cli_output_of(CLI(test->berthd, "events"));
    assert_contains(mine, "secret");
    g_autofree char *theirs = cli_output_of(cli_start_as(berthd_fixture_socket(test->berthd),
                                                         NOBODY, (const char *[]){"events", NULL}));
    assert_null(strstr(theirs, "secret"));
    assert_contains(theirs, " FAILED on n1: guest-crashed");
}

/* Who asked for what, and why; nobody else is told why. */
static void events_say_who_wanted_what_and_why(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 number = berthd_fixture_submit_plain(test->berthd);
    g_autofree char *job = cli_job(number);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, number);
    g_free(cli_output_of(CLI(test->berthd, "freeze", "--reason", "it is too hot", job)));
    g_free(cli_output_of(CLI(test->berthd, "thaw", job)));
    g_free(cli_output_of(CLI(test->berthd, "extend", "-r", "slow", "-b", "1h", job)));
    g_autofree char *text = cli_output_of(CLI(test->berthd, "events", job));
    assert_contains(text, " job-freeze-requested by root (why: it is too hot)\n");
    assert_contains(text, " job-thaw-requested by root\n");
    assert_contains(text, " job-extend-requested by root: 02:00:00, before 01:00:00 (why: slow)\n");
    g_autofree char *json = cli_output_of(CLI(test->berthd, "events", "--json", job));
    assert_contains(json, "\"why\":\"it is too hot\"");
    g_autofree char *theirs = cli_output_of(cli_start_as(
        berthd_fixture_socket(test->berthd), NOBODY, (const char *[]){"events", job, NULL}));
    assert_contains(theirs, " job-freeze-requested by root\n");
    assert_null(strstr(theirs, "hot"));
    g_autoptr(CliProcess) odd = CLI(test->berthd, "freeze", "--reason", "two\nlines", job);
    assert_cli_status(odd, 1);
    assert_contains(cli_err(odd), "the reason has a control character");
    g_autofree char *after = cli_output_of(CLI(test->berthd, "events", job));
    assert_string_equal(after, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(events_of_a_job_are_its_life_in_order),
        BERTHD_TEST(events_without_a_job_are_all_of_them),
        BERTHD_TEST(events_of_a_node_are_its_own_and_of_what_ran_there),
        BERTHD_TEST(events_since_a_number_or_a_time_are_those_after_it),
        BERTHD_TEST(events_that_are_followed_go_on_over_a_restart_each_once),
        BERTHD_TEST(events_that_are_followed_from_now_on_are_new_ones),
        BERTHD_TEST(events_of_others_have_no_words),
        BERTHD_TEST(events_say_who_wanted_what_and_why),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
