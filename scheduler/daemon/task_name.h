/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/job_table.h"

/* Which task of a job is meant by requests that are of one: of an array the one that is named, of a plain job its only one,
 * which has no name of its own. */

typedef struct {
    guint64 job;
    guint32 task;
    gboolean is_named;
} BerthTaskName;

/* As a request has it, which may leave out OF_ARRAY for others than task 0. */
static inline BerthTaskName berth_task_name(guint64 job, guint32 task, gboolean of_array)
{
    return (BerthTaskName){job, task, of_array || task > 0};
}

/* INVALID_ARGUMENT: none is named, and the job IS_ARRAY, or one is, and it is none. */
gboolean berth_task_name_check(const BerthTaskName *name, gboolean is_array, GError **error);

/* "42", of an array "42[0]". (transfer full) */
char *berth_task_name_in(BerthJobTable *jobs, guint64 job, guint32 task);
