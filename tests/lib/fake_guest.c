/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the guest's end of one channel (tests/lib/fake_guest.h). */
#include <config.h>

#include "tests/lib/fake_guest.h"

#include <errno.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- saying --------------------------------------------------------------------------------- */

static void write_all(FakeGuest *guest, const guint8 *bytes, gsize length)
{
    while (length > 0 && guest->fd >= 0) {
        ssize_t sent = send(guest->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            g_main_context_iteration(NULL, FALSE);
            continue;
        }
        if (sent < 0)
            return; /* the agent has hung up */
        bytes += sent;
        length -= (gsize)sent;
    }
}

static void say(FakeGuest *guest, Berth__FromGuest *message)
{
    message->session = guest->session;
    gsize length = berth__from_guest__get_packed_size(message);
    g_autofree guint8 *frame = g_malloc(BERTH_CHANNEL_HEADER_BYTES + length);
    berth__from_guest__pack(message, frame + BERTH_CHANNEL_HEADER_BYTES);
    berth_channel_header(frame, frame + BERTH_CHANNEL_HEADER_BYTES, length);
    write_all(guest, frame, BERTH_CHANNEL_HEADER_BYTES + length);
}

static void say_state(FakeGuest *guest)
{
    Berth__FromGuest__State state = BERTH__FROM_GUEST__STATE__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    state.has_task = guest->has_task;
    state.running = guest->is_running;
    state.stdout_acked = guest->acked[0];
    state.stderr_acked = guest->acked[1];
    message.body_case = BERTH__FROM_GUEST__BODY_STATE;
    message.state = &state;
    say(guest, &message);
}

void fake_guest_say_file_done(FakeGuest *guest)
{
    Berth__FromGuest__FileDone file_done = BERTH__FROM_GUEST__FILE_DONE__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    message.body_case = BERTH__FROM_GUEST__BODY_FILE_DONE;
    message.file_done = &file_done;
    say(guest, &message);
}

void fake_guest_say_started(FakeGuest *guest)
{
    Berth__FromGuest__Started started = BERTH__FROM_GUEST__STARTED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    guest->has_task = guest->is_running = TRUE;
    started.start_usec = 1;
    message.body_case = BERTH__FROM_GUEST__BODY_STARTED;
    message.started = &started;
    say(guest, &message);
}

void fake_guest_say_output(FakeGuest *guest, gboolean is_stderr, const void *data, gsize length)
{
    Berth__FromGuest__Output output = BERTH__FROM_GUEST__OUTPUT__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    output.is_stderr = is_stderr;
    output.offset = guest->said[is_stderr];
    output.data = (ProtobufCBinaryData){.len = length, .data = (guint8 *)data};
    guest->said[is_stderr] += length;
    message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
    message.output = &output;
    say(guest, &message);
}

void fake_guest_say_usage(FakeGuest *guest, const Berth__Usage *usage)
{
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    message.body_case = BERTH__FROM_GUEST__BODY_USAGE;
    message.usage = (Berth__Usage *)usage;
    say(guest, &message);
}

void fake_guest_say_ended(FakeGuest *guest, guint32 status)
{
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__FromGuest__Ended ended = BERTH__FROM_GUEST__ENDED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    exit.status = status;
    exit.stdout_bytes = guest->said[0];
    exit.stderr_bytes = guest->said[1];
    ended.exit = &exit;
    message.body_case = BERTH__FROM_GUEST__BODY_ENDED;
    message.ended = &ended;
    say(guest, &message);
}

/* --- hearing -------------------------------------------------------------------------------- */

static void take(FakeGuest *guest, const Berth__ToGuest *message)
{
    switch (message->body_case) {
    case BERTH__TO_GUEST__BODY_HELLO:
        guest->hellos++;
        guest->session = message->hello->session;
        guest->memory_max_mib = message->hello->memory_max_mib;
        say_state(guest);
        break;
    case BERTH__TO_GUEST__BODY_ACK:
        guest->acked[0] = message->ack->stdout_bytes;
        guest->acked[1] = message->ack->stderr_bytes;
        break;
    case BERTH__TO_GUEST__BODY_MEASURE:
        guest->measures++;
        guest->measure_msec = message->measure->interval_msec;
        break;
    case BERTH__TO_GUEST__BODY_GIVE_BACK:
        guest->gives_back++;
        guest->resident_mib = message->give_back->resident_mib;
        break;
    case BERTH__TO_GUEST__BODY_SIGNAL:
        guest->signal = message->signal->signal;
        guest->signal_is_for_command = message->signal->command_only;
        break;
    default:
        break;
    }
}

static void hang_up(FakeGuest *guest)
{
    g_clear_handle_id(&guest->source, g_source_remove);
    if (guest->fd >= 0)
        close(guest->fd);
    guest->fd = -1;
    berth_channel_reader_reset(guest->reader);
}

static gboolean on_readable(int fd, GIOCondition condition, gpointer data)
{
    FakeGuest *guest = data;
    size_t length, room;
    guint8 *space = berth_channel_reader_space(guest->reader, &room);
    ssize_t got = recv(fd, space, room, MSG_DONTWAIT);
    if (got <= 0) {
        guest->source = 0;
        hang_up(guest);
        return G_SOURCE_REMOVE;
    }
    berth_channel_reader_added(guest->reader, (size_t)got);
    const guint8 *payload;
    while ((payload = berth_channel_reader_next(guest->reader, &length)) != NULL) {
        Berth__ToGuest *message = berth__to_guest__unpack(NULL, length, payload);
        if (message != NULL)
            take(guest, message);
        if (message != NULL)
            berth__to_guest__free_unpacked(message, NULL);
    }
    return G_SOURCE_CONTINUE;
}

static gboolean on_connection(int listener, GIOCondition condition, gpointer data)
{
    FakeGuest *guest = data;
    hang_up(guest);
    guest->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (guest->fd >= 0)
        guest->source = g_unix_fd_add(guest->fd, G_IO_IN | G_IO_HUP, on_readable, guest);
    return G_SOURCE_CONTINUE;
}

FakeGuest *fake_guest_new(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    FakeGuest *guest = g_new0(FakeGuest, 1);
    guest->fd = -1;
    guest->reader = berth_channel_reader_new();
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    g_unlink(path);
    guest->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(guest->listener, (const struct sockaddr *)(const void *)&address, sizeof address) !=
            0 ||
        listen(guest->listener, 4) != 0)
        g_error("cannot listen at %s", path);
    guest->listen_source = g_unix_fd_add(guest->listener, G_IO_IN, on_connection, guest);
    return guest;
}

void fake_guest_free(FakeGuest *guest)
{
    if (guest == NULL)
        return;
    hang_up(guest);
    g_source_remove(guest->listen_source);
    close(guest->listener);
    berth_channel_reader_free(guest->reader);
    g_free(guest);
}
