/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest is told when there is room for it, and what is not told any more. */
#include "nodeagent/guest_outbox.h"
#include "tests/lib/assert.h"

typedef struct {
    BerthLogWriter *writer;
    BerthGuestOutbox *outbox;
    gboolean is_full;
    GString *said; /* "ack 3 0, " */
} Fixture;

static gboolean has_room(gpointer data)
{
    return !((const Fixture *)data)->is_full;
}

static void send(Berth__ToGuest *message, gpointer data)
{
    GString *said = ((Fixture *)data)->said;
    if (message->body_case == BERTH__TO_GUEST__BODY_ACK)
        g_string_append_printf(said, "ack %u %u, ", (guint)message->ack->stdout_bytes,
                               (guint)message->ack->stderr_bytes);
    else if (message->body_case == BERTH__TO_GUEST__BODY_MEASURE)
        g_string_append_printf(said, "measure %u, ", message->measure->interval_msec);
    else if (message->body_case == BERTH__TO_GUEST__BODY_GIVE_BACK)
        g_string_append_printf(said, "give back %u, ", (guint)message->give_back->resident_mib);
    else
        fail_msg("it says what is not its own to say");
}

static void on_progress(gpointer data)
{
}

static int make(void **state)
{
    static const BerthGuestOutboxFuncs funcs = {has_room, send};
    static const BerthLogStore nowhere = {NULL, NULL};
    Fixture *fixture = g_new0(Fixture, 1);
    fixture->writer = berth_log_writer_new(&nowhere, NULL, "log-1", on_progress, NULL);
    fixture->outbox = berth_guest_outbox_new(fixture->writer, 2000, &funcs, fixture);
    fixture->said = g_string_new(NULL);
    *state = fixture;
    return 0;
}

static int unmake(void **state)
{
    Fixture *fixture = *state;
    berth_guest_outbox_free(fixture->outbox);
    berth_log_writer_free(fixture->writer);
    g_string_free(fixture->said, TRUE);
    g_free(fixture);
    return 0;
}

/* The guest has answered, and of its output nothing was acknowledged. */
static void begin(Fixture *fixture)
{
    static const guint64 nothing[BERTH_N_STREAMS] = {0, 0};
    berth_guest_outbox_begin(fixture->outbox, nothing);
}

static void assert_said(Fixture *fixture, const char *expected)
{
    assert_string_equal(fixture->said->str, expected);
    g_string_set_size(fixture->said, 0);
}

static void outbox_says_each_thing_once(void **state)
{
    Fixture *fixture = *state;
    begin(fixture);
    assert_said(fixture, "");
    berth_log_writer_set_start(fixture->writer, BERTH_STDOUT, 3);
    berth_guest_outbox_go_on(fixture->outbox);
    berth_guest_outbox_go_on(fixture->outbox);
    assert_said(fixture, "ack 3 0, ");
    berth_guest_outbox_measure(fixture->outbox, 1000);
    berth_guest_outbox_give_back(fixture->outbox, 77);
    berth_guest_outbox_go_on(fixture->outbox);
    assert_said(fixture, "measure 1000, give back 77, ");
}

static void outbox_says_without_room_nothing_and_then_the_latest(void **state)
{
    Fixture *fixture = *state;
    begin(fixture);
    fixture->is_full = TRUE;
    berth_log_writer_set_start(fixture->writer, BERTH_STDOUT, 3);
    berth_guest_outbox_go_on(fixture->outbox);
    berth_guest_outbox_measure(fixture->outbox, 1000);
    berth_guest_outbox_give_back(fixture->outbox, 77);
    berth_log_writer_set_start(fixture->writer, BERTH_STDERR, 5);
    berth_guest_outbox_measure(fixture->outbox, 500);
    berth_guest_outbox_give_back(fixture->outbox, 80);
    assert_said(fixture, "");
    fixture->is_full = FALSE;
    berth_guest_outbox_go_on(fixture->outbox);
    assert_said(fixture, "ack 3 5, measure 500, give back 80, ");
}

/* Its host may hold something else by then; how often it measures itself its Hello says. */
static void outbox_between_sessions_says_nothing_and_keeps_the_interval(void **state)
{
    Fixture *fixture = *state;
    begin(fixture);
    berth_log_writer_set_start(fixture->writer, BERTH_STDOUT, 3);
    fixture->is_full = TRUE;
    berth_guest_outbox_give_back(fixture->outbox, 77);
    berth_guest_outbox_pause(fixture->outbox);
    fixture->is_full = FALSE;
    berth_guest_outbox_measure(fixture->outbox, 1000);
    assert_said(fixture, "");
    assert_int_equal(berth_guest_outbox_hello(fixture->outbox), 1000);
    begin(fixture);
    assert_said(fixture, "ack 3 0, ");
    berth_guest_outbox_pause(fixture->outbox);
    assert_int_equal(berth_guest_outbox_hello(fixture->outbox), 1000);
    berth_guest_outbox_measure(fixture->outbox, 500); /* after Hello */
    begin(fixture);
    assert_said(fixture, "ack 3 0, measure 500, ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(outbox_says_each_thing_once),
        TEST(outbox_says_without_room_nothing_and_then_the_latest),
        TEST(outbox_between_sessions_says_nothing_and_keeps_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
