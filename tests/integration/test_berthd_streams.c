/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of a real berthd: output that is followed, events that are resumed, and readers that do
 * not read. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#include <gio/gunixsocketaddress.h>

#define MIB (1u << 20)

/* --- following ---------------------------------------------------------------------------------- */

typedef struct {
    GString *text;
    guint64 next_offset;
    guint32 epoch; /* of the newest chunk */
    guint n_restarts;
    gboolean has_ended;
    GError *error;
} Follower;

static gboolean on_chunk(const ProtobufCMessage *item, gpointer user_data)
{
    Follower *follower = user_data;
    const Berth__LogChunk *chunk = (const Berth__LogChunk *)item;
    if (chunk->epoch != follower->epoch) {
        assert_true(chunk->epoch > follower->epoch);
        assert_true(follower->epoch == 0 || chunk->offset == 0);
        follower->n_restarts += follower->epoch != 0;
        follower->epoch = chunk->epoch;
    } else {
        assert_int_equal(chunk->offset, follower->next_offset);
    }
    follower->next_offset = chunk->offset + chunk->data.len;
    g_string_append_len(follower->text, (const char *)chunk->data.data, (gssize)chunk->data.len);
    return TRUE;
}

static void on_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Follower *follower = user_data;
    berth_rpc_peer_stream_finish(result, &follower->error);
    follower->has_ended = TRUE;
}

static Follower *follow_from(BerthdTest *test, guint64 job, guint32 epoch, guint64 offset)
{
    Follower *follower = g_new0(Follower, 1);
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    follower->text = g_string_new(NULL);
    follower->next_offset = offset;
    request.job = job;
    request.want_stdout = TRUE;
    request.follow = TRUE;
    request.stdout_offset = offset;
    request.epoch = epoch;
    berth_rpc_peer_stream_async(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                "Logs", &request.base, 0, NULL, on_chunk, on_ended, follower);
    return follower;
}

static Follower *follow(BerthdTest *test, guint64 job, guint64 offset)
{
    return follow_from(test, job, 0, offset);
}

static void follower_free(Follower *follower)
{
    g_string_free(follower->text, TRUE);
    g_clear_error(&follower->error);
    g_free(follower);
}

static void logs_follow_gives_what_is_written_until_the_end(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "one\n"};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    Follower *follower = follow(test, job, 0); /* before it has begun */
    Berth__ReleaseRequest release = BERTH__RELEASE_REQUEST__INIT;
    release.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Release", &release.base);
    run_until(g_str_equal(follower->text->str, "one\n"));
    fake_agent_write(test->agent, job, FALSE, "two\n");
    run_until(g_str_equal(follower->text->str, "one\ntwo\n"));
    fake_agent_write(test->agent, job, TRUE, "not asked for\n");
    assert_true(fake_agent_end(test->agent, job, 0));
    run_until(follower->has_ended);
    assert_no_error(follower->error);
    assert_string_equal(follower->text->str, "one\ntwo\n");
    follower_free(follower);
}

static void logs_follow_from_offset_gives_the_rest(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "0123456789"};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    Follower *follower = follow(test, job, 7);
    run_until(follower->has_ended);
    assert_string_equal(follower->text->str, "789");
    follower_free(follower);
}

static void logs_follow_requeued_begins_again(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "first\n"};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    Follower *follower = follow(test, job, 0);
    run_until(g_str_equal(follower->text->str, "first\n"));
    test->plan = (FakePlan){.out = "second\n"};
    fake_agent_crash(test->agent);
    fake_agent_drop(test->agent);
    run_until(follower->has_ended);
    assert_no_error(follower->error);
    assert_string_equal(follower->text->str, "first\nsecond\n");
    assert_int_equal(follower->n_restarts, 1);
    follower_free(follower);
}

static void logs_from_offset_of_an_older_epoch_begin_at_the_start(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "first\n"};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    Follower *before = follow(test, job, 0);
    run_until(g_str_equal(before->text->str, "first\n"));
    test->plan = (FakePlan){.out = "the second\n"};
    fake_agent_crash(test->agent);
    fake_agent_drop(test->agent);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    run_until(before->has_ended);
    /* As a reader asks that lost its connection after "first\n". */
    Follower *older = follow_from(test, job, before->epoch - 1, 6);
    run_until(older->has_ended);
    assert_string_equal(older->text->str, "the second\n");
    Follower *newest = follow_from(test, job, before->epoch, 6);
    run_until(newest->has_ended);
    assert_string_equal(newest->text->str, "cond\n");
    follower_free(before);
    follower_free(older);
    follower_free(newest);
}

static void logs_of_nothing_are_empty_or_an_error(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    g_autofree char *text = berthd_fixture_logs(test->berthd, job, FALSE, FALSE);
    assert_string_equal(text, "");
    Follower *follower = follow(test, 4711, 0);
    run_until(follower->has_ended);
    assert_berth_error(follower->error, BERTH_ERROR_NOT_FOUND, "4711");
    follower_free(follower);
}

/* --- readers that stall -------------------------------------------------------------------------- */

static void send_frame(GOutputStream *out, const Berth__Frame *frame)
{
    g_autoptr(GError) error = NULL;
    gsize size = berth__frame__get_packed_size(frame);
    guint32 length = GUINT32_TO_BE((guint32)size);
    g_autofree guint8 *packed = g_malloc(size);
    berth__frame__pack(frame, packed);
    g_output_stream_write_all(out, &length, sizeof length, NULL, NULL, &error);
    assert_no_error(error);
    g_output_stream_write_all(out, packed, size, NULL, NULL, &error);
    assert_no_error(error);
}

/* A connection that sends a request N_CALLS times and never reads an answer. */
static GSocketConnection *stall(BerthdTest *test, const char *method,
                                const ProtobufCMessage *request, guint n_calls)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GSocketAddress) address =
        g_unix_socket_address_new(berthd_fixture_socket(test->berthd));
    GSocketConnection *connection =
        g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), NULL, &error);
    assert_no_error(error);
    Berth__Hello hello = BERTH__HELLO__INIT;
    Berth__Frame frame = BERTH__FRAME__INIT;
    g_autofree guint8 *payload = g_malloc(protobuf_c_message_get_packed_size(request) + 1);
    gsize size = protobuf_c_message_pack(request, payload);
    GOutputStream *out = g_io_stream_get_output_stream(G_IO_STREAM(connection));
    hello.protocol = BERTH_RPC_PROTOCOL;
    hello.protocol_min = BERTH_RPC_PROTOCOL_MIN;
    frame.kind = BERTH__FRAME__KIND__HELLO;
    frame.hello = &hello;
    send_frame(out, &frame);
    frame = (Berth__Frame)BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__REQUEST;
    frame.method = (char *)method;
    frame.payload = (ProtobufCBinaryData){size, payload};
    for (guint i = 1; i <= n_calls; i++) {
        frame.call_id = i;
        send_frame(out, &frame);
    }
    return connection;
}

/* A sanitizer keeps what was freed, so that memory says nothing there. */
static void assert_grew_little(BerthdTest *test, guint64 before, guint64 most_mib)
{
#ifndef __SANITIZE_ADDRESS__
    guint64 now = berthd_fixture_rss(test->berthd);
    if (now >= before + most_mib * MIB) {
        fail_msg("berthd grew from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " MiB",
                 before / MIB, now / MIB);
    }
#endif
}

static void stalled_log_readers_cost_little(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *large = g_strnfill(64u * MIB, 'x');
    test->plan = (FakePlan){.out = large};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    guint64 before = berthd_fixture_rss(test->berthd);
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = job;
    request.want_stdout = TRUE;
    g_autoptr(GPtrArray) stalled = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < 8; i++) {
        g_ptr_array_add(stalled, stall(test, "Jobs.Logs", &request.base, 1));
    }
    /* One that reads is not slowed by those that do not. */
    g_autofree char *text = berthd_fixture_logs(test->berthd, job, FALSE, FALSE);
    assert_int_equal(strlen(text), 64u * MIB);
    assert_true(strspn(text, "x") == 64u * MIB);
    assert_grew_little(test, before, 32);
}

/* Without a bound the queues would grow to some 150 MiB; with it they have 8, and the pages that
 * are read for 160 watchers at once take the rest. */
static void stalled_watchers_cost_little_and_others_see_all(void **state)
{
    BerthdTest *test = *state;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    for (guint i = 0; i < 2000; i++) {
        berthd_fixture_submit(test->berthd, &spec);
    }
    guint64 before = berthd_fixture_rss(test->berthd);
    g_autoptr(GPtrArray) stalled = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < 8; i++) {
        g_ptr_array_add(stalled, stall(test, "Jobs.Watch", &request.base, 20));
    }
    for (guint i = 0; i < 1000; i++) {
        berthd_fixture_submit(test->berthd, &spec);
    }
    berthd_fixture_wait_state(test->berthd, 3000, BERTH__JOB_STATE__PENDING);
    assert_grew_little(test, before, 64);
}

/* --- events -------------------------------------------------------------------------------------- */

static gboolean on_event(const ProtobufCMessage *item, gpointer user_data)
{
    g_ptr_array_add(user_data, berth_message_copy(item));
    return TRUE;
}

static void on_watch_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    berth_rpc_peer_stream_finish(result, &error);
}

static void watch_from_cursor_gives_each_event_once(void **state)
{
    BerthdTest *test = *state;
    guint64 job = 0;
    for (guint i = 0; i < 600; i++) { /* more than a page of events */
        job = berthd_fixture_submit_plain(test->berthd);
    }
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    guint64 newest = berthd_fixture_events(test->berthd)->len;
    g_autoptr(GPtrArray) seen = g_ptr_array_new_with_free_func((GDestroyNotify)berth_message_free);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.after_seq = 10;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    berth_rpc_peer_stream_async(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                "Watch", &request.base, 0, cancellable, on_event, on_watch_ended,
                                seen);
    job = berthd_fixture_submit_plain(test->berthd); /* and what comes meanwhile */
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    run_until(seen->len + 10 >= berthd_fixture_events(test->berthd)->len);
    assert_true(seen->len + 10 > newest);
    for (guint i = 0; i < seen->len; i++) {
        const Berth__Event *event = g_ptr_array_index(seen, i);
        assert_int_equal(event->seq, i + 11);
    }
    g_cancellable_cancel(cancellable);
}

typedef struct {
    guint64 cursor;
    guint n_wrong; /* events that are not the one after the last */
    gboolean has_ended;
} Reader;

/* Until then something may come that was on its way. */
static void on_reader_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reader *reader = user_data;
    g_autoptr(GError) error = NULL;
    berth_rpc_peer_stream_finish(result, &error);
    reader->has_ended = TRUE;
}

static gboolean on_next_event(const ProtobufCMessage *item, gpointer user_data)
{
    Reader *reader = user_data;
    const Berth__Event *event = (const Berth__Event *)item;
    reader->n_wrong += event->seq != reader->cursor + 1;
    reader->cursor = event->seq;
    return TRUE;
}

static void on_submitted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    assert_no_error(error);
    *(guint *)user_data += 1;
}

/* A read for a watcher may see a commit that the daemon has not heard of yet: its events come again
 * when it publishes them, and are not to be sent twice. */
static void watch_begun_amid_commits_gives_each_event_once(void **state)
{
    BerthdTest *test = *state;
    enum { ROUNDS = 300, WATCHES = 32 };
    GCancellable *cancellables[WATCHES] = {NULL};
    g_autofree Reader *readers = g_new0(Reader, ROUNDS);
    guint n_submitted = 0;
    BerthRpcPeer *client = berthd_fixture_client(test->berthd);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    for (guint i = 0; i < ROUNDS; i++) {
        Berth__SubmitRequest submit = BERTH__SUBMIT_REQUEST__INIT;
        Berth__WatchRequest watch = BERTH__WATCH_REQUEST__INIT;
        submit.spec = &spec;
        berth_rpc_peer_call_async(client, &berth__jobs__descriptor, "Submit", &submit.base, 60000,
                                  NULL, on_submitted, &n_submitted);
        if (cancellables[i % WATCHES]) {
            run_until(readers[i - WATCHES].cursor >= n_submitted);
            g_cancellable_cancel(cancellables[i % WATCHES]);
            g_object_unref(cancellables[i % WATCHES]);
        }
        cancellables[i % WATCHES] = g_cancellable_new();
        readers[i].cursor = watch.after_seq = n_submitted;
        berth_rpc_peer_stream_async(client, &berth__jobs__descriptor, "Watch", &watch.base, 0,
                                    cancellables[i % WATCHES], on_next_event, on_reader_ended,
                                    &readers[i]);
        run_until(n_submitted + 4 > i); /* a few commits are always under way */
    }
    run_until(n_submitted == ROUNDS);
    for (guint i = 0; i < ROUNDS; i++) {
        if (readers[i].n_wrong > 0) {
            fail_msg("reader %u got %u events out of order or twice", i, readers[i].n_wrong);
        }
    }
    for (guint i = 0; i < WATCHES; i++) {
        g_cancellable_cancel(cancellables[i]);
        g_object_unref(cancellables[i]);
    }
    for (guint i = 0; i < ROUNDS; i++)
        run_until(readers[i].has_ended);
}

static void watch_one_job_gives_only_its_events(void **state)
{
    BerthdTest *test = *state;
    guint64 first = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, first);
    g_autoptr(GPtrArray) seen = g_ptr_array_new_with_free_func((GDestroyNotify)berth_message_free);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.job = first + 1;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    berth_rpc_peer_stream_async(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                "Watch", &request.base, 0, cancellable, on_event, on_watch_ended,
                                seen);
    guint64 second = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, second);
    berthd_fixture_submit_plain(test->berthd);
    run_until(seen->len >= 7);
    static const Berth__Event__Kind expected[] = {
        BERTH__EVENT__KIND__JOB_SUBMITTED,  BERTH__EVENT__KIND__TASK_STATE,
        BERTH__EVENT__KIND__GUEST_START,    BERTH__EVENT__KIND__GUEST_RUNNING,
        BERTH__EVENT__KIND__GUEST_EXITED,   BERTH__EVENT__KIND__TASK_STATE,
        BERTH__EVENT__KIND__GUEST_RELEASED,
    };
    assert_int_equal(seen->len, G_N_ELEMENTS(expected));
    for (guint i = 0; i < seen->len; i++) {
        const Berth__Event *event = g_ptr_array_index(seen, i);
        assert_int_equal(event->job, second);
        assert_int_equal(event->kind, expected[i]);
    }
    g_cancellable_cancel(cancellable);
}

static void watch_after_the_newest_is_refused(void **state)
{
    BerthdTest *test = *state;
    Follower *follower = g_new0(Follower, 1);
    follower->text = g_string_new(NULL);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.after_seq = 1000000;
    berth_rpc_peer_stream_async(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                "Watch", &request.base, 0, NULL, on_event, on_ended, follower);
    run_until(follower->has_ended);
    assert_berth_error(follower->error, BERTH_ERROR_FAILED_PRECONDITION, "newest");
    follower_free(follower);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(logs_follow_gives_what_is_written_until_the_end),
        BERTHD_TEST(logs_follow_from_offset_gives_the_rest),
        BERTHD_TEST(logs_follow_requeued_begins_again),
        BERTHD_TEST(logs_from_offset_of_an_older_epoch_begin_at_the_start),
        BERTHD_TEST(logs_of_nothing_are_empty_or_an_error),
        BERTHD_TEST(stalled_log_readers_cost_little),
        BERTHD_TEST(stalled_watchers_cost_little_and_others_see_all),
        BERTHD_TEST(watch_from_cursor_gives_each_event_once),
        BERTHD_TEST(watch_begun_amid_commits_gives_each_event_once),
        BERTHD_TEST(watch_one_job_gives_only_its_events),
        BERTHD_TEST(watch_after_the_newest_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
