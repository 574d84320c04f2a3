/* SPDX-License-Identifier: Apache-2.0 */
/* berth freeze, thaw: asks for each job, then waits until its guest stands still, or runs again. What came
 * of it is read from the event log, from before the question on: no answer falls between the two. */
#include "cli/cli.h"

#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/job_op.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "cli/wait_note.h"
#include "common/error.h"
#include "common/ranges.h"
#include "common/types.h"

#include <stdio.h>

typedef struct {
    guint64 job;
    gboolean freezes;
    gboolean to_disk;
    char *to;     /* a node; NULL = not said */
    char *reason; /* likewise */
    gboolean waits;
    gboolean boots; /* it goes on from disk */
    gboolean was_asked;
    guint32 epoch;        /* of the guest that it had then */
    gboolean is_saved;    /* to disk: what it goes on from is there; its node is not free yet */
    gboolean is_put_back; /* somebody has asked for that */
    gboolean is_lost;     /* its guest is no more, and not by this */
    Berth__Reason lost_reason;
    guint64 last_seq;
    const BerthIndexSet *tasks; /* of an array; NULL = all. Of several nothing is waited for */
    gboolean is_over;           /* it is as wanted, or will not be */
    GError *failure;            /* it will not be */
} Freeze;

static void fail(Freeze *freeze, const char *why)
{
    freeze->is_over = TRUE;
    g_autofree char *name = berth_tasks_format(freeze->job, freeze->tasks);
    if (freeze->failure == NULL)
        freeze->failure =
            g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, "job %s was not %s: %s", name,
                        freeze->freezes ? "frozen" : "thawed", why);
}

static void lose(Freeze *freeze, Berth__Reason reason)
{
    freeze->is_over = freeze->is_lost = TRUE;
    freeze->lost_reason = reason;
}

/* To disk, it is SUSPENDED before that, where it stood still in memory: what was saved, another event says. */
static void take_state(Freeze *freeze, const Berth__Event *event)
{
    if (berth_job_state_is_final((BerthJobState)event->state))
        fail(freeze, "it has ended meanwhile");
    else if (event->state == BERTH__JOB_STATE__PENDING && !freeze->boots)
        lose(freeze, event->reason);
    else if (event->state == BERTH__JOB_STATE__SUSPENDED)
        freeze->is_over = freeze->freezes && !freeze->to_disk;
    else if (event->state == BERTH__JOB_STATE__RUNNING)
        freeze->is_over = !freeze->freezes && !freeze->boots;
}

/* Its guest ran on while that was made; all others leave nothing to be saved. */
static gboolean is_live(Berth__Reason reason)
{
    return reason == BERTH__REASON__REASON_CHECKPOINTED_BY_USER ||
           reason == BERTH__REASON__REASON_CHECKPOINTED_BY_OPERATOR ||
           reason == BERTH__REASON__REASON_CHECKPOINT_DUE;
}

/* Nothing is left of a guest: of the one that was to be saved. It stands still on, on disk, if it had an older
 * checkpoint. */
static void take_release(Freeze *freeze, const Berth__Event *event)
{
    if (!freeze->to_disk || event->epoch != freeze->epoch)
        return;
    if (freeze->is_saved)
        freeze->is_over = TRUE;
    else
        lose(freeze, freeze->is_put_back ? BERTH__REASON__REASON_RESTORING
                                         : BERTH__REASON__REASON_REQUEUED);
}

static gboolean is_freeze(Berth__Reason reason)
{
    return reason == BERTH__REASON__REASON_FROZEN_BY_USER ||
           reason == BERTH__REASON__REASON_FROZEN_BY_OPERATOR;
}

/* FALSE: nothing more is to be waited for. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Freeze *freeze = user_data;
    freeze->last_seq = event->seq;
    if (!berth_event_is_of(event, freeze->tasks))
        return TRUE;
    switch (event->kind) {
    case BERTH__EVENT__KIND__TASK_STATE:
        take_state(freeze, event);
        break;
    case BERTH__EVENT__KIND__JOB_RESTORE_REQUESTED:
        freeze->is_put_back = TRUE;
        break;
    case BERTH__EVENT__KIND__GUEST_RUNNING:
        freeze->is_over = !freeze->freezes;
        break;
    case BERTH__EVENT__KIND__GUEST_CHECKPOINTED: /* one that stood still in memory keeps its state */
        freeze->is_saved |= freeze->to_disk && !is_live(event->reason);
        break;
    case BERTH__EVENT__KIND__GUEST_RELEASED:
    case BERTH__EVENT__KIND__GUEST_FENCED:
        take_release(freeze, event);
        break;
    case BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED:
        if (freeze->to_disk && is_freeze(event->reason)) /* not of one that was under way before */
            fail(freeze, event->text);
        break;
    case BERTH__EVENT__KIND__GUEST_FREEZE_FAILED:
    case BERTH__EVENT__KIND__GUEST_THAW_FAILED:
        fail(freeze, event->text);
        break;
    case BERTH__EVENT__KIND__JOB_FREEZE_REQUESTED:
        if (!freeze->freezes)
            fail(freeze, "somebody has asked for it to be frozen again");
        break;
    case BERTH__EVENT__KIND__JOB_THAW_REQUESTED:
        if (freeze->freezes)
            fail(freeze, "somebody has asked for it to be thawed again");
        break;
    default:
        break;
    }
    return !freeze->is_over;
}

static Berth__JobReply *ask(BerthCli *cli, const Freeze *wanted, GError **error)
{
    gboolean freezes = wanted->freezes;
    Berth__FreezeRequest freeze = BERTH__FREEZE_REQUEST__INIT;
    Berth__ThawRequest thaw = BERTH__THAW_REQUEST__INIT;
    freeze.job = thaw.job = wanted->job;
    freeze.to_disk = wanted->to_disk;
    if (wanted->to != NULL)
        thaw.node = wanted->to;
    if (wanted->reason != NULL)
        freeze.reason = thaw.reason = wanted->reason;
    g_auto(BerthRanges) tasks = berth_ranges_of(wanted->tasks);
    freeze.tasks = thaw.tasks = tasks.ranges;
    freeze.n_tasks = thaw.n_tasks = tasks.n;
    ProtobufCMessage *reply =
        freezes ? berth_cli_call(cli, &berth__jobs__descriptor, "Freeze", &freeze.base, error)
                : berth_cli_call(cli, &berth__jobs__descriptor, "Thaw", &thaw.base, error);
    return (Berth__JobReply *)reply;
}

/* For room that there is not, which may take long: it is not waited for. */
static void tell_wait(const Berth__Job *job, const Berth__Task *task)
{
    if (task == NULL || task->restores_from == 0)
        return;
    g_autofree char *reason = berth_reason_format(task);
    g_autofree char *printable = berth_printable(reason);
    g_autofree char *name = berth_task_format(job, task);
    fprintf(stderr, "%s: job %s is thawed, and waits to go on from checkpoint %u: %s\n",
            g_get_prgname(), name, task->restores_from, printable);
}

/* It may be so at once: it was, or a task that waits has nothing to do for it. */
static gboolean ask_once(BerthCli *cli, Freeze *freeze, GError **error)
{
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    freeze->last_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    Berth__JobReply *reply = ask(cli, freeze, error);
    if (reply == NULL)
        return FALSE;
    freeze->was_asked = TRUE;
    const Berth__Job *job = reply->job;
    const Berth__Task *task = berth_job_one_task(job, freeze->tasks);
    /* Of an array the state of all says nothing of one. */
    Berth__JobState state = job->array == NULL ? job->state
                            : task != NULL     ? task->state
                                               : BERTH__JOB_STATE__PENDING;
    gboolean is_on_disk = task != NULL && task->to_disk;
    freeze->epoch = task != NULL ? task->epoch : 0;
    freeze->boots = task != NULL && task->restoring;
    freeze->is_over = state == BERTH__JOB_STATE__PENDING ||
                      (freeze->freezes && state == BERTH__JOB_STATE__SUSPENDED &&
                       is_on_disk >= freeze->to_disk) ||
                      (!freeze->freezes && state == BERTH__JOB_STATE__RUNNING && !freeze->boots);
    if (!freeze->freezes && state == BERTH__JOB_STATE__PENDING && !cli->json)
        tell_wait(job, task);
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}

/* How it goes on, and that what was wanted of it still is. */
static gboolean tell_lost(BerthCli *cli, Freeze *freeze, GError **error)
{
    Berth__Job *job = berth_get_job_tasks(cli, freeze->job, freeze->tasks, error);
    if (job == NULL)
        return FALSE;
    g_autofree char *how = berth_job_lost_text(job, freeze->tasks, freeze->lost_reason);
    Berth__JobState state = berth_job_state_of(job, berth_job_one_task(job, freeze->tasks));
    gboolean starts = freeze->freezes &&
                      (state == BERTH__JOB_STATE__PENDING || state == BERTH__JOB_STATE__RUNNING);
    g_autofree char *why =
        g_strconcat(how, starts ? "; it is to be frozen when it runs" : "", NULL);
    fail(freeze, why);
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

static gboolean attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Freeze *freeze = user_data;
    if (!freeze->was_asked && !ask_once(cli, freeze, error))
        return FALSE;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.job = freeze->job;
    while (freeze->waits && !freeze->is_over) {
        request.after_seq = freeze->last_seq;
        if (!berth_rpc_peer_stream(cli->peer, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                   take_event, freeze, error))
            return FALSE;
    }
    return !freeze->is_lost || tell_lost(cli, freeze, error);
}

/* WANTED is copied. */
static gboolean freeze_one(BerthCli *cli, const Freeze *wanted, GError **error)
{
    Freeze freeze = *wanted;
    g_autoptr(BerthWaitNote) note =
        freeze.waits ? berth_wait_note_new_of(cli, freeze.job, freeze.tasks, FALSE) : NULL;
    if (!berth_cli_persist(cli, FALSE, attempt, &freeze, error))
        return FALSE;
    if (freeze.failure != NULL) {
        g_propagate_error(error, freeze.failure);
        return FALSE;
    }
    if (!cli->json)
        return TRUE;
    Berth__Job *shown = berth_get_job_tasks(cli, freeze.job, freeze.tasks, error);
    if (shown == NULL)
        return FALSE;
    berth_cli_print_json(&shown->base);
    berth__job__free_unpacked(shown, NULL);
    return TRUE;
}

/* OPTION: to disk, or to a node. */
static gboolean freeze_each(BerthCli *cli, int argc, char **argv, Freeze *wanted,
                            GOptionEntry option, const char *description, int *out_status,
                            GError **error)
{
    gboolean no_wait = FALSE;
    const GOptionEntry entries[] = {
        option,
        BERTH_CLI_REASON(&wanted->reason),
        {"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait,
         "Return when it is decided, not when it is done", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDICES]]...", description, NULL, out_status,
                         error))
        return FALSE;
    if (wanted->to != NULL && *wanted->to == '\0')
        return berth_cli_usage_error(out_status, error, "--to: name a node, or leave it out");
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    wanted->waits = !no_wait;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        wanted->job = g_array_index(jobs, BerthCliTasks, i).job;
        wanted->tasks = g_array_index(jobs, BerthCliTasks, i).tasks;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (!freeze_one(cli, wanted, &local))
            berth_cli_report(local, out_status);
    }
    return TRUE;
}

gboolean berth_cli_freeze(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    Freeze wanted = {.freezes = TRUE};
    GOptionEntry to_disk = {"to-disk",
                            'd',
                            0,
                            G_OPTION_ARG_NONE,
                            &wanted.to_disk,
                            "As a checkpoint in storage: the jobs' nodes are released",
                            NULL};
    gboolean ok = freeze_each(
        cli, argc, argv, &wanted, to_disk,
        "The job's processes stop at once, in memory, where they are, and use no CPU; "
        "`berth thaw` lets them\ngo on. The job keeps its reservation, and its time "
        "limit runs on; not so where an operator froze the\njob of somebody else, "
        "which only an operator thaws. A job that boots is frozen when it runs.\n\n"
        "Frozen to disk it has neither a node nor a reservation, its time limit stands still, too, "
        "and "
        "it goes on\non whatever node has room.",
        out_status, error);
    g_free(wanted.reason);
    return ok;
}

gboolean berth_cli_thaw(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    Freeze wanted = {.freezes = FALSE};
    GOptionEntry node = {"to",       't',
                         0,          G_OPTION_ARG_STRING,
                         &wanted.to, "Jobs that are frozen to disk: go on on this node, now",
                         "NODE"};
    gboolean ok = freeze_each(
        cli, argc, argv, &wanted, node,
        "Lets frozen jobs go on. Their clocks are set; what they had open is as they "
        "left it, but for\nconnections whose other end has given up. What an operator "
        "froze, only an operator thaws. A job that is\nfrozen to disk waits for room as any other "
        "does.",
        out_status, error);
    g_free(wanted.to);
    g_free(wanted.reason);
    return ok;
}
