/* SPDX-License-Identifier: Apache-2.0 */
/* berth run: submit, follow, exit as the job did. SIGINT and SIGTERM cancel the job; a second one
 * leaves it alone and ends the client. A reader that goes away cancels it, too. Until the job is submitted they just end the client. */
#include "cli/ended.h"
#include "cli/follow.h"
#include "cli/format.h"
#include "cli/job_spec.h"
#include "cli/table.h"
#include "common/error.h"
#include "common/id.h"
#include "common/message.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
    BerthCli *cli;
    guint64 job;           /* 0 = the answer to Submit is not there yet */
    gboolean cancel;       /* asked for, and the daemon has not answered */
    gboolean is_asked;     /* whatever became of it */
    BerthRpcPeer *sent_on; /* the connection on which Cancel is under way, or NULL */
} Running;

/* --- cancelling ------------------------------------------------------------------------------ */

static void send_cancel(gpointer user_data);

static void on_cancel_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Running *running = user_data;
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call_finish(result, &error);
    gboolean is_lost = berth_rpc_peer_is_closed(running->sent_on);
    g_clear_pointer(&running->sent_on, berth_rpc_peer_unref);
    if (reply != NULL)
        protobuf_c_message_free_unpacked(reply, NULL);
    if (reply == NULL && is_lost) {
        send_cancel(running); /* if there is a connection again; else when there is one */
        return;
    }
    running->cancel = FALSE;
    /* A job that ended by itself meanwhile need not be cancelled. */
    if (reply == NULL && !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION))
        fprintf(stderr, "berth run: cannot cancel job %" G_GUINT64_FORMAT ": %s\n", running->job,
                error->message);
}

/* Also after each new connection: a request that was lost is sent again. */
static void send_cancel(gpointer user_data)
{
    Running *running = user_data;
    if (!running->cancel || running->job == 0 || running->sent_on != NULL ||
        berth_rpc_peer_is_closed(running->cli->peer))
        return;
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = running->job;
    running->sent_on = berth_rpc_peer_ref(running->cli->peer);
    berth_rpc_peer_call_async(running->sent_on, &berth__jobs__descriptor, "Cancel", &request.base,
                              0, NULL, on_cancel_answered, running);
}

static void leave(const Running *running)
{
    if (running->job == 0)
        fputs("berth run: left; the job may have been submitted (berth ls)\n", stderr);
    else
        fprintf(stderr,
                "berth run: left before the end of job %" G_GUINT64_FORMAT
                " (berth show %" G_GUINT64_FORMAT ")\n",
                running->job, running->job);
    _exit(BERTH_EXIT_BERTH);
}

static gboolean on_signal(gpointer user_data)
{
    Running *running = user_data;
    if (running->is_asked)
        leave(running);
    running->is_asked = TRUE;
    running->cancel = TRUE;
    if (running->job == 0)
        fputs("berth run: cancelling the job (again: leave it)\n", stderr);
    else
        fprintf(stderr, "berth run: cancelling job %" G_GUINT64_FORMAT " (again: leave it)\n",
                running->job);
    send_cancel(running);
    return G_SOURCE_CONTINUE;
}

/* --- the end --------------------------------------------------------------------------------- */

static void print_console(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    fputs("berth run: the end of the guest's console:\n", stderr);
    for (char **line = lines; *line != NULL; line++) {
        g_autofree char *printable = berth_printable(g_strchomp(*line));
        fprintf(stderr, "  %s\n", printable);
    }
}

/* A pipeline's status is its last command's: one that lost another for lack of memory may look well. */
static void print_kills(const Berth__Task *task)
{
    guint kills = task->exit->oom_kills;
    if (kills > 0 && task->reason != BERTH__REASON__REASON_MEMORY_LIMIT)
        fprintf(stderr,
                "berth run: %u process%s of the job %s ended for lack of memory; ask for more with "
                "--memory\n",
                kills, kills == 1 ? "" : "es", kills == 1 ? "was" : "were");
}

static void keep_ended(const BerthEnded *ended, gpointer user_data)
{
    const Berth__Job *job = ended->job;
    if (job == NULL) {
        berth_cli_report(ended->unknown, user_data);
        *(int *)user_data = BERTH_EXIT_BERTH;
        return;
    }
    const Berth__Task *task = job->n_tasks > 0 ? job->tasks[0] : NULL;
    *(int *)user_data = berth_job_exit_status(job, NULL);
    if (task && task->exit)
        print_kills(task);
    if (job->state == BERTH__JOB_STATE__COMPLETED)
        return;
    g_autofree char *reason = berth_printable(task ? task->reason_text : "");
    fprintf(stderr, "berth run: job %" G_GUINT64_FORMAT " ended %s%s%s\n", job->id,
            berth_job_state_name(job->state), *reason ? ": " : "", reason);
    if (task && *task->console_tail)
        print_console(task->console_tail);
}

/* --- its output ------------------------------------------------------------------------------ */

/* `run` writes --output and --error itself, so that the files grow while the job runs. PATTERN NULL:
 * FALLBACK. -1 with ERROR. */
static int open_output(const char *pattern, guint64 job, int fallback, GError **error)
{
    if (pattern == NULL)
        return fallback;
    g_autofree char *path = berth_job_path_format(pattern, job, 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0)
        berth_set_error_errno(error, errno, "cannot write its output to \"%s\"", path);
    return fd;
}

static gboolean open_outputs(const BerthJobOptions *options, BerthFollow *follow, GError **error)
{
    follow->stdout_fd = open_output(options->output, follow->job, STDOUT_FILENO, error);
    if (follow->stdout_fd < 0)
        return FALSE;
    if (g_strcmp0(options->output, options->error) == 0 && options->output != NULL)
        follow->stderr_fd = follow->stdout_fd; /* both into one file, as they come */
    else
        follow->stderr_fd = open_output(options->error, follow->job, STDERR_FILENO, error);
    return follow->stderr_fd >= 0;
}

/* `berth run | head`: nobody wants what the job would write. */
static void cancel_unread(Running *running)
{
    if (running->is_asked)
        return;
    running->is_asked = TRUE;
    running->cancel = TRUE;
    fprintf(stderr,
            "berth run: nobody reads the output any more: cancelling job %" G_GUINT64_FORMAT "\n",
            running->job);
    send_cancel(running);
}

/* A job whose output was not read to its end has not succeeded, though it ended before it could be
 * cancelled: UNREAD becomes ERROR. */
static gboolean settle_unread(GError *unread, int *out_status, GError **error)
{
    if (unread == NULL || *out_status != BERTH_EXIT_OK) {
        g_clear_error(&unread);
        return TRUE;
    }
    *out_status = BERTH_EXIT_BERTH;
    g_propagate_error(error, unread);
    return FALSE;
}

static gboolean follow_output(Running *running, const BerthFollow *follow, GError **out_unread,
                              GError **error)
{
    gboolean no_reader;
    GError *failed = NULL;
    if (berth_follow_logs(running->cli, follow, &no_reader, &failed))
        return TRUE;
    if (!no_reader) {
        g_propagate_error(error, failed);
        return FALSE;
    }
    cancel_unread(running);
    *out_unread = failed;
    return TRUE;
}

static gboolean follow_and_wait(Running *running, const BerthJobOptions *options, int *out_status,
                                GError **error)
{
    BerthFollow follow = {.job = running->job, .follow = TRUE};
    g_autoptr(GError) unread = NULL;
    g_autoptr(GArray) jobs = g_array_new(FALSE, FALSE, sizeof(BerthCliTasks));
    const BerthCliTasks named = {running->job, NULL};
    g_array_append_val(jobs, named);
    if (open_outputs(options, &follow, error) && follow_output(running, &follow, &unread, error) &&
        berth_wait_jobs(running->cli, jobs, keep_ended, NULL, out_status, error))
        return settle_unread(g_steal_pointer(&unread), out_status, error);
    g_prefix_error(error, "lost sight of job %" G_GUINT64_FORMAT ", which goes on: ", running->job);
    return FALSE;
}

/* --- the verb -------------------------------------------------------------------------------- */

static gboolean submit_and_follow(Running *running, BerthSubmission *submission, int *out_status,
                                  GError **error)
{
    guint signals[] = {g_unix_signal_add(SIGINT, on_signal, running),
                       g_unix_signal_add(SIGTERM, on_signal, running)};
    running->cli->connected_func = send_cancel;
    running->cli->connected_data = running;
    gboolean ok = berth_submission_send(submission, running->cli, &running->job, error);
    if (ok) {
        send_cancel(running);
        ok = follow_and_wait(running, submission->options, out_status, error);
    }
    running->cli->connected_func = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
        g_source_remove(signals[i]);
    return ok;
}

/* What the caller sees as 125 is never the job's own, wrong options included. */
static BerthSubmission *parse(int argc, char **argv, int *out_status, GError **error)
{
    BerthSubmission *submission = berth_submission_parse(
        argc, argv,
        "Exits with the status of the job's command, 128+N if signal N ended it, and 125 if the\n"
        "job could not be submitted, or was ended by Berth without a status of its own.",
        out_status, error);
    *out_status = BERTH_EXIT_BERTH;
    return submission;
}

gboolean berth_cli_run(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autoptr(BerthSubmission) submission = parse(argc, argv, out_status, error);
    if (submission != NULL &&
        (submission->options->array != NULL || submission->options->each != NULL)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "an array is not one command to wait for: `berth submit` it, and see "
                            "`berth wait JOB` and `berth logs JOB[INDEX]`");
        return FALSE;
    }
    if (submission == NULL || !berth_submission_prepare(submission, cli, error))
        return FALSE;
    /* A reader that goes away ends the job, not this program before that. */
    signal(SIGPIPE, SIG_IGN);
    berth_message_set_string(&submission->spec->stdout_path, NULL);
    berth_message_set_string(&submission->spec->stderr_path, NULL);
    Running running = {.cli = cli};
    gboolean ok = submit_and_follow(&running, submission, out_status, error);
    g_clear_pointer(&running.sent_on, berth_rpc_peer_unref);
    return ok;
}
