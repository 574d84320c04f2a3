/* SPDX-License-Identifier: Apache-2.0 */
/* Who is to have more or less because somebody asked for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

#define ONE_RUNS                                                                                   \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=1 m=200 vmax=3 mmax=600 -> START 1.1@1\n"                                          \
    "running 1.1\n"
#define ONE_OF_TWO_RUNS                                                                            \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "submit 1 v=1 m=200 nodes=1,2 may-move vmax=4 mmax=600 -> START 1.1@1\n"                       \
    "running 1.1\n"

static void resize_gives_what_is_asked_for_within_the_ceiling(void **state)
{
    run(ONE_RUNS "resize 1 v=3 m=600 -> RESIZE 1.1@1=3/600\n"
                 "holds 1 3 600\n"
                 "resized 1.1\n"
                 "holds 1 3 600\n"
                 "resize 1 v=2 op -> RESIZE 1.1@1=2/600\n"
                 "resized 1.1\n"
                 "resize 1 m=50 -> RESIZE 1.1@1=2/50\n"
                 "resized 1.1\n"
                 "holds 1 2 50\n"
                 "exited 1.1 -> RELEASE 1.1@1\n");
    run(ONE_RUNS "resize 1 v=1 m=200\n" /* it has that */
                 "resize 1\n");
}

/* 1 waits for its turn at the link: what it is given before that does not make it run on. */
static void resize_leaves_the_wish_to_stand_still(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=1 m=200 mmax=300 may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=1 m=200 may-checkpoint -> START 2.1@1\n"
        "running 2.1\n"
        "submit 3 v=1 m=200 may-checkpoint -> START 3.1@1\n"
        "running 3.1\n"
        "freeze 2 disk -> CHECKPOINT 2.1@1\n"
        "freeze 3 disk -> CHECKPOINT 3.1@1\n"
        "freeze 1 disk\n"
        "resize 1 m=300 -> RESIZE 1.1@1=1/300\n"
        "resized 1.1\n"
        "checkpointed 2.1 -> RELEASE 2.1@1 CHECKPOINT 1.1@1\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "? 1 SUSPENDED frozen-by-user none\n");
}

static void resize_is_within_the_limits_of_user_and_account(void **state)
{
    run("user 1000 v=2\n" ONE_RUNS "resize 1 v=3 ! may use 1 vCPU more, and that takes 2\n"
        "resize 1 v=2 -> RESIZE 1.1@1=2/200\n"
        "resized 1.1\n"
        "submit 2 v=1 m=100\n"
        "why 2 account-limit\n"
        "resize 1 v=1 -> RESIZE 1.1@1=1/200\n"
        "why 2 account-limit\n" /* until it is done */
        "resized 1.1 -> START 2.1@1\n"
        "running 2.1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n");
    run("account 0 m=500\n" ONE_RUNS "resize 1 m=501 ! may use 300 MiB of memory more\n"
        "resize 1 m=500 -> RESIZE 1.1@1=1/500\n"
        "resized 1.1 failed\n"
        "submit 2 v=1 m=300 -> START 2.1@1\n");
    /* What is held for it where it is moved to counts. */
    run("user 1000 v=4\n" ONE_OF_TWO_RUNS "submit 2 v=3 m=100 uid=7 nodes=1 -> START 2.1@1\n"
        "resize 1 v=3 -> MIGRATE 1.1@1>2\n"
        "submit 3 v=2 m=100\n"
        "why 3 account-limit\n"
        "migrated 1.1 failed -> START 3.1@2\n");
}

static void resize_again_is_the_same_and_another_waits(void **state)
{
    run(ONE_RUNS "resize 1 v=2 -> RESIZE 1.1@1=2/200\n"
                 "resize 1 v=2\n"
                 "resize 1 v=2 m=200\n"
                 "resize 1 v=3 ! is being resized\n"
                 "resized 1.1\n"
                 "resize 1 v=3 -> RESIZE 1.1@1=3/200\n");
}

/* Room is taken when it is asked for, and given back when the guest has given it back. */
static void resize_holds_the_larger_of_both_until_it_is_done(void **state)
{
    run(ONE_RUNS "resize 1 v=3 -> RESIZE 1.1@1=3/200\n"
                 "submit 2 v=2 m=100\n"
                 "resized 1.1 failed -> START 2.1@1\n"
                 "holds 1 1 200\n");
    run(ONE_RUNS "resize 1 m=600 -> RESIZE 1.1@1=1/600\n"
                 "resized 1.1\n"
                 "submit 2 v=1 m=800\n"
                 "resize 1 m=200 -> RESIZE 1.1@1=1/200\n"
                 "holds 1 1 600\n"
                 "resized 1.1 failed\n"
                 "holds 1 1 600\n"
                 "resize 1 m=200 -> RESIZE 1.1@1=1/200\n"
                 "resized 1.1 -> START 2.1@1\n");
    /* more of one, and less of the other */
    run(ONE_RUNS "resize 1 v=3 m=100 -> RESIZE 1.1@1=3/100\n"
                 "holds 1 3 200\n"
                 "resized 1.1\n"
                 "holds 1 3 100\n");
}

/* A guest that neither grew nor shrank again is counted as what it has, and can leave. */
static void resize_that_comes_half_way_leaves_what_it_has(void **state)
{
    run(ONE_OF_TWO_RUNS "resize 1 m=600 -> RESIZE 1.1@1=1/600\n"
                        "resized 1.1 failed v=1 m=300\n"
                        "submit 2 v=1 m=701 nodes=1\n" /* 700 are left */
                        "submit 3 v=1 m=700 nodes=1 -> START 3.1@1\n"
                        "resize 1 m=300\n" /* it has that */
                        "resize 1 m=200 -> RESIZE 1.1@1=1/200\n"
                        "resized 1.1\n"
                        "resize 1 m=600 -> MIGRATE 1.1@1>2\n");
    run(ONE_OF_TWO_RUNS "resize 1 m=500 -> RESIZE 1.1@1=1/500\n"
                        "resized 1.1 failed v=9 m=9000\n" /* no more than is held for it */
                        "resize 1 v=1 m=500\n"
                        "drain 1 -> MIGRATE 1.1@1>2\n");
}

static void resize_is_refused_with_the_reason(void **state)
{
    run(ONE_RUNS "resize 2 v=1 ! no unfinished job 2\n"
                 "resize 1 v=4 ! 3 at most (--vcpus-max)\n"
                 "resize 1 m=601 ! 600 MiB at most (--memory-max)\n"
                 "resize 1 m=49 ! a quarter of what it was started with\n"
                 "submit 2 v=1 m=100 -> START 2.1@1\n"
                 "resize 2 v=1 ! does not run yet\n"
                 "running 2.1\n"
                 "resize 2 v=2 ! 1 at most\n" /* without a ceiling */
                 "resize 2 m=101 ! 100 MiB at most\n"
                 "submit 3 v=1 m=100 held\n"
                 "resize 3 v=1 ! does not run\n"
                 "freeze 1 -> FREEZE 1.1@1\n"
                 "resize 1 v=2 ! being frozen\n"
                 "frozen 1.1\n"
                 "resize 1 v=2 ! berth thaw\n"
                 "freeze 1 op\n"
                 "resize 1 v=2 ! an operator, who alone can thaw it\n"
                 "thaw 1 op -> THAW 1.1@1\n"
                 "thawed 1.1\n"
                 "left 1\n"
                 "resize 1 v=2 ! its node is not reached\n"
                 "join 1 1.1:running 2.1:running\n"
                 "cancel 1 -> STOP 1.1@1\n"
                 "resize 1 v=2 ! is ending\n");
    run("node 1 4 1000\n"
        "submit 1 guests=2 vmax=2 -> START 1.1@1 START 1+1.1@1\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "resize 1 v=2 ! several guests\n");
}

static void resize_does_not_take_what_is_planned_for_others(void **state)
{
    run(ONE_RUNS "submit 2 v=1 m=100 limit=100 -> START 2.1@1\n"
                 "running 2.1\n"
                 "submit 3 v=3 m=100\n" /* planned for second 100 */
                 "planned 3 100\n"
                 "resize 1 v=2 ! n1 has no room for it beside what is planned there\n"
                 "resize 1 m=300 -> RESIZE 1.1@1=1/300\n");
}

/* However much of it is free: nothing of that is kept for it. */
static void resize_in_slack_says_that_it_is_in_slack(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=200 vmax=2 slack may-move -> START 2.1@1~\n"
                  "running 2.1\n"
                  "resize 2 v=2 ! runs in slack on n1, where it gets no more than it has, and no "
                  "other node that it may use can back all of it\n");
    run(IDLE_NODE "submit 2 v=1 m=200 vmax=2 slack may-checkpoint -> START 2.1@1~\n"
                  "running 2.1\n"
                  "resize 2 v=2 ! runs in slack on n1, where it gets no more than it has, and it "
                  "cannot be moved: guests' disks are not in storage\n");
}

/* Nothing is planned where nobody may come, so that what is free there is free. */
static void resize_grows_on_a_cordoned_node(void **state)
{
    run(ONE_RUNS "cordon 1\n"
                 "resize 1 v=3 -> RESIZE 1.1@1=3/200\n"
                 "resized 1.1\n");
}

static void resize_moves_to_where_there_is_room(void **state)
{
    run(ONE_OF_TWO_RUNS "submit 2 v=3 m=100 nodes=1 -> START 2.1@1\n"
                        "running 2.1\n"
                        "resize 1 v=2 m=100 -> MIGRATE 1.1@1>2\n"
                        "resize 1 v=2 m=100\n"         /* the same again */
                        "submit 3 v=3 m=100 nodes=2\n" /* held there: 2 vCPUs, 200 MiB */
                        "submit 4 v=2 m=800 nodes=2 -> START 4.1@2\n"
                        "migrated 1.1 -> RESIZE 1.1@2=2/100\n"
                        "holds 1 2 200\n"
                        "resized 1.1\n"
                        "holds 1 2 100\n");
    run(ONE_OF_TWO_RUNS "submit 2 v=3 m=100 nodes=1 -> START 2.1@1\n"
                        "running 2.1\n"
                        "resize 1 v=4 -> MIGRATE 1.1@1>2\n"
                        "migrated 1.1 failed\n"
                        "holds 1 1 200\n"
                        "resize 1 v=4 op -> MIGRATE 1.1@1>2\n"
                        "migrate-not 1 ! an operator\n"
                        "migrate-not 1 op -> STAY 1.1@1\n"
                        "migrated 1.1 failed\n"
                        "submit 3 v=1 m=100 nodes=2 -> START 3.1@2\n"
                        "resize 1 v=4 ! neither has another node\n");
    run(ONE_RUNS "submit 2 v=3 m=100 -> START 2.1@1\n" /* of storage that nodes do not share */
                 "running 2.1\n"
                 "resize 1 v=2 ! nodes share\n");
}

/* Whoever wanted it to stand still meanwhile gets that when it has what it was to have. */
static void freeze_waits_for_a_resize(void **state)
{
    run(ONE_RUNS "resize 1 v=2 -> RESIZE 1.1@1=2/200\n"
                 "freeze 1\n"
                 "resized 1.1 -> FREEZE 1.1@1\n");
}

static void resized_guest_is_moved_with_what_it_has(void **state)
{
    run(ONE_OF_TWO_RUNS "resize 1 v=3 m=600 -> RESIZE 1.1@1=3/600\n"
                        "resized 1.1\n"
                        "submit 2 v=2 m=100 nodes=2 -> START 2.1@2\n"
                        "migrate 1 ! no other node\n"
                        "exited 2.1 -> RELEASE 2.1@2\n"
                        "released 2.1\n"
                        "migrate 1 -> MIGRATE 1.1@1>2\n"
                        "migrated 1.1\n"
                        "holds 1 3 600\n");
}

/* What its guest had ends with it: it is started with what its job reserves. */
static void resized_job_starts_again_as_it_was_submitted(void **state)
{
    run(ONE_RUNS "resize 1 v=3 m=600 -> RESIZE 1.1@1=3/600\n"
                 "resized 1.1\n"
                 "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                 "released 1.1 -> START 1.2@1\n"
                 "holds 1 1 200\n");
}

/* What is open when berthd is killed is asked for again when the node is back; room is held meanwhile. */
static void size_outlives_a_restart(void **state)
{
    run(ONE_RUNS "resize 1 v=3 m=100 -> RESIZE 1.1@1=3/100\n"
                 "resized 1.1\n"
                 "restart\n"
                 "holds 1 3 100\n"
                 "join 1 1.1:running\n"
                 "submit 2 v=2 m=100\n"
                 "resize 1 v=2 -> RESIZE 1.1@1=2/100\n"
                 "resized 1.1 -> START 2.1@1\n");
    run(ONE_RUNS "resize 1 v=3 m=100 -> RESIZE 1.1@1=3/100\n"
                 "restart\n"
                 "holds 1 3 200\n"
                 "join 1 1.1:running -> RESIZE 1.1@1=3/100\n"
                 "resize 1 v=3 m=100\n"
                 "restart\n" /* once more */
                 "join 1 1.1:running -> RESIZE 1.1@1=3/100\n"
                 "resized 1.1 failed\n"
                 "holds 1 1 200\n");
    run(ONE_OF_TWO_RUNS "submit 2 v=3 m=100 nodes=1 -> START 2.1@1\n"
                        "running 2.1\n"
                        "resize 1 v=4 m=100 -> MIGRATE 1.1@1>2\n"
                        "restart\n"
                        "join 2\n"
                        "submit 3 v=1 m=100 nodes=2\n"
                        "join 1 1.1:running 2.1:running -> MIGRATE 1.1@1>2\n"
                        "migrated 1.1 -> RESIZE 1.1@2=4/100\n"
                        "restart\n"
                        "join 1 2.1:running\n"
                        "join 2 1.1:running -> RESIZE 1.1@2=4/100\n"
                        "resized 1.1\n"
                        "holds 1 4 100\n");
}

/* Job 1, of 400 MiB of at most 800, stands still because they are too few. */
#define FROZEN_AT_ITS_LIMIT                                                                        \
    "submit 1 m=400 mmax=800 may-move -> START 1.1@1\n"                                            \
    "running 1.1\n"                                                                                \
    "report 1.1 mem=390 left=10 psi=100 -> FREEZE 1.1@1\n"                                         \
    "frozen 1.1\n"                                                                                 \
    "? 1 SUSPENDED at-limit running\n"
#define NO_GROWTH (BERTH_FEATURE_ALL & ~BERTH_FEATURE_GROWTH)

static void job_frozen_at_its_limit_goes_on_with_more(void **state)
{
    run_with(NO_GROWTH, "node 1 4 1000\n" FROZEN_AT_ITS_LIMIT "resize 1 v=1 ! give it more\n"
                        "resize 1 m=300 ! give it more\n"
                        "resize 1 m=900 ! at most\n"
                        "resize 1 m=600 -> RESIZE 1.1@1^=1/600\n"
                        "? 1 SUSPENDED at-limit running\n"
                        "resize 1 m=600\n" /* it is under way */
                        "holds 1 1 600\n"
                        "resized 1.1 -> THAW 1.1@1\n"
                        "thawed 1.1\n"
                        "? 1 RUNNING none running\n"
                        "holds 1 1 600\n"
                        "report 1.1 mem=390 left=210 psi=900\n" /* of what it had before */
                        "at 29\n"
                        "report 1.1 mem=590 left=10 psi=900\n"
                        "at 31\n"
                        "report 1.1 mem=590 left=10 psi=900 -> FREEZE 1.1@1\n");
    run_with(NO_GROWTH,
             "node 1 4 1000\n" FROZEN_AT_ITS_LIMIT "resize 1 m=600 -> RESIZE 1.1@1^=1/600\n"
             "resized 1.1 failed -> THAW 1.1@1\n" /* it may have gone on already */
             "thawed 1.1\n"
             "report 1.1 mem=390 left=10 psi=100 -> FREEZE 1.1@1\n");
}

/* RESIZE has let it go on before its user, or an operator, wanted it to stand still. */
static void job_that_is_frozen_while_it_gets_more_stands_still(void **state)
{
    const char *begun =
        "node 1 4 1000\n" FROZEN_AT_ITS_LIMIT "resize 1 m=600 -> RESIZE 1.1@1^=1/600\n";
    g_autofree char *stands = g_strconcat(begun,
                                          "freeze 1\n"
                                          "resized 1.1 -> FREEZE 1.1@1\n"
                                          "frozen 1.1\n"
                                          "? 1 SUSPENDED frozen-by-user running\n"
                                          "holds 1 1 600\n"
                                          "thaw 1 -> THAW 1.1@1\n"
                                          "thawed 1.1\n"
                                          "? 1 RUNNING none running\n",
                                          NULL);
    g_autofree char *runs = g_strconcat(begun,
                                        "freeze 1\n"
                                        "resized 1.1 failed -> FREEZE 1.1@1\n"
                                        "frozen 1.1 failed -> THAW 1.1@1\n"
                                        "thawed 1.1\n"
                                        "? 1 RUNNING none running\n",
                                        NULL);
    g_autofree char *restarts = g_strconcat(begun,
                                            "freeze 1\n"
                                            "resized 1.1 -> FREEZE 1.1@1\n"
                                            "restart\n"
                                            "join 1 1.1:running -> FREEZE 1.1@1\n"
                                            "frozen 1.1\n"
                                            "? 1 SUSPENDED frozen-by-user running\n"
                                            "thaw 1 -> THAW 1.1@1\n",
                                            NULL);
    run_with(NO_GROWTH, stands);
    run_with(NO_GROWTH, runs);
    run_with(NO_GROWTH, restarts);
}

static void job_frozen_at_its_limit_goes_on_with_more_over_a_restart(void **state)
{
    run_with(NO_GROWTH,
             "node 1 4 1000\n" FROZEN_AT_ITS_LIMIT "resize 1 m=600 -> RESIZE 1.1@1^=1/600\n"
             "restart\n"
             "join 1 1.1:running -> RESIZE 1.1@1^=1/600\n"
             "resized 1.1 -> THAW 1.1@1\n"
             "thawed 1.1\n"
             "? 1 RUNNING none running\n");
}

static void job_frozen_at_its_limit_goes_on_where_there_is_more(void **state)
{
    const char *no_room =
        "node 1 4 1000\n"
        "node 2 4 1000\n" FROZEN_AT_ITS_LIMIT "submit 2 m=600 nodes=1 -> START 2.1@1\n"
        "running 2.1\n"
        "resize 1 m=600 -> MIGRATE 1.1@1>2\n";
    g_autofree char *moves = g_strconcat(no_room,
                                         "migrated 1.1 -> RESIZE 1.1@2^=1/600\n"
                                         "resized 1.1 -> THAW 1.1@2\n"
                                         "thawed 1.1\n"
                                         "? 1 RUNNING none running\n",
                                         NULL);
    g_autofree char *stays = g_strconcat(no_room,
                                         "migrated 1.1 failed\n" /* not with what was too little */
                                         "? 1 SUSPENDED at-limit running\n"
                                         "thaw 1 -> THAW 1.1@1\n",
                                         NULL);
    run_with(NO_GROWTH, moves);
    run_with(NO_GROWTH, stays);
}

static void job_frozen_at_its_limit_may_go_on_as_it_is(void **state)
{
    run_with(NO_GROWTH, "node 1 4 1000\n" FROZEN_AT_ITS_LIMIT "thaw 1 -> THAW 1.1@1\n"
                        "thawed 1.1\n"
                        "at 299\n" /* as its user wanted, for a while */
                        "report 1.1 mem=390 left=10 psi=100\n"
                        "at 300\n"
                        "report 1.1 mem=390 left=10 psi=100 -> FREEZE 1.1@1\n");
    run_with(NO_GROWTH, "node 1 4 1000\n" FROZEN_AT_ITS_LIMIT "freeze 1\n"
                        "? 1 SUSPENDED frozen-by-user running\n"
                        "resize 1 m=600 ! berth thaw\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resize_gives_what_is_asked_for_within_the_ceiling),
        cmocka_unit_test(resize_leaves_the_wish_to_stand_still),
        cmocka_unit_test(resize_is_within_the_limits_of_user_and_account),
        cmocka_unit_test(resize_again_is_the_same_and_another_waits),
        cmocka_unit_test(resize_holds_the_larger_of_both_until_it_is_done),
        cmocka_unit_test(resize_that_comes_half_way_leaves_what_it_has),
        cmocka_unit_test(resize_is_refused_with_the_reason),
        cmocka_unit_test(resize_does_not_take_what_is_planned_for_others),
        cmocka_unit_test(resize_in_slack_says_that_it_is_in_slack),
        cmocka_unit_test(resize_grows_on_a_cordoned_node),
        cmocka_unit_test(resize_moves_to_where_there_is_room),
        cmocka_unit_test(freeze_waits_for_a_resize),
        cmocka_unit_test(resized_guest_is_moved_with_what_it_has),
        cmocka_unit_test(resized_job_starts_again_as_it_was_submitted),
        cmocka_unit_test(size_outlives_a_restart),
        cmocka_unit_test(job_frozen_at_its_limit_goes_on_with_more),
        cmocka_unit_test(job_that_is_frozen_while_it_gets_more_stands_still),
        cmocka_unit_test(job_frozen_at_its_limit_goes_on_with_more_over_a_restart),
        cmocka_unit_test(job_frozen_at_its_limit_goes_on_where_there_is_more),
        cmocka_unit_test(job_frozen_at_its_limit_may_go_on_as_it_is),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
