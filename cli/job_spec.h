/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/options.h"
#include "cli/payload.h"

/* A submission, ready to be sent. */
typedef struct {
    BerthJobOptions *options;
    BerthPayload *payload;
    Berth__JobSpec *spec; /* owned; freed as an unpacked message */
} BerthSubmission;

void berth_submission_free(BerthSubmission *submission);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthSubmission, berth_submission_free)

/* Reads the command line of `submit` and `run`: options, then SCRIPT [ARGS] or -- COMMAND [ARGS], and
 * the script. SCRIPT "-" is read from standard input; in ARGV it becomes "stdin". */
BerthSubmission *berth_submission_parse(int argc, char **argv, const char *description,
                                        int *out_status, GError **error);

/* Checks where output is to go, hashes input files and uploads what is large: all that can take
 * long, or be given up without a trace. */
gboolean berth_submission_prepare(BerthSubmission *submission, BerthCli *cli, GError **error);

/* Submits what was prepared, once, also when the daemon is restarted meanwhile; *out_job on
 * success. */
gboolean berth_submission_send(BerthSubmission *submission, BerthCli *cli, guint64 *out_job,
                               GError **error);
