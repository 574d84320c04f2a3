/* SPDX-License-Identifier: Apache-2.0 */
/* `berth run`: a job's output and status become its own, signals cancel the job, and what Berth
 * itself fails at is never mistaken for the job's. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include <signal.h>
#include <unistd.h>

static char *file_content(BerthdTest *test, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), name, NULL);
    char *content = NULL;
    g_file_get_contents(path, &content, NULL, &error);
    assert_no_error(error);
    return content;
}

/* --- output and status -------------------------------------------------------------------------- */

static void run_output_comes_apart_and_status_is_the_jobs(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        FakePlan plan;
        int status;
        const char *err; /* what standard error ends with */
    } cases[] = {
        {{.out = "to stdout\n", .err = "to stderr\n"}, 0, "to stderr\n"},
        {{.out = "to stdout\n", .err = "x\n", .status = 3}, 3, "ended with status 3\n"},
        {{.out = "to stdout\n", .status = 125}, 125, "ended with status 125\n"},
        {{.out = "to stdout\n", .signal = SIGSEGV}, 128 + SIGSEGV, ""},
        {{.out = "to stdout\n", .signal = SIGKILL, .oom_kills = 1},
         128 + SIGKILL,
         "its kernel ended 1 process; ask for more with --memory, or with --memory-max for more "
         "when it is needed\n"},
        {{.out = "to stdout\n", .oom_kills = 1},
         0,
         "berth run: 1 process of the job was ended for lack of memory; ask for more with "
         "--memory\n"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        test->plan = cases[i].plan;
        g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--", "true");
        assert_cli_status(cli, cases[i].status);
        assert_string_equal(cli_out(cli), "to stdout\n");
        if (!g_str_has_suffix(cli_err(cli), cases[i].err)) {
            fail_msg("case %zu: \"%s\" does not end with \"%s\"", i, cli_err(cli), cases[i].err);
        }
    }
}

static void run_binary_output_arrives_to_the_byte(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GString) large = g_string_new(NULL);
    for (guint i = 0; large->len < 3u << 20; i++) {
        g_string_append_printf(large, "%u \x80\xff\r%c", i, (int)(1 + i % 255));
    }
    test->plan = (FakePlan){.out = large->str};
    g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--", "true");
    assert_cli_status(cli, 0);
    assert_int_equal(cli_out_length(cli), large->len);
    assert_memory_equal(cli_out(cli), large->str, large->len);
}

/* 125 and a reason, whatever it is that Berth could not do. */
static void run_what_berth_fails_at_is_125(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *arguments[6];
        const char *err;
    } cases[] = {
        {{"run", NULL}, "name a script, or a command"},
        {{"run", "--no-such-option", "--", "x", NULL}, "Unknown option"},
        {{"run", "--image", "nope", "--", "x", NULL}, "no image \"nope\""},
        {{"run", "--memory", "999T", "--", "x", NULL}, "of memory cannot be had"},
        {{"run", "--vcpus", "65", "--", "x", NULL}, "the largest, n1, has 64 vCPUs"},
        {{"run", "/no/such/script", NULL}, "cannot read the script \"/no/such/script\""},
        {{"run", "--input", "/no/such/file", "--", "x", NULL}, "\"/no/such/file\""},
        {{"run", "--output", "no/such/file", "--", "x", NULL}, "\"no/such/file\""},
        {{"run", "--node", "n9", "--", "x", NULL}, "no node \"n9\""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli =
            cli_start(berthd_fixture_socket(test->berthd), cases[i].arguments, NULL);
        assert_cli_status(cli, 125);
        assert_contains(cli_err(cli), "berth run: ");
        assert_contains(cli_err(cli), cases[i].err);
    }
}

static void run_guest_that_does_not_boot_shows_its_console(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.gone = BERTH__REASON__REASON_BOOT_DEADLINE,
                            .console_tail = "Kernel panic\r\nnot \x1b[2Jsyncing\n"};
    g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--", "true");
    assert_cli_status(cli, 125);
    assert_contains(cli_err(cli), "ended FAILED");
    assert_contains(cli_err(cli), "  Kernel panic\n  not ?[2Jsyncing\n");
}

static void run_time_limit_ends_the_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "begun\n"};
    g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--time", "1s", "--", "true");
    assert_cli_status(cli, 128 + SIGTERM);
    assert_string_equal(cli_out(cli), "begun\n");
    assert_contains(cli_err(cli), "ended TIMEOUT");
}

/* --- where output goes -------------------------------------------------------------------------- */

static void run_output_files_get_the_output(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "out\n", .err = "err\n"};
    g_autoptr(CliProcess) apart =
        CLI(test->berthd, "run", "--output", "run-%j.out", "--error", "run.err", "--", "true");
    assert_cli_status(apart, 0);
    assert_string_equal(cli_out(apart), "");
    assert_string_equal(cli_err(apart), "");
    g_autofree char *name =
        g_strdup_printf("run-%" G_GUINT64_FORMAT ".out", berthd_test_newest_job(test));
    g_autofree char *out = file_content(test, name);
    g_autofree char *err = file_content(test, "run.err");
    assert_string_equal(out, "out\n");
    assert_string_equal(err, "err\n");
    g_autoptr(CliProcess) one =
        CLI(test->berthd, "run", "--output", "both", "--error", "both", "--", "true");
    assert_cli_status(one, 0);
    g_autofree char *both = file_content(test, "both");
    assert_int_equal(strlen(both), 8);
    assert_contains(both, "out\n");
    assert_contains(both, "err\n");
}

static void run_refused_leaves_an_output_file_as_it_was(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "kept", NULL);
    assert_true(g_file_set_contents(path, "of last week", -1, NULL));
    g_autoptr(CliProcess) cli =
        CLI(test->berthd, "run", "--output", "kept", "--image", "nope", "--", "true");
    assert_cli_status(cli, 125);
    g_autofree char *kept = file_content(test, "kept");
    assert_string_equal(kept, "of last week");
}

static void run_reader_that_goes_away_cancels_the_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "more than nobody reads\n"};
    g_autoptr(CliProcess) cli =
        CLI_SHELL(test->berthd, "{ \"$BERTH\" run -- true; echo $? >&2; } | :");
    assert_cli_status(cli, 0);
    assert_contains(cli_err(cli), "nobody reads the output any more: cancelling job ");
    assert_contains(cli_err(cli), "ended CANCELLED");
    assert_true(g_str_has_suffix(cli_err(cli), "\n143\n"));
    assert_int_equal(berthd_fixture_state_of(test->berthd, berthd_test_newest_job(test)),
                     BERTH__JOB_STATE__CANCELLED);
}

static void run_unread_output_of_an_ended_job_is_no_success(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "more than nobody reads\n"};
    g_autoptr(CliProcess) cli =
        CLI_SHELL(test->berthd, "{ \"$BERTH\" run -- true; echo $? >&2; } | :");
    assert_cli_status(cli, 0);
    /* The cancellation may still have come before the end. */
    assert_true(g_str_has_suffix(cli_err(cli), "Broken pipe\n125\n") ||
                strstr(cli_err(cli), "ended CANCELLED"));
}

static void logs_reader_that_goes_away_ends_it_quietly(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *large = g_strnfill(1u << 20, 'x');
    test->plan = (FakePlan){.out = large};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autofree char *script =
        g_strdup_printf("\"$BERTH\" logs %" G_GUINT64_FORMAT " | head -c 3", job);
    g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, script);
    assert_cli_status(cli, 0);
    assert_string_equal(cli_out(cli), "xxx");
    assert_string_equal(cli_err(cli), "");
    g_autofree char *closed = g_strdup_printf("\"$BERTH\" logs %" G_GUINT64_FORMAT " >&-", job);
    g_autoptr(CliProcess) without = CLI_SHELL(test->berthd, closed);
    assert_cli_status(without, 1);
    assert_contains(cli_err(without), "Bad file descriptor");
}

/* --- signals ------------------------------------------------------------------------------------ */

static void run_sigint_cancels_the_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "begun\n"};
    g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--", "true");
    run_until(g_str_equal(cli_out(cli), "begun\n"));
    cli_signal(cli, SIGINT);
    assert_cli_status(cli, 128 + SIGTERM);
    assert_contains(cli_err(cli), "cancelling job");
    assert_contains(cli_err(cli), "ended CANCELLED");
    assert_int_equal(berthd_fixture_state_of(test->berthd, berthd_test_newest_job(test)),
                     BERTH__JOB_STATE__CANCELLED);
}

static void run_sigterm_cancels_a_pending_job(void **state)
{
    BerthdTest *test = *state;
    guint64 before = berthd_test_newest_job(test);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--hold", "--", "true");
    run_until(berthd_test_newest_job(test) > before);
    cli_signal(cli, SIGTERM);
    assert_cli_status(cli, 125);
    assert_contains(cli_err(cli), "ended CANCELLED");
}

static void run_second_sigint_leaves_the_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "begun\n"};
    g_autoptr(CliProcess) cli = CLI(test->berthd, "run", "--", "true");
    run_until(g_str_equal(cli_out(cli), "begun\n"));
    fake_agent_cut(test->agent); /* nobody is there who could stop it */
    cli_signal(cli, SIGINT);
    run_until(strstr(cli_err(cli), "cancelling job") != NULL);
    cli_signal(cli, SIGINT);
    assert_cli_status(cli, 125);
    assert_contains(cli_err(cli), "left before the end of job");
    fake_agent_heal(test->agent);
    berthd_fixture_wait_state(test->berthd, berthd_test_newest_job(test),
                              BERTH__JOB_STATE__CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_output_comes_apart_and_status_is_the_jobs),
        cmocka_unit_test(run_binary_output_arrives_to_the_byte),
        cmocka_unit_test(run_what_berth_fails_at_is_125),
        cmocka_unit_test(run_guest_that_does_not_boot_shows_its_console),
        cmocka_unit_test(run_time_limit_ends_the_job),
        cmocka_unit_test(run_output_files_get_the_output),
        cmocka_unit_test(run_refused_leaves_an_output_file_as_it_was),
        cmocka_unit_test(run_reader_that_goes_away_cancels_the_job),
        cmocka_unit_test(run_unread_output_of_an_ended_job_is_no_success),
        cmocka_unit_test(logs_reader_that_goes_away_ends_it_quietly),
        cmocka_unit_test(run_sigint_cancels_the_job),
        cmocka_unit_test(run_sigterm_cancels_a_pending_job),
        cmocka_unit_test(run_second_sigint_leaves_the_job),
    };
    return cmocka_run_group_tests(tests, berthd_test_setup, berthd_test_teardown);
}
