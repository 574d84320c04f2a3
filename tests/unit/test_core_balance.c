/* SPDX-License-Identifier: Apache-2.0 */
/* Balancing: who moves from the busiest node to the idlest, alone or in exchange. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

#define NO_PROMOTION (BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION)

/* 3 is in slack on node 1, and 4 on node 2, where there is less to do: 6 of 8 vCPUs are used on the one, and 2.1 on the
 * other. 3 would only make node 2 the busier one; if it changes places with 4, 4.1 is the most that is used on one. */
#define UNEVEN(memory_of_3)                                                                        \
    "node 1 8 4000\n"                                                                              \
    "submit 1 v=8 m=4000 limit=100000 nodes=1 -> START 1.1@1\n"                                    \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=2000 mem=100\n"                                                                \
    "submit 3 v=4 m=2000 slack may-move limit=90000 -> START 3.1@1~\n"                             \
    "running 3.1\n"                                                                                \
    "at 40\n"                                                                                      \
    "report 1.1 cpu=2000 mem=100\n"                                                                \
    "report 3.1 cpu=4000 mem=" memory_of_3 "\n"                                                    \
    "node 2 8 2000\n"                                                                              \
    "submit 2 v=8 m=2000 limit=100000 nodes=2 -> START 2.1@2\n"                                    \
    "running 2.1\n"                                                                                \
    "at 59\n"                                                                                      \
    "report 2.1 cpu=100 mem=100\n"                                                                 \
    "submit 4 v=3 m=1000 slack may-move limit=90000 -> START 4.1@2~\n"                             \
    "running 4.1\n"                                                                                \
    "at 80\n"                                                                                      \
    "report 2.1 cpu=100 mem=100\n"
#define TWO_ROUNDS                                                                                 \
    "at 120\n"                                                                                     \
    "timer\n"                                                                                      \
    "at 180\n"

/* Each has room beside the other. */
static void exchange_of_two_begins_with_both_where_each_has_room(void **state)
{
    run_with(NO_PROMOTION, UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n" TWO_ROUNDS
                                          "timer -> MIGRATE 3.1@1>2~ MIGRATE 4.1@2>1~\n"
                                          "op 3 balance\n"
                                          "op 4 balance\n"
                                          "migrated 4.1\n"
                                          "migrated 3.1\n"
                                          "at 240\n"
                                          "timer\n"
                                          "at 300\n"
                                          "timer\n");
}

/* For 3, which uses 1500 MiB, there are 1700 without 4 on node 2, and 1200 beside it: 4 goes first. */
#define TIGHT "report 4.1 cpu=2000 mem=500\n" TWO_ROUNDS "timer -> MIGRATE 4.1@2>1~\n"

static void exchange_begins_with_the_one_that_has_room(void **state)
{
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "migrated 4.1 -> MIGRATE 3.1@1>2~\n"
                                                "migrated 3.1\n");
    /* The link of a node is for one at a time. */
    core_script_run_tuned(NO_PROMOTION, BERTH_TUNING_MOVES_PER_NODE, 1,
                          UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n" TWO_ROUNDS
                                         "timer -> MIGRATE 3.1@1>2~\n"
                                         "migrated 3.1 -> MIGRATE 4.1@2>1~\n"
                                         "migrated 4.1\n");
}

static void exchange_ends_halfway_where_the_other_cannot_follow(void **state)
{
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "migrated 4.1 failed\n");
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "report 2.1 cpu=100 mem=1000\n"
                                                "migrated 4.1\n");
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "freeze 3 -> FREEZE 3.1@1~\n"
                                                "migrated 4.1\n"
                                                "frozen 3.1\n");
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "cordon 2\n"
                                                "migrated 4.1\n");
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "cancel 3 -> STOP 3.1@1\n"
                                                "exited 3.1 -> RELEASE 3.1@1\n"
                                                "released 3.1\n"
                                                "migrated 4.1\n");
    /* There would be as much to do on node 2 as there is on node 1, and just room for it. */
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "report 2.1 cpu=4000 mem=100\n"
                                                "migrated 4.1\n");
}

static void exchange_that_came_to_nothing_is_in_the_way_of_none(void **state)
{
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT "cancel 4 -> STOP 4.1@2\n"
                                                "exited 4.1 -> RELEASE 4.1@1 RELEASE 4.1@2\n"
                                                "released 4.1\n"
                                                "released 4.1\n"
                                                "submit 5 v=3 m=1000 slack may-move limit=90000 "
                                                "-> START 5.1@2~\n"
                                                "running 5.1\n"
                                                "at 200\n"
                                                "report 5.1 cpu=2000 mem=500\n"
                                                "at 240\n"
                                                "timer\n"
                                                "at 300\n"
                                                "timer -> MIGRATE 5.1@2>1~\n"
                                                "migrated 5.1 -> MIGRATE 3.1@1>2~\n");
}

/* Every minute from FROM to UNTIL; nothing is moved but at the last of these, as END says. */
static void add_rounds(GString *script, guint from, guint until, const char *end)
{
    for (guint at = from; at <= until; at += 60)
        g_string_append_printf(script, "at %u\ntimer%s\n", at, at == until ? end : "");
}

/* 5 is left alone for 5 minutes when it has moved, and for 10 when it has moved back. */
static void who_moves_to_and_fro_is_left_alone_for_twice_as_long(void **state)
{
    g_autoptr(GString) script =
        g_string_new("node 1 8 4000\n"
                     "submit 1 v=8 m=4000 nodes=1 limit=100000 -> START 1.1@1\n"
                     "running 1.1\n"
                     "at 20\n"
                     "report 1.1 cpu=6000 mem=100\n"
                     "submit 5 v=1 m=100 slack may-move limit=90000 -> START 5.1@1~\n"
                     "running 5.1\n"
                     "at 40\n"
                     "report 5.1 cpu=1000 mem=50\n"
                     "node 2 8 4000\n"
                     "submit 2 v=8 m=4000 nodes=2 limit=100000 -> START 2.1@2\n"
                     "running 2.1\n"
                     "at 80\n"
                     "report 2.1 cpu=100 mem=100\n");
    add_rounds(script, 120, 180, " -> MIGRATE 5.1@1>2~");
    g_string_append(script, "migrated 5.1\n"
                            "report 1.1 cpu=100 mem=100\n"
                            "report 2.1 cpu=6000 mem=100\n");
    add_rounds(script, 240, 540, " -> MIGRATE 5.1@2>1~");
    g_string_append(script, "migrated 5.1\n"
                            "report 1.1 cpu=6000 mem=100\n"
                            "report 2.1 cpu=100 mem=100\n");
    add_rounds(script, 600, 1200, " -> MIGRATE 5.1@1>2~");
    run_with(NO_PROMOTION, script->str);
}

/* Nodes 3 and 4 are as 1 and 2 are, which count no more. */
#define UNEVEN_AS_WELL                                                                             \
    "cordon 1\n"                                                                                   \
    "cordon 2\n"                                                                                   \
    "node 3 8 4000\n"                                                                              \
    "submit 11 v=8 m=4000 limit=100000 nodes=3 -> START 11.1@3\n"                                  \
    "running 11.1\n"                                                                               \
    "at 200\n"                                                                                     \
    "report 11.1 cpu=2000 mem=100\n"                                                               \
    "submit 13 v=4 m=2000 slack may-move limit=90000 -> START 13.1@3~\n"                           \
    "running 13.1\n"                                                                               \
    "at 220\n"                                                                                     \
    "report 13.1 cpu=4000 mem=1500\n"                                                              \
    "node 4 8 2000\n"                                                                              \
    "submit 12 v=8 m=2000 limit=100000 nodes=4 -> START 12.1@4\n"                                  \
    "running 12.1\n"                                                                               \
    "at 239\n"                                                                                     \
    "report 12.1 cpu=100 mem=100\n"                                                                \
    "submit 14 v=3 m=1000 slack may-move limit=90000 -> START 14.1@4~\n"                           \
    "running 14.1\n"                                                                               \
    "at 260\n"                                                                                     \
    "report 14.1 cpu=2000 mem=500\n"

/* Who is to follow in it is known of one at a time. */
static void exchange_in_turn_waits_for_the_one_before(void **state)
{
    run_with(NO_PROMOTION, UNEVEN("1500") TIGHT UNEVEN_AS_WELL "at 300\n"
                                                               "timer\n"
                                                               "at 360\n"
                                                               "timer\n"
                                                               "migrated 4.1 failed\n"
                                                               "at 420\n"
                                                               "timer -> MIGRATE 14.1@4>3~\n");
}

static void exchange_is_for_two_that_gain_by_it(void **state)
{
    /* 6 and 4.1 of 8 vCPUs are 238 permille apart. */
    core_script_run_tuned(NO_PROMOTION, BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE, 476,
                          UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n" TWO_ROUNDS
                                         "timer -> MIGRATE 3.1@1>2~ MIGRATE 4.1@2>1~\n");
    core_script_run_tuned(NO_PROMOTION, BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE, 478,
                          UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n" TWO_ROUNDS "timer\n");
    run_with(NO_PROMOTION & ~BERTH_FEATURE_BALANCING,
             UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n" TWO_ROUNDS "timer\n");
    /* 4 has no room where 3 comes from, even without that. */
    run_with(NO_PROMOTION,
             UNEVEN("100") "report 1.1 cpu=2000 mem=3500\n"
                           "report 4.1 cpu=2000 mem=950 left=50\n" TWO_ROUNDS "timer\n");
}

/* 5 helps by itself: by 125 permille, which is enough, or by less than an exchange has to. */
#define WITH_ONE_MORE(milli)                                                                       \
    UNEVEN("1000")                                                                                 \
    "submit 5 v=1 m=100 slack may-move limit=90000 -> START 5.1@1~\n"                              \
    "running 5.1\n"                                                                                \
    "at 100\n"                                                                                     \
    "report 5.1 cpu=" milli " mem=50\n"                                                            \
    "report 4.1 cpu=2000 mem=500\n"

static void one_that_helps_enough_moves_alone(void **state)
{
    run_with(NO_PROMOTION, WITH_ONE_MORE("1000") TWO_ROUNDS "timer -> MIGRATE 5.1@1>2~\n");
    /* Beside 3 and 5 there is no room for 4. */
    run_with(NO_PROMOTION, WITH_ONE_MORE("900") TWO_ROUNDS "timer -> MIGRATE 3.1@1>2~\n"
                                                           "migrated 3.1 -> MIGRATE 4.1@2>1~\n");
    /* 4 is about to end, so that nobody is there who could be exchanged, and 5 gains too little for a move. */
    run_with(NO_PROMOTION,
             WITH_ONE_MORE("900") "extend 4 limit=119\n" TWO_ROUNDS "timer -> STOP 4.1@2\n");
    run_with(NO_PROMOTION, WITH_ONE_MORE("1000") "extend 4 limit=119\n" TWO_ROUNDS
                                                 "timer -> STOP 4.1@2 MIGRATE 5.1@1>2~\n");
}

/* It has less to do than node 3. */
static void node_that_refused_a_move_is_passed_over(void **state)
{
    run_with(NO_PROMOTION, "node 1 8 4000\n"
                           "submit 1 v=8 m=4000 nodes=1 limit=100000 -> START 1.1@1\n"
                           "running 1.1\n"
                           "at 20\n"
                           "report 1.1 cpu=6000 mem=100\n"
                           "submit 5 v=1 m=100 slack may-move limit=90000 -> START 5.1@1~\n"
                           "running 5.1\n"
                           "submit 6 v=1 m=100 slack may-move limit=90000 -> START 6.1@1~\n"
                           "running 6.1\n"
                           "at 40\n"
                           "report 1.1 cpu=6000 mem=100\n"
                           "report 5.1 cpu=1000 mem=50\n"
                           "report 6.1 cpu=1000 mem=50\n"
                           "node 2 8 4000\n"
                           "node 3 8 4000\n"
                           "submit 2 v=8 m=4000 nodes=2 limit=100000 -> START 2.1@2\n"
                           "submit 3 v=8 m=4000 nodes=3 limit=100000 -> START 3.1@3\n"
                           "running 2.1\n"
                           "running 3.1\n"
                           "at 80\n"
                           "report 2.1 cpu=100 mem=100\n"
                           "report 3.1 cpu=200 mem=100\n" TWO_ROUNDS "timer -> MIGRATE 5.1@1>2~\n"
                           "migrated 5.1 failed\n"
                           "at 240\n"
                           "timer\n"
                           "at 300\n"
                           "timer -> MIGRATE 6.1@1>3~\n");
}

/* Nobody in slack can leave node 3, however much is done there. */
static void node_without_slack_keeps_no_others_from_being_balanced(void **state)
{
    run_with(NO_PROMOTION,
             UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n"
                            "node 3 8 4000\n"
                            "submit 6 v=8 m=4000 limit=100000 nodes=3 -> START 6.1@3\n"
                            "running 6.1\n"
                            "at 100\n"
                            "report 6.1 cpu=8000 mem=4000\n" TWO_ROUNDS
                            "timer -> MIGRATE 3.1@1>2~ MIGRATE 4.1@2>1~\n");
}

/* Nothing is done on node 3, but 3 has no room there. */
static void idle_node_that_is_too_small_keeps_no_others_from_being_balanced(void **state)
{
    run_with(NO_PROMOTION, UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n"
                                          "node 3 8 500\n" TWO_ROUNDS
                                          "timer -> MIGRATE 3.1@1>2~ MIGRATE 4.1@2>1~\n");
}

/* 5 is on node 1 and 6 on node 2, where there is a little less to do, and node 3 is the idlest of N nodes. */
static char *two_busy_nodes(guint n)
{
    GString *script =
        g_string_new("node 1 8 4000\nnode 2 8 4000\n"
                     "submit 1 v=8 m=4000 nodes=1 limit=100000 -> START 1.1@1\n"
                     "submit 2 v=8 m=4000 nodes=2 limit=100000 -> START 2.1@2\n"
                     "running 1.1\nrunning 2.1\n"
                     "at 20\n"
                     "report 1.1 cpu=6000 mem=100\nreport 2.1 cpu=6000 mem=100\n"
                     "submit 5 v=1 m=3000 slack may-move limit=90000 -> START 5.1@1~\n"
                     "submit 6 v=1 m=3000 slack may-move limit=90000 -> START 6.1@2~\n"
                     "running 5.1\nrunning 6.1\n"
                     "at 40\n"
                     "report 5.1 cpu=1000 mem=50\nreport 6.1 cpu=1000 mem=50\n"
                     "report 1.1 cpu=6000 mem=100\nreport 2.1 cpu=5900 mem=100\n");
    for (guint node = 3; node <= n; node++)
        g_string_append_printf(script,
                               "node %u 8 4000\n"
                               "submit %u v=8 m=4000 nodes=%u limit=100000 -> START %u.1@%u\n"
                               "running %u.1\n",
                               node, 6 + node, node, 6 + node, node, 6 + node);
    g_string_append(script, "at 80\n");
    for (guint node = 3; node <= n; node++)
        g_string_append_printf(script, "report %u.1 cpu=%u mem=100\n", 6 + node,
                               node == 3 ? 100 : 200);
    return g_string_free(script, FALSE);
}

static void run_busy(guint n, const char *rounds)
{
    g_autofree char *busy = two_busy_nodes(n);
    g_autofree char *script = g_strconcat(busy, rounds, NULL);
    run_with(NO_PROMOTION, script);
}

/* One pair of nodes a round for each thirty. */
static void large_cluster_balances_several_nodes_at_a_time(void **state)
{
    run_busy(29, TWO_ROUNDS "timer -> MIGRATE 5.1@1>3~\n");
    run_busy(30, TWO_ROUNDS "timer -> MIGRATE 5.1@1>3~ MIGRATE 6.1@2>4~\n");
}

/* Node 4 is the idler one in the second round, and node 2 the busier one. */
static void round_looks_first_at_what_the_one_before_wanted(void **state)
{
    run_busy(4, "at 120\n"
                "timer\n"
                "report 9.1 cpu=300 mem=100\n"
                "report 2.1 cpu=6100 mem=100\n"
                "at 180\n"
                "timer -> MIGRATE 5.1@1>3~\n");
}

/* 5 gains a vCPU for 5 minutes, the cooldown of its first move, and its memory is copied by two. */
static void move_that_costs_more_than_it_gains_is_not_made(void **state)
{
    g_autofree char *busy = two_busy_nodes(4);
    g_autofree char *script = g_strconcat(busy, TWO_ROUNDS "timer -> MIGRATE 5.1@1>3~\n", NULL);
    /* It takes 74 s to move it, and 76, of which move_worth_permille makes 150. */
    core_script_run_tuned(NO_PROMOTION, BERTH_TUNING_MIGRATE_FIXED_USEC, 71 * G_USEC_PER_SEC,
                          script);
    g_autofree char *none = g_strconcat(busy, TWO_ROUNDS "timer\n", NULL);
    core_script_run_tuned(NO_PROMOTION, BERTH_TUNING_MIGRATE_FIXED_USEC, 73 * G_USEC_PER_SEC, none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange_of_two_begins_with_both_where_each_has_room),
        cmocka_unit_test(exchange_begins_with_the_one_that_has_room),
        cmocka_unit_test(exchange_ends_halfway_where_the_other_cannot_follow),
        cmocka_unit_test(exchange_that_came_to_nothing_is_in_the_way_of_none),
        cmocka_unit_test(exchange_in_turn_waits_for_the_one_before),
        cmocka_unit_test(who_moves_to_and_fro_is_left_alone_for_twice_as_long),
        cmocka_unit_test(exchange_is_for_two_that_gain_by_it),
        cmocka_unit_test(one_that_helps_enough_moves_alone),
        cmocka_unit_test(node_that_refused_a_move_is_passed_over),
        cmocka_unit_test(node_without_slack_keeps_no_others_from_being_balanced),
        cmocka_unit_test(idle_node_that_is_too_small_keeps_no_others_from_being_balanced),
        cmocka_unit_test(large_cluster_balances_several_nodes_at_a_time),
        cmocka_unit_test(round_looks_first_at_what_the_one_before_wanted),
        cmocka_unit_test(move_that_costs_more_than_it_gains_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
