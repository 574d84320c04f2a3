/* SPDX-License-Identifier: Apache-2.0 */
/* Guests in the rows of their nodes. */
#include "scheduler/sim/gantt.h"
#include "tests/lib/assert.h"

static void gantt_stack_takes_the_lowest_vcpus_that_are_free(void **state)
{
    /* Of node 1: A takes 0-2, B 2-3, C 3-4; after A and C, D finds no gap of 3: it has two parts. */
    static const GanttStay given[] = {
        {.node = 1, .vcpus = 1, .from_usec = 1, .to_usec = 90},
        {.node = 1, .vcpus = 2, .from_usec = 0, .to_usec = 10},
        {.node = 1, .vcpus = 1, .from_usec = 2, .to_usec = 10},
        {.node = 1, .vcpus = 3, .from_usec = 10, .to_usec = 20},
        {.node = 1, .vcpus = 8, .from_usec = 5, .to_usec = 20, .is_slack = TRUE},
        {.node = 2, .vcpus = 1, .from_usec = 0, .to_usec = 90},
    };
    static const struct {
        guint32 node, vcpus;
        guint64 low, high;
        gboolean is_first;
    } expected[] = {{1, 2, 0, 2, TRUE},  {1, 1, 2, 3, TRUE}, {1, 1, 3, 4, TRUE}, {1, 3, 0, 2, TRUE},
                    {1, 3, 3, 4, FALSE}, {1, 8, 0, 8, TRUE}, {2, 1, 0, 1, TRUE}};
    guint64 guaranteed, slack;
    g_autoptr(GArray) stays = g_array_new(FALSE, FALSE, sizeof(GanttStay));
    g_array_append_vals(stays, given, G_N_ELEMENTS(given));
    g_autoptr(GArray) parts = gantt_stack(stays, &guaranteed, &slack);
    assert_int_equal(parts->len, G_N_ELEMENTS(expected));
    for (guint i = 0; i < parts->len; i++) {
        const GanttPart *part = &g_array_index(parts, GanttPart, i);
        assert_int_equal(part->stay->node, expected[i].node);
        assert_int_equal(part->stay->vcpus, expected[i].vcpus);
        assert_int_equal(part->low, expected[i].low);
        assert_int_equal(part->high, expected[i].high);
        assert_int_equal(part->is_first, expected[i].is_first);
    }
    assert_int_equal(guaranteed, 4);
    assert_int_equal(slack, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gantt_stack_takes_the_lowest_vcpus_that_are_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
