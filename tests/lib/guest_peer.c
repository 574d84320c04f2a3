/* SPDX-License-Identifier: Apache-2.0 */
/* Owns one end of a channel in a test, and the rules that the guest's end must keep: output without gaps
 * and never changed, Ended only after all output was acknowledged, nothing of an older session
 * counted. */
#include "tests/lib/guest_peer.h"

#include "common/channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FILE_CHUNK (256u * 1024u)
/* When no answer comes to Hello, the guest may wait for the rest of a frame that was cut. */
#define HELLO_PATIENCE_MSEC 1000

GuestPeer *guest_peer_new(const char *socket_path, guint32 usage_interval_msec)
{
    GuestPeer *peer = g_new0(GuestPeer, 1);

    peer->path = g_strdup(socket_path);
    peer->fd = -1;
    peer->usage_interval_msec = usage_interval_msec;
    peer->output[0] = g_byte_array_new();
    peer->output[1] = g_byte_array_new();
    peer->files_done = g_array_new(FALSE, FALSE, sizeof(guint32));
    return peer;
}

void guest_peer_cut(GuestPeer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    g_clear_pointer(&peer->reader, berth_channel_reader_free);
    if (peer->state != NULL)
        protobuf_c_message_free_unpacked(&peer->state->base, NULL);
    peer->state = NULL;
    g_array_set_size(peer->files_done, 0);
}

void guest_peer_free(GuestPeer *peer)
{
    guest_peer_cut(peer);
    g_byte_array_unref(peer->output[0]);
    g_byte_array_unref(peer->output[1]);
    g_array_unref(peer->files_done);
    if (peer->ended != NULL)
        protobuf_c_message_free_unpacked(&peer->ended->base, NULL);
    if (peer->usage != NULL)
        berth__usage__free_unpacked(peer->usage, NULL);
    g_free(peer->failure);
    g_free(peer->path);
    g_free(peer);
}

static gboolean fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean fail(GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (error != NULL)
        *error = g_error_new_valist(G_IO_ERROR, G_IO_ERROR_FAILED, format, args);
    va_end(args);
    return FALSE;
}

/* ---- sending */

static gboolean send_bytes(GuestPeer *peer, const guint8 *bytes, gsize length, GError **error)
{
    while (length > 0) {
        ssize_t sent = send(peer->fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return fail(error, "cannot send to the guest: %s", g_strerror(errno));
        bytes += sent;
        length -= (gsize)sent;
    }
    return TRUE;
}

gboolean guest_peer_send(GuestPeer *peer, Berth__ToGuest *message, gsize limit, GError **error)
{
    g_autofree guint8 *frame = NULL;
    gsize length;

    message->session = peer->session;
    length = berth__to_guest__get_packed_size(message);
    frame = g_malloc(BERTH_CHANNEL_HEADER_BYTES + length);
    berth__to_guest__pack(message, frame + BERTH_CHANNEL_HEADER_BYTES);
    berth_channel_header(frame, frame + BERTH_CHANNEL_HEADER_BYTES, length);
    length += BERTH_CHANNEL_HEADER_BYTES;
    return send_bytes(peer, frame, limit != 0 ? MIN(limit, length) : length, error);
}

static gboolean send_hello(GuestPeer *peer, GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__Hello hello = BERTH__TO_GUEST__HELLO__INIT;

    hello.session = peer->session;
    hello.clock_usec = (guint64)g_get_real_time();
    hello.usage_interval_msec = peer->usage_interval_msec;
    message.body_case = BERTH__TO_GUEST__BODY_HELLO;
    message.hello = &hello;
    return guest_peer_send(peer, &message, 0, error);
}

static gboolean answer_clock(GuestPeer *peer, const Berth__FromGuest__AskClock *question,
                             GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__Clock clock = BERTH__TO_GUEST__CLOCK__INIT;

    peer->clock_questions++;
    clock.stamp_usec = question->stamp_usec;
    clock.clock_usec = (guint64)g_get_real_time();
    message.body_case = BERTH__TO_GUEST__BODY_CLOCK;
    message.clock = &clock;
    return guest_peer_send(peer, &message, 0, error);
}

static gboolean send_ack(GuestPeer *peer, GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__Ack ack = BERTH__TO_GUEST__ACK__INIT;

    ack.stdout_bytes = peer->output[0]->len;
    ack.stderr_bytes = peer->output[1]->len;
    message.body_case = BERTH__TO_GUEST__BODY_ACK;
    message.ack = &ack;
    return guest_peer_send(peer, &message, 0, error);
}

gboolean guest_peer_send_task(GuestPeer *peer, Berth__GuestTask *task, GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;

    message.body_case = BERTH__TO_GUEST__BODY_TASK;
    message.task = task;
    return guest_peer_send(peer, &message, 0, error);
}

gboolean guest_peer_send_file(GuestPeer *peer, guint32 index, gsize offset, GBytes *content,
                              GError **error)
{
    gsize size;
    const guint8 *bytes = g_bytes_get_data(content, &size);

    for (; offset < size; offset += FILE_CHUNK) {
        Berth__ToGuest message = BERTH__TO_GUEST__INIT;
        Berth__ToGuest__FileData data = BERTH__TO_GUEST__FILE_DATA__INIT;

        data.index = index;
        data.offset = offset;
        data.data.data = (guint8 *)bytes + offset;
        data.data.len = MIN(FILE_CHUNK, size - offset);
        message.body_case = BERTH__TO_GUEST__BODY_FILE;
        message.file = &data;
        if (!guest_peer_send(peer, &message, 0, error))
            return FALSE;
    }
    return TRUE;
}

gboolean guest_peer_send_run(GuestPeer *peer, GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__Run run = BERTH__TO_GUEST__RUN__INIT;

    message.body_case = BERTH__TO_GUEST__BODY_RUN;
    message.run = &run;
    run.clock_usec = (guint64)g_get_real_time();
    peer->run_usec = (gint64)run.clock_usec;
    return guest_peer_send(peer, &message, 0, error);
}

gboolean guest_peer_send_signal(GuestPeer *peer, int signal, GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__Signal body = BERTH__TO_GUEST__SIGNAL__INIT;

    body.signal = (guint32)signal;
    message.body_case = BERTH__TO_GUEST__BODY_SIGNAL;
    message.signal = &body;
    return guest_peer_send(peer, &message, 0, error);
}

gboolean guest_peer_send_give_back(GuestPeer *peer, guint64 resident_mib, GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__GiveBack body = BERTH__TO_GUEST__GIVE_BACK__INIT;

    body.resident_mib = resident_mib;
    message.body_case = BERTH__TO_GUEST__BODY_GIVE_BACK;
    message.give_back = &body;
    return guest_peer_send(peer, &message, 0, error);
}

gboolean guest_peer_send_power_off(GuestPeer *peer, GError **error)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__PowerOff body = BERTH__TO_GUEST__POWER_OFF__INIT;

    message.body_case = BERTH__TO_GUEST__BODY_POWER_OFF;
    message.power_off = &body;
    return guest_peer_send(peer, &message, 0, error);
}

gboolean guest_peer_submit(GuestPeer *peer, Berth__GuestTask *task, GBytes *const *contents,
                           gsize n_contents, GError **error)
{
    if (!guest_peer_send_task(peer, task, error))
        return FALSE;
    for (gsize i = 0; i < n_contents; i++)
        if (!guest_peer_send_file(peer, (guint32)i, 0, contents[i], error))
            return FALSE;
    return guest_peer_send_run(peer, error);
}

/* ---- receiving */

static gboolean take_output(GuestPeer *peer, const Berth__FromGuest__Output *output, GError **error)
{
    GByteArray *have = peer->output[output->is_stderr ? 1 : 0];
    gsize known;

    if (output->offset > have->len)
        return fail(error, "gap: output at %" G_GUINT64_FORMAT ", but only %u bytes came",
                    output->offset, have->len);
    known = MIN(have->len - (gsize)output->offset, output->data.len);
    if (known > 0 && memcmp(have->data + output->offset, output->data.data, known) != 0)
        return fail(error, "output at %" G_GUINT64_FORMAT " was sent again but is not the same",
                    output->offset);
    g_byte_array_append(have, output->data.data + known, (guint)(output->data.len - known));
    return peer->hold_acks || send_ack(peer, error);
}

static gboolean take_ended(GuestPeer *peer, Berth__FromGuest *message, GError **error)
{
    const Berth__Exit *exit_status = message->ended->exit;

    if (exit_status->stdout_bytes != peer->output[0]->len ||
        exit_status->stderr_bytes != peer->output[1]->len)
        return fail(error, "ended before its output was complete");
    if (peer->ended != NULL)
        protobuf_c_message_free_unpacked(&peer->ended->base, NULL);
    peer->ended = g_steal_pointer(&message->ended);
    message->body_case = BERTH__FROM_GUEST__BODY__NOT_SET;
    peer->ended_count++;
    return TRUE;
}

static gboolean take_message(GuestPeer *peer, Berth__FromGuest *message, GError **error)
{
    if (message->session != peer->session)
        return TRUE;
    if (message->body_case == BERTH__FROM_GUEST__BODY_ASK_CLOCK)
        return answer_clock(peer, message->ask_clock, error);
    if (peer->state == NULL && message->body_case != BERTH__FROM_GUEST__BODY_STATE)
        return fail(error, "message %d came before the state", (int)message->body_case);
    switch (message->body_case) {
    case BERTH__FROM_GUEST__BODY_STATE:
        if (peer->state != NULL)
            protobuf_c_message_free_unpacked(&peer->state->base, NULL);
        peer->state = g_steal_pointer(&message->state);
        message->body_case = BERTH__FROM_GUEST__BODY__NOT_SET;
        return TRUE;
    case BERTH__FROM_GUEST__BODY_OUTPUT:
        return take_output(peer, message->output, error);
    case BERTH__FROM_GUEST__BODY_STARTED:
        peer->started = TRUE;
        peer->start_usec = message->started->start_usec;
        return TRUE;
    case BERTH__FROM_GUEST__BODY_ENDED:
        return take_ended(peer, message, error);
    case BERTH__FROM_GUEST__BODY_USAGE:
        if (peer->usage != NULL)
            berth__usage__free_unpacked(peer->usage, NULL);
        peer->usage = g_steal_pointer(&message->usage);
        message->body_case = BERTH__FROM_GUEST__BODY__NOT_SET;
        peer->usage_count++;
        return TRUE;
    case BERTH__FROM_GUEST__BODY_FILE_DONE:
        g_array_append_val(peer->files_done, message->file_done->index);
        return TRUE;
    case BERTH__FROM_GUEST__BODY_FAILURE:
        g_free(peer->failure);
        peer->failure = g_strdup(message->failure->message);
        peer->disk_is_full = message->failure->disk_full;
        return TRUE;
    default:
        return fail(error, "message of unknown kind %d", (int)message->body_case);
    }
}

static gboolean take_frames(GuestPeer *peer, GError **error)
{
    const guint8 *payload;
    gsize length;

    while ((payload = berth_channel_reader_next(peer->reader, &length)) != NULL) {
        Berth__FromGuest *message = berth__from_guest__unpack(NULL, length, payload);
        gboolean ok;

        if (message == NULL)
            return fail(error, "a frame of %zu bytes is no message", length);
        ok = take_message(peer, message, error);
        berth__from_guest__free_unpacked(message, NULL);
        if (!ok)
            return FALSE;
    }
    return TRUE;
}

/* Takes what comes within TIMEOUT_MSEC, which may be nothing. */
static gboolean step(GuestPeer *peer, gint64 timeout_msec, GError **error)
{
    struct pollfd fd = {.fd = peer->fd, .events = POLLIN};
    gsize room;
    guint8 *space = berth_channel_reader_space(peer->reader, &room);
    ssize_t got;

    if (poll(&fd, 1, (int)MAX(timeout_msec, 0)) <= 0)
        return TRUE;
    got = recv(peer->fd, space, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return TRUE;
    if (got <= 0)
        return fail(error, "the guest's end of the channel has closed");
    berth_channel_reader_added(peer->reader, (gsize)got);
    return take_frames(peer, error);
}

gboolean guest_peer_wait(GuestPeer *peer, GuestPeerCondition done, gpointer data,
                         guint timeout_msec, GError **error)
{
    gint64 deadline = g_get_monotonic_time() / 1000 + timeout_msec;

    while (!done(peer, data)) {
        gint64 left = deadline - g_get_monotonic_time() / 1000;

        if (left <= 0)
            return fail(error, "not within %u ms (%u and %u bytes of output so far, failure: %s)",
                        timeout_msec, peer->output[0]->len, peer->output[1]->len,
                        peer->failure != NULL ? peer->failure : "none");
        if (!step(peer, left, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean is_ended(const GuestPeer *peer, gpointer data)
{
    return peer->ended != NULL;
}

gboolean guest_peer_wait_ended(GuestPeer *peer, guint timeout_msec, GError **error)
{
    return guest_peer_wait(peer, is_ended, NULL, timeout_msec, error);
}

/* ---- connecting */

static gboolean open_socket(GuestPeer *peer, gint64 deadline, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 30};

    g_strlcpy(address.sun_path, peer->path, sizeof address.sun_path);
    peer->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(peer->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    while (connect(peer->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        /* QEMU has not made it yet, or has not noticed that the last one is gone. */
        if (g_get_monotonic_time() / 1000 > deadline)
            return fail(error, "cannot connect to %s: %s", peer->path, g_strerror(errno));
        g_usleep(5000);
    }
    return TRUE;
}

static gboolean has_state(const GuestPeer *peer, gpointer data)
{
    return peer->state != NULL;
}

gboolean guest_peer_connect(GuestPeer *peer, guint timeout_msec, GError **error)
{
    static const guint8 padding[BERTH_CHANNEL_HEADER_BYTES + BERTH_CHANNEL_PAYLOAD_MAX];
    gint64 deadline = g_get_monotonic_time() / 1000 + timeout_msec;

    guest_peer_cut(peer);
    if (!open_socket(peer, deadline, error))
        return FALSE;
    peer->session = (guint64)g_random_int() << 32 | g_random_int();
    peer->reader = berth_channel_reader_new();
    if (!send_hello(peer, error))
        return FALSE;
    while (!guest_peer_wait(peer, has_state, NULL, HELLO_PATIENCE_MSEC, NULL)) {
        if (g_get_monotonic_time() / 1000 > deadline)
            return fail(error, "the guest did not answer Hello within %u ms", timeout_msec);
        if (!send_bytes(peer, padding, sizeof padding, error) || !send_hello(peer, error))
            return FALSE;
    }
    return TRUE;
}
