/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Who of a job's tasks is held, and by whom: all of them, also those that will wait one day; or some of an array's that
 * wait, each by itself. What an operator holds no user releases. Of an array that was held, and of which some were released,
 * those that ran then are held too, if they have to wait again. */

/* Why the task INDEX may not start: HELD_BY_OPERATOR, HELD_BY_USER or NONE. */
BerthReason core_hold_reason(const CoreJob *job, guint32 index);
/* Of an array's tasks that never started, and wait for none of another array, those that are not held by themselves; NULL: no
 * task is. */
const BerthIndexSet *core_hold_open(const CoreJob *job);
/* TASKS have started, or ended before they did. */
void core_hold_take(CoreJob *job, const BerthIndexSet *tasks);
/* Others wait for tasks of another array than before. */
void core_hold_renew(CoreJob *job);
/* Those of RANGE have ended: they are held no more, or it makes no difference. */
void core_hold_ended(CoreJob *job, BerthIndexRange range);

/* As SOURCE says of JOB, just made. */
void core_hold_add(CoreJob *job, const BerthCoreJob *source);
void core_hold_clear_job(CoreJob *job);
/* Those that are held by themselves, into *OUT (transfer none, until JOB changes). */
void core_hold_record(const CoreJob *job, BerthCoreJob *out);
gsize core_hold_job_bytes(const CoreJob *job);
/* What is kept of it is what follows from who is held. */
gboolean core_hold_is_consistent(const CoreJob *job);
