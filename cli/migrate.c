/* SPDX-License-Identifier: Apache-2.0 */
/* berth migrate: asks for a running job to be moved to another node, or for that to be called off. How far it is, a
 * terminal is told from the job itself. */
#include "cli/cli.h"

#include "cli/job_get.h"
#include "cli/job_op.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/ranges.h"
#include "common/units.h"

#include <stdio.h>
#include <unistd.h>

/* A terminal is told how far it is so often. */
#define LOOK_MSEC 1000u

typedef struct {
    BerthJobOp op;  /* outcome: where it is */
    const char *to; /* NULL: wherever there is room */
    gboolean calls_off;
    gboolean is_shown; /* a line on the terminal says how far it is */
} Migrate;

static gboolean take(BerthJobOp *op, const Berth__Event *event)
{
    gboolean calls_off = ((const Migrate *)(const void *)op)->calls_off;
    if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATED && !calls_off)
        berth_job_op_end(op, event->node);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATED)
        berth_job_op_fail(op, "it was too late to call its move off");
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED &&
             event->reason == BERTH__REASON__REASON_GUEST_VANISHED)
        berth_job_op_lose(op, BERTH__REASON__REASON_REQUEUED);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED && calls_off)
        berth_job_op_end(op, event->node);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED)
        berth_job_op_fail(op, event->text);
    return TRUE;
}

/* --- how far it is --------------------------------------------------------------------------- */

static void clear_line(Migrate *migrate)
{
    if (migrate->is_shown)
        fputs("\r\033[K", stderr);
    migrate->is_shown = FALSE;
}

static void print_progress(Migrate *migrate, const Berth__Task *task)
{
    const Berth__MigrationProgress *progress = task->migration;
    g_autofree char *left = berth_format_size_mib(progress->memory_left_bytes >> 20);
    clear_line(migrate);
    g_autofree char *name = berth_tasks_format(migrate->op.job, migrate->op.tasks);
    fprintf(stderr, "job %s %s %s", name,
            task->waits_for_room ? "waits until guests in slack have made room on"
                                 : "is on its way to",
            progress->to);
    if (progress->since_usec != 0)
        fprintf(stderr,
                ": %s left, %" G_GUINT64_FORMAT " MiB/s, %" G_GUINT64_FORMAT
                " MiB/s written meanwhile",
                left, progress->bytes_per_sec >> 20, progress->dirty_bytes_per_sec >> 20);
    if (progress->downtime_msec != 0)
        fprintf(stderr, ", to stand still for %u ms", progress->downtime_msec);
    fflush(stderr);
    migrate->is_shown = TRUE;
}

static gboolean look(Migrate *migrate, GError **error)
{
    Berth__Job *job =
        berth_get_job_tasks(migrate->op.cli, migrate->op.job, migrate->op.tasks, error);
    if (job == NULL)
        return FALSE;
    for (size_t i = 0; i < job->n_tasks; i++)
        if (job->tasks[i]->migration != NULL)
            print_progress(migrate, job->tasks[i]);
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

/* Until something has come of it, or a terminal is to be told. */
static gboolean follow(BerthJobOp *op, GError **error)
{
    gboolean tells = isatty(STDERR_FILENO) && !op->cli->json;
    g_autoptr(GError) local = NULL;
    if (berth_job_op_watch(op, 0, tells ? LOOK_MSEC : 0, &local))
        return TRUE;
    if (g_error_matches(local, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) && tells)
        return look((Migrate *)(void *)op, error);
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

/* --- asking ---------------------------------------------------------------------------------- */

static Berth__JobReply *ask(const BerthJobOp *op, GError **error)
{
    const Migrate *migrate = (const Migrate *)(const void *)op;
    Berth__MigrateRequest request = BERTH__MIGRATE_REQUEST__INIT;
    Berth__CancelMigrationRequest calls_off = BERTH__CANCEL_MIGRATION_REQUEST__INIT;
    request.job = calls_off.job = op->job;
    if (migrate->to != NULL)
        request.node = (char *)migrate->to;
    if (op->reason != NULL)
        request.reason = calls_off.reason = (char *)op->reason;
    g_auto(BerthRanges) tasks = berth_ranges_of(op->tasks);
    request.tasks = calls_off.tasks = tasks.ranges;
    request.n_tasks = calls_off.n_tasks = tasks.n;
    ProtobufCMessage *reply =
        migrate->calls_off
            ? berth_cli_call(op->cli, &berth__jobs__descriptor, "CancelMigration", &calls_off.base,
                             error)
            : berth_cli_call(op->cli, &berth__jobs__descriptor, "Migrate", &request.base, error);
    return (Berth__JobReply *)reply;
}

static const BerthJobOpClass class = {
    .done = "moved", .shows = " runs on ", .ask = ask, .take = take, .follow = follow};

/* Where it is: one that is frozen does not run there. */
static gboolean print(const BerthJobOp *op, GError **error)
{
    if (op->cli->json || op->outcome == NULL)
        return berth_job_op_print(op, error);
    Berth__Job *job = berth_get_job_tasks(op->cli, op->job, op->tasks, error);
    if (job == NULL)
        return FALSE;
    const Berth__Task *task = berth_job_one_task(job, op->tasks);
    gboolean is_frozen = berth_job_state_of(job, task) == BERTH__JOB_STATE__SUSPENDED;
    g_autofree char *name = berth_tasks_format(op->job, op->tasks);
    printf("job %s %s on %s\n", name, is_frozen ? "is frozen" : "runs", op->outcome);
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

static gboolean migrate_one(Migrate *migrate, GError **error)
{
    gboolean ok = berth_job_op_run(&migrate->op, error);
    clear_line(migrate);
    ok = ok && print(&migrate->op, error);
    berth_job_op_clear(&migrate->op);
    return ok;
}

gboolean berth_cli_migrate(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *to = NULL, *reason = NULL;
    gboolean waits = FALSE, calls_off = FALSE;
    const GOptionEntry entries[] = {
        {"to", 't', 0, G_OPTION_ARG_STRING, &to, "The node (default: one that has room)", "NODE"},
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &waits,
         "Return when it runs there, and say how far it is", NULL},
        {"cancel", 0, 0, G_OPTION_ARG_NONE, &calls_off, "Call a move off that is under way", NULL},
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB[[INDEX]]...",
            "Moves running jobs to another node, live. A job that cannot be moved runs "
            "on where it is. Its\nprocesses, memory, disk and output go with it; it "
            "stands still for a moment, or, where the node\nemulates its CPU, for as "
            "long as its memory is copied.",
            NULL, out_status, error))
        return FALSE;
    if (calls_off && to != NULL)
        return berth_cli_usage_error(out_status, error, "--cancel and --to exclude each other");
    if (to != NULL && *to == '\0')
        return berth_cli_usage_error(out_status, error, "--to: name a node, or leave it out");
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        const BerthCliTasks *named = &g_array_index(jobs, BerthCliTasks, i);
        Migrate migrate = {
            .op = {&class, cli, named->job, waits, reason}, .to = to, .calls_off = calls_off};
        migrate.op.tasks = named->tasks;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (!migrate_one(&migrate, &local))
            berth_cli_report(local, out_status);
    }
    return TRUE;
}
