/* SPDX-License-Identifier: Apache-2.0 */
/* Commands beside a job's, as processes of this test on its host; a session of their own stands for the control
 * group of each. */
#include "tests/lib/assert.h"

#include "images/init/execs.h"

#include "common/exec.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS (2u * BERTH_EXECS_MAX)

static pid_t pids[NUMBERS]; /* 0: not known yet */
static guint removed;
static unsigned opened = NUMBERS; /* the newest group, of which the process is still to be found */

/* What the host has heard of a command. */
typedef struct {
    GString *text[2];
    guint64 acked[2];
    gboolean acks;
    guint64 taken;
    guint n_taken;
    gboolean has_ended;
    Berth__Exit exit;
    char *error;
} Heard;

typedef struct {
    Execs *execs;
    ProcessSpec base;
    Heard heard[10]; /* by id */
} Fixture;

/* --- groups ---------------------------------------------------------------------------------- */

static gboolean has_no_groups;

static bool open_group(unsigned number, int *out_fd)
{
    if (has_no_groups) {
        errno = ENOSPC;
        return false;
    }
    pids[number] = 0;
    opened = number;
    *out_fd = -1; /* stay */
    return true;
}

static gboolean is_known(pid_t pid)
{
    for (guint i = 0; i < NUMBERS; i++)
        if (pids[i] == pid)
            return TRUE;
    return FALSE;
}

/* The child of this process that leads a session and is nobody else's. */
static pid_t find_child(void)
{
    FILE *children = fopen("/proc/thread-self/children", "re");
    int pid, found = 0;
    assert_non_null(children);
    while (fscanf(children, "%d", &pid) == 1) {
        while (getsid(pid) != pid && getsid(pid) == getsid(0))
            g_usleep(100); /* it is on its way */
        if (getsid(pid) == pid && !is_known(pid))
            found = pid;
    }
    fclose(children);
    return found;
}

static pid_t pid_of(unsigned number)
{
    if (pids[number] == 0)
        pids[number] = find_child();
    return pids[number];
}

static void signal_group(unsigned number, int signal)
{
    if (pid_of(number) > 0)
        (void)kill(-pid_of(number), signal);
}

static bool is_populated(unsigned number)
{
    return pid_of(number) > 0 && kill(-pid_of(number), 0) == 0;
}

static void remove_group(unsigned number)
{
    pids[number] = 0;
    removed++;
}

/* --- the host -------------------------------------------------------------------------------- */

static void say(Fixture *fixture, Berth__ToGuest__BodyCase body, gpointer value)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = body;
    message.exec = value;
    execs_handle(fixture->execs, &message, &fixture->base);
}

static void begin_on(Fixture *fixture, guint64 id, const char *script, Berth__Terminal *terminal)
{
    const char *command[] = {"/bin/sh", "-c", script};
    Berth__ToGuest__Exec exec = BERTH__TO_GUEST__EXEC__INIT;
    exec.exec = id;
    exec.terminal = terminal;
    exec.command = (char **)(gpointer)command;
    exec.n_command = G_N_ELEMENTS(command);
    say(fixture, BERTH__TO_GUEST__BODY_EXEC, &exec);
    if (opened < NUMBERS)
        pid_of(opened); /* before there is another one that it could be */
    opened = NUMBERS;
}

static void begin(Fixture *fixture, guint64 id, const char *script)
{
    begin_on(fixture, id, script, NULL);
}

static void input(Fixture *fixture, guint64 id, guint64 offset, const char *text, gboolean end)
{
    Berth__ToGuest__ExecInput body = BERTH__TO_GUEST__EXEC_INPUT__INIT;
    body.exec = id;
    body.offset = offset;
    body.data = (ProtobufCBinaryData){strlen(text), (guint8 *)text};
    body.end = end;
    say(fixture, BERTH__TO_GUEST__BODY_EXEC_INPUT, &body);
}

static void control(Fixture *fixture, guint64 id, guint signal)
{
    Berth__ToGuest__ExecControl body = BERTH__TO_GUEST__EXEC_CONTROL__INIT;
    body.exec = id;
    body.stdout_bytes = fixture->heard[id].acked[0];
    body.stderr_bytes = fixture->heard[id].acked[1];
    body.signal = signal;
    say(fixture, BERTH__TO_GUEST__BODY_EXEC_CONTROL, &body);
}

static void close_(Fixture *fixture, guint64 id)
{
    Berth__ToGuest__ExecClose body = BERTH__TO_GUEST__EXEC_CLOSE__INIT;
    body.exec = id;
    say(fixture, BERTH__TO_GUEST__BODY_EXEC_CLOSE, &body);
}

static void hear_output(Fixture *fixture, const Berth__FromGuest__ExecOutput *output)
{
    Heard *heard = &fixture->heard[output->exec];
    guint stream = output->is_stderr;
    GString *text = heard->text[stream];
    assert_false(heard->has_ended);
    assert_true(output->offset <= text->len); /* no gap; what came before is overwritten */
    g_string_overwrite_len(text, output->offset, (const char *)output->data.data,
                           (gssize)output->data.len);
    assert_true(text->len <= heard->acked[stream] + BERTH_EXEC_WINDOW_BYTES);
    if (!heard->acks)
        return;
    heard->acked[stream] = text->len;
    control(fixture, output->exec, 0);
}

static void hear(Fixture *fixture)
{
    Berth__FromGuest message;
    berth__from_guest__init(&message);
    while (execs_next(fixture->execs, &message)) {
        if (message.body_case == BERTH__FROM_GUEST__BODY_EXEC_OUTPUT) {
            hear_output(fixture, message.exec_output);
        } else if (message.body_case == BERTH__FROM_GUEST__BODY_EXEC_TAKEN) {
            fixture->heard[message.exec_taken->exec].taken = message.exec_taken->input_bytes;
            fixture->heard[message.exec_taken->exec].n_taken++;
        } else {
            assert_int_equal(message.body_case, BERTH__FROM_GUEST__BODY_EXEC_ENDED);
            Heard *heard = &fixture->heard[message.exec_ended->exec];
            heard->has_ended = TRUE;
            heard->exit = *message.exec_ended->exit;
            g_free(heard->error);
            heard->error = g_strdup(message.exec_ended->exit->error);
        }
    }
}

/* --- PID 1 ----------------------------------------------------------------------------------- */

static void step(Fixture *fixture)
{
    struct pollfd ready = {.fd = execs_fd(fixture->execs), .events = POLLIN};
    int status;
    pid_t pid;
    (void)poll(&ready, 1, 5);
    execs_pump(fixture->execs);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        execs_note_ended(fixture->execs, pid, status);
    hear(fixture);
}

#define step_until(fixture, condition)                                                             \
    do {                                                                                           \
        gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;                            \
        while (!(condition)) {                                                                     \
            if (g_get_monotonic_time() > deadline)                                                 \
                fail_msg("not within 60 s: %s", #condition);                                       \
            step(fixture);                                                                         \
        }                                                                                          \
    } while (0)

static int setup(void **state)
{
    static const ExecGroups groups = {open_group, signal_group, is_populated, remove_group};
    static char *environment[] = {(char *)"PATH=/usr/bin:/bin", (char *)"WHO=me", NULL};
    Fixture *fixture = g_new0(Fixture, 1);
    fixture->base = (ProcessSpec){.envp = environment,
                                  .directory = "/",
                                  .uid = getuid(),
                                  .gid = getgid(),
                                  .cgroup_fd = -1,
                                  .has_input = true};
    fixture->execs = execs_new(&groups);
    assert_non_null(fixture->execs);
    for (guint i = 0; i < G_N_ELEMENTS(fixture->heard); i++) {
        fixture->heard[i].text[0] = g_string_new(NULL);
        fixture->heard[i].text[1] = g_string_new(NULL);
        fixture->heard[i].acks = TRUE;
    }
    removed = 0;
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    for (guint i = 0; i < NUMBERS; i++)
        signal_group(i, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    for (guint i = 0; i < G_N_ELEMENTS(fixture->heard); i++) {
        g_string_free(fixture->heard[i].text[0], TRUE);
        g_string_free(fixture->heard[i].text[1], TRUE);
        g_free(fixture->heard[i].error);
    }
    execs_free(fixture->execs);
    g_free(fixture);
    memset(pids, 0, sizeof pids);
    return 0;
}

/* --- tests ----------------------------------------------------------------------------------- */

static void exec_has_its_streams_and_its_status(void **state)
{
    Fixture *fixture = *state;
    Heard *heard = &fixture->heard[1];
    begin(fixture, 1, "cat; echo err $WHO >&2; exit 3");
    input(fixture, 1, 0, "some ", FALSE);
    step_until(fixture, heard->taken == 5);
    input(fixture, 1, 5, "input", TRUE);
    step_until(fixture, heard->has_ended);
    assert_string_equal(heard->text[0]->str, "some input");
    assert_string_equal(heard->text[1]->str, "err me\n");
    assert_int_equal(heard->exit.status, 3);
    assert_int_equal(heard->exit.signal, 0);
    assert_string_equal(heard->error, "");
    assert_int_equal(removed, 1);
}

static void exec_that_is_not_there_says_why(void **state)
{
    Fixture *fixture = *state;
    Heard *heard = &fixture->heard[1];
    char *command[] = {(char *)"no-such-command"};
    Berth__ToGuest__Exec exec = BERTH__TO_GUEST__EXEC__INIT;
    exec.exec = 1;
    exec.command = command;
    exec.n_command = 1;
    say(fixture, BERTH__TO_GUEST__BODY_EXEC, &exec);
    step_until(fixture, heard->has_ended);
    assert_int_equal(heard->exit.status, 127);
    assert_non_null(strstr(heard->error, "no such command"));
}

static void exec_without_a_job_that_runs_is_refused(void **state)
{
    Fixture *fixture = *state;
    char *command[] = {(char *)"true"};
    Berth__ToGuest__Exec exec = BERTH__TO_GUEST__EXEC__INIT;
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    exec.exec = 1;
    exec.command = command;
    exec.n_command = 1;
    message.body_case = BERTH__TO_GUEST__BODY_EXEC;
    message.exec = &exec;
    execs_handle(fixture->execs, &message, NULL);
    hear(fixture);
    assert_true(fixture->heard[1].has_ended);
    assert_int_equal(fixture->heard[1].exit.status, 126);
    assert_non_null(strstr(fixture->heard[1].error, "does not run"));
}

/* It would run beside the job's limits, as init itself. */
static void exec_without_a_group_of_its_own_is_refused(void **state)
{
    Fixture *fixture = *state;
    has_no_groups = TRUE;
    begin(fixture, 1, "echo it runs");
    has_no_groups = FALSE;
    step_until(fixture, fixture->heard[1].has_ended);
    assert_int_equal(fixture->heard[1].exit.status, 126);
    assert_non_null(strstr(fixture->heard[1].error, "control group"));
    assert_int_equal(fixture->heard[1].text[0]->len, 0);
    assert_int_equal(removed, 0);
}

static void output_waits_for_acknowledgements(void **state)
{
    Fixture *fixture = *state;
    Heard *heard = &fixture->heard[1];
    heard->acks = FALSE;
    begin(fixture, 1, "head -c 200000 /dev/zero; echo done >&2");
    step_until(fixture, heard->text[0]->len == BERTH_EXEC_WINDOW_BYTES);
    for (guint i = 0; i < 20; i++)
        step(fixture); /* hear_output() checks that no more comes */
    assert_int_equal(heard->text[1]->len, 0);
    heard->acks = TRUE;
    heard->acked[0] = heard->text[0]->len;
    control(fixture, 1, 0);
    step_until(fixture, heard->has_ended);
    assert_int_equal(heard->text[0]->len, 200000);
    assert_string_equal(heard->text[1]->str, "done\n");
}

static void a_new_session_says_again_what_was_not_acknowledged(void **state)
{
    Fixture *fixture = *state;
    Heard *heard = &fixture->heard[1];
    const uint64_t ids[] = {1};
    heard->acks = FALSE;
    begin(fixture, 1, "echo one; read line; echo $line; exit 5");
    step_until(fixture, heard->text[0]->len == 4);
    input(fixture, 1, 0, "two\n", FALSE);
    step_until(fixture, heard->has_ended);
    heard->has_ended = FALSE;
    heard->taken = 0;
    g_string_truncate(heard->text[0], 0);
    execs_renew(fixture->execs, ids, 1);
    step_until(fixture, heard->has_ended);
    assert_string_equal(heard->text[0]->str, "one\ntwo\n");
    assert_int_equal(heard->taken, 4);
    assert_int_equal(heard->exit.status, 5);
    close_(fixture, 1);
    heard->has_ended = FALSE;
    execs_renew(fixture->execs, NULL, 0);
    step(fixture);
    assert_false(heard->has_ended); /* it is forgotten */
}

static void a_new_session_ends_those_that_it_does_not_name(void **state)
{
    Fixture *fixture = *state;
    const uint64_t ids[] = {2, 3};
    begin(fixture, 1, "echo on; cat");
    begin(fixture, 2, "echo on; cat");
    step_until(fixture, fixture->heard[1].text[0]->len == 3 && fixture->heard[2].text[0]->len == 3);
    execs_renew(fixture->execs, ids, 2);
    step_until(fixture, fixture->heard[1].has_ended && fixture->heard[3].has_ended);
    assert_int_equal(fixture->heard[1].exit.signal, SIGHUP);
    assert_non_null(strstr(fixture->heard[3].error, "not known"));
    assert_false(fixture->heard[2].has_ended);
    input(fixture, 2, 0, "", TRUE);
    step_until(fixture, fixture->heard[2].has_ended);
    assert_int_equal(fixture->heard[2].exit.status, 0);
}

static void close_ends_one_that_ignores_its_hangup(void **state)
{
    Fixture *fixture = *state;
    begin(fixture, 1, "trap '' HUP; echo on; while :; do sleep 1; done");
    step_until(fixture, fixture->heard[1].text[0]->len == 3);
    close_(fixture, 1);
    step_until(fixture, fixture->heard[1].has_ended);
    assert_int_equal(fixture->heard[1].exit.signal, SIGKILL);
    begin(fixture, 1, "exit 6"); /* its place and its number are free */
    fixture->heard[1].has_ended = FALSE;
    step_until(fixture, fixture->heard[1].has_ended);
    assert_int_equal(fixture->heard[1].exit.status, 6);
}

static void end_takes_along_what_was_left_running(void **state)
{
    Fixture *fixture = *state;
    begin(fixture, 1, "sleep 1000 & echo $!");
    step_until(fixture, fixture->heard[1].has_ended);
    pid_t left = (pid_t)g_ascii_strtoll(fixture->heard[1].text[0]->str, NULL, 10);
    assert_true(left > 1);
    assert_int_equal(kill(left, 0), -1);
    assert_int_equal(errno, ESRCH);
}

static void signal_reaches_it(void **state)
{
    Fixture *fixture = *state;
    begin(fixture, 1, "trap 'exit 9' TERM; echo on; while :; do sleep 0.05; done");
    step_until(fixture, fixture->heard[1].text[0]->len == 3);
    control(fixture, 1, SIGTERM);
    step_until(fixture, fixture->heard[1].has_ended);
    assert_int_equal(fixture->heard[1].exit.status, 9);
}

static void end_of_the_job_is_said_to_be_the_reason(void **state)
{
    Fixture *fixture = *state;
    begin(fixture, 1, "echo on; cat");
    step_until(fixture, fixture->heard[1].text[0]->len == 3);
    execs_kill(fixture->execs);
    step_until(fixture, fixture->heard[1].has_ended);
    assert_int_equal(fixture->heard[1].exit.signal, SIGKILL);
    assert_non_null(strstr(fixture->heard[1].error, "the job has ended"));
}

static void input_that_nobody_reads_is_taken(void **state)
{
    Fixture *fixture = *state;
    Heard *heard = &fixture->heard[1];
    begin(fixture, 1, "exec <&-; echo on; sleep 0.2");
    step_until(fixture, heard->text[0]->len == 3);
    input(fixture, 1, 0, "lost", FALSE);
    step_until(fixture, heard->taken == 4);
    input(fixture, 1, 0, "lost", FALSE); /* again */
    step_until(fixture, heard->n_taken == 2);
    assert_int_equal(heard->taken, 4);
    step_until(fixture, heard->has_ended);
    input(fixture, 1, 4, "late", TRUE);
    step_until(fixture, heard->taken == 8);
}

static void terminal_is_its_own_and_has_a_size(void **state)
{
    Fixture *fixture = *state;
    Heard *heard = &fixture->heard[1];
    Berth__Terminal terminal = BERTH__TERMINAL__INIT;
    terminal.rows = 31;
    terminal.columns = 97;
    terminal.type = (char *)"vt220";
    begin_on(fixture, 1,
             "stty size </dev/tty; echo $TERM $WHO; test -t 0 -a -t 1 -a -t 2 && echo all; "
             "trap 'stty size; exit 8' WINCH; echo set; while :; do sleep 0.05; done",
             &terminal);
    step_until(fixture, strstr(heard->text[0]->str, "set\r\n") != NULL);
    assert_string_equal(heard->text[0]->str, "31 97\r\nvt220 me\r\nall\r\nset\r\n");
    Berth__ToGuest__ExecControl body = BERTH__TO_GUEST__EXEC_CONTROL__INIT;
    body.exec = 1;
    terminal.columns = 132;
    body.size = &terminal;
    say(fixture, BERTH__TO_GUEST__BODY_EXEC_CONTROL, &body);
    step_until(fixture, heard->has_ended);
    assert_int_equal(heard->exit.status, 8);
    assert_true(g_str_has_suffix(heard->text[0]->str, "31 132\r\n"));
}

static void terminal_passes_control_characters_on(void **state)
{
    Fixture *fixture = *state;
    Heard *heard = &fixture->heard[1];
    Berth__Terminal terminal = BERTH__TERMINAL__INIT;
    begin_on(fixture, 1, "stty -echo; trap 'echo caught; exit 4' INT; echo set; read line; exit 5",
             &terminal);
    step_until(fixture, strstr(heard->text[0]->str, "set\r\n") != NULL);
    input(fixture, 1, 0, "\003", FALSE);
    step_until(fixture, heard->has_ended);
    assert_int_equal(heard->exit.status, 4);
    assert_non_null(strstr(heard->text[0]->str, "caught"));
}

static void more_than_may_run_are_refused(void **state)
{
    Fixture *fixture = *state;
    for (guint id = 1; id <= BERTH_EXECS_MAX; id++)
        begin(fixture, id, "cat");
    begin(fixture, 9, "cat");
    step_until(fixture, fixture->heard[9].has_ended);
    assert_non_null(strstr(fixture->heard[9].error, "all that may"));
    for (guint id = 1; id <= BERTH_EXECS_MAX; id++) {
        assert_false(fixture->heard[id].has_ended);
        input(fixture, id, 0, "", TRUE);
    }
    for (guint id = 1; id <= BERTH_EXECS_MAX; id++)
        step_until(fixture, fixture->heard[id].has_ended);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(exec_has_its_streams_and_its_status),
        TEST(exec_that_is_not_there_says_why),
        TEST(exec_without_a_job_that_runs_is_refused),
        TEST(exec_without_a_group_of_its_own_is_refused),
        TEST(output_waits_for_acknowledgements),
        TEST(a_new_session_says_again_what_was_not_acknowledged),
        TEST(a_new_session_ends_those_that_it_does_not_name),
        TEST(close_ends_one_that_ignores_its_hangup),
        TEST(end_takes_along_what_was_left_running),
        TEST(signal_reaches_it),
        TEST(end_of_the_job_is_said_to_be_the_reason),
        TEST(input_that_nobody_reads_is_taken),
        TEST(terminal_is_its_own_and_has_a_size),
        TEST(terminal_passes_control_characters_on),
        TEST(more_than_may_run_are_refused),
    };
    /* As of PID 1: orphans are ours, and a command that does not read is an error of write(). */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return 77;
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
