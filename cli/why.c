/* SPDX-License-Identifier: Apache-2.0 */
/* berth why: why a job is as it is, in sentences: what the scheduler knows of it now, then what happened to it, from
 * the event log. */
#include "cli/cli.h"

#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "cli/why_words.h"
#include "common/error.h"

#include <stdio.h>

typedef struct {
    guint64 job;
    guint64 after_seq, until_seq;
    GHashTable *states;         /* of tasks: Berth__JobState */
    const BerthIndexSet *tasks; /* only these; NULL = all */
    gboolean is_of_one;         /* and that is one */
} History;

/* --- what happened ------------------------------------------------------------------------------ */

static Berth__JobState *state_of(const History *history, guint32 task)
{
    Berth__JobState *state = g_hash_table_lookup(history->states, GUINT_TO_POINTER(task));
    if (state == NULL) {
        state = g_new0(Berth__JobState, 1);
        g_hash_table_insert(history->states, GUINT_TO_POINTER(task), state);
    }
    return state;
}

/* "job 42[7-99]: " of some tasks of an array, where it is not of one alone that is told. */
static char *subject_of(const History *history, const Berth__Event *event)
{
    const BerthIndexRange range = berth_event_range(event);
    if (!event->of_array || history->is_of_one)
        return g_strdup("");
    g_autofree char *tasks = berth_index_range_format(&range);
    return g_strdup_printf("job %" G_GUINT64_FORMAT "[%s]: ", event->job, tasks);
}

static gboolean print_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)(const void *)item;
    History *history = user_data;
    history->after_seq = event->seq;
    if (!berth_event_is_of(event, history->tasks))
        return !ferror(stdout) && event->seq < history->until_seq;
    g_autofree char *text = berth_why_event(event, state_of(history, event->task));
    g_autofree char *time = berth_format_time(event->time_usec);
    if (text != NULL) {
        g_autofree char *printable = berth_printable(text);
        g_autofree char *subject = subject_of(history, event);
        printf("  %s  %s%s\n", time != NULL ? time : "-", subject, printable);
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
    History history = {.job = job->id,
                       .until_seq = info->last_seq,
                       .tasks = tasks,
                       .is_of_one = tasks != NULL && berth_index_set_count(tasks) == 1,
                       .states = g_hash_table_new_full(NULL, NULL, NULL, g_free)};
    berth__server_info__free_unpacked(info, NULL);
    puts("What happened:");
    gboolean ok = berth_cli_persist(cli, FALSE, print_history, &history, error);
    g_hash_table_unref(history.states);
    return ok;
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

/* What is known of a job. */
typedef struct {
    Berth__Job *job;
    Berth__Explanation **whys; /* by task; NULL: there is nothing to be told */
} Known;

static void free_why(Berth__Explanation *why)
{
    berth__explanation__free_unpacked(why, NULL);
}

static void known_clear(Known *known)
{
    for (size_t i = 0; known->job != NULL && i < known->job->n_tasks; i++)
        g_clear_pointer(&known->whys[i], free_why);
    g_clear_pointer(&known->whys, g_free);
    if (known->job != NULL)
        berth__job__free_unpacked(known->job, NULL);
    known->job = NULL;
}

static gboolean agrees(const Known *known, size_t i)
{
    return known->whys[i] == NULL || known->whys[i]->state == known->job->tasks[i]->state;
}

/* Of an array, if nobody says of which: the next one that waits, and if none does those that run. */
static Berth__Job *get_job(BerthCli *cli, const BerthCliTasks *named, GError **error)
{
    Berth__Job *job = berth_get_job_tasks(cli, named->job, named->tasks, error);
    if (job == NULL || named->tasks != NULL || job->n_unstarted == 0)
        return job;
    g_autoptr(BerthIndexSet) next = berth_index_set_new();
    berth_index_set_add_one(next, job->unstarted[0]->first);
    berth__job__free_unpacked(job, NULL);
    return berth_get_job_tasks(cli, named->job, next, error);
}

/* *OUT_AGREES FALSE: a task has gone on between the two questions. */
static gboolean ask(BerthCli *cli, const BerthCliTasks *named, Known *known, gboolean *out_agrees,
                    GError **error)
{
    *out_agrees = TRUE;
    known->job = get_job(cli, named, error);
    if (known->job == NULL)
        return FALSE;
    known->whys = g_new0(Berth__Explanation *, known->job->n_tasks + 1);
    for (size_t i = 0; i < known->job->n_tasks; i++) {
        if (!explain(cli, known->job->tasks[i], &known->whys[i], error))
            return FALSE;
        *out_agrees = *out_agrees && agrees(known, i);
    }
    return TRUE;
}

/* Why it waits is no answer for one that has started meanwhile: it is asked for again once, and then left out. */
static gboolean ask_of_one_moment(BerthCli *cli, const BerthCliTasks *named, Known *known,
                                  GError **error)
{
    gboolean is_one = FALSE;
    if (!ask(cli, named, known, &is_one, error))
        return FALSE;
    if (is_one)
        return TRUE;
    known_clear(known);
    if (!ask(cli, named, known, &is_one, error))
        return FALSE;
    for (size_t i = 0; i < known->job->n_tasks; i++)
        if (!agrees(known, i))
            g_clear_pointer(&known->whys[i], free_why);
    return TRUE;
}

static void print_task(const Known *known, size_t i, gboolean is_alone)
{
    const Berth__Task *task = known->job->tasks[i];
    g_autoptr(GPtrArray) lines = berth_why_now(known->job, task, known->whys[i]);
    g_autofree char *name = berth_task_format(known->job, task);
    if (!is_alone)
        printf("Job %s: %s\n", name, berth_job_state_name(task->state));
    for (guint line = 0; line < lines->len; line++) {
        g_autofree char *printable = berth_printable(g_ptr_array_index(lines, line));
        printf("  %s\n", printable);
    }
}

/* A task that was named alone is told as a plain job is. */
static void print_now(const Known *known, const BerthIndexSet *tasks)
{
    const Berth__Job *job = known->job;
    const Berth__Task *task = berth_job_one_task(job, tasks);
    gboolean is_one = job->array == NULL || task != NULL;
    g_autofree char *number = berth_tasks_format(job->id, is_one ? tasks : NULL);
    g_autofree char *name = berth_printable(job->name);
    printf("Job %s%s%s%s of %s: %s\n", number, *name != '\0' ? " (" : "", name,
           *name != '\0' ? ")" : "", job->user,
           berth_job_state_name(berth_job_state_of(job, task)));
    g_autofree char *counts = is_one ? NULL : berth_counts_format(job);
    if (counts != NULL)
        printf("  Of its tasks: %s\n", counts);
    for (size_t i = 0; i < job->n_tasks; i++)
        print_task(known, i, is_one);
}

static void print_now_as_json(const Known *known)
{
    for (size_t i = 0; i < known->job->n_tasks; i++)
        if (known->whys[i] != NULL)
            berth_cli_print_json(&known->whys[i]->base);
}

static gboolean tell_job(BerthCli *cli, const BerthCliTasks *named, GError **error)
{
    Known known = {0};
    gboolean ok = ask_of_one_moment(cli, named, &known, error);
    if (ok && cli->json)
        print_now_as_json(&known);
    else if (ok)
        print_now(&known, named->tasks);
    ok = ok && (cli->json || tell_history(cli, known.job, named->tasks, error));
    known_clear(&known);
    return ok;
}

/* --- the verb ----------------------------------------------------------------------------------- */

gboolean berth_cli_why(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
         "What the scheduler knows of unfinished tasks now, one JSON object per line", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDICES]]...",
                         "Says why jobs wait, and for what; why they run where they do; and why "
                         "they were moved,\nfrozen, checkpointed, given more or ended.",
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
