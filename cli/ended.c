/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what waits for the end of jobs and of tasks: the daemon streams ends, and a job is looked at when all its tasks may have
 * come to theirs. The stream stays open meanwhile: what it tells then is counted, too. */
#include "cli/ended.h"

#include "cli/event_stream.h"
#include "cli/job_get.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/types.h"

/* Of an array the state is a summary. */
static gboolean all_completed(const Berth__Job *job)
{
    const Berth__TaskCounts *counts = job->counts;
    return job->state == BERTH__JOB_STATE__COMPLETED &&
           (counts == NULL ||
            (counts->failed == 0 && counts->cancelled == 0 && counts->timeout == 0 &&
             counts->node_fail == 0 && counts->out_of_memory == 0));
}

int berth_job_exit_status(const Berth__Job *job, const BerthIndexSet *tasks)
{
    const Berth__Task *task = berth_job_one_task(job, tasks);
    if (job->array != NULL && task == NULL)
        return all_completed(job) ? BERTH_EXIT_OK : BERTH_EXIT_FAILED;
    const Berth__Exit *exit = task != NULL ? task->exit : NULL;
    if (berth_job_state_of(job, task) == BERTH__JOB_STATE__COMPLETED)
        return BERTH_EXIT_OK;
    if (exit != NULL && exit->signal != 0)
        return 128 + (int)exit->signal;
    if (exit != NULL && exit->status != 0)
        return (int)exit->status;
    return BERTH_EXIT_BERTH;
}

/* A job, or one task. Ends are counted, and it is looked at when none can be left: an array may have a million of them. */
typedef struct {
    BerthCliTasks named; /* whose tasks are the caller's */
    gboolean is_over;
    gboolean is_due;        /* among those that are to be looked at */
    gboolean awaits_output; /* it has ended, and its output is not copied */
    guint32
        left; /* so many of its tasks had not ended, or had not been copied, when it was looked at */
    guint64
        n_ended; /* so many were told since that look began; the answer may have counted them already, */
    guint64 n_copied; /* so that it is looked at too soon, and never too late */
    gboolean is_whole_array;
    guint32
        left_unheld; /* of an array of which tasks that wait are held: so many of the others had not ended; else 0 */
    Berth__Reason still_for; /* that it stands still was told */
} Awaited;

typedef struct {
    GPtrArray *all;   /* Awaited, as they were named */
    GHashTable *left; /* guint64: GPtrArray of those of this job that are not over */
    GPtrArray *
        due; /* likewise, those of which no task is left, or of which nobody knows how they stand */
    BerthEndedFunc each;
    BerthStillFunc still;
    gpointer user_data;
    guint64 last_seq;
} Waiting;

static void count(Awaited *one, const Berth__Event *event)
{
    const BerthIndexRange range = berth_event_range(event);
    guint32 n = one->named.tasks == NULL                     ? berth_index_range_count(&range)
                : berth_event_is_of(event, one->named.tasks) ? 1
                                                             : 0;
    if (event->kind == BERTH__EVENT__KIND__OUTPUT_COPIED)
        one->n_copied += n;
    else if (event->kind == BERTH__EVENT__KIND__TASK_STATE &&
             berth_job_state_is_final((BerthJobState)event->state))
        one->n_ended += n;
}

static void make_due(const Waiting *waiting, Awaited *one)
{
    if (one->is_due)
        return;
    one->is_due = TRUE;
    g_ptr_array_add(waiting->due, one);
}

/* None of its tasks can be left, or none that is not held. */
static void note_due(const Waiting *waiting, Awaited *one)
{
    if ((one->awaits_output ? one->n_copied : one->n_ended) >= one->left ||
        (one->left_unheld > 0 && one->n_ended >= one->left_unheld))
        make_due(waiting, one);
}

static gboolean is_held(Berth__JobState state, Berth__Reason reason)
{
    return state == BERTH__JOB_STATE__PENDING && (reason == BERTH__REASON__REASON_HELD_BY_USER ||
                                                  reason == BERTH__REASON__REASON_HELD_BY_OPERATOR);
}

/* STATE and REASON are its own, or its one task's. */
static void note_still(const Waiting *waiting, Awaited *one, Berth__JobState state,
                       Berth__Reason reason)
{
    gboolean is_still =
        is_held(state, reason) || (state == BERTH__JOB_STATE__SUSPENDED && !one->is_whole_array);
    Berth__Reason now = is_still ? reason : BERTH__REASON__REASON_NONE;
    if (now == one->still_for)
        return;
    one->still_for = now;
    if (waiting->still != NULL && now != BERTH__REASON__REASON_NONE)
        waiting->still(&one->named, now, waiting->user_data);
}

/* Whether what waits again is held no event says. */
static void take_state(const Waiting *waiting, Awaited *one, const Berth__Event *event)
{
    if (event->state == BERTH__JOB_STATE__PENDING && (!one->is_whole_array || one->left_unheld > 0))
        make_due(waiting, one);
    else if (!one->is_whole_array)
        note_still(waiting, one, event->state, event->reason);
}

static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Waiting *waiting = user_data;
    const GPtrArray *left = g_hash_table_lookup(waiting->left, &event->job);
    waiting->last_seq = event->seq;
    for (guint i = 0; left != NULL && i < left->len; i++) {
        Awaited *one = g_ptr_array_index(left, i);
        if (event->kind == BERTH__EVENT__KIND__JOB_HELD ||
            event->kind == BERTH__EVENT__KIND__JOB_RELEASED)
            make_due(waiting, one); /* who is held by whom it does not say */
        else if (event->kind == BERTH__EVENT__KIND__TASK_STATE &&
                 berth_event_is_of(event, one->named.tasks))
            take_state(waiting, one, event);
        count(one, event);
        note_due(waiting, one);
    }
    return TRUE;
}

/* How many of the tasks in JOB have ended, and are not in the files that it names. */
static guint32 count_uncopied(const Berth__Job *job)
{
    guint32 n = 0;
    for (size_t i = 0; i < job->n_tasks; i++)
        n += job->tasks[i]->output_pending ? 1 : 0;
    return n;
}

static guint32 count_unended(const Berth__Job *job, const Berth__Task *task)
{
    const Berth__TaskCounts *counts = job->counts;
    if (berth_job_state_is_final((BerthJobState)berth_job_state_of(job, task)))
        return 0;
    if (job->array == NULL || task != NULL || counts == NULL)
        return 1;
    return counts->pending + counts->running + counts->suspended;
}

/* Of those in the array JOB that wait. */
static guint32 count_held(const Berth__Job *job)
{
    guint32 n_waiting = job->counts != NULL ? job->counts->pending : 0;
    return job->held || job->held_by_operator ? n_waiting : MIN(job->held_count, n_waiting);
}

static void forget(Waiting *waiting, Awaited *one)
{
    GPtrArray *of_job = g_hash_table_lookup(waiting->left, &one->named.job);
    one->is_over = TRUE;
    g_ptr_array_remove(of_job, one);
    if (of_job->len == 0)
        g_hash_table_remove(waiting->left, &one->named.job);
}

/* Whoever waited for it finds its output in the files that it names. FALSE: it is not over. */
static gboolean settle(Awaited *one, const Berth__Job *job)
{
    const Berth__Task *task = berth_job_one_task(job, one->named.tasks);
    guint32 n_held = job->array != NULL && task == NULL ? count_held(job) : 0;
    one->left = count_unended(job, task);
    one->left_unheld = n_held > 0 ? one->left - MIN(one->left, n_held) : 0;
    one->awaits_output = one->left == 0;
    if (one->awaits_output)
        one->left = count_uncopied(job);
    return one->left == 0;
}

/* --- output that was lost ---------------------------------------------------------------------- */

static gboolean note_lost(const Berth__Job *job, gpointer user_data)
{
    BerthEnded *ended = user_data;
    for (size_t i = 0; i < job->n_tasks; i++) {
        const Berth__Task *task = job->tasks[i];
        if (!task->output_lost || ended->n_lost++ >= BERTH_LOST_TOLD_MAX)
            continue;
        g_autofree char *name = berth_task_format(job, task);
        g_autofree char *text = berth_printable(task->reason_text);
        g_ptr_array_add((GPtrArray *)ended->lost, g_strdup_printf("%s: %s", name, text));
    }
    return TRUE;
}

static gboolean names_files(const Berth__JobSpec *spec)
{
    return spec != NULL && (*spec->stdout_path != '\0' || *spec->stderr_path != '\0');
}

/* Of an array as a whole the answer has none of the tasks that are done with. */
static gboolean find_lost(BerthCli *cli, BerthEnded *ended, GError **error)
{
    if (ended->job->array == NULL || ended->named->tasks != NULL) {
        note_lost(ended->job, ended);
        return TRUE;
    }
    return !names_files(ended->job->spec) ||
           berth_get_all_task_pages(cli, ended->job->id, note_lost, ended, error);
}

static gboolean report(BerthCli *cli, Waiting *waiting, Awaited *one, const Berth__Job *job,
                       const GError *unknown, GError **error)
{
    g_autoptr(GPtrArray) lost = g_ptr_array_new_with_free_func(g_free);
    BerthEnded ended = {.named = &one->named, .job = job, .unknown = unknown, .lost = lost};
    if (job != NULL && !find_lost(cli, &ended, error))
        return FALSE;
    forget(waiting, one);
    waiting->each(&ended, waiting->user_data);
    return TRUE;
}

/* --- how it stands ----------------------------------------------------------------------------- */

/* Asks how it stands; reports it if it is over, or is none. */
static gboolean look(BerthCli *cli, Waiting *waiting, Awaited *one, GError **error)
{
    g_autoptr(GError) local = NULL;
    one->is_due = FALSE;
    one->n_ended = one->n_copied = 0;
    Berth__Job *job = berth_get_job_tasks(cli, one->named.job, one->named.tasks, &local);
    if (job == NULL && !g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) &&
        !g_error_matches(local, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    gboolean is_over = job == NULL || settle(one, job);
    const Berth__Task *task = job != NULL ? berth_job_one_task(job, one->named.tasks) : NULL;
    one->is_whole_array = job != NULL && job->array != NULL && one->named.tasks == NULL;
    if (task != NULL)
        note_still(waiting, one, task->state, task->reason);
    else if (job != NULL)
        note_still(waiting, one, job->state, job->reason);
    gboolean ok = !is_over || report(cli, waiting, one, job, local, error);
    if (!is_over)
        note_due(waiting, one);
    if (job != NULL)
        berth__job__free_unpacked(job, NULL);
    return ok;
}

/* WHICH may get more meanwhile. */
static gboolean look_at_each(BerthCli *cli, Waiting *waiting, const GPtrArray *which,
                             GError **error)
{
    for (guint i = 0; i < which->len; i++) {
        Awaited *one = g_ptr_array_index(which, i);
        if (!one->is_over && !look(cli, waiting, one, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean look_at_due(BerthCli *cli, Waiting *waiting, GError **error)
{
    if (!look_at_each(cli, waiting, waiting->due, error))
        return FALSE;
    g_ptr_array_set_size(waiting->due, 0);
    return TRUE;
}

/* The jobs that are not over. (transfer full, guint64) */
static GArray *jobs_left(const Waiting *waiting)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    GHashTableIter iter;
    gpointer job;
    g_hash_table_iter_init(&iter, waiting->left);
    while (g_hash_table_iter_next(&iter, &job, NULL))
        g_array_append_val(jobs, *(const guint64 *)job);
    return jobs;
}

/* Until all is over, or the stream has ended. */
static gboolean watch(BerthCli *cli, Waiting *waiting, GError **error)
{
    g_autoptr(GArray) jobs = jobs_left(waiting);
    BerthEventStream *stream =
        berth_event_stream_open(cli, waiting->last_seq, jobs, take_event, waiting);
    gboolean ok = TRUE;
    while (ok && g_hash_table_size(waiting->left) > 0 &&
           (waiting->due->len > 0 || berth_event_stream_is_open(stream))) {
        if (waiting->due->len > 0)
            ok = look_at_due(cli, waiting, error);
        else
            g_main_context_iteration(NULL, TRUE);
    }
    gboolean is_over = g_hash_table_size(waiting->left) == 0;
    gboolean held = berth_event_stream_close(stream, ok && !is_over ? error : NULL);
    return ok && (held || is_over);
}

/* One connection's worth of waiting. The cursor is taken before the first look, so that no end falls
 * between the two. */
static gboolean wait_attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Waiting *waiting = user_data;
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    waiting->last_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    if (!look_at_each(cli, waiting, waiting->all, error))
        return FALSE;
    g_ptr_array_set_size(waiting->due,
                         0); /* of a connection before this: each was looked at since */
    while (g_hash_table_size(waiting->left) > 0) {
        if (!watch(cli, waiting, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean is_same(const BerthCliTasks *a, const BerthCliTasks *b)
{
    if (a->job != b->job || (a->tasks == NULL) != (b->tasks == NULL))
        return FALSE;
    return a->tasks == NULL || berth_index_set_last(a->tasks) == berth_index_set_last(b->tasks);
}

/* One that was named before is waited for once. */
static void add(Waiting *waiting, const BerthCliTasks *named)
{
    GPtrArray *of_job = g_hash_table_lookup(waiting->left, &named->job);
    if (of_job == NULL) {
        of_job = g_ptr_array_new();
        g_hash_table_insert(waiting->left, g_memdup2(&named->job, sizeof named->job), of_job);
    }
    for (guint i = 0; i < of_job->len; i++)
        if (is_same(&((Awaited *)g_ptr_array_index(of_job, i))->named, named))
            return;
    Awaited *one = g_new0(Awaited, 1);
    one->named = *named;
    g_ptr_array_add(waiting->all, one);
    g_ptr_array_add(of_job, one);
}

gboolean berth_wait_jobs(BerthCli *cli, const GArray *jobs, BerthEndedFunc each,
                         BerthStillFunc still, gpointer user_data, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) due = g_ptr_array_new();
    g_autoptr(GHashTable) left = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                                       (GDestroyNotify)g_ptr_array_unref);
    Waiting waiting = {
        .all = all, .left = left, .due = due, .each = each, .still = still, .user_data = user_data};
    for (guint i = 0; i < jobs->len; i++)
        add(&waiting, &g_array_index(jobs, BerthCliTasks, i));
    return berth_cli_persist(cli, TRUE, wait_attempt, &waiting, error);
}
