/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest says to the agent. The input is a script: each step is a kind, a length and bytes,
 * which become a well-formed frame of the present session, a frame of their own, or bytes as they
 * are, so that the fuzzer gets behind checksums and session numbers. One byte as it is says what somebody does
 * with commands in the guest, whose numbers from 1 on in frames of the session become those that they have. The
 * log never has a gap, nor has a command's output, and what is accepted stays in bounds. */
#include <config.h>

#include "common/channel.h"
#include "nodeagent/guest_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EXECS_MAX 4u

typedef struct {
    BerthExec *exec; /* NULL: it does not run */
    guint64 received[2];
    guint64 acked[2];
    gboolean is_taken; /* no input of it is on its way */
} Command;

typedef struct {
    Command commands[EXECS_MAX];
    guint64 ids[EXECS_MAX]; /* as the guest has heard of them, the newest first */
    guint64 durable[BERTH_N_STREAMS];
    BerthLogWriter *writer;
    BerthGuestChannel *channel;
    int fd;
    guint64 session;
} Target;

/* --- a log that only counts ------------------------------------------------------------------ */

static void count_write(gpointer data, const char *log_id, guint64 offset, GBytes *bytes,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    Target *target = data;
    guint stream = g_str_has_suffix(log_id, ".err");
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    g_assert(offset <= target->durable[stream]);
    target->durable[stream] = MAX(target->durable[stream], offset + g_bytes_get_size(bytes));
    g_task_return_boolean(task, TRUE);
}

static gboolean count_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static const BerthLogStore store = {count_write, count_finish};

/* --- what the channel says ------------------------------------------------------------------- */

static void on_answered(gboolean runs, gpointer data)
{
}

static void on_delayed(gint64 usec, gpointer data)
{
    g_assert(usec >= 0);
}

static void on_started(guint64 start_usec, gpointer data)
{
}

static void on_ended(const Berth__FromGuest__Ended *ended, gpointer data)
{
    const Target *target = data;
    g_assert(ended->exit->stdout_bytes == target->durable[0]);
    g_assert(ended->exit->stderr_bytes == target->durable[1]);
}

static void on_usage(const Berth__Usage *usage, gpointer data)
{
}

static void on_failed(const char *message, gboolean disk_full, gpointer data)
{
    g_assert(g_utf8_validate(message, -1, NULL) && strlen(message) <= 4096);
}

/* --- commands beside the job's --------------------------------------------------------------- */

static void on_exec_output(gboolean is_stderr, guint64 offset, const guint8 *data, gsize length,
                           gpointer user_data)
{
    Command *command = user_data;
    guint stream = is_stderr ? 1 : 0;
    g_assert(command->exec != NULL && length > 0 && offset == command->received[stream]);
    command->received[stream] += length;
    g_assert(command->received[stream] <= command->acked[stream] + BERTH_EXEC_WINDOW_BYTES);
}

static void on_exec_taken(gpointer user_data)
{
    Command *command = user_data;
    g_assert(command->exec != NULL && !command->is_taken);
    command->is_taken = TRUE;
}

static void on_exec_ended(const Berth__Exit *exit, const GError *error, gpointer user_data)
{
    Command *command = user_data;
    g_assert(command->exec != NULL && (exit == NULL) != (error == NULL));
    g_assert(exit == NULL || (exit->status <= 255 && g_utf8_validate(exit->error, -1, NULL)));
    command->exec = NULL;
}

static void open_command(const Target *target, Command *command)
{
    static const BerthExecFuncs funcs = {on_exec_output, on_exec_taken, on_exec_ended};
    static char *words[] = {(char *)"sh"};
    Berth__ExecRequest request = BERTH__EXEC_REQUEST__INIT;
    request.command = words;
    request.n_command = 1;
    *command = (Command){.is_taken = TRUE};
    command->exec = berth_guest_execs_open(berth_guest_channel_execs(target->channel), &request,
                                           &funcs, command, NULL);
}

static void close_command(Command *command)
{
    BerthExec *exec = g_steal_pointer(&command->exec);
    if (exec != NULL)
        exec->class->close(exec);
}

/* What BYTE says is done: its lowest bits say to which, the next three what. */
static void command_step(Target *target, guint8 byte)
{
    static const Berth__Terminal size = {.rows = 24, .columns = 80};
    Command *command = &target->commands[byte % EXECS_MAX];
    BerthExec *exec = command->exec;
    guint what = byte / EXECS_MAX % 6;
    if (exec == NULL) {
        open_command(target, command);
    } else if (what == 0 && command->is_taken) {
        command->is_taken = FALSE;
        exec->class->input(exec, &byte, 1, byte >= 128);
    } else if (what <= 2) {
        memcpy(command->acked, command->received, sizeof command->acked);
        exec->class->control(exec, command->acked, byte >= 128 ? 15 : 0);
    } else if (what == 3) {
        exec->class->resize(exec, &size);
    } else if (what == 4) {
        close_command(command);
    }
}

/* --- the guest ------------------------------------------------------------------------------- */

static void on_log_progress(gpointer data)
{
    const Target *target = data;
    if (target->channel != NULL)
        berth_guest_channel_log_progress(target->channel);
}

static void turn(void)
{
    for (guint i = 0; i < 32 && g_main_context_iteration(NULL, FALSE); i++)
        ;
}

static void hear(Target *target, const Berth__ToGuest *message)
{
    if (message->body_case == BERTH__TO_GUEST__BODY_HELLO) {
        target->session = message->hello->session;
    } else if (message->body_case == BERTH__TO_GUEST__BODY_EXEC) {
        memmove(target->ids + 1, target->ids, (EXECS_MAX - 1) * sizeof *target->ids);
        target->ids[0] = message->exec->exec;
    }
}

/* Reads what the agent has said: sessions and commands have numbers. */
static void listen_to(Target *target)
{
    static uint8_t bytes[1u << 18];
    ssize_t got = recv(target->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    size_t size = got > 0 ? (size_t)got : 0, at = 0;
    while (size - at > BERTH_CHANNEL_HEADER_BYTES) {
        size_t length = bytes[at + 4] | (size_t)bytes[at + 5] << 8;
        at += BERTH_CHANNEL_HEADER_BYTES;
        if (length > size - at)
            break;
        Berth__ToGuest *message = berth__to_guest__unpack(NULL, length, bytes + at);
        at += length;
        if (message == NULL)
            continue;
        hear(target, message);
        berth__to_guest__free_unpacked(message, NULL);
    }
}

static void say_bytes(Target *target, const uint8_t *bytes, size_t length)
{
    (void)!send(target->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    turn();
}

static void say_payload(Target *target, const uint8_t *payload, size_t length)
{
    g_autofree uint8_t *frame = g_malloc(BERTH_CHANNEL_HEADER_BYTES + length);
    if (length > 0)
        memcpy(frame + BERTH_CHANNEL_HEADER_BYTES, payload, length);
    berth_channel_header(frame, frame + BERTH_CHANNEL_HEADER_BYTES, length);
    say_bytes(target, frame, BERTH_CHANNEL_HEADER_BYTES + length);
}

/* 1 is the newest that the guest has heard of. */
static void set_command(const Target *target, Berth__FromGuest *message)
{
    guint64 *id = NULL;
    if (message->body_case == BERTH__FROM_GUEST__BODY_EXEC_OUTPUT)
        id = &message->exec_output->exec;
    else if (message->body_case == BERTH__FROM_GUEST__BODY_EXEC_TAKEN)
        id = &message->exec_taken->exec;
    else if (message->body_case == BERTH__FROM_GUEST__BODY_EXEC_ENDED)
        id = &message->exec_ended->exec;
    if (id != NULL && *id >= 1 && *id <= EXECS_MAX)
        *id = target->ids[*id - 1];
}

/* The message that PAYLOAD is, if it is one, but of the present session. */
static void say_in_session(Target *target, const uint8_t *payload, size_t length)
{
    Berth__FromGuest *message = berth__from_guest__unpack(NULL, length, payload);
    if (message == NULL) {
        say_payload(target, payload, length);
        return;
    }
    message->session = target->session;
    set_command(target, message);
    gsize packed = berth__from_guest__get_packed_size(message);
    g_autofree uint8_t *bytes = g_malloc(packed);
    berth__from_guest__pack(message, bytes);
    berth__from_guest__free_unpacked(message, NULL);
    if (packed <= BERTH_CHANNEL_PAYLOAD_MAX)
        say_payload(target, bytes, packed);
}

static void reconnect(Target *target)
{
    int fds[2];
    if (target->fd >= 0)
        close(target->fd);
    turn(); /* the channel notices, and would dial later */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
        g_error("no socket pair");
    target->fd = fds[1];
    berth_guest_channel_take_fd(target->channel, fds[0]);
    listen_to(target);
}

static void play(Target *target, const uint8_t *data, size_t size)
{
    size_t at = 0;
    while (at + 2 <= size) {
        uint8_t kind = data[at] & 3;
        size_t length = MIN((size_t)(data[at] >> 2) << 8 | data[at + 1], size - at - 2);
        at += 2;
        switch (kind) {
        case 0:
        case 1:
            say_in_session(target, data + at, length);
            break;
        case 2:
            say_payload(target, data + at, length);
            break;
        default:
            if (length == 1)
                command_step(target, data[at]);
            else
                say_bytes(target, data + at, length);
            break;
        }
        listen_to(target);
        at += length;
        if (kind == 3 && length == 0)
            reconnect(target);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const BerthGuestChannelFuncs funcs = {on_answered, on_delayed, on_started,
                                                 on_ended,    on_usage,   on_failed};
    Target target = {.fd = -1};
    g_random_set_seed(1); /* numbers of sessions and commands: the same input does the same */
    target.writer = berth_log_writer_new(&store, &target, "log", on_log_progress, &target);
    BerthGuestChannelConfig config = {.socket_path = "/nonexistent/guest.sock",
                                      .writer = target.writer,
                                      .usage_interval_msec = 1000};
    target.channel = berth_guest_channel_new(&config, &funcs, &target);
    reconnect(&target);
    play(&target, data, size);
    turn();
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        g_assert(berth_log_writer_durable(target.writer, i) <=
                 berth_log_writer_accepted(target.writer, i));
    for (guint i = 0; i < EXECS_MAX; i += 2)
        close_command(&target.commands[i]);
    g_clear_pointer(&target.channel, berth_guest_channel_free);
    for (guint i = 0; i < EXECS_MAX; i++)
        g_assert(target.commands[i].exec == NULL);
    berth_log_writer_free(target.writer);
    turn();
    close(target.fd);
    return 0;
}
