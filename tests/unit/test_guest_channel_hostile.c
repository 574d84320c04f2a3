/* SPDX-License-Identifier: Apache-2.0 */
/* Guests that lie, flood, or do not read: they harm themselves only. */
#include <config.h>

#include "tests/lib/channel_fixture.h"

#include <signal.h>

/* --- guests that lie ------------------------------------------------------------------------- */

/* The channel must hang up and come back with a new session. */
static void assert_new_session(ChannelFixture *fixture, guint violations)
{
    guest_greet(fixture);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), violations);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE,
                                   .stdout_acked = berth_log_writer_durable(fixture->writer, 0)));
    run_until(channel_fixture_is_open(fixture));
}

static void channel_output_with_a_gap_ends_the_session(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    guest_say_output(fixture, FALSE, 0, "abc", 3);
    guest_hear_ack(fixture, 3, 0);
    guest_say_output(fixture, FALSE, 5, "too far", 7);
    assert_new_session(fixture, 1);
    guest_say_output(fixture, FALSE, 0, "again",
                     5); /* back behind what it said it had acknowledged */
    assert_new_session(fixture, 2);
    guest_say_output(fixture, FALSE, G_MAXUINT64, "overflow", 8);
    assert_new_session(fixture, 3);
    assert_int_equal(fixture->logs[0]->len, 3);
}

static void channel_end_before_all_output_ends_the_session(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    guest_say_ended(fixture, 100, 0);
    assert_new_session(fixture, 1);
    assert_int_equal(fixture->ended, 0);
}

static void channel_claim_of_acknowledged_output_is_checked(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start(fixture, TRUE, 10, 20);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.running = TRUE, .stdout_acked = 11));
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.running = TRUE, .stderr_acked = G_MAXUINT64));
    guest_greet(fixture);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 2);
    guest_say_state(fixture, STATE(.running = TRUE, .stdout_acked = 10, .stderr_acked = 20));
    run_until(channel_fixture_is_open(fixture));
}

static void channel_other_sessions_change_nothing(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guint64 session = fixture->session;
    fixture->session = session + 1;
    guest_say_state(fixture, STATE(.running = TRUE));
    guest_say_output(fixture, FALSE, 0, "forged", 6);
    guest_say_started(fixture, 1);
    fixture->session = session;
    guest_say_output(fixture, FALSE, 0, "before the state", 16);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(channel_fixture_is_open(fixture));
    guest_say_output(fixture, FALSE, 0, "real", 4);
    guest_hear_ack(fixture, 4, 0);
    assert_memory_equal(fixture->logs[0]->data, "real", 4);
    assert_int_equal(fixture->started, 0);
}

static void channel_garbage_between_frames_is_skipped(void **state)
{
    ChannelFixture *fixture = *state;
    static const guint8 garbage[] = "BRT1 no frame BRT1\0\0\0\0BRT1";
    channel_fixture_start_running(fixture);
    guest_write(fixture, garbage, sizeof garbage);
    guest_say_output(fixture, FALSE, 0, "ok", 2);
    guest_write(fixture, garbage, sizeof garbage);
    guest_say_output(fixture, FALSE, 2, "ay", 2);
    guest_hear_ack(fixture, 4, 0);
    assert_memory_equal(fixture->logs[0]->data, "okay", 4);
}

static void channel_flood_ends_the_session(void **state)
{
    ChannelFixture *fixture = *state;
    g_autofree guint8 *garbage = g_malloc0(1u << 20);
    channel_fixture_start_running(fixture);
    guint connections = fixture->connections;
    for (guint i = 0; i < 64 && berth_guest_channel_violations(fixture->channel) == 0; i++)
        guest_write(fixture, garbage, 1u << 20);
    run_until(berth_guest_channel_violations(fixture->channel) == 1);
    guest_greet(fixture);
    assert_true(fixture->connections > connections);
}

static void channel_flood_of_messages_ends_the_session(void **state)
{
    ChannelFixture *fixture = *state;
    Berth__Usage usage = BERTH__USAGE__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    message.body_case = BERTH__FROM_GUEST__BODY_USAGE;
    message.usage = &usage;
    channel_fixture_start_running(fixture);
    for (guint i = 0; i < 200000 && berth_guest_channel_violations(fixture->channel) == 0; i++)
        guest_say(fixture, &message);
    run_until(berth_guest_channel_violations(fixture->channel) == 1);
    assert_true(fixture->usage > 0);
}

#define LIMITED_BYTES_PER_SEC (1u << 20)

/* Its output comes whole, in pieces of LENGTH that cost COST each, and no faster than it may: what it sends on top of the
 * burst takes its time. */
static void check_flood_waits(ChannelFixture *fixture, gsize length, gsize cost)
{
    g_autofree char *text = g_strnfill(length, 'x');
    fixture->output_bytes_per_sec = LIMITED_BYTES_PER_SEC;
    channel_fixture_start_running(fixture);
    gint64 began = g_get_monotonic_time();
    const guint64 pieces = 3 * LIMITED_BYTES_PER_SEC / cost;
    for (guint64 i = 0; i < pieces; i++)
        guest_say_output(fixture, FALSE, i * length, text, length);
    channel_fixture_wait_for_log(fixture, BERTH_STDOUT, pieces * length);
    /* Not a pace of the machine: earlier than this it may not be. The last piece may come while it may send no more. */
    gint64 least = (gint64)((pieces - 1) * cost - 2 * LIMITED_BYTES_PER_SEC) * G_USEC_PER_SEC /
                   LIMITED_BYTES_PER_SEC;
    assert_true(g_get_monotonic_time() - began >= least);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

static void channel_flood_of_output_waits(void **state)
{
    check_flood_waits(*state, 1u << 16, 1u << 16);
}

/* Each is work, however little it brings. */
static void channel_flood_of_tiny_output_waits(void **state)
{
    check_flood_waits(*state, 1, 256);
}

/* --- guests that do not read ------------------------------------------------------------------ */

/* What a socket takes before it is full, and one frame on top of the window. */
#define UNREAD_BYTES_MAX (256u * 1024u + 1024u * 1024u)

/* Hears what has piled up, to the message that IS_LAST: how many bytes. */
static gsize hear_up_to(ChannelFixture *fixture, gboolean (*is_last)(const Berth__ToGuest *))
{
    gsize bytes = 0;
    for (gboolean done = FALSE; !done;) {
        Berth__ToGuest *message = NULL;
        run_until((message = guest_try_hear(fixture)) != NULL);
        bytes += berth__to_guest__get_packed_size(message);
        done = is_last(message);
        berth__to_guest__free_unpacked(message, NULL);
    }
    return bytes;
}

static gboolean is_signal(const Berth__ToGuest *message)
{
    return message->body_case == BERTH__TO_GUEST__BODY_SIGNAL;
}

static gboolean is_run(const Berth__ToGuest *message)
{
    return message->body_case == BERTH__TO_GUEST__BODY_RUN;
}

static void channel_tasks_for_a_guest_that_does_not_read_do_not_pile_up(void **state)
{
    ChannelFixture *fixture = *state;
    g_autofree char *large = g_strnfill(200 * 1024, 'x');
    ChannelTask task;
    channel_task_init(&task, (const guint8 *)"x", 1);
    task.command[0] = large;
    task.task.n_inputs = 0;
    channel_fixture_start(fixture, FALSE, 0, 0);
    berth_guest_channel_set_files(fixture->channel, channel_fixture_files(fixture, &task));
    guest_greet(fixture);
    for (guint i = 0; i < 200; i++) { /* each says that the task has not come */
        guest_say_state(fixture, STATE());
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    run_until(berth_guest_channel_is_open(fixture->channel));
    berth_guest_channel_set_signal(fixture->channel, SIGTERM);
    assert_in_range(hear_up_to(fixture, is_signal), 200 * 1024, UNREAD_BYTES_MAX);
    hear_up_to(fixture, is_run);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

#define SINGLE_BYTES 40000u

static gboolean is_ack_of_all(const Berth__ToGuest *message)
{
    return message->body_case == BERTH__TO_GUEST__BODY_ACK &&
           message->ack->stdout_bytes == SINGLE_BYTES;
}

static void channel_acks_for_a_guest_that_does_not_read_do_not_pile_up(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    berth_log_writer_drop(fixture->writer); /* so that each is acknowledged alone, and at once */
    for (guint i = 0; i < SINGLE_BYTES; i++) {
        guest_say_output(fixture, FALSE, i, "x", 1);
        run_until(berth_log_writer_durable(fixture->writer, BERTH_STDOUT) > i);
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    assert_in_range(hear_up_to(fixture, is_ack_of_all), 1, SINGLE_BYTES * 10);
}

#define QUESTIONS 25000u

static void ask_clock(ChannelFixture *fixture, guint64 stamp_usec)
{
    Berth__FromGuest__AskClock question = BERTH__FROM_GUEST__ASK_CLOCK__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    question.stamp_usec = stamp_usec;
    message.body_case = BERTH__FROM_GUEST__BODY_ASK_CLOCK;
    message.ask_clock = &question;
    guest_say(fixture, &message);
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static gboolean is_last_answer(const Berth__ToGuest *message)
{
    assert_int_equal(message->body_case, BERTH__TO_GUEST__BODY_CLOCK);
    return message->clock->stamp_usec == 0;
}

/* What would come too late to be of use is not said at all, and who asks again gets an answer. */
static void channel_clocks_for_a_guest_that_does_not_read_do_not_pile_up(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    for (guint i = 0; i < QUESTIONS; i++)
        ask_clock(fixture, G_MAXUINT64);
    /* The last question is put as often as it takes: the first ones may find no room either. */
    gsize bytes = 0;
    for (gboolean done = FALSE; !done;) {
        Berth__ToGuest *message = guest_try_hear(fixture);
        if (message == NULL)
            ask_clock(fixture, 0);
        else {
            bytes += berth__to_guest__get_packed_size(message);
            done = is_last_answer(message);
            berth__to_guest__free_unpacked(message, NULL);
        }
    }
    assert_in_range(bytes, 1, QUESTIONS * 24);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

static gboolean is_last_measure(const Berth__ToGuest *message)
{
    assert_int_equal(message->body_case, BERTH__TO_GUEST__BODY_MEASURE);
    return message->measure->interval_msec == 7;
}

/* What finds no room is said when there is some. */
static void channel_last_measure_for_a_guest_that_does_not_read_is_not_lost(void **state)
{
    ChannelFixture *fixture = *state;
    channel_fixture_start_running(fixture);
    for (guint i = 0; i < QUESTIONS; i++) {
        berth_guest_channel_measure(fixture->channel, 1000);
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    berth_guest_channel_measure(fixture->channel, 7);
    assert_in_range(hear_up_to(fixture, is_last_measure), 1, QUESTIONS * 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, channel_fixture_make, channel_fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(channel_output_with_a_gap_ends_the_session),
        TEST(channel_end_before_all_output_ends_the_session),
        TEST(channel_claim_of_acknowledged_output_is_checked),
        TEST(channel_other_sessions_change_nothing),
        TEST(channel_garbage_between_frames_is_skipped),
        TEST(channel_flood_ends_the_session),
        TEST(channel_flood_of_messages_ends_the_session),
        TEST(channel_flood_of_output_waits),
        TEST(channel_flood_of_tiny_output_waits),
        TEST(channel_tasks_for_a_guest_that_does_not_read_do_not_pile_up),
        TEST(channel_acks_for_a_guest_that_does_not_read_do_not_pile_up),
        TEST(channel_clocks_for_a_guest_that_does_not_read_do_not_pile_up),
        TEST(channel_last_measure_for_a_guest_that_does_not_read_is_not_lost),
    };
    signal(SIGPIPE, SIG_IGN);
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
