/* SPDX-License-Identifier: Apache-2.0 */
/* Which of those who are seen to have a disk open are its guest. */
#include <config.h>

#include "nodeagent/seen_clients.h"
#include "tests/lib/assert.h"

#define SECOND (gint64) G_USEC_PER_SEC
#define STEADY BERTH_SEEN_CLIENTS_STEADY_USEC

/* A look at NOW_USEC finds the clients SEEN, with a blank between. */
static gboolean note(BerthSeenClients *clients, const char *seen, gint64 now_usec)
{
    g_auto(GStrv) list = g_strsplit(seen, " ", -1);
    return berth_seen_clients_note(clients, (const char *const *)list, now_usec);
}

static void assert_known(BerthSeenClients *clients, const char *expected)
{
    g_autofree char *known = g_strjoinv(" ", clients->known);
    assert_string_equal(known, expected);
}

static void who_is_seen_is_known_at_once(void **state)
{
    BerthSeenClients clients = {0};
    assert_true(note(&clients, "guest", SECOND));
    assert_known(&clients, "guest");
    assert_true(note(&clients, "guest agent", 2 * SECOND));
    assert_known(&clients, "guest agent");
    assert_false(note(&clients, "agent guest", 3 * SECOND)); /* they are in no order */
    berth_seen_clients_clear(&clients);
    assert_null(clients.known);
}

static void one_is_settled_when_it_was_seen_for_a_while(void **state)
{
    BerthSeenClients clients = {0};
    assert_false(berth_seen_clients_are_settled(&clients));
    note(&clients, "guest", SECOND);
    assert_false(berth_seen_clients_are_settled(&clients));
    assert_false(note(&clients, "guest", SECOND + STEADY - 1));
    assert_false(berth_seen_clients_are_settled(&clients));
    assert_false(note(&clients, "guest", SECOND + STEADY));
    assert_true(berth_seen_clients_are_settled(&clients));
    berth_seen_clients_clear(&clients);
}

static void several_are_never_settled(void **state)
{
    BerthSeenClients clients = {0};
    note(&clients, "guest agent", SECOND);
    note(&clients, "guest agent", SECOND + 10 * STEADY);
    assert_false(berth_seen_clients_are_settled(&clients));
    berth_seen_clients_clear(&clients);
}

static void who_has_gone_is_forgotten_after_a_while(void **state)
{
    BerthSeenClients clients = {0};
    note(&clients, "guest passer", SECOND);
    assert_false(note(&clients, "guest", 100 * SECOND));
    assert_known(&clients, "guest passer");
    assert_false(note(&clients, "guest", 100 * SECOND + STEADY - 1));
    assert_known(&clients, "guest passer");
    assert_true(note(&clients, "guest", 100 * SECOND + STEADY));
    assert_known(&clients, "guest");
    assert_true(berth_seen_clients_are_settled(&clients));
    berth_seen_clients_clear(&clients);
}

/* Its host, or Ceph, stood still: it is seen again some seconds after who looks is. */
static void guest_that_is_out_of_sight_for_a_moment_stays_known(void **state)
{
    BerthSeenClients clients = {0};
    note(&clients, "guest passer", SECOND);
    assert_false(note(&clients, "passer", 40 * SECOND));
    assert_false(note(&clients, "passer", 45 * SECOND));
    assert_known(&clients, "guest passer");
    assert_false(note(&clients, "guest passer", 46 * SECOND));
    assert_false(note(&clients, "passer", 45 * SECOND + STEADY)); /* again: counted from here */
    assert_known(&clients, "guest passer");
    assert_false(note(&clients, "guest", 60 * SECOND));
    assert_true(note(&clients, "guest", 60 * SECOND + STEADY));
    assert_known(&clients, "guest");
    berth_seen_clients_clear(&clients);
}

/* The first look finds an agent that has just died, and not yet the guest. */
static void guest_that_is_seen_later_is_not_missed(void **state)
{
    BerthSeenClients clients = {0};
    note(&clients, "dead", SECOND);
    assert_true(note(&clients, "dead guest", SECOND + STEADY));
    assert_false(berth_seen_clients_are_settled(&clients));
    note(&clients, "guest", 31 * SECOND);
    assert_true(note(&clients, "guest", 31 * SECOND + STEADY));
    assert_known(&clients, "guest");
    assert_true(berth_seen_clients_are_settled(&clients));
    berth_seen_clients_clear(&clients);
}

/* Two looks, each just after Ceph stood still, are not seeing for a while. */
static void who_was_missed_between_is_seen_anew(void **state)
{
    BerthSeenClients clients = {0};
    note(&clients, "guest passer", SECOND);
    assert_false(note(&clients, "passer", 40 * SECOND));
    berth_seen_clients_miss(&clients);
    assert_known(&clients, "guest passer");
    assert_false(note(&clients, "passer", 80 * SECOND));
    assert_known(&clients, "guest passer");
    berth_seen_clients_miss(&clients);
    assert_false(berth_seen_clients_are_settled(&clients));
    berth_seen_clients_clear(&clients);
}

static void nobody_in_sight_changes_nothing(void **state)
{
    BerthSeenClients clients = {0};
    note(&clients, "guest passer", SECOND);
    assert_false(note(&clients, "", 50 * SECOND));
    assert_false(note(&clients, "", 50 * SECOND + STEADY));
    assert_known(&clients, "guest passer");
    assert_false(berth_seen_clients_are_settled(&clients));
    berth_seen_clients_clear(&clients);
}

static void nobody_is_known_where_storage_names_none(void **state)
{
    BerthSeenClients clients = {0};
    assert_true(note(&clients, "", SECOND));
    assert_known(&clients, "");
    assert_false(note(&clients, "", SECOND + STEADY));
    assert_false(berth_seen_clients_are_settled(&clients));
    berth_seen_clients_clear(&clients);
}

static void those_of_the_agent_are_left_out(void **state)
{
    const char *const seen[] = {"own", "guest", "spare", NULL};
    const char *const own[] = {"spare", "own", NULL};
    g_auto(GStrv) others = berth_seen_clients_but(seen, own);
    assert_int_equal(g_strv_length(others), 1);
    assert_string_equal(others[0], "guest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_seen_is_known_at_once),
        cmocka_unit_test(one_is_settled_when_it_was_seen_for_a_while),
        cmocka_unit_test(several_are_never_settled),
        cmocka_unit_test(who_has_gone_is_forgotten_after_a_while),
        cmocka_unit_test(guest_that_is_out_of_sight_for_a_moment_stays_known),
        cmocka_unit_test(guest_that_is_seen_later_is_not_missed),
        cmocka_unit_test(who_was_missed_between_is_seen_anew),
        cmocka_unit_test(nobody_in_sight_changes_nothing),
        cmocka_unit_test(nobody_is_known_where_storage_names_none),
        cmocka_unit_test(those_of_the_agent_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
