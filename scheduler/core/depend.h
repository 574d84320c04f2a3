/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What must have come of other jobs before one may start. */
void core_depends_init(BerthCore *core);
void core_depends_clear(BerthCore *core);
gsize core_depends_bytes(BerthCore *core);
/* JOB, just made, comes after SOURCE's dependencies, and is one of its family. IS_RESTORED: see core_job_add(). */
void core_depend_add(BerthCore *core, CoreJob *job, const BerthCoreJob *source,
                     gboolean is_restored);
/* JOB, which has ended, is forgotten. */
void core_depend_remove(BerthCore *core, CoreJob *job);
/* What it has of its own is freed. */
void core_depend_clear_job(CoreJob *job);
/* Those of JOB's tasks that never started, of an array, for which no task of another one is waited; NULL: all. */
const BerthIndexSet *core_depend_open(const CoreJob *job);
/* TASKS are none any more. */
void core_depend_take(CoreJob *job, const BerthIndexSet *tasks);
gsize core_depend_job_bytes(const CoreJob *job);
/* TASK, or those for which it stands, has ended. Lets go, or ends, those that come after it. */
void core_depend_task_ended(BerthCore *core, const CoreTask *task);
/* All of JOB's tasks have started; they have all ended. Lets go, or ends, who comes after it. */
void core_depend_started(BerthCore *core, CoreJob *job);
void core_depend_ended(BerthCore *core, CoreJob *job);
/* Ends those of which it is known by now that they can never start: tasks with this event, and jobs, if they are many, some with
 * this one and others with timers that are due at once. */
void core_depend_end_hopeless(BerthCore *core);
