/* SPDX-License-Identifier: Apache-2.0 */
/* A peer of ours against raw bytes: what others may send. */
#include "tests/lib/rpc_wire.h"

#include "common/message.h"

#include <sys/socket.h>
#include <unistd.h>

/* --- HELLO -------------------------------------------------------------------------------- */

static void hello_of_other_versions_ends_with_both_named(void **state)
{
    static const guint32 versions[][2] = {{2, 9}, {0, 0}, {G_MAXUINT32, G_MAXUINT32}};
    Wire *wire = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(versions); i++) {
        g_autofree char *theirs =
            g_strdup_printf("9.9.9 with protocol %u to %u", versions[i][0], versions[i][1]);
        wire_reopen(wire, NULL);
        rpc_fixture_say(wire->fd, rpc_fixture_hello(versions[i][0], versions[i][1]));
        /* The other side must get our HELLO, to say the same. */
        g_autoptr(Berth__Frame) hello = rpc_fixture_hear(wire->fd, wire->reader);
        assert_int_equal(hello->hello->protocol, BERTH_RPC_PROTOCOL);
        assert_null(rpc_fixture_hear(wire->fd, wire->reader));
        close(wire->fd);
        wire->fd = -1;
        assert_wire_ends(wire, BERTH_ERROR_PROTOCOL, theirs);
        assert_non_null(strstr(wire->reason->message, "with protocol 1 to 1"));
    }
}

static void hello_of_a_newer_version_that_knows_ours_is_taken(void **state)
{
    Wire *wire = *state;
    rpc_fixture_say(wire->fd, rpc_fixture_hello(1, 7));
    g_autoptr(Berth__Frame) hello = rpc_fixture_hear(wire->fd, wire->reader);
    assert_wire_alive(wire, 1);
    assert_string_equal(berth_rpc_peer_version(wire->peer), "9.9.9");
}

static void request_before_hello_ends_it(void **state)
{
    Wire *wire = *state;
    rpc_fixture_say(wire->fd, wire_get_request(1));
    assert_wire_ends(wire, BERTH_ERROR_PROTOCOL, "did not begin with HELLO");
    assert_int_equal(wire->server->gets, 0);
}

static void second_hello_ends_it(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    rpc_fixture_say(wire->fd, rpc_fixture_hello(1, 1));
    assert_wire_ends(wire, BERTH_ERROR_PROTOCOL, "second HELLO");
}

static void no_hello_in_time_ends_it(void **state)
{
    Wire *wire = *state;
    wire_reopen(wire, &(BerthRpcLimits){.hello_timeout_msec = 20});
    assert_wire_ends(wire, BERTH_ERROR_DEADLINE_EXCEEDED, "sent no HELLO within 20 ms");
}

/* --- garbage ------------------------------------------------------------------------------ */

static void frame_of_a_bad_length_ends_it(void **state)
{
    static const struct {
        guint8 length[4];
        const char *message;
    } cases[] = {{{0, 0x40, 0, 1}, "a frame of 4194305 bytes"},
                 {{0xff, 0xff, 0xff, 0xff}, "a frame of 4294967295 bytes"},
                 {{0, 0, 0, 0}, "a frame of 0 bytes"},
                 {{'G', 'E', 'T', ' '}, "a frame of 1195725856 bytes"}};
    Wire *wire = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        wire_reopen(wire, NULL);
        wire_say_hello(wire);
        rpc_fixture_say(wire->fd, g_bytes_new(cases[i].length, 4));
        assert_wire_ends(wire, BERTH_ERROR_PROTOCOL, cases[i].message);
    }
}

static void frame_that_is_incomplete_in_itself_ends_it(void **state)
{
    const struct {
        Berth__Frame frame;
        const char *message;
    } cases[] = {
        {{PROTOBUF_C_MESSAGE_INIT(&berth__frame__descriptor), .kind = (Berth__Frame__Kind)77,
          .method = (char *)""},
         "unknown kind"},
        {{PROTOBUF_C_MESSAGE_INIT(&berth__frame__descriptor), .call_id = 1, .method = (char *)""},
         "HELLO without versions"},
        {{PROTOBUF_C_MESSAGE_INIT(&berth__frame__descriptor), .kind = BERTH__FRAME__KIND__REQUEST,
          .method = (char *)"Jobs.Get"},
         "request without an id"},
        {{PROTOBUF_C_MESSAGE_INIT(&berth__frame__descriptor), .kind = BERTH__FRAME__KIND__FAILURE,
          .call_id = 1, .method = (char *)""},
         "failure without an error"},
        {{PROTOBUF_C_MESSAGE_INIT(&berth__frame__descriptor), .kind = BERTH__FRAME__KIND__RESPONSE,
          .call_id = 1, .method = (char *)""},
         "a call that was never made"},
        {{PROTOBUF_C_MESSAGE_INIT(&berth__frame__descriptor), .kind = BERTH__FRAME__KIND__END,
          .method = (char *)""},
         "a call that was never made"},
        {{PROTOBUF_C_MESSAGE_INIT(&berth__frame__descriptor), .kind = BERTH__FRAME__KIND__PING,
          .method = (char *)"\xff"},
         "not UTF-8"},
    };
    Wire *wire = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        wire_reopen(wire, NULL);
        wire_say_hello(wire);
        rpc_fixture_say(wire->fd, berth_rpc_frame_encode(&cases[i].frame));
        assert_wire_ends(wire, BERTH_ERROR_PROTOCOL, cases[i].message);
    }
}

/* HELLO, two requests and a CANCEL, as bytes. */
static GBytes *conversation(void)
{
    g_autoptr(GByteArray) all = g_byte_array_new();
    Berth__HoldRequest hold = BERTH__HOLD_REQUEST__INIT;
    GBytes *parts[] = {rpc_fixture_hello(1, 1), wire_get_request(1),
                       rpc_fixture_request(2, "Jobs.Hold", &hold.base),
                       rpc_fixture_frame(BERTH__FRAME__KIND__CANCEL, 2)};
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++) {
        gsize size = 0;
        const guint8 *data = g_bytes_get_data(parts[i], &size);
        g_byte_array_append(all, data, (guint)size);
        g_bytes_unref(parts[i]);
    }
    return g_byte_array_free_to_bytes(g_steal_pointer(&all));
}

/* Whatever a byte is changed to: the peer ends in its own time, with a reason, or serves on. */
static void garbage_at_each_byte_harms_nobody(void **state)
{
    static const guint8 changes[] = {0x01, 0x80, 0xff};
    Wire *wire = *state;
    g_autoptr(GBytes) valid = conversation();
    gsize size = 0;
    const guint8 *data = g_bytes_get_data(valid, &size);
    for (gsize i = 0; i < size * G_N_ELEMENTS(changes); i++) {
        g_autofree guint8 *bytes = g_memdup2(data, size);
        bytes[i / G_N_ELEMENTS(changes)] ^= changes[i % G_N_ELEMENTS(changes)];
        wire_reopen(wire, NULL);
        rpc_fixture_say(wire->fd, g_bytes_new(bytes, size));
        shutdown(wire->fd, SHUT_WR);
        run_until(wire->reason != NULL);
        assert_true(wire->reason->code == BERTH_ERROR_PROTOCOL ||
                    wire->reason->code == BERTH_ERROR_UNAVAILABLE);
    }
}

static void end_after_each_byte_is_told(void **state)
{
    Wire *wire = *state;
    g_autoptr(GBytes) valid = conversation();
    for (gsize i = 0; i <= g_bytes_get_size(valid); i++) {
        wire_reopen(wire, NULL);
        rpc_fixture_say(wire->fd, g_bytes_new_from_bytes(valid, 0, i));
        close(wire->fd);
        wire->fd = -1;
        assert_wire_ends(wire, BERTH_ERROR_UNAVAILABLE, "");
    }
    assert_int_equal(wire->server->open->len, 0);
}

static void end_in_the_middle_of_a_frame_says_so(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    rpc_fixture_say(wire->fd, g_bytes_new_static("\0\0\0\11\x08", 5));
    shutdown(wire->fd, SHUT_WR);
    assert_wire_ends(wire, BERTH_ERROR_UNAVAILABLE, "in the middle of a frame");
}

static void bytes_one_by_one_are_put_together(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    g_autoptr(GBytes) request = wire_get_request(1);
    for (gsize i = 0; i < g_bytes_get_size(request); i++) {
        rpc_fixture_say(wire->fd, g_bytes_new_from_bytes(request, i, 1));
        while (g_main_context_iteration(NULL, FALSE))
            ; /* the peer has read it */
    }
    g_autoptr(Berth__Frame) frame = rpc_fixture_hear(wire->fd, wire->reader);
    assert_int_equal(frame->kind, BERTH__FRAME__KIND__RESPONSE);
}

/* --- bad requests: only the call fails ------------------------------------------------------ */

static void request_for_an_unknown_method_fails(void **state)
{
    static const char *const names[] = {"Jobs.Nope", "Nope.Get", "Jobs", "",        ".",
                                        "Jobs.",     "JobsGet",  ".Get", "Job.Get", "Jobs.Get.Get"};
    Wire *wire = *state;
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    wire_say_hello(wire);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        rpc_fixture_say(wire->fd, rpc_fixture_request(i + 1, names[i], &request.base));
        wire_hear_failure(wire, i + 1, BERTH_ERROR_UNSUPPORTED, "no such method");
    }
    assert_wire_alive(wire, 100);
}

static void request_with_a_bad_payload_fails(void **state)
{
    Wire *wire = *state;
    Berth__Error not_utf8 = BERTH__ERROR__INIT;
    wire_say_hello(wire);
    /* Field 1 of a JobSpec, a string, is not UTF-8: Submit takes it as its spec's name. */
    Berth__SubmitRequest submit = BERTH__SUBMIT_REQUEST__INIT;
    submit.idempotency_key = (char *)"\xff\xfe";
    rpc_fixture_say(wire->fd, rpc_fixture_request(1, "Jobs.Submit", &submit.base));
    wire_hear_failure(wire, 1, BERTH_ERROR_INVALID_ARGUMENT, "idempotency_key is not UTF-8");
    /* An Error's message (field 2, text) where a SubmitRequest has inline blobs; truncated below. */
    not_utf8.message = (char *)"text";
    g_autoptr(GBytes) packed = berth_message_pack(&not_utf8.base);
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__REQUEST;
    frame.call_id = 2;
    frame.method = (char *)"Jobs.Submit";
    frame.payload.data = (guint8 *)g_bytes_get_data(packed, NULL);
    frame.payload.len = g_bytes_get_size(packed) - 1;
    rpc_fixture_say(wire->fd, berth_rpc_frame_encode(&frame));
    wire_hear_failure(wire, 2, BERTH_ERROR_INVALID_ARGUMENT, "malformed");
    assert_wire_alive(wire, 3);
}

static void request_that_blows_up_in_memory_fails(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    /* spec { inputs {} inputs {} ... }: two bytes each here, a hundred there. */
    gsize count = 1000000, inner = 2 * count;
    g_autofree guint8 *payload = g_malloc(inner + 5);
    gsize at = 0;
    payload[at++] = 0x0a;
    for (gsize left = inner; left > 0; left >>= 7)
        payload[at++] = (guint8)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    for (gsize i = 0; i < count; i++) {
        payload[at++] = 0x5a;
        payload[at++] = 0;
    }
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__REQUEST;
    frame.call_id = 1;
    frame.method = (char *)"Jobs.Submit";
    frame.payload.data = payload;
    frame.payload.len = at;
    g_autoptr(GBytes) bytes = berth_rpc_frame_encode(&frame);
    /* More than the socket takes at once. */
    gsize sent = 0;
    while (sent < g_bytes_get_size(bytes)) {
        gssize n = send(wire->fd, (const guint8 *)g_bytes_get_data(bytes, NULL) + sent,
                        g_bytes_get_size(bytes) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += (gsize)MAX(n, 0);
        g_main_context_iteration(NULL, FALSE);
    }
    wire_hear_failure(wire, 1, BERTH_ERROR_RESOURCE_EXHAUSTED, "bytes of memory");
    assert_wire_alive(wire, 2);
}

static void request_with_the_id_of_an_open_call_ends_it(void **state)
{
    Wire *wire = *state;
    Berth__HoldRequest hold = BERTH__HOLD_REQUEST__INIT;
    wire_say_hello(wire);
    rpc_fixture_say(wire->fd, rpc_fixture_request(5, "Jobs.Hold", &hold.base));
    rpc_fixture_say(wire->fd, rpc_fixture_request(5, "Jobs.Hold", &hold.base));
    assert_wire_ends(wire, BERTH_ERROR_PROTOCOL, "number of an open call again");
    assert_int_equal(wire->server->cancelled, 1);
}

static void request_past_its_deadline_is_cancelled_here_too(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__REQUEST;
    frame.call_id = 1;
    frame.method = (char *)"Jobs.Hold";
    frame.timeout_msec = 10;
    rpc_fixture_say(wire->fd, berth_rpc_frame_encode(&frame));
    run_until(wire->server->cancelled == 1);
    assert_wire_alive(wire, 2);
}

static void cancel_of_an_unknown_call_is_ignored(void **state)
{
    Wire *wire = *state;
    wire_say_hello(wire);
    rpc_fixture_say(wire->fd, rpc_fixture_frame(BERTH__FRAME__KIND__CANCEL, 77));
    rpc_fixture_say(wire->fd, rpc_fixture_frame(BERTH__FRAME__KIND__PONG, 0));
    assert_wire_alive(wire, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wire_setup, wire_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hello_of_other_versions_ends_with_both_named),
        TEST(hello_of_a_newer_version_that_knows_ours_is_taken),
        TEST(request_before_hello_ends_it),
        TEST(second_hello_ends_it),
        TEST(no_hello_in_time_ends_it),
        TEST(frame_of_a_bad_length_ends_it),
        TEST(frame_that_is_incomplete_in_itself_ends_it),
        TEST(garbage_at_each_byte_harms_nobody),
        TEST(end_after_each_byte_is_told),
        TEST(end_in_the_middle_of_a_frame_says_so),
        TEST(bytes_one_by_one_are_put_together),
        TEST(request_for_an_unknown_method_fails),
        TEST(request_with_a_bad_payload_fails),
        TEST(request_that_blows_up_in_memory_fails),
        TEST(request_with_the_id_of_an_open_call_ends_it),
        TEST(request_past_its_deadline_is_cancelled_here_too),
        TEST(cancel_of_an_unknown_call_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
