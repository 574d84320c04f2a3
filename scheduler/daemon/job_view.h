/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/look.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/pb.h"

/* Adds those tasks of an array to its tasks that WANTED names and that have never started. */
void berth_job_view_add_unstarted(Berth__Job *job, const BerthStoreTasks *wanted);
/* Leaves out of an array that was read what no answer holds: ranges of what has not started beyond the first 1000, whose tasks are
 * counted, and tasks, all but the first, beyond BYTES_MAX of all. From any thread. */
void berth_job_view_shorten(Berth__Job *job, gsize bytes_max);
/* Brings a record that was read from the store up to what only memory knows: why a pending task
 * waits now, and the newest usage of a running one. A task that has moved on since it was read is
 * left alone: the caller sees one moment. */
void berth_job_view_refresh(BerthDaemon *daemon, Berth__Job *job);
/* Fills in what the core was told and predicts of the guest GUEST of TASK. */
void berth_job_view_measure(BerthDaemon *daemon, guint32 guest, Berth__Task *task);
/* Since when TASK's node has had no session, so that nobody hears of its guest; 0: it has one, or the task no guest. */
guint64 berth_job_view_away_usec(BerthDaemon *daemon, const BerthCoreTask *task);
/* Takes away what WHO may not see of somebody else's job: its specification, what its guest wrote,
 * what names its files or command, and what was asked of it. */
void berth_job_view_hide(BerthDaemon *daemon, const BerthRpcIdentity *who, Berth__Job *job);
