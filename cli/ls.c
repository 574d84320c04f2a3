/* SPDX-License-Identifier: Apache-2.0 */
/* berth ls: the table of jobs. Reads page by page, so that a long list does not have to fit. */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/ls_watch.h"
#include "cli/table.h"
#include "cli/task_search.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/ranges.h"
#include "common/task_counts.h"
#include "common/types.h"
#include "common/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of the indices of an array, in its line. */
#define ARRAY_WIDTH 24u

typedef struct {
    gboolean all_states;
    gboolean all_users;
    char *user;
    char *states;
    gboolean with_tasks;
    gboolean watches; /* lists again and again */
} LsOptions;

static const BerthColumn columns[] = {
    {.title = "JOB", .right = TRUE},
    {.title = "NAME", .flexible = TRUE},
    {.title = "USER", .flexible = TRUE, .drop = 2},
    {.title = "STATE"},
    {.title = "VCPUS", .right = TRUE, .drop = 4},
    {.title = "MEMORY", .right = TRUE, .drop = 3},
    {.title = "TIME", .right = TRUE, .drop = 1},
    {.title = "LIMIT", .right = TRUE, .drop = 5},
    {.title = "NODE OR REASON", .flexible = TRUE},
};

/* One that goes on from a checkpoint has run before. */
static char *run_time(const Berth__Task *task)
{
    if (task == NULL || (task->start_usec == 0 && task->used_usec == 0))
        return NULL;
    return berth_format_duration_sec(berth_task_used_usec(task, (guint64)g_get_real_time()) /
                                     G_USEC_PER_SEC);
}

/* Nothing is known of it: the node where its guest is, or else the one to which it is on its way, has no session. NULL: both
 * have. (transfer full) */
static char *away_mark(const Berth__Task *task)
{
    if (task->away_usec == 0)
        return NULL;
    if (*task->away_node == '\0' || g_str_equal(task->away_node, task->node))
        return g_strdup("no session");
    return g_strdup_printf("no session at %s", task->away_node);
}

static char *node_of_running(const Berth__Task *task)
{
    const char *start = berth_task_start_name(task);
    const char *now = start != NULL ? start : task->checkpointing != 0 ? "saving" : NULL;
    g_autofree char *away = away_mark(task);
    g_autoptr(GPtrArray) marks = g_ptr_array_new_with_free_func(g_free);
    if (away != NULL)
        g_ptr_array_add(marks, g_steal_pointer(&away));
    if (task->stop_usec != 0)
        g_ptr_array_add(marks, g_strdup_printf("ending: %s", berth_reason_name(task->reason)));
    else if (now != NULL)
        g_ptr_array_add(marks, g_strdup(now));
    if (marks->len == 0)
        return g_strdup(task->node);
    g_ptr_array_add(marks, NULL);
    g_autofree char *all = g_strjoinv(", ", (char **)marks->pdata);
    return g_strdup_printf("%s (%s)", task->node, all);
}

static char *reason_of_suspended(const Berth__Task *task)
{
    g_autofree char *away = away_mark(task);
    return g_strdup_printf("%s (%s%s%s)", berth_reason_name(task->reason),
                           task->to_disk ? "on disk" : task->node, away != NULL ? ", " : "",
                           away != NULL ? away : "");
}

static char *node_or_reason(Berth__JobState state, const Berth__Task *task)
{
    if (task == NULL)
        return NULL;
    if (state == BERTH__JOB_STATE__RUNNING)
        return node_of_running(task);
    if (state == BERTH__JOB_STATE__SUSPENDED)
        return reason_of_suspended(task);
    if (task->reason == BERTH__REASON__REASON_NONE)
        return g_strdup(task->node);
    return g_strdup(berth_reason_name(task->reason));
}

static guint64 count_ranges(Berth__IndexRange *const *ranges, gsize n_ranges)
{
    guint64 count = 0;
    for (gsize i = 0; i < n_ranges; i++) {
        const BerthIndexRange range = berth_range_of(ranges[i]);
        count += berth_index_range_is_valid(&range) ? berth_index_range_count(&range) : 0;
    }
    return count;
}

/* "96 waiting (resources), 4 of the waiting held": a reason is that of the next task, where none runs. */
static char *array_note(const Berth__Job *job)
{
    const Berth__TaskCounts all = berth_job_count(job, FALSE);
    g_autofree char *counts = berth_counts_format(&all);
    guint64 n_held = count_ranges(job->held_tasks, job->n_held_tasks) +
                     count_ranges(job->held_tasks_by_operator, job->n_held_tasks_by_operator);
    n_held = MAX(n_held, job->held_count); /* which a berthd of before does not tell */
    GString *note = g_string_new(counts);
    if (job->state == BERTH__JOB_STATE__PENDING && job->reason != BERTH__REASON__REASON_NONE)
        g_string_append_printf(note, " (%s)", berth_reason_name(job->reason));
    if (job->held && all.pending > 0 && job->state != BERTH__JOB_STATE__PENDING)
        g_string_append(note, ", all held");
    else if (!job->held && n_held > 0)
        g_string_append_printf(note, ", %" G_GUINT64_FORMAT " of the waiting held", n_held);
    return g_string_free(note, FALSE);
}

/* "42", "42[0-99%5]" */
static char *name_of(const Berth__Job *job)
{
    g_autofree char *tasks = job->array != NULL ? berth_array_format(job, ARRAY_WIDTH) : NULL;
    return tasks != NULL ? g_strdup_printf("%" G_GUINT64_FORMAT "[%s]", job->id, tasks)
                         : g_strdup_printf("%" G_GUINT64_FORMAT, job->id);
}

/* The row of TASK, or of an array as a whole: TASK is NULL then. */
static void add_row(BerthTable *table, const Berth__Job *job, const Berth__Task *task)
{
    Berth__JobState state = berth_job_state_of(job, task);
    gboolean is_array = job->array != NULL && task == NULL;
    berth_table_add(table, is_array || task == NULL ? name_of(job) : berth_task_format(job, task));
    berth_table_add(table, g_strdup(job->name));
    berth_table_add(table, g_strdup(job->user));
    berth_table_add(table, g_strdup(berth_job_state_name(state)));
    gboolean is_resized =
        task != NULL && task->vcpus != 0; /* it has not what it was submitted with */
    berth_table_add(table, g_strdup_printf("%u", is_resized ? task->vcpus : job->vcpus));
    berth_table_add(table, berth_format_size_mib(is_resized ? task->memory_mib : job->memory_mib));
    berth_table_add(table, run_time(task));
    berth_table_add(table, berth_format_duration_sec(job->time_limit_sec));
    berth_table_add(table, is_array ? array_note(job) : node_or_reason(state, task));
}

/* What is listed, and how. */
typedef struct {
    BerthCli *cli;
    BerthTable *table; /* no rows with --json */
    GHashTable *whole; /* guint64: jobs that were named, as a whole, and listed */
    const GArray *states;
    gboolean with_tasks; /* of arrays, those that have started and not ended */
    /* ... and those that have ended, of STATES, which arrays in any state may have: the search for these; else NULL. */
    BerthTaskSearch *search;
    GPtrArray *rests;        /* char *: what lists those that were not looked for */
    const char *state_names; /* STATES, as they were named */
    GHashTable *shown;       /* guint64: the jobs of a list that is watched; else NULL */
} Listing;

static gboolean has_state(const GArray *states, Berth__JobState state)
{
    for (guint i = 0; i < states->len; i++)
        if (g_array_index(states, Berth__JobState, i) == state)
            return TRUE;
    return FALSE;
}

static gboolean is_wanted(const Listing *listing, Berth__JobState state)
{
    return listing->states->len == 0 || has_state(listing->states, state);
}

static gboolean is_open(const Berth__Task *task)
{
    return !berth_job_state_is_final((BerthJobState)task->state);
}

/* Tasks of PAGE that are wanted. (transfer container) */
static GPtrArray *wanted_of(const Listing *listing, const Berth__Job *page, gboolean only_open)
{
    GPtrArray *wanted = g_ptr_array_new();
    for (size_t i = 0; i < page->n_tasks; i++)
        if (is_wanted(listing, page->tasks[i]->state) && (!only_open || is_open(page->tasks[i])))
            g_ptr_array_add(wanted, page->tasks[i]);
    return wanted;
}

static void print_with(const Berth__Job *page, const GPtrArray *tasks)
{
    Berth__Job shown = *page;
    shown.tasks = (Berth__Task **)tasks->pdata;
    shown.n_tasks = tasks->len;
    berth_cli_print_json(&shown.base);
}

static void add_page(const Listing *listing, const Berth__Job *page, gboolean only_open)
{
    g_autoptr(GPtrArray) wanted = wanted_of(listing, page, only_open);
    if (listing->cli->json && wanted->len > 0)
        print_with(page, wanted);
    for (guint i = 0; !listing->cli->json && i < wanted->len; i++)
        add_row(listing->table, page, g_ptr_array_index(wanted, i));
}

/* Those that were named. */
static gboolean add_named(const Berth__Job *page, gpointer user_data)
{
    add_page(user_data, page, FALSE);
    return TRUE;
}

/* Those that have not ended: the output of others may still be copied. */
static gboolean add_open(const Berth__Job *page, gpointer user_data)
{
    add_page(user_data, page, TRUE);
    return TRUE;
}

/* The list has the first of them, and of those that have ended some. */
static gboolean add_further(const Listing *listing, const Berth__Job *job, GError **error)
{
    const BerthCliTasks named = {job->id, NULL};
    guint64 n_listed = 0;
    for (size_t i = 0; i < job->n_tasks; i++)
        n_listed += is_open(job->tasks[i]) ? 1 : 0;
    if (job->n_tasks == 0 || berth_job_n_open(job) <= n_listed)
        return TRUE;
    return berth_get_task_pages(listing->cli, &named, &job->tasks[job->n_tasks - 1]->index,
                                add_open, (gpointer)listing, error);
}

static guint64 count_in(const GArray *states, Berth__TaskCounts counts)
{
    guint64 n = 0;
    for (guint i = 0; i < states->len; i++) {
        const uint32_t *counter =
            berth_task_counter(&counts, g_array_index(states, Berth__JobState, i));
        n += counter != NULL ? *counter : 0;
    }
    return n;
}

/* Tasks of JOB in STATES, without those that have never started, which have no line. */
static guint64 count_with_line(const GArray *states, const Berth__Job *job)
{
    Berth__TaskCounts counts = berth_job_count(job, FALSE);
    guint64 n_open = berth_job_n_open(job);
    guint64 n_begun = (guint64)counts.running + counts.suspended;
    counts.pending = (uint32_t)(n_open - MIN(n_open, n_begun));
    return count_in(states, counts);
}

static guint64 take_page(const Berth__Job *page, gpointer user_data)
{
    const Listing *listing = user_data;
    guint64 n = 0;
    add_page(listing, page, FALSE);
    for (size_t i = 0; i < page->n_tasks; i++) {
        const Berth__Task *task = page->tasks[i];
        const BerthIndexRange range =
            berth_index_range_of(task->index, task->rest_last, task->rest_step);
        n += is_wanted(listing, task->state) ? berth_index_range_count(&range) : 0;
    }
    return n;
}

static void note_rest(const Listing *listing, const Berth__Job *job, const BerthTaskRest *rest)
{
    if (rest->n == 0)
        return;
    g_autofree char *command = berth_task_rest_command(rest, job, listing->state_names);
    g_ptr_array_add(listing->rests,
                    g_strdup_printf("job %" G_GUINT64_FORMAT " has %" G_GUINT64_FORMAT
                                    " more, not looked for as that takes long: %s",
                                    job->id, rest->n, command));
}

/* JOB, an array, with those of its tasks that are wanted, if there are any: the list has none that has ended. */
static gboolean add_with_ended(const Listing *listing, const Berth__Job *job, GError **error)
{
    BerthTaskRest rest;
    if (count_in(listing->states, berth_job_count(job, FALSE)) == 0)
        return TRUE;
    if (!listing->cli->json)
        add_row(listing->table, job, NULL);
    if (!berth_task_search(listing->cli, listing->search, job,
                           count_with_line(listing->states, job), &rest, error))
        return FALSE;
    note_rest(listing, job, &rest);
    return TRUE;
}

static gboolean add_job(const Listing *listing, const Berth__Job *job, GError **error)
{
    gboolean with_tasks = job->array != NULL && listing->with_tasks;
    if (listing->shown != NULL)
        g_hash_table_add(listing->shown, g_memdup2(&job->id, sizeof job->id));
    if (listing->search != NULL && job->array != NULL)
        return add_with_ended(listing, job, error);
    if (listing->search != NULL && !is_wanted(listing, job->state))
        return TRUE;
    g_autoptr(GPtrArray) wanted = with_tasks ? wanted_of(listing, job, TRUE) : NULL;
    if (listing->cli->json && with_tasks)
        print_with(job, wanted);
    else if (listing->cli->json)
        berth_cli_print_json(&job->base);
    else
        add_row(listing->table, job, berth_job_one_task(job, NULL));
    for (guint i = 0; !listing->cli->json && with_tasks && i < wanted->len; i++)
        add_row(listing->table, job, g_ptr_array_index(wanted, i));
    return !with_tasks || add_further(listing, job, error);
}

static gboolean parse_states(const char *text, GArray *states, GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    for (char **name = names; *name != NULL; name++) {
        g_autofree char *upper = g_ascii_strup(*name, -1);
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value_by_name(&berth__job_state__descriptor, upper);
        if (value == NULL || value->value == 0) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "there is no state \"%s\"; there are PENDING, RUNNING, SUSPENDED, "
                        "COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY",
                        *name);
            return FALSE;
        }
        Berth__JobState state = (Berth__JobState)value->value;
        g_array_append_val(states, state);
    }
    return TRUE;
}

/* What keeps one of NAMED from being listed is told once, and the others are listed; it is watched no more. FALSE with ERROR (from
 * LOCAL, transfer full): it keeps all from that, and a list that is watched is asked for again. */
static gboolean leave_out(const Listing *listing, GArray *named, guint index, GError *local,
                          int *out_status, GError **error)
{
    g_autoptr(GError) reason = local;
    gboolean is_its_own = g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) ||
                          g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT);
    if (listing->shown != NULL && !is_its_own) {
        g_propagate_error(error, g_steal_pointer(&reason));
        return FALSE;
    }
    berth_cli_report(reason, out_status);
    g_array_remove_index(named, index);
    return TRUE;
}

/* Asks page after page; each job is printed (--json) or becomes a row. */
static gboolean read_pages(const Listing *listing, Berth__ListJobsRequest *request, GError **error)
{
    gboolean ok = TRUE;
    do {
        Berth__ListJobsReply *reply = (Berth__ListJobsReply *)berth_cli_call(
            listing->cli, &berth__jobs__descriptor, "List", &request->base, error);
        if (reply == NULL)
            return FALSE;
        for (size_t i = 0; ok && i < reply->n_jobs; i++) {
            if (request->n_jobs > 0)
                g_hash_table_add(listing->whole, g_memdup2(&reply->jobs[i]->id, sizeof(guint64)));
            ok = add_job(listing, reply->jobs[i], error);
        }
        request->after_job = reply->next_after_job;
        berth__list_jobs_reply__free_unpacked(reply, NULL);
    } while (ok && request->after_job != 0);
    return ok;
}

/* Those of NAMED that are whole jobs. */
static gboolean read_whole(Listing *listing, Berth__ListJobsRequest *request, const GArray *named,
                           GError **error)
{
    g_autoptr(GArray) jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; i < named->len; i++) {
        const BerthCliTasks *one = &g_array_index(named, BerthCliTasks, i);
        if (one->tasks == NULL)
            g_array_append_val(jobs, one->job);
    }
    request->jobs = (uint64_t *)(gpointer)jobs->data;
    request->n_jobs = jobs->len;
    gboolean ok = jobs->len == 0 || read_pages(listing, request, error);
    request->jobs = NULL;
    request->n_jobs = 0;
    return ok;
}

static gboolean is_listed(const Listing *listing, const BerthCliTasks *one)
{
    return one->tasks == NULL && g_hash_table_contains(listing->whole, &one->job);
}

/* Lists ONE, if it is some tasks; of a whole job that was not listed it is seen whether there is it, as it may only be in another
 * state. */
static gboolean read_one(Listing *listing, const BerthCliTasks *one, GError **error)
{
    if (one->tasks != NULL)
        return berth_get_task_pages(listing->cli, one, NULL, add_named, listing, error);
    Berth__Job *job = berth_get_job(listing->cli, one->job, error);
    if (job == NULL)
        return FALSE;
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

/* The whole jobs, as a list, then tasks. */
static gboolean read_named(Listing *listing, Berth__ListJobsRequest *request, GArray *named,
                           int *out_status, GError **error)
{
    if (!read_whole(listing, request, named, error))
        return FALSE;
    for (guint i = 0; i < named->len;) {
        const BerthCliTasks *one = &g_array_index(named, BerthCliTasks, i);
        GError *local = NULL;
        if (is_listed(listing, one)) {
            i++;
            continue;
        }
        if (!berth_cli_connect(listing->cli, error))
            return FALSE;
        if (read_one(listing, one, &local))
            i++;
        else if (!leave_out(listing, named, i, local, out_status, error))
            return FALSE;
    }
    return TRUE;
}

/* --- all of it ------------------------------------------------------------------------------------ */

typedef struct {
    BerthCli *cli;
    const LsOptions *options;
    const GArray *states;
    GArray *named;     /* BerthCliTasks; NULL = none, but all */
    GHashTable *shown; /* as the listing's */
    GPtrArray *rests;  /* likewise */
    int *out_status;
} Ls;

static gboolean has_ended_state(const GArray *states)
{
    for (guint i = 0; i < states->len; i++)
        if (berth_job_state_is_final((BerthJobState)g_array_index(states, Berth__JobState, i)))
            return TRUE;
    return FALSE;
}

/* An array is COMPLETED only if all of its tasks are. (transfer full) */
static GArray *with_states_of_arrays(const GArray *states)
{
    GArray *all = g_array_copy((GArray *)states);
    for (unsigned i = 0; i < berth__job_state__descriptor.n_values; i++) {
        Berth__JobState state = (Berth__JobState)berth__job_state__descriptor.values[i].value;
        if (state != BERTH__JOB_STATE__JOB_STATE_UNSPECIFIED &&
            state != BERTH__JOB_STATE__COMPLETED && !has_state(all, state))
            g_array_append_val(all, state);
    }
    return all;
}

/* (transfer full) */
static BerthTable *read_list(const Ls *ls, GError **error)
{
    const LsOptions *options = ls->options;
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    request.all_states = options->all_states;
    request.all_users = options->all_users;
    request.user = options->user != NULL ? options->user : request.user;
    gboolean wants_ended = options->with_tasks && has_ended_state(ls->states);
    g_autoptr(GArray) asked =
        wants_ended ? with_states_of_arrays(ls->states) : g_array_copy((GArray *)ls->states);
    request.states = (Berth__JobState *)(gpointer)asked->data;
    request.n_states = asked->len;
    g_autoptr(BerthTable) table = berth_table_new(columns, G_N_ELEMENTS(columns));
    g_autoptr(GHashTable) whole = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    Listing listing = {.cli = ls->cli,
                       .table = table,
                       .whole = whole,
                       .states = ls->states,
                       .with_tasks = options->with_tasks,
                       .rests = ls->rests,
                       .state_names = options->states,
                       .shown = ls->shown};
    BerthTaskSearch search = {.take = take_page, .user_data = &listing};
    listing.search = wants_ended ? &search : NULL;
    gboolean ok = ls->named != NULL
                      ? read_named(&listing, &request, ls->named, ls->out_status, error)
                      : read_pages(&listing, &request, error);
    return ok ? g_steal_pointer(&table) : NULL;
}

static gboolean list(const Ls *ls, GError **error)
{
    g_autoptr(BerthTable) table = read_list(ls, error);
    if (table != NULL && !ls->cli->json)
        berth_table_print(table, stdout, berth_terminal_width(stdout));
    fflush(stdout);
    for (guint i = 0; table != NULL && i < ls->rests->len; i++)
        fprintf(stderr, "%s: %s\n", g_get_prgname(), (char *)g_ptr_array_index(ls->rests, i));
    return table != NULL;
}

/* --- again and again ------------------------------------------------------------------------------ */

static GPtrArray *list_lines(guint width, gboolean *out_is_last, gpointer user_data, GError **error)
{
    const Ls *ls = user_data;
    g_hash_table_remove_all(ls->shown);
    g_autoptr(BerthTable) table = read_list(ls, error);
    *out_is_last = ls->named != NULL && ls->named->len == 0;
    return table != NULL ? berth_table_lines(table, width) : NULL;
}

/* Is it of a job that the list has, or that may come to it, or may it mark one? Who the user is that was named, the daemon knows. */
static gboolean concerns(const Berth__Event *event, gpointer user_data)
{
    const Ls *ls = user_data;
    if (event->job == 0)
        return event->kind == BERTH__EVENT__KIND__NODE_UP ||
               event->kind == BERTH__EVENT__KIND__NODE_DOWN;
    for (guint i = 0; ls->named != NULL && i < ls->named->len; i++)
        if (g_array_index(ls->named, BerthCliTasks, i).job == event->job)
            return TRUE;
    if (ls->named != NULL)
        return FALSE;
    return ls->options->all_users || ls->options->user != NULL || event->owner_uid == geteuid() ||
           g_hash_table_contains(ls->shown, &event->job);
}

static gboolean watch(Ls *ls, GError **error)
{
    g_autoptr(GArray) jobs = ls->named != NULL ? g_array_new(FALSE, FALSE, sizeof(guint64)) : NULL;
    for (guint i = 0; jobs != NULL && i < ls->named->len; i++)
        g_array_append_val(jobs, g_array_index(ls->named, BerthCliTasks, i).job);
    g_autoptr(GHashTable) shown = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    const BerthWatchedList watched = {list_lines, concerns, jobs, ls};
    ls->shown = shown;
    return berth_ls_watch(ls->cli, &watched, error);
}

gboolean berth_cli_ls(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    LsOptions options = {0};
    const GOptionEntry entries[] = {
        {"all", 'a', 0, G_OPTION_ARG_NONE, &options.all_states, "Ended jobs too", NULL},
        {"all-users", 'A', 0, G_OPTION_ARG_NONE, &options.all_users, "Jobs of all users", NULL},
        {"user", 'u', 0, G_OPTION_ARG_STRING, &options.user, "Jobs of this user", "NAME"},
        {"state", 's', 0, G_OPTION_ARG_STRING, &options.states, "Only these states",
         "STATE[,STATE]"},
        {"tasks", 't', 0, G_OPTION_ARG_NONE, &options.with_tasks,
         "Of arrays, those tasks too that have started and not ended, or are in a state of --state",
         NULL},
        {"watch", 0, 0, G_OPTION_ARG_NONE, &options.watches, "List again whenever it has changed",
         NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object per line", NULL},
        {NULL}};
    gboolean parsed = berth_cli_parse(&argc, &argv, entries, "[JOB[[INDICES]]...]",
                                      "Your pending and running jobs, or the named ones whatever "
                                      "their state. An array is one line;\nits tasks that are "
                                      "named, as 42[0-9,20], have one each. With --watch until q "
                                      "is pressed\non a terminal, or a signal comes.",
                                      NULL, out_status, error);
    G_GNUC_UNUSED g_autofree char *user = options.user;
    g_autofree char *state_names = options.states;
    g_autoptr(GArray) states = g_array_new(FALSE, FALSE, sizeof(Berth__JobState));
    g_autoptr(GArray) named = NULL;
    if (!parsed)
        return FALSE;
    if (options.watches && cli->json)
        return berth_cli_usage_error(out_status, error,
                                     "--watch is for people, and has no --json: `berth events "
                                     "--follow --json` has what happens as it happens");
    if (argc > 1 && (named = berth_cli_task_arguments(argc, argv, out_status, error)) == NULL)
        return FALSE;
    if (state_names != NULL && !parse_states(state_names, states, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    if (options.watches && options.with_tasks && has_ended_state(states))
        return berth_cli_usage_error(out_status, error,
                                     "--watch has no tasks that have ended, as all would be read "
                                     "again at each change: leave out --tasks, or those states; "
                                     "`berth events --follow` has each when it ends");
    g_autoptr(GPtrArray) rests = g_ptr_array_new_with_free_func(g_free);
    Ls ls = {cli, &options, states, named, NULL, rests, out_status};
    return options.watches ? watch(&ls, error) : list(&ls, error);
}
