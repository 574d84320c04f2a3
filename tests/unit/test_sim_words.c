/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's words, and nothing that a terminal would act on. */
#include "scheduler/sim/words.h"

#include "tests/lib/assert.h"

static void sim_action_text_says_where_and_why(void **state)
{
    BerthCoreAction action = {.kind = BERTH_ACTION_MIGRATE,
                              .guest = {.job = 7, .guest = 1},
                              .reason = BERTH_REASON_BALANCE};
    g_autofree char *moved = sim_action_text(&action, "a", "b");
    assert_string_equal(moved, "migrate guest 1 from node a to node b: the load of the nodes "
                               "differs too much");
    action = (BerthCoreAction){.kind = BERTH_ACTION_START, .is_opportunistic = TRUE};
    g_autofree char *started = sim_action_text(&action, "a", "b");
    assert_string_equal(started, "start guest 0 on node a, in slack");
    assert_null(sim_action_verb(0));
    assert_null(sim_action_verb(BERTH_ACTION_RESIZE + 1));
}

static void sim_printable_is_short_and_harmless(void **state)
{
    g_autofree char *text = sim_printable("a\033[31m\t\377\302\233 \303\244");
    g_autofree char *many = g_strnfill(5000, 'x');
    g_autofree char *few = sim_printable(many);
    assert_string_equal(text, "a?[31m?\357\277\275? \303\244");
    assert_int_equal(strlen(few), 403);
    assert_true(g_str_has_suffix(few, "x..."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_action_text_says_where_and_why),
        cmocka_unit_test(sim_printable_is_short_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
