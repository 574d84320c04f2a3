/* SPDX-License-Identifier: Apache-2.0 */
/* berth wait: returns when jobs have ended, with the status of the first that did not complete. */
#include "cli/ended.h"
#include "cli/format.h"
#include "cli/table.h"
#include "cli/tasks.h"

#include <stdio.h>

typedef struct {
    const BerthCli *cli;
    gboolean quiet;
    int status;
    gboolean is_unknown; /* one of the jobs */
} Waited;

/* An end of which not all is where its user looks for it is not told in silence. */
static void warn_of_lost_output(const Berth__Job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++) {
        if (!job->tasks[i]->output_lost)
            continue;
        g_autofree char *name = berth_task_format(job, job->tasks[i]);
        g_autofree char *text = berth_printable(job->tasks[i]->reason_text);
        fprintf(stderr, "%s: job %s: %s\n", g_get_prgname(), name, text);
    }
}

static void report_ended(const BerthCliTasks *named, const Berth__Job *job, const GError *unknown,
                         gpointer user_data)
{
    Waited *waited = user_data;
    int ignored;
    if (job == NULL) {
        waited->is_unknown = TRUE;
        berth_cli_report(unknown, &ignored);
        return;
    }
    if (waited->status == BERTH_EXIT_OK)
        waited->status = berth_job_exit_status(job, named->tasks);
    const Berth__Task *task = berth_job_one_task(job, named->tasks);
    g_autofree char *name = berth_tasks_format(named->job, named->tasks);
    if (waited->cli->json)
        berth_cli_print_json(&job->base);
    else if (!waited->quiet)
        printf("%s %s\n", name, berth_job_state_name(berth_job_state_of(job, task)));
    fflush(stdout);
    warn_of_lost_output(job);
}

static gboolean check_each(const GArray *jobs, char **argv, GError **error)
{
    for (guint i = 0; i < jobs->len; i++)
        if (!berth_cli_check_one_task(argv[i + 1], &g_array_index(jobs, BerthCliTasks, i), error))
            return FALSE;
    return TRUE;
}

static gboolean wait_for_jobs(Waited *waited, BerthCli *cli, int argc, char **argv, int *out_status,
                              GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each ended job as JSON", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &waited->quiet, "Print nothing", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB[[INDEX]]...",
            "Prints each job's number and state when it has ended. Exits with the "
            "status of the first\njob that ended otherwise than COMPLETED, as `berth "
            "run` would, and with 125 for failures of\nBerth itself, "
            "also if one of the jobs does not exist.\n\nAn array has ended when all its "
            "tasks have, and its status is 0 if they have all completed,\nelse 1; "
            "JOB[INDEX] is one task.",
            NULL, out_status, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    return jobs != NULL && check_each(jobs, argv, error) &&
           berth_wait_jobs(cli, jobs, report_ended, waited, error);
}

/* What the caller sees as 125 is never a job's own, wrong options included. */
gboolean berth_cli_wait(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    Waited waited = {.cli = cli};
    gboolean ok = wait_for_jobs(&waited, cli, argc, argv, out_status, error);
    *out_status = ok && !waited.is_unknown ? waited.status : BERTH_EXIT_BERTH;
    return ok;
}
