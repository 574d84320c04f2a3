/* SPDX-License-Identifier: Apache-2.0 */
/* berth exec, attach: runs a command in the guest of a running job, with this program's standard streams or its
 * terminal, and exits as it did. Signals go to the command; the second SIGINT or SIGTERM, or SIGHUP, ends this program, and
 * with it the command. However this program ends, its terminal is as it was. */
#include "cli/cli.h"

#include "cli/exec_client.h"
#include "cli/terminal.h"
#include "common/error.h"
#include "common/write.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* A terminal's in one piece; one with a tilde that was held back is one longer. */
#define KEYS_MAX_BYTES 4096u

typedef struct {
    BerthExecClient *client;
    GMainLoop *loop;
    gboolean has_input;
    gboolean has_terminal;
    BerthEscape escape;
    guint input_source;
    gboolean is_asked; /* it was sent a signal that ends most commands */
    int status;
    GError *error;
} Exec;

static void leave(Exec *exec, GError *error)
{
    if (exec->error == NULL)
        exec->error = error;
    else
        g_clear_error(&error);
    exec->status = BERTH_EXIT_BERTH;
    g_main_loop_quit(exec->loop);
}

/* --- input ----------------------------------------------------------------------------------- */

/* Keys that are passed on, if there are any of TYPED; without a terminal any more nobody is there. */
static gboolean take_keys(Exec *exec, const guint8 *typed, gssize length)
{
    guint8 keys[KEYS_MAX_BYTES + 1];
    gsize n = 0;
    if (length <= 0 || berth_escape_take(&exec->escape, typed, (gsize)length, keys, &n)) {
        exec->input_source = 0;
        leave(exec, g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED,
                                        "left; the command is ended"));
        return G_SOURCE_REMOVE;
    }
    if (n == 0)
        return G_SOURCE_CONTINUE;
    exec->input_source = 0;
    berth_exec_client_input(exec->client, keys, n, FALSE);
    return G_SOURCE_REMOVE;
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer user_data)
{
    Exec *exec = user_data;
    guint8 buffer[BERTH_EXEC_INPUT_MAX_BYTES];
    gssize got = read(fd, buffer, exec->has_terminal ? KEYS_MAX_BYTES : sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (exec->has_terminal)
        return take_keys(exec, buffer, got);
    exec->input_source = 0;
    exec->has_input = got > 0;
    berth_exec_client_input(exec->client, buffer, (gsize)MAX(got, 0), got <= 0);
    return G_SOURCE_REMOVE;
}

static void read_on(gpointer user_data)
{
    Exec *exec = user_data;
    if (exec->has_input)
        exec->input_source =
            g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, exec);
}

static void on_begun(gpointer user_data)
{
    Exec *exec = user_data;
    if (exec->has_input)
        read_on(exec);
    else
        berth_exec_client_input(exec->client, NULL, 0, TRUE);
}

/* --- output and end -------------------------------------------------------------------------- */

static void on_output(gboolean is_stderr, const guint8 *data, gsize length, gpointer user_data)
{
    Exec *exec = user_data;
    g_autoptr(GError) error = NULL;
    if (exec->error != NULL ||
        berth_write_all(is_stderr ? STDERR_FILENO : STDOUT_FILENO, data, length))
        return;
    berth_set_error_errno(&error, errno, "cannot write the command's output, and ended it");
    leave(exec, g_steal_pointer(&error));
}

static void on_ended(const Berth__Exit *exit, const GError *error, gpointer user_data)
{
    Exec *exec = user_data;
    if (exit == NULL) {
        leave(exec, g_error_copy(error));
        return;
    }
    exec->status = exit->signal != 0 ? 128 + (int)exit->signal : (int)exit->status;
    if (*exit->error != '\0' && exec->error == NULL)
        exec->error =
            g_error_new_literal(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, exit->error);
    g_main_loop_quit(exec->loop);
}

/* --- signals --------------------------------------------------------------------------------- */

static gboolean pass_on(Exec *exec, int number, gboolean may_leave)
{
    gboolean is_again = exec->is_asked;
    exec->is_asked = exec->is_asked || may_leave;
    if ((may_leave && is_again) || !berth_exec_client_signal(exec->client, (guint)number))
        leave(exec, g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED,
                                        "left; the command is ended"));
    return G_SOURCE_CONTINUE;
}

static gboolean on_sigint(gpointer exec)
{
    return pass_on(exec, SIGINT, TRUE);
}

static gboolean on_sigterm(gpointer exec)
{
    return pass_on(exec, SIGTERM, TRUE);
}

static gboolean on_sigusr1(gpointer exec)
{
    return pass_on(exec, SIGUSR1, FALSE);
}

static gboolean on_sigusr2(gpointer exec)
{
    return pass_on(exec, SIGUSR2, FALSE);
}

/* Its own terminal is gone, most likely. */
static gboolean on_sighup(gpointer exec)
{
    leave(exec,
          g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED, "hung up; the command is ended"));
    return G_SOURCE_CONTINUE;
}

/* Who ignores it (nohup) does so on. */
static guint watch_hangup(Exec *exec)
{
    struct sigaction inherited;
    if (sigaction(SIGHUP, NULL, &inherited) != 0 || inherited.sa_handler == SIG_IGN)
        return 0;
    return g_unix_signal_add(SIGHUP, on_sighup, exec);
}

static gboolean on_sigwinch(gpointer user_data)
{
    const Exec *exec = user_data;
    Berth__Terminal size = BERTH__TERMINAL__INIT;
    berth_terminal_describe(&size);
    if (exec->has_terminal)
        berth_exec_client_resize(exec->client, &size);
    return G_SOURCE_CONTINUE;
}

/* --- the verbs ------------------------------------------------------------------------------- */

static void run(BerthCli *cli, Exec *exec, const Berth__ExecRequest *request)
{
    static const BerthExecClientFuncs funcs = {on_begun, on_output, read_on, on_ended};
    guint sources[] = {g_unix_signal_add(SIGINT, on_sigint, exec),
                       g_unix_signal_add(SIGTERM, on_sigterm, exec),
                       g_unix_signal_add(SIGUSR1, on_sigusr1, exec),
                       g_unix_signal_add(SIGUSR2, on_sigusr2, exec),
                       g_unix_signal_add(SIGWINCH, on_sigwinch, exec),
                       watch_hangup(exec)};
    exec->loop = g_main_loop_new(NULL, FALSE);
    exec->client = berth_exec_client_new(cli->peer, request, &funcs, exec);
    g_main_loop_run(exec->loop);
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++)
        g_clear_handle_id(&sources[i], g_source_remove);
    g_clear_handle_id(&exec->input_source, g_source_remove);
    g_clear_pointer(&exec->client, berth_exec_client_free);
    g_clear_pointer(&exec->loop, g_main_loop_unref);
}

/* JOB or JOB[INDEX]. */
static gboolean read_job(int argc, char **argv, Berth__ExecRequest *request, int *out_status,
                         GError **error)
{
    BerthCliTask task = {0};
    if (argc < 2)
        return berth_cli_usage_error(out_status, error, "name a job (see %s --help)", argv[0]);
    if (!berth_cli_task_argument(argv[1], &task, error))
        return FALSE;
    request->guest->job = task.job;
    request->guest->task = task.task;
    request->of_array = task.of_array;
    return TRUE;
}

/* A job, and the command after it. */
static gboolean read_arguments(int argc, char **argv, Berth__ExecRequest *request, int *out_status,
                               GError **error)
{
    int first = argc > 2 && g_str_equal(argv[2], "--") ? 3 : 2;
    if (first >= argc)
        return berth_cli_usage_error(out_status, error, "name a job and a command (see %s --help)",
                                     argv[0]);
    request->command = argv + first;
    request->n_command = (gsize)(argc - first);
    return read_job(argc, argv, request, out_status, error);
}

/* Runs what REQUEST says; on the terminal, if HAS_TERMINAL. */
static gboolean run_request(BerthCli *cli, Berth__ExecRequest *request, gboolean has_input,
                            gboolean has_terminal, int *out_status, GError **error)
{
    Berth__Terminal terminal = BERTH__TERMINAL__INIT;
    Exec exec = {.has_input = has_input,
                 .has_terminal = has_terminal,
                 .escape = {.at_start = TRUE},
                 .status = BERTH_EXIT_BERTH};
    if (!berth_cli_connect(cli, error) || (has_terminal && !berth_terminal_make_raw(error)))
        return FALSE;
    berth_terminal_describe(&terminal);
    request->terminal = has_terminal ? &terminal : NULL;
    run(cli, &exec, request);
    berth_terminal_restore();
    *out_status = exec.status;
    if (exec.error == NULL)
        return TRUE;
    g_propagate_error(error, exec.error);
    return FALSE;
}

gboolean berth_cli_exec(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    gboolean no_input = FALSE, tty = FALSE;
    gint guest = 0;
    g_autofree char *reason = NULL;
    const GOptionEntry entries[] = {
        {"no-input", 'n', 0, G_OPTION_ARG_NONE, &no_input, "Leave standard input alone", NULL},
        {"tty", 't', 0, G_OPTION_ARG_NONE, &tty, "With a terminal; Enter ~ . leaves it", NULL},
        {"guest", 'g', 0, G_OPTION_ARG_INT, &guest, "Of a gang, this guest; they count from 0",
         "N"},
        BERTH_CLI_REASON(&reason),
        {NULL}};
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__ExecRequest request = BERTH__EXEC_REQUEST__INIT;
    request.guest = &id;
    gboolean ok =
        berth_cli_parse_command(
            &argc, &argv, entries, "JOB[[INDEX]] [--] COMMAND [ARGUMENT...]",
            "Runs a command in the guest of a running job: as its user, where the job "
            "began, with its\nenvironment and within its limits. It ends with the job, and "
            "with this program.\nExits with the command's status, 128+N if signal N ended "
            "it, 126 or 127 if it could not\nbe run, and 125 if Berth failed.",
            out_status, error) &&
        read_arguments(argc, argv, &request, out_status, error);
    *out_status = BERTH_EXIT_BERTH;
    if (!ok)
        return FALSE;
    if (guest < 0 || (tty && no_input))
        return berth_cli_usage_error(out_status, error,
                                     "guests count from 0, and a terminal has input");
    id.guest = (guint32)guest;
    if (reason != NULL)
        request.reason = reason;
    return run_request(cli, &request, !no_input, tty, out_status, error);
}

gboolean berth_cli_attach(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    static char *const shell[] = {(char *)"sh", (char *)"-c",
                                  (char *)"command -v bash >/dev/null && exec bash; exec sh"};
    gint guest = 0;
    g_autofree char *reason = NULL;
    const GOptionEntry entries[] = {{"guest", 'g', 0, G_OPTION_ARG_INT, &guest,
                                     "Of a gang, this guest; they count from 0", "N"},
                                    BERTH_CLI_REASON(&reason),
                                    {NULL}};
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__ExecRequest request = BERTH__EXEC_REQUEST__INIT;
    request.guest = &id;
    gboolean ok =
        berth_cli_parse(
            &argc, &argv, entries, "JOB[[INDEX]]",
            "Opens a shell beside a running job, in its guest, on this terminal: bash if "
            "the image has it,\nelse sh. Enter ~ . leaves it, and ends it; the job goes on.",
            NULL, out_status, error) &&
        read_job(argc, argv, &request, out_status, error);
    *out_status = BERTH_EXIT_BERTH;
    if (!ok)
        return FALSE;
    if (guest < 0 || argc != 2)
        return berth_cli_usage_error(out_status, error, "name one job; guests count from 0");
    id.guest = (guint32)guest;
    request.command = (char **)(gpointer)shell;
    request.n_command = G_N_ELEMENTS(shell);
    if (reason != NULL)
        request.reason = reason;
    return run_request(cli, &request, TRUE, TRUE, out_status, error);
}
