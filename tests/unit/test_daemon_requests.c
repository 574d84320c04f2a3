/* SPDX-License-Identifier: Apache-2.0 */
/* What of a job's events is a request, and what came of it. */
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/job_requests.h"
#include "scheduler/daemon/refusals.h"

#include "tests/lib/assert.h"

#define KIND(name)    BERTH__EVENT__KIND__##name
#define STATE(name)   BERTH__JOB_STATE__##name
#define REASON(name)  BERTH__REASON__REASON_##name
#define OUTCOME(name) BERTH__JOB_REQUEST__OUTCOME__##name

typedef struct {
    Berth__Job *job;
    Berth__StoredTask *stored;
    guint64 seq; /* of the newest event */
} Log;

static int setup(void **state)
{
    Log *log = g_new0(Log, 1);
    Berth__Job job = BERTH__JOB__INIT;
    Berth__StoredTask stored = BERTH__STORED_TASK__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    task.state = STATE(RUNNING);
    stored.task = &task;
    log->job = berth_pb_dup(&job.base);
    log->stored = berth_pb_dup(&stored.base);
    *state = log;
    return 0;
}

static int teardown(void **state)
{
    Log *log = *state;
    berth__job__free_unpacked(log->job, NULL);
    berth__stored_task__free_unpacked(log->stored, NULL);
    g_free(log);
    return 0;
}

static gboolean take(Log *log, Berth__Event *event)
{
    event->seq = ++log->seq;
    return berth_job_requests_take(log->job, log->stored, event);
}

static gboolean happens(Log *log, Berth__Event__Kind kind, Berth__Reason reason)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = kind;
    event.reason = reason;
    return take(log, &event);
}

static gboolean becomes(Log *log, Berth__JobState job_state, Berth__Reason reason)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = KIND(TASK_STATE);
    event.state = log->stored->task->state = job_state;
    event.reason = log->stored->task->reason = reason;
    return take(log, &event);
}

static void ask(Log *log, Berth__Event__Kind kind)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = kind;
    event.user = (char *)"alice";
    assert_true(take(log, &event));
}

static const Berth__JobRequest *newest(const Log *log)
{
    assert_true(log->job->n_requests > 0);
    return log->job->requests[log->job->n_requests - 1];
}

static void assert_settled(const Log *log, Berth__JobRequest__Outcome outcome, guint64 by_seq)
{
    assert_int_equal(newest(log)->outcome, outcome);
    assert_int_equal(newest(log)->settled_seq, by_seq);
}

static void what_nobody_asked_for_is_no_request(void **state)
{
    static const Berth__Event__Kind kinds[] = {
        KIND(CHECKPOINT_REMOVED), KIND(GUEST_MIGRATE),    KIND(GUEST_MIGRATED),
        KIND(GUEST_RESIZE),       KIND(GUEST_CHECKPOINT), KIND(JOB_FREEZE_REQUESTED)};
    Log *log = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        assert_false(happens(log, kinds[i], REASON(MOVED_BY_OPERATOR)));
    assert_int_equal(log->job->n_requests, 0);
}

static void some_are_done_when_they_are_asked_for(void **state)
{
    static const Berth__Event__Kind kinds[] = {
        KIND(JOB_HELD), KIND(JOB_RELEASED), KIND(JOB_EXTEND_REQUESTED),
        KIND(JOB_CHECKPOINT_EVERY_REQUESTED), KIND(CHECKPOINT_REMOVED)};
    Log *log = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        ask(log, kinds[i]);
        assert_int_equal(newest(log)->kind, kinds[i]);
        assert_settled(log, OUTCOME(DONE), newest(log)->asked_seq);
    }
    assert_false(becomes(log, STATE(CANCELLED), REASON(CANCELLED_BY_USER)));
}

/* Each of its tasks has a result of its own, and none settles what was asked of many. */
static void of_an_array_they_are_taken_up(void **state)
{
    static const Berth__Event__Kind kinds[] = {
        KIND(JOB_CANCEL_REQUESTED), KIND(JOB_FREEZE_REQUESTED), KIND(JOB_MIGRATE_REQUESTED)};
    Log *log = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        Berth__Event asked = BERTH__EVENT__INIT;
        asked.kind = kinds[i];
        asked.seq = ++log->seq;
        asked.user = (char *)"alice";
        assert_true(berth_job_requests_take(log->job, NULL, &asked));
        assert_settled(log, OUTCOME(TAKEN), newest(log)->asked_seq);
    }
    Berth__Event ended = BERTH__EVENT__INIT;
    ended.kind = KIND(TASK_STATE);
    ended.state = STATE(CANCELLED);
    ended.seq = ++log->seq;
    assert_false(berth_job_requests_take(log->job, NULL, &ended));
    Berth__Event held = BERTH__EVENT__INIT;
    held.kind = KIND(JOB_HELD);
    held.seq = ++log->seq;
    held.user = (char *)"alice";
    assert_true(berth_job_requests_take(log->job, NULL, &held));
    assert_settled(log, OUTCOME(DONE), newest(log)->asked_seq);
}

static void be_refused(Log *log, Berth__Event__Kind wanted)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = KIND(REQUEST_REFUSED);
    event.wanted = wanted;
    event.user = (char *)"mallory";
    assert_int_equal(take(log, &event), wanted != KIND(EXEC_BEGUN));
}

/* Nothing came of it: neither is it open, nor does it overtake another. */
static void one_that_was_refused_is_kept_as_such(void **state)
{
    Log *log = *state;
    ask(log, KIND(JOB_FREEZE_REQUESTED));
    be_refused(log, KIND(JOB_THAW_REQUESTED));
    assert_int_equal(newest(log)->kind, KIND(JOB_THAW_REQUESTED));
    assert_settled(log, OUTCOME(REFUSED), newest(log)->asked_seq);
    assert_int_equal(log->job->requests[0]->outcome, OUTCOME(OPEN));
    be_refused(log, KIND(EXEC_BEGUN));
    assert_int_equal(log->job->n_requests, 2);
}

/* However many there are, they leave room for the others. */
static void of_those_that_were_refused_the_latest_are_kept(void **state)
{
    Log *log = *state;
    guint n_refused = 0;
    for (guint i = 0; i < BERTH_JOB_REQUESTS_MAX - BERTH_JOB_REFUSALS_MAX; i++)
        ask(log, KIND(JOB_EXTEND_REQUESTED));
    for (guint i = 0; i < 3 * BERTH_JOB_REQUESTS_MAX; i++)
        be_refused(log, KIND(JOB_CANCEL_REQUESTED));
    assert_int_equal(log->job->n_requests, BERTH_JOB_REQUESTS_MAX);
    for (gsize i = 0; i < log->job->n_requests; i++)
        n_refused += log->job->requests[i]->outcome == OUTCOME(REFUSED);
    assert_int_equal(n_refused, BERTH_JOB_REFUSALS_MAX);
    assert_int_equal(log->job->requests[0]->asked_seq, 1);
    guint64 newest_seq = newest(log)->asked_seq;
    assert_int_equal(log->job->requests[log->job->n_requests - BERTH_JOB_REFUSALS_MAX]->asked_seq,
                     newest_seq + 1 - BERTH_JOB_REFUSALS_MAX);
}

static void assert_counted(BerthRefusals *refusals, guint32 uid, gint64 now_usec,
                           gboolean is_written, guint32 untold)
{
    guint32 n_untold = 0;
    assert_int_equal(berth_refusals_count(refusals, uid, now_usec, &n_untold), is_written);
    assert_int_equal(n_untold, untold);
}

/* Those beyond it are told as a number, with the next one that is written; others' are none of it. */
static void refusals_of_one_user_are_written_up_to_a_number(void **state)
{
    g_autoptr(BerthRefusals) refusals = berth_refusals_new(NULL);
    for (guint i = 0; i < BERTH_REFUSALS_MAX; i++)
        assert_counted(refusals, 1, i, TRUE, 0);
    for (guint i = 0; i < 1000; i++)
        assert_counted(refusals, 1, BERTH_REFUSALS_WINDOW_USEC - 1, FALSE, 0);
    assert_counted(refusals, 2, BERTH_REFUSALS_WINDOW_USEC - 1, TRUE, 0);
    assert_counted(refusals, 1, BERTH_REFUSALS_WINDOW_USEC, TRUE, 1000);
    assert_counted(refusals, 1, BERTH_REFUSALS_WINDOW_USEC, TRUE, 0);
}

/* What comes after a request. STATE 0: an event of that KIND; else the state of its task. */
typedef struct {
    Berth__Event__Kind asked, kind;
    Berth__JobState state;
    Berth__Reason reason;
    Berth__JobRequest__Outcome outcome;
} Case;

static const Case cases[] = {
    {KIND(JOB_CANCEL_REQUESTED), 0, STATE(CANCELLED), 0, OUTCOME(DONE)},
    {KIND(JOB_CANCEL_REQUESTED), 0, STATE(COMPLETED), 0, OUTCOME(OVERTAKEN)},
    {KIND(JOB_CANCEL_REQUESTED), 0, STATE(RUNNING), 0, OUTCOME(OPEN)},
    {KIND(JOB_FREEZE_REQUESTED), 0, STATE(SUSPENDED), REASON(FROZEN_BY_OPERATOR), OUTCOME(DONE)},
    {KIND(JOB_FREEZE_REQUESTED), 0, STATE(SUSPENDED), REASON(AT_LIMIT), OUTCOME(OPEN)},
    {KIND(JOB_FREEZE_REQUESTED), 0, STATE(PENDING), REASON(REQUEUED), OUTCOME(OPEN)},
    {KIND(JOB_FREEZE_REQUESTED), 0, STATE(FAILED), REASON(EXIT_STATUS), OUTCOME(OVERTAKEN)},
    {KIND(JOB_FREEZE_REQUESTED), KIND(GUEST_FREEZE_FAILED), 0, 0, OUTCOME(FAILED)},
    {KIND(JOB_FREEZE_REQUESTED), KIND(GUEST_CHECKPOINTED), 0, REASON(FROZEN_BY_USER),
     OUTCOME(DONE)},
    {KIND(JOB_FREEZE_REQUESTED), KIND(GUEST_CHECKPOINTED), 0, REASON(CHECKPOINT_DUE),
     OUTCOME(OPEN)},
    {KIND(JOB_FREEZE_REQUESTED), KIND(GUEST_CHECKPOINT_FAILED), 0, REASON(FROZEN_BY_USER),
     OUTCOME(FAILED)},
    {KIND(JOB_FREEZE_REQUESTED), KIND(JOB_THAW_REQUESTED), 0, 0, OUTCOME(OVERTAKEN)},
    {KIND(JOB_THAW_REQUESTED), 0, STATE(RUNNING), 0, OUTCOME(DONE)},
    {KIND(JOB_THAW_REQUESTED), 0, STATE(PENDING), REASON(RESTORING), OUTCOME(DONE)},
    {KIND(JOB_THAW_REQUESTED), 0, STATE(SUSPENDED), REASON(NONE), OUTCOME(OPEN)},
    {KIND(JOB_THAW_REQUESTED), KIND(GUEST_THAW_FAILED), 0, 0, OUTCOME(FAILED)},
    {KIND(JOB_THAW_REQUESTED), KIND(GUEST_FREEZE_FAILED), 0, 0, OUTCOME(DONE)},
    {KIND(JOB_THAW_REQUESTED), KIND(JOB_FREEZE_REQUESTED), 0, 0, OUTCOME(OVERTAKEN)},
    {KIND(JOB_MIGRATE_REQUESTED), KIND(GUEST_MIGRATED), 0, 0, OUTCOME(DONE)},
    {KIND(JOB_MIGRATE_REQUESTED), KIND(GUEST_MIGRATE_FAILED), 0, 0, OUTCOME(FAILED)},
    {KIND(JOB_MIGRATE_REQUESTED), 0, STATE(PENDING), REASON(REQUEUED), OUTCOME(FAILED)},
    {KIND(JOB_MIGRATE_REQUESTED), KIND(GUEST_RESIZED), 0, 0, OUTCOME(OPEN)},
    {KIND(JOB_MIGRATE_CANCEL_REQUESTED), KIND(GUEST_MIGRATE_FAILED), 0, 0, OUTCOME(DONE)},
    {KIND(JOB_MIGRATE_CANCEL_REQUESTED), KIND(GUEST_MIGRATE_FAILED), 0, REASON(GUEST_VANISHED),
     OUTCOME(FAILED)},
    {KIND(JOB_MIGRATE_CANCEL_REQUESTED), KIND(GUEST_MIGRATED), 0, 0, OUTCOME(FAILED)},
    {KIND(JOB_RESIZE_REQUESTED), KIND(GUEST_RESIZED), 0, 0, OUTCOME(DONE)},
    {KIND(JOB_RESIZE_REQUESTED), KIND(GUEST_RESIZE_FAILED), 0, 0, OUTCOME(FAILED)},
    {KIND(JOB_RESIZE_REQUESTED), KIND(GUEST_MIGRATE_FAILED), 0, 0, OUTCOME(FAILED)},
    {KIND(JOB_CHECKPOINT_REQUESTED), KIND(GUEST_CHECKPOINTED), 0, REASON(CHECKPOINTED_BY_USER),
     OUTCOME(DONE)},
    {KIND(JOB_CHECKPOINT_REQUESTED), KIND(GUEST_CHECKPOINTED), 0, REASON(CHECKPOINT_DUE),
     OUTCOME(DONE)},
    {KIND(JOB_CHECKPOINT_REQUESTED), KIND(GUEST_CHECKPOINTED), 0, REASON(FROZEN_BY_USER),
     OUTCOME(DONE)},
    {KIND(JOB_CHECKPOINT_REQUESTED), KIND(GUEST_CHECKPOINT_FAILED), 0,
     REASON(CHECKPOINTED_BY_OPERATOR), OUTCOME(FAILED)},
    {KIND(JOB_CHECKPOINT_REQUESTED), 0, STATE(PENDING), REASON(REQUEUED), OUTCOME(FAILED)},
    {KIND(JOB_RESTORE_REQUESTED), 0, STATE(PENDING), REASON(RESTORING), OUTCOME(OPEN)},
    {KIND(JOB_RESTORE_REQUESTED), KIND(GUEST_RUNNING), 0, 0, OUTCOME(DONE)},
    {KIND(JOB_RESTORE_REQUESTED), KIND(JOB_RESTORE_REQUESTED), 0, 0, OUTCOME(OVERTAKEN)},
};

static void request_is_settled_by_what_comes_of_it(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *c = &cases[i];
        setup(state);
        Log *log = *state;
        ask(log, c->asked);
        assert_settled(log, OUTCOME(OPEN), 0);
        gboolean is_news =
            c->state != 0 ? becomes(log, c->state, c->reason) : happens(log, c->kind, c->reason);
        if (newest(log)->outcome != c->outcome)
            fail_msg("case %zu: outcome %u", i, newest(log)->outcome);
        assert_int_equal(is_news, c->outcome != OUTCOME(OPEN));
        assert_int_equal(newest(log)->settled_seq, is_news ? 2 : 0);
        teardown(state);
    }
}

/* It stands still in memory, and is to be saved. */
static void freeze_to_disk_is_done_when_it_is_saved(void **state)
{
    Log *log = *state;
    log->stored->freeze_to_disk = TRUE;
    ask(log, KIND(JOB_FREEZE_REQUESTED));
    assert_false(becomes(log, STATE(SUSPENDED), REASON(FROZEN_BY_USER)));
    assert_false(berth_job_requests_settle(log->job, log->stored));
    assert_true(happens(log, KIND(GUEST_CHECKPOINTED), REASON(FROZEN_BY_USER)));
    assert_settled(log, OUTCOME(DONE), 3);
}

/* One that was to stop the guest leaves the one that was asked for to be done. */
static void checkpoint_that_fails_is_theirs_if_they_joined_it(void **state)
{
    static const struct {
        BerthReason reason;
        gboolean stops;
        Berth__JobRequest__Outcome outcome;
    } failures[] = {{BERTH_REASON_PRESSURE, TRUE, OUTCOME(OPEN)},
                    {BERTH_REASON_FROZEN_BY_USER, TRUE, OUTCOME(OPEN)},
                    {BERTH_REASON_CHECKPOINT_DUE, FALSE, OUTCOME(FAILED)}};
    Log *log = *state;
    ask(log, KIND(JOB_CHECKPOINT_REQUESTED));
    for (gsize i = 0; i < G_N_ELEMENTS(failures); i++) {
        BerthCoreAction action = {.kind = BERTH_ACTION_CHECKPOINT, .reason = failures[i].reason};
        Berth__Event event = BERTH__EVENT__INIT;
        log->stored->checkpoint_stops = failures[i].stops;
        berth_event_op_failed(&action, "n1", "no space", &event);
        take(log, &event);
        assert_int_equal(newest(log)->outcome, failures[i].outcome);
    }
}

/* It went to disk with nothing new to tell, and what was being done to its guest is not done any more. */
static void what_becomes_so_without_an_event_is_settled(void **state)
{
    static const Berth__Event__Kind of_guests[] = {
        KIND(JOB_MIGRATE_REQUESTED), KIND(JOB_MIGRATE_CANCEL_REQUESTED), KIND(JOB_RESIZE_REQUESTED),
        KIND(JOB_CHECKPOINT_REQUESTED)};
    Log *log = *state;
    Berth__Resize resize = BERTH__RESIZE__INIT;
    log->stored->task->resize = berth_pb_dup(&resize.base);
    log->stored->task->state = STATE(SUSPENDED);
    log->stored->task->reason = REASON(FROZEN_BY_USER);
    log->stored->freeze_to_disk = TRUE;
    ask(log, KIND(JOB_FREEZE_REQUESTED));
    for (gsize i = 0; i < G_N_ELEMENTS(of_guests); i++)
        ask(log, of_guests[i]);
    assert_false(berth_job_requests_settle(log->job, log->stored));
    log->stored->task->to_disk = TRUE;
    assert_true(berth_job_requests_settle(log->job, log->stored));
    assert_int_equal(log->job->requests[0]->outcome, OUTCOME(DONE));
    for (gsize i = 1; i < log->job->n_requests; i++)
        assert_int_equal(log->job->requests[i]->outcome, OUTCOME(FAILED));
}

static gboolean removed(Log *log, const char *text)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = KIND(CHECKPOINT_REMOVED);
    event.text = (char *)text;
    return take(log, &event);
}

/* Which goes on from another one. */
static void restore_from_what_is_given_up_has_failed(void **state)
{
    Log *log = *state;
    log->stored->task->restores_from = 2;
    ask(log, KIND(JOB_RESTORE_REQUESTED));
    assert_false(removed(log, "23: it is torn"));
    assert_false(removed(log, "3: the job was put back to 2"));
    assert_true(removed(log, "2: it is torn"));
    assert_settled(log, OUTCOME(FAILED), 4);
    log->stored->task->restores_from = 1;
    assert_false(happens(log, KIND(GUEST_RUNNING), 0));
}

static void what_is_so_already_is_done_at_once(void **state)
{
    Log *log = *state;
    Berth__Resize resize = BERTH__RESIZE__INIT;
    ask(log, KIND(JOB_THAW_REQUESTED));
    assert_true(berth_job_requests_settle(log->job, log->stored));
    assert_settled(log, OUTCOME(DONE), newest(log)->asked_seq);
    log->stored->task->resize = berth_pb_dup(&resize.base);
    ask(log, KIND(JOB_RESIZE_REQUESTED));
    assert_false(berth_job_requests_settle(log->job, log->stored));
    berth__resize__free_unpacked(log->stored->task->resize, NULL);
    log->stored->task->resize = NULL;
    assert_true(berth_job_requests_settle(log->job, log->stored));
    assert_settled(log, OUTCOME(DONE), newest(log)->asked_seq);
    log->stored->task->state = STATE(SUSPENDED);
    log->stored->task->reason = REASON(FROZEN_BY_USER);
    ask(log, KIND(JOB_FREEZE_REQUESTED));
    assert_true(berth_job_requests_settle(log->job, log->stored));
    assert_settled(log, OUTCOME(DONE), newest(log)->asked_seq);
}

static void thaw_of_what_is_being_frozen_is_open(void **state)
{
    Log *log = *state;
    log->stored->freeze_is_open = TRUE;
    ask(log, KIND(JOB_THAW_REQUESTED));
    assert_false(berth_job_requests_settle(log->job, log->stored));
    assert_settled(log, OUTCOME(OPEN), 0);
}

/* Where it was moved for that, somebody else has come first. */
static void resize_that_ends_with_a_move_has_failed(void **state)
{
    Log *log = *state;
    ask(log, KIND(JOB_RESIZE_REQUESTED));
    assert_true(happens(log, KIND(GUEST_MIGRATED), 0));
    assert_settled(log, OUTCOME(OPEN), 2);
    assert_true(berth_job_requests_settle(log->job, log->stored));
    assert_settled(log, OUTCOME(FAILED), 2);
}

static void latest_are_kept(void **state)
{
    Log *log = *state;
    for (guint i = 0; i < 3 * BERTH_JOB_REQUESTS_MAX; i++)
        ask(log, KIND(JOB_HELD));
    assert_int_equal(log->job->n_requests, BERTH_JOB_REQUESTS_MAX);
    for (guint i = 0; i < BERTH_JOB_REQUESTS_MAX; i++)
        assert_int_equal(log->job->requests[i]->asked_seq, 2 * BERTH_JOB_REQUESTS_MAX + i + 1);
    berth_job_requests_drop(log->job);
    assert_int_equal(log->job->n_requests, 0);
}

#define LOG(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG(what_nobody_asked_for_is_no_request),
        LOG(some_are_done_when_they_are_asked_for),
        LOG(of_an_array_they_are_taken_up),
        LOG(one_that_was_refused_is_kept_as_such),
        LOG(of_those_that_were_refused_the_latest_are_kept),
        cmocka_unit_test(refusals_of_one_user_are_written_up_to_a_number),
        cmocka_unit_test(request_is_settled_by_what_comes_of_it),
        LOG(freeze_to_disk_is_done_when_it_is_saved),
        LOG(checkpoint_that_fails_is_theirs_if_they_joined_it),
        LOG(what_becomes_so_without_an_event_is_settled),
        LOG(restore_from_what_is_given_up_has_failed),
        LOG(what_is_so_already_is_done_at_once),
        LOG(thaw_of_what_is_being_frozen_is_open),
        LOG(resize_that_ends_with_a_move_has_failed),
        LOG(latest_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
