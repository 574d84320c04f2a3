/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/options.h"
#include "cli/payload.h"

/* A submission, ready to be sent. */
typedef struct {
    BerthJobOptions *options;
    BerthPayload *payload;
    gboolean shares_payload; /* with others: it is somebody else's */
    char **command;          /* of begin(), until complete() */
    GBytes *script;
    Berth__JobSpec *spec; /* owned; freed as an unpacked message */
} BerthSubmission;

void berth_submission_free(BerthSubmission *submission);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthSubmission, berth_submission_free)

/* Reads the command line of `submit` and `run`: options, then SCRIPT [ARGS] or -- COMMAND [ARGS], and
 * the script. SCRIPT "-" is read from standard input; in ARGV it becomes "stdin". */
BerthSubmission *berth_submission_parse(int argc, char **argv, const char *description,
                                        int *out_status, GError **error);

/* One of several, whose content goes into PAYLOAD (transfer none): SCRIPT, a path, or NULL, with WORDS as its arguments or as a
 * command of the image. Has the options of the script's own lines and of the environment; those of others may be set then,
 * before it is complete. */
BerthSubmission *berth_submission_begin(BerthPayload *payload, const char *script, char **words,
                                        GError **error);
/* Checks it, and hashes its input files. */
gboolean berth_submission_complete(BerthSubmission *submission, BerthCli *cli, GError **error);

/* Checks where output is to go, hashes input files and uploads what is large: all that can take
 * long, or be given up without a trace. */
gboolean berth_submission_prepare(BerthSubmission *submission, BerthCli *cli, GError **error);

/* Submits what was prepared, once, also when the daemon is restarted meanwhile; *out_job on
 * success. */
gboolean berth_submission_send(BerthSubmission *submission, BerthCli *cli, guint64 *out_job,
                               GError **error);
