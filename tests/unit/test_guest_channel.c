/* SPDX-License-Identifier: Apache-2.0 */
/* Output through the channel, signals, time and ends. */
#include <config.h>

#include "tests/lib/channel_fixture.h"

#include <signal.h>

/* --- output ---------------------------------------------------------------------------------- */

static void channel_output_is_logged_and_acknowledged(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    guest_say_output(fixture, FALSE, 0, "hello ", 6);
    guest_say_output(fixture, TRUE, 0, "err", 3);
    guest_say_output(fixture, FALSE, 6, "world", 5);
    guest_hear_ack(fixture, 11, 3);
    assert_memory_equal(fixture->logs[0]->data, "hello world", 11);
    assert_memory_equal(fixture->logs[1]->data, "err", 3);
    guest_say_ended(fixture, 11, 3);
    run_until(fixture->ended == 1);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

static void channel_frames_in_single_bytes_are_understood(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    Berth__FromGuest__Output output = BERTH__FROM_GUEST__OUTPUT__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    output.data = (ProtobufCBinaryData){.len = 3, .data = (guint8 *)"abc"};
    message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
    message.output = &output;
    g_autoptr(GByteArray) bytes = guest_frame(fixture, &message);
    for (guint i = 0; i < bytes->len; i++) {
        guest_write(fixture, bytes->data + i, 1);
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    channel_fixture_wait_for_log(fixture, 0, 3);
}

static void channel_storage_down_stalls_the_guest_and_loses_nothing(void **state)
{
    ChannelFixture *fixture = *state;
    g_autofree char *block = g_strnfill(64 * 1024, 'x');
    channel_fixture_start_running(fixture);
    fixture->logs_are_down = TRUE;
    guint64 sent = 0, accepted;
    do { /* until nothing more is taken */
        accepted = berth_log_writer_accepted(fixture->writer, 0);
        if (sent < 16u << 20) {
            guest_say_output(fixture, FALSE, sent, block, 64 * 1024);
            sent += 64 * 1024;
        }
        while (g_main_context_iteration(NULL, FALSE))
            ;
    } while (berth_log_writer_accepted(fixture->writer, 0) > accepted);
    assert_true(accepted <= BERTH_LOG_WRITER_PENDING_MAX + 64 * 1024);
    assert_int_equal(fixture->logs[0]->len, 0);
    fixture->logs_are_down = FALSE;
    channel_fixture_wait_for_log(fixture, 0, sent);
    guest_hear_ack(fixture, sent, 0);
}

static void channel_new_session_takes_no_byte_twice(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    guest_say_output(fixture, FALSE, 0, "0123456789", 10);
    guest_hear_ack(fixture, 10, 0);
    guest_hang_up(fixture);
    guest_greet(fixture);
    /* The guest saw no acknowledgement after byte 4, and sends again from there. */
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE, .stdout_acked = 4));
    guest_hear_ack(fixture, 10, 0);
    guest_say_output(fixture, FALSE, 4, "4567", 4);
    guest_say_output(fixture, FALSE, 8, "89abc", 5);
    guest_hear_ack(fixture, 13, 0);
    assert_memory_equal(fixture->logs[0]->data, "0123456789abc", 13);
    assert_int_equal(fixture->logs[0]->len, 13);
}

static void channel_adopted_guest_continues_its_logs(void **state)
{
    ChannelFixture *fixture = *state;
    g_byte_array_append(fixture->logs[0], (const guint8 *)"0123456789", 10);
    channel_fixture_start(fixture, TRUE, 10, 0);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE, .stdout_acked = 7));
    guest_say_output(fixture, FALSE, 7, "789ab", 5);
    guest_hear_ack(fixture, 12, 0);
    assert_memory_equal(fixture->logs[0]->data, "0123456789ab", 12);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void channel_signal_is_sent_until_the_guest_has_it(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start(fixture, FALSE, 0, 0);
    berth_guest_channel_set_signal(fixture->channel, SIGTERM);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    Berth__ToGuest *message = guest_hear(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, SIGTERM);
    berth__to_guest__free_unpacked(message, NULL);
    berth_guest_channel_set_signal(fixture->channel, SIGKILL);
    message = guest_hear(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, SIGKILL);
    berth__to_guest__free_unpacked(message, NULL);
    guest_hang_up(fixture);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE, .signal = SIGTERM));
    message = guest_hear(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, SIGKILL);
    berth__to_guest__free_unpacked(message, NULL);
}

/* Not even by an agent that has begun after it. What is said next tells that nothing came before it. */
static void channel_signal_is_not_sent_twice(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start(fixture, FALSE, 0, 0);
    berth_guest_channel_set_signal(fixture->channel, SIGTERM);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE, .signal = SIGTERM));
    run_until(berth_guest_channel_is_open(fixture->channel));
    assert_true(berth_guest_channel_signal_command(fixture->channel, SIGUSR1));
    Berth__ToGuest *message = guest_hear(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, SIGUSR1);
    berth__to_guest__free_unpacked(message, NULL);
}

static void channel_signal_to_the_command_is_sent_once(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start(fixture, FALSE, 0, 0);
    assert_false(berth_guest_channel_signal_command(fixture->channel, SIGUSR1)); /* not yet */
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(berth_guest_channel_is_open(fixture->channel));
    assert_true(berth_guest_channel_signal_command(fixture->channel, SIGUSR1));
    Berth__ToGuest *message = guest_hear(fixture, BERTH__TO_GUEST__BODY_SIGNAL);
    assert_int_equal(message->signal->signal, SIGUSR1);
    assert_true(message->signal->command_only);
    berth__to_guest__free_unpacked(message, NULL);
}

static gboolean set_flag(gpointer flag)
{
    *(gboolean *)flag = TRUE;
    return G_SOURCE_REMOVE;
}

/* What a guest that still boots does: it reads Hello, and the time in it, late. */
static void channel_late_state_gets_the_time_again_once(void **state)
{
    ChannelFixture *fixture = *state;
    gboolean is_late = FALSE;
    channel_fixture_start(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guint64 first = fixture->session;
    g_timeout_add(300, set_flag, &is_late);
    run_until(is_late);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(channel_fixture_is_open(fixture));
    assert_true(fixture->session != first);
    assert_int_equal(fixture->hellos_again, 1);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

static void guest_ask_clock(ChannelFixture *fixture, guint64 stamp_usec)
{
    Berth__FromGuest__AskClock question = BERTH__FROM_GUEST__ASK_CLOCK__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    question.stamp_usec = stamp_usec;
    message.body_case = BERTH__FROM_GUEST__BODY_ASK_CLOCK;
    message.ask_clock = &question;
    guest_say(fixture, &message);
}

static void assert_clock_answer(ChannelFixture *fixture, guint64 stamp_usec, guint64 since_usec)
{
    Berth__ToGuest *message = guest_hear(fixture, BERTH__TO_GUEST__BODY_CLOCK);
    assert_true(message->session == fixture->session);
    assert_true(message->clock->stamp_usec == stamp_usec);
    assert_true(message->clock->clock_usec >= since_usec);
    assert_true(message->clock->clock_usec <= (guint64)g_get_real_time());
    berth__to_guest__free_unpacked(message, NULL);
}

/* Before its State too, so that its clock is right before it gets its task. */
static void channel_clock_is_told_to_who_asks(void **state)
{
    ChannelFixture *fixture = *state;
    guint64 since_usec = (guint64)g_get_real_time();
    channel_fixture_start(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guest_ask_clock(fixture, 7);
    assert_clock_answer(fixture, 7, since_usec);
    assert_false(berth_guest_channel_is_open(fixture->channel));
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(channel_fixture_is_open(fixture));
    since_usec = (guint64)g_get_real_time();
    guest_ask_clock(fixture, G_MAXUINT64);
    guest_ask_clock(fixture, 0);
    assert_clock_answer(fixture, G_MAXUINT64, since_usec);
    assert_clock_answer(fixture, 0, since_usec);
    fixture->session++;
    guest_ask_clock(fixture, 8); /* of no session */
    fixture->session--;
    guest_ask_clock(fixture, 9);
    assert_clock_answer(fixture, 9, since_usec);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

/* A frame of an agent that was killed lies there unfinished: the guest takes the Hello for its rest. */
static void channel_hello_gets_through_behind_a_frame_that_was_cut_off(void **state)
{
    ChannelFixture *fixture = *state;
    guint8 header[BERTH_CHANNEL_HEADER_BYTES];
    g_autofree guint8 *payload = g_malloc0(BERTH_CHANNEL_PAYLOAD_MAX);
    size_t room;
    berth_channel_header(header, payload, BERTH_CHANNEL_PAYLOAD_MAX);
    channel_fixture_start(fixture, TRUE, 0, 0);
    guest_accept(fixture);
    memcpy(berth_channel_reader_space(fixture->reader, &room), header, sizeof header);
    berth_channel_reader_added(fixture->reader, sizeof header);
    Berth__ToGuest *hello = NULL;
    run_until((hello = guest_try_hear(fixture)) != NULL);
    assert_int_equal(hello->body_case, BERTH__TO_GUEST__BODY_HELLO);
    berth__to_guest__free_unpacked(hello, NULL);
}

/* QEMU, which has it, may pass on nothing of what the guest says for as long as this connection lasts. */
static void channel_guest_that_does_not_answer_gets_a_new_connection(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start(fixture, TRUE, 0, 0);
    guest_greet(fixture);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_HELLO);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_HELLO);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(channel_fixture_is_open(fixture));
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

static void channel_failure_is_passed_on_in_bounds(void **state)
{
    ChannelFixture *fixture = *state;
    g_autofree char *text = g_strnfill(100000, 'x');
    Berth__FromGuest__Failure failure = BERTH__FROM_GUEST__FAILURE__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    failure.message = text;
    message.body_case = BERTH__FROM_GUEST__BODY_FAILURE;
    message.failure = &failure;
    channel_fixture_start_running(fixture);
    guest_say(fixture, &message);
    run_until(fixture->failed == 1);
    assert_int_equal(strlen(fixture->failure), 4096);
}

/* A script that begins "#!/bin/\xe9" has such an end. */
static void channel_end_with_text_that_is_not_utf8_is_passed_on(void **state)
{
    ChannelFixture *fixture = *state;
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__FromGuest__Ended ended = BERTH__FROM_GUEST__ENDED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    exit.error = (char *)"cannot run 'script': its interpreter '/bin/\xe9' is not in the image";
    exit.status = 127;
    ended.exit = &exit;
    message.body_case = BERTH__FROM_GUEST__BODY_ENDED;
    message.ended = &ended;
    channel_fixture_start_running(fixture);
    guest_say(fixture, &message);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, channel_fixture_make, channel_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(channel_output_is_logged_and_acknowledged),
        TEST(channel_frames_in_single_bytes_are_understood),
        TEST(channel_storage_down_stalls_the_guest_and_loses_nothing),
        TEST(channel_new_session_takes_no_byte_twice),
        TEST(channel_adopted_guest_continues_its_logs),
        TEST(channel_signal_is_sent_until_the_guest_has_it),
        TEST(channel_signal_is_not_sent_twice),
        TEST(channel_signal_to_the_command_is_sent_once),
        TEST(channel_hello_gets_through_behind_a_frame_that_was_cut_off),
        TEST(channel_guest_that_does_not_answer_gets_a_new_connection),
        TEST(channel_late_state_gets_the_time_again_once),
        TEST(channel_clock_is_told_to_who_asks),
        TEST(channel_failure_is_passed_on_in_bounds),
        TEST(channel_end_with_text_that_is_not_utf8_is_passed_on),
        cmocka_unit_test(channel_text_is_utf8_in_bounds),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
