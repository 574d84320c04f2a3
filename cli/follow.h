/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Writes a task's output as it comes. If FOLLOW, a daemon that is restarted meanwhile, or whose
 * storage is away, is waited for and the output goes on where it stopped. The output of a task that
 * is started again begins anew, in a file that was opened for it from an empty one; standard error
 * says so. *OUT_NO_READER: it failed because whoever read the output is gone (EPIPE; only where SIGPIPE
 * is ignored). If FOLLOW, standard error says why a job waits that does not begin soon. */
typedef struct {
    guint64 job;
    guint32 task;
    gboolean of_array; /* TASK is one of an array's */
    int stdout_fd;     /* where its stdout goes, -1 = not wanted */
    int stderr_fd;     /* the same for its stderr */
    gboolean follow;   /* until the task has ended */
} BerthFollow;
gboolean berth_follow_logs(BerthCli *cli, const BerthFollow *follow, gboolean *out_no_reader,
                           GError **error);
/* All of it, to FD, which is waited for; *OUT_NO_READER likewise. */
gboolean berth_follow_write(int fd, const void *data, gsize length, gboolean *out_no_reader,
                            GError **error);
