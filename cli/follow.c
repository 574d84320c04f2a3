/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what waits for output. The daemon streams it; only why a job is pending is asked for (wait_note.h). */
#include "cli/follow.h"

#include "cli/wait_note.h"
#include "common/error.h"
#include "common/id.h"

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
    return berth_task_name_format(follow->job, follow->of_array, follow->task);
}

/* A descriptor that others made non-blocking (a terminal that is shared) is waited for. */
gboolean berth_follow_write(int fd, const void *data, gsize length, gboolean *out_no_reader,
                            GError **error)
{
    const guint8 *at = data;
    while (length > 0) {
        gssize n = write(fd, at, length);
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
        at += n;
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
    if (!berth_follow_write(fd, chunk->data.data, chunk->data.len, &position->no_reader,
                            &position->error))
        return FALSE;
    *next += chunk->data.len;
    return TRUE;
}

static gboolean read_from(BerthCli *cli, Position *position, GError **error)
{
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = position->follow->job;
    request.task = position->follow->task;
    request.of_array = position->follow->of_array;
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
    g_autoptr(BerthWaitNote) note = NULL;
    if (follow->follow)
        note = berth_wait_note_new(cli, follow->job, follow->of_array ? &follow->task : NULL, TRUE);
    *out_no_reader = FALSE;
    if (!berth_cli_persist(cli, follow->follow, read_logs, &position, error))
        return FALSE;
    if (position.error == NULL)
        return TRUE;
    *out_no_reader = position.no_reader;
    g_propagate_error(error, position.error);
    return FALSE;
}
