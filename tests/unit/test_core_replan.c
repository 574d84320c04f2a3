/* SPDX-License-Identifier: Apache-2.0 */
/* Planned starts that stand while other things change, and those that do not: small cases that can be
 * checked by hand. After each line the core's invariants compare every planned start with a search of
 * its own (scheduler/core/replan.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script.h"

/* The first eight have a planned start. */
static void run(const char *script)
{
    BerthCoreConfig config = core_script_config;
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_PLAN_DEPTH] = 8;
    config.policy = BERTH_POLICY_CONSERVATIVE;
    config.tunings = tunings;
    core_script_run(&config, script);
}

/* Three nodes of 4 are full until 100, 200 and 300. */
#define THREE_FULL                                                                                 \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "node 3 4 1000\n"                                                                              \
    "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n"                                                  \
    "submit 2 v=4 m=1 limit=200 -> START 2.1@2\n"                                                  \
    "submit 3 v=4 m=1 limit=300 -> START 3.1@3\n"                                                  \
    "running 1.1\n"                                                                                \
    "running 2.1\n"                                                                                \
    "running 3.1\n"

/* 3 ends at 50: 4, which was to start at 100, takes its node at once; 5 moves to where 4 was; 6, which
 * may be on node 2 alone, stays. */
static void room_moves_up_whom_it_is_any_use_to(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 limit=1000\n"
                   "submit 5 v=4 m=1 limit=1000 nodes=1,3\n"
                   "submit 6 v=4 m=1 limit=1000 nodes=2\n"
                   "planned 4 100\n"
                   "planned 5 300\n"
                   "planned 6 200\n"
                   "at 50\n"
                   "exited 3.1 -> RELEASE 3.1@3\n"
                   "released 3.1 -> START 4.1@3\n"
                   "planned 5 100\n"
                   "planned 6 200\n");
}

/* A gang of three needs all nodes, at 300. One of them earlier is no use to it; with the second it
 * starts when the last one ends. */
static void gang_moves_up_when_enough_nodes_have_come_together(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 guests=3 limit=100\n"
                   "planned 4 300\n"
                   "at 10\n"
                   "exited 2.1 -> RELEASE 2.1@2\n"
                   "released 2.1\n"
                   "planned 4 300\n"
                   "at 20\n"
                   "exited 3.1 -> RELEASE 3.1@3\n"
                   "released 3.1\n"
                   "planned 4 100\n"
                   "exited 1.1 -> RELEASE 1.1@1\n"
                   "released 1.1 -> START 4.1@1 START 4+1.1@2 START 4+2.1@3\n");
}

/* Two nodes for 50 from 100 on: 4 is there before 6, which has room between the two gangs for no
 * longer than that, and both stand when 3 ends early. */
static void gang_between_gangs_is_not_where_they_are(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 guests=2 limit=50\n"
                   "submit 5 v=4 m=1 guests=3 limit=50\n"
                   "submit 6 v=4 m=1 guests=2 limit=50\n"
                   "submit 7 v=4 m=1 guests=2 limit=51\n"
                   "planned 4 200\n"
                   "planned 5 300\n"
                   "planned 6 250\n"
                   "planned 7 350\n"
                   "at 10\n"
                   "exited 3.1 -> RELEASE 3.1@3\n"
                   "released 3.1\n"
                   "planned 4 100\n"
                   "planned 5 200\n"
                   "planned 6 150\n"
                   "planned 7 250\n");
}

/* 5 and 6 are as 4, and wait behind it; so does 8, which comes before 7 in spite of its number. */
static void who_is_not_the_first_of_its_class_is_planned_at_once(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 limit=1000 p=1\n"
                   "submit 5 v=4 m=1 limit=1000 p=1\n"
                   "planned 5 200\n"
                   "submit 6 v=4 m=1 limit=1000 p=1 array=4\n"
                   "submit 7 v=4 m=1 limit=10\n"
                   "submit 9 v=4 m=1 limit=11\n"
                   "planned 6 300\n"
                   "planned 7 2100\n"
                   "planned 9 2110\n"
                   "submit 8 v=4 m=1 limit=1000 p=1\n"
                   "planned 8 2100\n"
                   "planned 7 2200\n"
                   "planned 9 never\n");
}

/* 6 takes the room of 4, 4 that of 5. */
static void higher_priority_comes_in_between(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 limit=1000\n"
                   "submit 5 v=4 m=1 limit=1001\n"
                   "planned 4 100\n"
                   "planned 5 200\n"
                   "submit 6 v=4 m=1 limit=1000 p=1\n"
                   "planned 6 100\n"
                   "planned 4 200\n"
                   "planned 5 300\n");
}

/* Each comes before all the others, more often than places were left between two of them. */
static void many_come_before_the_first(void **state)
{
    g_autoptr(GString) script = g_string_new("node 1 4 1000\n"
                                             "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n");
    for (guint i = 2; i < 30; i++) {
        g_string_append_printf(script, "submit %u v=4 m=1 limit=10 p=%u\nplanned %u 100\n", i, i,
                               i);
        for (guint k = 1; k < 8 && i - k > 1; k++)
            g_string_append_printf(script, "planned %u %u\n", i - k, 100 + 10 * k);
        if (i > 9)
            g_string_append_printf(script, "planned %u never\n", i - 8);
    }
    run(script->str);
}

/* 5 is no longer in the way of 6; it is not the first of its class, which 4 is. */
static void who_is_cancelled_leaves_its_room_to_those_behind(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 4 v=4 m=1 limit=50\n"
        "submit 5 v=4 m=1 limit=50\n"
        "submit 6 v=4 m=1 limit=51\n"
        "planned 4 100\n"
        "planned 5 150\n"
        "planned 6 200\n"
        "cancel 5\n"
        "planned 6 150\n");
}

/* The tasks of an array are planned one after the other. */
static void tasks_of_an_array_move_up_one_after_the_other(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 limit=1000 array=3\n"
                   "submit 5 v=4 m=1 limit=1001\n"
                   "planned 4 100\n"
                   "planned 5 1100\n"
                   "at 50\n"
                   "exited 3.1 -> RELEASE 3.1@3\n"
                   "released 3.1 -> START 4.1@3\n"
                   "planned 4 100\n"
                   "planned 5 1050\n");
}

/* 4 was to be on node 1, which is not to be used any more, and comes back. */
static void who_loses_its_node_goes_elsewhere(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 limit=10\n"
                   "submit 5 v=4 m=1 limit=1000\n"
                   "planned 4 100\n"
                   "planned 5 110\n"
                   "drain 1\n"
                   "planned 4 200\n"
                   "planned 5 210\n"
                   "undrain 1\n"
                   "planned 4 100\n"
                   "planned 5 110\n");
}

/* Across the maintenance of node 1 there is no room; when it is called off, there is. */
static void maintenance_moves_plans_away_and_back(void **state)
{
    run(THREE_FULL "submit 4 v=4 m=1 limit=100\n"
                   "planned 4 100\n"
                   "maintenance 1 node=1 from=150 to=400\n"
                   "planned 4 200\n"
                   "maintenance 1\n"
                   "planned 4 100\n");
}

/* 1 boots for 30, and so ends and leaves later than it was thought to: all behind it are later. */
static void later_end_puts_off_all_that_wait_for_it(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n"
        "submit 2 v=4 m=1 limit=50\n"
        "submit 3 v=4 m=1 limit=51\n"
        "planned 3 150\n"
        "at 30\n"
        "running 1.1\n"
        "submit 4 v=4 m=1 limit=52\n"
        "planned 2 130\n"
        "planned 3 180\n"
        "planned 4 231\n");
}

/* --- who has no limit ------------------------------------------------------------------------- */

#define FOR_TWO(limit)                                                                             \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "submit 1 v=4 limit=" limit " nodes=1 -> START 1.1@1\n"                                        \
    "running 1.1\n"                                                                                \
    "at 86000\n"                                                                                   \
    "submit 2 v=2 limit=4000 nodes=2 -> START 2.1@2\n"                                             \
    "running 2.1\n"                                                                                \
    "submit 3 v=2 limit=5000 nodes=2 -> START 3.1@2\n"                                             \
    "running 3.1\n"                                                                                \
    "at 86500\n"                                                                                   \
    "timer\n"                                                                                      \
    "submit 10 v=4 limit=100\n"                                                                    \
    "planned 10 91000\n"                                                                           \
    "exited 2.1 -> RELEASE 2.1@2\n"                                                                \
    "released 2.1\n"                                                                               \
    "submit 11 v=2 limit=100000\n"

/* 1 has run for a day, which is what was assumed: it is not thought to leave any moment. */
static void who_outruns_what_is_assumed_is_in_nobodys_plan(void **state)
{
    run(FOR_TWO("1000000"));
    run(FOR_TWO("0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_moves_up_whom_it_is_any_use_to),
        cmocka_unit_test(gang_moves_up_when_enough_nodes_have_come_together),
        cmocka_unit_test(gang_between_gangs_is_not_where_they_are),
        cmocka_unit_test(who_is_not_the_first_of_its_class_is_planned_at_once),
        cmocka_unit_test(higher_priority_comes_in_between),
        cmocka_unit_test(many_come_before_the_first),
        cmocka_unit_test(who_is_cancelled_leaves_its_room_to_those_behind),
        cmocka_unit_test(tasks_of_an_array_move_up_one_after_the_other),
        cmocka_unit_test(who_loses_its_node_goes_elsewhere),
        cmocka_unit_test(maintenance_moves_plans_away_and_back),
        cmocka_unit_test(later_end_puts_off_all_that_wait_for_it),
        cmocka_unit_test(who_outruns_what_is_assumed_is_in_nobodys_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
