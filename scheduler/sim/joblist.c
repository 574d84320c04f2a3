/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the columns of --jobs. Where the lines go is output.c's. */
#include "config.h"

#include "scheduler/sim/joblist.h"

#include "common/error.h"
#include "scheduler/sim/output.h"

#include <errno.h>
#include <stdio.h>

struct SimJobList {
    char *path;
    SimOutput *output;
    FILE *file; /* NULL = not begun, or ended */
};

SimJobList *sim_joblist_new(const char *path, GError **error)
{
    SimOutput *output = sim_output_open("--jobs", path, error);
    if (output == NULL)
        return NULL;
    SimJobList *list = g_new0(SimJobList, 1);
    list->path = g_strdup(path);
    list->output = output;
    return list;
}

void sim_joblist_free(SimJobList *list)
{
    if (list == NULL)
        return;
    if (list->file != NULL)
        (void)fclose(list->file);
    sim_output_close(list->output);
    g_free(list->path);
    g_free(list);
}

gboolean sim_joblist_begin(SimJobList *list, GError **error)
{
    list->file = sim_output_stream(list->output, error);
    if (list->file == NULL)
        return FALSE;
    fputs("policy,job,submit_s,start_s,end_s,wait_s,guests,vcpus,memory_mib,moves,checkpoints,"
          "outcome\n",
          list->file);
    return TRUE;
}

static const char *outcome_name(const SimOutcome *outcome)
{
    if (outcome->is_refused)
        return "refused";
    if (outcome->is_completed)
        return "completed";
    return outcome->is_killed ? "killed" : "lost";
}

static double seconds(gint64 usec)
{
    return (double)usec / (double)G_USEC_PER_SEC;
}

void sim_joblist_add(SimJobList *list, SimPolicy policy, const SimJob *job,
                     const SimOutcome *outcome)
{
    g_autofree char *name = sim_job_name(job->number, job->task);
    fprintf(list->file, "%s,%s,%.6f,", sim_policy_name(policy), name, seconds(job->submit_usec));
    if (outcome->is_refused)
        fputs(",,,", list->file);
    else
        fprintf(list->file, "%.6f,%.6f,%.6f,", seconds(outcome->start_usec),
                seconds(outcome->end_usec), sim_metrics_wait_s(job, outcome));
    fprintf(list->file, "%u,%u,%" G_GUINT64_FORMAT ",%u,%u,%s\n", job->guests, job->vcpus,
            job->memory_mib, outcome->n_moves, outcome->n_checkpoints, outcome_name(outcome));
}

gboolean sim_joblist_end(SimJobList *list, GError **error)
{
    gboolean failed = ferror(list->file) != 0;
    failed |= fclose(g_steal_pointer(&list->file)) != 0;
    if (failed)
        berth_set_error_errno(error, errno, "--jobs: cannot write all of %s", list->path);
    return !failed;
}
