/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a channel, the guest at its other end and the logs behind it (tests/lib/channel_fixture.h). */
#include <config.h>

#include "tests/lib/channel_fixture.h"

#include "tests/lib/tempdir.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- logs in memory ------------------------------------------------------------------------- */

static void memory_write(gpointer data, const char *log_id, guint64 offset, GBytes *bytes,
                         GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
    ChannelFixture *fixture = data;
    GByteArray *log = fixture->logs[g_str_has_suffix(log_id, ".err")];
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    if (fixture->logs_are_down) {
        g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "down");
        return;
    }
    gsize length;
    const guint8 *content = g_bytes_get_data(bytes, &length);
    if (log->len < offset + length)
        g_byte_array_set_size(log, (guint)(offset + length));
    memcpy(log->data + offset, content, length);
    g_task_return_boolean(task, TRUE);
}

static gboolean memory_write_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static const BerthLogStore memory_store = {memory_write, memory_write_finish};

/* --- what the channel says ------------------------------------------------------------------ */

static void on_log_progress(gpointer data)
{
    ChannelFixture *fixture = data;
    if (fixture->channel != NULL)
        berth_guest_channel_log_progress(fixture->channel);
}

static void on_answered(gboolean runs, gpointer data)
{
    ((ChannelFixture *)data)->answered++;
}

static void on_delayed(gint64 usec, gpointer data)
{
    ((ChannelFixture *)data)->delayed_usec += usec;
}

static void on_started(guint64 start_usec, gpointer data)
{
    ChannelFixture *fixture = data;
    fixture->started++;
    fixture->start_usec = start_usec;
}

static void on_ended(const Berth__FromGuest__Ended *ended, gpointer data)
{
    ((ChannelFixture *)data)->ended++;
}

static void on_usage(const Berth__Usage *usage, gpointer data)
{
    ((ChannelFixture *)data)->usage++;
}

static void on_failed(const char *message, gboolean disk_full, gpointer data)
{
    ChannelFixture *fixture = data;
    fixture->failed++;
    g_free(fixture->failure);
    fixture->failure = g_strdup(message);
}

static const BerthGuestChannelFuncs funcs = {on_answered, on_delayed, on_started,
                                             on_ended,    on_usage,   on_failed};

/* --- the guest ------------------------------------------------------------------------------ */

void guest_hang_up(ChannelFixture *fixture)
{
    if (fixture->fd >= 0)
        close(fixture->fd);
    fixture->fd = -1;
    berth_channel_reader_reset(fixture->reader);
}

static gboolean try_accept(ChannelFixture *fixture)
{
    int fd = accept4(fixture->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return FALSE;
    guest_hang_up(fixture);
    fixture->fd = fd;
    fixture->connections++;
    return TRUE;
}

void guest_accept(ChannelFixture *fixture)
{
    run_until(try_accept(fixture));
    fixture->has_state = FALSE;
}

/* A State that was slow to come is answered by one more Hello, which gets the same State. */
static gboolean is_hello_again(ChannelFixture *fixture, Berth__ToGuest *message)
{
    if (message->body_case != BERTH__TO_GUEST__BODY_HELLO || !fixture->has_state)
        return FALSE;
    fixture->session = message->hello->session;
    fixture->hellos_again++;
    guest_say_state(fixture, fixture->state);
    berth__to_guest__free_unpacked(message, NULL);
    return TRUE;
}

Berth__ToGuest *guest_try_hear(ChannelFixture *fixture)
{
    for (;;) {
        size_t length, room;
        const guint8 *payload = berth_channel_reader_next(fixture->reader, &length);
        if (payload != NULL) {
            Berth__ToGuest *message = berth__to_guest__unpack(NULL, length, payload);
            if (is_hello_again(fixture, message))
                continue;
            return message;
        }
        guint8 *space = berth_channel_reader_space(fixture->reader, &room);
        ssize_t got = recv(fixture->fd, space, room, MSG_DONTWAIT);
        if (got <= 0)
            return NULL;
        berth_channel_reader_added(fixture->reader, (size_t)got);
    }
}

Berth__ToGuest *guest_hear(ChannelFixture *fixture, Berth__ToGuest__BodyCase body)
{
    Berth__ToGuest *message = NULL;
    run_until((message = guest_try_hear(fixture)) != NULL);
    if (message->body_case != body)
        fail_msg("the channel sent %d, not %d", (int)message->body_case, (int)body);
    return message;
}

void guest_hear_and_drop(ChannelFixture *fixture, Berth__ToGuest__BodyCase body)
{
    berth__to_guest__free_unpacked(guest_hear(fixture, body), NULL);
}

void guest_write(ChannelFixture *fixture, const guint8 *bytes, gsize length)
{
    while (length > 0) {
        ssize_t sent = send(fixture->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            g_main_context_iteration(NULL, FALSE);
            continue;
        }
        if (sent < 0)
            return; /* the channel has hung up; the test will see */
        bytes += sent;
        length -= (gsize)sent;
    }
}

GByteArray *guest_frame(ChannelFixture *fixture, Berth__FromGuest *message)
{
    message->session = message->session == 0 ? fixture->session : message->session;
    gsize length = berth__from_guest__get_packed_size(message);
    GByteArray *bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, (guint)(BERTH_CHANNEL_HEADER_BYTES + length));
    berth__from_guest__pack(message, bytes->data + BERTH_CHANNEL_HEADER_BYTES);
    berth_channel_header(bytes->data, bytes->data + BERTH_CHANNEL_HEADER_BYTES, length);
    return bytes;
}

void guest_say(ChannelFixture *fixture, Berth__FromGuest *message)
{
    g_autoptr(GByteArray) bytes = guest_frame(fixture, message);
    guest_write(fixture, bytes->data, bytes->len);
}

void guest_say_state(ChannelFixture *fixture, Berth__FromGuest__State state)
{
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    message.body_case = BERTH__FROM_GUEST__BODY_STATE;
    message.state = &state;
    fixture->state = state;
    fixture->has_state = TRUE;
    guest_say(fixture, &message);
}

gboolean channel_fixture_is_open(ChannelFixture *fixture)
{
    return berth_guest_channel_is_open(fixture->channel) ||
           (guest_try_hear(fixture) == NULL && berth_guest_channel_is_open(fixture->channel));
}

void guest_say_output(ChannelFixture *fixture, gboolean is_stderr, guint64 offset, const char *text,
                      gsize length)
{
    Berth__FromGuest__Output output = BERTH__FROM_GUEST__OUTPUT__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    output.is_stderr = is_stderr;
    output.offset = offset;
    output.data = (ProtobufCBinaryData){.len = length, .data = (guint8 *)text};
    message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
    message.output = &output;
    guest_say(fixture, &message);
}

void guest_say_started(ChannelFixture *fixture, guint64 start_usec)
{
    Berth__FromGuest__Started started = BERTH__FROM_GUEST__STARTED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    started.start_usec = start_usec;
    message.body_case = BERTH__FROM_GUEST__BODY_STARTED;
    message.started = &started;
    guest_say(fixture, &message);
}

void guest_say_ended(ChannelFixture *fixture, guint64 stdout_bytes, guint64 stderr_bytes)
{
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__FromGuest__Ended ended = BERTH__FROM_GUEST__ENDED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    exit.stdout_bytes = stdout_bytes;
    exit.stderr_bytes = stderr_bytes;
    ended.exit = &exit;
    message.body_case = BERTH__FROM_GUEST__BODY_ENDED;
    message.ended = &ended;
    guest_say(fixture, &message);
}

void guest_greet(ChannelFixture *fixture)
{
    guest_accept(fixture);
    Berth__ToGuest *hello = guest_hear(fixture, BERTH__TO_GUEST__BODY_HELLO);
    assert_true(hello->hello->session != 0);
    assert_true(hello->hello->session != fixture->session);
    assert_true(hello->hello->clock_usec > 0);
    fixture->session = hello->hello->session;
    berth__to_guest__free_unpacked(hello, NULL);
}

void channel_fixture_start(ChannelFixture *fixture, gboolean is_adopted, guint64 stdout_max,
                           guint64 stderr_max)
{
    g_autofree char *path = g_build_filename(fixture->dir, "guest.sock", NULL);
    BerthGuestChannelConfig config = {.socket_path = path,
                                      .writer = fixture->writer,
                                      .acked_max = {stdout_max, stderr_max},
                                      .is_adopted = is_adopted,
                                      .usage_interval_msec = 2000,
                                      .output_bytes_per_sec = fixture->output_bytes_per_sec};
    fixture->channel = berth_guest_channel_new(&config, &funcs, fixture);
}

void channel_fixture_start_running(ChannelFixture *fixture)
{
    channel_fixture_start(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(channel_fixture_is_open(fixture));
}

void channel_fixture_wait_for_log(ChannelFixture *fixture, guint stream, gsize length)
{
    run_until(fixture->logs[stream]->len >= length);
    assert_int_equal(fixture->logs[stream]->len, length);
}

void guest_hear_ack(ChannelFixture *fixture, guint64 stdout_bytes, guint64 stderr_bytes)
{
    Berth__ToGuest *message = NULL;
    for (;;) {
        message = guest_hear(fixture, BERTH__TO_GUEST__BODY_ACK);
        gboolean is_it = message->ack->stdout_bytes == stdout_bytes &&
                         message->ack->stderr_bytes == stderr_bytes;
        assert_true(message->ack->stdout_bytes <= stdout_bytes);
        assert_true(message->ack->stderr_bytes <= stderr_bytes);
        berth__to_guest__free_unpacked(message, NULL);
        if (is_it)
            return;
    }
}

/* --- fixture -------------------------------------------------------------------------------- */

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address) != 0 ||
        listen(fd, 4) != 0)
        g_error("cannot listen at %s", path);
    return fd;
}

static void on_storage_opened(gpointer data)
{
    ((ChannelFixture *)data)->storage_is_open = TRUE;
}

int channel_fixture_make(void **state)
{
    void *dir = NULL;
    if (tempdir_make(&dir) != 0)
        return -1;
    ChannelFixture *fixture = g_new0(ChannelFixture, 1);
    g_autofree char *socket = g_build_filename(dir, "guest.sock", NULL);
    fixture->dir = dir;
    fixture->listener = listen_at(socket);
    fixture->fd = -1;
    fixture->reader = berth_channel_reader_new();
    fixture->storage =
        (BerthStorageConfig){.kind = (char *)"dir", .path = fixture->dir, .op_timeout_sec = 30};
    fixture->lane = berth_storage_lane_new(&fixture->storage);
    berth_storage_lane_set_changed_func(fixture->lane, on_storage_opened, fixture);
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        fixture->logs[i] = g_byte_array_new();
    fixture->writer = berth_log_writer_new(&memory_store, fixture, "log", on_log_progress, fixture);
    *state = fixture;
    return 0;
}

int channel_fixture_free(void **state)
{
    ChannelFixture *fixture = *state;
    g_clear_pointer(&fixture->channel, berth_guest_channel_free);
    berth_log_writer_free(fixture->writer);
    berth_storage_lane_free(fixture->lane);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    guest_hang_up(fixture);
    close(fixture->listener);
    berth_channel_reader_free(fixture->reader);
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        g_byte_array_unref(fixture->logs[i]);
    g_free(fixture->failure);
    void *dir = fixture->dir;
    g_free(fixture);
    return tempdir_remove(&dir);
}

/* --- a task -------------------------------------------------------------------------------------- */

static void digest_of(const guint8 *data, gsize length, guint8 digest[BERTH_SHA256_BYTES])
{
    gsize size = BERTH_SHA256_BYTES;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, data, (gssize)length);
    g_checksum_get_digest(checksum, digest, &size);
}

void channel_task_init(ChannelTask *task, const guint8 *content, gsize length)
{
    static char command[] = "/bin/true", name[] = "input", environment[] = "A=1";
    *task = (ChannelTask){BERTH__START_GUEST_REQUEST__INIT, BERTH__GUEST_TASK__INIT,
                          BERTH__BLOB_REF__INIT, BERTH__BLOB_REF__INIT, BERTH__GUEST_FILE__INIT};
    digest_of((const guint8 *)environment, 4, task->digests[0]);
    digest_of(content, length, task->digests[1]);
    task->environment.sha256 =
        (ProtobufCBinaryData){.len = BERTH_SHA256_BYTES, .data = task->digests[0]};
    task->environment.size_bytes = 4;
    task->input.sha256 = (ProtobufCBinaryData){.len = BERTH_SHA256_BYTES, .data = task->digests[1]};
    task->input.size_bytes = length;
    task->inline_blobs[0] = (ProtobufCBinaryData){.len = 4, .data = (guint8 *)environment};
    task->command[0] = command;
    task->file.path = name;
    task->file.blob = &task->input;
    task->files[0] = &task->file;
    task->task.command = task->command;
    task->task.n_command = 1;
    task->task.environment = &task->environment;
    task->task.inputs = task->files;
    task->task.n_inputs = 1;
    task->request.task = &task->task;
    task->request.inline_blobs = task->inline_blobs;
    task->request.n_inline_blobs = 1;
}

BerthGuestFiles *channel_fixture_files(ChannelFixture *fixture, ChannelTask *task)
{
    g_autoptr(GError) error = NULL;
    BerthGuestFiles *files = berth_guest_files_new(&task->request, fixture->lane, &error);
    assert_no_error(error);
    return files;
}
