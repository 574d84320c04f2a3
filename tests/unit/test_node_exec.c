/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on the host, for real. */
#include <config.h>

#include "nodeagent/host_cpus.h"
#include "nodeagent/node_exec.h"
#include "nodeagent/node_unit.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

typedef struct {
    BerthExec *exec;
    GString *text[2];
    guint n_taken;
    gboolean has_ended;
    gboolean is_slow; /* the command ends while the first output is taken */
    Berth__Exit exit;
} Run;

static void on_output(gboolean is_stderr, guint64 offset, const guint8 *data, gsize length,
                      gpointer user_data)
{
    GString *text = ((Run *)user_data)->text[is_stderr];
    assert_int_equal(offset, text->len);
    g_string_append_len(text, (const char *)data, (gssize)length);
    siginfo_t info;
    if (((Run *)user_data)->is_slow && text->len == length)
        assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
}

static void on_taken(gpointer user_data)
{
    ((Run *)user_data)->n_taken++;
}

static void on_ended(const Berth__Exit *exit, const GError *error, gpointer user_data)
{
    Run *run = user_data;
    assert_null(error);
    assert_false(run->has_ended);
    run->has_ended = TRUE;
    run->exit = *exit;
}

static void run_clear(Run *run)
{
    g_string_free(run->text[0], TRUE);
    g_string_free(run->text[1], TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

static const BerthExecFuncs funcs = {on_output, on_taken, on_ended};

static void begin(Run *run, const char *script)
{
    char *const command[] = {(char *)"sh", (char *)"-c", (char *)script};
    g_autoptr(GError) error = NULL;
    *run = (Run){.text = {g_string_new(NULL), g_string_new(NULL)}};
    run->exec = berth_node_exec_open(command, 3, &funcs, run, &error);
    assert_no_error(error);
}

static gboolean is_there(const GString *pid)
{
    return kill((pid_t)g_ascii_strtoll(pid->str, NULL, 10), 0) == 0;
}

static void command_has_its_streams_and_its_status(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "pwd; cat; echo err >&2; exit 3");
    run.exec->class->input(run.exec, (const guint8 *)"in", 2, FALSE);
    run_until(run.n_taken == 1);
    run.exec->class->input(run.exec, (const guint8 *)"put", 3, TRUE);
    run_until(run.has_ended);
    assert_string_equal(run.text[0]->str, "/\ninput");
    assert_string_equal(run.text[1]->str, "err\n");
    assert_int_equal(run.exit.status, 3);
}

static void output_waits_for_acknowledgements(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "head -c 200000 /dev/zero; echo done >&2");
    run_until(run.text[0]->len == BERTH_EXEC_WINDOW_BYTES);
    while (!run.has_ended) {
        const guint64 acked[2] = {run.text[0]->len, run.text[1]->len};
        assert_true(run.text[0]->len <= 200000);
        run.exec->class->control(run.exec, acked, 0);
        run_until(run.has_ended || run.text[0]->len > acked[0] || run.text[1]->len > acked[1]);
    }
    assert_int_equal(run.text[0]->len, 200000);
    assert_string_equal(run.text[1]->str, "done\n");
}

/* More than the window and less than that and a pipe, so that it ends before all of it is read. */
static void output_of_one_that_has_ended_waits_for_acknowledgements(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "head -c 70000 /dev/zero");
    run.is_slow = TRUE;
    run_until(run.text[0]->len == BERTH_EXEC_WINDOW_BYTES);
    for (guint i = 0; i < 10; i++)
        g_main_context_iteration(NULL, FALSE);
    assert_false(run.has_ended);
    run.exec->class->control(run.exec, (guint64[]){run.text[0]->len, 0}, 0);
    run_until(run.has_ended);
    assert_int_equal(run.text[0]->len, 70000);
}

static void command_that_reads_nothing_takes_its_input(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "exec <&-; echo closed; sleep 0.5");
    run_until(run.text[0]->len > 0);
    run.exec->class->input(run.exec, (const guint8 *)"lost", 4, FALSE);
    run_until(run.n_taken == 1); /* and this process lives */
    run_until(run.has_ended);
}

static void signal_reaches_it(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "trap 'exit 9' USR1; echo set; while :; do sleep 0.05; done");
    run_until(run.text[0]->len > 0);
    run.exec->class->control(run.exec, (guint64[]){0, 0}, SIGUSR1);
    run_until(run.has_ended);
    assert_int_equal(run.exit.status, 9);
}

static void end_takes_along_what_was_left_running(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "sleep 1000 & echo $!");
    run_until(run.has_ended);
    assert_int_equal(run.exit.status, 0);
    run_until(!is_there(run.text[0]));
}

static void close_ends_one_that_ignores_its_hangup(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "trap '' HUP; echo $$; while :; do sleep 1; done");
    run_until(run.text[0]->len > 0);
    assert_true(is_there(run.text[0]));
    run.exec->class->close(run.exec);
    run_until(!is_there(run.text[0]));
    assert_false(run.has_ended);
}

static void command_takes_sigpipe_as_elsewhere(void **state)
{
    g_auto(Run) run = {0};
    begin(&run, "kill -PIPE $$; echo alive");
    run_until(run.has_ended);
    assert_int_equal(run.exit.signal, SIGPIPE);
    assert_string_equal(run.text[0]->str, "");
}

static void command_that_is_not_there_is_refused(void **state)
{
    char *const command[] = {(char *)"no-such-command"};
    g_autoptr(GError) error = NULL;
    assert_null(berth_node_exec_open(command, 1, &funcs, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "no-such-command");
}

/* The agent is spared where memory is short; what people run on the host is not. */
static void command_is_as_ready_to_be_ended_as_any_other(void **state)
{
    static const char path[] = "/proc/self/oom_score_adj";
    g_auto(Run) run = {0};
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs("77", file) >= 0);
    assert_int_equal(fclose(file), 0);
    begin(&run, "cat /proc/self/oom_score_adj");
    run_until(run.has_ended);
    assert_string_equal(run.text[0]->str, "0\n");
}

/* The CPUs that a command may run on, as the kernel writes them. */
static char *cpus_of_a_command(void)
{
    g_auto(Run) run = {0};
    begin(&run, "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status");
    run_until(run.has_ended);
    assert_int_equal(run.exit.status, 0);
    return g_strdup(g_strchomp(run.text[0]->str));
}

static int first_of(const cpu_set_t *cpus)
{
    int cpu = 0;
    while (!CPU_ISSET(cpu, cpus))
        cpu++;
    return cpu;
}

/* Where the agent was put by whoever started it (taskset, CPUAffinity=), and not where it has bound itself. */
static void command_runs_where_the_agent_was_put(void **state)
{
    cpu_set_t all, some;
    g_autoptr(GError) error = NULL;
    g_autofree char *barred = NULL;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    g_autofree char *first = g_strdup_printf("%d", first_of(&all));
    g_autofree char *before = cpus_of_a_command();
    CPU_ZERO(&some);
    CPU_SET(first_of(&all), &some);
    assert_int_equal(sched_setaffinity(0, sizeof some, &some), 0);
    g_autofree char *put = cpus_of_a_command();
    assert_string_equal(put, first);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_true(berth_host_cpus_bind(first, &barred, &error));
    assert_no_error(error);
    g_autofree char *bound = cpus_of_a_command();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_string_equal(bound, before);
}

static void unit_has_the_commands_words_as_they_are(void **state)
{
    char *const command[] = {(char *)"sh", (char *)"-c", (char *)"echo $HOME $$ 100% \"a b\""};
    g_auto(GStrv) argv = berth_node_unit_argv("x.service", command, 3);
    const guint n = g_strv_length(argv);
    assert_string_equal(argv[0], "systemd-run");
    assert_true(g_strv_contains((const char *const *)argv, "--unit=x.service"));
    assert_string_equal(argv[n - 4], "--");
    assert_string_equal(argv[n - 2], "-c");
    assert_string_equal(argv[n - 1], "echo $$HOME $$$$ 100% \"a b\"");
}

/* The agent's end, for which the command may be there, is neither its own nor its output's. */
static void unit_is_tied_to_no_other(void **state)
{
    static const char *const ties[] = {
        "BindsTo=", "PartOf=", "Requires=", "Requisite=", "Conflicts=", "StopPropagatedFrom=",
        "Slice="};
    char *const command[] = {(char *)"true"};
    g_auto(GStrv) argv = berth_node_unit_argv("x.service", command, 1);
    g_autofree char *line = g_strjoinv(" ", argv);
    for (gsize i = 0; i < G_N_ELEMENTS(ties); i++)
        assert_null(strstr(line, ties[i]));
    assert_null(strstr(line, "--scope")); /* which would be the agent's child */
    assert_true(g_strv_contains((const char *const *)argv, "--property=IgnoreSIGPIPE=yes"));
}

/* --- as units, of a systemd that loads one when it is told to ------------------------------------ */

static gboolean is_systemd;

gboolean __wrap_berth_node_unit_is_possible(void);
gboolean __wrap_berth_node_unit_is_possible(void)
{
    return is_systemd;
}

typedef struct {
    char *dir;
    char *path; /* the search path of before */
} Systemd;

static void put_script(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *script = g_strdup_printf("#!/bin/sh\ncd '%s' || exit\n%s", dir, text);
    assert_true(g_file_set_contents(path, script, -1, NULL));
    assert_int_equal(chmod(path, 0700), 0);
}

static void *in_dir(const Systemd *systemd, const char *name)
{
    return g_build_filename(systemd->dir, name, NULL);
}

static int systemd_make(void **state)
{
    Systemd *systemd = g_new0(Systemd, 1);
    tempdir_make((void **)&systemd->dir);
    systemd->path = g_strdup(g_getenv("PATH"));
    g_autofree char *path = g_strdup_printf("%s:%s", systemd->dir, systemd->path);
    g_autofree char *fifo = in_dir(systemd, "load");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    put_script(systemd->dir, "systemd-run",
               "while [ \"$1\" != -- ]; do shift; done; shift; read word < load\n"
               "setsid \"$@\" & echo $! > pid.new; mv pid.new pid; wait $!\n");
    put_script(systemd->dir, "systemctl",
               "echo \"$1\" >> calls\n[ -e pid ] && kill -HUP $(cat pid)\n");
    g_setenv("PATH", path, TRUE);
    is_systemd = TRUE;
    *state = systemd;
    return 0;
}

static int systemd_remove(void **state)
{
    Systemd *systemd = *state;
    is_systemd = FALSE;
    g_setenv("PATH", systemd->path, TRUE);
    tempdir_remove((void **)&systemd->dir);
    g_free(systemd->path);
    g_free(systemd);
    return 0;
}

static void load_unit(const Systemd *systemd)
{
    g_autofree char *fifo = in_dir(systemd, "load");
    FILE *file = fopen(fifo, "we");
    assert_non_null(file);
    assert_true(fputs("now\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static gboolean has_file(const Systemd *systemd, const char *name, GString *out_text)
{
    g_autofree char *path = in_dir(systemd, name);
    g_autofree char *text = NULL;
    gboolean is_there = g_file_get_contents(path, &text, NULL, NULL);
    g_string_assign(out_text, is_there ? text : "");
    return is_there;
}

static void close_before_its_unit_is_there_ends_it(void **state)
{
    const Systemd *systemd = *state;
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(Run) run = {0};
    begin(&run, "sleep 1000");
    run.exec->class->close(run.exec);
    /* And again, as long as it is not there. */
    run_until(has_file(systemd, "calls", text) && g_str_has_prefix(text->str, "stop\n"));
    load_unit(systemd);
    run_until(has_file(systemd, "pid", text));
    run_until(!is_there(text));
}

static void leave_lets_its_unit_go_on(void **state)
{
    const Systemd *systemd = *state;
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(Run) run = {0};
    begin(&run, "echo begun; exec sleep 1000");
    load_unit(systemd);
    run_until(run.text[0]->len > 0);
    berth_node_exec_leave(run.exec);
    for (guint i = 0; i < 10; i++)
        g_main_context_iteration(NULL, FALSE);
    assert_false(has_file(systemd, "calls", text));
    run_until(has_file(systemd, "pid", text));
    assert_true(is_there(text));
    pid_t pid = (pid_t)g_ascii_strtoll(text->str, NULL, 10);
    assert_int_equal(kill(pid, SIGKILL), 0);
    run_until(!is_there(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_has_its_streams_and_its_status),
        cmocka_unit_test(output_waits_for_acknowledgements),
        cmocka_unit_test(output_of_one_that_has_ended_waits_for_acknowledgements),
        cmocka_unit_test(command_that_reads_nothing_takes_its_input),
        cmocka_unit_test(signal_reaches_it),
        cmocka_unit_test(end_takes_along_what_was_left_running),
        cmocka_unit_test(close_ends_one_that_ignores_its_hangup),
        cmocka_unit_test(command_takes_sigpipe_as_elsewhere),
        cmocka_unit_test(command_that_is_not_there_is_refused),
        cmocka_unit_test(command_is_as_ready_to_be_ended_as_any_other),
        cmocka_unit_test(command_runs_where_the_agent_was_put),
        cmocka_unit_test(unit_has_the_commands_words_as_they_are),
        cmocka_unit_test(unit_is_tied_to_no_other),
        cmocka_unit_test_setup_teardown(close_before_its_unit_is_there_ends_it, systemd_make,
                                        systemd_remove),
        cmocka_unit_test_setup_teardown(leave_lets_its_unit_go_on, systemd_make, systemd_remove),
    };
    signal(SIGPIPE, SIG_IGN); /* as in berth-node */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
