/* SPDX-License-Identifier: Apache-2.0 */
/* berth-sim as its user meets it: what it says, what it writes, and where. */
#include "scheduler/sim/plot.h"
#include "tests/lib/sim_fixture.h"
#include "tests/lib/sim_program.h"
#include "tests/lib/tempdir.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* a.swf below DIR: two nodes of two. */
static void trace(const char *dir, const SimFixtureJob *jobs, guint n)
{
    g_autofree char *text = sim_fixture_swf(2, 2, jobs, n);
    g_autofree char *path = sim_fixture_file(dir, "a.swf", text);
}

static const SimFixtureJob three[] = {{0, 100, 200, 3}, {10, 100, 100, 2}, {20, 50, 60, 1}};

static char *content(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) error = NULL;
    char *text;
    g_file_get_contents(path, &text, NULL, &error);
    assert_no_error(error);
    return text;
}

/* --- --json ------------------------------------------------------------------------------------- */

static void json_replaces_what_a_link_leads_to(void **state)
{
    const char *dir = *state;
    struct stat info;
    g_autofree char *sub = g_build_filename(dir, "sub", NULL);
    g_autofree char *second = g_build_filename(sub, "second", NULL);
    g_autofree char *link = g_build_filename(dir, "link", NULL);
    g_autofree char *real = sim_fixture_file(dir, "real", "old");
    trace(dir, three, G_N_ELEMENTS(three));
    assert_int_equal(g_mkdir(sub, 0777), 0);
    assert_int_equal(g_chmod(real, 0640), 0);
    assert_int_equal(symlink("../real", second), 0);
    assert_int_equal(symlink("sub/second", link), 0);
    g_autoptr(Said) said = sim_program(dir, "--policy easy --json link a.swf");
    assert_status(said, 0);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat(real, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(info.st_mode & 07777, 0640);
    g_autofree char *text = content(dir, "real");
    assert_has(text, "\"mean_wait_s\"");
}

static void json_goes_through_a_fifo(void **state)
{
    const char *dir = *state;
    struct stat info;
    g_autofree char *fifo = g_build_filename(dir, "fifo", NULL);
    trace(dir, three, G_N_ELEMENTS(three));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int fd = g_open(fifo, O_RDWR | O_CLOEXEC | O_NONBLOCK); /* nobody waits for anybody */
    assert_true(fd >= 0);
    g_autoptr(Said) said = sim_program(dir, "--policy easy --json fifo a.swf");
    assert_status(said, 0);
    assert_int_equal(lstat(fifo, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    char text[4096];
    ssize_t n = read(fd, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    assert_has(text, "\"mean_wait_s\"");
    close(fd);
}

static void json_that_cannot_be_written_fails_before_the_run(void **state)
{
    static const struct {
        const char *option, *expected;
        int status;
    } cases[] = {
        {"--json nowhere/x.json", "--json nowhere/x.json: No such file or directory", 1},
        {"--json a.swf/x.json", "--json a.swf/x.json: Not a directory", 1},
        {"--json .", "--json .: Is a directory", 1},
        {"--plot a.swf", "--plot: cannot write into the directory a.swf", 1},
        {"--plot a.swf/x", "--plot: cannot write into the directory a.swf/x", 1},
        {"--jobs nowhere/x.csv", "--jobs nowhere/x.csv: No such file or directory", 1},
        {"--jobs ./a.swf", "--jobs ./a.swf: that file is read; name another one for the results",
         2},
        {"--jobs x --json x", "--jobs x: --json is written there; name another one", 2},
        {"--journal a.swf", "--journal: cannot write into the directory a.swf: Not a directory", 1},
        {"--journal nowhere/core.log",
         "--journal: cannot write into the directory nowhere/core.log: No such", 1},
        {"--json ./a.swf", "--json ./a.swf: that file is read; name another one for the results",
         2},
        {"--json loop", "--json loop: Too many levels of symbolic links", 1},
        {"--json dangling", "--json dangling: No such file or directory", 1},
    };
    const char *dir = *state;
    g_autofree char *loop = g_build_filename(dir, "loop", NULL);
    g_autofree char *dangling = g_build_filename(dir, "dangling", NULL);
    trace(dir, three, G_N_ELEMENTS(three));
    assert_int_equal(symlink("loop", loop), 0);
    assert_int_equal(symlink("nowhere/x", dangling), 0);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *arguments = g_strconcat("--policy easy ", cases[i].option, " a.swf", NULL);
        g_autoptr(Said) said = sim_program(dir, arguments);
        assert_status(said, cases[i].status);
        assert_has(said->err, cases[i].expected);
        assert_string_equal(said->out, "");
    }
}

/* --- long times --------------------------------------------------------------------------------- */

static void gaps_and_runs_may_be_longer_than_a_thousand_days(void **state)
{
    static const SimFixtureJob gap[] = {{0, 100, 200, 1}, {86400200, 100, 200, 1}};
    static const SimFixtureJob run[] = {{0, 90000000, 90000000, 1}, {10, 100, 200, 1}};
    trace(*state, gap, G_N_ELEMENTS(gap));
    g_autoptr(Said) first = sim_program(*state, "--check --json - a.swf");
    assert_status(first, 0);
    assert_has(first->out, "\"makespan_s\" : 86400300");
    trace(*state, run, G_N_ELEMENTS(run));
    g_autoptr(Said) second = sim_program(*state, "--check --json - a.swf");
    assert_status(second, 0);
    assert_has(second->out, "\"makespan_s\" : 90000000");
}

static void a_job_that_never_ends_is_said_to(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 8640000, 8640000, 4}, {10, 10, 10, 1}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy --mtbf 10d --mttr 1h a.swf");
    assert_status(said, 1);
    assert_has(said->err, "policy easy: none of 1 jobs has ended for 200");
    assert_has(said->err, "--mtbf");
    g_autoptr(Said) soon = sim_program(*state, "--policy easy --mtbf 3s --mttr 1h a.swf");
    assert_status(soon, 1);
    assert_has(soon->err, "an --mtbf their nodes fail before they are done");
}

static void a_load_of_millennia_is_refused(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 9000000000, 9000000000, 4}, {900000000, 10, 10, 1}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy --load 0.001 a.swf");
    assert_status(said, 2);
    assert_has(said->err, "--load 0.001: the last job would arrive after more than 1157407 days");
}

/* --- figures ------------------------------------------------------------------------------------ */

/* Member NAME of the policy that is number N in JSON. */
static double member(const char *json, guint n, const char *name)
{
    g_autofree char *pattern = g_strdup_printf("\"%s\" : ", name);
    const char *at = json;
    for (guint i = 0; i <= n; i++) {
        at = strstr(at, "\"policy\"");
        assert_non_null(at);
        at++;
    }
    at = strstr(at, pattern);
    assert_non_null(at);
    return g_ascii_strtod(at + strlen(pattern), NULL);
}

static void jobs_too_large_are_in_neither_bound_nor_load(void **state)
{
    /* 4 vCPUs over 100 s: 100 + 300 of 400. */
    static const SimFixtureJob jobs[] = {{0, 100, 100, 1}, {10, 1000, 1000, 6}, {100, 100, 100, 3}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) table = sim_program(*state, "--policy easy,bound a.swf");
    assert_has(table->out, "load 1.000 (the trace's: 1.000)");
    assert_has(table->out, "1 larger than the machine");
    g_autoptr(Said) said = sim_program(*state, "--policy easy,bound --json - a.swf");
    for (guint i = 0; i < 2; i++) {
        assert_true(member(said->out, i, "jobs") == 2);
        assert_true(member(said->out, i, "refused") == 1);
        assert_true(member(said->out, i, "total_work_cpu_s") == 400);
    }
    g_autoptr(Said) none = sim_program(*state, "--load 1 --nodes 1 --vcpus 1 --max-jobs 1 a.swf");
    assert_status(none, 2);
    assert_has(none->err, "all jobs arrive at once");
}

/* Three processors on two nodes: one job has all three for 100 s, the next waits for it. */
static void nodes_of_two_sizes_are_all_used(void **state)
{
    static const char text[] = "; MaxNodes: 2\n; MaxProcs: 3\n"
                               "1 0 -1 100 2 -1 -1 2 100 -1 1 1 1 -1 1 -1 -1 -1\n"
                               "2 0 -1 100 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1\n"
                               "3 100 -1 100 3 -1 -1 3 100 -1 1 1 1 -1 1 -1 -1 -1\n";
    g_autofree char *path = sim_fixture_file(*state, "a.swf", text);
    g_autoptr(Said) said = sim_program(*state, "--check a.swf");
    assert_status(said, 0);
    assert_has(said->out, "machine: 3 processors on 2 nodes: 1 of 2, 1 of 1 (8.0 and 4.0 GiB); "
                          "load 2.000");
    g_autoptr(Said) json = sim_program(*state, "--policy easy,bound --check --json - a.swf");
    assert_status(json, 0);
    for (guint i = 0; i < 2; i++) {
        assert_true(member(json->out, i, "refused") == 0);
        assert_true(member(json->out, i, "makespan_s") == 200);
        assert_true(member(json->out, i, "useful_cpu_utilisation") == 1);
        assert_true(member(json->out, i, "smaller_nodes") == 1);
    }
}

static void bound_goes_on_to_the_end_of_all_jobs(void **state)
{
    /* The trace ends at 10; 4 vCPUs are wanted from 0 and 8 from 10 on: 2000 in all, 500 s of the machine. */
    static const SimFixtureJob jobs[] = {{0, 300, 300, 4}, {10, 200, 200, 4}};
    static const SimFixtureJob apart[] = {{0, 10, 10, 4}, {1000, 10, 10, 1}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy,bound --json - a.swf");
    assert_true(member(said->out, 1, "total_work_cpu_s") == 2000);
    assert_true(member(said->out, 1, "makespan_s") == 500);
    assert_true(member(said->out, 1, "work_done_cpu_s") == 40);
    assert_true(member(said->out, 0, "total_work_cpu_s") == 2000);
    assert_true(member(said->out, 0, "makespan_s") == 500);
    trace(*state, apart, G_N_ELEMENTS(apart));
    g_autoptr(Said) second = sim_program(*state, "--policy bound --json - a.swf");
    assert_true(member(second->out, 0, "makespan_s") == 1010);
    assert_true(member(second->out, 0, "total_work_cpu_s") == 50);
}

static void bound_has_no_waits_in_the_table(void **state)
{
    trace(*state, three, G_N_ELEMENTS(three));
    g_autoptr(Said) said = sim_program(*state, "--policy easy,bound a.swf");
    assert_status(said, 0);
    assert_has(said->out, "\nbound               3          -          -         -      0.00 ");
    assert_has(said->out, "\neasy                3         30 ");
    g_autoptr(Said) json = sim_program(*state, "--policy bound --json - a.swf");
    assert_has(json->out, "\"mean_wait_s\" : ");
}

static void failures_have_columns_where_there_may_be_any(void **state)
{
    SimFixtureJob jobs[20];
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++)
        jobs[i] = (SimFixtureJob){i, 36000, 36000, 2};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) none = sim_program(*state, "--policy reserved a.swf");
    assert_null(strstr(none->out, "lost"));
    g_autoptr(Said) said =
        sim_program(*state, "--policy reserved --mtbf 1d --fail-actions 100 --json x.json a.swf");
    assert_status(said, 0);
    assert_has(said->out, " refused failures act.fail   lost lost cpu-h\n");
    g_autofree char *json = content(*state, "x.json");
    assert_true(member(json, 0, "node_failures") > 0 && member(json, 0, "failed_actions") > 0);
    assert_true(member(json, 0, "lost_cpu_s") > 0);
    g_autofree char *expected =
        g_strdup_printf(" %8.0f %8.0f %6.0f %10.1f\n", member(json, 0, "node_failures"),
                        member(json, 0, "failed_actions"), member(json, 0, "lost_jobs"),
                        member(json, 0, "lost_cpu_s") / 3600);
    assert_has(said->out, expected);
    g_autoptr(Said) actions = sim_program(*state, "--policy reserved --fail-actions 1 a.swf");
    assert_has(actions->out, "lost cpu-h\n");
}

static void jobs_of_one_instant_have_no_load_but_work(void **state)
{
    static const SimFixtureJob jobs[] = {{7, 100, 100, 4}, {7, 100, 100, 2}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy,bound a.swf");
    assert_has(said->out, "no load: all jobs arrive at one instant");
    assert_has(said->out, "up to the end of the last job");
    g_autoptr(Said) json = sim_program(*state, "--policy easy,bound --json - a.swf");
    assert_has(json->out, "\"load\" : null");
    assert_true(member(json->out, 0, "work_done_cpu_s") == 600);
    assert_true(member(json->out, 0, "useful_cpu_utilisation") == 0.75);
    assert_true(member(json->out, 1, "work_done_cpu_s") == 600);
    assert_true(member(json->out, 1, "makespan_s") == 150);
    assert_true(member(json->out, 1, "useful_cpu_utilisation") == 1);
}

/* --- what has no effect ------------------------------------------------------------------------- */

static void options_without_effect_are_said_to_have_none(void **state)
{
    static const struct {
        const char *arguments, *expected;
    } cases[] = {
        {"--policy easy --without migration", "--without has no effect: berth is none of"},
        {"--policy easy --tune settle_usec=1", "--tune settle_usec has no effect: berth is none"},
        {"--policy easy,bound --tune plan_depth=2", "--tune plan_depth has no effect: none of the"},
        {"--policy conservative,berth --tune plan_depth=2",
         "--tune plan_depth=2 has no effect on policy conservative, which plans 32 starts"},
        {"--policy easy --tune backfill_depth=9", ""},
        {"--policy easy --seed 2", "--seed has no effect: without a VM series"},
        {"--policy easy --seed 2 --mtbf 10d", ""},
        {"--policy easy --seed 2 --estimates 1", "--seed has no effect"},
        {"--policy easy --seed 2 --estimates 2", ""},
        {"--policy easy --seed 2 --fail-actions 1", ""},
        {"--policy easy --seed 2 --too-short 1", ""},
        {"--policy easy --extend-after 2h", "--extend-after has no effect: without --too-short"},
        {"--policy easy --extend-after 2h --too-short 1", ""},
        {"--policy easy --mttr 2h", "--mttr has no effect: without --mtbf"},
        {"--policy easy,bound --cost boot_usec=1", "--cost has no effect: none of the policies"},
        {"--policy easy,reserved --cost boot_usec=1", ""},
        {"--policy reserved --report-interval 9s", "--report-interval has no effect: berth is"},
        {"--policy conservative --tune plan_depth=33", ""},
        {"--policy easy,berth --tune settle_usec=1 --without migration", ""},
    };
    trace(*state, three, G_N_ELEMENTS(three));
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *arguments = g_strconcat(cases[i].arguments, " a.swf", NULL);
        g_autoptr(Said) said = sim_program(*state, arguments);
        assert_status(said, 0);
        assert_has(said->err, cases[i].expected);
        assert_true((*said->err == '\0') == (*cases[i].expected == '\0'));
        assert_true(*said->err == '\0' || g_str_has_prefix(said->err, "berth-sim: --"));
    }
}

static void usage_that_the_trace_does_not_say_is_said(void **state)
{
    static const char text[] = "; MaxNodes: 2\n; MaxProcs: 4\n"
                               "1 0 -1 60 2 30 -1 2 90 -1 1 1 1 1 1 1 -1 -1\n"
                               "2 9 -1 60 2 30 -1 2 90 -1 1 1 1 1 1 1 -1 -1\n"
                               "3 9 -1 60 2 -1 -1 2 90 -1 1 1 1 1 1 1 -1 -1\n";
    g_autofree char *path = sim_fixture_file(*state, "a.swf", text);
    g_autoptr(Said) said = sim_program(*state, "--policy easy a.swf");
    assert_has(said->out, "does not say what CPU 1 job used: all that is reserved counts as used");
    assert_has(said->out, "does not say what memory any job used");
    g_autoptr(Said) first = sim_program(*state, "--policy easy --max-jobs 2 a.swf");
    assert_null(strstr(first->out, "what CPU"));
    /* Nothing is drawn of whom nothing is known. */
    g_autofree char *series = sim_fixture_file(*state, "vms",
                                               "Timestamp [ms];\n"
                                               "0;1;1000;500;50;1024;512;0;0;0;0\n");
    g_autoptr(Said) drawn = sim_program(*state, "--policy easy --usage vms a.swf");
    assert_status(drawn, 0);
    assert_has(drawn->out, "does not say what CPU 1 job used");
    assert_has(drawn->out, "does not say what memory any job used");
    g_autoptr(Said) reserved = sim_program(*state, "--policy easy --usage reserved a.swf");
    assert_null(strstr(reserved->out, "usage:"));
}

static void usage_and_memory_that_are_cut_are_said(void **state)
{
    /* On 8 GiB: 4 GiB used of 1, and twice the CPU; just what is reserved; 16 GiB asked for on one processor. */
    static const char text[] = "; MaxNodes: 1\n; MaxProcs: 2\n"
                               "1 0 -1 60 1 120 4194304 1 90 1048576 1 1 1 1 1 1 -1 -1\n"
                               "2 1 -1 60 1 60 1048576 1 90 1048576 1 1 1 1 1 1 -1 -1\n"
                               "3 2 -1 60 1 30 1048576 1 90 16777216 1 1 1 1 1 1 -1 -1\n"
                               "4 3 -1 60 1 90 1048576 1 90 1048576 1 1 1 1 1 1 -1 -1\n";
    g_autofree char *path = sim_fixture_file(*state, "a.swf", text);
    g_autoptr(Said) said = sim_program(*state, "--policy easy --explain 1 a.swf");
    assert_status(said, 0);
    assert_has(said->out, "; usage of 2 jobs cut to what they reserved (CPU 2, memory 1)\n");
    assert_has(said->out, "; memory of 1 cut to what a node can give");
    assert_has(said->out, "job 1: its usage was cut to what it reserved: it used more CPU and mem");
    g_autoptr(Said) cut = sim_program(*state, "--policy easy --explain 3 a.swf");
    assert_has(cut->out, "job 3: submitted: 1 guest of 1 vCPU and 8096 MiB\n");
    assert_has(cut->out, "job 3: its memory was cut: 16384 MiB of each guest were asked for, more");
    assert_null(strstr(cut->out, "job 3: its usage"));
    g_autoptr(Said) reserved = sim_program(*state, "--policy easy --usage reserved a.swf");
    assert_null(strstr(reserved->out, "usage of"));
}

static void limits_that_are_not_the_trace_s_are_said(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 50, 20, 1}, {1, 50, -1, 1}, {2, 50, 90, 1}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy a.swf");
    assert_has(said->out, "; limit of 1 raised to the run time; 1 without a limit got the run");
    g_autoptr(Said) first = sim_program(*state, "--policy easy --max-jobs 1 a.swf");
    assert_has(first->out, "jobs: 1 over 0.00 days; limit of 1 raised to the run time\n");
    trace(*state, jobs + 2, 1);
    g_autoptr(Said) right = sim_program(*state, "--policy easy a.swf");
    assert_null(strstr(right->out, "limit"));
}

static void constants_that_a_log_does_not_use_are_said_to_have_no_effect(void **state)
{
    static const struct {
        const char *arguments, *expected;
    } cases[] = {
        {"easy.log --tune plan_depth=4", "--tune plan_depth has no effect: the log is of easy"},
        {"fcfs.log --tune plan_depth=4", "--tune plan_depth has no effect: the log is of fcfs"},
        {"reserved.log --tune settle_usec=0", "--tune settle_usec has no effect: the log is of a"},
        {"reserved.log --tune plan_depth=1", ""},
        {"predicts.log --tune settle_usec=0", "--tune settle_usec has no effect: the log is of a"},
        {"berth.log --tune peak_interval_usec=1000000", ""},
        {"easy.log", ""},
    };
    trace(*state, three, G_N_ELEMENTS(three));
    g_autoptr(Said) run =
        sim_program(*state, "--policy fcfs,easy,reserved,berth --journal . a.swf");
    assert_status(run, 0);
    g_autofree char *reserved = content(*state, "reserved.log");
    g_auto(GStrv) predicts = g_strsplit(reserved, " tunings=", 2); /* as berthd's core does */
    g_autofree char *predicting = g_strjoinv(" features=24 tunings=", predicts);
    g_autofree char *path = sim_fixture_file(*state, "predicts.log", predicting);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *arguments = g_strconcat("--replay ", cases[i].arguments, NULL);
        g_autoptr(Said) said = sim_program(*state, arguments);
        assert_status(said, 0);
        assert_has(said->err, cases[i].expected);
        assert_true((*said->err == '\0') == (*cases[i].expected == '\0'));
    }
}

/* --- interruption ------------------------------------------------------------------------------- */

static void a_run_that_is_interrupted_shows_what_is_done(void **state)
{
    SimFixtureJob jobs[1000];
    g_autoptr(GError) error = NULL;
    g_autofree char *top = g_canonicalize_filename(g_getenv("top_builddir"), NULL);
    g_autofree char *program = g_build_filename(top, "berth-sim", NULL);
    /* With --check, berth takes minutes of these. */
    const char *argv[] = {program,  "--quiet", "--check", "--policy", "fcfs,berth",
                          "--json", "x.json",  "a.swf",   NULL};
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++)
        jobs[i] = (SimFixtureJob){i, 72000, 72000, 1 + i % 4};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, *state);
    g_autoptr(GSubprocess) process = g_subprocess_launcher_spawnv(launcher, argv, &error);
    assert_no_error(error);
    g_autoptr(GDataInputStream) out =
        g_data_input_stream_new(g_subprocess_get_stdout_pipe(process));
    g_autoptr(GDataInputStream) err =
        g_data_input_stream_new(g_subprocess_get_stderr_pipe(process));
    for (gboolean found = FALSE; !found;) {
        g_autofree char *line = g_data_input_stream_read_line(out, NULL, NULL, &error);
        assert_non_null(line);
        found = g_str_has_prefix(line, "fcfs ");
    }
    g_subprocess_send_signal(process, SIGINT);
    assert_true(g_subprocess_wait(process, NULL, NULL));
    assert_true(g_subprocess_get_if_signaled(process));
    assert_int_equal(g_subprocess_get_term_sig(process), SIGINT);
    g_autofree char *said = g_data_input_stream_read_line(err, NULL, NULL, &error);
    assert_has(said, "interrupted on day ");
    assert_has(said, "of policy berth");
    g_autofree char *json = g_build_filename(*state, "x.json", NULL);
    assert_false(g_file_test(json, G_FILE_TEST_EXISTS));
}

/* --- --explain ---------------------------------------------------------------------------------- */

#define TORQUE(number, nodes, memory)                                                              \
    "10/01/2017 00:01:38;E;" number                                                                \
    ".m1;user=u group=g jobname=n ctime=1000 qtime=1000 etime=1000 "                               \
    "start=1100 exec_host=c3/0 Resource_List.nodes=" nodes " Resource_List.vmem=" memory           \
    " Resource_List.walltime=08:00:00 end=1200 resources_used.walltime=00:01:40 "                  \
    "resources_used.cput=50\n"

/* Eight of 1 GiB fit two nodes of 4 GiB only without what their host needs for each. */
static void jobs_too_large_are_so_for_every_policy(void **state)
{
    g_autofree char *path =
        sim_fixture_file(*state, "a.acct", TORQUE("1", "1", "1gb") TORQUE("2", "8:ppn=1", "8gb"));
    g_autoptr(Said) said = sim_program(*state, "--nodes 2 --vcpus 4 --memory 4G --json - "
                                               "--policy fcfs,easy,reserved,berth,bound a.acct");
    assert_status(said, 0);
    for (guint i = 0; i < 5; i++) {
        assert_true(member(said->out, i, "jobs") == 1);
        assert_true(member(said->out, i, "refused") == 1);
    }
}

/* Guests are not made before it is known that they fit. */
static void job_of_millions_of_guests_is_refused(void **state)
{
    g_autofree char *path = sim_fixture_file(
        *state, "a.acct", TORQUE("1", "1", "1gb") TORQUE("2", "1000:ppn=65536+1:ppn=1", "8gb"));
    g_autoptr(Said) said = sim_program(
        *state, "--nodes 2 --vcpus 4 --memory 4G --policy easy --explain 2 --json - a.acct");
    assert_status(said, 0);
    assert_true(member(said->out, 0, "refused") == 1);
    assert_has(said->err, "job 2: refused: the machine would not hold that if it were empty");
}

static void one_is_said_in_the_singular(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 1}, {10, 100, 100, 2}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) many = sim_program(*state, "--policy easy --explain 1 a.swf");
    assert_has(many->out, "submitted: 1 guest of 1 vCPU and");
    assert_has(many->out, "machine: 2 nodes of 2 vCPUs and");
    g_autoptr(Said) one =
        sim_program(*state, "--policy easy --nodes 1 --vcpus 1 --explain 2 a.swf");
    assert_has(one->out, "submitted: 2 guests of 1 vCPU and");
    assert_has(one->out, "machine: 1 node of 1 vCPU and");
}

static void explain_of_a_job_that_is_not_there_says_so(void **state)
{
    g_autofree char *swf = sim_fixture_swf(2, 2, three, G_N_ELEMENTS(three));
    g_autofree char *text =
        g_strconcat(swf, "7 30 -1 0 1 -1 -1 1 10 -1 0 1 1 -1 1 -1 -1 -1\n", NULL);
    g_autofree char *path = sim_fixture_file(*state, "a.swf", text);
    g_autoptr(Said) missing = sim_program(*state, "--explain 99 a.swf");
    assert_status(missing, 2);
    assert_has(missing->err, "no job 99 in the trace, which has 3 jobs and 1 that never ran");
    assert_string_equal(missing->out, "");
    g_autoptr(Said) never = sim_program(*state, "--explain 7 a.swf");
    assert_status(never, 2);
    g_autoptr(Said) head = sim_program(*state, "--policy easy a.swf");
    assert_has(head->out, "days; 1 more never ran\n");
    assert_has(never->err, "job 7 never ran");
    g_autoptr(Said) beyond = sim_program(*state, "--explain 3 --max-jobs 2 a.swf");
    assert_status(beyond, 2);
    assert_has(beyond->err, "no job 3 in the trace, which has 2 jobs up to --max-jobs");
}

static void numbers_that_come_again_are_said_in_the_head(void **state)
{
    g_autofree char *swf = sim_fixture_swf(2, 2, three, G_N_ELEMENTS(three));
    g_autofree char *text =
        g_strconcat(swf, "3 30 -1 9 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1\n", NULL);
    g_autofree char *path = sim_fixture_file(*state, "a.swf", text);
    g_autoptr(Said) said = sim_program(*state, "--policy easy a.swf");
    assert_status(said, 0);
    assert_has(said->out,
               "; 1 job number repeated or out of order, so that --explain may tell of another\n");
    g_autoptr(Said) explained = sim_program(*state, "--policy easy --explain 3 a.swf");
    assert_status(explained, 2);
    assert_has(explained->err, "--explain: 2 jobs of the trace have the number 3");
}

/* All of them want the whole machine, and 1 has it. */
static void explain_names_who_comes_before(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 4}, {1, 100, 200, 4}, {2, 100, 200, 4},
                                         {3, 100, 200, 4}, {4, 100, 200, 4}, {5, 100, 200, 4}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said =
        sim_program(*state, "--policy easy --nodes 1 --vcpus 4 --memory 4G --explain 6 a.swf");
    assert_status(said, 0);
    assert_has(said->out, "job 6: waits: others are before it; before it: 2, 3, 4 and 1 more\n");
}

static void explain_ends_with_where_the_time_went(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 3}, {10, 100, 100, 2}, {20, 50, 60, 9}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy,reserved,bound --explain 2 a.swf");
    assert_status(said, 0);
    assert_has(said->out, "easy                  200 s  job 2: completed\n");
    assert_has(said->out, "easy                  200 s  job 2: in all: waited 90.0 s, ran 100.0 s, "
                          "lost 0.0 s");
    /* A guest boots: it waits longer, for its predecessor as for itself. */
    assert_has(said->out, "job 2: in all: waited 95.0 s, ran 100.0 s, lost 0.0 s");
    assert_has(said->out, "bound        job 2: the bound schedules nothing");
    g_autoptr(Said) refused = sim_program(*state, "--policy easy --explain 3 a.swf");
    assert_status(refused, 0);
    assert_has(refused->out, "job 3: refused: ");
}

static void a_task_of_an_array_is_explained(void **state)
{
    g_autofree char *path =
        sim_fixture_file(*state, "a.acct", TORQUE("7[1]", "1", "1gb") TORQUE("7[2]", "1", "1gb"));
    g_autoptr(Said) said = sim_program(*state, "--policy easy,bound --explain 7[2].m1 a.acct");
    assert_status(said, 0);
    assert_has(said->out, "job 7[2]: submitted: ");
    assert_has(said->out, "job 7[2]: the bound schedules nothing");
    assert_null(strstr(said->out, "job 7[1]"));
}

/* --- --jobs ------------------------------------------------------------------------------------- */

static void jobs_are_listed_as_they_end(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 3}, {10, 100, 100, 2}, {20, 50, 60, 9}};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy fcfs,easy,bound --jobs jobs.csv a.swf");
    assert_status(said, 0);
    g_autofree char *text = content(*state, "jobs.csv");
    assert_string_equal(
        text, "policy,job,submit_s,start_s,end_s,wait_s,guests,vcpus,memory_mib,moves,checkpoints,"
              "outcome\n"
              "fcfs,3,20.000000,,,,9,1,4000,0,0,refused\n"
              "fcfs,1,0.000000,0.000000,100.000000,0.000000,3,1,4000,0,0,completed\n"
              "fcfs,2,10.000000,100.000000,200.000000,90.000000,1,2,8000,0,0,completed\n"
              "easy,3,20.000000,,,,9,1,4000,0,0,refused\n"
              "easy,1,0.000000,0.000000,100.000000,0.000000,3,1,4000,0,0,completed\n"
              "easy,2,10.000000,100.000000,200.000000,90.000000,1,2,8000,0,0,completed\n");
    g_autoptr(Said) out =
        sim_program(*state, "--policy easy --json x.json --jobs /dev/stdout a.swf");
    assert_status(out, 0);
    assert_has(out->out, "easy,1,0.000000,");
    g_autofree char *path = sim_fixture_file(*state, "a.acct", TORQUE("7[1]", "1", "1gb"));
    g_autoptr(Said) task = sim_program(*state, "--policy easy --jobs jobs.csv a.acct");
    assert_status(task, 0);
    g_autofree char *tasks = content(*state, "jobs.csv");
    assert_has(tasks, "\neasy,7[1],0.000000,0.000000,");
}

/* As many moves and checkpoints as the table has. */
static void jobs_listed_have_their_moves(void **state)
{
    SimFixtureJob jobs[30];
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++)
        jobs[i] = (SimFixtureJob){10 * i, 300, 3000, 1 + i % 2};
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said =
        sim_program(*state, "--policy berth --too-short 500 --json x.json --jobs jobs.csv a.swf");
    assert_status(said, 0);
    g_autofree char *json = content(*state, "x.json");
    g_autofree char *text = content(*state, "jobs.csv");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    double moves = 0, checkpoints = 0, n = 0, waits = 0;
    for (guint i = 1; lines[i] != NULL && *lines[i] != '\0'; i++, n++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ",", -1);
        assert_int_equal(g_strv_length(fields), 12);
        waits += g_ascii_strtod(fields[5], NULL);
        moves += g_ascii_strtod(fields[9], NULL);
        checkpoints += g_ascii_strtod(fields[10], NULL);
    }
    assert_true(n == G_N_ELEMENTS(jobs) && checkpoints > 0);
    assert_true(moves == member(json, 0, "migrations"));
    assert_true(checkpoints == member(json, 0, "checkpoints"));
    assert_true(ABS(waits / n - member(json, 0, "mean_wait_s")) < 0.001);
}

/* --- --plot ------------------------------------------------------------------------------------- */

static gboolean exists(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void skip_without_gnuplot(void)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL)
        skip();
}

static void plots_of_one_instant_are_drawn(void **state)
{
    static const SimFixtureJob jobs[] = {{7, 100, 100, 4}, {7, 100, 100, 2}};
    static const char *const charts[] = {"utilisation-cpu.svg", "utilisation-memory.svg",
                                         "queue.svg", "waits.svg"};
    skip_without_gnuplot();
    for (guint n = 1; n <= G_N_ELEMENTS(jobs); n++) {
        trace(*state, jobs, n);
        g_autoptr(Said) all = sim_program(*state, "--plot all a.swf");
        assert_status(all, 0);
        g_autoptr(Said) bound = sim_program(*state, "--policy bound --plot bound a.swf");
        assert_status(bound, 0);
        for (guint i = 0; i < G_N_ELEMENTS(charts); i++) {
            g_autofree char *one = g_build_filename("all", charts[i], NULL);
            g_autofree char *two = g_build_filename("bound", charts[i], NULL);
            assert_true(exists(*state, one));
            assert_int_equal(exists(*state, two), i < 2); /* nobody waits in the bound */
        }
    }
}

static void plots_of_other_policies_do_not_stay(void **state)
{
    skip_without_gnuplot();
    trace(*state, three, G_N_ELEMENTS(three));
    g_autoptr(Said) first = sim_program(*state, "--policy easy,bound --plot . a.swf");
    assert_status(first, 0);
    assert_true(exists(*state, "nodes-easy.svg") && exists(*state, "reserved-bound.svg"));
    g_autoptr(Said) second = sim_program(*state, "--policy fcfs --plot . a.swf");
    assert_status(second, 0);
    assert_true(exists(*state, "nodes-fcfs.svg") && exists(*state, "reserved-fcfs.dat"));
    assert_false(exists(*state, "nodes-easy.svg") || exists(*state, "nodes-easy.gp") ||
                 exists(*state, "nodes-easy.dat") || exists(*state, "reserved-bound.svg"));
    assert_true(exists(*state, "a.swf"));
}

static void plots_stack_guests_by_vcpus(void **state)
{
    /* One node of 4: 3 beside 1, and then 2 where the 3 were. */
    static const SimFixtureJob jobs[] = {{0, 100, 100, 3}, {0, 300, 300, 1}, {50, 100, 100, 2}};
    skip_without_gnuplot();
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy --pool --plot . a.swf");
    assert_status(said, 0);
    g_autofree char *data = content(*state, "nodes-easy.dat");
    assert_has(data, "0.000000 1.666667 0.550000 1.225000 0 0 0 0\n");
    assert_has(data, "0.000000 5.000000 1.225000 1.450000 0 0 0 0\n");
    assert_has(data, "1.666667 3.333333 0.550000 1.000000 0 0 0 0\n");
    g_autofree char *waits = content(*state, "waits.dat");
    assert_string_equal(waits, "width easy\n\"1\" 0\n\"2-4\" 25\n");
}

static void plots_of_nodes_have_one_scale(void **state)
{
    /* One node of 4. FCFS is done after 290 s, EASY, which lets the third overtake, after 200 s. */
    static const SimFixtureJob jobs[] = {{0, 100, 100, 3}, {0, 100, 100, 4}, {0, 90, 90, 1}};
    static const char *const charts[] = {"nodes-fcfs.gp", "nodes-easy.gp"};
    skip_without_gnuplot();
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy fcfs,easy --pool --plot . a.swf");
    assert_status(said, 0);
    for (guint i = 0; i < G_N_ELEMENTS(charts); i++) {
        g_autofree char *script = content(*state, charts[i]);
        assert_has(script, "set xrange [0:4.83333]\n");
        /* Its row ends at 1.45, which is its capacity, as nobody is in slack. */
        assert_has(script, "plot for [node=1:1] node + 0.450000 with lines");
        assert_has(script, "title 'capacity: 4 vCPUs'");
        assert_has(script, "fs solid border lc rgb");
    }
}

static void plots_mark_the_last_arrival(void **state)
{
    static const char *const charts[] = {"utilisation-cpu.gp", "utilisation-memory.gp", "queue.gp",
                                         "reserved-easy.gp", "nodes-easy.gp"};
    static const SimFixtureJob jobs[] = {{0, 600, 600, 4}, {90, 600, 600, 1}};
    skip_without_gnuplot();
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy --plot . a.swf");
    assert_status(said, 0);
    for (guint i = 0; i < G_N_ELEMENTS(charts); i++) {
        g_autofree char *script = content(*state, charts[i]);
        assert_has(script, "set arrow from 1.5, graph 0 to 1.5, graph 1 ");
        assert_has(script, "set label 'last arrival' at 1.5, graph 1 left offset 1,");
    }
    g_autofree char *queue = content(*state, "queue.gp");
    assert_has(queue, "set ytics 1\n"); /* no half of a job */
    trace(*state, jobs, 1);
    g_autoptr(Said) instant = sim_program(*state, "--policy easy --plot . a.swf");
    assert_status(instant, 0);
    g_autofree char *none = content(*state, "queue.gp");
    assert_null(strstr(none, "arrow"));
}

/* Beside the end of the axis there is the legend. */
static void plots_mark_a_late_last_arrival_to_its_left(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 600, 600, 4}, {3000, 60, 60, 1}};
    skip_without_gnuplot();
    trace(*state, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--policy easy --plot . a.swf");
    assert_status(said, 0);
    g_autofree char *script = content(*state, "queue.gp");
    assert_has(script, "set label 'last arrival' at 50, graph 1 right offset -1,");
}

/* One stay a minute: 20000 of them are the first 14 days. */
static void plots_of_nodes_say_for_how_long_they_stand(void **state)
{
    g_autofree SimFixtureJob *jobs = g_new(SimFixtureJob, SIM_PLOT_STAYS + 4000);
    skip_without_gnuplot();
    for (guint i = 0; i < SIM_PLOT_STAYS + 4000; i++)
        jobs[i] = (SimFixtureJob){60 * i, 60, 60, 4};
    trace(*state, jobs, SIM_PLOT_STAYS + 4000);
    g_autoptr(Said) said = sim_program(*state, "--policy easy --pool --plot . a.swf");
    assert_status(said, 0);
    g_autofree char *script = content(*state, "nodes-easy.gp");
    assert_has(script, "vCPUs: easy, the first 14 of 17 days'\n");
    assert_null(strstr(script, "last arrival")); /* it is beyond what is drawn */
    trace(*state, jobs, 2);
    g_autoptr(Said) all = sim_program(*state, "--policy easy --pool --plot . a.swf");
    assert_status(all, 0);
    g_autofree char *whole = content(*state, "nodes-easy.gp");
    assert_has(whole, "vCPUs: easy'\n");
}

static void plots_of_reservations_have_what_the_policy_has(void **state)
{
    static const struct {
        const char *name;
        gboolean reserves, slack;
    } cases[] = {{"reserved-easy.gp", TRUE, FALSE},
                 {"reserved-berth.gp", TRUE, TRUE},
                 {"reserved-bound.gp", FALSE, FALSE}};
    skip_without_gnuplot();
    trace(*state, three, G_N_ELEMENTS(three));
    g_autoptr(Said) said = sim_program(*state, "--policy easy,berth,bound --plot . a.swf");
    assert_status(said, 0);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *script = content(*state, cases[i].name);
        assert_has(script, "title 'CPU used'");
        assert_true((strstr(script, "title 'CPU reserved'") != NULL) == cases[i].reserves);
        assert_true((strstr(script, "title 'memory reserved'") != NULL) == cases[i].reserves);
        assert_true((strstr(script, "title 'CPU reserved in slack'") != NULL) == cases[i].slack);
    }
}

static void plots_of_waiting_leave_the_bound_out(void **state)
{
    skip_without_gnuplot();
    trace(*state, three, G_N_ELEMENTS(three));
    g_autoptr(Said) both = sim_program(*state, "--policy easy,bound --plot . a.swf");
    assert_status(both, 0);
    g_autofree char *queue = content(*state, "queue.gp");
    g_autofree char *waits = content(*state, "waits.gp");
    g_autofree char *data = content(*state, "waits.dat");
    g_autofree char *cpu = content(*state, "utilisation-cpu.gp");
    g_autofree char *reserved = content(*state, "reserved-bound.gp");
    assert_null(strstr(queue, "bound"));
    assert_null(strstr(waits, "columnheader(3)"));
    assert_null(strstr(data, "bound"));
    assert_has(cpu, "set title 'CPU used (bound: the demand in one queue, not scheduled)'");
    assert_has(cpu, "title 'bound'");
    assert_has(reserved, "set title 'Wanted, and served as in one queue: bound, which schedules");
    /* Nothing is left of the charts of before. */
    g_autoptr(Said) bound = sim_program(*state, "--policy bound --plot . a.swf");
    assert_status(bound, 0);
    assert_false(exists(*state, "queue.svg") || exists(*state, "waits.svg"));
    g_autoptr(Said) easy = sim_program(*state, "--policy easy --plot . a.swf");
    g_autofree char *alone = content(*state, "utilisation-cpu.gp");
    assert_has(alone, "set title 'CPU used'");
}

static void plots_of_waits_say_their_units(void **state)
{
    /* The last waits for 100 s, or for 12 days. */
    static const SimFixtureJob brief[] = {{0, 100, 100, 4}, {0, 100, 100, 4}};
    static const SimFixtureJob days[] = {{0, 10, 10, 4}, {0, 1036800, 1036800, 4}, {0, 10, 10, 1}};
    skip_without_gnuplot();
    trace(*state, brief, G_N_ELEMENTS(brief));
    g_autoptr(Said) first = sim_program(*state, "--policy easy --plot . a.swf");
    assert_status(first, 0);
    g_autofree char *dense = content(*state, "waits.gp");
    assert_has(dense, "set ylabel 'mean wait (s, logarithmic)'\n");
    assert_has(dense, "'30 s' 30, '1 min' 60, '10 min' 600, '2 min' 120, ");
    trace(*state, days, G_N_ELEMENTS(days));
    g_autoptr(Said) second = sim_program(*state, "--policy fcfs --plot . a.swf");
    assert_status(second, 0);
    g_autofree char *sparse = content(*state, "waits.gp");
    assert_has(sparse,
               "'10 s' 10, '1 min' 60, '10 min' 600, '1 h' 3600, '10 h' 36000, '1 d' 86400");
    g_autofree char *data = content(*state, "waits.dat");
    assert_has(data, "\"1\" 1.03681e+06\n");
}

static void plots_of_many_nodes_say_which_they_show(void **state)
{
    static const SimFixtureJob job = {0, 100, 100, 4};
    skip_without_gnuplot();
    trace(*state, &job, 1);
    g_autoptr(Said) said = sim_program(*state, "--policy easy --nodes 65 --plot . a.swf");
    assert_status(said, 0);
    g_autofree char *script = content(*state, "nodes-easy.gp");
    assert_has(script, "the first 64 of 65 nodes");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json_replaces_what_a_link_leads_to),
        TEST(json_goes_through_a_fifo),
        TEST(json_that_cannot_be_written_fails_before_the_run),
        TEST(gaps_and_runs_may_be_longer_than_a_thousand_days),
        TEST(a_job_that_never_ends_is_said_to),
        TEST(a_load_of_millennia_is_refused),
        TEST(jobs_too_large_are_in_neither_bound_nor_load),
        TEST(nodes_of_two_sizes_are_all_used),
        TEST(bound_goes_on_to_the_end_of_all_jobs),
        TEST(bound_has_no_waits_in_the_table),
        TEST(failures_have_columns_where_there_may_be_any),
        TEST(jobs_of_one_instant_have_no_load_but_work),
        TEST(options_without_effect_are_said_to_have_none),
        TEST(constants_that_a_log_does_not_use_are_said_to_have_no_effect),
        TEST(usage_that_the_trace_does_not_say_is_said),
        TEST(usage_and_memory_that_are_cut_are_said),
        TEST(limits_that_are_not_the_trace_s_are_said),
        TEST(a_run_that_is_interrupted_shows_what_is_done),
        TEST(jobs_too_large_are_so_for_every_policy),
        TEST(job_of_millions_of_guests_is_refused),
        TEST(one_is_said_in_the_singular),
        TEST(explain_of_a_job_that_is_not_there_says_so),
        TEST(numbers_that_come_again_are_said_in_the_head),
        TEST(explain_ends_with_where_the_time_went),
        TEST(explain_names_who_comes_before),
        TEST(a_task_of_an_array_is_explained),
        TEST(jobs_are_listed_as_they_end),
        TEST(jobs_listed_have_their_moves),
        TEST(plots_of_one_instant_are_drawn),
        TEST(plots_of_other_policies_do_not_stay),
        TEST(plots_stack_guests_by_vcpus),
        TEST(plots_of_nodes_have_one_scale),
        TEST(plots_mark_the_last_arrival),
        TEST(plots_mark_a_late_last_arrival_to_its_left),
        TEST(plots_of_nodes_say_for_how_long_they_stand),
        TEST(plots_of_reservations_have_what_the_policy_has),
        TEST(plots_of_waiting_leave_the_bound_out),
        TEST(plots_of_waits_say_their_units),
        TEST(plots_of_many_nodes_say_which_they_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
