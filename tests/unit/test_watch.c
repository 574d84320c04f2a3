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
    berth_rpc_peer_stream_finish(result, &test->ended);
}

static void watch(Test *test, guint64 after_seq)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.after_seq = after_seq;
    berth_rpc_peer_stream_async(test->client, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                NULL, on_item, on_end, test);
}

static void publish(Test *test, guint64 seq)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.seq = seq;
    event.kind = BERTH__EVENT__KIND__NODE_UP;
    berth_watchers_publish(test->daemon.watchers, &event);
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
        TEST(watch_after_what_has_no_number_yet_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
