/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/channel.h"
#include "images/init/link.h"
#include "images/init/session.h"

#include <glib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    int host; /* the other end, blocking */
    int guest;
    Link *link;
    BerthChannelReader *reader; /* of the host */
} Fixture;

static int make(void **state)
{
    Fixture *fixture = g_new0(Fixture, 1);
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
        return -1;
    fixture->host = fds[0];
    fixture->guest = fds[1];
    fixture->link = link_new(fixture->guest);
    fixture->reader = berth_channel_reader_new();
    *state = fixture;
    return 0;
}

static int destroy(void **state)
{
    Fixture *fixture = *state;

    link_free(fixture->link);
    berth_channel_reader_free(fixture->reader);
    close(fixture->guest);
    if (fixture->host >= 0)
        close(fixture->host);
    g_free(fixture);
    return 0;
}

/* A frame with a signal of NUMBER. */
static gsize make_frame(guint32 number, guint8 *frame)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__Signal signal = BERTH__TO_GUEST__SIGNAL__INIT;
    gsize length;

    signal.signal = number;
    message.body_case = BERTH__TO_GUEST__BODY_SIGNAL;
    message.signal = &signal;
    length = berth__to_guest__pack(&message, frame + BERTH_CHANNEL_HEADER_BYTES);
    berth_channel_header(frame, frame + BERTH_CHANNEL_HEADER_BYTES, length);
    return length + BERTH_CHANNEL_HEADER_BYTES;
}

static void assert_signal(Fixture *fixture, guint32 number)
{
    Berth__ToGuest *message = link_next(fixture->link);

    assert_non_null(message);
    assert_int_equal(message->body_case, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, number);
    berth__to_guest__free_unpacked(message, NULL);
}

static void link_read_byte_by_byte_finds_each_frame(void **state)
{
    Fixture *fixture = *state;
    guint8 frame[64];

    for (guint32 number = 1; number < 4; number++) {
        gsize length = make_frame(number, frame);

        for (gsize i = 0; i < length; i++) {
            assert_null(link_next(fixture->link));
            assert_int_equal(link_read(fixture->link), LINK_EMPTY);
            assert_int_equal(write(fixture->host, frame + i, 1), 1);
            assert_int_equal(link_read(fixture->link), LINK_MORE);
        }
        assert_signal(fixture, number);
    }
}

static void link_read_skips_what_is_no_frame(void **state)
{
    Fixture *fixture = *state;
    guint8 frame[64];
    gsize length = make_frame(5, frame);
    guint8 bad[BERTH_CHANNEL_HEADER_BYTES + 3] = {0};

    /* Noise, a whole frame that holds no message, then a real one. */
    memset(bad + BERTH_CHANNEL_HEADER_BYTES, 0xff, 3);
    berth_channel_header(bad, bad + BERTH_CHANNEL_HEADER_BYTES, 3);
    assert_int_equal(write(fixture->host, "BRTnoise", 8), 8);
    assert_int_equal(write(fixture->host, bad, sizeof bad), sizeof bad);
    assert_int_equal(write(fixture->host, frame, length), length);
    assert_int_equal(link_read(fixture->link), LINK_MORE);
    assert_signal(fixture, 5);
}

static void link_read_after_close_forgets_a_partial_frame(void **state)
{
    Fixture *fixture = *state;
    guint8 frame[64];
    gsize length = make_frame(5, frame);

    assert_int_equal(write(fixture->host, frame, length - 1), length - 1);
    assert_int_equal(link_read(fixture->link), LINK_MORE);
    assert_null(link_next(fixture->link));
    close(fixture->host);
    fixture->host = -1;
    assert_int_equal(link_read(fixture->link), LINK_CLOSED);
    assert_null(link_next(fixture->link));
}

/* Takes what is there; returns the next output's length, 0 when none is complete. */
static gsize receive_output(Fixture *fixture)
{
    const guint8 *payload;
    gsize length;

    while ((payload = berth_channel_reader_next(fixture->reader, &length)) == NULL) {
        gsize room;
        guint8 *space = berth_channel_reader_space(fixture->reader, &room);
        ssize_t got = read(fixture->host, space, room);

        if (got <= 0)
            return 0;
        berth_channel_reader_added(fixture->reader, (gsize)got);
    }
    Berth__FromGuest *message = berth__from_guest__unpack(NULL, length, payload);
    assert_non_null(message);
    assert_int_equal(message->session, 42);
    gsize size = message->output->data.len;
    for (gsize i = 0; i < size; i++)
        assert_int_equal(message->output->data.data[i], (guint8)(i % 251));
    berth__from_guest__free_unpacked(message, NULL);
    return size;
}

static void link_flush_when_blocked_goes_on_where_it_was(void **state)
{
    Fixture *fixture = *state;
    g_autofree guint8 *bytes = g_malloc(SESSION_OUTPUT_MAX);
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    Berth__FromGuest__Output output = BERTH__FROM_GUEST__OUTPUT__INIT;
    const gsize sizes[] = {1, SESSION_OUTPUT_MAX, 0, SESSION_OUTPUT_MAX, 4096};
    int small = 16384;
    guint blocked = 0;

    setsockopt(fixture->guest, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    for (gsize i = 0; i < SESSION_OUTPUT_MAX; i++)
        bytes[i] = (guint8)(i % 251);
    message.session = 42;
    message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
    message.output = &output;
    output.data.data = bytes;
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        gsize got = 0;
        LinkWrite result;

        output.data.len = sizes[i];
        assert_true(link_is_idle(fixture->link));
        assert_true(link_send(fixture->link, &message));
        while ((result = link_flush(fixture->link)) == LINK_BLOCKED) {
            blocked++;
            got += receive_output(fixture);
        }
        assert_int_equal(result, LINK_WRITTEN);
        got += receive_output(fixture);
        assert_int_equal(got, sizes[i]);
    }
    assert_true(blocked > 10);
}

static void link_send_of_more_than_a_frame_is_refused(void **state)
{
    Fixture *fixture = *state;
    g_autofree guint8 *bytes = g_malloc0(BERTH_CHANNEL_PAYLOAD_MAX);
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    Berth__FromGuest__Output output = BERTH__FROM_GUEST__OUTPUT__INIT;

    message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
    message.output = &output;
    output.data.data = bytes;
    output.data.len = BERTH_CHANNEL_PAYLOAD_MAX;
    assert_false(link_send(fixture->link, &message));
    assert_true(link_is_idle(fixture->link));
}

#define with_link(test) cmocka_unit_test_setup_teardown(test, make, destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_link(link_read_byte_by_byte_finds_each_frame),
        with_link(link_read_skips_what_is_no_frame),
        with_link(link_read_after_close_forgets_a_partial_frame),
        with_link(link_flush_when_blocked_goes_on_where_it_was),
        with_link(link_send_of_more_than_a_frame_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
