/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what verbs have in common that have something done to a running job: the question, which is not asked again when its
 * answer was had, and the end of the job, which is the end of that. */
#include "cli/job_op.h"

#include "cli/job_get.h"
#include "cli/tasks.h"
#include "cli/wait_note.h"
#include "common/error.h"
#include "common/types.h"

#include <stdio.h>

void berth_job_op_fail(BerthJobOp *op, const char *why)
{
    g_autofree char *name = berth_tasks_format(op->job, op->tasks);
    op->is_over = TRUE;
    if (op->failure == NULL)
        op->failure = g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                                  "job %s was not %s: %s", name, op->class->done, why);
}

void berth_job_op_end(BerthJobOp *op, const char *outcome)
{
    op->is_over = TRUE;
    g_free(op->outcome);
    op->outcome = g_strdup(outcome);
}

/* Of an event that says so: a requeued task may have another reason to wait by now. */
char *berth_job_lost_text(const Berth__Job *job, const BerthIndexSet *tasks, Berth__Reason reason)
{
    const Berth__Task *task = berth_job_one_task(job, tasks);
    Berth__JobState state = berth_job_state_of(job, task);
    guint32 restores_from = task != NULL ? task->restores_from : 0;
    if (berth_job_state_is_final((BerthJobState)state))
        return g_strdup("it has ended meanwhile");
    if (reason == BERTH__REASON__REASON_STARTING_LATER)
        return g_strdup("it could not start, and tries again");
    if (reason == BERTH__REASON__REASON_RESTORING)
        return g_strdup_printf("it was put back to checkpoint %u", restores_from);
    if (reason != BERTH__REASON__REASON_REQUEUED && restores_from != 0)
        return g_strdup_printf("it was stopped, and goes on from checkpoint %u when there is room",
                               restores_from);
    if (restores_from != 0 && state == BERTH__JOB_STATE__SUSPENDED)
        return g_strdup_printf("its guest was lost, and it stands still as of checkpoint %u",
                               restores_from);
    if (restores_from != 0)
        return g_strdup_printf("its guest was lost, and it goes on from checkpoint %u",
                               restores_from);
    return g_strdup("its guest was lost, and it starts again");
}

void berth_job_op_lose(BerthJobOp *op, Berth__Reason reason)
{
    op->is_over = op->is_lost = TRUE;
    op->lost_reason = reason;
}

static void take_state(BerthJobOp *op, const Berth__Event *event)
{
    if (berth_job_state_is_final((BerthJobState)event->state))
        berth_job_op_fail(op, "it has ended meanwhile");
    else if (event->state == BERTH__JOB_STATE__RUNNING && op->is_being_lost)
        berth_job_op_lose(op, op->lost_reason);
    else if (event->state == BERTH__JOB_STATE__PENDING && op->class->outlives_guest) {
        op->is_being_lost = TRUE;
        op->lost_reason = event->reason;
    } else if (event->state == BERTH__JOB_STATE__PENDING && !op->class->waits_to_start)
        berth_job_op_lose(op, event->reason);
}

static gboolean says_that_nothing_is_left(const Berth__Event *event)
{
    return event->kind == BERTH__EVENT__KIND__GUEST_RELEASED ||
           event->kind == BERTH__EVENT__KIND__GUEST_FENCED;
}

static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    BerthJobOp *op = user_data;
    gboolean goes_on = TRUE;
    op->last_seq = event->seq;
    if (!berth_event_is_of(event, op->tasks))
        return TRUE;
    if (event->kind == BERTH__EVENT__KIND__TASK_STATE)
        take_state(op, event);
    else
        goes_on = op->class->take(op, event);
    if (op->is_being_lost && !op->is_over && says_that_nothing_is_left(event))
        berth_job_op_lose(op, op->lost_reason);
    return goes_on && !op->is_over;
}

gboolean berth_job_op_watch(BerthJobOp *op, guint64 until_seq, guint timeout_msec, GError **error)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.job = op->job;
    request.after_seq = op->last_seq;
    request.until_seq = until_seq;
    return berth_rpc_peer_stream(op->cli->peer, &berth__jobs__descriptor, "Watch", &request.base,
                                 timeout_msec, take_event, op, error);
}

static gboolean names_one(const BerthIndexSet *tasks)
{
    return tasks != NULL && berth_index_set_count(tasks) == 1;
}

static void tell_no_wait(BerthJobOp *op)
{
    g_autofree char *name = berth_tasks_format(op->job, op->tasks);
    op->waits = FALSE;
    fprintf(stderr,
            "%s: what comes of tasks of %s is not waited for, but for one that is named "
            "as JOB[INDEX]; berth events %" G_GUINT64_FORMAT " has it\n",
            g_get_prgname(), name, op->job);
}

static gboolean ask_once(BerthJobOp *op, GError **error)
{
    Berth__ServerInfo *info = berth_cli_server_info(op->cli, error);
    if (info == NULL)
        return FALSE;
    op->last_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    Berth__JobReply *reply = op->class->ask(op, error);
    if (reply == NULL)
        return FALSE;
    op->was_asked = TRUE;
    if (op->waits && reply->job->array != NULL && !names_one(op->tasks))
        tell_no_wait(op);
    if (op->class->asked != NULL)
        op->class->asked(op, reply->job);
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}

/* What its job does now. */
static gboolean tell_lost(BerthJobOp *op, GError **error)
{
    Berth__Job *job = berth_get_job_tasks(op->cli, op->job, op->tasks, error);
    if (job == NULL)
        return FALSE;
    g_autofree char *why = berth_job_lost_text(job, op->tasks, op->lost_reason);
    berth_job_op_fail(op, why);
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

static gboolean attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    BerthJobOp *op = user_data;
    if (!op->was_asked && !ask_once(op, error))
        return FALSE;
    while (op->waits && !op->is_over)
        if (!op->class->follow(op, error))
            return FALSE;
    return !op->is_lost || tell_lost(op, error);
}

gboolean berth_job_op_run(BerthJobOp *op, GError **error)
{
    g_autoptr(BerthWaitNote) note =
        op->waits ? berth_wait_note_new_of(op->cli, op->job, op->tasks, op->class->waits_to_start)
                  : NULL;
    if (!berth_cli_persist(op->cli, FALSE, attempt, op, error))
        return FALSE;
    if (op->failure == NULL)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&op->failure));
    return FALSE;
}

gboolean berth_job_op_print(const BerthJobOp *op, GError **error)
{
    g_autofree char *name = berth_tasks_format(op->job, op->tasks);
    if (!op->cli->json) {
        if (op->outcome != NULL)
            printf("job %s%s%s\n", name, op->class->shows, op->outcome);
        return TRUE;
    }
    Berth__Job *shown = berth_get_job_tasks(op->cli, op->job, op->tasks, error);
    if (shown == NULL)
        return FALSE;
    berth_cli_print_json(&shown->base);
    berth__job__free_unpacked(shown, NULL);
    return TRUE;
}

void berth_job_op_clear(BerthJobOp *op)
{
    g_clear_error(&op->failure);
    g_clear_pointer(&op->outcome, g_free);
}
