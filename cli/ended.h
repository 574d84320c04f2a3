/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* So many tasks are told of one by one. */
#define BERTH_LOST_TOLD_MAX 5u

typedef struct {
    const BerthCliTasks *named;
    const Berth__Job *job; /* NULL: there is none, and UNKNOWN says so */
    const GError *unknown;
    /* Tasks whose output is not in the files that the job names; of the first of them also what is to be said:
     * "42[7]: its output ...". */
    guint n_lost;
    const GPtrArray *lost;
} BerthEnded;

/* Waits until each of JOBS (BerthCliTasks: jobs, or one task of an array each) has ended and its output is copied; survives restarts
 * of the daemon. EACH is called once for each: first for those that have ended already, in the order of JOBS, then for the others
 * as they end. */
typedef void (*BerthEndedFunc)(const BerthEnded *ended, gpointer user_data);
/* STILL (NULL: nobody wants to know) of one that stands still, or is held, for REASON, until it goes on; an array as a whole is only
 * ever held. */
typedef void (*BerthStillFunc)(const BerthCliTasks *named, Berth__Reason reason,
                               gpointer user_data);
gboolean berth_wait_jobs(BerthCli *cli, const GArray *jobs, BerthEndedFunc each,
                         BerthStillFunc still, gpointer user_data, GError **error);

/* The status with which `run` and `wait` exit for an ended job, or for the one of its TASKS: its command's own, 128+N for a
 * signal, BERTH_EXIT_BERTH if the command did not end by itself (time limit, cancelled, node
 * lost, never started) and its own status would hide that; of a whole array BERTH_EXIT_FAILED unless all have completed. */
int berth_job_exit_status(const Berth__Job *job, const BerthIndexSet *tasks);
