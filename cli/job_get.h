/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* The job with all that is known of it; of an array those tasks that have started and not ended, or TASKS, 1000 at most.
 * NOT_FOUND: there is none, or it has none of TASKS. INVALID_ARGUMENT: TASKS of a job that is no array. (transfer full) */
Berth__Job *berth_get_job(BerthCli *cli, guint64 job, GError **error);
Berth__Job *berth_get_job_tasks(BerthCli *cli, guint64 job, const BerthIndexSet *tasks,
                                GError **error);

/* Likewise, however many tasks it has: those that have started and not ended, or those that are NAMED, page by page. PAGE has some of
 * them, rising; the first may have none. AFTER: only those with a larger index; NULL = all. FALSE: no more are wanted. */
typedef gboolean (*BerthTaskPageFunc)(const Berth__Job *page, gpointer user_data);
gboolean berth_get_task_pages(BerthCli *cli, const BerthCliTasks *named, const guint32 *after,
                              BerthTaskPageFunc take, gpointer user_data, GError **error);
/* Likewise of all tasks of JOB, an array, that have started or ended. Those that ended together before they started are one. */
gboolean berth_get_all_task_pages(BerthCli *cli, guint64 job, BerthTaskPageFunc take,
                                  gpointer user_data, GError **error);

/* Those of TASKS that JOB, which may come without any, has in its array. *OUT_ABSENT (may be NULL): NOT_FOUND, of the others, if there are
 * any. INVALID_ARGUMENT: it is no array. NOT_FOUND: it has none of them. (transfer full) */
BerthIndexSet *berth_job_find_tasks(const Berth__Job *job, const BerthIndexSet *tasks,
                                    GError **out_absent, GError **error);
