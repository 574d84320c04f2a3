/* SPDX-License-Identifier: Apache-2.0 */
/* How far `berth` looks for tasks that have ended, with a daemon that has arrays of a million tasks. */
#include "tests/lib/cli_process.h"
#include "tests/lib/scripted_daemon.h"

#define N_TASKS    1000000u
#define PAGE_SIZE  1000u
#define PAGES_MAX  100u /* that are looked at */
#define N_FAILED   4u
#define FIRST_JOB  42u
#define N_JOBS_MAX 2u

typedef struct {
    Berth__Jobs_Service jobs; /* first: handlers get its address */
    ScriptedDaemon daemon;
    guint32 failed[N_FAILED]; /* their indices; all others have completed */
    guint n_jobs;
    guint n_pages;
} Script;

typedef struct {
    Berth__Job job;
    Berth__JobArray array;
    Berth__IndexRange range, *ranges[1];
    Berth__TaskCounts counts;
    Berth__Task task[PAGE_SIZE], *tasks[PAGE_SIZE];
} Words;

static void describe(Words *words, guint64 job)
{
    memset(words, 0, sizeof *words);
    words->job = (Berth__Job)BERTH__JOB__INIT;
    words->array = (Berth__JobArray)BERTH__JOB_ARRAY__INIT;
    words->range = (Berth__IndexRange)BERTH__INDEX_RANGE__INIT;
    words->counts = (Berth__TaskCounts)BERTH__TASK_COUNTS__INIT;
    words->range.last = N_TASKS - 1;
    words->ranges[0] = &words->range;
    words->array.tasks = words->ranges;
    words->array.n_tasks = 1;
    words->counts.completed = N_TASKS - N_FAILED;
    words->counts.failed = N_FAILED;
    words->job.id = job;
    words->job.state = BERTH__JOB_STATE__FAILED;
    words->job.name = (char *)"sums";
    words->job.user = (char *)"alice";
    words->job.array = &words->array;
    words->job.counts = &words->counts;
    words->job.tasks = words->tasks;
}

static Berth__JobState state_of(const Script *script, guint32 index)
{
    for (guint i = 0; i < N_FAILED; i++)
        if (script->failed[i] == index)
            return BERTH__JOB_STATE__FAILED;
    return BERTH__JOB_STATE__COMPLETED;
}

static void add_page(const Script *script, Words *words, guint32 from)
{
    for (guint i = 0; i < PAGE_SIZE && from + i < N_TASKS; i++) {
        words->tasks[i] = &words->task[i];
        words->task[i] = (Berth__Task)BERTH__TASK__INIT;
        words->task[i].job = words->job.id;
        words->task[i].index = from + i;
        words->task[i].state = state_of(script, from + i);
        words->job.n_tasks++;
    }
}

static void on_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
                   Berth__Job_Closure closure, void *closure_data)
{
    Script *script = (Script *)(void *)service;
    g_autofree Words *words = g_new(Words, 1);
    describe(words, request->job);
    if (request->all_tasks)
        add_page(script, words, request->follows ? request->after_task + 1 : 0);
    script->n_pages += request->all_tasks ? 1 : 0;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &words->job.base);
}

static void on_list(Berth__Jobs_Service *service, const Berth__ListJobsRequest *request,
                    Berth__ListJobsReply_Closure closure, void *closure_data)
{
    const Script *script = (const Script *)(const void *)service;
    g_autofree Words *words = g_new(Words, N_JOBS_MAX);
    Berth__ListJobsReply reply = BERTH__LIST_JOBS_REPLY__INIT;
    Berth__Job *jobs[N_JOBS_MAX];
    for (guint i = 0; i < script->n_jobs; i++) {
        describe(&words[i], FIRST_JOB + i);
        jobs[i] = &words[i].job;
    }
    reply.jobs = jobs;
    reply.n_jobs = script->n_jobs;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static int setup(void **state)
{
    static const guint32 failed[N_FAILED] = {7, 99999, 100000, 999999};
    Script *script = g_new0(Script, 1);
    script->jobs = (Berth__Jobs_Service){.get = on_get, .list = on_list};
    script->n_jobs = 1;
    memcpy(script->failed, failed, sizeof failed);
    scripted_daemon_start(&script->daemon, &script->jobs);
    *state = script;
    return 0;
}

static int teardown(void **state)
{
    Script *script = *state;
    scripted_daemon_stop(&script->daemon);
    g_free(script);
    return 0;
}

/* (transfer full) */
static CliProcess *run(Script *script, const char *line)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    script->n_pages = 0;
    CliProcess *cli = cli_start(script->daemon.socket, (const char *const *)words, NULL);
    assert_cli_status(cli, 0);
    return cli;
}

static void ls_says_what_lists_those_that_it_has_not_looked_for(void **state)
{
    Script *script = *state;
    g_autoptr(CliProcess) cli = run(script, "ls -t -s failed,timeout");
    assert_int_equal(script->n_pages, PAGES_MAX);
    assert_contains(cli_out(cli), " 42[7]  ");
    assert_contains(cli_out(cli), " 42[99999]  ");
    assert_null(strstr(cli_out(cli), "42[100000]"));
    assert_string_equal(cli_err(cli),
                        "berth ls: job 42 has 2 more, not looked for as that takes long: berth ls "
                        "--state failed,timeout 42[100000-999999]\n");
    g_autoptr(CliProcess) json = run(script, "ls --json -t -s failed");
    assert_contains(cli_out(json), "\"index\":99999,");
    assert_contains(cli_err(json), ": berth ls --state failed 42[100000-999999]\n");
}

static void ls_stops_where_all_are_found(void **state)
{
    Script *script = *state;
    script->failed[2] = 10;
    script->failed[3] = 2500;
    script->failed[1] = 8;
    g_autoptr(CliProcess) cli = run(script, "ls -t -s failed 42");
    assert_int_equal(script->n_pages, 3);
    assert_contains(cli_out(cli), " 42[2500]  ");
    assert_string_equal(cli_err(cli), "");
}

static void ls_looks_no_further_for_several_arrays(void **state)
{
    Script *script = *state;
    script->n_jobs = 2;
    g_autoptr(CliProcess) cli = run(script, "ls -t -s failed");
    assert_int_equal(script->n_pages, PAGES_MAX);
    assert_contains(cli_out(cli), "\n43[0-999999]");
    assert_contains(cli_err(cli), "berth ls --state failed 42[100000-999999]\n");
    assert_contains(cli_err(cli), "job 43 has 4 more, not looked for as that takes long: berth ls "
                                  "--state failed 43[0-999999]\n");
}

static void show_says_what_lists_those_that_it_has_not_looked_for(void **state)
{
    Script *script = *state;
    g_autoptr(CliProcess) cli = run(script, "show 42");
    assert_int_equal(script->n_pages, PAGES_MAX);
    assert_contains(cli_out(cli), "FAILED           7,99999\n"
                                  "and 2 more that did not complete: berth ls --state "
                                  "failed,timeout,out_of_memory,node_fail,cancelled "
                                  "42[100000-999999]\n");
}

#define SCRIPTED(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED(ls_says_what_lists_those_that_it_has_not_looked_for),
        SCRIPTED(ls_stops_where_all_are_found),
        SCRIPTED(ls_looks_no_further_for_several_arrays),
        SCRIPTED(show_says_what_lists_those_that_it_has_not_looked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
