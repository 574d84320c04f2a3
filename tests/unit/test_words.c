/* SPDX-License-Identifier: Apache-2.0 */
/* The words for what the scheduler does: those of the schema. */
#include "common/words.h"

#include "proto/berth.pb-c.h"
#include "tests/lib/assert.h"

static void reason_name_is_the_schemas(void **state)
{
    const ProtobufCEnumDescriptor *all = &berth__reason__descriptor;
    for (guint i = 0; i < all->n_values; i++) {
        g_autofree char *name = g_ascii_strdown(all->values[i].name + strlen("REASON_"), -1);
        g_strdelimit(name, "_", '-');
        assert_string_equal(berth_words_reason_name((guint)all->values[i].value), name);
        assert_string_not_equal(berth_words_reason((BerthReason)all->values[i].value),
                                "another reason");
    }
    assert_null(berth_words_reason_name(1000));
}

static void state_is_the_schemas(void **state)
{
    const ProtobufCEnumDescriptor *all = &berth__job_state__descriptor;
    for (guint i = 0; i < all->n_values; i++)
        if (all->values[i].value != 0)
            assert_string_equal(berth_words_state((BerthJobState)all->values[i].value),
                                all->values[i].name);
}

static void deed_says_where_how_and_why(void **state)
{
    static const struct {
        const char *what, *to;
        gboolean in_slack;
        BerthReason reason;
        const char *text;
    } cases[] = {
        {"started", NULL, FALSE, BERTH_REASON_NONE, "started on node a"},
        {"started", NULL, TRUE, BERTH_REASON_NONE, "started on node a, in slack"},
        {"moved", "b", FALSE, BERTH_REASON_DRAIN,
         "moved from node a to node b: its node is drained"},
        {"moved", "b", TRUE, BERTH_REASON_STARVED,
         "moved from node a to node b, in slack: others left it hardly any CPU"},
        {"moved", "b", FALSE, BERTH_REASON_DEFRAGMENT,
         "moved from node a to node b: a job that is too large for what is free on any node gets "
         "its room"},
        {"moved", "b", TRUE, BERTH_REASON_BALANCE,
         "moved from node a to node b, in slack: the load of the nodes differs too much"},
        {"moved", "b", TRUE, BERTH_REASON_PRESSURE,
         "moved from node a to node b, in slack: its node is short of memory"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            berth_words_deed(cases[i].what, "a", cases[i].to, cases[i].in_slack, cases[i].reason);
        assert_string_equal(text, cases[i].text);
    }
}

static void waiting_says_when_where_that_is_planned(void **state)
{
    g_autofree char *unplanned = berth_words_waiting(BERTH_REASON_RESOURCES, 0, 5);
    g_autofree char *planned =
        berth_words_waiting(BERTH_REASON_PRIORITY, 12 * G_USEC_PER_SEC, 5 * G_USEC_PER_SEC);
    assert_string_equal(unplanned, "waits: no node has room for it now");
    assert_string_equal(planned, "waits: others are before it; planned to start 7 s from now");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reason_name_is_the_schemas),
        cmocka_unit_test(state_is_the_schemas),
        cmocka_unit_test(deed_says_where_how_and_why),
        cmocka_unit_test(waiting_says_when_where_that_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
