/* SPDX-License-Identifier: Apache-2.0 */
/* `berth submit -` and `berth run -`: a script that is no file; and a number that nobody can read. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include "scheduler/daemon/pb.h"

static const Berth__StartGuestRequest *start_of(BerthdTest *test, CliProcess *cli)
{
    guint64 job = g_ascii_strtoull(cli_out(cli), NULL, 10);
    assert_true(job > 0);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    return fake_agent_start(test->agent, job);
}

static void submit_script_from_stdin_arrives(void **state)
{
    BerthdTest *test = *state;
    static const char *const sources[] = {
        "\"$BERTH\" submit --memory 200M - a 'b c' <<EOF\nSCRIPTEOF\n",
        "printf %s 'SCRIPT' | \"$BERTH\" submit --memory 200M - a 'b c'\n",
        "printf %s 'SCRIPT' | \"$BERTH\" submit --memory 200M /dev/stdin a 'b c'\n",
        "printf %s 'SCRIPT' >file; \"$BERTH\" submit --memory 200M - a 'b c' <file\n",
    };
    static const char script[] = "#!/bin/sh\n#BERTH --vcpus 3 --memory 1G\necho hi\n";
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++) {
        g_autoptr(GString) command = g_string_new(sources[i]);
        g_string_replace(command, "SCRIPT", script, 0);
        g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, command->str);
        assert_cli_status(cli, 0);
        assert_string_equal(cli_err(cli), "");
        const Berth__StartGuestRequest *start = start_of(test, cli);
        assert_int_equal(start->vcpus, 3);
        assert_int_equal(start->memory_mib, 200);
        assert_int_equal(start->task->n_command, 3);
        assert_string_equal(start->task->command[0], "stdin");
        assert_string_equal(start->task->command[2], "b c");
        assert_int_equal(start->task->script->size_bytes, strlen(script));
        g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, start->id->job);
        assert_string_equal(job->name, "stdin");
    }
}

static void run_script_from_stdin_prints_its_output(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "out\n"};
    g_autoptr(CliProcess) cli =
        CLI_SHELL(test->berthd, "echo 'echo hi' | \"$BERTH\" run --name piped -");
    assert_cli_status(cli, 0);
    assert_string_equal(cli_out(cli), "out\n");
    test->plan = (FakePlan){0};
}

static void submit_bad_script_from_stdin_is_refused(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *command;
        int status;
        const char *err;
    } cases[] = {
        {"\"$BERTH\" submit - </dev/null", 1, "the script \"stdin\" is empty"},
        {"\"$BERTH\" submit - <&-", 1, "cannot read the script from standard input: Bad file"},
        {"printf '\\n#BERTH --vcpus=no\\n' | \"$BERTH\" submit -", 2, "stdin:2: --vcpus: "},
        {"printf '#!/bin/sh\\r\\n' | \"$BERTH\" submit -", 1, "\"stdin\": line 1 ends in CR LF"},
        {"head -c 16777217 /dev/zero | \"$BERTH\" submit -", 1, "is larger than 16 MiB"},
        {"mkfifo pipe; \"$BERTH\" submit pipe", 1,
         "the script \"pipe\" is not a regular file; give \"-\" for a script from standard input"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, cases[i].command);
        assert_cli_status(cli, cases[i].status);
        assert_string_equal(cli_out(cli), "");
        assert_contains(cli_err(cli), cases[i].err);
    }
}

/* It is submitted: who is not told submits it again. */
static void submit_number_that_cannot_be_written_is_on_stderr(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *command;
        const char *why;
    } cases[] = {
        {"\"$BERTH\" submit -- x >/dev/full", "No space left on device"},
        {"\"$BERTH\" submit -- x >&-", "Bad file descriptor"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, cases[i].command);
        assert_cli_status(cli, 1);
        guint64 job = berthd_test_newest_job(test);
        g_autofree char *expected =
            g_strdup_printf("berth submit: job %" G_GUINT64_FORMAT
                            " was submitted, but its number could not be written: %s\n",
                            job, cases[i].why);
        assert_string_equal(cli_err(cli), expected);
        berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_script_from_stdin_arrives),
        cmocka_unit_test(run_script_from_stdin_prints_its_output),
        cmocka_unit_test(submit_bad_script_from_stdin_is_refused),
        cmocka_unit_test(submit_number_that_cannot_be_written_is_on_stderr),
    };
    return cmocka_run_group_tests(tests, berthd_test_setup, berthd_test_teardown);
}
