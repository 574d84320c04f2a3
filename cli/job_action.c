/* SPDX-License-Identifier: Apache-2.0 */
/* berth cancel, hold, release: one request per job. A job that refuses does not keep the others
 * from being asked; each refusal is printed. */
#include "cli/cli.h"

#include "common/ranges.h"

#include <stdio.h>

/* CancelRequest, HoldRequest and ReleaseRequest have the same fields. */
typedef union {
    ProtobufCMessage base;
    Berth__CancelRequest cancel;
    Berth__HoldRequest hold;
    Berth__ReleaseRequest release;
} JobRequest;

typedef void (*FillFunc)(JobRequest *request, guint64 job, const BerthRanges *tasks, char *reason);

static void fill_cancel(JobRequest *request, guint64 job, const BerthRanges *tasks, char *reason)
{
    berth__cancel_request__init(&request->cancel);
    request->cancel.job = job;
    request->cancel.reason = reason;
    request->cancel.tasks = tasks->ranges;
    request->cancel.n_tasks = tasks->n;
}

static void fill_hold(JobRequest *request, guint64 job, const BerthRanges *tasks, char *reason)
{
    berth__hold_request__init(&request->hold);
    request->hold.job = job;
    request->hold.reason = reason;
}

static void fill_release(JobRequest *request, guint64 job, const BerthRanges *tasks, char *reason)
{
    berth__release_request__init(&request->release);
    request->release.job = job;
    request->release.reason = reason;
}

static gboolean ask_each(BerthCli *cli, const GArray *jobs, const char *method, FillFunc fill,
                         char *reason, int *out_status, GError **error)
{
    for (guint i = 0; i < jobs->len; i++) {
        JobRequest request;
        const BerthCliTasks *named = &g_array_index(jobs, BerthCliTasks, i);
        g_auto(BerthRanges) tasks = berth_ranges_of(named->tasks);
        g_autoptr(GError) local = NULL;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        fill(&request, named->job, &tasks, reason);
        Berth__JobReply *reply = (Berth__JobReply *)berth_cli_call(cli, &berth__jobs__descriptor,
                                                                   method, &request.base, &local);
        if (reply == NULL) {
            berth_cli_report(local, out_status);
            continue;
        }
        if (cli->json && reply->job != NULL)
            berth_cli_print_json(&reply->job->base);
        berth__job_reply__free_unpacked(reply, NULL);
    }
    return TRUE;
}

static gboolean job_action(BerthCli *cli, int argc, char **argv, const char *method, FillFunc fill,
                           const char *description, int *out_status, GError **error)
{
    g_autofree char *reason = NULL;
    const GOptionEntry entries[] = {
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries,
                         fill == fill_cancel ? "JOB[[INDICES]]..." : "JOB...", description, NULL,
                         out_status, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    /* Holds are of a job and not of tasks. */
    return jobs != NULL &&
           (fill == fill_cancel || berth_cli_check_whole(jobs, out_status, error)) &&
           ask_each(cli, jobs, method, fill,
                    reason != NULL ? reason : (char *)protobuf_c_empty_string, out_status, error);
}

gboolean berth_cli_cancel(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    return job_action(cli, argc, argv, "Cancel", fill_cancel,
                      "A running job gets SIGTERM, after its grace SIGKILL. Returns at once; "
                      "`berth wait` waits\nfor the end. JOB[0-9,20] names tasks of an array.",
                      out_status, error);
}

gboolean berth_cli_hold(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    return job_action(cli, argc, argv, "Hold", fill_hold,
                      "A held job stays pending until `berth release`.", out_status, error);
}

gboolean berth_cli_release(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    return job_action(cli, argc, argv, "Release", fill_release,
                      "What an operator holds, only an operator releases.", out_status, error);
}
