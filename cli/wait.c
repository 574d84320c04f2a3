/* SPDX-License-Identifier: Apache-2.0 */
/* berth wait: returns when jobs have ended, with the status of the first that did not complete. */
#include "cli/ended.h"
#include "cli/format.h"
#include "cli/tasks.h"

#include <stdio.h>

typedef struct {
    const BerthCli *cli;
    gboolean quiet;
    int status;
    gboolean is_unknown; /* one of the jobs */
} Waited;

/* An end of which not all is where its user looks for it is not told in silence. */
static void warn_of_lost_output(const BerthEnded *ended)
{
    for (guint i = 0; i < ended->lost->len; i++)
        fprintf(stderr, "%s: job %s\n", g_get_prgname(),
                (const char *)g_ptr_array_index(ended->lost, i));
    if (ended->n_lost > ended->lost->len)
        fprintf(stderr,
                "%s: job %" G_GUINT64_FORMAT ": the output of %u more of its tasks was not copied "
                "(berth logs has it)\n",
                g_get_prgname(), ended->job->id, ended->n_lost - ended->lost->len);
}

static void report_ended(const BerthEnded *ended, gpointer user_data)
{
    Waited *waited = user_data;
    const BerthCliTasks *named = ended->named;
    const Berth__Job *job = ended->job;
    int ignored;
    if (job == NULL) {
        waited->is_unknown = TRUE;
        berth_cli_report(ended->unknown, &ignored);
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
    warn_of_lost_output(ended);
}

/* It may do so for ever. */
static void tell_still(const BerthCliTasks *named, Berth__Reason reason, gpointer user_data)
{
    g_autofree char *name = berth_tasks_format(named->job, named->tasks);
    gboolean is_held = reason == BERTH__REASON__REASON_HELD_BY_USER ||
                       reason == BERTH__REASON__REASON_HELD_BY_OPERATOR;
    fprintf(stderr, "%s: job %s %s (%s); berth show %s says what lets it go on\n", g_get_prgname(),
            name, is_held ? "is held" : "stands still", berth_reason_name(reason), name);
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
           berth_wait_jobs(cli, jobs, report_ended, tell_still, waited, error);
}

/* What the caller sees as 125 is never a job's own, wrong options included. */
gboolean berth_cli_wait(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    Waited waited = {.cli = cli};
    gboolean ok = wait_for_jobs(&waited, cli, argc, argv, out_status, error);
    *out_status = ok && !waited.is_unknown ? waited.status : BERTH_EXIT_BERTH;
    return ok;
}
