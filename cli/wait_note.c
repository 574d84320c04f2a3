/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lines that say what is waited for. That changes without an event of the job, so it is asked for: less and less
 * often, until the job has ended. */
#include "cli/wait_note.h"

#include "cli/format.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "common/id.h"
#include "common/types.h"

#include <stdio.h>
#include <unistd.h>

#define FIRST_MSEC   3000u
#define LONGEST_MSEC 60000u
#define TIMEOUT_MSEC 60000u

/* The owner has one reference, the request that is under way another. */
struct BerthWaitNote {
    BerthCli *cli;
    guint64 job;
    gboolean of_array; /* then of this task: */
    guint32 task;
    guint wait_msec; /* until it is asked next */
    guint timer;     /* 0 = none */
    GCancellable *cancellable;
    gboolean tells_reason;
    Berth__Reason said;     /* the newest that was printed; its details may change without a word */
    guint64 said_away_usec; /* likewise */
};

static gboolean ask(gpointer user_data);

static void clear(gpointer data)
{
    BerthWaitNote *note = data;
    g_object_unref(note->cancellable);
}

static void ask_later(BerthWaitNote *note)
{
    note->timer = g_timeout_add(note->wait_msec, ask, note);
    note->wait_msec = MIN(note->wait_msec * 2, LONGEST_MSEC);
}

static void say_away(BerthWaitNote *note, const Berth__Task *task)
{
    if (task->away_usec == note->said_away_usec)
        return;
    note->said_away_usec = task->away_usec;
    if (task->away_usec == 0)
        return;
    g_autofree char *name = berth_task_name_format(note->job, note->of_array, note->task);
    g_autofree char *node =
        berth_printable(*task->away_node != '\0' ? task->away_node : task->node);
    g_autofree char *since = berth_format_time(task->away_usec);
    fprintf(stderr,
            "%s%s: job %s: %s has had no session since %s, which is waited for; if none comes "
            "within node_timeout (berthd.conf), its guests are given up\n",
            isatty(STDERR_FILENO) ? "\r\033[K" : "", g_get_prgname(), name, node, since);
}

static void say_reason(BerthWaitNote *note, const Berth__Task *task)
{
    gboolean is_pending = task->state == BERTH__JOB_STATE__PENDING;
    if (!is_pending && task->state != BERTH__JOB_STATE__SUSPENDED) {
        note->said = BERTH__REASON__REASON_NONE;
        return;
    }
    if (task->reason == note->said)
        return;
    g_autofree char *reason = berth_reason_format(task);
    g_autofree char *printable = berth_printable(reason);
    g_autofree char *name = berth_task_name_format(note->job, note->of_array, note->task);
    fprintf(stderr, "%s: job %s is %s: %s\n", g_get_prgname(), name,
            is_pending ? "pending" : "suspended", printable);
    note->said = task->reason;
}

static void on_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthWaitNote *note = user_data;
    Berth__Job *job = (Berth__Job *)berth_rpc_peer_call_finish(result, NULL);
    gboolean is_wanted = !g_cancellable_is_cancelled(note->cancellable);
    const Berth__Task *task = job != NULL && job->n_tasks > 0 ? job->tasks[0] : NULL;
    gboolean has_ended =
        job != NULL && berth_job_state_is_final((BerthJobState)berth_job_state_of(job, task));
    if (is_wanted && !has_ended)
        ask_later(note);
    if (is_wanted && task != NULL)
        say_away(note, task);
    if (is_wanted && task != NULL && note->tells_reason)
        say_reason(note, task);
    if (job != NULL)
        berth__job__free_unpacked(job, NULL);
    g_rc_box_release_full(note, clear);
}

static gboolean ask(gpointer user_data)
{
    BerthWaitNote *note = user_data;
    note->timer = 0;
    if (note->cli->peer == NULL || berth_rpc_peer_is_closed(note->cli->peer)) {
        ask_later(note);
        return G_SOURCE_REMOVE;
    }
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT;
    Berth__IndexRange *ranges[] = {&range};
    range.first = range.last = note->task;
    request.job = note->job;
    request.tasks = ranges;
    request.n_tasks = note->of_array ? 1 : 0;
    berth_rpc_peer_call_async(note->cli->peer, &berth__jobs__descriptor, "Get", &request.base,
                              TIMEOUT_MSEC, note->cancellable, on_answered, g_rc_box_acquire(note));
    return G_SOURCE_REMOVE;
}

BerthWaitNote *berth_wait_note_new(BerthCli *cli, guint64 job, const guint32 *task,
                                   gboolean tells_reason)
{
    BerthWaitNote *note = g_rc_box_new0(BerthWaitNote);
    note->cli = cli;
    note->job = job;
    note->of_array = task != NULL;
    note->task = task != NULL ? *task : 0;
    note->tells_reason = tells_reason;
    note->wait_msec = FIRST_MSEC;
    note->cancellable = g_cancellable_new();
    ask_later(note);
    return note;
}

BerthWaitNote *berth_wait_note_new_of(BerthCli *cli, guint64 job, const BerthIndexSet *tasks,
                                      gboolean tells_reason)
{
    guint32 task = 0;
    if (tasks == NULL)
        return berth_wait_note_new(cli, job, NULL, tells_reason);
    if (berth_index_set_count(tasks) != 1 || !berth_index_set_next(tasks, 0, &task))
        return NULL;
    return berth_wait_note_new(cli, job, &task, tells_reason);
}

void berth_wait_note_free(BerthWaitNote *note)
{
    if (note->timer != 0)
        g_source_remove(note->timer);
    g_cancellable_cancel(note->cancellable);
    g_rc_box_release_full(note, clear);
}
