/* SPDX-License-Identifier: Apache-2.0 */
/* Backed guests that move so that a job which waits for a large place starts sooner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script.h"

static void run_with(guint32 features, const char *script)
{
    core_script_run_tuned(features, BERTH_TUNING_SETTLE_USEC, 10 * (gint64)G_USEC_PER_SEC, script);
}

static void run(const char *script)
{
    run_with(BERTH_FEATURE_ALL, script);
}

/* Half of each of two nodes is free: on node 1 beside job 1, which takes 4 s to move, on node 2 beside job 3, which takes
 * 3 s. Job 4 needs nearly all of a node. */
#define SCATTERED(of_1, of_3)                                                                      \
    "node 1 4 4000\n"                                                                              \
    "node 2 4 4000\n"                                                                              \
    "submit 1 v=2 m=2000 " of_1 " -> START 1.1@1\n"                                                \
    "submit 2 v=2 m=2000 limit=10 -> START 2.1@1\n"                                                \
    "submit 3 v=2 m=1000 " of_3 " -> START 3.1@2\n"                                                \
    "running 1.1\n"                                                                                \
    "running 2.1\n"                                                                                \
    "running 3.1\n"                                                                                \
    "exited 2.1 -> RELEASE 2.1@1\n"                                                                \
    "released 2.1\n"
#define LARGE "submit 4 v=4 m=3500 limit=100\n"
#define TWO_ROUNDS                                                                                 \
    "at 60\n"                                                                                      \
    "timer\n"                                                                                      \
    "at 120\n"
#define BOTH_MOVE SCATTERED("limit=10000 may-move", "limit=20000 may-move")

static void who_moves_fastest_leaves_so_that_a_large_job_starts_there(void **state)
{
    run(BOTH_MOVE LARGE
        "planned 4 10000\n" TWO_ROUNDS "timer -> MIGRATE 3.1@2>1\n"
        "op 3 defragment\n"
        "planned 4 123\n"
        "waits 4 need=4/3500 open=2 nearest=2:2/3000 plan=123@2 leaves=3@123 slack=not-wanted\n"
        "migrated 3.1 -> START 4.1@2\n");
    run(SCATTERED("limit=10000 may-move", "limit=20000") LARGE TWO_ROUNDS
        "timer -> MIGRATE 1.1@1>2\n"
        "migrated 1.1 -> START 4.1@1\n");
}

/* 5 would start beside 3, and be in the way for longer than it takes 3 to leave. */
static void room_is_kept_for_the_large_job_while_the_other_leaves(void **state)
{
    run(BOTH_MOVE LARGE TWO_ROUNDS "timer -> MIGRATE 3.1@2>1\n"
                                   "submit 5 v=2 m=500 limit=4\n"
                                   "submit 6 v=2 m=500 limit=3 -> START 6.1@2\n");
}

static void large_job_waits_as_before_where_the_move_fails(void **state)
{
    run(BOTH_MOVE LARGE TWO_ROUNDS "timer -> MIGRATE 3.1@2>1\n"
                                   "migrated 3.1 failed\n"
                                   "planned 4 10000\n"
                                   "submit 5 v=2 m=500 limit=4 -> START 5.1@1\n");
}

/* The move of 3 is never answered. 5 is let in beside it when 4 is not planned there for the next moment any more. */
static void who_does_not_leave_is_thought_to_stay_as_long_again(void **state)
{
    run(BOTH_MOVE LARGE TWO_ROUNDS "timer -> MIGRATE 3.1@2>1\n"
                                   "planned 4 123\n"
                                   "submit 5 v=2 m=500 limit=100\n"
                                   "at 240\n"
                                   "timer -> START 5.1@2\n"
                                   "planned 4 360\n"
                                   "running 5.1\n"
                                   "exited 5.1 -> RELEASE 5.1@2\n"
                                   "released 5.1\n"
                                   "at 360\n"
                                   "timer\n"
                                   "planned 4 600\n"
                                   "migrated 3.1 -> START 4.1@2\n");
}

static void who_does_not_leave_is_not_waited_for_after_a_restart_either(void **state)
{
    run(BOTH_MOVE LARGE TWO_ROUNDS "timer -> MIGRATE 3.1@2>1\n"
                                   "restart\n"
                                   "join 1 1.1:running\n"
                                   "join 2 3.1:running -> MIGRATE 3.1@2>1\n"
                                   "planned 4 123\n"
                                   "at 240\n"
                                   "timer\n"
                                   "planned 4 360\n");
}

/* 3 is over while it moves: it is thought to be gone from where it goes when it has come there, not before. */
static void who_is_on_its_way_is_not_gone_from_there(void **state)
{
    run("node 1 4 4000\n"
        "node 2 4 4000\n"
        "submit 3 v=2 m=1000 limit=130 save may-checkpoint may-move nodes=1,2 -> START 3.1@1\n"
        "running 3.1\n"
        "at 10\n"
        "migrate 3 to=2 -> MIGRATE 3.1@1>2\n"
        "submit 4 v=4 m=1000 limit=100 nodes=2\n"
        "planned 4 130\n"
        "at 130\n"
        "timer\n"
        "planned 4 250\n");
}

static void nobody_leaves_who_may_not_be_moved(void **state)
{
    run(SCATTERED("limit=10000", "limit=20000") LARGE TWO_ROUNDS "timer\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALANCING, BOTH_MOVE LARGE TWO_ROUNDS "timer\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_MIGRATION, BOTH_MOVE LARGE TWO_ROUNDS "timer\n");
}

/* One that fits in what there is elsewhere only beside nobody. */
static void nobody_leaves_for_whom_there_is_no_other_place(void **state)
{
    run(SCATTERED(
        "limit=10000 may-move",
        "limit=20000 may-move") "submit 5 v=1 m=100 limit=90000 nodes=1 -> START 5.1@1\n"
                                "submit 6 v=1 m=100 limit=90000 nodes=2 -> START 6.1@2\n" LARGE
                                    TWO_ROUNDS "timer\n");
}

/* 5 is in slack on node 1, which has 4000 MiB, and uses 2500; 3, which would come, 1000. */
#define IN_SLACK_THERE(of_1)                                                                       \
    SCATTERED("limit=10000", "limit=20000 may-move")                                               \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=100 mem=" of_1 "\n"                                                            \
    "report 3.1 cpu=100 mem=1000\n"                                                                \
    "submit 5 v=3 m=2500 slack may-checkpoint limit=30000 -> START 5.1@1~\n"                       \
    "running 5.1\n"                                                                                \
    "at 40\n"                                                                                      \
    "report 5.1 cpu=100 mem=2500\n" LARGE TWO_ROUNDS

static void nobody_leaves_for_whom_one_in_slack_would_have_to(void **state)
{
    run(IN_SLACK_THERE("500") "timer -> MIGRATE 3.1@2>1\n");
    run(IN_SLACK_THERE("501") "timer\n");
}

static void nobody_leaves_for_a_start_that_is_near(void **state)
{
    run(SCATTERED("limit=180", "limit=20000 may-move") LARGE "planned 4 180\n" TWO_ROUNDS
                                                             "timer\n");
    run(SCATTERED("limit=181", "limit=20000 may-move") LARGE "planned 4 181\n" TWO_ROUNDS
                                                             "timer -> MIGRATE 3.1@2>1\n");
}

/* 3 s are spent a hundred times for as much; two rounds later 300 s are won, or 299 s. */
static void nobody_leaves_for_a_start_that_comes_little_sooner(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVE_WORTH_PERMILLE, 100000,
                          SCATTERED("limit=423", "limit=20000 may-move") LARGE TWO_ROUNDS
                          "timer -> MIGRATE 3.1@2>1\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVE_WORTH_PERMILLE, 100000,
                          SCATTERED("limit=422", "limit=20000 may-move") LARGE TWO_ROUNDS
                          "timer\n");
}

/* 5, behind 4, could have node 1 if 1 went to node 2, where 4 starts at 20000. */
static void who_comes_before_is_not_delayed_where_the_other_goes(void **state)
{
    const char *before = "submit 6 v=1 m=100 limit=90000 nodes=1 -> START 6.1@1\n"
                         "submit 4 p=5 v=4 m=3500 limit=100 nodes=2\n"
                         "submit 5 v=3 m=3000 limit=100 nodes=1\n"
                         "planned 4 20000\n";
    g_autofree char *in_time = g_strconcat(SCATTERED("limit=20000 may-move", "limit=20000"), before,
                                           TWO_ROUNDS "timer -> MIGRATE 1.1@1>2\n"
                                                      "migrated 1.1 -> START 5.1@1\n"
                                                      "planned 4 20000\n",
                                           NULL);
    g_autofree char *too_late = g_strconcat(SCATTERED("limit=20001 may-move", "limit=20000"),
                                            before, TWO_ROUNDS "timer\n", NULL);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 2, in_time);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 2, too_late);
}

/* 4 waits for all of node 1, which both leave at 10000 only; 5 could begin there before, if 1 left. */
static void who_comes_before_is_not_delayed_where_the_other_leaves(void **state)
{
    const char *nodes = "node 1 4 4000\n"
                        "node 2 4 4000\n"
                        "submit 1 v=1 m=500 limit=10000 may-move nodes=1,2 -> START 1.1@1\n"
                        "submit 2 v=1 m=500 limit=10000 nodes=1 -> START 2.1@1\n"
                        "submit 3 v=2 m=500 limit=90000 nodes=2 -> START 3.1@2\n"
                        "running 1.1\n"
                        "running 2.1\n"
                        "running 3.1\n"
                        "submit 4 p=5 v=4 m=3500 limit=100 nodes=1\n";
    g_autofree char *in_time = g_strconcat(nodes,
                                           "submit 5 v=3 m=2000 limit=9000 nodes=1\n" TWO_ROUNDS
                                           "timer -> MIGRATE 1.1@1>2\n"
                                           "migrated 1.1 -> START 5.1@1\n"
                                           "planned 4 10000\n",
                                           NULL);
    g_autofree char *too_long =
        g_strconcat(nodes, "submit 5 v=3 m=2000 limit=9900 nodes=1\n" TWO_ROUNDS "timer\n", NULL);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 2, in_time);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 2, too_long);
}

/* One of its guests has room on node 3, for which 3 is not to go there; on two nodes it lacks room for both. */
static void gang_gets_room_for_the_guest_that_it_lacks(void **state)
{
    const char *gang = "submit 4 guests=2 v=4 m=3500 limit=100\n";
    g_autofree char *lacks_one =
        g_strconcat(BOTH_MOVE, "node 3 4 3900\n", gang,
                    TWO_ROUNDS "timer -> MIGRATE 3.1@2>1\n"
                               "migrated 3.1 -> START 4.1@3 START 4+1.1@2\n",
                    NULL);
    g_autofree char *lacks_two = g_strconcat(BOTH_MOVE, gang, TWO_ROUNDS "timer\n", NULL);
    g_autofree char *has_no_other_place = g_strconcat(
        BOTH_MOVE, "node 3 4 3900\n", "submit 5 v=1 m=100 limit=90000 nodes=1 -> START 5.1@1\n",
        gang, TWO_ROUNDS "timer\n", NULL);
    run(lacks_one);
    run(lacks_two);
    run(has_no_other_place);
}

/* What its guests tell each other stays where it was begun. */
static void guest_of_a_gang_stays(void **state)
{
    run("node 1 4 4000\n"
        "node 2 4 4000\n"
        "submit 1 v=2 m=2000 limit=10000 -> START 1.1@1\n"
        "submit 3 guests=2 v=1 m=500 limit=20000 may-move nodes=2 -> START 3.1@2 START 3+1.1@2\n"
        "running 1.1\n"
        "running 3.1\n"
        "running 3+1.1\n"
        "submit 4 v=3 m=3500 limit=100\n" TWO_ROUNDS "timer\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_moves_fastest_leaves_so_that_a_large_job_starts_there),
        cmocka_unit_test(room_is_kept_for_the_large_job_while_the_other_leaves),
        cmocka_unit_test(large_job_waits_as_before_where_the_move_fails),
        cmocka_unit_test(who_does_not_leave_is_thought_to_stay_as_long_again),
        cmocka_unit_test(who_does_not_leave_is_not_waited_for_after_a_restart_either),
        cmocka_unit_test(who_is_on_its_way_is_not_gone_from_there),
        cmocka_unit_test(nobody_leaves_who_may_not_be_moved),
        cmocka_unit_test(nobody_leaves_for_whom_there_is_no_other_place),
        cmocka_unit_test(nobody_leaves_for_whom_one_in_slack_would_have_to),
        cmocka_unit_test(nobody_leaves_for_a_start_that_is_near),
        cmocka_unit_test(nobody_leaves_for_a_start_that_comes_little_sooner),
        cmocka_unit_test(who_comes_before_is_not_delayed_where_the_other_goes),
        cmocka_unit_test(who_comes_before_is_not_delayed_where_the_other_leaves),
        cmocka_unit_test(gang_gets_room_for_the_guest_that_it_lacks),
        cmocka_unit_test(guest_of_a_gang_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
