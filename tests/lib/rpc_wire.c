/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a peer and the raw socket at its other end (tests/lib/rpc_wire.h). */
#include "tests/lib/rpc_wire.h"

#include <unistd.h>

void wire_open(Wire *wire, const BerthRpcLimits *limits)
{
    wire->peer = rpc_fixture_raw(wire->server, limits, &wire->fd);
    wire->reader = berth_rpc_frame_reader_new(8 << 20);
    berth_rpc_peer_set_closed_func(wire->peer, rpc_fixture_store_reason, &wire->reason);
}

void wire_close(Wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    wire->fd = -1;
    berth_rpc_peer_unref(wire->peer);
    wire->peer = NULL;
    g_clear_pointer(&wire->reader, berth_rpc_frame_reader_free);
    g_clear_error(&wire->reason);
    while (g_main_context_iteration(NULL, FALSE))
        ; /* lets the peer go */
}

int wire_setup(void **state)
{
    Wire *wire = g_new0(Wire, 1);
    wire->server = rpc_fixture_new();
    wire_open(wire, NULL);
    *state = wire;
    return 0;
}

int wire_teardown(void **state)
{
    Wire *wire = *state;
    wire_close(wire);
    rpc_fixture_free(wire->server);
    g_free(wire);
    return 0;
}

void wire_reopen(Wire *wire, const BerthRpcLimits *limits)
{
    wire_close(wire);
    wire_open(wire, limits);
}

GBytes *wire_get_request(guint64 id)
{
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = id;
    return rpc_fixture_request(id, "Jobs.Get", &request.base);
}

void wire_say_hello(Wire *wire)
{
    rpc_fixture_say(wire->fd, rpc_fixture_hello(1, 1));
    g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
    assert_int_equal(frame->kind, BERTH__FRAME__KIND__HELLO);
}

void wire_hear_failure(Wire *wire, guint64 id, BerthErrorCode code, const char *text)
{
    g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
    assert_non_null(frame);
    assert_int_equal(frame->kind, BERTH__FRAME__KIND__FAILURE);
    assert_int_equal(frame->call_id, id);
    assert_int_equal(frame->error->code, code);
    assert_non_null(strstr(frame->error->message, text));
}

void assert_wire_alive(Wire *wire, guint64 id)
{
    rpc_fixture_say(wire->fd, wire_get_request(id));
    g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
    assert_non_null(frame);
    assert_int_equal(frame->kind, BERTH__FRAME__KIND__RESPONSE);
    assert_int_equal(frame->call_id, id);
}

void assert_wire_ends(Wire *wire, BerthErrorCode code, const char *text)
{
    run_until(wire->reason != NULL);
    assert_berth_error(wire->reason, code, text);
    assert_true(berth_rpc_peer_is_closed(wire->peer));
}
