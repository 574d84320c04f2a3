/* SPDX-License-Identifier: Apache-2.0 */
/* berth cancel, hold, release: one request per job. A job that refuses does not keep the others
 * from being asked; each refusal is printed. */
#include "cli/selection.h"
#include "cli/tasks.h"

#include "common/ranges.h"
#include "common/types.h"

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
    request->hold.tasks = tasks->ranges;
    request->hold.n_tasks = tasks->n;
}

static void fill_release(JobRequest *request, guint64 job, const BerthRanges *tasks, char *reason)
{
    berth__release_request__init(&request->release);
    request->release.job = job;
    request->release.reason = reason;
    request->release.tasks = tasks->ranges;
    request->release.n_tasks = tasks->n;
}

static gboolean has_not_ended(const Berth__Job *job)
{
    return !berth_job_state_is_final((BerthJobState)job->state);
}

static gboolean is_any_waiting(const Berth__Job *job)
{
    return job->array != NULL ? berth_job_count(job, FALSE).pending > 0
                              : job->state == BERTH__JOB_STATE__PENDING;
}

static gboolean is_any_held(const Berth__Job *job)
{
    return job->held || job->holds_some;
}

typedef struct {
    const char *method;
    const char *description;
    FillFunc fill;
    gboolean (*applies)(const Berth__Job *job); /* to one that is not named */
} Action;

static gboolean ask_each(BerthCli *cli, const GArray *jobs, const Action *action, char *reason,
                         int *out_status, GError **error)
{
    for (guint i = 0; i < jobs->len; i++) {
        JobRequest request;
        const BerthCliTasks *named = &g_array_index(jobs, BerthCliTasks, i);
        g_auto(BerthRanges) tasks = berth_ranges_of(named->tasks);
        g_autoptr(GError) local = NULL;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        action->fill(&request, named->job, &tasks, reason);
        Berth__JobReply *reply = (Berth__JobReply *)berth_cli_call(
            cli, &berth__jobs__descriptor, action->method, &request.base, &local);
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

typedef struct {
    const Action *action;
    char *reason;
    JobRequest request;
} Selected;

static const ProtobufCMessage *fill_selected(const Berth__Job *job, gpointer user_data)
{
    static const BerthRanges all = {NULL, 0};
    Selected *selected = user_data;
    if (!selected->action->applies(job))
        return NULL;
    selected->action->fill(&selected->request, job->id, &all, selected->reason);
    return &selected->request.base;
}

static gboolean ask_selected(BerthCli *cli, const BerthSelection *selection, const Action *action,
                             char *reason, int *out_status, GError **error)
{
    Selected selected = {.action = action, .reason = reason};
    guint64 n = 0;
    if (!berth_selection_ask(cli, selection, action->method, fill_selected, &selected, &n,
                             out_status, error))
        return FALSE;
    if (!cli->json)
        printf("%" G_GUINT64_FORMAT " job%s\n", n, n == 1 ? "" : "s");
    return TRUE;
}

static gboolean job_action(BerthCli *cli, int argc, char **argv, const Action *action,
                           int *out_status, GError **error)
{
    g_autofree char *reason = NULL;
    g_auto(BerthSelection) selection = {0};
    const GOptionEntry entries[] = {
        BERTH_CLI_SELECTION(&selection),
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDICES]]... | --all", action->description,
                         NULL, out_status, error))
        return FALSE;
    char *why = reason != NULL ? reason : (char *)protobuf_c_empty_string;
    if (berth_selection_is_made(&selection))
        return argc > 1 ? berth_cli_usage_error(out_status, error,
                                                "name jobs, or say which (--all, --user, --name), "
                                                "and not both")
                        : ask_selected(cli, &selection, action, why, out_status, error);
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    return jobs != NULL && ask_each(cli, jobs, action, why, out_status, error);
}

gboolean berth_cli_cancel(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    static const Action cancel = {
        "Cancel",
        "A running job gets SIGTERM, after its grace SIGKILL. Returns at once; `berth wait` waits\n"
        "for the end. JOB[0-9,20] names tasks of an array; --all, --user and --name jobs that have "
        "not\nended.",
        fill_cancel, has_not_ended};
    return job_action(cli, argc, argv, &cancel, out_status, error);
}

gboolean berth_cli_hold(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    static const Action hold = {
        "Hold",
        "A held job stays pending until `berth release`. JOB[0-9,20] names tasks of an array: "
        "those\nof them that wait; --all, --user and --name jobs that wait.",
        fill_hold, is_any_waiting};
    return job_action(cli, argc, argv, &hold, out_status, error);
}

gboolean berth_cli_release(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    static const Action release = {
        "Release",
        "What an operator holds, only an operator releases. JOB[0-9,20] names tasks of an array; "
        "of "
        "a\njob that is held as a whole, the others stay held. --all, --user and --name: jobs that "
        "are held.",
        fill_release, is_any_held};
    return job_action(cli, argc, argv, &release, out_status, error);
}
