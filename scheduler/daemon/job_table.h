/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
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
    gint64
        measured_usec; /* when its usage was last noted; 0 = not since its command runs, or since a restart */
    guint64 cpu_seen_usec; /* its Usage.cpu_usec then */
    /* Its Usage.starved_usec up to which the core has charged it. The record has that which goes
     * with the core's sum in it, so that neither a restart nor a repetition counts any twice. */
    guint64 starved_seen_usec;
    gint64
        held_told_usec; /* when the event log was last told that it is held back; 0 = not since a restart */
    gboolean holds_untold;  /* it was not told that it is so now */
    gint64 kills_told_usec; /* when it was last told that its guest's kernel ended processes */
    guint kills_tellings;   /* how often, of this epoch; 0 = not since a restart */
    /* As the latest migration of its guest has shown it at most; 0 = there was none since berthd was started. */
    guint64 dirty_bytes_per_sec;
    gint64 started_at_usec; /* when START of the newest epoch was decided; 0 = before a restart */
    gboolean wants_output;  /* its output is still to be copied to files: see outputs.h */
} BerthTaskEntry;

typedef struct {
    Berth__Job
        *job; /* owned; without spec and tasks, and of an array without what has never started: */
    BerthIndexSet *unstarted; /* owned; NULL = it is no array */
    gboolean wants_output;    /* of its tasks: their output is to be copied to files */
    /* By rising index. A plain job has one; an array those that have started, or ended, and are not done with. */
    guint32 n_tasks;
    BerthTaskEntry **tasks;
} BerthJobEntry;

/* Nothing of it is left to be done. */
static inline gboolean berth_job_entry_is_over(const BerthJobEntry *entry)
{
    return entry->n_tasks == 0 &&
           (!entry->unstarted || berth_index_set_count(entry->unstarted) == 0);
}

typedef struct BerthJobTable BerthJobTable;
BerthJobTable *berth_job_table_new(void);
void berth_job_table_free(BerthJobTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthJobTable, berth_job_table_free)

/* Adds a job without tasks; an array (job->array) with those of job->unstarted, which it takes from the record. JOB (transfer full).
 * The number must be new. (transfer none) */
BerthJobEntry *berth_job_table_add(BerthJobTable *table, Berth__Job *job);
/* STORED (transfer full), or NULL for one that waits. It must be new. (transfer none) */
BerthTaskEntry *berth_job_table_add_task(BerthJobEntry *entry, guint32 index,
                                         Berth__StoredTask *stored);
/* NULL: not an unfinished job. An entry is there until the loop goes on (berth_job_table_rest()), as are those of its tasks. */
BerthJobEntry *berth_job_table_find(BerthJobTable *table, guint64 job);
/* JOB, which is no array, waits, has never started, and nothing is known of it but what is in its record. */
gboolean berth_job_table_is_resting(const BerthJobTable *table, guint64 job);
/* NULL also for an index that has no entry. */
BerthTaskEntry *berth_job_table_find_task(BerthJobTable *table, guint64 job, guint32 task);
/* The task is done with, and with its last one the job. */
void berth_job_table_remove_task(BerthJobTable *table, guint64 job, guint32 task);
/* A copy of the record with what has never started, as it is stored. (transfer full) */
Berth__Job *berth_job_entry_record(const BerthJobEntry *entry);

/* Jobs that are not final, by image and by user. A job counts from add() until finished(). */
guint berth_job_table_count_image(BerthJobTable *table, const char *image);
guint berth_job_table_count_user(BerthJobTable *table, guint32 uid);
/* ... of all users; OUT_USERS: of how many. */
guint berth_job_table_count_all(BerthJobTable *table, guint *out_users);
/* The job has reached a final state; it stays in the table until its guest is released.
 * Idempotent. */
void berth_job_table_finished(BerthJobTable *table, guint64 job);
guint berth_job_table_size(BerthJobTable *table);
/* The numbers of all of which something has started, rising (guint64, transfer full); there may be others among them. */
GArray *berth_job_table_begun(BerthJobTable *table);
/* Keeps of jobs that have never started no more than it must: entries that were found are there no longer. The loop does so by
 * itself. */
void berth_job_table_rest(BerthJobTable *table);
