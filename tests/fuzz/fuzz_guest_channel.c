/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest says to the agent. The input is a script: each step is a kind, a length and bytes,
 * which become a well-formed frame of the present session, a frame of their own, or bytes as they
 * are, so that the fuzzer gets behind checksums and session numbers. The log never has a gap, and
 * what is accepted stays in bounds. */
#include <config.h>

#include "common/channel.h"
#include "nodeagent/guest_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
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

static void on_answered(gpointer data)
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

static void on_log_progress(gpointer data)
{
    const Target *target = data;
    if (target->channel != NULL)
        berth_guest_channel_log_progress(target->channel);
}

/* --- the guest ------------------------------------------------------------------------------- */

static void turn(void)
{
    for (guint i = 0; i < 32 && g_main_context_iteration(NULL, FALSE); i++)
        ;
}

/* Reads the Hello of the present session. */
static void learn_session(Target *target)
{
    uint8_t bytes[4096];
    ssize_t got = recv(target->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= (ssize_t)BERTH_CHANNEL_HEADER_BYTES)
        return;
    Berth__ToGuest *message = berth__to_guest__unpack(NULL, bytes[4] | (size_t)bytes[5] << 8,
                                                      bytes + BERTH_CHANNEL_HEADER_BYTES);
    if (message != NULL && message->body_case == BERTH__TO_GUEST__BODY_HELLO)
        target->session = message->hello->session;
    if (message != NULL)
        berth__to_guest__free_unpacked(message, NULL);
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

/* The message that PAYLOAD is, if it is one, but of the present session. */
static void say_in_session(Target *target, const uint8_t *payload, size_t length)
{
    Berth__FromGuest *message = berth__from_guest__unpack(NULL, length, payload);
    if (message == NULL) {
        say_payload(target, payload, length);
        return;
    }
    message->session = target->session;
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
    learn_session(target);
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
            say_bytes(target, data + at, length);
            break;
        }
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
    g_clear_pointer(&target.channel, berth_guest_channel_free);
    berth_log_writer_free(target.writer);
    turn();
    close(target.fd);
    return 0;
}
