/* SPDX-License-Identifier: Apache-2.0 */
/* Many at once, and for ever: caps hold, nobody goes to and fro, nobody starves, and a backed start waits
 * no longer than evacuation may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* 400 MiB can be written in the 6 seconds that evacuation may take; new ones are let in up to 360. */
static void slack_of_a_node_can_leave_within_the_evacuation_bound(void **state)
{
    core_script_run_tuned(
        BERTH_FEATURE_ALL, BERTH_TUNING_EVACUATION_MAX_USEC, 11 * (gint64)G_USEC_PER_SEC,
        IDLE_NODE "submit 2 v=1 m=200 slack may-checkpoint -> START 2.1@1~\n"
                  "submit 3 v=1 m=200 slack may-checkpoint -> START 3.1@1~\n"
                  "running 2.1\n"
                  "running 3.1\n"
                  "at 40\n"
                  "report 2.1 mem=180\n"
                  "report 3.1 mem=181\n"
                  "submit 4 v=1 m=10 slack may-checkpoint\n"
                  "report 3.1 mem=180\n"
                  "submit 5 v=1 m=11 slack may-checkpoint -> START 4.1@1~ START 5.1@1~\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_EVACUATION_MAX_USEC,
                          6 * (gint64)G_USEC_PER_SEC,
                          "node 1 4 4000\n"
                          "submit 1 v=4 m=4000 limit=10000 -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 20\n"
                          "report 1.1 cpu=1000 mem=300\n"
                          "submit 2 v=1 m=300 slack may-checkpoint -> START 2.1@1~\n"
                          "submit 3 v=1 m=300 slack may-checkpoint -> START 3.1@1~\n"
                          "running 2.1\n"
                          "running 3.1\n"
                          "report 2.1 mem=200\n"
                          "report 3.1 mem=200\n"
                          "report 2.1 mem=210 -> CHECKPOINT 2.1@1~\n" /* the larger */
                          "report 3.1 mem=300\n"
                          "checkpointed 2.1 -> RELEASE 2.1@1\n"
                          "released 2.1\n"); /* and it does not come back beside 300 */
}

/* Two at a time, 5 s for each besides what is written: in 14 s that is four of any size, and in 15 s six. */
static void evacuation_bound_counts_guests_that_use_nothing(void **state)
{
#define SIX_WAIT                                                                                   \
    "node 1 10 1000\n"                                                                             \
    "submit 1 v=10 m=1000 limit=10000 -> START 1.1@1\n"                                            \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=1000 mem=300\n"                                                                \
    "submit 2 v=1 m=50 array=6 slack may-checkpoint limit=10000 "
    const char *four = SIX_WAIT "-> START 2.1@1~ START 2/1.1@1~ START 2/2.1@1~ START 2/3.1@1~\n";
    const char *six = SIX_WAIT "-> START 2.1@1~ START 2/1.1@1~ START 2/2.1@1~ START 2/3.1@1~ "
                               "START 2/4.1@1~ START 2/5.1@1~\n";
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_EVACUATION_MAX_USEC,
                          14 * (gint64)G_USEC_PER_SEC, four);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_EVACUATION_MAX_USEC,
                          15 * (gint64)G_USEC_PER_SEC, six);
}

/* Page cache may be dropped before anybody has to leave: only what is used is counted. */
static void evacuation_bound_does_not_count_page_cache(void **state)
{
    core_script_run_tuned(
        BERTH_FEATURE_ALL, BERTH_TUNING_EVACUATION_MAX_USEC, 11 * (gint64)G_USEC_PER_SEC,
        IDLE_NODE "submit 2 v=1 m=300 slack may-checkpoint limit=10000 -> START 2.1@1~\n"
                  "submit 3 v=1 m=250 slack may-checkpoint limit=10000 -> START 3.1@1~\n"
                  "running 2.1\n"
                  "running 3.1\n"
                  "at 40\n"
                  "report 2.1 mem=180 left=120 touched=300\n"
                  "report 3.1 mem=180 left=70 touched=250\n"
                  "submit 4 v=1 m=10 slack may-checkpoint limit=10000 -> START 4.1@1~\n"
                  "report 3.1 mem=220 left=30 touched=250\n"
                  "report 3.1 mem=221 left=29 touched=250 -> CHECKPOINT 3.1@1~\n"); /* uses more */
}

/* Two moves are all that the cluster allows, and both are under way at node 2. */
static void page_cache_is_as_urgent_as_need(void **state)
{
    core_script_run_tuned(
        BERTH_FEATURE_ALL, BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE, 1,
        "node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 nodes=1 -> START 1.1@1\n"
        "submit 2 v=4 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=300\n"
        "report 2.1 cpu=100 mem=300\n"
        "submit 3 v=1 m=200 nodes=2 slack may-checkpoint limit=10000 -> START 3.1@2~\n"
        "submit 4 v=1 m=200 nodes=2 slack may-checkpoint limit=10000 -> START 4.1@2~\n"
        "submit 5 v=1 m=300 nodes=1 slack may-checkpoint limit=10000 -> START 5.1@1~\n"
        "running 3.1\n"
        "running 4.1\n"
        "running 5.1\n"
        "report 2.1 cpu=100 mem=960 -> CHECKPOINT 4.1@2~ CHECKPOINT 3.1@2~\n"
        "at 40\n"
        "report 5.1 cpu=100 mem=290 left=10\n"
        "report 1.1 cpu=100 mem=300 touched=710\n" /* all of it is taken, but the host has it */
        "report 1.1 cpu=100 mem=300 touched=711 -> CHECKPOINT 5.1@1~\n");
}

static void balancing_keeps_to_the_evacuation_bound(void **state)
{
    const char *script = "node 1 4 10000\n"
                         "node 2 4 10000\n"
                         "node 3 4 10000\n"
                         "submit 1 v=4 m=10000 limit=100000 nodes=1 -> START 1.1@1\n"
                         "submit 2 v=4 m=10000 limit=100000 nodes=2 -> START 2.1@2\n"
                         "submit 9 v=4 m=10000 limit=100000 nodes=3 -> START 9.1@3\n"
                         "running 1.1\n"
                         "running 2.1\n"
                         "running 9.1\n"
                         "at 20\n"
                         "report 1.1 cpu=100 mem=100\n"
                         "report 2.1 cpu=100 mem=100\n"
                         "submit 3 v=1 m=300 slack may-move nodes=1,2 limit=90000 "
                         "-> START 3.1@1~\n"
                         "submit 4 v=1 m=300 slack may-move nodes=2 limit=90000 -> START 4.1@2~\n"
                         "running 3.1\n"
                         "running 4.1\n"
                         "report 9.1 cpu=1500 mem=100\n"
                         "report 1.1 cpu=3000 mem=100\n"
                         "at 40\n"
                         "report 3.1 cpu=1000 mem=300\n";
    g_autofree char *full = g_strconcat(script,
                                        "report 4.1 cpu=100 mem=300\n"
                                        "at 60\n"
                                        "timer\n"
                                        "at 120\n"
                                        "timer\n",
                                        NULL);
    g_autofree char *has_room = g_strconcat(script,
                                            "report 4.1 cpu=100 mem=10\n"
                                            "at 60\n"
                                            "timer\n"
                                            "at 120\n"
                                            "timer -> MIGRATE 3.1@1>2~\n",
                                            NULL);
    core_script_run_tuned(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION,
                          BERTH_TUNING_EVACUATION_MAX_USEC, 6 * (gint64)G_USEC_PER_SEC, full);
    core_script_run_tuned(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION,
                          BERTH_TUNING_EVACUATION_MAX_USEC, 6 * (gint64)G_USEC_PER_SEC, has_room);
}

static void relief_keeps_to_the_caps_of_moves(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=150 slack may-checkpoint -> START 2.1@1~\n"
                  "submit 3 v=1 m=150 slack may-checkpoint -> START 3.1@1~\n"
                  "submit 4 v=1 m=150 slack may-checkpoint -> START 4.1@1~\n"
                  "running 2.1\n"
                  "running 3.1\n"
                  "running 4.1\n"
                  "report 1.1 cpu=1000 mem=900 -> CHECKPOINT 4.1@1~ CHECKPOINT 3.1@1~\n"
                  "report 1.1 cpu=1000 mem=950\n"
                  "checkpointed 3.1 -> RELEASE 3.1@1\n"
                  "report 1.1 cpu=1000 mem=960 -> CHECKPOINT 2.1@1~\n");
}

/* Three nodes, each with a guest of 500 MiB in the slack of one that uses 300 of its 1000. */
#define THREE_IDLE_NODES                                                                           \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "node 3 4 1000\n"                                                                              \
    "submit 1 v=4 m=1000 limit=10000 nodes=1 -> START 1.1@1\n"                                     \
    "submit 2 v=4 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"                                     \
    "submit 3 v=4 m=1000 limit=10000 nodes=3 -> START 3.1@3\n"                                     \
    "running 1.1\n"                                                                                \
    "running 2.1\n"                                                                                \
    "running 3.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=100 mem=300\n"                                                                 \
    "report 2.1 cpu=100 mem=300\n"                                                                 \
    "report 3.1 cpu=100 mem=300\n"                                                                 \
    "submit 4 v=1 m=500 slack may-checkpoint nodes=1 -> START 4.1@1~\n"                            \
    "submit 5 v=1 m=500 slack may-checkpoint nodes=2 -> START 5.1@2~\n"                            \
    "submit 6 v=1 m=500 slack may-checkpoint nodes=3 -> START 6.1@3~\n"                            \
    "running 4.1\n"                                                                                \
    "running 5.1\n"                                                                                \
    "running 6.1\n"

/* The cluster may have 2 moves under way: three nodes whose headroom is gone take turns. */
static void storm_keeps_to_the_cap_of_the_cluster(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE, 1,
                          THREE_IDLE_NODES "report 1.1 cpu=100 mem=460 -> CHECKPOINT 4.1@1~\n"
                                           "report 2.1 cpu=100 mem=460 -> CHECKPOINT 5.1@2~\n"
                                           "report 3.1 cpu=100 mem=460\n"
                                           "checkpointed 4.1 -> RELEASE 4.1@1\n"
                                           "report 3.1 cpu=100 mem=460 -> CHECKPOINT 6.1@3~\n"
                                           "checkpointed 5.1 -> RELEASE 5.1@2\n"
                                           "checkpointed 6.1 -> RELEASE 6.1@3\n"
                                           "released 4.1\n"
                                           "released 5.1\n"
                                           "released 6.1\n");
}

/* Whose backed guest is about to lack memory does not wait for what goes on elsewhere. */
static void shortage_is_not_held_up_by_the_cap_of_the_cluster(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE, 1,
                          THREE_IDLE_NODES "report 1.1 cpu=100 mem=460 -> CHECKPOINT 4.1@1~\n"
                                           "report 2.1 cpu=100 mem=500 -> CHECKPOINT 5.1@2~\n"
                                           "report 3.1 cpu=100 mem=500\n"
                                           "report 3.1 cpu=100 mem=501 -> CHECKPOINT 6.1@3~\n");
}

/* Two guests have to leave, and one place is free: it is not promised twice. */
static void herd_does_not_run_to_the_same_place(void **state)
{
    run(IDLE_NODE "node 2 4 1000\n"
                  "submit 2 v=4 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"
                  "running 2.1\n"
                  "submit 3 v=1 m=300 slack may-move may-checkpoint -> START 3.1@1~\n"
                  "submit 4 v=1 m=300 slack may-move may-checkpoint -> START 4.1@1~\n"
                  "running 3.1\n"
                  "running 4.1\n"
                  "at 40\n"
                  "report 2.1 cpu=100 mem=500\n"
                  "report 1.1 cpu=1000 mem=900 -> MIGRATE 4.1@1>2~ CHECKPOINT 3.1@1~\n");
}

/* What was just moved stays where it is, although its new node could do without it now. */
static void guest_does_not_go_to_and_fro(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=4 m=1000 limit=100000 nodes=1 -> START 1.1@1\n"
        "submit 2 v=4 m=1000 limit=100000 nodes=2 -> START 2.1@2\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "submit 3 v=2 m=100 slack may-move limit=90000 -> START 3.1@1~\n"
        "running 3.1\n"
        "report 3.1 cpu=2000 mem=50\n"
        "report 2.1 cpu=100 mem=100\n"
        "report 1.1 cpu=2000 mem=100\n"
        "at 60\n"
        "timer\n"
        "at 120\n"
        "timer -> MIGRATE 3.1@1>2~\n"
        "migrated 3.1\n"
        "report 3.1 cpu=2000 mem=50\n"
        "report 2.1 cpu=4000 mem=100\n" /* now it is here that it is in the way */
        "at 180\n"
        "timer\n"
        "at 240\n"
        "timer\n"
        "at 300\n"
        "timer\n"
        "at 360\n"
        "timer\n"
        "at 420\n"
        "timer\n" /* out of its cooldown: wanted there */
        "at 480\n"
        "timer -> MIGRATE 3.1@2>1~\n");
}

/* Narrow jobs come for ever, and every one of them would fit at once. */
static void wide_job_starts_when_it_was_planned(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=4 m=500 limit=100\n"
        "planned 2 100\n"
        "submit 3 v=1 limit=101\n"
        "submit 4 v=1 limit=100 -> START 4.1@1\n"
        "running 4.1\n"
        "at 50\n"
        "submit 5 v=1 limit=100\n"
        "submit 6 v=1 limit=50 -> START 6.1@1\n"
        "running 6.1\n"
        "at 99\n"
        "submit 7 v=1 limit=2\n"
        "planned 2 100\n"
        "at 100\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "exited 4.1 -> RELEASE 4.1@1\n"
        "released 4.1\n"
        "exited 6.1 -> RELEASE 6.1@1\n"
        "released 6.1 -> START 2.1@1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slack_of_a_node_can_leave_within_the_evacuation_bound),
        cmocka_unit_test(evacuation_bound_counts_guests_that_use_nothing),
        cmocka_unit_test(evacuation_bound_does_not_count_page_cache),
        cmocka_unit_test(page_cache_is_as_urgent_as_need),
        cmocka_unit_test(balancing_keeps_to_the_evacuation_bound),
        cmocka_unit_test(relief_keeps_to_the_caps_of_moves),
        cmocka_unit_test(storm_keeps_to_the_cap_of_the_cluster),
        cmocka_unit_test(shortage_is_not_held_up_by_the_cap_of_the_cluster),
        cmocka_unit_test(herd_does_not_run_to_the_same_place),
        cmocka_unit_test(guest_does_not_go_to_and_fro),
        cmocka_unit_test(wide_job_starts_when_it_was_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
