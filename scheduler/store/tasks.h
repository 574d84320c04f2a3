/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include "scheduler/store/db.h"
#include "scheduler/store/store.h"

/* Reading the tasks of a job, and freeing the messages that come of it. */

typedef Berth__Job StoreJob;
void store_job_free(StoreJob *job);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreJob, store_job_free)

/* A stored task with its task inside; (transfer full). DATA_LOSS. */
Berth__StoredTask *store_column_task(StoreStatement *statement, int column, GError **error);

/* All tasks of JOB that are not done with, by number: GPtrArray of Berth__StoredTask, owning. */
GPtrArray *store_tasks_read_open(StoreDb *db, guint64 job, GError **error);
/* See berth_store_get_completed(). */
gboolean store_tasks_read_completed(StoreDb *db, guint64 job, const BerthIndexRange *wanted,
                                    GArray *completed, GError **error);
/* Puts the tasks into JOB, which has none; of an array those that TASKS says. */
gboolean store_tasks_attach(StoreDb *db, Berth__Job *job, const BerthStoreTasks *tasks,
                            GError **error);
