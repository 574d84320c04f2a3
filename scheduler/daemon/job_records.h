/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"
#include "scheduler/daemon/job_table.h"
#include "scheduler/daemon/pb.h"

/* The record of a job as a whole. Pure. */

/* A copy of what a user gave, that may be written without its task: (transfer full). */
Berth__Job *berth_record_new_job(guint64 number, const Berth__JobSpec *spec,
                                 const BerthIndexSet *array, const char *user, guint32 uid,
                                 guint32 gid, gint64 submit_usec);

/* It is checkpointed after so much running from now on, whatever its specification says; 0 = not by itself. */
void berth_record_set_checkpoint_every(Berth__Job *job, gint64 every_usec);

/* Who of it is held, as the core says. */
void berth_record_set_holds(Berth__Job *job, const BerthCoreJob *held);
/* RANGES of its record, one after the other. (transfer full) */
BerthIndexRange *berth_record_ranges(Berth__IndexRange *const *ranges, gsize n_ranges);

/* What JOB's command is given from its signal to a checkpoint, as it asked for; 0 = it gets none. */
guint32 berth_record_checkpoint_signal_sec(const Berth__Job *job);
/* The job as the core needs it, but for those of its tasks that are held by themselves. NODES (transfer none) are the handles of spec->nodes; UNSTARTED (transfer none): tasks of an array
 * that have never started, NULL of a plain job. */
void berth_record_job_to_core(const Berth__Job *job, const Berth__JobSpec *spec,
                              const BerthIndexSet *unstarted, const guint32 *nodes, gsize n_nodes,
                              BerthCoreJob *out_job);

/* State and reason of a job from those of its tasks: running if any runs, pending if any waits,
 * else what went worst. LATEST has changed last. */
void berth_record_roll_up(BerthJobEntry *entry, const Berth__Task *latest);
/* N tasks of an array were in the state FROM, and are in TO; 0 = in none. */
void berth_record_count(Berth__Job *job, Berth__JobState from, Berth__JobState to, guint32 n);
/* How many tasks of an array are in STATE. */
guint32 berth_record_counted(const Berth__Job *job, Berth__JobState state);
/* Those for which the record of TASK stands. */
BerthIndexRange berth_record_range(const Berth__Task *task);
