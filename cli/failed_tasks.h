/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"
#include "cli/task_search.h"
#include "common/index_set.h"

#define BERTH_TASK_STATES (BERTH__JOB_STATE__OUT_OF_MEMORY + 1)

/* Tasks of an array that have ended otherwise than COMPLETED. */
typedef struct {
    BerthIndexSet *by_state[BERTH_TASK_STATES]; /* of Berth__JobState; NULL = none was found */
    BerthTaskRest rest;                         /* of them, that was not looked for */
} BerthFailedTasks;
void berth_failed_tasks_clear(BerthFailedTasks *failed);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthFailedTasks, berth_failed_tasks_clear)

/* Those of JOB, an array, into *OUT_FAILED, which is empty: page by page, as no answer to who asks for the array has them, until
 * there are as many as its counts say, or 100000 tasks were looked at. FALSE: the daemon has not answered. */
gboolean berth_failed_tasks_find(BerthCli *cli, const Berth__Job *job, BerthFailedTasks *out_failed,
                                 GError **error);
