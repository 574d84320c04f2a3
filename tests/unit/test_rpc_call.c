/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between two peers of ours over a socket pair. */
#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

#include "common/message.h"

#include <unistd.h>

typedef struct {
    RpcFixture *server;
    BerthRpcPeer *callee;
    BerthRpcPeer *caller;
    GError *callee_reason;
    GError *caller_reason;
    guint64 items;
    guint64 items_wanted; /* 0 = all */
} Pair;

static void connect_pair(Pair *pair, const BerthRpcLimits *limits)
{
    g_autoptr(GIOStream) a = NULL;
    g_autoptr(GIOStream) b = NULL;
    rpc_fixture_streams(&a, &b);
    pair->callee = berth_rpc_peer_new(a, pair->server->services, limits);
    pair->caller = berth_rpc_peer_new(b, NULL, limits);
    berth_rpc_peer_set_closed_func(pair->callee, rpc_fixture_store_reason, &pair->callee_reason);
    berth_rpc_peer_set_closed_func(pair->caller, rpc_fixture_store_reason, &pair->caller_reason);
}

static int setup(void **state)
{
    Pair *pair = g_new0(Pair, 1);
    pair->server = rpc_fixture_new();
    connect_pair(pair, NULL);
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    Pair *pair = *state;
    berth_rpc_peer_unref(pair->callee);
    berth_rpc_peer_unref(pair->caller);
    rpc_fixture_free(pair->server);
    g_clear_error(&pair->callee_reason);
    g_clear_error(&pair->caller_reason);
    g_free(pair);
    return 0;
}

/* The pair again, with other limits. */
static void reconnect(Pair *pair, const BerthRpcLimits *limits)
{
    berth_rpc_peer_unref(pair->callee);
    berth_rpc_peer_unref(pair->caller);
    connect_pair(pair, limits);
}

static void get_async(Pair *pair, guint64 job, guint timeout_msec, GCancellable *cancellable,
                      GAsyncResult **result)
{
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = job;
    berth_rpc_peer_call_async(pair->caller, &berth__jobs__descriptor, "Get", &request.base,
                              timeout_msec, cancellable, rpc_fixture_store_result, result);
}

static void hold_async(Pair *pair, guint timeout_msec, GCancellable *cancellable,
                       GAsyncResult **result)
{
    Berth__HoldRequest request = BERTH__HOLD_REQUEST__INIT;
    berth_rpc_peer_call_async(pair->caller, &berth__jobs__descriptor, "Hold", &request.base,
                              timeout_msec, cancellable, rpc_fixture_store_result, result);
}

static gboolean count_item(const ProtobufCMessage *item, gpointer data)
{
    Pair *pair = data;
    const Berth__LogChunk *chunk = (const Berth__LogChunk *)item;
    assert_int_equal(chunk->offset, pair->items * pair->server->chunk_bytes);
    pair->items++;
    return pair->items != pair->items_wanted;
}

static gboolean stream_logs(Pair *pair, guint64 chunks, GError **error)
{
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = chunks;
    return berth_rpc_peer_stream(pair->caller, &berth__jobs__descriptor, "Logs", &request.base, 0,
                                 count_item, pair, error);
}

static void call_unary_gets_the_reply(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = 42;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call(pair->caller, &berth__jobs__descriptor,
                                                            "Get", &request.base, 60000, &error);
    assert_no_error(error);
    assert_ptr_equal(reply->descriptor, &berth__job__descriptor);
    assert_int_equal(((Berth__Job *)reply)->id, 42);
    assert_string_equal(berth_rpc_peer_version(pair->caller), berth_rpc_peer_version(pair->callee));
    assert_true(strlen(berth_rpc_peer_version(pair->caller)) > 0);
}

static void call_that_fails_gets_code_and_message(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = 7;
    assert_null(berth_rpc_peer_call(pair->caller, &berth__jobs__descriptor, "Cancel", &request.base,
                                    0, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "no job 7");
    assert_string_equal(error->message, "no job 7");
}

static void call_of_a_service_that_is_not_there_is_unsupported(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    assert_null(berth_rpc_peer_call(pair->caller, &berth__server__descriptor, "Info", &request.base,
                                    0, &error));
    assert_berth_error(error, BERTH_ERROR_UNSUPPORTED, "Server.Info");
}

static void call_both_directions_at_once_both_answer(void **state)
{
    Pair *pair = *state;
    g_autoptr(GIOStream) a = NULL;
    g_autoptr(GIOStream) b = NULL;
    rpc_fixture_streams(&a, &b);
    g_autoptr(BerthRpcPeer) left = berth_rpc_peer_new(a, pair->server->services, NULL);
    g_autoptr(BerthRpcPeer) right = berth_rpc_peer_new(b, pair->server->services, NULL);
    g_autoptr(GAsyncResult) from_left = NULL;
    g_autoptr(GAsyncResult) from_right = NULL;
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = 1;
    berth_rpc_peer_call_async(left, &berth__jobs__descriptor, "Get", &request.base, 0, NULL,
                              rpc_fixture_store_result, &from_left);
    request.job = 2;
    berth_rpc_peer_call_async(right, &berth__jobs__descriptor, "Get", &request.base, 0, NULL,
                              rpc_fixture_store_result, &from_right);
    run_until(from_left != NULL && from_right != NULL);
    g_autoptr(ProtobufCMessage) one = berth_rpc_peer_call_finish(from_left, NULL);
    g_autoptr(ProtobufCMessage) two = berth_rpc_peer_call_finish(from_right, NULL);
    assert_int_equal(((Berth__Job *)one)->id, 1);
    assert_int_equal(((Berth__Job *)two)->id, 2);
}

static void call_many_at_once_each_gets_its_own_reply(void **state)
{
    enum { N = 1000 };
    Pair *pair = *state;
    GAsyncResult *results[N] = {NULL};
    for (guint i = 0; i < N; i++)
        get_async(pair, i + 1, 60000, NULL, &results[i]);
    for (guint i = 0; i < N; i++) {
        g_autoptr(GError) error = NULL;
        run_until(results[i] != NULL);
        g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(results[i], &error);
        assert_no_error(error);
        assert_int_equal(((Berth__Job *)reply)->id, i + 1);
        g_object_unref(results[i]);
    }
    assert_int_equal(pair->server->gets, N);
}

static void call_past_its_deadline_fails_and_the_callee_is_told(void **state)
{
    Pair *pair = *state;
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    hold_async(pair, 30, NULL, &result);
    run_until(result != NULL && pair->server->cancelled == 1);
    assert_null(berth_rpc_peer_call_finish(result, &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "Jobs.Hold: no answer from uid");
    assert_false(berth_rpc_peer_is_closed(pair->caller));
}

static void call_cancelled_fails_and_the_callee_is_told(void **state)
{
    Pair *pair = *state;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    hold_async(pair, 0, cancellable, &result);
    run_until(pair->server->held == 1);
    g_cancellable_cancel(cancellable);
    run_until(result != NULL && pair->server->cancelled == 1);
    assert_null(berth_rpc_peer_call_finish(result, &error));
    assert_berth_error(error, BERTH_ERROR_CANCELLED, "Jobs.Hold");
}

static void reply_after_the_cancel_is_dropped(void **state)
{
    Pair *pair = *state;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GAsyncResult) next = NULL;
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    pair->server->answer_cancelled = FALSE;
    hold_async(pair, 0, cancellable, &result);
    run_until(pair->server->held == 1);
    g_cancellable_cancel(cancellable);
    run_until(pair->server->cancelled == 1);
    berth_rpc_call_reply(g_ptr_array_steal_index(pair->server->open, 0), &reply.base);
    get_async(pair, 1, 0, NULL, &next);
    run_until(next != NULL);
    g_autoptr(ProtobufCMessage) job = berth_rpc_peer_call_finish(next, NULL);
    assert_non_null(job);
}

static void call_on_a_closed_connection_fails_with_its_reason(void **state)
{
    Pair *pair = *state;
    g_autoptr(GAsyncResult) open_call = NULL;
    g_autoptr(GAsyncResult) late_call = NULL;
    g_autoptr(GError) error = NULL;
    hold_async(pair, 0, NULL, &open_call);
    run_until(pair->server->held == 1);
    berth_rpc_peer_close(pair->callee, TRUE);
    run_until(pair->caller_reason != NULL && pair->callee_reason != NULL);
    assert_berth_error(pair->caller_reason, BERTH_ERROR_UNAVAILABLE, "closed the connection");
    assert_berth_error(pair->callee_reason, BERTH_ERROR_UNAVAILABLE, "closed by this side");
    assert_int_equal(pair->server->cancelled, 1);
    assert_non_null(open_call); /* completed before the closed function was called */
    assert_null(berth_rpc_peer_call_finish(open_call, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "Jobs.Hold: uid");
    g_clear_error(&error);
    get_async(pair, 1, 0, NULL, &late_call);
    assert_null(late_call); /* never from inside the call */
    run_until(late_call != NULL);
    assert_null(berth_rpc_peer_call_finish(late_call, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "Jobs.Get");
}

static void close_orderly_writes_what_is_queued(void **state)
{
    Pair *pair = *state;
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    pair->server->chunk_bytes = 3 << 20; /* more than a socket's buffer */
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    berth_rpc_peer_call_async(pair->caller, &berth__jobs__descriptor, "List", &request.base, 0,
                              NULL, rpc_fixture_store_result, &result);
    Berth__HoldRequest hold = BERTH__HOLD_REQUEST__INIT;
    g_autoptr(GAsyncResult) held = NULL;
    berth_rpc_peer_call_async(pair->caller, &berth__jobs__descriptor, "Hold", &hold.base, 0, NULL,
                              rpc_fixture_store_result, &held);
    run_until(pair->server->held == 1 || result != NULL);
    berth_rpc_peer_close(pair->callee, FALSE);
    run_until(result != NULL && pair->caller_reason != NULL && pair->callee_reason != NULL);
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    assert_no_error(error);
    assert_int_equal(strlen(((Berth__ListJobsReply *)reply)->jobs[0]->name), 3 << 20);
    assert_berth_error(pair->caller_reason, BERTH_ERROR_UNAVAILABLE, "closed the connection");
}

static void stream_gives_all_items_in_order(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    pair->server->chunk_bytes = 1000;
    assert_true(stream_logs(pair, 5000, &error));
    assert_no_error(error);
    assert_int_equal(pair->items, 5000);
}

static void stream_empty_ends(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    assert_true(stream_logs(pair, 0, &error));
    assert_int_equal(pair->items, 0);
}

static void stream_item_func_false_cancels_it(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    pair->server->chunk_bytes = 100000;
    pair->items_wanted = 3;
    assert_true(stream_logs(pair, 1000000, &error));
    assert_int_equal(pair->items, 3);
    run_until(pair->server->cancelled == 1);
    assert_true(pair->server->chunks_queued < 1000);
}

static void stream_of_a_unary_method_is_a_protocol_error(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    assert_false(berth_rpc_peer_stream(pair->caller, &berth__jobs__descriptor, "Get", &request.base,
                                       0, count_item, pair, &error));
    assert_berth_error(error, BERTH_ERROR_PROTOCOL, "answered a stream with a single reply");
}

static void call_of_a_stream_method_is_a_protocol_error(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = 1;
    assert_null(berth_rpc_peer_call(pair->caller, &berth__jobs__descriptor, "Logs", &request.base,
                                    0, &error));
    assert_berth_error(error, BERTH_ERROR_PROTOCOL, "answered a call with a stream");
}

static void call_with_too_large_a_request_is_refused_here(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    g_autofree char *key = g_strnfill(4 << 20, 'k');
    request.idempotency_key = key;
    assert_null(berth_rpc_peer_call(pair->caller, &berth__jobs__descriptor, "Submit", &request.base,
                                    0, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "Jobs.Submit: the request of");
    assert_false(berth_rpc_peer_is_closed(pair->caller));
}

static void reply_too_large_becomes_a_failure(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    pair->server->chunk_bytes = 5 << 20;
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    assert_null(berth_rpc_peer_call(pair->caller, &berth__jobs__descriptor, "List", &request.base,
                                    0, &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "the answer of");
}

static void item_too_large_fails_the_stream_and_tells_the_handler(void **state)
{
    Pair *pair = *state;
    g_autoptr(GError) error = NULL;
    pair->server->chunk_bytes = 5 << 20;
    assert_false(stream_logs(pair, 3, &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "the answer of");
    run_until(pair->server->cancelled == 1);
    assert_int_equal(pair->server->chunks_queued, 1);
}

static void calls_past_the_limit_fail_and_the_others_live(void **state)
{
    Pair *pair = *state;
    GAsyncResult *results[4] = {NULL};
    reconnect(pair, &(BerthRpcLimits){.max_open_calls = 3});
    for (guint i = 0; i < 4; i++)
        hold_async(pair, 0, NULL, &results[i]);
    run_until(results[3] != NULL);
    g_autoptr(GError) error = NULL;
    assert_null(berth_rpc_peer_call_finish(results[3], &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "3 calls open already");
    g_object_unref(results[3]);
    assert_int_equal(pair->server->held, 3);
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    while (pair->server->open->len > 0)
        berth_rpc_call_reply(g_ptr_array_steal_index(pair->server->open, 0), &reply.base);
    for (guint i = 0; i < 3; i++) {
        run_until(results[i] != NULL);
        g_autoptr(ProtobufCMessage) answer = berth_rpc_peer_call_finish(results[i], NULL);
        assert_non_null(answer);
        g_object_unref(results[i]);
    }
}

static void requests_that_take_too_much_memory_fail(void **state)
{
    Pair *pair = *state;
    GAsyncResult *results[6] = {NULL};
    reconnect(pair, &(BerthRpcLimits){.max_frame_bytes = 100000});
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    g_autofree char *key = g_strnfill(90000, 'k');
    request.idempotency_key = key;
    for (guint i = 0; i < 6; i++)
        berth_rpc_peer_call_async(pair->caller, &berth__jobs__descriptor, "Submit", &request.base,
                                  0, NULL, rpc_fixture_store_result, &results[i]);
    run_until(results[4] != NULL && results[5] != NULL);
    assert_int_equal(pair->server->held, 4);
    g_autoptr(GError) error = NULL;
    assert_null(berth_rpc_peer_call_finish(results[4], &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "of memory");
    berth_rpc_peer_close(pair->caller, TRUE);
    for (guint i = 0; i < 6; i++) {
        run_until(results[i] != NULL);
        g_object_unref(results[i]);
    }
}

static void count_free(gpointer data)
{
    ++*(guint *)data;
}

static void peer_data_is_freed_when_replaced_and_when_the_owner_goes(void **state)
{
    Pair *pair = *state;
    guint freed = 0;
    berth_rpc_peer_set_data(pair->caller, &freed, count_free);
    assert_ptr_equal(berth_rpc_peer_get_data(pair->caller), &freed);
    berth_rpc_peer_set_data(pair->caller, &freed, count_free);
    assert_int_equal(freed, 1);
    BerthRpcPeer *second = berth_rpc_peer_ref(pair->caller);
    berth_rpc_peer_unref(second);
    assert_int_equal(freed, 1);
    berth_rpc_peer_unref(pair->caller);
    pair->caller = NULL;
    assert_int_equal(freed, 2);
    run_until(pair->callee_reason != NULL);
}

static void identity_of_a_unix_peer_is_what_the_kernel_says(void **state)
{
    Pair *pair = *state;
    const BerthRpcIdentity *identity = berth_rpc_peer_identity(pair->callee);
    assert_true(identity->is_unix);
    assert_int_equal(identity->uid, getuid());
    assert_int_equal(identity->gid, getgid());
    assert_int_equal(identity->pid, getpid());
    assert_null(identity->node_name);
    assert_non_null(strstr(identity->description, "uid "));
    int count = getgroups(0, NULL);
    assert_int_equal(identity->n_groups, count);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(call_unary_gets_the_reply),
        TEST(call_that_fails_gets_code_and_message),
        TEST(call_of_a_service_that_is_not_there_is_unsupported),
        TEST(call_both_directions_at_once_both_answer),
        TEST(call_many_at_once_each_gets_its_own_reply),
        TEST(call_past_its_deadline_fails_and_the_callee_is_told),
        TEST(call_cancelled_fails_and_the_callee_is_told),
        TEST(reply_after_the_cancel_is_dropped),
        TEST(call_on_a_closed_connection_fails_with_its_reason),
        TEST(close_orderly_writes_what_is_queued),
        TEST(stream_gives_all_items_in_order),
        TEST(stream_empty_ends),
        TEST(stream_item_func_false_cancels_it),
        TEST(stream_of_a_unary_method_is_a_protocol_error),
        TEST(call_of_a_stream_method_is_a_protocol_error),
        TEST(call_with_too_large_a_request_is_refused_here),
        TEST(reply_too_large_becomes_a_failure),
        TEST(item_too_large_fails_the_stream_and_tells_the_handler),
        TEST(calls_past_the_limit_fail_and_the_others_live),
        TEST(requests_that_take_too_much_memory_fail),
        TEST(peer_data_is_freed_when_replaced_and_when_the_owner_goes),
        TEST(identity_of_a_unix_peer_is_what_the_kernel_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
