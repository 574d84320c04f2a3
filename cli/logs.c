/* SPDX-License-Identifier: Apache-2.0 */
/* berth logs: prints what a job has written, from its start; of several tasks of an array one after the other, each as if it had been
 * asked for alone, so that of any number of them no more is kept, or open, than of one. */
#include "cli/follow.h"

#include "cli/job_get.h"
#include "common/id.h"

#include <string.h>
#include <unistd.h>

typedef struct {
    BerthFollow request;  /* of one task after the other */
    gboolean no_headings; /* where several are named */
    const BerthCliTasks *named;
    BerthIndexSet *found; /* of these, in its array */
    int *out_status;
} Logs;

/* --- several tasks ------------------------------------------------------------------------------ */

static gboolean find_tasks(BerthCli *cli, gpointer user_data, GError **error)
{
    Logs *logs = user_data;
    g_autoptr(GError) absent = NULL;
    Berth__Job *job = berth_get_job(cli, logs->named->job, error);
    if (job == NULL)
        return FALSE;
    logs->found = berth_job_find_tasks(job, logs->named->tasks, &absent, error);
    berth__job__free_unpacked(job, NULL);
    if (absent != NULL)
        berth_cli_report(absent, logs->out_status);
    return logs->found != NULL;
}

/* Where output ends without a newline, the empty line ends that. */
static gboolean print_heading(const Logs *logs, gboolean is_first, GError **error)
{
    gboolean no_reader;
    if (logs->no_headings)
        return TRUE;
    g_autofree char *name = berth_task_id_format(logs->request.job, logs->request.task);
    g_autofree char *line = g_strdup_printf("%s==> %s <==\n", is_first ? "" : "\n", name);
    return berth_follow_write(STDOUT_FILENO, line, strlen(line), &no_reader, error);
}

static gboolean print_each(BerthCli *cli, Logs *logs, GError **error)
{
    gboolean is_first = TRUE, no_reader;
    logs->request.of_array = TRUE;
    for (guint32 from = 0; berth_index_set_next(logs->found, from, &logs->request.task);
         from = logs->request.task + 1) {
        if (!print_heading(logs, is_first, error) ||
            !berth_follow_logs(cli, &logs->request, &no_reader, error))
            return FALSE;
        is_first = FALSE;
    }
    return TRUE;
}

static gboolean print_several(BerthCli *cli, Logs *logs, GError **error)
{
    gboolean ok = berth_cli_persist(cli, logs->request.follow, find_tasks, logs, error) &&
                  print_each(cli, logs, error);
    g_clear_pointer(&logs->found, berth_index_set_free);
    return ok;
}

/* --- the verb ----------------------------------------------------------------------------------- */

static gboolean print_logs(BerthCli *cli, Logs *logs, GError **error)
{
    const BerthIndexSet *tasks = logs->named->tasks;
    gboolean no_reader;
    logs->request.job = logs->named->job;
    if (tasks != NULL && berth_index_set_count(tasks) > 1)
        return print_several(cli, logs, error);
    logs->request.of_array = tasks != NULL;
    logs->request.task = tasks != NULL ? berth_index_set_last(tasks) : 0;
    return berth_follow_logs(cli, &logs->request, &no_reader, error);
}

gboolean berth_cli_logs(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    Logs logs = {.request = {.stdout_fd = STDOUT_FILENO, .stderr_fd = STDERR_FILENO},
                 .out_status = out_status};
    gboolean only_stdout = FALSE, only_stderr = FALSE;
    const GOptionEntry entries[] = {
        {"follow", 'f', 0, G_OPTION_ARG_NONE, &logs.request.follow, "Go on until the job has ended",
         NULL},
        {"stdout", 'o', 0, G_OPTION_ARG_NONE, &only_stdout, "Standard output only", NULL},
        {"stderr", 'e', 0, G_OPTION_ARG_NONE, &only_stderr, "Standard error only", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &logs.no_headings,
         "Of several tasks no lines that name them", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDICES]]",
                         "The job's stdout comes on stdout and its stderr on stderr; one of them "
                         "alone comes on stdout.\nJOB[0-9,20] names tasks of an array: one comes "
                         "after the other, each after a line that\nnames it; with --follow each "
                         "when the one before it has ended.",
                         NULL, out_status, error))
        return FALSE;
    if (argc != 2)
        return berth_cli_usage_error(out_status, error, "name one job (see %s --help)", argv[0]);
    if (only_stdout && only_stderr)
        return berth_cli_usage_error(
            out_status, error, "--stdout and --stderr exclude each other; both is the default");
    if (only_stdout)
        logs.request.stderr_fd = -1;
    if (only_stderr) {
        logs.request.stdout_fd = -1;
        logs.request.stderr_fd = STDOUT_FILENO;
    }
    g_autoptr(GArray) named = berth_cli_task_arguments(argc, argv, out_status, error);
    if (named == NULL)
        return FALSE;
    logs.named = &g_array_index(named, BerthCliTasks, 0);
    return print_logs(cli, &logs, error);
}
