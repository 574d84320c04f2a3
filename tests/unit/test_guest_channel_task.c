/* SPDX-License-Identifier: Apache-2.0 */
/* A guest gets its task and files, whole and once, and time for them. */
#include <config.h>

#include "tests/lib/channel_fixture.h"

#include <signal.h>

static void store_blob(ChannelFixture *fixture, const ChannelTask *task, const guint8 *content,
                       gsize length)
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
static void hear_file(ChannelFixture *fixture, guint index, guint64 offset, const guint8 *content,
                      gsize length)
{
    while (offset < length) {
        Berth__ToGuest *message = guest_hear(fixture, BERTH__TO_GUEST__BODY_FILE);
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
    ChannelFixture *fixture = *state;
    g_autofree guint8 *content = content_new(INPUT_BYTES);
    ChannelTask task;
    channel_task_init(&task, content, INPUT_BYTES);
    store_blob(fixture, &task, content, INPUT_BYTES);
    channel_fixture_start(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, channel_fixture_files(fixture, &task));
    guest_greet(fixture);
    assert_false(berth_guest_channel_may_have_begun(fixture->channel));
    guest_say_state(fixture, STATE());
    Berth__ToGuest *message = guest_hear(fixture, BERTH__TO_GUEST__BODY_TASK);
    assert_string_equal(message->task->command[0], "/bin/true");
    berth__to_guest__free_unpacked(message, NULL);
    hear_file(fixture, 0, 0, (const guint8 *)"A=1", 4);
    hear_file(fixture, 1, 0, content, INPUT_BYTES);
    gint64 before_usec = g_get_real_time();
    Berth__ToGuest *run = guest_hear(fixture, BERTH__TO_GUEST__BODY_RUN);
    assert_true(berth_guest_channel_may_have_begun(fixture->channel));
    assert_true(ABS((gint64)run->run->clock_usec - before_usec) < 60 * G_USEC_PER_SEC);
    berth__to_guest__free_unpacked(run, NULL);
    assert_int_equal(fixture->answered, 1);
    assert_true(fixture->delayed_usec >= PIECES_USEC);
    guest_say_started(fixture, 1234);
    run_until(fixture->started == 1);
    assert_int_equal(fixture->start_usec, 1234);
}

/* Its boot deadline is not renewed by asking for the same again, nor by small steps. */
static void channel_guest_that_starts_over_gets_no_more_time(void **state)
{
    ChannelFixture *fixture = *state;
    g_autofree guint8 *content = content_new(INPUT_BYTES);
    ChannelTask task;
    channel_task_init(&task, content, INPUT_BYTES);
    store_blob(fixture, &task, content, INPUT_BYTES);
    channel_fixture_start(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, channel_fixture_files(fixture, &task));
    guest_greet(fixture);
    gint64 start = g_get_monotonic_time();
    guest_say_state(fixture, STATE(.has_task = TRUE));
    hear_file(fixture, 0, 0, (const guint8 *)"A=1", 4);
    hear_file(fixture, 1, 0, content, INPUT_BYTES);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
    gint64 most = PIECES_USEC + g_get_monotonic_time() - start;
    assert_in_range(fixture->delayed_usec, PIECES_USEC, most);
    gint64 delayed = fixture->delayed_usec;
    for (guint i = 0; i < 20; i++) {
        guest_say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1, .file_bytes = i));
        hear_file(fixture, 1, i, content, INPUT_BYTES);
        /* Whatever it says now: it was told to run. */
        assert_true(berth_guest_channel_may_have_begun(fixture->channel));
        guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
    }
    assert_int_equal(fixture->delayed_usec, delayed);
    assert_int_equal(fixture->answered, 1);
}

static void channel_storage_that_keeps_files_waiting_is_given_time_for(void **state)
{
    ChannelFixture *fixture = *state;
    ChannelTask task;
    channel_task_init(&task, (const guint8 *)"x", 1);
    run_until(fixture->storage_is_open);
    /* A lane that does not reach its storage. */
    BerthStorageConfig nowhere = {
        .kind = (char *)"dir", .path = (char *)"/nonexistent/berth", .op_timeout_sec = 30};
    g_autoptr(BerthStorageLane) lane = berth_storage_lane_new(&nowhere);
    BerthGuestFiles *files = berth_guest_files_new(&task.request, lane, NULL);
    channel_fixture_start(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, files);
    guest_greet(fixture);
    gint64 start = g_get_monotonic_time();
    guest_say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1));
    run_until(fixture->delayed_usec > G_USEC_PER_SEC);
    assert_true(fixture->delayed_usec <= g_get_monotonic_time() - start);
    assert_int_equal(fixture->failed, 0);
    g_clear_pointer(&fixture->channel, berth_guest_channel_free);
}

static void channel_adopted_half_way_continues_where_the_guest_stands(void **state)
{
    ChannelFixture *fixture = *state;
    g_autofree guint8 *content = content_new(INPUT_BYTES);
    ChannelTask task;
    channel_task_init(&task, content, INPUT_BYTES);
    store_blob(fixture, &task, content, INPUT_BYTES);
    channel_fixture_start(fixture, TRUE, 0, 0);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1, .file_bytes = 1000));
    run_until(channel_fixture_is_open(fixture));
    /* The task comes later, when the scheduler has sent it again. */
    berth_guest_channel_set_files(fixture->channel, channel_fixture_files(fixture, &task));
    hear_file(fixture, 1, 1000, content, INPUT_BYTES);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
    /* The guest missed some: it says from where. */
    guest_say_state(fixture, STATE(.has_task = TRUE, .files_complete = 1, .file_bytes = 300000));
    hear_file(fixture, 1, 300000, content, INPUT_BYTES);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_RUN);
}

static void channel_missing_input_fails_the_guest(void **state)
{
    ChannelFixture *fixture = *state;
    g_autofree guint8 *content = content_new(100);
    ChannelTask task;
    channel_task_init(&task, content, 100);
    run_until(fixture->storage_is_open);
    channel_fixture_start(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, channel_fixture_files(fixture, &task));
    guest_greet(fixture);
    guest_say_state(fixture, STATE());
    run_until(fixture->failed == 1);
    assert_int_equal(fixture->started, 0);
}

static void files_new_bad_requests_are_refused(void **state)
{
    ChannelFixture *fixture = *state;
    ChannelTask task;
    channel_task_init(&task, (const guint8 *)"x", 1);
    g_autofree char *huge = g_strnfill(BERTH_CHANNEL_PAYLOAD_MAX, 'x');
    g_autoptr(GError) error = NULL;
    task.command[0] = huge;
    assert_null(berth_guest_files_new(&task.request, fixture->lane, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "fewer or shorter");
    g_clear_error(&error);
    channel_task_init(&task, (const guint8 *)"x", 1);
    task.input.sha256.len = 31;
    assert_null(berth_guest_files_new(&task.request, fixture->lane, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "digest of 31 bytes");
    g_clear_error(&error);
    task.request.task = NULL;
    assert_null(berth_guest_files_new(&task.request, fixture->lane, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "no task");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, channel_fixture_make, channel_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(channel_new_guest_gets_task_files_and_run),
        TEST(channel_guest_that_starts_over_gets_no_more_time),
        TEST(channel_storage_that_keeps_files_waiting_is_given_time_for),
        TEST(channel_adopted_half_way_continues_where_the_guest_stands),
        TEST(channel_missing_input_fails_the_guest),
        TEST(files_new_bad_requests_are_refused),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
