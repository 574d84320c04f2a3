/* SPDX-License-Identifier: Apache-2.0 */
/* A guest scripted by the test, at the other end of a real unix socket, and logs in memory. */
#include <config.h>

#include "common/channel.h"
#include "nodeagent/guest_channel.h"
#include "proto/berth.pb-c.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
    char *dir;
    BerthStorageConfig storage;
    BerthStorageLane *lane;
    gboolean storage_is_open;
    /* logs */
    GByteArray *logs[BERTH_N_STREAMS];
    gboolean logs_are_down;
    BerthLogWriter *writer;
    /* the channel and what it said */
    BerthGuestChannel *channel;
    guint answered, started, ended, usage, failed;
    gint64 delayed_usec;
    guint64 start_usec;
    char *failure;
    /* the guest */
    int listener;
    int fd; /* -1: not connected */
    guint connections;
    BerthChannelReader *reader;
    guint64 session;
    Berth__FromGuest__State state; /* said last on this connection, if has_state */
    gboolean has_state;
    guint hellos_again; /* Hellos that were said again for their time */
} Fixture;

/* --- logs in memory ------------------------------------------------------------------------- */

static void memory_write(gpointer data, const char *log_id, guint64 offset, GBytes *bytes,
                         GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
    Fixture *fixture = data;
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
    Fixture *fixture = data;
    if (fixture->channel != NULL)
        berth_guest_channel_log_progress(fixture->channel);
}

static void on_answered(gpointer data)
{
    ((Fixture *)data)->answered++;
}

static void on_delayed(gint64 usec, gpointer data)
{
    ((Fixture *)data)->delayed_usec += usec;
}

static void on_started(guint64 start_usec, gpointer data)
{
    Fixture *fixture = data;
    fixture->started++;
    fixture->start_usec = start_usec;
}

static void on_ended(const Berth__FromGuest__Ended *ended, gpointer data)
{
    ((Fixture *)data)->ended++;
}

static void on_usage(const Berth__Usage *usage, gpointer data)
{
    ((Fixture *)data)->usage++;
}

static void on_failed(const char *message, gpointer data)
{
    Fixture *fixture = data;
    fixture->failed++;
    g_free(fixture->failure);
    fixture->failure = g_strdup(message);
}

static const BerthGuestChannelFuncs funcs = {on_answered, on_delayed, on_started,
                                             on_ended,    on_usage,   on_failed};

/* --- the guest ------------------------------------------------------------------------------ */

static void guest_hang_up(Fixture *fixture)
{
    if (fixture->fd >= 0)
        close(fixture->fd);
    fixture->fd = -1;
    berth_channel_reader_reset(fixture->reader);
}

static gboolean try_accept(Fixture *fixture)
{
    int fd = accept4(fixture->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return FALSE;
    guest_hang_up(fixture);
    fixture->fd = fd;
    fixture->connections++;
    return TRUE;
}

static void guest_accept(Fixture *fixture)
{
    run_until(try_accept(fixture));
    fixture->has_state = FALSE;
}

static void say_state(Fixture *fixture, Berth__FromGuest__State state);

/* A State that was slow to come is answered by one more Hello, which gets the same State. */
static gboolean is_hello_again(Fixture *fixture, Berth__ToGuest *message)
{
    if (message->body_case != BERTH__TO_GUEST__BODY_HELLO || !fixture->has_state)
        return FALSE;
    fixture->session = message->hello->session;
    fixture->hellos_again++;
    say_state(fixture, fixture->state);
    berth__to_guest__free_unpacked(message, NULL);
    return TRUE;
}

static Berth__ToGuest *try_hear(Fixture *fixture)
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

/* The next message, which must be BODY. */
static Berth__ToGuest *hear(Fixture *fixture, Berth__ToGuest__BodyCase body)
{
    Berth__ToGuest *message = NULL;
    run_until((message = try_hear(fixture)) != NULL);
    if (message->body_case != body)
        fail_msg("the channel sent %d, not %d", (int)message->body_case, (int)body);
    return message;
}

static void hear_and_drop(Fixture *fixture, Berth__ToGuest__BodyCase body)
{
    berth__to_guest__free_unpacked(hear(fixture, body), NULL);
}

static void write_all(Fixture *fixture, const guint8 *bytes, gsize length)
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

static GByteArray *frame(Fixture *fixture, Berth__FromGuest *message)
{
    message->session = message->session == 0 ? fixture->session : message->session;
    gsize length = berth__from_guest__get_packed_size(message);
    GByteArray *bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, (guint)(BERTH_CHANNEL_HEADER_BYTES + length));
    berth__from_guest__pack(message, bytes->data + BERTH_CHANNEL_HEADER_BYTES);
    berth_channel_header(bytes->data, bytes->data + BERTH_CHANNEL_HEADER_BYTES, length);
    return bytes;
}

static void say(Fixture *fixture, Berth__FromGuest *message)
{
    g_autoptr(GByteArray) bytes = frame(fixture, message);
    write_all(fixture, bytes->data, bytes->len);
}

static void say_state(Fixture *fixture, Berth__FromGuest__State state)
{
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    message.body_case = BERTH__FROM_GUEST__BODY_STATE;
    message.state = &state;
    fixture->state = state;
    fixture->has_state = TRUE;
    say(fixture, &message);
}

/* Until the channel is open it sends nothing but Hello. */
static gboolean try_open(Fixture *fixture)
{
    return berth_guest_channel_is_open(fixture->channel) ||
           (try_hear(fixture) == NULL && berth_guest_channel_is_open(fixture->channel));
}

static void say_output(Fixture *fixture, gboolean is_stderr, guint64 offset, const char *text,
                       gsize length)
{
    Berth__FromGuest__Output output = BERTH__FROM_GUEST__OUTPUT__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    output.is_stderr = is_stderr;
    output.offset = offset;
    output.data = (ProtobufCBinaryData){.len = length, .data = (guint8 *)text};
    message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
    message.output = &output;
    say(fixture, &message);
}

static void say_started(Fixture *fixture, guint64 start_usec)
{
    Berth__FromGuest__Started started = BERTH__FROM_GUEST__STARTED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    started.start_usec = start_usec;
    message.body_case = BERTH__FROM_GUEST__BODY_STARTED;
    message.started = &started;
    say(fixture, &message);
}

static void say_ended(Fixture *fixture, guint64 stdout_bytes, guint64 stderr_bytes)
{
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__FromGuest__Ended ended = BERTH__FROM_GUEST__ENDED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    exit.stdout_bytes = stdout_bytes;
    exit.stderr_bytes = stderr_bytes;
    ended.exit = &exit;
    message.body_case = BERTH__FROM_GUEST__BODY_ENDED;
    message.ended = &ended;
    say(fixture, &message);
}

/* Accepts a connection and takes its Hello. */
static void guest_greet(Fixture *fixture)
{
    guest_accept(fixture);
    Berth__ToGuest *hello = hear(fixture, BERTH__TO_GUEST__BODY_HELLO);
    assert_true(hello->hello->session != 0);
    assert_true(hello->hello->session != fixture->session);
    assert_true(hello->hello->clock_usec > 0);
    fixture->session = hello->hello->session;
    berth__to_guest__free_unpacked(hello, NULL);
}

#define STATE(...)                                                                                 \
    ((Berth__FromGuest__State){PROTOBUF_C_MESSAGE_INIT(&berth__from_guest__state__descriptor),     \
                               __VA_ARGS__})

static void start_channel(Fixture *fixture, gboolean is_adopted, guint64 stdout_max,
                          guint64 stderr_max)
{
    g_autofree char *path = g_build_filename(fixture->dir, "guest.sock", NULL);
    BerthGuestChannelConfig config = {.socket_path = path,
                                      .writer = fixture->writer,
                                      .acked_max = {stdout_max, stderr_max},
                                      .is_adopted = is_adopted,
                                      .usage_interval_msec = 2000};
    fixture->channel = berth_guest_channel_new(&config, &funcs, fixture);
}

/* A channel with an open session of a guest whose command runs. */
static void start_running(Fixture *fixture)
{
    start_channel(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(try_open(fixture));
}

static void wait_for_log(Fixture *fixture, guint stream, gsize length)
{
    run_until(fixture->logs[stream]->len >= length);
    assert_int_equal(fixture->logs[stream]->len, length);
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
    ((Fixture *)data)->storage_is_open = TRUE;
}

static int make_fixture(void **state)
{
    void *dir = NULL;
    if (tempdir_make(&dir) != 0)
        return -1;
    Fixture *fixture = g_new0(Fixture, 1);
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

static int free_fixture(void **state)
{
    Fixture *fixture = *state;
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

/* --- the task and its files ------------------------------------------------------------------ */

typedef struct {
    Berth__StartGuestRequest request;
    Berth__GuestTask task;
    Berth__BlobRef environment;
    Berth__BlobRef input;
    Berth__GuestFile file;
    Berth__GuestFile *files[1];
    ProtobufCBinaryData inline_blobs[1];
    guint8 digests[2][BERTH_SHA256_BYTES];
    char *command[1];
} Task;

static void digest_of(const guint8 *data, gsize length, guint8 digest[BERTH_SHA256_BYTES])
{
    gsize size = BERTH_SHA256_BYTES;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, data, (gssize)length);
    g_checksum_get_digest(checksum, digest, &size);
}

/* A task with an inline environment, and an input file of LENGTH bytes that is in storage. */
static void task_init(Task *task, const guint8 *content, gsize length)
{
    static char command[] = "/bin/true", name[] = "input", environment[] = "A=1";
    *task = (Task){BERTH__START_GUEST_REQUEST__INIT, BERTH__GUEST_TASK__INIT, BERTH__BLOB_REF__INIT,
                   BERTH__BLOB_REF__INIT, BERTH__GUEST_FILE__INIT};
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

static BerthGuestFiles *files_new(Fixture *fixture, Task *task)
{
    g_autoptr(GError) error = NULL;
    BerthGuestFiles *files = berth_guest_files_new(&task->request, fixture->lane, &error);
    assert_no_error(error);
    return files;
}

static void store_blob(Fixture *fixture, const Task *task, const guint8 *content, gsize length)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = berth_storage_open(&fixture->storage, &error);
    assert_no_error(error);
    g_autoptr(BerthBlobWriter) writer =
        berth_storage_blob_create(storage, task->digests[1], length, &error);
    assert_no_error(error);
    assert_true(berth_blob_writer_append(writer, content, length, &error));
    assert_true(berth_blob_writer_commit(writer, &error));
    run_until(fixture->storage_is_open);
}

static guint8 *content_new(gsize length)
{
    guint8 *content = g_malloc(length);
    for (gsize i = 0; i < length; i++)
        content[i] = (guint8)(i * 31 + i / 253);
    return content;
}

/* Takes pieces of file INDEX from OFFSET until it has LENGTH bytes. */
static void hear_file(Fixture *fixture, guint index, guint64 offset, const guint8 *content,
                      gsize length)
{
    while (offset < length) {
        Berth__ToGuest *message = hear(fixture, BERTH__TO_GUEST__BODY_FILE);
        assert_int_equal(message->session, fixture->session);
        assert_int_equal(message->file->index, index);
        assert_int_equal(message->file->offset, offset);
        assert_true(message->file->data.len > 0 && offset + message->file->data.len <= length);
        assert_memory_equal(message->file->data.data, content + offset, message->file->data.len);
        offset += message->file->data.len;
        berth__to_guest__free_unpacked(message, NULL);
    }
}

#define INPUT_BYTES (600u * 1024u + 7u)

/* What it takes by the slowest pace: 1 piece of the environment, 5 of the input. */
#define PIECES_USEC (6 * 2 * G_USEC_PER_SEC)

static void channel_new_guest_gets_task_files_and_run(void **state)
{
    Fixture *fixture = *state;
    g_autofree guint8 *content = content_new(INPUT_BYTES);
    Task task;
    task_init(&task, content, INPUT_BYTES);
    store_blob(fixture, &task, content, INPUT_BYTES);
    start_channel(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, files_new(fixture, &task));
    guest_greet(fixture);
    say_state(fixture, STATE());
    Berth__ToGuest *message = hear(fixture, BERTH__TO_GUEST__BODY_TASK);
    assert_string_equal(message->task->command[0], "/bin/true");
    berth__to_guest__free_unpacked(message, NULL);
    hear_file(fixture, 0, 0, (const guint8 *)"A=1", 4);
    hear_file(fixture, 1, 0, content, INPUT_BYTES);
    gint64 before_usec = g_get_real_time();
    Berth__ToGuest *run = hear(fixture, BERTH__TO_GUEST__BODY_RUN);
    assert_true(ABS((gint64)run->run->clock_usec - before_usec) < 60 * G_USEC_PER_SEC);
    berth__to_guest__free_unpacked(run, NULL);
    assert_int_equal(fixture->answered, 1);
    assert_true(fixture->delayed_usec >= PIECES_USEC);
    say_started(fixture, 1234);
    run_until(fixture->started == 1);
    assert_int_equal(fixture->start_usec, 1234);
}

/* Its boot deadline is not renewed by asking for the same again, nor by small steps. */
static void channel_guest_that_starts_over_gets_no_more_time(void **state)
{
    Fixture *fixture = *state;
    g_autofree guint8 *content = content_new(INPUT_BYTES);
    Task task;
    task_init(&task, content, INPUT_BYTES);
    store_blob(fixture, &task, content, INPUT_BYTES);
    start_channel(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, files_new(fixture, &task));
    guest_greet(fixture);
    gint64 start = g_get_monotonic_time();
    say_state(fixture, STATE(.has_task = TRUE));
    hear_file(fixture, 0, 0, (const guint8 *)"A=1", 4);
    hear_file(fixture, 1, 0, content, INPUT_BYTES);
    hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
    gint64 most = PIECES_USEC + g_get_monotonic_time() - start;
    assert_in_range(fixture->delayed_usec, PIECES_USEC, most);
    gint64 delayed = fixture->delayed_usec;
    for (guint i = 0; i < 20; i++) {
        say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1, .file_bytes = i));
        hear_file(fixture, 1, i, content, INPUT_BYTES);
        hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
    }
    assert_int_equal(fixture->delayed_usec, delayed);
    assert_int_equal(fixture->answered, 1);
}

static void channel_storage_that_keeps_files_waiting_is_given_time_for(void **state)
{
    Fixture *fixture = *state;
    Task task;
    task_init(&task, (const guint8 *)"x", 1);
    run_until(fixture->storage_is_open);
    /* A lane that does not reach its storage. */
    BerthStorageConfig nowhere = {
        .kind = (char *)"dir", .path = (char *)"/nonexistent/berth", .op_timeout_sec = 30};
    g_autoptr(BerthStorageLane) lane = berth_storage_lane_new(&nowhere);
    BerthGuestFiles *files = berth_guest_files_new(&task.request, lane, NULL);
    start_channel(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, files);
    guest_greet(fixture);
    gint64 start = g_get_monotonic_time();
    say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1));
    run_until(fixture->delayed_usec > G_USEC_PER_SEC);
    assert_true(fixture->delayed_usec <= g_get_monotonic_time() - start);
    assert_int_equal(fixture->failed, 0);
    g_clear_pointer(&fixture->channel, berth_guest_channel_free);
}

static void channel_adopted_half_way_continues_where_the_guest_stands(void **state)
{
    Fixture *fixture = *state;
    g_autofree guint8 *content = content_new(INPUT_BYTES);
    Task task;
    task_init(&task, content, INPUT_BYTES);
    store_blob(fixture, &task, content, INPUT_BYTES);
    start_channel(fixture, TRUE, 0, 0);
    guest_greet(fixture);
    say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1, .file_bytes = 1000));
    run_until(try_open(fixture));
    /* The task comes later, when the scheduler has sent it again. */
    berth_guest_channel_set_files(fixture->channel, files_new(fixture, &task));
    hear_file(fixture, 1, 1000, content, INPUT_BYTES);
    hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
    /* The guest missed some: it says from where. */
    say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1, .file_bytes = 300000));
    hear_file(fixture, 1, 300000, content, INPUT_BYTES);
    hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
}

static void channel_missing_input_fails_the_guest(void **state)
{
    Fixture *fixture = *state;
    g_autofree guint8 *content = content_new(100);
    Task task;
    task_init(&task, content, 100);
    run_until(fixture->storage_is_open);
    start_channel(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, files_new(fixture, &task));
    guest_greet(fixture);
    say_state(fixture, STATE());
    run_until(fixture->failed == 1);
    assert_int_equal(fixture->started, 0);
}

static void files_new_bad_requests_are_refused(void **state)
{
    Fixture *fixture = *state;
    Task task;
    task_init(&task, (const guint8 *)"x", 1);
    g_autofree char *huge = g_strnfill(BERTH_CHANNEL_PAYLOAD_MAX, 'x');
    g_autoptr(GError) error = NULL;
    task.command[0] = huge;
    assert_null(berth_guest_files_new(&task.request, fixture->lane, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "fewer or shorter");
    g_clear_error(&error);
    task_init(&task, (const guint8 *)"x", 1);
    task.input.sha256.len = 31;
    assert_null(berth_guest_files_new(&task.request, fixture->lane, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "digest of 31 bytes");
    g_clear_error(&error);
    task.request.task = NULL;
    assert_null(berth_guest_files_new(&task.request, fixture->lane, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "no task");
}

/* --- output ---------------------------------------------------------------------------------- */

static void assert_ack(Fixture *fixture, guint64 stdout_bytes, guint64 stderr_bytes)
{
    Berth__ToGuest *message = NULL;
    for (;;) {
        message = hear(fixture, BERTH__TO_GUEST__BODY_ACK);
        gboolean is_it = message->ack->stdout_bytes == stdout_bytes &&
                         message->ack->stderr_bytes == stderr_bytes;
        assert_true(message->ack->stdout_bytes <= stdout_bytes);
        assert_true(message->ack->stderr_bytes <= stderr_bytes);
        berth__to_guest__free_unpacked(message, NULL);
        if (is_it)
            return;
    }
}

static void channel_output_is_logged_and_acknowledged(void **state)
{
    Fixture *fixture = *state;
    start_running(fixture);
    say_output(fixture, FALSE, 0, "hello ", 6);
    say_output(fixture, TRUE, 0, "err", 3);
    say_output(fixture, FALSE, 6, "world", 5);
    assert_ack(fixture, 11, 3);
    assert_memory_equal(fixture->logs[0]->data, "hello world", 11);
    assert_memory_equal(fixture->logs[1]->data, "err", 3);
    say_ended(fixture, 11, 3);
    run_until(fixture->ended == 1);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

static void channel_frames_in_single_bytes_are_understood(void **state)
{
    Fixture *fixture = *state;
    start_running(fixture);
    Berth__FromGuest__Output output = BERTH__FROM_GUEST__OUTPUT__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    output.data = (ProtobufCBinaryData){.len = 3, .data = (guint8 *)"abc"};
    message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
    message.output = &output;
    g_autoptr(GByteArray) bytes = frame(fixture, &message);
    for (guint i = 0; i < bytes->len; i++) {
        write_all(fixture, bytes->data + i, 1);
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    wait_for_log(fixture, 0, 3);
}

static void channel_storage_down_stalls_the_guest_and_loses_nothing(void **state)
{
    Fixture *fixture = *state;
    g_autofree char *block = g_strnfill(64 * 1024, 'x');
    start_running(fixture);
    fixture->logs_are_down = TRUE;
    guint64 sent = 0, accepted;
    do { /* until nothing more is taken */
        accepted = berth_log_writer_accepted(fixture->writer, 0);
        if (sent < 16u << 20) {
            say_output(fixture, FALSE, sent, block, 64 * 1024);
            sent += 64 * 1024;
        }
        while (g_main_context_iteration(NULL, FALSE))
            ;
    } while (berth_log_writer_accepted(fixture->writer, 0) > accepted);
    assert_true(accepted <= BERTH_LOG_WRITER_PENDING_MAX + 64 * 1024);
    assert_int_equal(fixture->logs[0]->len, 0);
    fixture->logs_are_down = FALSE;
    wait_for_log(fixture, 0, sent);
    assert_ack(fixture, sent, 0);
}

static void channel_new_session_takes_no_byte_twice(void **state)
{
    Fixture *fixture = *state;
    start_running(fixture);
    say_output(fixture, FALSE, 0, "0123456789", 10);
    assert_ack(fixture, 10, 0);
    guest_hang_up(fixture);
    guest_greet(fixture);
    /* The guest saw no acknowledgement after byte 4, and sends again from there. */
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE, .stdout_acked = 4));
    assert_ack(fixture, 10, 0);
    say_output(fixture, FALSE, 4, "4567", 4);
    say_output(fixture, FALSE, 8, "89abc", 5);
    assert_ack(fixture, 13, 0);
    assert_memory_equal(fixture->logs[0]->data, "0123456789abc", 13);
    assert_int_equal(fixture->logs[0]->len, 13);
}

static void channel_adopted_guest_continues_its_logs(void **state)
{
    Fixture *fixture = *state;
    g_byte_array_append(fixture->logs[0], (const guint8 *)"0123456789", 10);
    start_channel(fixture, TRUE, 10, 0);
    guest_greet(fixture);
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE, .stdout_acked = 7));
    say_output(fixture, FALSE, 7, "789ab", 5);
    assert_ack(fixture, 12, 0);
    assert_memory_equal(fixture->logs[0]->data, "0123456789ab", 12);
}

/* --- guests that lie ------------------------------------------------------------------------- */

/* The channel must hang up and come back with a new session. */
static void assert_new_session(Fixture *fixture, guint violations)
{
    guest_greet(fixture);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), violations);
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE,
                             .stdout_acked = berth_log_writer_durable(fixture->writer, 0)));
    run_until(try_open(fixture));
}

static void channel_output_with_a_gap_ends_the_session(void **state)
{
    Fixture *fixture = *state;
    start_running(fixture);
    say_output(fixture, FALSE, 0, "abc", 3);
    assert_ack(fixture, 3, 0);
    say_output(fixture, FALSE, 5, "too far", 7);
    assert_new_session(fixture, 1);
    say_output(fixture, FALSE, 0, "again", 5); /* back behind what it said it had acknowledged */
    assert_new_session(fixture, 2);
    say_output(fixture, FALSE, G_MAXUINT64, "overflow", 8);
    assert_new_session(fixture, 3);
    assert_int_equal(fixture->logs[0]->len, 3);
}

static void channel_end_before_all_output_ends_the_session(void **state)
{
    Fixture *fixture = *state;
    start_running(fixture);
    say_ended(fixture, 100, 0);
    assert_new_session(fixture, 1);
    assert_int_equal(fixture->ended, 0);
}

static void channel_claim_of_acknowledged_output_is_checked(void **state)
{
    Fixture *fixture = *state;
    start_channel(fixture, TRUE, 10, 20);
    guest_greet(fixture);
    say_state(fixture, STATE(.running = TRUE, .stdout_acked = 11));
    guest_greet(fixture);
    say_state(fixture, STATE(.running = TRUE, .stderr_acked = G_MAXUINT64));
    guest_greet(fixture);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 2);
    say_state(fixture, STATE(.running = TRUE, .stdout_acked = 10, .stderr_acked = 20));
    run_until(try_open(fixture));
}

static void channel_other_sessions_change_nothing(void **state)
{
    Fixture *fixture = *state;
    start_channel(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guint64 session = fixture->session;
    fixture->session = session + 1;
    say_state(fixture, STATE(.running = TRUE));
    say_output(fixture, FALSE, 0, "forged", 6);
    say_started(fixture, 1);
    fixture->session = session;
    say_output(fixture, FALSE, 0, "before the state", 16);
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(try_open(fixture));
    say_output(fixture, FALSE, 0, "real", 4);
    assert_ack(fixture, 4, 0);
    assert_memory_equal(fixture->logs[0]->data, "real", 4);
    assert_int_equal(fixture->started, 0);
}

static void channel_garbage_between_frames_is_skipped(void **state)
{
    Fixture *fixture = *state;
    static const guint8 garbage[] = "BRT1 no frame BRT1\0\0\0\0BRT1";
    start_running(fixture);
    write_all(fixture, garbage, sizeof garbage);
    say_output(fixture, FALSE, 0, "ok", 2);
    write_all(fixture, garbage, sizeof garbage);
    say_output(fixture, FALSE, 2, "ay", 2);
    assert_ack(fixture, 4, 0);
    assert_memory_equal(fixture->logs[0]->data, "okay", 4);
}

static void channel_flood_ends_the_session(void **state)
{
    Fixture *fixture = *state;
    g_autofree guint8 *garbage = g_malloc0(1u << 20);
    start_running(fixture);
    guint connections = fixture->connections;
    for (guint i = 0; i < 64 && berth_guest_channel_violations(fixture->channel) == 0; i++)
        write_all(fixture, garbage, 1u << 20);
    run_until(berth_guest_channel_violations(fixture->channel) == 1);
    guest_greet(fixture);
    assert_true(fixture->connections > connections);
}

static void channel_flood_of_messages_ends_the_session(void **state)
{
    Fixture *fixture = *state;
    Berth__Usage usage = BERTH__USAGE__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    message.body_case = BERTH__FROM_GUEST__BODY_USAGE;
    message.usage = &usage;
    start_running(fixture);
    for (guint i = 0; i < 200000 && berth_guest_channel_violations(fixture->channel) == 0; i++)
        say(fixture, &message);
    run_until(berth_guest_channel_violations(fixture->channel) == 1);
    assert_true(fixture->usage > 0);
}

/* --- guests that do not read ------------------------------------------------------------------ */

/* What a socket takes before it is full, and one frame on top of the window. */
#define UNREAD_BYTES_MAX (256u * 1024u + 1024u * 1024u)

/* Hears what has piled up, to the message that IS_LAST: how many bytes. */
static gsize hear_up_to(Fixture *fixture, gboolean (*is_last)(const Berth__ToGuest *))
{
    gsize bytes = 0;
    for (gboolean done = FALSE; !done;) {
        Berth__ToGuest *message = NULL;
        run_until((message = try_hear(fixture)) != NULL);
        bytes += berth__to_guest__get_packed_size(message);
        done = is_last(message);
        berth__to_guest__free_unpacked(message, NULL);
    }
    return bytes;
}

static gboolean is_signal(const Berth__ToGuest *message)
{
    return message->body_case == BERTH__TO_GUEST__BODY_SIGNAL;
}

static gboolean is_run(const Berth__ToGuest *message)
{
    return message->body_case == BERTH__TO_GUEST__BODY_RUN;
}

static void channel_tasks_for_a_guest_that_does_not_read_do_not_pile_up(void **state)
{
    Fixture *fixture = *state;
    g_autofree char *large = g_strnfill(200 * 1024, 'x');
    Task task;
    task_init(&task, (const guint8 *)"x", 1);
    task.command[0] = large;
    task.task.n_inputs = 0;
    start_channel(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, files_new(fixture, &task));
    guest_greet(fixture);
    for (guint i = 0; i < 200; i++) { /* each says that the task has not come */
        say_state(fixture, STATE());
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    run_until(berth_guest_channel_is_open(fixture->channel));
    berth_guest_channel_set_signal(fixture->channel, SIGTERM);
    assert_in_range(hear_up_to(fixture, is_signal), 200 * 1024, UNREAD_BYTES_MAX);
    hear_up_to(fixture, is_run);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

#define SINGLE_BYTES 40000u

static gboolean is_ack_of_all(const Berth__ToGuest *message)
{
    return message->body_case == BERTH__TO_GUEST__BODY_ACK &&
           message->ack->stdout_bytes == SINGLE_BYTES;
}

static void channel_acks_for_a_guest_that_does_not_read_do_not_pile_up(void **state)
{
    Fixture *fixture = *state;
    start_running(fixture);
    for (guint i = 0; i < SINGLE_BYTES; i++) { /* each is acknowledged alone */
        say_output(fixture, FALSE, i, "x", 1);
        while (fixture->logs[0]->len <= i || g_main_context_pending(NULL))
            g_main_context_iteration(NULL, FALSE);
    }
    assert_in_range(hear_up_to(fixture, is_ack_of_all), 1, SINGLE_BYTES * 10);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void channel_signal_is_sent_in_each_session(void **state)
{
    Fixture *fixture = *state;
    start_channel(fixture, FALSE, 0, 0);
    berth_guest_channel_set_signal(fixture->channel, SIGTERM);
    guest_greet(fixture);
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    Berth__ToGuest *message = hear(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, SIGTERM);
    berth__to_guest__free_unpacked(message, NULL);
    berth_guest_channel_set_signal(fixture->channel, SIGKILL);
    message = hear(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, SIGKILL);
    berth__to_guest__free_unpacked(message, NULL);
    guest_hang_up(fixture);
    guest_greet(fixture);
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    hear_and_drop(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
}

static gboolean set_flag(gpointer flag)
{
    *(gboolean *)flag = TRUE;
    return G_SOURCE_REMOVE;
}

/* What a guest that still boots does: it reads Hello, and the time in it, late. */
static void channel_late_state_gets_the_time_again_once(void **state)
{
    Fixture *fixture = *state;
    gboolean is_late = FALSE;
    start_channel(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guint64 first = fixture->session;
    g_timeout_add(300, set_flag, &is_late);
    run_until(is_late);
    say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(try_open(fixture));
    assert_true(fixture->session != first);
    assert_int_equal(fixture->hellos_again, 1);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

/* A frame of an agent that was killed lies there unfinished: the guest takes the Hello for its rest. */
static void channel_hello_gets_through_behind_a_frame_that_was_cut_off(void **state)
{
    Fixture *fixture = *state;
    guint8 header[BERTH_CHANNEL_HEADER_BYTES];
    g_autofree guint8 *payload = g_malloc0(BERTH_CHANNEL_PAYLOAD_MAX);
    size_t room;
    berth_channel_header(header, payload, BERTH_CHANNEL_PAYLOAD_MAX);
    start_channel(fixture, TRUE, 0, 0);
    guest_accept(fixture);
    memcpy(berth_channel_reader_space(fixture->reader, &room), header, sizeof header);
    berth_channel_reader_added(fixture->reader, sizeof header);
    Berth__ToGuest *hello = NULL;
    run_until((hello = try_hear(fixture)) != NULL);
    assert_int_equal(hello->body_case, BERTH__TO_GUEST__BODY_HELLO);
    berth__to_guest__free_unpacked(hello, NULL);
}

static void channel_failure_is_passed_on_in_bounds(void **state)
{
    Fixture *fixture = *state;
    g_autofree char *text = g_strnfill(100000, 'x');
    Berth__FromGuest__Failure failure = BERTH__FROM_GUEST__FAILURE__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    failure.message = text;
    message.body_case = BERTH__FROM_GUEST__BODY_FAILURE;
    message.failure = &failure;
    start_running(fixture);
    say(fixture, &message);
    run_until(fixture->failed == 1);
    assert_int_equal(strlen(fixture->failure), 4096);
}

/* A script that begins "#!/bin/\xe9" has such an end. */
static void channel_end_with_text_that_is_not_utf8_is_passed_on(void **state)
{
    Fixture *fixture = *state;
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__FromGuest__Ended ended = BERTH__FROM_GUEST__ENDED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    exit.error = (char *)"cannot run 'script': its interpreter '/bin/\xe9' is not in the image";
    exit.status = 127;
    ended.exit = &exit;
    message.body_case = BERTH__FROM_GUEST__BODY_ENDED;
    message.ended = &ended;
    start_running(fixture);
    say(fixture, &message);
    run_until(fixture->ended == 1);
}

static void channel_text_is_utf8_in_bounds(void **state)
{
    const struct {
        gsize length; /* of what comes before */
        const char *end;
        gsize expected_length;
        const char *expected_end;
    } cases[] = {
        {0, "", 0, ""},
        {0, "plain", 5, "plain"},
        {3, "\xe9!", 7, "\xef\xbf\xbd!"},
        {BERTH_GUEST_TEXT_MAX_BYTES - 2, "\xc3\xa9", BERTH_GUEST_TEXT_MAX_BYTES, "\xc3\xa9"},
        {BERTH_GUEST_TEXT_MAX_BYTES - 2, "\xe2\x82\xac", BERTH_GUEST_TEXT_MAX_BYTES - 2, "xx"},
        {BERTH_GUEST_TEXT_MAX_BYTES, "yz", BERTH_GUEST_TEXT_MAX_BYTES, "xx"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *before = g_strnfill(cases[i].length, 'x');
        g_autofree char *said = g_strconcat(before, cases[i].end, NULL);
        g_autofree char *text = berth_guest_channel_text(said);
        assert_true(g_utf8_validate(text, -1, NULL));
        assert_int_equal(strlen(text), cases[i].expected_length);
        assert_true(g_str_has_suffix(text, cases[i].expected_end));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_fixture, free_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(channel_new_guest_gets_task_files_and_run),
        TEST(channel_guest_that_starts_over_gets_no_more_time),
        TEST(channel_storage_that_keeps_files_waiting_is_given_time_for),
        TEST(channel_adopted_half_way_continues_where_the_guest_stands),
        TEST(channel_missing_input_fails_the_guest),
        TEST(files_new_bad_requests_are_refused),
        TEST(channel_output_is_logged_and_acknowledged),
        TEST(channel_frames_in_single_bytes_are_understood),
        TEST(channel_storage_down_stalls_the_guest_and_loses_nothing),
        TEST(channel_new_session_takes_no_byte_twice),
        TEST(channel_adopted_guest_continues_its_logs),
        TEST(channel_output_with_a_gap_ends_the_session),
        TEST(channel_end_before_all_output_ends_the_session),
        TEST(channel_claim_of_acknowledged_output_is_checked),
        TEST(channel_other_sessions_change_nothing),
        TEST(channel_garbage_between_frames_is_skipped),
        TEST(channel_flood_ends_the_session),
        TEST(channel_flood_of_messages_ends_the_session),
        TEST(channel_tasks_for_a_guest_that_does_not_read_do_not_pile_up),
        TEST(channel_acks_for_a_guest_that_does_not_read_do_not_pile_up),
        TEST(channel_signal_is_sent_in_each_session),
        TEST(channel_hello_gets_through_behind_a_frame_that_was_cut_off),
        TEST(channel_late_state_gets_the_time_again_once),
        TEST(channel_failure_is_passed_on_in_bounds),
        TEST(channel_end_with_text_that_is_not_utf8_is_passed_on),
        cmocka_unit_test(channel_text_is_utf8_in_bounds),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
