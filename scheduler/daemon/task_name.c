/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how one task of a job is named in requests, and in what is answered. */
#include "config.h"

#include "scheduler/daemon/task_name.h"

#include "common/error.h"
#include "common/id.h"

gboolean berth_task_name_check(const BerthTaskName *name, gboolean is_array, GError **error)
{
    if (is_array && !name->is_named)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "job %" G_GUINT64_FORMAT " is an array, whose tasks have this each by itself: "
                    "name one, as %" G_GUINT64_FORMAT "[INDEX]",
                    name->job, name->job);
    else if (!is_array && name->is_named)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "job %" G_GUINT64_FORMAT " is no array: name it without indices", name->job);
    return is_array == name->is_named;
}

char *berth_task_name_in(BerthJobTable *jobs, guint64 job, guint32 task)
{
    const BerthJobEntry *entry = berth_job_table_find(jobs, job);
    return berth_task_name_format(job, entry && entry->unstarted, task);
}
