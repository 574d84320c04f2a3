/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Something that a running job's guest is to do or to have: it is asked for once, and what comes of it is read from the event
 * log, from before the question on, so that no answer falls between the two. */

typedef struct BerthJobOp BerthJobOp;

typedef struct {
    const char *done;        /* "moved": what the job was not, in errors */
    const char *shows;       /* " runs on ": between the job and the outcome, for people */
    gboolean waits_to_start; /* that it has no guest meanwhile is part of it */
    gboolean
        outlives_guest; /* it may have been done before its guest was lost: that is known when nothing is left of it */
    /* The question. (transfer full) */
    Berth__JobReply *(*ask)(const BerthJobOp *op, GError **error);
    /* The answer to it, which may be the outcome already; or NULL. */
    void (*asked)(BerthJobOp *op, const Berth__Job *job);
    /* An event of the job. FALSE: berth_job_op_watch() is to return. */
    gboolean (*take)(BerthJobOp *op, const Berth__Event *event);
    /* Waits, once, for what comes of it. */
    gboolean (*follow)(BerthJobOp *op, GError **error);
} BerthJobOpClass;

/* First member of a verb's own. Zeroed but for the first five. */
struct BerthJobOp {
    const BerthJobOpClass *class;
    BerthCli *cli;
    guint64 job;
    gboolean waits;     /* for its outcome */
    const char *reason; /* why it is wanted; NULL = not said */
    gboolean was_asked;
    gboolean is_over;
    gboolean is_lost; /* it is over, for its guest is no more: how its job goes on is asked for */
    gboolean is_being_lost; /* what is left of its guest is still to go */
    Berth__Reason lost_reason;
    guint64 last_seq;
    const BerthIndexSet
        *tasks;    /* of an array; NULL = all. What comes of several is not waited for */
    char *outcome; /* where the job is, or what it has, in the end; NULL: not known */
    GError *failure;
};

/* It is over: with OUTCOME; or, unless it has failed before, because of WHY. */
void berth_job_op_end(BerthJobOp *op, const char *outcome);
void berth_job_op_fail(BerthJobOp *op, const char *why);
/* Likewise, because the guest is no more: REASON is that for which its job waits. */
void berth_job_op_lose(BerthJobOp *op, Berth__Reason reason);
/* How JOB, or of an array the one of TASKS, whose guest is no more for REASON, goes on: "its guest was lost, and it starts
 * again". (transfer full) */
char *berth_job_lost_text(const Berth__Job *job, const BerthIndexSet *tasks, Berth__Reason reason);

/* Reads the job's events until it is over, take() says so, or UNTIL_SEQ (0 = none) was read; for TIMEOUT_MSEC (0 = none) at
 * most, after which it fails with DEADLINE_EXCEEDED. */
gboolean berth_job_op_watch(BerthJobOp *op, guint64 until_seq, guint timeout_msec, GError **error);

/* All of it, over restarts of the daemon. FALSE: it was refused, or has failed. */
gboolean berth_job_op_run(BerthJobOp *op, GError **error);
/* Says what came of it, or shows the job. */
gboolean berth_job_op_print(const BerthJobOp *op, GError **error);
/* What it owns, but not itself. */
void berth_job_op_clear(BerthJobOp *op);
