/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what waits: for output, for the end of jobs. The daemon streams both; only why a job is pending is
 * asked for (pending_note.h). */
#include "cli/follow.h"

#include "cli/job_get.h"
#include "cli/pending_note.h"
#include "common/error.h"
#include "common/id.h"
#include "common/types.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
    const BerthFollow *follow;
    guint32 epoch;      /* of the log that the offsets are in; 0 = nothing was read */
    guint32 run;        /* likewise: how often that was cut */
    guint64 offsets[2]; /* next byte of stdout, stderr */
    GError *error;      /* the output could not be written, or was not what it must be */
    gboolean again;     /* all is to be read once more, from the beginning */
    gboolean no_reader; /* it could not as nobody reads it any more */
} Position;

static char *name_of(const BerthFollow *follow)
{
    return follow->of_array ? berth_task_id_format(follow->job, follow->task)
                            : berth_job_id_format(follow->job);
}

/* A descriptor that others made non-blocking (a terminal that is shared) is waited for. */
static gboolean write_all(int fd, const guint8 *data, gsize length, gboolean *out_no_reader,
                          GError **error)
{
    while (length > 0) {
        gssize n = write(fd, data, length);
        if (n < 0 && errno == EAGAIN) {
            GPollFD writable = {.fd = fd, .events = G_IO_OUT};
            g_poll(&writable, 1, -1);
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            *out_no_reader = errno == EPIPE;
            berth_set_error_errno(error, errno, "cannot write the job's output");
            return FALSE;
        }
        data += n;
        length -= (gsize)n;
    }
    return TRUE;
}

/* Cuts a file of ours; the caller's own standard streams keep what they have, and what is no
 * regular file cannot be cut. */
static void cut_file(int fd, guint64 size_bytes)
{
    if (fd > STDERR_FILENO && ftruncate(fd, (off_t)size_bytes) == 0)
        lseek(fd, (off_t)size_bytes, SEEK_SET);
}

static void begin_epoch(Position *position, guint32 epoch)
{
    cut_file(position->follow->stdout_fd, 0);
    cut_file(position->follow->stderr_fd, 0);
    g_autofree char *name = name_of(position->follow);
    if (position->offsets[0] + position->offsets[1] > 0)
        fprintf(stderr, "%s: job %s was started again; its output begins anew\n", g_get_prgname(),
                name);
    position->epoch = epoch;
    position->offsets[0] = 0;
    position->offsets[1] = 0;
}

/* Nobody knows where in a file that has both streams, as they came, one of them was at that. */
static gboolean is_in_one_file(const BerthFollow *follow)
{
    return follow->stdout_fd == follow->stderr_fd && follow->stdout_fd > STDERR_FILENO;
}

/* What was read beyond that was taken back: the job goes on from a checkpoint. */
static void cut(Position *position, const Berth__LogCut *cut)
{
    const guint64 sizes[2] = {cut->stdout_bytes, cut->stderr_bytes};
    const int fds[2] = {position->follow->stdout_fd, position->follow->stderr_fd};
    guint64 n_void = 0;
    position->again = is_in_one_file(position->follow);
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        if (position->offsets[i] <= sizes[i])
            continue;
        n_void += position->offsets[i] - sizes[i];
        position->offsets[i] = sizes[i];
        cut_file(fds[i], position->again ? 0 : sizes[i]);
    }
    position->again &= n_void > 0;
    if (position->again)
        position->offsets[0] = position->offsets[1] = 0;
    g_autofree char *name = name_of(position->follow);
    if (n_void > 0)
        fprintf(stderr,
                "%s: job %s was put back to a checkpoint; the last "
                "%" G_GUINT64_FORMAT " byte%s of its output %s void\n",
                g_get_prgname(), name, n_void, n_void == 1 ? "" : "s", n_void == 1 ? "is" : "are");
}

static gboolean print_chunk(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__LogChunk *chunk = (const Berth__LogChunk *)item;
    Position *position = user_data;
    if (chunk->epoch != position->epoch)
        begin_epoch(position, chunk->epoch);
    else if (chunk->cut)
        cut(position, chunk->cut);
    position->run = chunk->run;
    if (position->again || chunk->data.len == 0)
        return !position->again;
    guint64 *next = &position->offsets[chunk->is_stderr];
    if (chunk->offset != *next) {
        g_set_error(&position->error, BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                    "the daemon sent output from byte %" G_GUINT64_FORMAT
                    " where byte %" G_GUINT64_FORMAT " was due",
                    chunk->offset, *next);
        return FALSE;
    }
    int fd = chunk->is_stderr ? position->follow->stderr_fd : position->follow->stdout_fd;
    if (!write_all(fd, chunk->data.data, chunk->data.len, &position->no_reader, &position->error))
        return FALSE;
    *next += chunk->data.len;
    return TRUE;
}

static gboolean read_from(BerthCli *cli, Position *position, GError **error)
{
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = position->follow->job;
    request.task = position->follow->task;
    request.want_stdout = position->follow->stdout_fd >= 0;
    request.want_stderr = position->follow->stderr_fd >= 0;
    request.follow = position->follow->follow;
    request.epoch = position->epoch;
    request.run = position->run;
    request.stdout_offset = position->offsets[0];
    request.stderr_offset = position->offsets[1];
    return berth_rpc_peer_stream(cli->peer, &berth__jobs__descriptor, "Logs", &request.base, 0,
                                 print_chunk, position, error);
}

/* Output that cannot be written here is no reason to try again: it ends the attempt, too. */
static gboolean read_logs(BerthCli *cli, gpointer user_data, GError **error)
{
    Position *position = user_data;
    gboolean is_done;
    do {
        position->again = FALSE;
        is_done = read_from(cli, position, error);
    } while (is_done && position->again);
    return is_done || position->error != NULL;
}

gboolean berth_follow_logs(BerthCli *cli, const BerthFollow *follow, gboolean *out_no_reader,
                           GError **error)
{
    Position position = {.follow = follow};
    g_autoptr(BerthPendingNote) note = NULL;
    if (follow->follow)
        note = berth_pending_note_new(cli, follow->job, follow->of_array ? &follow->task : NULL);
    *out_no_reader = FALSE;
    if (!berth_cli_persist(cli, follow->follow, read_logs, &position, error))
        return FALSE;
    if (position.error == NULL)
        return TRUE;
    *out_no_reader = position.no_reader;
    g_propagate_error(error, position.error);
    return FALSE;
}

int berth_job_exit_status(const Berth__Job *job)
{
    const Berth__Exit *exit = job->n_tasks > 0 ? job->tasks[0]->exit : NULL;
    if (job->state == BERTH__JOB_STATE__COMPLETED)
        return BERTH_EXIT_OK;
    if (job->array != NULL)
        return BERTH_EXIT_FAILED; /* of many, which have many */
    if (exit != NULL && exit->signal != 0)
        return 128 + (int)exit->signal;
    if (exit != NULL && exit->status != 0)
        return (int)exit->status;
    return BERTH_EXIT_BERTH;
}

/* --- waiting --------------------------------------------------------------------------------- */

typedef struct {
    const GArray *jobs; /* guint64, as they were named */
    GHashTable *left;   /* those of them that have not ended */
    BerthEndedFunc each;
    gpointer user_data;
    guint64 last_seq;
    guint64 ended; /* an event says that this one has ended; 0 = none */
} Waiting;

static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Waiting *waiting = user_data;
    gboolean is_end = event->kind == BERTH__EVENT__KIND__TASK_STATE &&
                      berth_job_state_is_final((BerthJobState)event->state);
    waiting->last_seq = event->seq;
    if (!(is_end || event->kind == BERTH__EVENT__KIND__OUTPUT_COPIED) ||
        !g_hash_table_contains(waiting->left, &event->job))
        return TRUE;
    waiting->ended = event->job;
    return FALSE;
}

/* It has ended, and whoever waited for it finds its output in the files that it names. */
static gboolean is_over(const Berth__Job *job)
{
    if (!berth_job_state_is_final((BerthJobState)job->state))
        return FALSE;
    for (size_t i = 0; i < job->n_tasks; i++)
        if (job->tasks[i]->output_pending)
            return FALSE;
    return TRUE;
}

/* Asks how a job stands; reports and forgets it if it is over, or is none. */
static gboolean look(BerthCli *cli, Waiting *waiting, guint64 number, GError **error)
{
    g_autoptr(GError) local = NULL;
    Berth__Job *job = berth_get_job(cli, number, &local);
    if (job == NULL && g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        waiting->each(NULL, local, waiting->user_data);
        g_hash_table_remove(waiting->left, &number);
        return TRUE;
    }
    if (job == NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (is_over(job)) {
        waiting->each(job, NULL, waiting->user_data);
        g_hash_table_remove(waiting->left, &number);
    }
    berth__job__free_unpacked(job, NULL);
    return TRUE;
}

static gboolean look_at_all(BerthCli *cli, Waiting *waiting, GError **error)
{
    for (guint i = 0; i < waiting->jobs->len; i++) {
        guint64 job = g_array_index(waiting->jobs, guint64, i);
        if (g_hash_table_contains(waiting->left, &job) && !look(cli, waiting, job, error))
            return FALSE;
    }
    return TRUE;
}

/* The events of the one job that is left, or of all: there is no watch for several. */
static gboolean watch(BerthCli *cli, Waiting *waiting, GError **error)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    GHashTableIter iter;
    gpointer job;
    g_hash_table_iter_init(&iter, waiting->left);
    g_hash_table_iter_next(&iter, &job, NULL);
    request.after_seq = waiting->last_seq;
    request.job = g_hash_table_size(waiting->left) == 1 ? *(guint64 *)job : 0;
    waiting->ended = 0;
    return berth_rpc_peer_stream(cli->peer, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                 take_event, waiting, error) &&
           (waiting->ended == 0 || look(cli, waiting, waiting->ended, error));
}

/* One connection's worth of waiting. The cursor is taken before the first look, so that no end falls
 * between the two. */
static gboolean wait_attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Waiting *waiting = user_data;
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    waiting->last_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    if (!look_at_all(cli, waiting, error))
        return FALSE;
    while (g_hash_table_size(waiting->left) > 0) {
        if (!watch(cli, waiting, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_wait_jobs(BerthCli *cli, const GArray *jobs, BerthEndedFunc each, gpointer user_data,
                         GError **error)
{
    g_autoptr(GHashTable) left = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    Waiting waiting = {.jobs = jobs, .left = left, .each = each, .user_data = user_data};
    for (guint i = 0; i < jobs->len; i++)
        g_hash_table_add(left, g_memdup2(&g_array_index(jobs, guint64, i), sizeof(guint64)));
    return berth_cli_persist(cli, TRUE, wait_attempt, &waiting, error);
}
