/* SPDX-License-Identifier: Apache-2.0 */
/* berth checkpoint, checkpoint ls, checkpoint rm, restore. */
#include "cli/cli.h"

#include "cli/checkpoint_every.h"
#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/job_op.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/id.h"
#include "common/ranges.h"
#include "common/units.h"

#include <stdio.h>

/* Outcome: what the checkpoint takes, or where the job runs. */
typedef struct {
    BerthJobOp op;
    guint32 checkpoint; /* restore: which one; 0 = the newest */
} Save;

static gboolean take_saved(BerthJobOp *op, const Berth__Event *event)
{
    if (event->kind == BERTH__EVENT__KIND__GUEST_CHECKPOINTED)
        berth_job_op_end(op, event->text);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED)
        berth_job_op_fail(op, event->text);
    return TRUE;
}

static gboolean take_restored(BerthJobOp *op, const Berth__Event *event)
{
    if (event->kind == BERTH__EVENT__KIND__GUEST_RUNNING)
        berth_job_op_end(op, event->node);
    return TRUE;
}

static Berth__JobReply *ask_to_save(const BerthJobOp *op, GError **error)
{
    Berth__CheckpointRequest request = BERTH__CHECKPOINT_REQUEST__INIT;
    request.job = op->job;
    if (op->reason != NULL)
        request.reason = (char *)op->reason;
    g_auto(BerthRanges) tasks = berth_ranges_of(op->tasks);
    request.tasks = tasks.ranges;
    request.n_tasks = tasks.n;
    ProtobufCMessage *reply =
        berth_cli_call(op->cli, &berth__jobs__descriptor, "Checkpoint", &request.base, error);
    return (Berth__JobReply *)reply;
}

static Berth__JobReply *ask_to_restore(const BerthJobOp *op, GError **error)
{
    Berth__RestoreRequest request = BERTH__RESTORE_REQUEST__INIT;
    request.job = op->job;
    request.checkpoint = ((const Save *)(const void *)op)->checkpoint;
    request.of_array = op->tasks != NULL;
    if (op->tasks != NULL)
        request.task = berth_index_set_last(op->tasks);
    if (op->reason != NULL)
        request.reason = (char *)op->reason;
    return (Berth__JobReply *)berth_cli_call(op->cli, &berth__jobs__descriptor, "Restore",
                                             &request.base, error);
}

/* How far back it goes: the newest may be old, and one that is being taken is none. */
static void tell_which(const BerthJobOp *op, const Berth__Task *task)
{
    for (gsize i = 0; i < task->n_checkpoints; i++) {
        const Berth__Checkpoint *checkpoint = task->checkpoints[i];
        if (checkpoint->serial != task->restores_from)
            continue;
        g_autofree char *name = berth_tasks_format(op->job, op->tasks);
        g_autofree char *taken = berth_format_time(checkpoint->taken_usec);
        fprintf(stderr, "%s: job %s goes back to checkpoint %u, taken %s\n", g_get_prgname(), name,
                checkpoint->serial, taken);
    }
}

/* One that is frozen to disk has been put back at once, and stands still on. */
static void asked_to_restore(BerthJobOp *op, const Berth__Job *job)
{
    const Berth__Task *task = berth_job_one_task(job, op->tasks);
    if (task != NULL && !op->cli->json)
        tell_which(op, task);
    op->is_over = task != NULL && task->state == BERTH__JOB_STATE__SUSPENDED;
}

static gboolean follow(BerthJobOp *op, GError **error)
{
    return berth_job_op_watch(op, 0, 0, error);
}

static const BerthJobOpClass checkpoint_class = {.done = "checkpointed",
                                                 .outlives_guest = TRUE,
                                                 .shows = ", checkpoint ",
                                                 .ask = ask_to_save,
                                                 .take = take_saved,
                                                 .follow = follow};

static const BerthJobOpClass restore_class = {.done = "restored",
                                              .shows = " was put back, on ",
                                              .waits_to_start = TRUE,
                                              .ask = ask_to_restore,
                                              .asked = asked_to_restore,
                                              .take = take_restored,
                                              .follow = follow};

static gboolean save_one(Save *save, GError **error)
{
    gboolean ok = berth_cli_connect(save->op.cli, error) && berth_job_op_run(&save->op, error) &&
                  berth_job_op_print(&save->op, error);
    berth_job_op_clear(&save->op);
    return ok;
}

/* --- the verbs ------------------------------------------------------------------------------- */

gboolean berth_cli_checkpoint(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *reason = NULL, *every = NULL;
    guint32 every_sec = 0;
    gboolean waits = FALSE;
    const GOptionEntry entries[] = {
        {"every", 'e', 0, G_OPTION_ARG_STRING, &every,
         "From now on by itself, whenever it has run so long since the last (30m, 2h, never)",
         "TIME"},
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &waits, "Return when it is done, and say what it takes",
         NULL},
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB[[INDICES]]...",
            "Saves the memory and the disk of running jobs, both of the same instant; the jobs run "
            "on. A job whose\nnode dies goes on from its newest checkpoint, and `berth restore` "
            "puts "
            "it back to any that it has.\n--every, and `berth submit --checkpoint-every`, have "
            "that "
            "done every so often. `berth checkpoint ls JOB`\nshows the checkpoints that a job has, "
            "`berth checkpoint rm JOB CHECKPOINT` removes one.",
            NULL, out_status, error))
        return FALSE;
    if (every != NULL && waits)
        return berth_cli_usage_error(out_status, error,
                                     "--every says how often a job is saved by itself: there is "
                                     "nothing to wait for; leave out --wait or --every");
    if (every != NULL && !berth_checkpoint_every_parse(every, &every_sec, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    if (every != NULL)
        return berth_cli_checkpoint_every(cli, argc, argv, every_sec, reason, out_status, error);
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    for (guint i = 0; jobs != NULL && i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        Save save = {.op = {.class = &checkpoint_class,
                            .cli = cli,
                            .job = g_array_index(jobs, BerthCliTasks, i).job,
                            .waits = waits,
                            .reason = reason,
                            .tasks = g_array_index(jobs, BerthCliTasks, i).tasks}};
        if (!save_one(&save, &local))
            berth_cli_report(local, out_status);
    }
    return jobs != NULL;
}

/* JOB or JOB[INDEX], and CHECKPOINT if there is one: 0 = there is not. */
static gboolean read_arguments(int argc, char **argv, gboolean is_needed, BerthCliTask *out_task,
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
    if (!berth_cli_task_argument(argv[1], out_task, error))
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
    g_autofree char *reason = NULL;
    BerthCliTask named = {0};
    Save save = {.op = {.class = &restore_class, .cli = cli}};
    const GOptionEntry entries[] = {
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &save.op.waits,
         "Return when it runs again, and say where", NULL},
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print the job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB[[INDEX]] [CHECKPOINT]",
            "Puts a job back to one of its checkpoints, the newest if none is named: memory, disk "
            "and output are\nwhat they were then, and it goes on where there is room. What it has "
            "done since is lost.",
            NULL, out_status, error) ||
        !read_arguments(argc, argv, FALSE, &named, &save.checkpoint, out_status, error))
        return FALSE;
    g_autoptr(BerthIndexSet) tasks = named.of_array ? berth_index_set_new() : NULL;
    if (tasks != NULL)
        berth_index_set_add_one(tasks, named.task);
    save.op.job = named.job;
    save.op.tasks = tasks;
    save.op.reason = reason;
    return save_one(&save, error);
}

/* --- those that there are -------------------------------------------------------------------- */

/* NULL: it did not go on after it, as it was to be put back elsewhere, or it stood still before. */
static char *pause_text(const Berth__Checkpoint *checkpoint)
{
    return checkpoint->pause_usec == 0
               ? NULL
               : g_strdup_printf("%.3f s", (double)checkpoint->pause_usec / 1e6);
}

static void add_row(BerthTable *table, const Berth__Job *job, const Berth__Task *task,
                    const Berth__Checkpoint *checkpoint)
{
    if (job->array != NULL)
        berth_table_add(table, berth_task_format(job, task));
    berth_table_add(table, g_strdup_printf("%u%s", checkpoint->serial,
                                           checkpoint->serial == task->restores_from ? "*" : ""));
    berth_table_add(table, berth_format_time(checkpoint->taken_usec));
    berth_table_add(table, berth_format_duration_sec(checkpoint->ran_usec / G_USEC_PER_SEC));
    berth_table_add(table, checkpoint->vcpus > 0 ? g_strdup_printf("%u", checkpoint->vcpus)
                                                 : g_strdup("-"));
    berth_table_add(table, checkpoint->vcpus > 0 ? berth_format_size_mib(checkpoint->memory_mib)
                                                 : g_strdup("-"));
    berth_table_add(table, berth_format_size_mib(checkpoint->memory_bytes >> 20));
    berth_table_add(table, berth_format_size_mib(checkpoint->disk_bytes >> 20));
    berth_table_add(table, pause_text(checkpoint));
    berth_table_add(table, g_strdup(checkpoint->node));
    berth_table_add(table, g_strdup(berth_reason_name(checkpoint->reason)));
}

typedef struct {
    BerthCli *cli;
    BerthTable *table; /* NULL before the first page */
} Checkpoints;

/* Numbers are of one task: of an array the table says of which. */
static BerthTable *new_table(gboolean is_array)
{
    static const BerthColumn columns[] = {
        {"JOB", TRUE, FALSE, 0},    {"CHECKPOINT", TRUE, FALSE, 0}, {"TAKEN", FALSE, FALSE, 0},
        {"RAN", TRUE, FALSE, 3},    {"VCPUS", TRUE, FALSE, 4},      {"GUEST", TRUE, FALSE, 5},
        {"MEMORY", TRUE, FALSE, 0}, {"DISK", TRUE, FALSE, 0},       {"PAUSE", TRUE, FALSE, 2},
        {"NODE", FALSE, TRUE, 0},   {"WHY", FALSE, TRUE, 1}};
    guint first = is_array ? 0 : 1;
    return berth_table_new(columns + first, G_N_ELEMENTS(columns) - first);
}

static gboolean add_page(const Berth__Job *page, gpointer user_data)
{
    Checkpoints *checkpoints = user_data;
    if (checkpoints->table == NULL)
        checkpoints->table = new_table(page->array != NULL);
    for (gsize i = 0; i < page->n_tasks; i++) {
        const Berth__Task *task = page->tasks[i];
        for (gsize k = 0; k < task->n_checkpoints; k++)
            if (checkpoints->cli->json)
                berth_cli_print_json(&task->checkpoints[k]->base);
            else
                add_row(checkpoints->table, page, task, task->checkpoints[k]);
    }
    return TRUE;
}

gboolean berth_cli_checkpoint_ls(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error)
{
    Checkpoints checkpoints = {cli, NULL};
    const GOptionEntry entries[] = {{"json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
                                     "Print each checkpoint as JSON, one a line", NULL},
                                    {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB[[INDICES]]",
            "Lists the checkpoints of a job, oldest first. The one with a * is what it "
            "goes on from when its\nguest is lost.",
            NULL, out_status, error))
        return FALSE;
    if (argc != 2)
        return berth_cli_usage_error(out_status, error, "name one job (see %s --help)", argv[0]);
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    gboolean ok = jobs != NULL && berth_cli_connect(cli, error) &&
                  berth_get_task_pages(cli, &g_array_index(jobs, BerthCliTasks, 0), NULL, add_page,
                                       &checkpoints, error);
    if (ok && !cli->json)
        berth_table_print(checkpoints.table, stdout, berth_terminal_width(stdout));
    g_clear_pointer(&checkpoints.table, berth_table_free);
    return ok;
}

gboolean berth_cli_checkpoint_rm(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error)
{
    g_autofree char *reason = NULL;
    BerthCliTask named = {0};
    Berth__RemoveCheckpointRequest request = BERTH__REMOVE_CHECKPOINT_REQUEST__INIT;
    const GOptionEntry entries[] = {
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print the job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDEX]] CHECKPOINT",
                         "Removes a checkpoint of a job. Those that a job has when it ends go with "
                         "it.",
                         NULL, out_status, error) ||
        !read_arguments(argc, argv, TRUE, &named, &request.checkpoint, out_status, error))
        return FALSE;
    request.job = named.job;
    request.of_array = named.of_array;
    request.task = named.task;
    if (!berth_cli_connect(cli, error))
        return FALSE;
    if (reason != NULL)
        request.reason = reason;
    Berth__JobReply *reply = (Berth__JobReply *)berth_cli_call(
        cli, &berth__jobs__descriptor, "RemoveCheckpoint", &request.base, error);
    if (reply == NULL)
        return FALSE;
    if (cli->json)
        berth_cli_print_json(&reply->job->base);
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}
