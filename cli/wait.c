/* SPDX-License-Identifier: Apache-2.0 */
/* berth wait: returns when jobs have ended, with the status of the first that did not complete. */
#include "cli/follow.h"
#include "cli/format.h"
#include "cli/table.h"

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
    const Berth__Task *task = job->n_tasks > 0 ? job->tasks[0] : NULL;
    if (task == NULL || !task->output_lost)
        return;
    g_autofree char *text = berth_printable(task->reason_text);
    fprintf(stderr, "%s: job %" G_GUINT64_FORMAT ": %s\n", g_get_prgname(), job->id, text);
}

static void report_ended(const Berth__Job *job, const GError *unknown, gpointer user_data)
{
    Waited *waited = user_data;
    int ignored;
    if (job == NULL) {
        waited->is_unknown = TRUE;
        berth_cli_report(unknown, &ignored);
        return;
    }
    if (waited->status == BERTH_EXIT_OK)
        waited->status = berth_job_exit_status(job);
    if (waited->cli->json)
        berth_cli_print_json(&job->base);
    else if (!waited->quiet)
        printf("%" G_GUINT64_FORMAT " %s\n", job->id, berth_job_state_name(job->state));
    fflush(stdout);
    warn_of_lost_output(job);
}

static gboolean wait_for_jobs(Waited *waited, BerthCli *cli, int argc, char **argv, int *out_status,
                              GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each ended job as JSON", NULL},
        {"quiet", 'q', 0, G_OPTION_ARG_NONE, &waited->quiet, "Print nothing", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB...",
                         "Prints each job's number and state when it has ended. Exits with the "
                         "status of the first\njob that ended otherwise than COMPLETED, as `berth "
                         "run` would, and with 125 for failures of\nBerth itself, "
                         "also if one of the jobs does not exist.",
                         NULL, out_status, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_job_arguments(argc, argv, out_status, error);
    return jobs != NULL && berth_wait_jobs(cli, jobs, report_ended, waited, error);
}

/* What the caller sees as 125 is never a job's own, wrong options included. */
gboolean berth_cli_wait(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    Waited waited = {.cli = cli};
    gboolean ok = wait_for_jobs(&waited, cli, argc, argv, out_status, error);
    *out_status = ok && !waited.is_unknown ? waited.status : BERTH_EXIT_BERTH;
    return ok;
}
