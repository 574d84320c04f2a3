/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

void core_jobs_init(BerthCore *core);
void core_jobs_clear(BerthCore *core);
/* What a guest with RESOURCES takes from a node; a sum that would overflow is as large as can be. */
CoreSize core_size_of(const BerthCore *core, const BerthResources *resources);
/* What it takes to start TASK of JOB, or one that never ran (NULL): what its checkpoint has, else what JOB asks for. */
CoreSize core_job_start_size(const BerthCore *core, const CoreJob *job, const CoreTask *task);
/* Its ranges of tasks are such. */
gboolean core_job_check_indices(const BerthCoreJob *job);
/* Makes JOB known, with tasks that never ran. Its number is new. IS_RESTORED: it is put back, with what it still waits for. */
CoreJob *core_job_add(BerthCore *core, const BerthCoreJob *job, gboolean is_restored);
CoreJob *core_job_get(const BerthCore *core, guint64 job); /* NULL = unknown */

/* Its tasks that never started: how many there are, whether INDEX is one, the first from FROM on (FALSE: there is
 * none), and that those of RANGE are none any more. */
guint32 core_job_n_fresh(const CoreJob *job);
gboolean core_job_is_fresh(const CoreJob *job, guint32 index);
gboolean core_job_next_fresh(const CoreJob *job, guint32 from, guint32 *out_index);
void core_job_take_fresh(CoreJob *job, BerthIndexRange range);
/* Of these, those that are not held and need not wait for a task of another array: how many there are, whether INDEX is one, and that this has
 * changed. */
guint32 core_job_n_open(const CoreJob *job);
gboolean core_job_is_open(const CoreJob *job, guint32 index);
void core_job_opened(CoreJob *job);

/* The record of its task INDEX; NULL = that has none of its own. */
CoreTask *core_job_task(const CoreJob *job, guint32 index);
/* Gives the task INDEX, which has none, a record of its own. */
CoreTask *core_job_add_task(CoreJob *job, guint32 index);
/* Gives each range of FRESH, all of which have never started, a record that stands for it; in time that grows with their number, and
 * that of the records that there are. In their order. (transfer container) */
CoreTask **core_job_add_ranges(CoreJob *job, const BerthIndexSet *fresh);
/* TRUE: INDEX is one of its tasks and not over; then *OUT is as it stands. */
gboolean core_job_get_record(const CoreJob *job, guint32 index, BerthCoreTask *out_record);
/* The guest in its present life; NULL = unknown, or of another epoch. */
CoreGuest *core_guest_get(const BerthCore *core, const BerthGuestId *id);
/* A task of it is PENDING. */
gboolean core_job_has_pending(const CoreJob *job);
/* TASK waits to start again, or no longer does; so many of JOB do. */
void core_job_return(CoreTask *task);
void core_job_return_no_more(CoreTask *task);
guint32 core_job_n_returned(const CoreJob *job);
/* Tasks that could start now as far as the job itself is concerned. */
guint32 core_job_n_startable(const CoreJob *job);
/* TASK is done with: forgotten at the next event, and with the last one the job. */
void core_task_over(BerthCore *core, CoreTask *task);
/* Frees what ended in earlier events. */
void core_jobs_forget_over(BerthCore *core);
