/* SPDX-License-Identifier: Apache-2.0 */
/* berth resize: asks for a running job to have more or less. */
#include "cli/cli.h"

#include "cli/job_get.h"
#include "cli/job_op.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/ranges.h"
#include "common/units.h"

#include <stdio.h>

typedef struct {
    BerthJobOp op;      /* outcome: what it has */
    guint32 vcpus;      /* 0: as many as it has */
    guint64 memory_mib; /* likewise */
    gboolean has_moved; /* and is to be resized where it is now */
} Resize;

static Resize *resize_of(BerthJobOp *op)
{
    return (Resize *)(void *)op;
}

static gboolean take(BerthJobOp *op, const Berth__Event *event)
{
    if (event->kind == BERTH__EVENT__KIND__GUEST_RESIZED)
        berth_job_op_end(op, event->text);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_RESIZE_FAILED ||
             event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED)
        berth_job_op_fail(op, event->text);
    else if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATED)
        resize_of(op)->has_moved = TRUE;
    return !resize_of(op)->has_moved;
}

static char *size_text(guint32 vcpus, guint64 memory_mib)
{
    g_autofree char *memory = berth_format_size_mib(memory_mib);
    return g_strdup_printf("%u vCPU%s, %s", vcpus, vcpus == 1 ? "" : "s", memory);
}

/* It has it already. Otherwise what is under way, or has come of it since it was asked for, is in the log. */
static void asked(BerthJobOp *op, const Berth__Job *job)
{
    const Resize *resize = resize_of(op);
    const Berth__Task *task = berth_job_one_task(job, op->tasks);
    if (task == NULL)
        return;
    guint32 vcpus = task->vcpus != 0 ? task->vcpus : job->vcpus;
    guint64 memory_mib = task->memory_mib != 0 ? task->memory_mib : job->memory_mib;
    if (task->resize == NULL && (resize->vcpus == 0 || resize->vcpus == vcpus) &&
        (resize->memory_mib == 0 || resize->memory_mib == memory_mib)) {
        g_autofree char *has = size_text(vcpus, memory_mib);
        berth_job_op_end(op, has);
    }
}

static Berth__JobReply *ask(const BerthJobOp *op, GError **error)
{
    const Resize *resize = (const Resize *)(const void *)op;
    Berth__ResizeRequest request = BERTH__RESIZE_REQUEST__INIT;
    request.job = op->job;
    request.vcpus = resize->vcpus;
    request.memory_mib = resize->memory_mib;
    if (op->reason != NULL)
        request.reason = (char *)op->reason;
    g_auto(BerthRanges) tasks = berth_ranges_of(op->tasks);
    request.tasks = tasks.ranges;
    request.n_tasks = tasks.n;
    ProtobufCMessage *reply =
        berth_cli_call(op->cli, &berth__jobs__descriptor, "Resize", &request.base, error);
    return (Berth__JobReply *)reply;
}

/* It is where there was to be room: if nothing is under way there, the log says by now why. */
static gboolean look_there(Resize *resize, GError **error)
{
    BerthJobOp *op = &resize->op;
    gboolean is_open = FALSE;
    Berth__Job *job = berth_get_job_tasks(op->cli, op->job, op->tasks, error);
    Berth__ServerInfo *info = job != NULL ? berth_cli_server_info(op->cli, error) : NULL;
    guint64 until_seq = info != NULL ? info->last_seq : 0;
    const Berth__Task *task = job != NULL ? berth_job_one_task(job, op->tasks) : NULL;
    is_open = task != NULL && task->resize != NULL;
    if (job != NULL)
        berth__job__free_unpacked(job, NULL);
    if (info == NULL)
        return FALSE;
    berth__server_info__free_unpacked(info, NULL);
    resize->has_moved = FALSE;
    if (is_open)
        return TRUE;
    if (op->last_seq < until_seq && !berth_job_op_watch(op, until_seq, 0, error))
        return FALSE;
    if (!op->is_over && !resize->has_moved)
        berth_job_op_fail(op,
                          "it was moved, and the node that it went to has no room for it any more");
    return TRUE;
}

static gboolean follow(BerthJobOp *op, GError **error)
{
    return resize_of(op)->has_moved ? look_there(resize_of(op), error)
                                    : berth_job_op_watch(op, 0, 0, error);
}

static const BerthJobOpClass class = {.done = "resized",
                                      .shows = " has ",
                                      .ask = ask,
                                      .asked = asked,
                                      .take = take,
                                      .follow = follow};

static gboolean resize_one(Resize *resize, GError **error)
{
    gboolean ok = berth_job_op_run(&resize->op, error) && berth_job_op_print(&resize->op, error);
    berth_job_op_clear(&resize->op);
    return ok;
}

/* NULL, for either: it stays as it is. */
static gboolean read_size(Resize *resize, const char *vcpus, const char *memory, GError **error)
{
    guint64 number = 0;
    if (vcpus == NULL && memory == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "what is the job to have? say --vcpus N, --memory SIZE, or both");
        return FALSE;
    }
    if (vcpus != NULL && !berth_parse_uint64(vcpus, 1, G_MAXUINT32, &number, NULL)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "--vcpus: \"%s\" is no number of vCPUs: 1 at least, and at most as many as the "
                    "job was submitted for (--vcpus-max)",
                    vcpus);
        return FALSE;
    }
    resize->vcpus = (guint32)number;
    if (memory != NULL && !berth_parse_size_mib(memory, &resize->memory_mib, error)) {
        g_prefix_error(error, "--memory: ");
        return FALSE;
    }
    if (memory == NULL || resize->memory_mib > 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "--memory: \"%s\" is too little: 64M at least", memory);
    return FALSE;
}

gboolean berth_cli_resize(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *vcpus = NULL, *memory = NULL, *reason = NULL;
    Resize wanted = {.op = {.class = &class, .cli = cli}};
    const GOptionEntry entries[] = {
        {"vcpus", 'c', 0, G_OPTION_ARG_STRING, &vcpus, "Virtual CPUs that it is to have", "N"},
        {"memory", 'm', 0, G_OPTION_ARG_STRING, &memory, "Memory that it is to have: 512M, 8G",
         "SIZE"},
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &wanted.op.waits, "Return when it has it", NULL},
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB[[INDEX]]...",
            "Gives running jobs more or less, live: up to what they were submitted for "
            "(--vcpus-max,\n--memory-max), and down to a quarter of the memory that they "
            "began with. A job whose node\nhas no room for more is moved to one that has. What "
            "cannot be had, or what the job does\nnot give back, leaves it as it is.",
            NULL, out_status, error))
        return FALSE;
    wanted.op.reason = reason;
    if (!read_size(&wanted, vcpus, memory, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        Resize resize = wanted;
        resize.op.job = g_array_index(jobs, BerthCliTasks, i).job;
        resize.op.tasks = g_array_index(jobs, BerthCliTasks, i).tasks;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (!resize_one(&resize, &local))
            berth_cli_report(local, out_status);
    }
    return TRUE;
}
