/* SPDX-License-Identifier: Apache-2.0 */
/* berth submit: sends a job and prints its number, nothing else. */
#include "cli/job_spec.h"
#include "common/error.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static gboolean write_all(const char *text)
{
    for (gsize left = strlen(text); left > 0;) {
        gssize n = write(STDOUT_FILENO, text, left);
        if (n < 0 && errno != EINTR)
            return FALSE;
        text += MAX(n, 0);
        left -= (gsize)MAX(n, 0);
    }
    return TRUE;
}

/* Who cannot be told the number must learn at least that there is a job: it need not be submitted
 * again. Not by stdio, which would say a second time that it could not write. */
static gboolean print_number(guint64 job, GError **error)
{
    g_autofree char *line = g_strdup_printf("%" G_GUINT64_FORMAT "\n", job);
    signal(SIGPIPE, SIG_IGN);
    if (write_all(line))
        return TRUE;
    berth_set_error_errno(
        error, errno,
        "job %" G_GUINT64_FORMAT " was submitted, but its number could not be written", job);
    return FALSE;
}

gboolean berth_cli_submit(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    guint64 job;
    g_autoptr(BerthSubmission) submission = berth_submission_parse(
        argc, argv,
        "SCRIPT is a file of this host, or \"-\" for standard input; it runs in the guest by its "
        "#! line.\nWhat follows \"--\" is a command of the image. Options may also stand in #BERTH "
        "lines at the head\nof the script and in the environment (BERTH_VCPUS, BERTH_MEMORY, ...); "
        "the command line is\nstrongest. `berth version` prints what a job gets that does not say.",
        out_status, error);
    return submission != NULL && berth_submission_prepare(submission, cli, error) &&
           berth_submission_send(submission, cli, &job, error) && print_number(job, error);
}
