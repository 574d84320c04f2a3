/* SPDX-License-Identifier: Apache-2.0 */
/* berth submit: sends a job and prints its number, nothing else. */
#include "cli/job_spec.h"

#include <stdio.h>

gboolean berth_cli_submit(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    guint64 job;
    g_autoptr(BerthSubmission) submission = berth_submission_parse(
        argc, argv,
        "SCRIPT is a file of this host; it runs in the guest by its #! line. What follows \"--\" "
        "is a\ncommand of the image. Options may also stand in #BERTH lines at the head of the "
        "script and\nin the environment (BERTH_VCPUS, BERTH_MEMORY, ...); the command line is "
        "strongest.",
        out_status, error);
    if (submission == NULL || !berth_submission_prepare(submission, cli, error) ||
        !berth_submission_send(submission, cli, &job, error))
        return FALSE;
    printf("%" G_GUINT64_FORMAT "\n", job);
    return TRUE;
}
