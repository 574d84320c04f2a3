/* SPDX-License-Identifier: Apache-2.0 */
/* A peer of ours against raw bytes: silence, and how slowly others may take. */
#include "tests/lib/rpc_wire.h"

#include <sys/ioctl.h>
#include <unistd.h>

/* --- keepalive ------------------------------------------------------------------------------ */

static void ping_is_answered(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    rpc_fixture_say(wire->fd, rpc_fixture_frame(BERTH__FRAME__KIND__PING, 0));
    g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
    assert_int_equal(frame->kind, BERTH__FRAME__KIND__PONG);
}

static int unread(const Wire *wire)
{
    int bytes = 0;
    assert_int_equal(ioctl(wire->fd, FIONREAD, &bytes), 0);
    return bytes;
}

static void answers_of_one_turn_are_written_together(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    for (int i = 0; i < 3; i++)
        rpc_fixture_say(wire->fd, rpc_fixture_frame(BERTH__FRAME__KIND__PING, 0));
    run_until(unread(wire) > 0);
    g_autoptr(GBytes) pong = rpc_fixture_frame(BERTH__FRAME__KIND__PONG, 0);
    assert_int_equal(unread(wire), 3 * g_bytes_get_size(pong));
}

static void silence_is_asked_and_then_ended(void **state)
{
    Wire *wire = *state;
    wire_reopen(wire,
                &(BerthRpcLimits){.keepalive_interval_msec = 20, .keepalive_timeout_msec = 200});
    wire_say_hello(wire);
    g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
    assert_int_equal(frame->kind, BERTH__FRAME__KIND__PING);
    assert_wire_ends(wire, BERTH_ERROR_UNAVAILABLE, "no sign of life from uid");
}

static void answered_pings_keep_it_open(void **state)
{
    Wire *wire = *state;
    wire_reopen(wire,
                &(BerthRpcLimits){.keepalive_interval_msec = 20, .keepalive_timeout_msec = 5000});
    wire_say_hello(wire);
    for (int i = 0; i < 5; i++) {
        g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
        assert_non_null(frame);
        assert_int_equal(frame->kind, BERTH__FRAME__KIND__PING);
        rpc_fixture_say(wire->fd, rpc_fixture_frame(BERTH__FRAME__KIND__PONG, 0));
    }
    assert_null(wire->reason);
}

static void frame_that_stops_in_the_middle_ends_it(void **state)
{
    Wire *wire = *state;
    wire_reopen(wire, &(BerthRpcLimits){.frame_timeout_msec = 100});
    wire_say_hello(wire);
    g_autoptr(GBytes) request = wire_get_request(1);
    assert_true(write(wire->fd, g_bytes_get_data(request, NULL), 5) == 5);
    assert_wire_ends(wire, BERTH_ERROR_DEADLINE_EXCEEDED, "in the middle of a frame");
}

static gboolean set_flag(gpointer flag)
{
    *(gboolean *)flag = TRUE;
    return G_SOURCE_REMOVE;
}

static void connection_that_is_idle_between_frames_is_left_alone(void **state)
{
    Wire *wire = *state;
    wire_reopen(wire, &(BerthRpcLimits){.frame_timeout_msec = 40});
    wire_say_hello(wire);
    assert_wire_alive(wire, 1);
    gboolean is_long = FALSE;
    g_timeout_add(200, set_flag, &is_long);
    run_until(is_long);
    assert_wire_alive(wire, 2);
}

/* --- backpressure --------------------------------------------------------------------------- */

/* Runs what is due until nothing is. */
static void settle(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static void ask_logs(Wire *wire, guint64 id, guint64 chunks)
{
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = chunks;
    rpc_fixture_say(wire->fd, rpc_fixture_request(id, "Jobs.Logs", &request.base));
}

static void stream_to_a_reader_that_stalls_stops_and_goes_on(void **state)
{
    Wire *wire = *state;
    wire->server->chunk_bytes = 65536;
    wire_say_hello(wire);
    ask_logs(wire, 1, 1000);
    settle();
    /* The queue, a chunk over it, and what the socket holds. */
    assert_in_range(wire->server->chunks_queued, 16, 40);
    guint64 items = 0;
    for (;;) {
        g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
        assert_non_null(frame);
        if (frame->kind == BERTH__FRAME__KIND__END)
            break;
        items++;
        assert_true(wire->server->chunks_queued <= items + 40);
    }
    assert_int_equal(items, 1000);
}

static void streams_to_one_reader_share_it(void **state)
{
    Wire *wire = *state;
    wire->server->chunk_bytes = 65536;
    wire_say_hello(wire);
    for (guint64 id = 1; id <= 3; id++)
        ask_logs(wire, id, 100);
    guint64 items[4] = {0}, ends = 0;
    while (ends < 3) {
        g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
        if (frame->kind == BERTH__FRAME__KIND__END)
            ends++;
        else
            items[frame->call_id]++;
        if (ends == 0 && items[1] == 90)
            assert_true(items[2] > 10 && items[3] > 10);
    }
    assert_int_equal(items[1] + items[2] + items[3], 300);
}

static void requests_of_a_peer_that_takes_no_replies_wait(void **state)
{
    Wire *wire = *state;
    wire->server->chunk_bytes = 100000;
    wire_reopen(wire, &(BerthRpcLimits){.queue_high_bytes = 50000});
    wire_say_hello(wire);
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    for (guint64 id = 1; id <= 20; id++)
        rpc_fixture_say(wire->fd, rpc_fixture_request(id, "Jobs.List", &request.base));
    rpc_fixture_say(wire->fd, wire_get_request(21));
    settle();
    assert_int_equal(wire->server->gets, 0); /* it stands behind replies that are not taken */
    for (guint64 id = 1; id <= 21; id++) {
        g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
        assert_int_equal(frame->kind, BERTH__FRAME__KIND__RESPONSE);
        assert_int_equal(frame->call_id, id);
    }
    assert_int_equal(wire->server->gets, 1);
}

static void cancel_passes_a_full_queue(void **state)
{
    Wire *wire = *state;
    wire->server->chunk_bytes = 65536;
    wire_say_hello(wire);
    ask_logs(wire, 1, 1000000);
    settle();
    rpc_fixture_say(wire->fd, rpc_fixture_frame(BERTH__FRAME__KIND__CANCEL, 1));
    run_until(wire->server->cancelled == 1);
    assert_true(wire->server->chunks_queued < 100);
}

static void reader_that_stalls_does_not_stall_others(void **state)
{
    Wire *stalled = *state;
    Wire other = {.server = stalled->server};
    stalled->server->chunk_bytes = 65536;
    wire_say_hello(stalled);
    ask_logs(stalled, 1, 1000000);
    settle();
    wire_open(&other, NULL);
    wire_say_hello(&other);
    for (guint64 id = 1; id <= 100; id++)
        assert_wire_alive(&other, id);
    wire_close(&other);
}

static void stalled_peer_with_waiting_requests_is_ended_in_the_end(void **state)
{
    Wire *wire = *state;
    wire->server->chunk_bytes = 3 << 20;
    wire_reopen(wire,
                &(BerthRpcLimits){.keepalive_interval_msec = 50, .keepalive_timeout_msec = 200});
    wire_say_hello(wire);
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    rpc_fixture_say(wire->fd, rpc_fixture_request(1, "Jobs.List", &request.base));
    rpc_fixture_say(wire->fd, wire_get_request(2));
    assert_wire_ends(wire, BERTH_ERROR_UNAVAILABLE, "no sign of life");
    assert_int_equal(wire->server->gets, 0);
}

static void orderly_close_towards_a_stalled_reader_ends_in_time(void **state)
{
    Wire *wire = *state;
    wire->server->chunk_bytes = 65536;
    wire_reopen(wire, &(BerthRpcLimits){.hello_timeout_msec = 200});
    wire_say_hello(wire);
    ask_logs(wire, 1, 1000000);
    settle();
    berth_rpc_peer_close(wire->peer, FALSE);
    berth_rpc_peer_close(wire->peer, FALSE); /* idempotent */
    assert_wire_ends(wire, BERTH_ERROR_UNAVAILABLE, "closed by this side");
    assert_int_equal(wire->server->cancelled, 1);
}

static void abort_during_an_orderly_close_ends_it_at_once(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    berth_rpc_peer_close(wire->peer, FALSE);
    berth_rpc_peer_close(wire->peer, TRUE);
    assert_wire_ends(wire, BERTH_ERROR_UNAVAILABLE, "closed by this side");
    assert_null(rpc_fixture_hear(wire->fd, wire->reader));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_setup, wire_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ping_is_answered),
        TEST(answers_of_one_turn_are_written_together),
        TEST(silence_is_asked_and_then_ended),
        TEST(answered_pings_keep_it_open),
        TEST(frame_that_stops_in_the_middle_ends_it),
        TEST(connection_that_is_idle_between_frames_is_left_alone),
        TEST(stream_to_a_reader_that_stalls_stops_and_goes_on),
        TEST(streams_to_one_reader_share_it),
        TEST(requests_of_a_peer_that_takes_no_replies_wait),
        TEST(cancel_passes_a_full_queue),
        TEST(reader_that_stalls_does_not_stall_others),
        TEST(stalled_peer_with_waiting_requests_is_ended_in_the_end),
        TEST(orderly_close_towards_a_stalled_reader_ends_in_time),
        TEST(abort_during_an_orderly_close_ends_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
