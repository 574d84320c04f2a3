/* SPDX-License-Identifier: Apache-2.0 */
/* berth checkpoint, checkpoint ls, checkpoint rm, restore. What came of a checkpoint or a restore is read from the
 * event log, from before the question on: no answer falls between the two. */
#include "cli/cli.h"

#include "cli/follow.h"
#include "cli/format.h"
#include "cli/table.h"
#include "common/error.h"
#include "common/id.h"
#include "common/types.h"
#include "common/units.h"

#include <stdio.h>

typedef struct {
    BerthCli *cli;
    guint64 job;
    guint32 checkpoint; /* restore: which one; 0 = the newest */
    gboolean restores;
    gboolean waits;
    gboolean was_asked;
    guint64 last_seq;
    gboolean is_over; /* it is done, or will not be */
    char *text;       /* what was done */
    GError *failure;  /* it will not be */
} Save;

static void fail(Save *save, const char *why)
{
    save->is_over = TRUE;
    if (save->failure == NULL)
        save->failure = g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                                    "job %" G_GUINT64_FORMAT " was not %s: %s", save->job,
                                    save->restores ? "restored" : "checkpointed", why);
}

static void end_with(Save *save, const char *text)
{
    save->is_over = TRUE;
    g_free(save->text);
    save->text = g_strdup(text);
}

static void take_state(Save *save, Berth__JobState state)
{
    if (berth_job_state_is_final((BerthJobState)state))
        fail(save, "it has ended meanwhile");
    else if (state == BERTH__JOB_STATE__PENDING && !save->restores)
        fail(save, "its guest was lost meanwhile");
}

/* FALSE: nothing more is to be waited for. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Save *save = user_data;
    save->last_seq = event->seq;
    if (event->kind == BERTH__EVENT__KIND__TASK_STATE)
        take_state(save, event->state);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_CHECKPOINTED && !save->restores)
        end_with(save, event->text);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED && !save->restores)
        fail(save, event->text);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_RUNNING && save->restores)
        end_with(save, event->node);
    return !save->is_over;
}

/* --- asking ---------------------------------------------------------------------------------- */

static Berth__JobReply *ask(const Save *save, GError **error)
{
    Berth__CheckpointRequest checkpoint = BERTH__CHECKPOINT_REQUEST__INIT;
    Berth__RestoreRequest restore = BERTH__RESTORE_REQUEST__INIT;
    checkpoint.job = restore.job = save->job;
    restore.checkpoint = save->checkpoint;
    return (Berth__JobReply *)(save->restores
                                   ? berth_cli_call(save->cli, &berth__jobs__descriptor, "Restore",
                                                    &restore.base, error)
                                   : berth_cli_call(save->cli, &berth__jobs__descriptor,
                                                    "Checkpoint", &checkpoint.base, error));
}

/* One that is frozen to disk has been put back at once, and stands still on. */
static gboolean ask_once(Save *save, GError **error)
{
    Berth__ServerInfo *info = berth_cli_server_info(save->cli, error);
    if (info == NULL)
        return FALSE;
    save->last_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    Berth__JobReply *reply = ask(save, error);
    if (reply == NULL)
        return FALSE;
    save->was_asked = TRUE;
    if (save->restores && reply->job->state == BERTH__JOB_STATE__SUSPENDED)
        save->is_over = TRUE;
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}

static gboolean attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Save *save = user_data;
    if (!save->was_asked && !ask_once(save, error))
        return FALSE;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.job = save->job;
    while (save->waits && !save->is_over) {
        request.after_seq = save->last_seq;
        if (!berth_rpc_peer_stream(cli->peer, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                   take_event, save, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean print_job(const Save *save, GError **error)
{
    if (!save->cli->json) {
        if (save->text != NULL)
            printf("job %" G_GUINT64_FORMAT "%s%s\n", save->job,
                   save->restores ? " runs on " : ", checkpoint ", save->text);
        return TRUE;
    }
    Berth__Job *shown = berth_get_job(save->cli, save->job, error);
    if (shown == NULL)
        return FALSE;
    berth_cli_print_json(&shown->base);
    berth__job__free_unpacked(shown, NULL);
    return TRUE;
}

static gboolean save_one(Save *save, GError **error)
{
    gboolean ok = berth_cli_connect(save->cli, error) &&
                  berth_cli_persist(save->cli, FALSE, attempt, save, error);
    if (ok && save->failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&save->failure));
        ok = FALSE;
    }
    ok = ok && print_job(save, error);
    g_clear_error(&save->failure);
    g_free(save->text);
    return ok;
}

/* --- the verbs ------------------------------------------------------------------------------- */

gboolean berth_cli_checkpoint(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    gboolean waits = FALSE;
    const GOptionEntry entries[] = {
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &waits, "Return when it is done, and say what it takes",
         NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB...",
            "Saves the memory and the disk of running jobs, both of the same instant; the jobs run "
            "on. A job whose\nnode dies goes on from its newest checkpoint, and `berth restore` "
            "puts "
            "it back to any that it has.\n`berth submit --checkpoint-every` has that done every so "
            "often.",
            NULL, out_status, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_job_arguments(argc, argv, out_status, error);
    for (guint i = 0; jobs != NULL && i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        Save save = {.cli = cli, .job = g_array_index(jobs, guint64, i), .waits = waits};
        if (!save_one(&save, &local))
            berth_cli_report(local, out_status);
    }
    return jobs != NULL;
}

/* JOB, and CHECKPOINT if there is one: 0 = there is not. */
static gboolean read_arguments(int argc, char **argv, gboolean is_needed, guint64 *out_job,
                               guint32 *out_checkpoint, int *out_status, GError **error)
{
    guint64 checkpoint = 0;
    if (argc < 2 || argc > 3 || (is_needed && argc < 3)) {
        berth_cli_usage_error(out_status, error,
                              "name a job and %s of its checkpoints (see %s "
                              "--help)",
                              is_needed ? "one" : "at most one", argv[0]);
        return FALSE;
    }
    *out_status = BERTH_EXIT_USAGE;
    if (!berth_job_id_parse(argv[1], out_job, NULL, NULL, error))
        return FALSE;
    if (argc == 3 && !g_ascii_string_to_unsigned(argv[2], 10, 1, G_MAXUINT32, &checkpoint, NULL)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not the number of a checkpoint; berth checkpoint ls shows those "
                    "that a job has",
                    argv[2]);
        return FALSE;
    }
    *out_status = 0;
    *out_checkpoint = (guint32)checkpoint;
    return TRUE;
}

gboolean berth_cli_restore(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    Save save = {.cli = cli, .restores = TRUE};
    const GOptionEntry entries[] = {
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &save.waits, "Return when it runs again, and say where",
         NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print the job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB [CHECKPOINT]",
            "Puts a job back to one of its checkpoints, the newest if none is named: memory, disk "
            "and output are\nwhat they were then, and it goes on where there is room. What it has "
            "done since is lost.",
            NULL, out_status, error) ||
        !read_arguments(argc, argv, FALSE, &save.job, &save.checkpoint, out_status, error))
        return FALSE;
    return save_one(&save, error);
}

/* --- those that there are -------------------------------------------------------------------- */

static void add_row(BerthTable *table, const Berth__Task *task, const Berth__Checkpoint *checkpoint)
{
    berth_table_add(table, g_strdup_printf("%u%s", checkpoint->serial,
                                           checkpoint->serial == task->restores_from ? "*" : ""));
    berth_table_add(table, berth_format_time(checkpoint->taken_usec));
    berth_table_add(table, berth_format_duration_sec(checkpoint->ran_usec / G_USEC_PER_SEC));
    berth_table_add(table, berth_format_size_mib(checkpoint->memory_bytes >> 20));
    berth_table_add(table, berth_format_size_mib(checkpoint->disk_bytes >> 20));
    berth_table_add(table, g_strdup_printf("%.3f s", (double)checkpoint->pause_usec / 1e6));
    berth_table_add(table, g_strdup(checkpoint->node));
    berth_table_add(table, g_strdup(berth_reason_name(checkpoint->reason)));
}

static void print_checkpoints(const Berth__Job *job)
{
    static const BerthColumn columns[] = {
        {"CHECKPOINT", TRUE, FALSE, 0}, {"TAKEN", FALSE, FALSE, 0}, {"RAN", TRUE, FALSE, 3},
        {"MEMORY", TRUE, FALSE, 0},     {"DISK", TRUE, FALSE, 0},   {"PAUSE", TRUE, FALSE, 2},
        {"NODE", FALSE, TRUE, 0},       {"WHY", FALSE, TRUE, 1}};
    g_autoptr(BerthTable) table = berth_table_new(columns, G_N_ELEMENTS(columns));
    for (gsize i = 0; i < job->n_tasks; i++)
        for (gsize k = 0; k < job->tasks[i]->n_checkpoints; k++)
            add_row(table, job->tasks[i], job->tasks[i]->checkpoints[k]);
    berth_table_print(table, stdout, berth_terminal_width(stdout));
}

gboolean berth_cli_checkpoint_ls(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error)
{
    guint64 number = 0;
    const GOptionEntry entries[] = {{"json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
                                     "Print each checkpoint as JSON, one a line", NULL},
                                    {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB",
            "Lists the checkpoints of a job, oldest first. The one with a * is what it "
            "goes on from when its\nguest is lost.",
            NULL, out_status, error))
        return FALSE;
    if (argc != 2)
        return berth_cli_usage_error(out_status, error, "name one job (see %s --help)", argv[0]);
    *out_status = BERTH_EXIT_USAGE;
    if (!berth_job_id_parse(argv[1], &number, NULL, NULL, error))
        return FALSE;
    *out_status = 0;
    Berth__Job *job = berth_cli_connect(cli, error) ? berth_get_job(cli, number, error) : NULL;
    if (job == NULL)
        return FALSE;
    for (gsize i = 0; cli->json && i < job->n_tasks; i++)
        for (gsize k = 0; k < job->tasks[i]->n_checkpoints; k++)
            berth_cli_print_json(&job->tasks[i]->checkpoints[k]->base);
    if (!cli->json)
        print_checkpoints(job);
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

gboolean berth_cli_checkpoint_rm(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error)
{
    Berth__RemoveCheckpointRequest request = BERTH__REMOVE_CHECKPOINT_REQUEST__INIT;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print the job as JSON", NULL}, {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB CHECKPOINT",
                         "Removes a checkpoint of a job. Those that a job has when it ends go with "
                         "it.",
                         NULL, out_status, error) ||
        !read_arguments(argc, argv, TRUE, &request.job, &request.checkpoint, out_status, error) ||
        !berth_cli_connect(cli, error))
        return FALSE;
    Berth__JobReply *reply = (Berth__JobReply *)berth_cli_call(
        cli, &berth__jobs__descriptor, "RemoveCheckpoint", &request.base, error);
    if (reply == NULL)
        return FALSE;
    if (cli->json)
        berth_cli_print_json(&reply->job->base);
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}
