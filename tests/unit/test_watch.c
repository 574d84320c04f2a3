/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events over a real connection, with an engine whose commits the test makes. */
#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

#include "common/message.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/services.h"
#include "scheduler/daemon/watch.h"
#include "tests/unit/store_fixture.h"

typedef struct {
    StoreFixture *files;
    BerthDaemon daemon;
    ProtobufCService *services[2];
    BerthRpcPeer *server;
    BerthRpcPeer *client;
    GArray *seen; /* guint64: numbers of the events that came */
    gboolean has_ended;
    GError *ended;
} Test;

static void connect_client(Test *test)
{
    g_autoptr(GIOStream) a = NULL;
    g_autoptr(GIOStream) b = NULL;
    rpc_fixture_streams(&a, &b);
    test->services[0] = berth_jobs_service_new(&test->daemon);
    test->server = berth_rpc_peer_new(a, test->services, NULL);
    test->client = berth_rpc_peer_new(b, NULL, NULL);
}

static int setup(void **state)
{
    BerthCoreConfig config = {.node_timeout_usec = G_USEC_PER_SEC};
    Test *test = g_new0(Test, 1);
    BerthDaemon *daemon = &test->daemon;
    test->files = store_fixture_new();
    test->seen = g_array_new(FALSE, FALSE, sizeof(guint64));
    daemon->workers = berth_workers_new();
    daemon->store = store_open_ok(test->files->path);
    daemon->core = berth_core_new(&config);
    daemon->jobs = berth_job_table_new();
    daemon->nodes = berth_node_table_new();
    daemon->engine =
        berth_engine_new(daemon->core, daemon->store, daemon->jobs, daemon->nodes, 0, 0);
    daemon->watchers = berth_watchers_new(daemon);
    connect_client(test);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    BerthDaemon *daemon = &test->daemon;
    berth_rpc_peer_unref(test->client);
    berth_rpc_peer_close(test->server, TRUE);
    while (g_main_context_iteration(NULL, FALSE)) {
        /* the end is told to the stream */
    }
    berth_rpc_peer_unref(test->server);
    assert_true(berth_workers_drain(daemon->workers, 60000));
    berth_engine_stop(daemon->engine);
    berth_watchers_free(daemon->watchers);
    berth_engine_free(daemon->engine);
    berth_node_table_free(daemon->nodes);
    berth_job_table_free(daemon->jobs);
    berth_core_free(daemon->core);
    berth_store_close(daemon->store);
    berth_workers_free(daemon->workers);
    store_fixture_free(test->files);
    g_free(test->services[0]);
    g_array_unref(test->seen);
    g_clear_error(&test->ended);
    g_free(test);
    return 0;
}

static gboolean on_item(const ProtobufCMessage *item, gpointer user_data)
{
    Test *test = user_data;
    guint64 seq = ((const Berth__Event *)item)->seq;
    g_array_append_val(test->seen, seq);
    return TRUE;
}

static void on_end(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Test *test = user_data;
    test->has_ended = TRUE;
    berth_rpc_peer_stream_finish(result, &test->ended);
}

static void watch_as(Test *test, const Berth__WatchRequest *request)
{
    berth_rpc_peer_stream_async(test->client, &berth__jobs__descriptor, "Watch", &request->base, 0,
                                NULL, on_item, on_end, test);
}

static void watch(Test *test, guint64 after_seq)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.after_seq = after_seq;
    watch_as(test, &request);
}

/* JOB 0: of none. */
static void publish_of(Test *test, guint64 seq, guint64 job)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.seq = seq;
    event.kind = job != 0 ? BERTH__EVENT__KIND__GUEST_RUNNING : BERTH__EVENT__KIND__NODE_UP;
    event.job = job;
    berth_watchers_publish(test->daemon.watchers, &event);
}

static void publish(Test *test, guint64 seq)
{
    publish_of(test, seq, 0);
}

static void log_event(Test *test)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = BERTH__EVENT__KIND__NODE_UP;
    BerthTurn *turn = berth_engine_begin(test->daemon.engine);
    berth_turn_log(turn, &event);
    berth_turn_commit(turn);
}

/* A page of the store may have an event before its commit is told on the loop. */
static void watch_sends_an_event_once_that_a_page_had_before(void **state)
{
    Test *test = *state;
    for (guint i = 0; i < 3; i++) {
        log_event(test);
    }
    run_until(berth_engine_committed_seq(test->daemon.engine) == 3);
    watch(test, 0);
    run_until(test->seen->len == 3);
    publish(test, 2);
    publish(test, 3);
    publish(test, 4);
    run_until(g_array_index(test->seen, guint64, test->seen->len - 1) == 4);
    for (guint i = 0; i < test->seen->len; i++) {
        assert_int_equal(g_array_index(test->seen, guint64, i), i + 1);
    }
    assert_int_equal(test->seen->len, 4);
}

static void assert_seen(const Test *test, guint64 first, guint64 last)
{
    assert_int_equal(test->seen->len, last - first + 1);
    for (guint i = 0; i < test->seen->len; i++)
        assert_int_equal(g_array_index(test->seen, guint64, i), first + i);
}

static void log_events(Test *test, guint n)
{
    for (guint i = 0; i < n; i++)
        log_event(test);
    run_until(berth_engine_committed_seq(test->daemon.engine) == n);
}

static void watch_that_has_an_end_ends_there(void **state)
{
    Test *test = *state;
    log_events(test, 5);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.after_seq = 1;
    request.until_seq = 5;
    watch_as(test, &request);
    run_until(test->has_ended);
    assert_no_error(test->ended);
    assert_seen(test, 2, 5);
}

/* None of them is the job's: the end is not waited for in vain. */
static void watch_of_a_job_without_events_ends_at_its_end(void **state)
{
    Test *test = *state;
    log_events(test, 3);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.job = 7;
    request.until_seq = 3;
    watch_as(test, &request);
    run_until(test->has_ended);
    assert_no_error(test->ended);
    assert_int_equal(test->seen->len, 0);
}

static void watch_whose_end_is_still_to_come_waits_for_it(void **state)
{
    Test *test = *state;
    log_events(test, 2);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.until_seq = 4;
    watch_as(test, &request);
    run_until(test->seen->len == 2);
    publish(test, 3);
    publish(test, 4);
    run_until(test->has_ended);
    assert_no_error(test->ended);
    assert_seen(test, 1, 4);
}

static void publish_large(Test *test, guint64 seq)
{
    g_autofree char *large = g_strnfill(600u << 10, 'x');
    Berth__Event event = BERTH__EVENT__INIT;
    event.seq = seq;
    event.kind = BERTH__EVENT__KIND__NODE_UP;
    event.text = large;
    berth_watchers_publish(test->daemon.watchers, &event);
}

/* Two of these are more than is queued for a peer: it is told of more when it has them, and each time again. */
static void watch_that_was_too_slow_goes_on(void **state)
{
    Test *test = *state;
    log_event(test);
    run_until(berth_engine_committed_seq(test->daemon.engine) == 1);
    watch(test, 0);
    run_until(test->seen->len == 1);
    for (guint64 seq = 2; seq < 8; seq += 3) {
        publish_large(test, seq);
        publish_large(test, seq + 1);
        run_until(test->seen->len == seq + 1);
        publish(test, seq + 2);
        run_until(test->seen->len == seq + 2);
    }
    assert_seen(test, 1, 7);
}

/* N events, of which number I is of job I % 5 (0: of none). */
static void log_events_of_five(Test *test, guint n)
{
    BerthTurn *turn = berth_engine_begin(test->daemon.engine);
    for (guint i = 1; i <= n; i++) {
        Berth__Event event = BERTH__EVENT__INIT;
        event.kind = BERTH__EVENT__KIND__GUEST_RUNNING;
        event.job = i % 5;
        berth_turn_log(turn, &event);
    }
    berth_turn_commit(turn);
    run_until(berth_engine_committed_seq(test->daemon.engine) == n);
}

/* From several pages of the store, and then as they come. */
static void watch_of_several_jobs_has_theirs_alone(void **state)
{
    Test *test = *state;
    guint64 named[] = {4, 1, 4};
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    log_events_of_five(test, 2000);
    request.jobs = named;
    request.n_jobs = G_N_ELEMENTS(named);
    watch_as(test, &request);
    run_until(test->seen->len == 800);
    for (guint i = 0; i < test->seen->len; i++)
        assert_int_equal(g_array_index(test->seen, guint64, i), i / 2 * 5 + (i % 2 == 0 ? 1 : 4));
    static const guint64 later[] = {2, 4, 0, 1, 5};
    for (guint i = 0; i < G_N_ELEMENTS(later); i++)
        publish_of(test, 2001 + i, later[i]);
    run_until(test->seen->len == 802);
    assert_int_equal(g_array_index(test->seen, guint64, 800), 2002);
    assert_int_equal(g_array_index(test->seen, guint64, 801), 2004);
}

/* It sees neither of the last two. */
static void watch_of_a_job_ends_although_the_last_events_are_of_others(void **state)
{
    Test *test = *state;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    log_events_of_five(test, 6);
    request.job = 1;
    request.until_seq = 8;
    watch_as(test, &request);
    run_until(test->seen->len == 2);
    publish_of(test, 7, 2);
    assert_false(test->has_ended);
    publish_of(test, 8, 0);
    run_until(test->has_ended);
    assert_no_error(test->ended);
    assert_int_equal(test->seen->len, 2);
}

static void watch_of_what_cannot_be_named_is_refused(void **state)
{
    Test *test = *state;
    g_autofree guint64 *many = g_new(guint64, 10001);
    for (guint i = 0; i <= 10000; i++)
        many[i] = i + 1;
    guint64 none[] = {1, 0};
    const struct {
        guint64 job;
        guint64 *named;
        size_t n_named;
        const char *why;
    } cases[] = {{0, many, 10001, "names 10001 jobs; at most 10000"},
                 {0, none, 2, "names job 0"},
                 {1, many, 2, "a job and a list of jobs"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
        request.job = cases[i].job;
        request.jobs = cases[i].named;
        request.n_jobs = cases[i].n_named;
        watch_as(test, &request);
        run_until(test->ended != NULL);
        assert_berth_error(test->ended, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
        g_clear_error(&test->ended);
    }
}

typedef struct {
    Test *test;
    GCancellable *cancellable;
    gboolean has_ended;
    GError *error;
} Large;

static gboolean on_large_item(const ProtobufCMessage *item, gpointer user_data)
{
    return on_item(item, ((Large *)user_data)->test);
}

static void on_large_end(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Large *large = user_data;
    large->has_ended = TRUE;
    berth_rpc_peer_stream_finish(result, &large->error);
}

static void watch_many(Test *test, Large *large, guint64 *named, gsize n_named)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.from_now = TRUE;
    request.jobs = named;
    request.n_jobs = n_named;
    large->test = test;
    large->cancellable = g_cancellable_new();
    berth_rpc_peer_stream_async(test->client, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                large->cancellable, on_large_item, on_large_end, large);
}

static void large_clear(Large *large)
{
    g_object_unref(large->cancellable);
    g_clear_error(&large->error);
}

static void assert_one_is_too_many(Test *test, guint64 *named)
{
    Large one = {0};
    watch_many(test, &one, named, 1);
    run_until(one.has_ended);
    assert_berth_error(one.error, BERTH_ERROR_RESOURCE_EXHAUSTED, "names 1000000 by now");
    large_clear(&one);
}

/* What has ended counts no more. */
static void watches_of_a_user_name_a_million_jobs_at_most(void **state)
{
    enum { LARGE = 101, EACH = 10000 };
    Test *test = *state;
    Large large[LARGE] = {0};
    g_autofree guint64 *named = g_new(guint64, EACH);
    for (guint i = 0; i < EACH; i++)
        named[i] = i + 1;
    for (guint i = 0; i < LARGE - 1; i++)
        watch_many(test, &large[i], named, EACH);
    assert_one_is_too_many(test, named);
    g_cancellable_cancel(large[LARGE / 2].cancellable);
    run_until(large[LARGE / 2].has_ended);
    watch_many(test, &large[LARGE - 1], named, EACH);
    assert_one_is_too_many(test, named);
    publish_of(test, 1, EACH + 1);
    publish_of(test, 2, EACH);
    run_until(test->seen->len == LARGE - 1);
    for (guint i = 0; i < LARGE; i++) {
        g_cancellable_cancel(large[i].cancellable);
        run_until(large[i].has_ended);
        large_clear(&large[i]);
    }
}

static guint64 time_of_event(const Test *test, guint64 seq)
{
    g_autoptr(GPtrArray) events = berth_store_list_events(test->daemon.store, seq - 1, 0, 1, NULL);
    assert_int_equal(events->len, 1);
    return ((const Berth__Event *)g_ptr_array_index(events, 0))->time_usec;
}

static void watch_since_a_time_begins_with_its_first_event_and_goes_on(void **state)
{
    Test *test = *state;
    log_events(test, 4);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.since_usec = time_of_event(test, 4);
    guint64 first = 4;
    while (first > 1 && time_of_event(test, first - 1) == request.since_usec)
        first--;
    watch_as(test, &request);
    run_until(test->seen->len == 4 - first + 1);
    publish(test, 5);
    run_until(test->seen->len == 5 - first + 1);
    assert_seen(test, first, 5);
}

static void watch_since_what_is_to_come_has_only_that(void **state)
{
    Test *test = *state;
    log_events(test, 3);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.since_usec = G_MAXINT64;
    request.until_seq = 3;
    watch_as(test, &request);
    run_until(test->has_ended);
    assert_no_error(test->ended);
    assert_int_equal(test->seen->len, 0);
}

static void watch_after_what_has_no_number_yet_is_refused(void **state)
{
    Test *test = *state;
    watch(test, 7);
    run_until(test->ended != NULL);
    assert_berth_error(test->ended, BERTH_ERROR_FAILED_PRECONDITION, "watch from now on");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(watch_sends_an_event_once_that_a_page_had_before),
        TEST(watch_that_has_an_end_ends_there),
        TEST(watch_of_a_job_without_events_ends_at_its_end),
        TEST(watch_whose_end_is_still_to_come_waits_for_it),
        TEST(watch_that_was_too_slow_goes_on),
        TEST(watch_of_several_jobs_has_theirs_alone),
        TEST(watch_of_a_job_ends_although_the_last_events_are_of_others),
        TEST(watch_of_what_cannot_be_named_is_refused),
        TEST(watches_of_a_user_name_a_million_jobs_at_most),
        TEST(watch_since_a_time_begins_with_its_first_event_and_goes_on),
        TEST(watch_since_what_is_to_come_has_only_that),
        TEST(watch_after_what_has_no_number_yet_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
