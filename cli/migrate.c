/* SPDX-License-Identifier: Apache-2.0 */
/* berth migrate: asks for a running job to be moved to another node, or for that to be called off. What came
 * of it is read from the event log, from before the question on; how far it is, for a terminal, from the
 * job itself. */
#include "cli/cli.h"

#include "cli/follow.h"
#include "cli/format.h"
#include "common/error.h"
#include "common/types.h"
#include "common/units.h"

#include <stdio.h>
#include <unistd.h>

/* A terminal is told how far it is so often. */
#define LOOK_MSEC 1000u

typedef struct {
    BerthCli *cli;
    guint64 job;
    const char *to; /* NULL: wherever there is room */
    gboolean calls_off;
    gboolean waits;
    gboolean is_shown; /* a line on the terminal says how far it is */
    gboolean was_asked;
    guint64 last_seq;
    gboolean is_over;
    char *node; /* where it is in the end; NULL: not known */
    GError *failure;
} Migrate;

/* --- what comes of it ------------------------------------------------------------------------ */

static void fail(Migrate *migrate, const char *why)
{
    migrate->is_over = TRUE;
    if (migrate->failure == NULL)
        migrate->failure =
            g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                        "job %" G_GUINT64_FORMAT " was not moved: %s", migrate->job, why);
}

static void end_on(Migrate *migrate, const char *node)
{
    migrate->is_over = TRUE;
    g_free(migrate->node);
    migrate->node = g_strdup(node);
}

/* FALSE: nothing more is to be waited for. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Migrate *migrate = user_data;
    migrate->last_seq = event->seq;
    if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATED && !migrate->calls_off)
        end_on(migrate, event->node);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATED)
        fail(migrate, "it was too late to call its move off");
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED && migrate->calls_off)
        end_on(migrate, event->node);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED)
        fail(migrate, event->text);
    else if (event->kind == BERTH__EVENT__KIND__TASK_STATE &&
             event->state != BERTH__JOB_STATE__RUNNING &&
             event->state != BERTH__JOB_STATE__SUSPENDED)
        fail(migrate, berth_job_state_is_final((BerthJobState)event->state)
                          ? "it has ended meanwhile"
                          : "its guest was lost, and it waits to start again");
    return !migrate->is_over;
}

/* --- how far it is --------------------------------------------------------------------------- */

static void clear_line(Migrate *migrate)
{
    if (migrate->is_shown)
        fputs("\r\033[K", stderr);
    migrate->is_shown = FALSE;
}

static void print_progress(Migrate *migrate, const Berth__MigrationProgress *progress)
{
    g_autofree char *left = berth_format_size_mib(progress->memory_left_bytes >> 20);
    clear_line(migrate);
    fprintf(stderr, "job %" G_GUINT64_FORMAT " is on its way to %s", migrate->job, progress->to);
    if (progress->since_usec != 0)
        fprintf(stderr,
                ": %s left, %" G_GUINT64_FORMAT " MiB/s, %" G_GUINT64_FORMAT
                " MiB/s written meanwhile",
                left, progress->bytes_per_sec >> 20, progress->dirty_bytes_per_sec >> 20);
    if (progress->downtime_msec != 0)
        fprintf(stderr, ", stands still for %u ms", progress->downtime_msec);
    fflush(stderr);
    migrate->is_shown = TRUE;
}

static gboolean look(Migrate *migrate, GError **error)
{
    Berth__Job *job = berth_get_job(migrate->cli, migrate->job, error);
    if (job == NULL)
        return FALSE;
    for (size_t i = 0; i < job->n_tasks; i++)
        if (job->tasks[i]->migration != NULL)
            print_progress(migrate, job->tasks[i]->migration);
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

/* --- asking ---------------------------------------------------------------------------------- */

static Berth__JobReply *ask(Migrate *migrate, GError **error)
{
    Berth__MigrateRequest request = BERTH__MIGRATE_REQUEST__INIT;
    Berth__CancelMigrationRequest calls_off = BERTH__CANCEL_MIGRATION_REQUEST__INIT;
    request.job = calls_off.job = migrate->job;
    if (migrate->to != NULL)
        request.node = (char *)migrate->to;
    return (Berth__JobReply *)(migrate->calls_off
                                   ? berth_cli_call(migrate->cli, &berth__jobs__descriptor,
                                                    "CancelMigration", &calls_off.base, error)
                                   : berth_cli_call(migrate->cli, &berth__jobs__descriptor,
                                                    "Migrate", &request.base, error));
}

static gboolean ask_once(Migrate *migrate, GError **error)
{
    Berth__ServerInfo *info = berth_cli_server_info(migrate->cli, error);
    if (info == NULL)
        return FALSE;
    migrate->last_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    Berth__JobReply *reply = ask(migrate, error);
    if (reply == NULL)
        return FALSE;
    migrate->was_asked = TRUE;
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}

/* One look at the log: until something has come of it, or a terminal is to be told. */
static gboolean watch(Migrate *migrate, GError **error)
{
    gboolean tells = isatty(STDERR_FILENO) && !migrate->cli->json;
    g_autoptr(GError) local = NULL;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.job = migrate->job;
    request.after_seq = migrate->last_seq;
    if (berth_rpc_peer_stream(migrate->cli->peer, &berth__jobs__descriptor, "Watch", &request.base,
                              tells ? LOOK_MSEC : 0, take_event, migrate, &local))
        return TRUE;
    if (g_error_matches(local, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) && tells)
        return look(migrate, error);
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

static gboolean attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Migrate *migrate = user_data;
    if (!migrate->was_asked && !ask_once(migrate, error))
        return FALSE;
    while (migrate->waits && !migrate->is_over)
        if (!watch(migrate, error))
            return FALSE;
    return TRUE;
}

static gboolean print_job(Migrate *migrate, GError **error)
{
    if (!migrate->cli->json) {
        if (migrate->node != NULL)
            printf("job %" G_GUINT64_FORMAT " runs on %s\n", migrate->job, migrate->node);
        return TRUE;
    }
    Berth__Job *shown = berth_get_job(migrate->cli, migrate->job, error);
    if (shown == NULL)
        return FALSE;
    berth_cli_print_json(&shown->base);
    berth__job__free_unpacked(shown, NULL);
    return TRUE;
}

static gboolean migrate_one(Migrate *migrate, GError **error)
{
    gboolean ok = berth_cli_persist(migrate->cli, FALSE, attempt, migrate, error);
    clear_line(migrate);
    if (ok && migrate->failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&migrate->failure));
        ok = FALSE;
    }
    ok = ok && print_job(migrate, error);
    g_clear_error(&migrate->failure);
    g_free(migrate->node);
    return ok;
}

gboolean berth_cli_migrate(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *to = NULL;
    gboolean waits = FALSE, calls_off = FALSE;
    const GOptionEntry entries[] = {
        {"to", 't', 0, G_OPTION_ARG_STRING, &to, "The node (default: one that has room)", "NODE"},
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &waits,
         "Return when it runs there, and say how far it is", NULL},
        {"cancel", 0, 0, G_OPTION_ARG_NONE, &calls_off, "Call a move off that is under way", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB...",
            "Moves running jobs to another node, live. A job that cannot be moved runs "
            "on where it is. Its\nprocesses, memory, disk and output go with it; it "
            "stands still for a moment, or, where the node\nemulates its CPU, for as "
            "long as its memory is copied.",
            NULL, out_status, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_job_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        Migrate migrate = {.cli = cli,
                           .job = g_array_index(jobs, guint64, i),
                           .to = to,
                           .calls_off = calls_off,
                           .waits = waits};
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (!migrate_one(&migrate, &local))
            berth_cli_report(local, out_status);
    }
    return TRUE;
}
