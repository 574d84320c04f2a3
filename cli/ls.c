/* SPDX-License-Identifier: Apache-2.0 */
/* berth ls: the table of jobs. Reads page by page, so that a long list does not have to fit. */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/units.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    gboolean all_states;
    gboolean all_users;
    char *user;
    char *states;
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

static char *node_or_reason(const Berth__Job *job, const Berth__Task *task)
{
    if (task == NULL)
        return NULL;
    if (job->state == BERTH__JOB_STATE__RUNNING && task->stop_usec != 0)
        return g_strdup_printf("%s (ending: %s)", task->node, berth_reason_name(task->reason));
    if (job->state == BERTH__JOB_STATE__RUNNING)
        return g_strconcat(task->node, task->booting ? " (booting)" : "", NULL);
    if (task->reason == BERTH__REASON__REASON_NONE)
        return g_strdup(task->node);
    return g_strdup(berth_reason_name(task->reason));
}

/* "42", "42[0-99%5]" */
static char *name_of(const Berth__Job *job)
{
    g_autofree char *tasks = job->array != NULL ? berth_array_format(job, 24) : NULL;
    return tasks != NULL ? g_strdup_printf("%" G_GUINT64_FORMAT "[%s]", job->id, tasks)
                         : g_strdup_printf("%" G_GUINT64_FORMAT, job->id);
}

static void add_row(BerthTable *table, const Berth__Job *job)
{
    const Berth__Task *task = job->n_tasks > 0 && job->array == NULL ? job->tasks[0] : NULL;
    berth_table_add(table, name_of(job));
    berth_table_add(table, g_strdup(job->name));
    berth_table_add(table, g_strdup(job->user));
    berth_table_add(table, g_strdup(berth_job_state_name(job->state)));
    gboolean is_resized =
        task != NULL && task->vcpus != 0; /* it has not what it was submitted with */
    berth_table_add(table, g_strdup_printf("%u", is_resized ? task->vcpus : job->vcpus));
    berth_table_add(table, berth_format_size_mib(is_resized ? task->memory_mib : job->memory_mib));
    berth_table_add(table, run_time(task));
    berth_table_add(table, berth_format_duration_sec(job->time_limit_sec));
    berth_table_add(table,
                    job->array != NULL ? berth_counts_format(job) : node_or_reason(job, task));
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

/* Says of each of JOBS that was not listed why it was not, unless it only is in another state. */
static gboolean report_missing(BerthCli *cli, const GArray *jobs, GHashTable *listed,
                               int *out_status, GError **error)
{
    for (guint i = 0; jobs != NULL && i < jobs->len; i++) {
        guint64 number = g_array_index(jobs, guint64, i);
        g_autoptr(GError) local = NULL;
        if (g_hash_table_contains(listed, &number))
            continue;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        Berth__Job *job = berth_get_job(cli, number, &local);
        if (job != NULL)
            berth__job__free_unpacked(job, NULL);
        else
            berth_cli_report(local, out_status);
    }
    return TRUE;
}

/* Asks page after page; each job is printed (--json) or becomes a row, its number goes to LISTED. */
static gboolean read_pages(BerthCli *cli, Berth__ListJobsRequest *request, BerthTable *table,
                           GHashTable *listed, GError **error)
{
    do {
        Berth__ListJobsReply *reply = (Berth__ListJobsReply *)berth_cli_call(
            cli, &berth__jobs__descriptor, "List", &request->base, error);
        if (reply == NULL)
            return FALSE;
        for (size_t i = 0; i < reply->n_jobs; i++) {
            if (request->n_jobs > 0)
                g_hash_table_add(listed, g_memdup2(&reply->jobs[i]->id, sizeof(guint64)));
            if (cli->json)
                berth_cli_print_json(&reply->jobs[i]->base);
            else
                add_row(table, reply->jobs[i]);
        }
        request->after_job = reply->next_after_job;
        berth__list_jobs_reply__free_unpacked(reply, NULL);
    } while (request->after_job != 0);
    return TRUE;
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
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object per line", NULL},
        {NULL}};
    gboolean parsed = berth_cli_parse(&argc, &argv, entries, "[JOB...]",
                                      "Your pending and running jobs, or the named ones whatever "
                                      "their state.",
                                      NULL, out_status, error);
    g_autofree char *user = options.user;
    g_autofree char *state_names = options.states;
    g_autoptr(GArray) states = g_array_new(FALSE, FALSE, sizeof(Berth__JobState));
    g_autoptr(GArray) jobs = NULL;
    if (!parsed)
        return FALSE;
    if (argc > 1 && (jobs = berth_cli_job_arguments(argc, argv, out_status, error)) == NULL)
        return FALSE;
    if (state_names != NULL && !parse_states(state_names, states, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    request.all_states = options.all_states;
    request.all_users = options.all_users;
    request.user = user ? user : request.user;
    request.states = (Berth__JobState *)(gpointer)states->data;
    request.n_states = states->len;
    request.jobs = jobs ? (uint64_t *)(gpointer)jobs->data : NULL;
    request.n_jobs = jobs ? jobs->len : 0;
    g_autoptr(BerthTable) table = berth_table_new(columns, G_N_ELEMENTS(columns));
    g_autoptr(GHashTable) listed = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    if (!read_pages(cli, &request, table, listed, error))
        return FALSE;
    if (!cli->json)
        berth_table_print(table, stdout, berth_terminal_width(stdout));
    return report_missing(cli, jobs, listed, out_status, error);
}
