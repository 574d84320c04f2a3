/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files that a submission passes through: submit.c has it in its hands until it has its answer, submit_look.c has
 * workers look up what it names, submit_decide.c has it decided on. Submissions that go on together are of one call, and are a
 * GPtrArray of BerthSubmission, never empty. */

#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/disk_bound.h"
#include "scheduler/daemon/memory_bound.h"
#include "scheduler/daemon/submit_blobs.h"

/* Those of all calls. */
struct BerthSubmissions {
    GHashTable *by_key; /* "UID:KEY" -> BerthSubmission, while under way */
    BerthMemoryBound *memory;
    BerthDiskBound *disk;
    GQueue unchecked; /* BerthSubmitGroup: of whose jobs some have not begun, one of each user */
    GQueue
        undecided; /* GPtrArray of BerthSubmission: of a call, when a turn's worth was decided on */
    guint next_check, next_turn; /* sources for the first of these; 0 = there are none */
};

/* What came in one call, whose request is ours until it ends. */
typedef struct BerthSubmitGroup BerthSubmitGroup;
struct BerthSubmitGroup {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    guint32 uid;
    guint32 gid;
    char *user;
    const ProtobufCBinaryData *shared; /* contents of blobs that its jobs name, beside their own */
    gsize n_shared;
    GPtrArray *members;       /* BerthSubmission, in their order, owned */
    guint n_open;             /* of these, that have no answer yet */
    guint n_begun;            /* of these: the first ones have been checked */
    GPtrArray *begun;         /* BerthSubmission: of these, that go on; NULL when all have begun */
    BerthSubmitGroup *behind; /* of the same user, which begins when all of this have; or NULL */
    gboolean is_many;         /* it is answered with a list */
};

typedef struct {
    BerthSubmitGroup *group;
    const Berth__SubmitRequest *request;
    char *user_key;    /* in by_key, or NULL */
    GPtrArray *joined; /* BerthSubmission: of the same key, which get the same answer; or NULL */
    Berth__JobSpec *spec;
    GError *
        unfit; /* SPEC cannot be taken, and is not looked into: the answer, unless the key was taken before; or NULL */
    BerthIndexSet *array; /* its indices; NULL = it is none */
    GPtrArray *places;    /* BerthBlobPlace */
    gboolean is_watching; /* it comes after others task by task, and has no answer yet */
    GArray *completed;    /* BerthTaskRange: of these; or NULL */
    guint64 job;          /* the answer, or ... */
    GError *error;
} BerthSubmission;

static inline BerthSubmitGroup *berth_submissions_group(const GPtrArray *submissions)
{
    return ((const BerthSubmission *)g_ptr_array_index(submissions, 0))->group;
}

/* --- submit.c --------------------------------------------------------------------------------- */

/* Its answer, which may be that of the group: JOB, or ERROR. Those that have joined it have the same; but if ERROR is its UNFIT, it is
 * theirs only if they are unfit too. */
void berth_submission_answer(BerthSubmission *submission, guint64 job, const GError *error);
/* N of the group's jobs have their answers. */
void berth_submit_group_close(BerthSubmitGroup *group, guint n);
/* Is there room for one more, of its user's and of all, and is its image there? Nothing is written for one that is refused; it may
 * have changed by the time the job is decided on. */
gboolean berth_submission_check_present(const BerthSubmission *submission, GError **error);
/* ERROR is the answer of all (transfer full). */
void berth_submissions_fail(GPtrArray *submissions, const GError *error);

/* --- submit_look.c ---------------------------------------------------------------------------- */

/* Looks whether their keys are known, how the jobs that they come after stand, and where their blobs are; then they are finished
 * (transfer full). */
void berth_submissions_look(GPtrArray *submissions);
/* It looks at nothing any more. */
void berth_submission_look_no_more(BerthSubmission *submission);
/* All that have COMPLETED of those that it comes after task by task, by now: BerthTaskRange (transfer none). NULL: it comes after
 * none so. */
const GArray *berth_submission_completed(BerthSubmission *submission);
/* Of each a job that it comes after has ended since that was looked at: it is looked at again when TURN is committed (transfer
 * full). */
void berth_submissions_look_again(BerthTurn *turn, GPtrArray *submissions);

/* --- submit_decide.c -------------------------------------------------------------------------- */

/* They are decided on (transfer full): all that they name is at hand, and noted. */
void berth_submissions_finish(GPtrArray *submissions);
/* ... and all that wait for their turn, at once. */
void berth_submissions_finish_all(BerthSubmissions *submissions);
