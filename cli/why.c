/* SPDX-License-Identifier: Apache-2.0 */
/* berth why: why a job is as it is, in sentences: what the scheduler knows of it now, then what happened to it, from
 * the event log. An array, which may have a million tasks, is told of as a whole: what its next task waits for, how many stand
 * how, and the first that run. */
#include "cli/cli.h"

#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/requests.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "cli/why_events.h"
#include "cli/why_words.h"
#include "common/error.h"

#include <stdio.h>

/* Of tasks that run, so many have a line. */
#define RUNNING_MAX 8u

typedef struct {
    guint64 job;
    guint64 after_seq, until_seq;
    Berth__JobState state;
    const BerthIndexSet *tasks; /* the one of an array; NULL = it is none */
} History;

/* --- what happened ------------------------------------------------------------------------------ */

static gboolean print_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)(const void *)item;
    History *history = user_data;
    history->after_seq = event->seq;
    if (!berth_event_is_of(event, history->tasks))
        return !ferror(stdout) && event->seq < history->until_seq;
    g_autofree char *text = berth_why_event(event, &history->state);
    g_autofree char *time = berth_format_time(event->time_usec);
    if (text != NULL) {
        g_autofree char *printable = berth_printable(text);
        printf("  %s  %s\n", time != NULL ? time : "-", printable);
    }
    return !ferror(stdout) && event->seq < history->until_seq;
}

/* All of it by now. */
static gboolean print_history(BerthCli *cli, gpointer user_data, GError **error)
{
    History *history = user_data;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    if (history->after_seq >= history->until_seq)
        return TRUE;
    request.after_seq = history->after_seq;
    request.until_seq = history->until_seq;
    request.job = history->job;
    return berth_rpc_peer_stream(cli->peer, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                 print_event, history, error);
}

static gboolean tell_history(BerthCli *cli, const Berth__Job *job, const BerthIndexSet *tasks,
                             GError **error)
{
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    History history = {.job = job->id, .until_seq = info->last_seq, .tasks = tasks};
    berth__server_info__free_unpacked(info, NULL);
    puts("What happened:");
    return berth_cli_persist(cli, FALSE, print_history, &history, error);
}

/* --- now ---------------------------------------------------------------------------------------- */

/* *OUT_WHY NULL: there is nothing to be told, as the task has ended meanwhile or the daemon is of a release that knows
 * of none. FALSE: it could not be asked. */
static gboolean explain(BerthCli *cli, const Berth__Task *task, Berth__Explanation **out_why,
                        GError **error)
{
    g_autoptr(GError) local = NULL;
    Berth__ExplainRequest request = BERTH__EXPLAIN_REQUEST__INIT;
    request.job = task->job;
    request.task = task->index;
    *out_why = NULL;
    if (task->state > BERTH__JOB_STATE__SUSPENDED)
        return TRUE;
    *out_why = (Berth__Explanation *)berth_cli_call(cli, &berth__jobs__descriptor, "Explain",
                                                    &request.base, &local);
    if (*out_why != NULL || g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) ||
        g_error_matches(local, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

typedef struct {
    Berth__Job *job;
    Berth__Job *next; /* has TASK, if JOB has not */
    gboolean is_one;  /* a plain job, or a task that was named alone; else: several */
    /* That is told of in sentences: of several the next that waits, NULL = none does. */
    const Berth__Task *task;
    Berth__Explanation *why; /* of it; NULL: there is nothing to be told */
} Known;

static void known_clear(Known *known)
{
    if (known->why != NULL)
        berth__explanation__free_unpacked(known->why, NULL);
    if (known->next != NULL)
        berth__job__free_unpacked(known->next, NULL);
    if (known->job != NULL)
        berth__job__free_unpacked(known->job, NULL);
    *known = (Known){0};
}

static const Berth__Task *first_waiting(const Berth__Job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++)
        if (job->tasks[i]->state == BERTH__JOB_STATE__PENDING)
            return job->tasks[i];
    return NULL;
}

/* Of an array as a whole those that have never started are asked for by their indices. */
static gboolean find_task(BerthCli *cli, const BerthCliTasks *named, Known *known, GError **error)
{
    const Berth__Job *job = known->job = berth_get_job_tasks(cli, named->job, named->tasks, error);
    if (job == NULL)
        return FALSE;
    known->task = berth_job_one_task(job, named->tasks);
    known->is_one = job->array == NULL || known->task != NULL;
    if (known->is_one)
        return TRUE;
    if (named->tasks != NULL || job->n_unstarted == 0) {
        known->task = first_waiting(job);
        return TRUE;
    }
    g_autoptr(BerthIndexSet) next = berth_index_set_new();
    berth_index_set_add_one(next, job->unstarted[0]->first);
    known->next = berth_get_job_tasks(cli, named->job, next, error);
    if (known->next == NULL)
        return FALSE;
    known->task = berth_job_one_task(known->next, next);
    return TRUE;
}

static gboolean ask(BerthCli *cli, const BerthCliTasks *named, Known *known, GError **error)
{
    return find_task(cli, named, known, error) &&
           (known->task == NULL || explain(cli, known->task, &known->why, error));
}

/* FALSE: the task has gone on between two questions. */
static gboolean is_of_one_moment(const Known *known)
{
    const Berth__Task *task = known->task;
    if (task == NULL)
        return TRUE;
    return (known->why == NULL || known->why->state == task->state) &&
           (known->is_one || task->state == BERTH__JOB_STATE__PENDING);
}

/* Why it waits is no answer for one that has started meanwhile: it is asked for again once, and then left out. */
static gboolean ask_of_one_moment(BerthCli *cli, const BerthCliTasks *named, Known *known,
                                  GError **error)
{
    if (!ask(cli, named, known, error))
        return FALSE;
    if (is_of_one_moment(known))
        return TRUE;
    known_clear(known);
    if (!ask(cli, named, known, error))
        return FALSE;
    if (is_of_one_moment(known))
        return TRUE;
    if (known->why != NULL)
        berth__explanation__free_unpacked(known->why, NULL);
    known->why = NULL;
    if (!known->is_one)
        known->task = NULL;
    return TRUE;
}

static void print_sentences(const Known *known)
{
    g_autoptr(GPtrArray) lines = berth_why_now(known->job, known->task, known->why);
    for (guint i = 0; i < lines->len; i++) {
        g_autofree char *printable = berth_printable(g_ptr_array_index(lines, i));
        printf("  %s\n", printable);
    }
}

static void print_title(const Known *known, const BerthIndexSet *tasks)
{
    const Berth__Job *job = known->job;
    const Berth__Task *task = known->is_one ? known->task : NULL;
    g_autofree char *number = berth_tasks_format(job->id, tasks);
    g_autofree char *name = berth_printable(job->name);
    printf("Job %s%s%s%s of %s: %s\n", number, *name != '\0' ? " (" : "", name,
           *name != '\0' ? ")" : "", job->user,
           berth_job_state_name(berth_job_state_of(job, task)));
}

/* --- several tasks ------------------------------------------------------------------------------ */

static void print_waiting(const Known *known, guint32 n_waiting)
{
    g_autofree char *name = known->task != NULL ? berth_task_format(known->job, known->task) : NULL;
    if (name == NULL)
        return;
    if (n_waiting > 1)
        printf("%u tasks wait; of %s, the next one:\n", n_waiting, name);
    else
        printf("%s waits:\n", name);
    print_sentences(known);
}

/* The first of them, and how many more there are. */
static void print_running(const Berth__Job *job, guint32 n_running)
{
    guint32 n = 0;
    for (size_t i = 0; n < MIN(n_running, RUNNING_MAX) && i < job->n_tasks; i++) {
        const Berth__Task *task = job->tasks[i];
        if (task->state != BERTH__JOB_STATE__RUNNING && task->state != BERTH__JOB_STATE__SUSPENDED)
            continue;
        g_autofree char *name = berth_task_format(job, task);
        g_autofree char *stands = berth_task_format_state(task);
        g_autofree char *line = berth_printable(stands);
        printf("  %s  %s\n", name, line);
        n++;
    }
    if (n_running > n)
        printf("  and %u more: berth ls --tasks %" G_GUINT64_FORMAT "\n", n_running - n, job->id);
}

static void print_several(const Known *known, const BerthIndexSet *tasks)
{
    const Berth__Job *job = known->job;
    Berth__TaskCounts counts = berth_job_count(job, tasks != NULL);
    g_autofree char *text = berth_counts_format(&counts);
    print_waiting(known, counts.pending);
    printf("Of %s tasks: %s\n", tasks != NULL ? "these" : "its", text);
    print_running(job, counts.running + counts.suspended);
    berth_requests_print(job);
    printf("berth why %" G_GUINT64_FORMAT "[INDEX] tells of one task in full.\n", job->id);
}

/* --- all of it ---------------------------------------------------------------------------------- */

static gboolean tell_job(BerthCli *cli, const BerthCliTasks *named, GError **error)
{
    Known known = {0};
    gboolean ok = ask_of_one_moment(cli, named, &known, error);
    if (ok && cli->json) {
        if (known.why != NULL)
            berth_cli_print_json(&known.why->base);
    } else if (ok) {
        print_title(&known, named->tasks);
        if (!known.is_one)
            print_several(&known, named->tasks);
        else if (known.task != NULL)
            print_sentences(&known);
        ok = !known.is_one || tell_history(cli, known.job, named->tasks, error);
    }
    known_clear(&known);
    return ok;
}

/* --- the verb ----------------------------------------------------------------------------------- */

gboolean berth_cli_why(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
         "What the scheduler knows of each now, of an array of the next task that waits, as JSON",
         NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDICES]]...",
                         "Says why jobs wait, and for what; why they run where they do; and why "
                         "they were moved,\nfrozen, checkpointed, given more or ended. Of an array "
                         "that is what its next task waits for,\nand how the others stand; "
                         "JOB[INDEX] is one task, in full.",
                         NULL, out_status, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (i > 0 && !cli->json)
            putchar('\n');
        if (!tell_job(cli, &g_array_index(jobs, BerthCliTasks, i), &local))
            berth_cli_report(local, out_status);
    }
    return TRUE;
}
