/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* A search of arrays, one after the other, for tasks in some states that may have ended, which no list has. */
typedef struct {
    /* Takes those of PAGE that it is for. How many tasks they are. */
    guint64 (*take)(const Berth__Job *page, gpointer user_data);
    gpointer user_data;
    guint64 n_looked_at; /* in all of its arrays */
} BerthTaskSearch;

/* What was not looked at of an array. */
typedef struct {
    guint64 n;     /* so many that the search is for are among that; 0 = none */
    guint32 first; /* it begins with this index */
} BerthTaskRest;

/* Goes through the tasks of JOB, an array, that have started or ended, page by page, until N_WANTED were taken or 100000 tasks of all
 * arrays were looked at. *OUT_REST: what that leaves. FALSE: the daemon has not answered. */
gboolean berth_task_search(BerthCli *cli, BerthTaskSearch *search, const Berth__Job *job,
                           guint64 n_wanted, BerthTaskRest *out_rest, GError **error);
/* What lists REST of JOB, which is not none; STATES as --state has them. (transfer full) */
char *berth_task_rest_command(const BerthTaskRest *rest, const Berth__Job *job, const char *states);
