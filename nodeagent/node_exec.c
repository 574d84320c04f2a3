/* SPDX-License-Identifier: Apache-2.0 */
/* Owns commands on the host: their processes and pipes. Who may run them is decided before. Where systemd runs
 * the host the process is systemd-run, and the command a unit; elsewhere the process is the command, in the agent's
 * control group, but as ready as any other to be ended for want of memory.
 *
 * Invariants: no more than a window of each stream is read ahead of its acknowledgements; the end is told when
 * the process has ended and what it wrote was told; one that nobody wants is freed when it was reaped. */
#include <config.h>

#include "nodeagent/node_exec.h"

#include "common/descriptors.h"
#include "common/error.h"
#include "nodeagent/host_cpus.h"
#include "nodeagent/node_unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE_BYTES (16u * 1024u)
/* From SIGHUP to SIGKILL, when nobody wants it any more; of a unit, from one stop to the next, which is twice as long, and
 * so on. */
#define CLOSE_MSEC    1000u
#define STOP_MIN_MSEC 100u
#define STOP_MAX_MSEC 4000u

typedef struct NodeExec NodeExec;

typedef struct {
    NodeExec *exec;
    gboolean is_stderr;
    int fd; /* -1: at its end */
    guint source;
    guint64 received;
    guint64 acked;
} Stream;

struct NodeExec {
    BerthExec base;
    const BerthExecFuncs *funcs; /* NULL: nobody wants it any more */
    gpointer user_data;
    GPid pid;   /* 0: reaped */
    char *unit; /* that the command is; NULL: none */
    Berth__Exit exit;
    Stream streams[2];
    int in_fd; /* -1: closed */
    guint in_source;
    GByteArray *input; /* that is being written; NULL: none */
    gsize input_done;
    gboolean input_ends;
    guint kill_source;
    guint stop_msec; /* of a unit: until it is stopped again */
    guint end_source;
};

static NodeExec *exec_of(BerthExec *base)
{
    return (NodeExec *)(void *)base;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void node_exec_free(NodeExec *exec)
{
    for (guint i = 0; i < 2; i++) {
        g_clear_handle_id(&exec->streams[i].source, g_source_remove);
        close_fd(&exec->streams[i].fd);
    }
    g_clear_handle_id(&exec->in_source, g_source_remove);
    g_clear_handle_id(&exec->kill_source, g_source_remove);
    g_clear_handle_id(&exec->end_source, g_source_remove);
    close_fd(&exec->in_fd);
    g_clear_pointer(&exec->input, g_byte_array_unref);
    g_free(exec->unit);
    g_free(exec);
}

static void signal_all(const NodeExec *exec, int signal)
{
    if (exec->pid != 0 && exec->unit != NULL)
        berth_node_unit_signal(exec->unit, signal);
    else if (exec->pid != 0)
        (void)kill(-exec->pid, signal);
}

/* --- output ----------------------------------------------------------------------------------- */

static gboolean on_readable(gint fd, GIOCondition condition, gpointer data);

static void end_if_over(NodeExec *exec)
{
    if (exec->pid != 0 || exec->streams[0].fd >= 0 || exec->streams[1].fd >= 0)
        return;
    if (exec->funcs != NULL)
        exec->funcs->ended(&exec->exit, NULL, exec->user_data);
    node_exec_free(exec);
}

static gsize room_of(const Stream *stream)
{
    return BERTH_EXEC_WINDOW_BYTES - (gsize)(stream->received - stream->acked);
}

static void watch_stream(Stream *stream)
{
    if (stream->fd >= 0 && stream->source == 0 && room_of(stream) > 0)
        stream->source =
            g_unix_fd_add(stream->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, stream);
}

/* Reads once, where there is room. FALSE: there is nothing more, for now or, if the process has ended, for
 * good. */
static gboolean read_some(Stream *stream)
{
    guint8 piece[PIECE_BYTES];
    NodeExec *exec = stream->exec;
    gssize got = read(stream->fd, piece, MIN(sizeof piece, room_of(stream)));
    if (got < 0 && errno == EINTR)
        return TRUE;
    if (got < 0 && errno == EAGAIN && exec->pid != 0)
        return FALSE;
    if (got <= 0) {
        close_fd(&stream->fd);
        return FALSE;
    }
    guint64 offset = stream->received;
    stream->received += (gsize)got;
    if (exec->funcs != NULL)
        exec->funcs->output(stream->is_stderr, offset, piece, (gsize)got, exec->user_data);
    return TRUE;
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer data)
{
    Stream *stream = data;
    read_some(stream);
    if (stream->fd >= 0 && room_of(stream) > 0)
        return G_SOURCE_CONTINUE;
    stream->source = 0;
    end_if_over(stream->exec);
    return G_SOURCE_REMOVE;
}

/* What was written is read, as far as there is room; what others keep open is not waited for. */
static void on_reaped(GPid pid, gint status, gpointer data)
{
    NodeExec *exec = data;
    (void)kill(-pid, SIGKILL); /* what it has left running */
    exec->pid = 0;
    if (WIFSIGNALED(status))
        exec->exit.signal = (guint32)WTERMSIG(status);
    else
        exec->exit.status = (guint32)WEXITSTATUS(status);
    for (guint i = 0; i < 2; i++) {
        Stream *stream = &exec->streams[i];
        while (stream->fd >= 0 && room_of(stream) > 0)
            read_some(stream);
        /* Without room it is not looked at until more is acknowledged. */
        g_clear_handle_id(&stream->source, g_source_remove);
        if (exec->funcs == NULL)
            close_fd(&stream->fd);
    }
    end_if_over(exec);
}

/* --- input ------------------------------------------------------------------------------------ */

static gboolean on_writable(gint fd, GIOCondition condition, gpointer data)
{
    NodeExec *exec = data;
    gsize left = exec->input->len - exec->input_done;
    gssize wrote = left > 0 ? write(fd, exec->input->data + exec->input_done, left) : 0;
    if (wrote < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    exec->input_done += wrote < 0 ? left : (gsize)wrote; /* one that reads no more loses it */
    if (exec->input_done < exec->input->len)
        return G_SOURCE_CONTINUE;
    exec->in_source = 0;
    g_clear_pointer(&exec->input, g_byte_array_unref);
    if (exec->input_ends)
        close_fd(&exec->in_fd);
    exec->funcs->taken(exec->user_data);
    return G_SOURCE_REMOVE;
}

static void node_exec_input(BerthExec *base, const guint8 *data, gsize length, gboolean end)
{
    NodeExec *exec = exec_of(base);
    if (exec->in_fd < 0)
        return; /* after its end there is no more */
    exec->input = g_byte_array_append(g_byte_array_sized_new((guint)length), data, (guint)length);
    exec->input_done = 0;
    exec->input_ends = end;
    exec->in_source = g_unix_fd_add(exec->in_fd, G_IO_OUT | G_IO_HUP | G_IO_ERR, on_writable, exec);
}

/* --- the rest that is said to it --------------------------------------------------------------- */

static void node_exec_control(BerthExec *base, const guint64 acked[2], guint signal)
{
    NodeExec *exec = exec_of(base);
    for (guint i = 0; i < 2; i++) {
        Stream *stream = &exec->streams[i];
        stream->acked = CLAMP(acked[i], stream->acked, stream->received);
        watch_stream(stream);
    }
    if (signal > 0 && signal < NSIG)
        signal_all(exec, (int)signal);
}

static void node_exec_resize(BerthExec *base, const Berth__Terminal *size)
{
    /* It has none. */
}

static void on_close_over(gpointer data)
{
    NodeExec *exec = data;
    exec->kill_source = 0;
    (void)kill(-exec->pid, SIGKILL);
}

/* As long as systemd-run is there it may still ask for the unit, and if that is there, it waits for its end. */
static void stop_unit(gpointer data)
{
    NodeExec *exec = data;
    berth_node_unit_stop(exec->unit);
    exec->kill_source = g_timeout_add_once(exec->stop_msec, stop_unit, exec);
    exec->stop_msec = MIN(exec->stop_msec * 2, STOP_MAX_MSEC);
}

static void node_exec_close(BerthExec *base)
{
    NodeExec *exec = exec_of(base);
    exec->funcs = NULL;
    g_clear_handle_id(&exec->in_source, g_source_remove);
    if (exec->pid == 0) { /* only output was waited for */
        node_exec_free(exec);
        return;
    }
    if (exec->unit != NULL) {
        exec->stop_msec = STOP_MIN_MSEC;
        stop_unit(exec);
        return;
    }
    signal_all(exec, SIGHUP);
    signal_all(exec, SIGCONT);
    exec->kill_source = g_timeout_add_once(CLOSE_MSEC, on_close_over, exec);
}

void berth_node_exec_leave(BerthExec *base)
{
    NodeExec *exec = exec_of(base);
    if (exec->unit == NULL) {
        node_exec_close(base);
        return;
    }
    exec->funcs = NULL;
    g_clear_handle_id(&exec->in_source, g_source_remove);
    if (exec->pid == 0)
        node_exec_free(exec);
}

/* --- its beginning ---------------------------------------------------------------------------- */

/* In the child: it ends with this process, is alone in its session, takes SIGPIPE as any other, and is not spared
 * as the agent is where memory is short. */
static void set_up_child(gpointer data)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "0", 1);
        close(fd);
    }
    berth_host_cpus_restore(NULL); /* what the agent is bound to is not meant for it */
    berth_descriptors_restore_limit(NULL);
    (void)setsid();
    (void)signal(SIGPIPE, SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Ours, but for what systemd has told us. */
static char **environment_new(void)
{
    static const char *const ours[] = {"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"};
    char **environment = g_get_environ();
    for (gsize i = 0; i < G_N_ELEMENTS(ours); i++)
        environment = g_environ_unsetenv(environment, ours[i]);
    return environment;
}

static char **argv_new(const NodeExec *exec, char *const *command, gsize n)
{
    if (exec->unit != NULL)
        return berth_node_unit_argv(exec->unit, command, n);
    g_autoptr(GStrvBuilder) argv = g_strv_builder_new();
    for (gsize i = 0; i < n; i++)
        g_strv_builder_add(argv, command[i]);
    return g_strv_builder_end(argv);
}

static NodeExec *spawn(char *const *command, gsize n, GError **error)
{
    g_auto(GStrv) environment = environment_new();
    g_autoptr(GError) local = NULL;
    NodeExec *exec = g_new0(NodeExec, 1);
    exec->unit = berth_node_unit_is_possible() ? berth_node_unit_name() : NULL;
    g_auto(GStrv) argv = argv_new(exec, command, n);
    if (g_spawn_async_with_pipes(
            "/", argv, environment, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, set_up_child,
            NULL, &exec->pid, &exec->in_fd, &exec->streams[0].fd, &exec->streams[1].fd, &local))
        return exec;
    g_free(exec->unit);
    g_free(exec);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "cannot run '%s' on the host: %s",
                command[0], local->message);
    return NULL;
}

BerthExec *berth_node_exec_open(char *const *command, gsize n, const BerthExecFuncs *funcs,
                                gpointer user_data, GError **error)
{
    static const BerthExecClass class = {node_exec_input, node_exec_control, node_exec_resize,
                                         node_exec_close};
    NodeExec *exec = spawn(command, n, error);
    if (exec == NULL)
        return NULL;
    exec->base.class = &class;
    exec->funcs = funcs;
    exec->user_data = user_data;
    berth__exit__init(&exec->exit);
    g_unix_set_fd_nonblocking(exec->in_fd, TRUE, NULL);
    for (guint i = 0; i < 2; i++) {
        exec->streams[i].exec = exec;
        exec->streams[i].is_stderr = i == 1;
        g_unix_set_fd_nonblocking(exec->streams[i].fd, TRUE, NULL);
        watch_stream(&exec->streams[i]);
    }
    g_child_watch_add(exec->pid, on_reaped, exec);
    return &exec->base;
}
