/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the FIFO through which a guest's memory passes, and what libvirt's stream begins and ends with.
 *
 * Invariants: both ends are open here for as long as the worker is at it, so that libvirt need not wait to open its
 * own, and does not see an end between the two times that it opens it to save; they are closed when the worker
 * fails, so that libvirt fails too. A libvirt that comes to a FIFO after that would wait for ever, with the domain
 * locked: until it has answered, however long that takes, both ends are opened and closed again and again. */
#include <config.h>

#include "nodeagent/memory_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"

/* What a FIFO may hold, where the kernel lets it (fs.pipe-max-size). */
#define PIPE_BYTES (1 << 20)
#define PREFIX     "memory-"
/* Values of the eventfd, which adds them up; the larger ones count more. */
#define ASKED   1u
#define GIVE_UP (1u << 8)
#define END     (1u << 16)
#define STOP    (1u << 24)
/* For so long libvirt may do nothing at the FIFO, from when it is asked: it waits for half a minute for a domain that is busy, and
 * what it was asked by somebody who is gone is waited for as long. */
#define STALL_MSEC 120000
/* How often a libvirt that is to fail is looked after. */
#define LET_FAIL_MSEC 100
/* Of libvirt's header: what differs between its two copies. */
#define MAGIC_BYTES 16
#define MAGIC_PART  "LibvirtQemudPart"
#define MAGIC_SAVE  "LibvirtQemudSave"

struct BerthMemoryPipe {
    gatomicrefcount refs;
    char *dir;
    char *path;
    int fd;            /* the worker's; -1: closed */
    gboolean is_asked; /* the worker's: it has heard that libvirt was */
    int event;         /* from the loop to the worker */
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Both ends: who waits for one to be opened does not any more. */
static int open_fifo(const char *path)
{
    return g_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0);
}

static void remove_fifo(const char *dir, const char *path)
{
    int fd = open_fifo(path);
    g_unlink(path);
    g_rmdir(dir);
    close_fd(&fd);
}

void berth_memory_pipe_sweep(const char *run_dir)
{
    g_autoptr(GDir) dir = g_dir_open(run_dir, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *folder = g_build_filename(run_dir, name, NULL);
        g_autofree char *path = g_build_filename(folder, "fifo", NULL);
        if (g_str_has_prefix(name, PREFIX))
            remove_fifo(folder, path);
    }
}

BerthMemoryPipe *berth_memory_pipe_new(const char *run_dir, GError **error)
{
    g_autofree char *dir = g_build_filename(run_dir, PREFIX "XXXXXX", NULL);
    if (g_mkdtemp(dir) == NULL) {
        berth_set_error_errno(error, errno, "cannot make a folder in %s", run_dir);
        return NULL;
    }
    BerthMemoryPipe *pipe = g_new0(BerthMemoryPipe, 1);
    g_atomic_ref_count_init(&pipe->refs);
    pipe->path = g_build_filename(dir, "fifo", NULL);
    pipe->dir = g_steal_pointer(&dir);
    pipe->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pipe->fd = mkfifo(pipe->path, 0600) == 0 ? open_fifo(pipe->path) : -1;
    if (pipe->fd >= 0 && pipe->event >= 0) {
        fcntl(pipe->fd, F_SETPIPE_SZ, PIPE_BYTES);
        return pipe;
    }
    berth_set_error_errno(error, errno, "cannot make the FIFO %s", pipe->path);
    berth_memory_pipe_unref(pipe);
    return NULL;
}

BerthMemoryPipe *berth_memory_pipe_ref(BerthMemoryPipe *pipe)
{
    g_atomic_ref_count_inc(&pipe->refs);
    return pipe;
}

void berth_memory_pipe_unref(BerthMemoryPipe *pipe)
{
    if (!g_atomic_ref_count_dec(&pipe->refs))
        return;
    remove_fifo(pipe->dir, pipe->path);
    close_fd(&pipe->fd);
    close_fd(&pipe->event);
    g_free(pipe->dir);
    g_free(pipe->path);
    g_free(pipe);
}

const char *berth_memory_pipe_path(const BerthMemoryPipe *pipe)
{
    return pipe->path;
}

static void tell(BerthMemoryPipe *pipe, guint64 value)
{
    ssize_t written = write(pipe->event, &value, sizeof value);
    g_assert(written == sizeof value);
}

void berth_memory_pipe_asked(BerthMemoryPipe *pipe)
{
    tell(pipe, ASKED);
}

void berth_memory_pipe_end(BerthMemoryPipe *pipe)
{
    tell(pipe, END);
}

void berth_memory_pipe_stop(BerthMemoryPipe *pipe)
{
    tell(pipe, STOP);
}

void berth_memory_pipe_give_up(BerthMemoryPipe *pipe)
{
    tell(pipe, GIVE_UP);
}

/* --- waiting -------------------------------------------------------------------------------- */

typedef enum {
    NOTHING, /* but that the FIFO is ready */
    TIME_IS_OVER,
    IS_ASKED,
    GIVEN_UP,
    ENDED,
    STOPPED,
} News;

static News read_news(int event)
{
    guint64 value = 0;
    if (read(event, &value, sizeof value) < 0)
        return NOTHING;
    return value >= STOP ? STOPPED : value >= END ? ENDED : value >= GIVE_UP ? GIVEN_UP : IS_ASKED;
}

/* Until EVENTS, or news of the loop, which count more. */
static News wait_for(BerthMemoryPipe *pipe, short events, int timeout_msec)
{
    struct pollfd fds[] = {{pipe->event, POLLIN, 0}, {pipe->fd, events, 0}};
    nfds_t n = events == 0 ? 1 : 2;
    int ready;
    while ((ready = poll(fds, n, timeout_msec)) < 0 && errno == EINTR)
        ;
    if (ready == 0)
        return TIME_IS_OVER;
    return (fds[0].revents & POLLIN) != 0 ? read_news(pipe->event) : NOTHING;
}

/* The time counts from when libvirt was asked. */
static News wait_for_libvirt(BerthMemoryPipe *pipe, short events)
{
    News news;
    while ((news = wait_for(pipe, events, pipe->is_asked ? STALL_MSEC : -1)) == IS_ASKED)
        pipe->is_asked = TRUE;
    return news;
}

/* NEWS: the last that there was. Until the loop has news of libvirt, which may come to the FIFO at any time until then:
 * it waits up to half a minute for a domain that is busy. One that does not end by that is stalled as well. */
static void let_fail(BerthMemoryPipe *pipe, News news, BerthMemoryStalledFunc stalled,
                     gconstpointer user_data)
{
    gboolean is_told = news == TIME_IS_OVER;
    guint waited_msec = 0;
    if (is_told)
        stalled(user_data);
    close_fd(&pipe->fd);
    while (news < ENDED) {
        int fd = open_fifo(pipe->path);
        close_fd(&fd);
        News newer = wait_for(pipe, 0, LET_FAIL_MSEC);
        news = MAX(news, newer);
        waited_msec += LET_FAIL_MSEC;
        if (!is_told && news < ENDED && waited_msec >= STALL_MSEC) {
            stalled(user_data);
            is_told = TRUE;
        }
    }
}

GError *berth_memory_pipe_why_stalled(void)
{
    return g_error_new(
        BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
        "libvirt has done nothing for %d s with the guest's memory: its log and QEMU's "
        "may say why",
        STALL_MSEC / 1000);
}

static gboolean fail_given_up(GError **error)
{
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_CANCELLED,
                        "the guest's memory is not wanted any more");
    return FALSE;
}

/* --- from libvirt --------------------------------------------------------------------------- */

typedef struct {
    guint8 head[BERTH_MEMORY_HEADER_BYTES];
    guint8 tail[BERTH_MEMORY_HEADER_BYTES]; /* the newest bytes */
    guint64 bytes;
} Ends;

static void note_ends(Ends *ends, const guint8 *data, gsize length)
{
    if (ends->bytes < sizeof ends->head) {
        gsize part = MIN(length, sizeof ends->head - (gsize)ends->bytes);
        memcpy(ends->head + ends->bytes, data, part);
    }
    ends->bytes += length;
    gsize part = MIN(length, sizeof ends->tail);
    memmove(ends->tail, ends->tail + part, sizeof ends->tail - part);
    memcpy(ends->tail + sizeof ends->tail - part, data + length - part, part);
}

static gboolean check_ends(const Ends *ends, GError **error)
{
    if (ends->bytes > 2 * sizeof ends->head && memcmp(ends->head, MAGIC_PART, MAGIC_BYTES) == 0 &&
        memcmp(ends->tail, MAGIC_SAVE, MAGIC_BYTES) == 0 &&
        memcmp(ends->head + MAGIC_BYTES, ends->tail + MAGIC_BYTES,
               sizeof ends->head - MAGIC_BYTES) == 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL,
                "libvirt has saved %" G_GUINT64_FORMAT
                " bytes that do not begin and end as what it saves does",
                ends->bytes);
    return FALSE;
}

/* All that is in the FIFO now. */
static gboolean take_all(BerthMemoryPipe *pipe, BerthCheckpointWriter *writer, guint8 *buffer,
                         Ends *ends, GError **error)
{
    for (;;) {
        ssize_t length = read(pipe->fd, buffer, PIPE_BYTES);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 && errno == EAGAIN)
            return TRUE;
        if (length < 0) {
            berth_set_error_errno(error, errno, "cannot read from %s", pipe->path);
            return FALSE;
        }
        note_ends(ends, buffer, (gsize)length);
        if (!berth_checkpoint_writer_append(writer, buffer, (gsize)length, error))
            return FALSE;
    }
}

static gboolean receive(BerthMemoryPipe *pipe, BerthCheckpointWriter *writer, GBytes **out_header,
                        News *news, GError **error)
{
    g_autofree guint8 *buffer = g_malloc(PIPE_BYTES);
    Ends ends = {.bytes = 0};
    while (*news == NOTHING) {
        *news = wait_for_libvirt(pipe, POLLIN);
        if (*news != NOTHING && *news != ENDED)
            return fail_given_up(error);
        if (!take_all(pipe, writer, buffer, &ends, error))
            return FALSE;
    }
    if (!check_ends(&ends, error))
        return FALSE;
    *out_header = g_bytes_new(ends.tail, sizeof ends.tail);
    return TRUE;
}

gboolean berth_memory_pipe_receive(BerthMemoryPipe *pipe, BerthCheckpointWriter *writer,
                                   BerthMemoryStalledFunc stalled, gconstpointer user_data,
                                   GBytes **out_header, GError **error)
{
    News news = NOTHING;
    gboolean ok = receive(pipe, writer, out_header, &news, error);
    let_fail(pipe, news, stalled, user_data);
    return ok;
}

/* --- to libvirt ----------------------------------------------------------------------------- */

static gboolean give_piece(BerthMemoryPipe *pipe, GBytes *piece, News *news, GError **error)
{
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(piece, &length);
    while (length > 0 && *news == NOTHING) {
        *news = wait_for_libvirt(pipe, POLLOUT);
        if (*news != NOTHING && *news != ENDED)
            return fail_given_up(error);
        ssize_t written = *news == ENDED ? 0 : write(pipe->fd, data, length);
        if (written < 0 && errno != EAGAIN && errno != EINTR) {
            berth_set_error_errno(error, errno, "cannot write to %s", pipe->path);
            return FALSE;
        }
        data += MAX(written, 0);
        length -= (gsize)MAX(written, 0);
    }
    return TRUE;
}

static gboolean send_all(BerthMemoryPipe *pipe, BerthCheckpointReader *reader, News *news,
                         GError **error)
{
    while (*news == NOTHING) {
        g_autoptr(GBytes) piece = berth_checkpoint_reader_next(reader, error);
        if (piece == NULL)
            return FALSE;
        if (g_bytes_get_size(piece) == 0) { /* libvirt has still to read what is in the FIFO */
            *news = wait_for_libvirt(pipe, 0);
            return *news == ENDED || fail_given_up(error);
        }
        if (!give_piece(pipe, piece, news, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_memory_pipe_send(BerthMemoryPipe *pipe, BerthCheckpointReader *reader,
                                BerthMemoryStalledFunc stalled, gconstpointer user_data,
                                GError **error)
{
    News news = NOTHING;
    gboolean ok = send_all(pipe, reader, &news, error);
    let_fail(pipe, news, stalled, user_data);
    return ok;
}
