/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which events of a job are requests of people, and which say what came of them. The record of the job has their
 * numbers; who asked, when, for what and why is in the events alone. Pure but for the record that it is told to change.
 *
 * A guest has one thing done to it at a time, and a request is refused or begun at once, or joins what is under way to
 * the same end. So the next result of that kind is the request's, whatever that was begun for, unless it has failed
 * and the request is still to be done. What becomes so without a result of its own, or cannot become so any more, is
 * seen in the task's record.
 *
 * A request of an array has as many results as it concerns tasks: the record says that it was taken up, no more.
 *
 * Invariants: what nobody asked for is no request; a job that has ended has none that is open; of those that were
 * refused, which anybody may ask for, a record has so few that they leave room for the others. */
#include "config.h"

#include "scheduler/daemon/job_requests.h"

#include "common/types.h"

#define KIND(name)  BERTH__EVENT__KIND__##name
#define STATE(name) BERTH__JOB_STATE__##name
#define OPEN        BERTH__JOB_REQUEST__OUTCOME__OPEN
#define DONE        BERTH__JOB_REQUEST__OUTCOME__DONE
#define FAILED      BERTH__JOB_REQUEST__OUTCOME__FAILED
#define OVERTAKEN   BERTH__JOB_REQUEST__OUTCOME__OVERTAKEN
#define REFUSED     BERTH__JOB_REQUEST__OUTCOME__REFUSED
#define TAKEN       BERTH__JOB_REQUEST__OUTCOME__TAKEN

typedef Berth__JobRequest__Outcome Outcome;

/* --- what came of each ------------------------------------------------------------------------- */

/* What EVENT, which is not the end of the job, says of a request; OPEN: nothing. */
typedef Outcome (*OutcomeFunc)(const Berth__StoredTask *stored, const Berth__Event *event);

static gboolean is_state(const Berth__Event *event, Berth__JobState state)
{
    return event->kind == KIND(TASK_STATE) && event->state == state;
}

/* Its guest is no more, and nothing is done to it. */
static Outcome if_lost(const Berth__Event *event)
{
    return is_state(event, STATE(PENDING)) ? FAILED : OPEN;
}

static gboolean is_freeze(Berth__Reason reason)
{
    return reason == BERTH__REASON__REASON_FROZEN_BY_USER ||
           reason == BERTH__REASON__REASON_FROZEN_BY_OPERATOR;
}

/* To disk, it may stand still in memory before it is saved. */
static gboolean is_frozen(const Berth__StoredTask *stored)
{
    const Berth__Task *task = stored->task;
    return task->state == STATE(SUSPENDED) && is_freeze(task->reason) &&
           (task->to_disk || !stored->freeze_to_disk);
}

/* One whose guest is lost is still to be frozen. */
static Outcome of_freeze(const Berth__StoredTask *stored, const Berth__Event *event)
{
    switch (event->kind) {
    case KIND(TASK_STATE):
        return is_frozen(stored) ? DONE : OPEN;
    case KIND(GUEST_CHECKPOINTED):
        return is_freeze(event->reason) ? DONE : OPEN;
    case KIND(GUEST_CHECKPOINT_FAILED):
        return is_freeze(event->reason) ? FAILED : OPEN;
    case KIND(GUEST_FREEZE_FAILED):
        return FAILED;
    case KIND(JOB_THAW_REQUESTED):
        return OVERTAKEN;
    default:
        return OPEN;
    }
}

/* One that was on disk may wait for room then: it is not frozen any more. */
static Outcome of_thaw(const Berth__StoredTask *stored, const Berth__Event *event)
{
    switch (event->kind) {
    case KIND(TASK_STATE):
        return event->state == STATE(SUSPENDED) ? OPEN : DONE;
    case KIND(GUEST_FREEZE_FAILED):
        return DONE;
    case KIND(GUEST_THAW_FAILED):
        return FAILED;
    case KIND(JOB_FREEZE_REQUESTED):
        return OVERTAKEN;
    default:
        return OPEN;
    }
}

static Outcome of_migrate(const Berth__StoredTask *stored, const Berth__Event *event)
{
    if (event->kind == KIND(GUEST_MIGRATED))
        return DONE;
    return event->kind == KIND(GUEST_MIGRATE_FAILED) ? FAILED : if_lost(event);
}

static Outcome of_call_off(const Berth__StoredTask *stored, const Berth__Event *event)
{
    gboolean is_gone = event->reason == BERTH__REASON__REASON_GUEST_VANISHED;
    if (event->kind == KIND(GUEST_MIGRATED))
        return FAILED;
    if (event->kind == KIND(GUEST_MIGRATE_FAILED))
        return is_gone ? FAILED : DONE;
    return if_lost(event);
}

static Outcome of_resize(const Berth__StoredTask *stored, const Berth__Event *event)
{
    if (event->kind == KIND(GUEST_RESIZED))
        return DONE;
    return event->kind == KIND(GUEST_RESIZE_FAILED) || event->kind == KIND(GUEST_MIGRATE_FAILED)
               ? FAILED
               : if_lost(event);
}

/* It joins one that was due, and is dropped with it. After one that was to stop the guest, and failed, its own turn
 * comes: STORED still has which of them it was. */
static Outcome of_checkpoint(const Berth__StoredTask *stored, const Berth__Event *event)
{
    if (event->kind == KIND(GUEST_CHECKPOINTED))
        return DONE;
    return event->kind == KIND(GUEST_CHECKPOINT_FAILED) && !stored->checkpoint_stops
               ? FAILED
               : if_lost(event);
}

/* What the task, which does not run, was to go on from; the text of EVENT begins with its serial. */
static gboolean is_given_up(const Berth__StoredTask *stored, const Berth__Event *event)
{
    return event->kind == KIND(CHECKPOINT_REMOVED) && *event->user == '\0' &&
           g_ascii_strtoull(event->text, NULL, 10) == stored->task->restores_from;
}

/* It goes on from another one then. */
static Outcome of_restore(const Berth__StoredTask *stored, const Berth__Event *event)
{
    if (event->kind == KIND(GUEST_RUNNING))
        return DONE;
    if (event->kind == KIND(JOB_RESTORE_REQUESTED))
        return OVERTAKEN;
    return is_given_up(stored, event) ? FAILED : OPEN;
}

typedef struct {
    Berth__Event__Kind kind;
    gboolean is_at_once; /* it is done when it is asked for */
    OutcomeFunc outcome; /* NULL: nothing but the end of the job */
} Kind;

static const Kind kinds[] = {
    {KIND(JOB_HELD), TRUE, NULL},
    {KIND(JOB_RELEASED), TRUE, NULL},
    {KIND(JOB_EXTEND_REQUESTED), TRUE, NULL},
    {KIND(JOB_CHECKPOINT_EVERY_REQUESTED), TRUE, NULL},
    {KIND(CHECKPOINT_REMOVED), TRUE, NULL},
    {KIND(JOB_CANCEL_REQUESTED), FALSE, NULL},
    {KIND(JOB_FREEZE_REQUESTED), FALSE, of_freeze},
    {KIND(JOB_THAW_REQUESTED), FALSE, of_thaw},
    {KIND(JOB_MIGRATE_REQUESTED), FALSE, of_migrate},
    {KIND(JOB_MIGRATE_CANCEL_REQUESTED), FALSE, of_call_off},
    {KIND(JOB_RESIZE_REQUESTED), FALSE, of_resize},
    {KIND(JOB_CHECKPOINT_REQUESTED), FALSE, of_checkpoint},
    {KIND(JOB_RESTORE_REQUESTED), FALSE, of_restore},
};

/* NULL: it is no request. */
static const Kind *find_kind(Berth__Event__Kind kind)
{
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (kinds[i].kind == kind)
            return &kinds[i];
    return NULL;
}

static Outcome outcome_of(const Berth__JobRequest *request, const Berth__StoredTask *stored,
                          const Berth__Event *event)
{
    const Kind *kind = find_kind(request->kind);
    if (event->kind == KIND(TASK_STATE) && berth_job_state_is_final((BerthJobState)event->state))
        return request->kind == KIND(JOB_CANCEL_REQUESTED) && event->state == STATE(CANCELLED)
                   ? DONE
                   : OVERTAKEN;
    return kind && kind->outcome ? kind->outcome(stored, event) : OPEN;
}

/* --- the record --------------------------------------------------------------------------------- */

static void request_free(Berth__JobRequest *request)
{
    berth__job_request__free_unpacked(request, NULL);
}

static void drop(Berth__Job *job, gsize at)
{
    request_free(job->requests[at]);
    job->n_requests--;
    for (gsize i = at; i < job->n_requests; i++)
        job->requests[i] = job->requests[i + 1];
}

static void make_room(Berth__Job *job, Outcome outcome)
{
    gsize n_refused = 0, oldest_refused = 0;
    for (gsize i = job->n_requests; i > 0; i--) {
        if (job->requests[i - 1]->outcome != REFUSED)
            continue;
        n_refused++;
        oldest_refused = i - 1;
    }
    if (outcome == REFUSED && n_refused >= BERTH_JOB_REFUSALS_MAX)
        drop(job, oldest_refused);
    else if (job->n_requests >= BERTH_JOB_REQUESTS_MAX)
        drop(job, 0);
}

/* OUTCOME: that it has at once. */
static void add(Berth__Job *job, const Berth__Event *event, Berth__Event__Kind kind,
                Outcome outcome)
{
    Berth__JobRequest request = BERTH__JOB_REQUEST__INIT;
    request.kind = kind;
    request.asked_seq = event->seq;
    request.outcome = outcome;
    request.settled_seq = outcome != OPEN ? event->seq : 0;
    make_room(job, outcome);
    job->requests = g_renew(Berth__JobRequest *, job->requests, job->n_requests + 1);
    job->requests[job->n_requests++] = berth_pb_dup(&request.base);
}

/* It has been moved to where it is to be resized. */
static gboolean is_half_done(const Berth__JobRequest *request, const Berth__Event *event)
{
    return request->kind == KIND(JOB_RESIZE_REQUESTED) && event->kind == KIND(GUEST_MIGRATED);
}

static gboolean settle_by(Berth__Job *job, const Berth__StoredTask *stored,
                          const Berth__Event *event)
{
    gboolean is_changed = FALSE;
    for (gsize i = 0; i < job->n_requests; i++) {
        Berth__JobRequest *request = job->requests[i];
        if (request->outcome != OPEN)
            continue;
        request->outcome = outcome_of(request, stored, event);
        if (request->outcome == OPEN && !is_half_done(request, event))
            continue;
        request->settled_seq = event->seq;
        is_changed = TRUE;
    }
    return is_changed;
}

gboolean berth_job_requests_take(Berth__Job *job, const Berth__StoredTask *stored,
                                 const Berth__Event *event)
{
    gboolean is_refused = event->kind == KIND(REQUEST_REFUSED);
    Berth__Event__Kind wanted = is_refused ? event->wanted : event->kind;
    const Kind *kind = find_kind(wanted);
    gboolean is_changed = stored && settle_by(job, stored, event);
    Outcome outcome = stored ? OPEN : TAKEN;
    if (!*event->user || !kind)
        return is_changed;
    if (is_refused)
        outcome = REFUSED;
    else if (kind->is_at_once)
        outcome = DONE;
    add(job, event, wanted, outcome);
    return TRUE;
}

/* --- without an event --------------------------------------------------------------------------- */

/* Without a guest, which has gone to disk, nothing is done to one any more. */
static gboolean is_void(const Berth__JobRequest *request, const Berth__StoredTask *stored)
{
    return stored->task->to_disk && (request->kind == KIND(JOB_MIGRATE_REQUESTED) ||
                                     request->kind == KIND(JOB_MIGRATE_CANCEL_REQUESTED) ||
                                     request->kind == KIND(JOB_RESIZE_REQUESTED) ||
                                     request->kind == KIND(JOB_CHECKPOINT_REQUESTED));
}

/* What REQUEST wants is so. */
static gboolean is_so(const Berth__JobRequest *request, const Berth__StoredTask *stored)
{
    const Berth__Task *task = stored->task;
    switch (request->kind) {
    case KIND(JOB_FREEZE_REQUESTED):
        return is_frozen(stored) && !stored->freeze_is_open;
    case KIND(JOB_THAW_REQUESTED):
        return task->state != STATE(SUSPENDED) && !stored->freeze_is_open;
    case KIND(JOB_RESIZE_REQUESTED):
        return !task->resize && !task->migration;
    case KIND(JOB_RESTORE_REQUESTED):
        return task->state == STATE(SUSPENDED) && task->to_disk;
    default:
        return FALSE;
    }
}

gboolean berth_job_requests_settle(Berth__Job *job, const Berth__StoredTask *stored)
{
    gboolean is_changed = FALSE;
    for (gsize i = 0; i < job->n_requests; i++) {
        Berth__JobRequest *request = job->requests[i];
        gboolean fails = is_void(request, stored);
        if (request->outcome != OPEN || (!fails && !is_so(request, stored)))
            continue;
        /* One that was half done goes no further: where it was moved there is no room any more. */
        request->outcome = fails || request->settled_seq != 0 ? FAILED : DONE;
        if (request->settled_seq == 0)
            request->settled_seq = request->asked_seq;
        is_changed = TRUE;
    }
    return is_changed;
}

void berth_job_requests_drop(Berth__Job *job)
{
    for (gsize i = 0; i < job->n_requests; i++)
        request_free(job->requests[i]);
    g_clear_pointer(&job->requests, free);
    job->n_requests = 0;
}
