/* SPDX-License-Identifier: Apache-2.0 */
/* berth resize: asks for a running job to have more or less. What came of it is read from the event log, from
 * before the question on: no answer falls between the two. */
#include "cli/cli.h"

#include "cli/follow.h"
#include "common/error.h"
#include "common/types.h"
#include "common/units.h"

#include <stdio.h>

typedef struct {
    BerthCli *cli;
    guint64 job;
    guint32 vcpus;      /* 0: as many as it has */
    guint64 memory_mib; /* likewise */
    gboolean waits;
    gboolean was_asked;
    guint64 last_seq;
    gboolean has_moved; /* and is to be resized where it is now */
    gboolean is_over;
    char *has; /* in the end; NULL: not known */
    GError *failure;
} Resize;

static void fail(Resize *resize, const char *why)
{
    resize->is_over = TRUE;
    if (resize->failure == NULL)
        resize->failure =
            g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                        "job %" G_GUINT64_FORMAT " was not resized: %s", resize->job, why);
}

static void take_state(Resize *resize, Berth__JobState state)
{
    if (berth_job_state_is_final((BerthJobState)state))
        fail(resize, "it has ended meanwhile");
    else if (state == BERTH__JOB_STATE__PENDING)
        fail(resize, "its guest was lost, and it waits to start again");
}

/* FALSE: nothing more is to be waited for. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Resize *resize = user_data;
    resize->last_seq = event->seq;
    switch (event->kind) {
    case BERTH__EVENT__KIND__GUEST_RESIZED:
        resize->is_over = TRUE;
        g_free(resize->has);
        resize->has = g_strdup(event->text);
        break;
    case BERTH__EVENT__KIND__GUEST_RESIZE_FAILED:
    case BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED:
        fail(resize, event->text);
        break;
    case BERTH__EVENT__KIND__GUEST_MIGRATED:
        resize->has_moved = TRUE;
        break;
    case BERTH__EVENT__KIND__TASK_STATE:
        take_state(resize, event->state);
        break;
    default:
        break;
    }
    return !resize->is_over && !resize->has_moved;
}

static char *size_text(guint32 vcpus, guint64 memory_mib)
{
    g_autofree char *memory = berth_format_size_mib(memory_mib);
    return g_strdup_printf("%u vCPU%s, %s", vcpus, vcpus == 1 ? "" : "s", memory);
}

/* It has it already. Otherwise what is under way, or has come of it since it was asked for, is in the log. */
static void take_job(Resize *resize, const Berth__Job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++) {
        const Berth__Task *task = job->tasks[i];
        guint32 vcpus = task->vcpus != 0 ? task->vcpus : job->vcpus;
        guint64 memory_mib = task->memory_mib != 0 ? task->memory_mib : job->memory_mib;
        if (task->resize == NULL && (resize->vcpus == 0 || resize->vcpus == vcpus) &&
            (resize->memory_mib == 0 || resize->memory_mib == memory_mib)) {
            resize->is_over = TRUE;
            g_free(resize->has);
            resize->has = size_text(vcpus, memory_mib);
        }
    }
}

static gboolean ask_once(Resize *resize, GError **error)
{
    Berth__ServerInfo *info = berth_cli_server_info(resize->cli, error);
    if (info == NULL)
        return FALSE;
    resize->last_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    Berth__ResizeRequest request = BERTH__RESIZE_REQUEST__INIT;
    request.job = resize->job;
    request.vcpus = resize->vcpus;
    request.memory_mib = resize->memory_mib;
    Berth__JobReply *reply = (Berth__JobReply *)berth_cli_call(
        resize->cli, &berth__jobs__descriptor, "Resize", &request.base, error);
    if (reply == NULL)
        return FALSE;
    resize->was_asked = TRUE;
    take_job(resize, reply->job);
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}

/* UNTIL_SEQ 0: until something has come of it. */
static gboolean watch(Resize *resize, guint64 until_seq, GError **error)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.job = resize->job;
    request.after_seq = resize->last_seq;
    request.until_seq = until_seq;
    return berth_rpc_peer_stream(resize->cli->peer, &berth__jobs__descriptor, "Watch",
                                 &request.base, 0, take_event, resize, error);
}

/* It is where there was to be room: if nothing is under way there, the log says by now why. */
static gboolean look_there(Resize *resize, GError **error)
{
    gboolean is_open = FALSE;
    Berth__Job *job = berth_get_job(resize->cli, resize->job, error);
    Berth__ServerInfo *info = job != NULL ? berth_cli_server_info(resize->cli, error) : NULL;
    guint64 until_seq = info != NULL ? info->last_seq : 0;
    for (size_t i = 0; info != NULL && i < job->n_tasks; i++)
        is_open |= job->tasks[i]->resize != NULL;
    if (job != NULL)
        berth__job__free_unpacked(job, NULL);
    if (info == NULL)
        return FALSE;
    berth__server_info__free_unpacked(info, NULL);
    resize->has_moved = FALSE;
    if (is_open)
        return TRUE;
    if (resize->last_seq < until_seq && !watch(resize, until_seq, error))
        return FALSE;
    if (!resize->is_over && !resize->has_moved)
        fail(resize, "it was moved, and the node that it went to has no room for it any more");
    return TRUE;
}

static gboolean attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Resize *resize = user_data;
    if (!resize->was_asked && !ask_once(resize, error))
        return FALSE;
    while (resize->waits && !resize->is_over)
        if (!(resize->has_moved ? look_there(resize, error) : watch(resize, 0, error)))
            return FALSE;
    return TRUE;
}

static gboolean print_job(const Resize *resize, GError **error)
{
    if (!resize->cli->json) {
        if (resize->has != NULL)
            printf("job %" G_GUINT64_FORMAT " has %s\n", resize->job, resize->has);
        return TRUE;
    }
    Berth__Job *shown = berth_get_job(resize->cli, resize->job, error);
    if (shown == NULL)
        return FALSE;
    berth_cli_print_json(&shown->base);
    berth__job__free_unpacked(shown, NULL);
    return TRUE;
}

static gboolean resize_one(Resize *resize, GError **error)
{
    gboolean ok = berth_cli_persist(resize->cli, FALSE, attempt, resize, error);
    if (ok && resize->failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&resize->failure));
        ok = FALSE;
    }
    ok = ok && print_job(resize, error);
    g_clear_error(&resize->failure);
    g_free(resize->has);
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
    if (vcpus != NULL && !berth_parse_uint64(vcpus, 1, G_MAXUINT32, &number, error)) {
        g_prefix_error(error, "--vcpus: ");
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
    g_autofree char *vcpus = NULL, *memory = NULL;
    Resize wanted = {.cli = cli};
    const GOptionEntry entries[] = {
        {"vcpus", 'c', 0, G_OPTION_ARG_STRING, &vcpus, "Virtual CPUs that it is to have", "N"},
        {"memory", 'm', 0, G_OPTION_ARG_STRING, &memory, "Memory that it is to have: 512M, 8G",
         "SIZE"},
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &wanted.waits, "Return when it has it", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB...",
            "Gives running jobs more or less, live: up to what they were submitted for "
            "(--vcpus-max,\n--memory-max), and down to a quarter of the memory that they "
            "began with. A job whose node\nhas no room for more is moved to one that has. What "
            "cannot be had, or what the job does\nnot give back, leaves it as it is.",
            NULL, out_status, error) ||
        !read_size(&wanted, vcpus, memory, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_job_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        Resize resize = wanted;
        resize.job = g_array_index(jobs, guint64, i);
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (!resize_one(&resize, &local))
            berth_cli_report(local, out_status);
    }
    return TRUE;
}
