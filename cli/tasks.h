/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
#include "proto/berth.pb-c.h"
#include <glib.h>

/* Tasks of arrays, beside plain jobs, which have one task that has no name of its own. Strings are (transfer full). */

/* The one task of JOB that TASKS names, or that a plain job has; NULL: there is none, or several. */
const Berth__Task *berth_job_one_task(const Berth__Job *job, const BerthIndexSet *tasks);
/* The state of TASK of an array; of a plain job, or where TASK is NULL, that of JOB. */
Berth__JobState berth_job_state_of(const Berth__Job *job, const Berth__Task *task);
/* The tasks of an array that EVENT is of. */
BerthIndexRange berth_event_range(const Berth__Event *event);
/* Whether EVENT, of a job, is of TASKS of it; NULL = all. */
gboolean berth_event_is_of(const Berth__Event *event, const BerthIndexSet *tasks);

/* The tasks of an array and how many of them run at a time, as --array has them: "0-99%10"; of ranges that are longer
 * than WIDTH bytes the first, one at least: "0-9,20,...". */
char *berth_array_format(const Berth__Job *job, gsize width);
/* How many tasks of an array stand how: all, or only those that JOB has. */
Berth__TaskCounts berth_job_count(const Berth__Job *job, gboolean only_present);
/* How many tasks of an array have started and not ended: those that were requeued, and wait, too. */
guint64 berth_job_n_open(const Berth__Job *job);
/* "3 running, 96 waiting, 1 failed". */
char *berth_counts_format(const Berth__TaskCounts *counts);
/* "0-9,20"; "" of none; likewise. */
char *berth_ranges_format(Berth__IndexRange *const *ranges, gsize n_ranges, gsize width);
/* "42", or "42[0-9,20]": some tasks of an array, of many ranges the first; TASKS NULL = all of it. */
char *berth_tasks_format(guint64 job, const BerthIndexSet *tasks);
/* "42", of an array "42[7]", or "42[7-99]": tasks that ended together. */
char *berth_task_format(const Berth__Job *job, const Berth__Task *task);
/* Likewise what EVENT is of. */
char *berth_event_task_format(const Berth__Event *event);
