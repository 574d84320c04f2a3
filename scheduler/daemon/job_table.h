/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/types.h"
#include "scheduler/daemon/pb.h"

/* The unfinished jobs, with what the core does not keep: names, users, exits, usage. The same as
 * in the store, but for usage, log sizes and detail, which are as new as the last report. Specs
 * are not here. */

typedef struct {
    Berth__StoredTask *stored; /* owned */
    char *detail;              /* what the node said about the newest reason, or NULL */
    guint64 stdout_bytes;      /* durable in the log of the newest epoch, as last heard */
    guint64 stderr_bytes;
    /* What its node has said of its usage in reports: what a GuestReport leaves out is as here. NULL: nothing
     * since it came there, or since berthd was started. */
    Berth__Usage *said;
    guint32 said_node;
    gint64 measured_usec;  /* when its usage was last told to the core; 0 = not since a restart */
    guint64 cpu_seen_usec; /* its Usage.cpu_usec then */
    /* Its Usage.starved_usec up to which the core has charged it. The record has that which goes
     * with the core's sum in it, so that neither a restart nor a repetition counts any twice. */
    guint64 starved_seen_usec;
    gint64
        held_told_usec; /* when the event log was last told that it is held back; 0 = not since a restart */
    gboolean holds_untold; /* it was not told that it is so now */
    /* As the latest migration of its guest has shown it at most; 0 = there was none since berthd was started. */
    guint64 dirty_bytes_per_sec;
    gint64 started_at_usec; /* when START of the newest epoch was decided; 0 = before a restart */
} BerthTaskEntry;

typedef struct {
    Berth__Job *job;       /* owned; without spec and tasks */
    gboolean wants_output; /* its output is still to be copied to files: see outputs.h */
    guint32 n_tasks;
    BerthTaskEntry *tasks; /* by index */
} BerthJobEntry;

typedef struct BerthJobTable BerthJobTable;
BerthJobTable *berth_job_table_new(void);
void berth_job_table_free(BerthJobTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthJobTable, berth_job_table_free)

/* Adds a job with N_TASKS tasks. JOB (transfer full); each of TASKS (transfer full), or TASKS NULL
 * for new ones. The number must be new. (transfer none) */
BerthJobEntry *berth_job_table_add(BerthJobTable *table, Berth__Job *job,
                                   Berth__StoredTask *const *tasks, guint32 n_tasks);
/* NULL: not an unfinished job. */
BerthJobEntry *berth_job_table_find(BerthJobTable *table, guint64 job);
/* NULL also for an index that the job does not have. */
BerthTaskEntry *berth_job_table_find_task(BerthJobTable *table, guint64 job, guint32 task);
void berth_job_table_remove(BerthJobTable *table, guint64 job);

/* Jobs that are not final, by image and by user. A job counts from add() until finished(). */
guint berth_job_table_count_image(BerthJobTable *table, const char *image);
guint berth_job_table_count_user(BerthJobTable *table, guint32 uid);
/* The job has reached a final state; it stays in the table until its guest is released.
 * Idempotent. */
void berth_job_table_finished(BerthJobTable *table, guint64 job);
guint berth_job_table_size(BerthJobTable *table);
/* All numbers, rising (guint64, transfer full). */
GArray *berth_job_table_numbers(BerthJobTable *table);
