/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and their tasks at the command line, with a daemon that says what a script says: an array of 0-9, of which some
 * have ended, some run and some have not started. */
#include "tests/lib/array_script.h"
#include "tests/lib/cli_process.h"

#include <signal.h>

/* --- helpers ------------------------------------------------------------------------------------ */

/* (transfer full) */
static CliProcess *run(ArrayScript *script, const char *line, int status)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    g_string_truncate(script->asked, 0);
    CliProcess *cli = cli_start(script->daemon.socket, (const char *const *)words, NULL);
    assert_cli_status(cli, status);
    return cli;
}

static void assert_asks(ArrayScript *script, const char *line, const char *asked)
{
    g_autoptr(CliProcess) cli = run(script, line, 0);
    assert_string_equal(script->asked->str, asked);
    assert_string_equal(cli_err(cli), "");
}

static void assert_refused(ArrayScript *script, const char *line, int status, const char *why)
{
    g_autoptr(CliProcess) cli = run(script, line, status);
    if (strstr(cli_err(cli), why) == NULL)
        fail_msg("\"berth %s\" says \"%s\"", line, cli_err(cli));
    assert_string_equal(script->asked->str, "");
}

/* --- what is asked for -------------------------------------------------------------------------- */

static void verbs_ask_for_the_tasks_that_are_named(void **state)
{
    static const char *const cases[][2] = {
        {"cancel 42", "Cancel 42\n"},
        {"cancel 42[7]", "Cancel 42[7]\n"},
        {"cancel 42[20-30:2,0-9] 17 42[3]", "Cancel 42[0-9,20-30:2]\nCancel 17\nCancel 42[3]\n"},
        {"freeze --no-wait 42[2-3]", "Freeze 42[2-3]\n"},
        {"freeze 42[2-3]", "Freeze 42[2-3]\n"},
        {"thaw --no-wait 42[2]", "Thaw 42[2]\n"},
        {"checkpoint 42[2-3]", "Checkpoint 42[2-3]\n"},
        {"checkpoint rm 42[2] 1", "RemoveCheckpoint 42[2]\n"},
        {"restore 42[2] 1", "Restore 42[2]\n"},
        {"migrate 42[2]", "Migrate 42[2]\n"},
        {"migrate 42", "Migrate 42\n"},
        {"migrate --cancel 42[2]", "CancelMigration 42[2]\n"},
        {"resize --vcpus 2 42[2]", "Resize 42[2]\n"},
        {"resize --vcpus 2 42", "Resize 42\n"},
        {"logs 42[7]", "Logs 42[7]\n"},
        {"logs -f 42[0]", "Logs -f 42[0]\n"},
        {"logs 42[0,7-9:2]", "Logs 42[0]\nLogs 42[7]\nLogs 42[9]\n"},
        {"logs -f 42[3,1]", "Logs -f 42[1]\nLogs -f 42[3]\n"},
        {"logs 42", "Logs 42\n"},
        {"restore 42", "Restore 42\n"},
        {"checkpoint rm 42 1", "RemoveCheckpoint 42\n"},
        {"hold 42", "Hold 42\n"},
        {"hold 42[7]", "Hold 42[7]\n"},
        {"release 42[0-9,20] 17", "Release 42[0-9,20]\nRelease 17\n"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_asks(*state, cases[i][0], cases[i][1]);
}

/* Whether it is one that can be meant is the daemon's to say. */
static void verbs_of_one_task_ask_once(void **state)
{
    ArrayScript *script = *state;
    static const char *const cases[] = {"logs 42", "logs 42[0]", "checkpoint rm 42[0] 1",
                                        "restore 42[0] 1"};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli = run(script, cases[i], 0);
        assert_int_equal(script->n_gets, 0);
    }
}

static void verbs_of_one_task_refuse_several(void **state)
{
    static const struct {
        const char *line;
        int status;
    } cases[] = {
        {"restore 42[0-1]", 2},  {"checkpoint rm 42[0-1] 1", 2}, {"exec 42[0-1] true", 125},
        {"attach 42[0,1]", 125}, {"wait 42[0-1]", 125},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_refused(*state, cases[i].line, cases[i].status, "name it as 42[INDEX]");
}

static void verbs_of_whole_jobs_refuse_tasks(void **state)
{
    static const char *const cases[] = {"extend --by 1h 42[7]", "checkpoint --every 1h 42[7]"};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_refused(*state, cases[i], 2, "of whole jobs: name it as 42");
}

static void verbs_say_what_is_no_array_and_no_task(void **state)
{
    static const char *const verbs[] = {"show", "ls", "why", "checkpoint ls", "events"};
    for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
        g_autofree char *plain = g_strconcat(verbs[i], " 17[3]", NULL);
        g_autofree char *none = g_strconcat(verbs[i], " 42[77]", NULL);
        assert_refused(*state, plain, 1, "job 17 is no array: name it without indices");
        assert_refused(*state, none, 1, "there is no job 42[77]: its tasks are 0-9");
    }
    assert_refused(*state, "logs 17[3-4]", 1, "job 17 is no array: name it without indices");
    assert_refused(*state, "logs 42[77-78]", 1, "there is no job 42[77-78]: its tasks are 0-9");
    assert_refused(*state, "wait 17[3]", 125, "job 17 is no array");
    assert_refused(*state, "wait 42[77]", 125, "there is no job 42[77]");
    assert_refused(*state, "show 42[]", 2, "42[]");
    assert_refused(*state, "show 42[5-1]", 2, "a range ends before it begins");
}

/* --- looking ------------------------------------------------------------------------------------ */

static void ls_has_one_line_for_an_array(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "ls", 0);
    assert_contains(cli_out(cli), "42[0-9%5]  sums  alice  RUNNING");
    assert_contains(cli_out(cli), "4 running, 4 waiting, 1 completed, 1 failed\n");
    assert_null(strstr(cli_out(cli), "node2"));
    assert_int_equal(script->n_gets, 0);
    script->tasks = "WWWWWWWWWW"; /* no task has a record */
    g_autoptr(CliProcess) waits = run(script, "ls", 0);
    assert_contains(cli_out(waits), "PENDING");
    assert_contains(cli_out(waits), "10 waiting (held-by-user)\n");
}

/* The list has only the first of them. */
static void ls_tasks_has_those_that_have_started_and_not_ended(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "ls --tasks", 0);
    g_auto(GStrv) lines = g_strsplit(g_strchomp((char *)cli_out(cli)), "\n", -1);
    assert_int_equal(g_strv_length(lines), 1 + 1 + 5);
    assert_contains(lines[1], "42[0-9%5]  sums");
    assert_contains(lines[2], "    42[2]  sums  alice  RUNNING");
    assert_contains(lines[2], "node2");
    assert_contains(lines[5], "    42[5]  sums");
    assert_contains(lines[6], "    42[6]  sums  alice  PENDING");
}

static void ls_of_tasks_has_a_line_for_each(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "ls 42[0-2,6-9]", 0);
    g_auto(GStrv) lines = g_strsplit(g_strchomp((char *)cli_out(cli)), "\n", -1);
    assert_int_equal(g_strv_length(lines), 1 + 7);
    assert_contains(lines[1], "42[0]  sums  alice  COMPLETED");
    assert_contains(lines[2], "42[1]  sums  alice  FAILED");
    assert_contains(lines[3], "42[2]  sums  alice  RUNNING");
    assert_contains(lines[7], "42[9]  sums  alice  PENDING");
    assert_contains(lines[7], "resources");
    g_autoptr(CliProcess) failed = run(script, "ls -s failed 42[0-9]", 0);
    assert_contains(cli_out(failed), "42[1]");
    assert_null(strstr(cli_out(failed), "42[0]"));
    g_autoptr(CliProcess) json = run(script, "ls --json 42[0-1]", 0);
    assert_contains(cli_out(json), "\"index\":1,");
}

/* (transfer full): the indices in the lines of JSON of LINE, line by line: "2 3 4 |5 |" */
static char *listed(ArrayScript *script, const char *line)
{
    g_autoptr(CliProcess) cli = run(script, line, 0);
    GString *indices = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(g_strchomp((char *)cli_out(cli)), "\n", -1);
    for (char **one = lines; *one != NULL; one++) {
        for (const char *at = *one; (at = strstr(at, "\"index\":")) != NULL; at++)
            g_string_append_printf(indices, "%u ",
                                   (guint)g_ascii_strtoull(at + strlen("\"index\":"), NULL, 10));
        g_string_append_c(indices, '|');
    }
    return g_string_free(indices, FALSE);
}

static void ls_has_only_tasks_in_the_states_that_are_named(void **state)
{
    static const char *const cases[][2] = {
        {"ls --json -s failed 42[0-9]", "1 |"},
        {"ls --json -s running,failed 42[0-9]", "1 2 |3 4 5 |"},
        {"ls --json -s timeout 42[0-9]", ""},
        {"ls --json --tasks", "2 3 4 |5 6 |"},
        {"ls --json --tasks -s pending", "|6 |"},
        {"ls --json --tasks -s failed", "1 |"},
        {"ls --json --tasks -s failed,running", "1 2 |3 4 5 |"},
        {"ls --json --tasks -s timeout", ""},
        {"ls --json", "2 3 4 |"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *indices = listed(*state, cases[i][0]);
        assert_string_equal(indices, cases[i][1]);
    }
    g_autoptr(CliProcess) table = run(*state, "ls --tasks -s pending", 0);
    assert_contains(cli_out(table), "42[6]  sums");
    assert_null(strstr(cli_out(table), "42[2]"));
}

/* No list has them, and the array is in another state. */
static void ls_tasks_has_ended_ones_whose_state_is_named(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "ls --tasks -s failed", 0);
    g_auto(GStrv) lines = g_strsplit(g_strchomp((char *)cli_out(cli)), "\n", -1);
    assert_int_equal(g_strv_length(lines), 1 + 1 + 1);
    assert_contains(lines[1], "42[0-9%5]  sums  alice  RUNNING");
    assert_contains(lines[2], "    42[1]  sums  alice  FAILED");
    assert_string_equal(script->asked->str,
                        "List FAILED PENDING RUNNING SUSPENDED CANCELLED TIMEOUT "
                        "NODE_FAIL OUT_OF_MEMORY\n");
    assert_int_equal(script->n_pages, 1); /* it has all that failed */
    g_autoptr(CliProcess) none = run(script, "ls --tasks -s timeout", 0);
    assert_null(strstr(cli_out(none), "42["));
    assert_int_equal(script->n_pages, 1);
    g_autoptr(CliProcess) jobs = run(script, "ls -s failed", 0);
    assert_string_equal(script->asked->str, "List FAILED\n");
}

static void show_of_an_array_is_a_summary(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "show 42", 0);
    static const char *const parts[] = {
        "Job              42\n",
        "State            RUNNING\n",
        "Tasks            0-9\n",
        "At a time        5 tasks\n",
        "Now              4 running, 4 waiting, 1 completed, 1 failed\n",
        "Not started      7-9\n",
        "FAILED           1\n",
        "42[2]            RUNNING on node2\n",
        "Output file      /tmp/out-%j-%a\n",
        "and 2 more: berth ls --tasks 42\n"}; /* one of them was requeued, and waits */
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        assert_contains(cli_out(cli), parts[i]);
    assert_null(strstr(cli_out(cli), "42[5]")); /* it is no more than one answer */
    script->tasks = "WWWWWWWWWW";
    g_autoptr(CliProcess) waits = run(script, "show 42", 0);
    assert_contains(cli_out(waits), "Not started      0-9\n");
    assert_null(strstr(cli_out(waits), "more: "));
}

/* Whose output is copied yet is none of those that have not. */
static void tasks_that_have_ended_are_not_counted_as_listed(void **state)
{
    ArrayScript *script = *state;
    script->tasks = "CCRPPWWWWW";
    script->output_pending = TRUE;
    g_autoptr(CliProcess) show = run(script, "show 42", 0);
    assert_null(strstr(cli_out(show), "42[0]"));
    assert_contains(cli_out(show), "42[2]            RUNNING on node2\n"
                                   "and 2 more: berth ls --tasks 42\n");
    g_autofree char *indices = listed(script, "ls --json --tasks");
    assert_string_equal(indices, "2 |3 4 |");
}

static void show_of_a_task_is_that_of_a_job(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "show 42[1]", 0);
    assert_contains(cli_out(cli), "Job              42[1]\n");
    assert_contains(cli_out(cli), "State            FAILED\n");
    assert_contains(cli_out(cli), "Exit status      3\n");
    assert_contains(cli_out(cli), "Output file      /tmp/out-42-1\n");
    assert_null(strstr(cli_out(cli), "waiting"));
    g_autoptr(CliProcess) waits = run(script, "show 42[8]", 0);
    assert_contains(cli_out(waits), "State            PENDING\n");
    g_autoptr(CliProcess) several = run(script, "show 42[0-1]", 0);
    assert_contains(cli_out(several), "42[0]            COMPLETED\n");
    assert_contains(cli_out(several), "42[1]            FAILED\n");
}

static const ArrayHappening story[] = {
    {.kind = BERTH__EVENT__KIND__GUEST_RUNNING, .task = 7},
    {.kind = BERTH__EVENT__KIND__GUEST_RUNNING, .task = 8},
    {BERTH__EVENT__KIND__TASK_STATE, BERTH__JOB_STATE__CANCELLED, 0, 9, 1, 0, FALSE},
    {0}};

static void events_name_tasks_and_ranges_of_them(void **state)
{
    ArrayScript *script = *state;
    script->happenings = story;
    const char *const words[] = {"events", "-f", "-s", "0", "42", NULL};
    g_autoptr(CliProcess) cli = cli_start(script->daemon.socket, words, NULL);
    run_until(strstr(cli_out(cli), "CANCELLED") != NULL);
    assert_contains(cli_out(cli), "  job 42[7] guest-running on node2\n");
    assert_contains(cli_out(cli), "  job 42[8] guest-running on node2\n");
    assert_contains(cli_out(cli), "  job 42[0-9] CANCELLED on node2\n");
    cli_signal(cli, SIGTERM);
    cli_wait(cli);
}

static void events_of_tasks_are_those_that_are_of_one_of_them(void **state)
{
    ArrayScript *script = *state;
    script->happenings = story;
    const char *const words[] = {"events", "-f", "-s", "0", "42[6-7]", "42[9,77]", "42[78]", NULL};
    g_autoptr(CliProcess) cli = cli_start(script->daemon.socket, words, NULL);
    run_until(strstr(cli_out(cli), "CANCELLED") != NULL);
    assert_contains(cli_out(cli), "  job 42[7] guest-running on node2\n");
    assert_contains(cli_out(cli), "  job 42[0-9] CANCELLED on node2\n");
    assert_null(strstr(cli_out(cli), "42[8]"));
    cli_signal(cli, SIGTERM);
    cli_wait(cli);
    assert_string_equal(cli_err(cli), "berth events: there is no job 42[78]: its tasks are 0-9\n");
    const char *const all_words[] = {"events", "-f", "-s", "0", "42[7]", "42", "42[8]", NULL};
    g_autoptr(CliProcess) all = cli_start(script->daemon.socket, all_words, NULL);
    run_until(strstr(cli_out(all), "CANCELLED") != NULL);
    assert_contains(cli_out(all), "  job 42[8] guest-running on node2\n");
    cli_signal(all, SIGTERM);
    cli_wait(all);
}

/* All over one connection, and what the array is was asked once. */
static void logs_of_several_tasks_have_a_heading_each(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) several = run(script, "logs 42[7,0-2,9]", 0);
    assert_string_equal(cli_out(several), "==> 42[0] <==\ntask 0\n"
                                          "\n==> 42[1] <==\ntask 1"
                                          "\n==> 42[2] <==\ntask 2\n"
                                          "\n==> 42[7] <==\n"
                                          "\n==> 42[9] <==\n");
    assert_int_equal(script->n_gets, 1);
    assert_int_equal(script->daemon.n_peers, 1);
    g_autoptr(CliProcess) quiet = run(script, "logs -q 42[2,4-5,7]", 0);
    assert_string_equal(cli_out(quiet), "task 2\ntask 4\ntask 5\n");
    g_autoptr(CliProcess) one = run(script, "logs 42[2,2-2]", 0);
    assert_string_equal(cli_out(one), "task 2\n");
}

static void logs_of_tasks_that_are_not_all_there_are_of_the_others(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "logs 42[8-999999:2,5]", 1);
    assert_string_equal(cli_out(cli), "==> 42[5] <==\ntask 5\n\n==> 42[8] <==\n");
    assert_string_equal(cli_err(cli),
                        "berth logs: there is no job 42[10-999998:2]: its tasks are 0-9\n");
}

/* However many tasks it has, one is asked after. */
static void why_of_an_array_tells_of_the_next_that_waits(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "why 42", 0);
    assert_string_equal(cli_out(cli), "Job 42 (sums) of alice: RUNNING\n"
                                      "4 tasks wait; of 42[7], the next one:\n"
                                      "  It waits: as many tasks of its array run as may.\n"
                                      "Of its tasks: 4 running, 4 waiting, 1 completed, 1 failed\n"
                                      "  42[2]  RUNNING on node2\n"
                                      "  42[3]  RUNNING on node2\n"
                                      "  42[4]  RUNNING on node2\n"
                                      "  and 1 more: berth ls --tasks 42\n"
                                      "berth why 42[INDEX] tells of one task in full.\n");
    assert_string_equal(script->asked->str, "Explain 42[7]\n");
    assert_int_equal(script->n_gets, 2);
    assert_int_equal(script->n_watches, 0); /* nor has it all that happened */
    g_autoptr(CliProcess) json = run(script, "why --json 42", 0);
    assert_string_equal(script->asked->str, "Explain 42[7]\n");
}

static void why_of_several_tasks_is_that_of_an_array(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) cli = run(script, "why 42[1,5-6]", 0);
    assert_contains(cli_out(cli), "Job 42[1,5-6] (sums) of alice: RUNNING\n42[6] waits:\n  It ");
    assert_contains(cli_out(cli), "Of these tasks: 1 running, 1 waiting, 1 failed\n"
                                  "  42[5]  RUNNING on node2\n"
                                  "berth why 42[INDEX]");
    assert_string_equal(script->asked->str, "Explain 42[6]\n");
    script->tasks = "CFRRCCCCCC";
    g_autoptr(CliProcess) runs = run(script, "why 42", 0);
    assert_contains(cli_out(runs), "Job 42 (sums) of alice: RUNNING\nOf its tasks: 2 running, ");
    assert_string_equal(script->asked->str, "");
}

static void why_of_a_task_is_that_of_a_job(void **state)
{
    ArrayScript *script = *state;
    g_autoptr(CliProcess) one = run(script, "why 42[2]", 0);
    assert_contains(cli_out(one), "Job 42[2] (sums) of alice: RUNNING\n  It runs on ");
    assert_contains(cli_out(one), "What happened:\n");
    assert_null(strstr(cli_out(one), "tasks: "));
    assert_string_equal(script->asked->str, "Explain 42[2]\n");
}

/* --- waiting ------------------------------------------------------------------------------------ */

#define ENDS(index, becomes)                                                                       \
    {                                                                                              \
        BERTH__EVENT__KIND__TASK_STATE, BERTH__JOB_STATE__COMPLETED, index, 0, 0, becomes, FALSE   \
    }

/* It is looked at twice, and not once for each of its tasks. */
static void wait_for_an_array_waits_for_all_its_tasks(void **state)
{
    ArrayScript *script = *state;
    static const char *const later[] = {"CFCCCCCCCC"};
    static const ArrayHappening ends[] = {
        ENDS(2, 0),
        ENDS(3, 0),
        ENDS(4, 0),
        ENDS(5, 0),
        ENDS(6, 0),
        {.kind = BERTH__EVENT__KIND__GUEST_RUNNING},
        {BERTH__EVENT__KIND__TASK_STATE, BERTH__JOB_STATE__COMPLETED, 7, 9, 1, 1, FALSE},
        {0}};
    script->happenings = ends;
    script->later = later;
    g_autoptr(CliProcess) cli = run(script, "wait 42", 1);
    assert_string_equal(cli_out(cli), "42 FAILED\n");
    assert_int_equal(script->n_gets, 2);
    assert_int_equal(script->n_watches, 1);
    script->tasks = "CCCCCCCCCC";
    g_autoptr(CliProcess) good = run(script, "wait 42", 0);
    assert_string_equal(cli_out(good), "42 COMPLETED\n");
}

static void wait_for_a_task_is_for_that_alone(void **state)
{
    ArrayScript *script = *state;
    static const char *const later[] = {"CFRRRCPWWW"};
    static const ArrayHappening ends[] = {ENDS(3, 0), ENDS(4, 0), ENDS(5, 1), {0}};
    script->happenings = ends;
    script->later = later;
    g_autoptr(CliProcess) cli = run(script, "wait 42[5]", 0);
    assert_string_equal(cli_out(cli), "42[5] COMPLETED\n");
    assert_int_equal(script->n_gets, 2);
    g_autoptr(CliProcess) failed = run(script, "wait 42[0] 42[1] 42[0]", 3);
    assert_string_equal(cli_out(failed), "42[0] COMPLETED\n42[1] FAILED\n");
}

static gboolean is_watched(const ArrayScript *script, guint64 job)
{
    for (guint i = 0; i < script->watched->len; i++)
        if (g_array_index(script->watched, guint64, i) == job)
            return TRUE;
    return FALSE;
}

/* However many end one after the other; and of nobody else's is it told. */
static void wait_for_several_watches_these_once(void **state)
{
    ArrayScript *script = *state;
    static const char *const later[] = {"CFRCRRPWWW", "CFRCCRPWWW"};
    static const ArrayHappening ends[] = {ENDS(3, 1),
                                          {.kind = BERTH__EVENT__KIND__TASK_STATE,
                                           .state = BERTH__JOB_STATE__COMPLETED,
                                           .ends_plain = TRUE},
                                          ENDS(4, 2),
                                          {0}};
    script->happenings = ends;
    script->later = later;
    g_autoptr(CliProcess) cli = run(script, "wait 42[4] 17 42[3]", 0);
    assert_string_equal(cli_out(cli), "42[3] COMPLETED\n17 COMPLETED\n42[4] COMPLETED\n");
    assert_int_equal(script->n_gets, 6);
    assert_int_equal(script->n_watches, 1);
    assert_int_equal(script->watched->len, 2);
    assert_true(is_watched(script, 17) && is_watched(script, 42));
}

/* The answer does not know of it yet, and no other end comes. */
static void wait_counts_what_ends_while_it_looks(void **state)
{
    ArrayScript *script = *state;
    static const char *const later[] = {"CFCCCCCCCR", "CFCCCCCCCC"};
    static const ArrayHappening ends[] = {
        {BERTH__EVENT__KIND__TASK_STATE, BERTH__JOB_STATE__COMPLETED, 2, 9, 1, 1, FALSE},
        ENDS(9, 2),
        {0}};
    script->happenings = ends;
    script->later = later;
    script->tells_early = TRUE;
    g_autoptr(CliProcess) cli = run(script, "wait 42", 1);
    assert_string_equal(cli_out(cli), "42 FAILED\n");
    assert_int_equal(script->n_gets, 3);
    assert_int_equal(script->n_watches, 1);
}

static void ls_watch_of_named_jobs_watches_these(void **state)
{
    ArrayScript *script = *state;
    const char *const words[] = {"ls", "--watch", "42[1]", "42[2-3]", NULL};
    g_autoptr(CliProcess) cli = cli_start(script->daemon.socket, words, NULL);
    run_until(script->n_watches == 1);
    assert_true(is_watched(script, 42) && !is_watched(script, 17));
    cli_signal(cli, SIGTERM);
    assert_cli_status(cli, 128 + SIGTERM);
    assert_contains(cli_out(cli), "42[3]");
}

/* What has ended is not over before it is where its user looks for it. */
static void wait_for_an_array_waits_for_its_output(void **state)
{
    ArrayScript *script = *state;
    static const ArrayHappening copies[] = {{.kind = BERTH__EVENT__KIND__OUTPUT_COPIED, .task = 0},
                                            {.kind = BERTH__EVENT__KIND__OUTPUT_COPIED, .task = 1},
                                            {.kind = BERTH__EVENT__KIND__OUTPUT_COPIED, .task = 2},
                                            {0}};
    script->tasks = "CCCCCCCCCC";
    script->output_pending = TRUE;
    script->happenings = copies;
    g_auto(GStrv) words = g_strsplit("wait 42", " ", -1);
    g_autoptr(CliProcess) cli = cli_start(script->daemon.socket, (const char *const *)words, NULL);
    run_until(script->n_watches == 1);
    script->output_pending = FALSE;
    assert_cli_status(cli, 0);
    assert_int_equal(script->n_gets, 2);
}

/* The answer that says that it has ended has none of its tasks. */
static void wait_for_an_array_says_whose_output_is_lost(void **state)
{
    ArrayScript *script = *state;
    script->tasks = "CCCCCCCCLC";
    g_autoptr(CliProcess) one = run(script, "wait 42", 0);
    assert_string_equal(cli_err(one),
                        "berth wait: job 42[8]: its output was not copied: no space\n");
    assert_int_equal(script->n_gets, 1);
    assert_int_equal(script->n_pages, 4); /* of three tasks each */
    script->tasks = "LLFLLLLCLC";
    g_autoptr(CliProcess) many = run(script, "wait -q 42", 1);
    g_auto(GStrv) lines = g_strsplit(cli_err(many), "\n", -1);
    assert_int_equal(g_strv_length(lines), 5 + 1 + 1);
    assert_string_equal(lines[4], "berth wait: job 42[5]: its output was not copied: no space");
    assert_string_equal(lines[5], "berth wait: job 42: the output of 2 more of its tasks was not "
                                  "copied (berth logs has it)");
    g_autoptr(CliProcess) task = run(script, "wait 42[7] 42[8]", 0);
    assert_string_equal(cli_err(task),
                        "berth wait: job 42[8]: its output was not copied: no space\n");
    script->no_files = TRUE; /* there is nothing to be lost */
    script->n_pages = 0;
    g_autoptr(CliProcess) none = run(script, "wait 42", 1);
    assert_int_equal(script->n_pages, 0);
}

/* --- one of several ----------------------------------------------------------------------------- */

static void migrate_waits_for_the_task_that_is_named(void **state)
{
    ArrayScript *script = *state;
    static const ArrayHappening moved[] = {
        {.kind = BERTH__EVENT__KIND__GUEST_MIGRATED, .task = 3},
        {.kind = BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED, .task = 2},
        {0}};
    script->happenings = moved;
    g_autoptr(CliProcess) cli = run(script, "migrate --wait 42[3]", 0);
    assert_string_equal(cli_out(cli), "job 42[3] runs on node2\n");
    g_autoptr(CliProcess) failed = run(script, "migrate --wait 42[2]", 1);
    assert_contains(cli_err(failed), "job 42[2] was not moved");
}

/* The array goes on all the same. */
static void freeze_of_a_task_that_ends_says_so(void **state)
{
    ArrayScript *script = *state;
    static const ArrayHappening ends[] = {ENDS(3, 0), ENDS(2, 0), {0}};
    script->happenings = ends;
    g_autoptr(CliProcess) cli = run(script, "freeze 42[2]", 1);
    assert_string_equal(cli_err(cli),
                        "berth freeze: job 42[2] was not frozen: it has ended meanwhile\n");
}

static void several_are_not_waited_for_and_that_is_said(void **state)
{
    g_autoptr(CliProcess) cli = run(*state, "checkpoint --wait 42[2-3]", 0);
    assert_contains(cli_err(cli), "what comes of tasks of 42[2-3] is not waited for");
}

/* --- submitting --------------------------------------------------------------------------------- */

/* Before anything is sent: the daemon of this test takes no jobs. */
static void submit_of_an_array_wants_a_file_for_each_task(void **state)
{
    static const char *const cases[] = {"submit -a 0-9 -o out -- true",
                                        "submit -a 0-9 -o out-%j -- true",
                                        "submit -a 0-9 --error out%%a -- true"};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_refused(*state, cases[i], 1, "add %a to its name");
}

static void submit_of_no_array_says_why(void **state)
{
    static const char *const cases[][2] = {
        {"submit --array 0-10000000 -- true",
         "\"0-10000000\" names no indices of an array: they are more than 10000000"},
        {"submit --array 9-0 -- true", "a range ends before it begins"},
        {"submit --array 0-9%0 -- true", "how many tasks run at a time"},
        {"submit --array a-b -- true", "an index is a number"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_refused(*state, cases[i][0], 2, cases[i][1]);
}

static void run_of_an_array_says_what_to_do_instead(void **state)
{
    assert_refused(*state, "run --array 0-9 -- true", 125, "`berth submit` it");
}

#define SCRIPTED(function)                                                                         \
    cmocka_unit_test_setup_teardown(function, array_script_setup, array_script_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED(verbs_ask_for_the_tasks_that_are_named),
        SCRIPTED(verbs_of_one_task_ask_once),
        SCRIPTED(verbs_of_one_task_refuse_several),
        SCRIPTED(verbs_of_whole_jobs_refuse_tasks),
        SCRIPTED(verbs_say_what_is_no_array_and_no_task),
        SCRIPTED(ls_has_one_line_for_an_array),
        SCRIPTED(ls_tasks_has_those_that_have_started_and_not_ended),
        SCRIPTED(ls_of_tasks_has_a_line_for_each),
        SCRIPTED(ls_has_only_tasks_in_the_states_that_are_named),
        SCRIPTED(ls_tasks_has_ended_ones_whose_state_is_named),
        SCRIPTED(show_of_an_array_is_a_summary),
        SCRIPTED(tasks_that_have_ended_are_not_counted_as_listed),
        SCRIPTED(show_of_a_task_is_that_of_a_job),
        SCRIPTED(events_name_tasks_and_ranges_of_them),
        SCRIPTED(events_of_tasks_are_those_that_are_of_one_of_them),
        SCRIPTED(logs_of_several_tasks_have_a_heading_each),
        SCRIPTED(logs_of_tasks_that_are_not_all_there_are_of_the_others),
        SCRIPTED(why_of_an_array_tells_of_the_next_that_waits),
        SCRIPTED(why_of_several_tasks_is_that_of_an_array),
        SCRIPTED(why_of_a_task_is_that_of_a_job),
        SCRIPTED(wait_for_an_array_waits_for_all_its_tasks),
        SCRIPTED(wait_for_a_task_is_for_that_alone),
        SCRIPTED(wait_for_several_watches_these_once),
        SCRIPTED(ls_watch_of_named_jobs_watches_these),
        SCRIPTED(wait_counts_what_ends_while_it_looks),
        SCRIPTED(wait_for_an_array_waits_for_its_output),
        SCRIPTED(wait_for_an_array_says_whose_output_is_lost),
        SCRIPTED(migrate_waits_for_the_task_that_is_named),
        SCRIPTED(freeze_of_a_task_that_ends_says_so),
        SCRIPTED(several_are_not_waited_for_and_that_is_said),
        SCRIPTED(submit_of_an_array_wants_a_file_for_each_task),
        SCRIPTED(submit_of_no_array_says_why),
        SCRIPTED(run_of_an_array_says_what_to_do_instead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
