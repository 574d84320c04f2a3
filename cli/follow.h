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

/* Waits until each of JOBS (guint64) has ended and its output is copied; survives restarts of the
 * daemon. EACH is called once per job: first for those that have ended already, in the order of
 * JOBS, then for the others in the order in which they end. A job that there is not: JOB is NULL,
 * and UNKNOWN says so. */
typedef void (*BerthEndedFunc)(const Berth__Job *job, const GError *unknown, gpointer user_data);
gboolean berth_wait_jobs(BerthCli *cli, const GArray *jobs, BerthEndedFunc each, gpointer user_data,
                         GError **error);

/* The status with which `run` and `wait` exit for an ended job: its command's own, 128+N for a
 * signal, BERTH_EXIT_BERTH if the command did not end by itself (time limit, cancelled, node
 * lost, never started) and its own status would hide that. */
int berth_job_exit_status(const Berth__Job *job);
