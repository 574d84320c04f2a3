/* SPDX-License-Identifier: Apache-2.0 */
/* Who is backed waits until guests in slack have made room, and for the evacuation bound at most. Starts that do:
 * test_core_relief. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

#define ROOM_IS_MADE                                                                               \
    "exited 5.1 -> RELEASE 5.1@2\n"                                                                \
    "released 5.1 -> MIGRATE 1.1@1>2\n"

/* --- moves ---------------------------------------------------------------------------------- */

static void move_waits_until_the_memory_is_free(void **state)
{
    run(MOVE_WAITS "migrate 1 to=2\n" /* the same again */
                   "migrate 1 to=2 op\n"
                   "migrate 1 ! being moved already\n" ROOM_IS_MADE "migrated 1.1\n"
                   "exited 1.1 -> RELEASE 1.1@2\n");
    run(MOVE_WAITS ROOM_IS_MADE "migrate-not 1 op -> STAY 1.1@1\n"
                                "migrated 1.1 failed\n"
                                "exited 1.1 -> RELEASE 1.1@1\n");
}

/* NODE as 2 is: job BACKED has room for the head only when LODGER has left. */
#define IS_TO_LEAVE(at, node, backed, lodger)                                                      \
    "node " node " 4 1000\n"                                                                       \
    "submit " backed " v=2 m=500 limit=10000 nodes=" node " -> START " backed ".1@" node "\n"      \
    "running " backed ".1\n"                                                                       \
    "at " at "\n"                                                                                  \
    "report " backed ".1 cpu=500 mem=300\n"                                                        \
    "submit " lodger " v=3 m=500 limit=5000 nodes=" node " slack may-checkpoint -> START " lodger  \
    ".1@" node "~\n"                                                                               \
    "running " lodger ".1\n"                                                                       \
    "report " lodger ".1 cpu=500 mem=480\n"
#define LEAVES_FOR(node, lodger, head)                                                             \
    "submit " head " v=2 m=500 nodes=" node " -> CHECKPOINT " lodger ".1@" node "~\n"

/* Two may be under way in all: what others need at once goes before. It leaves when one of these has ended, on whatever
 * node. */
static void move_that_has_room_waits_for_the_cluster(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE, 1,
                          MOVE_WAITS IS_TO_LEAVE("60", "3", "7", "8")
                              IS_TO_LEAVE("80", "4", "10", "11") LEAVES_FOR("3", "8", "9")
                                  LEAVES_FOR("4", "11", "12") "exited 5.1 -> RELEASE 5.1@2\n"
                                                              "released 5.1\n"
                                                              "checkpointed 8.1 -> RELEASE "
                                                              "8.1@3 MIGRATE 1.1@1>2\n");
}

/* What is kept for it there is kept meanwhile, and free again after that. */
static void move_is_given_up_at_the_bound_and_the_guest_stays(void **state)
{
    run(MOVE_WAITS "submit 6 v=1 m=100 nodes=2\n"
                   "at 339\n"
                   "timer\n"
                   "migrate 1 ! being moved already\n"
                   "next 340\n"
                   "at 340\n"
                   "timer -> START 6.1@2\n"
                   "? 1 RUNNING none running\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n"
                   "migrate 1 ! no other node\n"
                   "exited 1.1 -> RELEASE 1.1@1\n");
}

/* Nobody was asked for it: there is nothing to undo. */
static void move_that_waits_is_called_off_at_once(void **state)
{
    run(MOVE_WAITS "migrate-not 1 ! an operator\n"
                   "migrate-not 1 op\n"
                   "migrate-not 1 op ! not being moved\n"
                   "migrate 1 to=2\n"
                   "migrate-not 1\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n"
                   "migrate 1 -> MIGRATE 1.1@1>2\n");
}

static void job_that_waits_to_be_moved_ends_where_it_is(void **state)
{
    run(MOVE_WAITS "exited 1.1 -> RELEASE 1.1@1\n"
                   "released 1.1\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n");
    run(MOVE_WAITS "cancel 1 -> STOP 1.1@1\n"
                   "exited 1.1 -> RELEASE 1.1@1\n"
                   "? 1 CANCELLED cancelled-by-user releasing\n");
    run(MOVE_WAITS "gone 1.1 guest-vanished -> RELEASE 1.1@1\n");
    /* It waits for its node. */
    run(MOVE_WAITS "left 1\n"
                   "cancel 1\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n"
                   "join 1 1.1:running -> STOP 1.1@1\n");
}

static void move_that_waits_for_a_node_that_is_lost_is_given_up(void **state)
{
    run(MOVE_WAITS "left 2\n"
                   "migrate-not 1 op ! not being moved\n"
                   "join 2 2.1:running 5.1:running -> CHECKPOINT 5.1@2~\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n"
                   "migrate 1 -> MIGRATE 1.1@1>2\n");
    run(MOVE_WAITS "cordon 2\n"
                   "migrate-not 1 op ! not being moved\n");
}

/* The node that it is on is away when there is room; it may come back without it. */
static void move_leaves_when_the_node_is_back(void **state)
{
    run(MOVE_WAITS "left 1\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n"
                   "join 1 1.1:running -> MIGRATE 1.1@1>2\n");
    run(MOVE_WAITS "left 1\n"
                   "join 1 -> RELEASE 1.1@1\n"
                   "? 1 PENDING requeued releasing\n");
    run(MOVE_WAITS "left 1\n"
                   "at 100\n"
                   "timer -> FENCE 1.1@1\n"
                   "? 1 PENDING requeued fencing\n");
}

/* From the records of tasks alone, or with those of guests. */
static void move_that_waits_outlives_a_restart(void **state)
{
    const char *const restarts[] = {"restart\n", "restart guests\n"};
    for (guint i = 0; i < G_N_ELEMENTS(restarts); i++) {
        g_autofree char *goes = g_strconcat(MOVE_WAITS, restarts[i],
                                            "join 1 1.1:running\n"
                                            "join 2 2.1:running 5.1:running -> CHECKPOINT 5.1@2~\n"
                                            "report 2.1 cpu=500 mem=300\n"
                                            "migrate-not 1 ! an operator\n"
                                            "exited 5.1 -> RELEASE 5.1@2\n"
                                            "released 5.1 -> MIGRATE 1.1@1>2\n"
                                            "restart\n"
                                            "join 2 2.1:running\n"
                                            "join 1 -> MIGRATE 1.1@1>2\n" /* it may have left */
                                            "migrated 1.1\n",
                                            NULL);
        run(goes);
        g_autofree char *stays = g_strconcat(MOVE_WAITS, restarts[i],
                                             "at 50\n"
                                             "join 1 1.1:running\n"
                                             "join 2 2.1:running 5.1:running "
                                             "-> CHECKPOINT 5.1@2~\n"
                                             "at 339\n"
                                             "timer\n"
                                             "migrate 1 ! being moved already\n"
                                             "at 340\n"
                                             "timer\n"
                                             "migrate-not 1 op ! not being moved\n"
                                             "exited 1.1 -> RELEASE 1.1@1\n",
                                             NULL);
        run(stays);
    }
}

/* What is done to the guest itself does not wait for that. */
static void move_that_waits_gives_way_to_a_freeze(void **state)
{
    run(MOVE_WAITS "freeze 1 -> FREEZE 1.1@1\n"
                   "frozen 1.1\n"
                   "migrate-not 1 op ! not being moved\n"
                   "migrate 1 op\n" /* as it is */
                   "thaw 1\n"       /* when it is there */
        ROOM_IS_MADE "migrated 1.1 -> THAW 1.1@2\n");
    run(MOVE_WAITS "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                   "checkpointed 1.1 -> RELEASE 1.1@1\n");
}

static void move_that_waits_gives_way_at_the_time_limit(void **state)
{
    run(MAY_BE_MOVED("save", "100") "migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
                                    "at 100\n"
                                    "timer -> CHECKPOINT 1.1@1\n"
                                    "checkpointed 1.1 -> RELEASE 1.1@1\n");
    run(MAY_BE_MOVED("", "100") "migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
                                "at 100\n"
                                "timer -> STOP 1.1@1\n");
}

/* It runs on: that can wait. */
static void checkpoint_waits_for_the_move(void **state)
{
    run(MOVE_WAITS "checkpoint 1\n" ROOM_IS_MADE "migrated 1.1 -> CHECKPOINT 1.1@2#1\n");
    run(MOVE_WAITS "checkpoint 1\n"
                   "migrate-not 1 op -> CHECKPOINT 1.1@1#1\n");
}

static void drain_finds_another_node_when_its_move_is_given_up(void **state)
{
    run(MAY_BE_MOVED("", "10000") "node 3 4 400\n"
                                  "drain 1 -> CHECKPOINT 5.1@2~\n"
                                  "at 340\n"
                                  "timer\n"
                                  "? 1 RUNNING none running\n"
                                  "exited 5.1 -> RELEASE 5.1@2\n"
                                  "released 5.1\n"
                                  "at 400\n"
                                  "timer -> MIGRATE 1.1@1>2\n");
}

/* --- those who make room --------------------------------------------------------------------- */

/* As many may leave at a time as if nobody came. */
static void move_that_waits_takes_no_turn(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=1 m=600 limit=10000 nodes=1,2 may-move -> START 1.1@1\n"
        "submit 2 v=2 m=400 limit=10000 nodes=2 -> START 2.1@2\n"
        "submit 9 v=2 m=600 limit=10000 nodes=2 -> START 9.1@2\n"
        "running 1.1\n"
        "running 2.1\n"
        "running 9.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=600\n"
        "report 2.1 cpu=100 mem=200\n"
        "report 9.1 cpu=100 mem=10\n"
        "submit 5 v=3 m=300 limit=5000 nodes=2 slack may-checkpoint -> START 5.1@2~\n"
        "running 5.1\n"
        "at 40\n"
        "report 5.1 cpu=100 mem=300\n"
        "submit 6 v=3 m=300 limit=5000 nodes=2 slack may-checkpoint -> START 6.1@2~\n"
        "running 6.1\n"
        "at 60\n"
        "report 6.1 cpu=100 mem=300\n"
        "exited 9.1 -> RELEASE 9.1@2\n"
        "released 9.1\n"
        "migrate 1 -> CHECKPOINT 6.1@2~ CHECKPOINT 5.1@2~\n"
        "exited 5.1 -> RELEASE 5.1@2\n"
        "released 5.1\n" /* 6 is in its way still */
        "exited 6.1 -> RELEASE 6.1@2\n"
        "released 6.1 -> MIGRATE 1.1@1>2\n");
}

/* 3 runs in slack on node 1, and is to be backed on node 2 when 5 has left that; then 4 starts on node 1. */
static void guest_that_waits_elsewhere_can_still_be_sent_away(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 7 v=3 m=700 limit=10000 nodes=1 -> START 7.1@1\n"
        "submit 8 v=1 m=300 limit=10000 nodes=1 -> START 8.1@1\n"
        "submit 2 v=2 m=500 limit=10000 nodes=2 -> START 2.1@2\n"
        "submit 9 v=2 m=500 limit=10000 nodes=2 -> START 9.1@2\n"
        "running 7.1\n"
        "running 8.1\n"
        "running 2.1\n"
        "running 9.1\n"
        "at 20\n"
        "report 7.1 cpu=100 mem=400\n"
        "report 8.1 cpu=100 mem=100\n"
        "report 2.1 cpu=100 mem=300\n"
        "report 9.1 cpu=100 mem=10\n"
        "submit 5 v=3 m=500 limit=9000 nodes=2 slack may-checkpoint -> START 5.1@2~\n"
        "submit 3 v=2 m=400 limit=9000 nodes=1,2 slack may-move may-checkpoint -> START 3.1@1~\n"
        "running 5.1\n"
        "running 3.1\n"
        "at 40\n"
        "report 5.1 cpu=100 mem=400\n"
        "report 3.1 cpu=100 mem=400\n"
        "exited 9.1 -> RELEASE 9.1@2\n"
        "released 9.1\n"
        "at 60\n"
        "timer\n"
        "at 120\n"
        "timer -> CHECKPOINT 5.1@2~\n"
        "submit 4 p=9 v=1 m=300 nodes=1 limit=100\n"
        "exited 8.1 -> RELEASE 8.1@1\n"
        "released 8.1 -> CHECKPOINT 3.1@1~\n"
        "? 4 RUNNING none starting\n"
        "checkpointed 3.1 -> RELEASE 3.1@1\n"
        "released 3.1 -> START 4.1@1\n");
}

/* Of two that came, the first does not wait for the second. */
static void who_came_first_has_his_room_first(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=2 m=500 limit=10000 -> START 1.1@1\n"
        "submit 2 v=1 m=250 limit=10000 -> START 2.1@1\n"
        "submit 3 v=1 m=250 limit=10000 -> START 3.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "running 3.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "report 2.1 cpu=100 mem=100\n"
        "report 3.1 cpu=100 mem=100\n"
        "submit 5 v=1 m=300 limit=9000 slack may-checkpoint -> START 5.1@1~\n"
        "submit 6 v=1 m=290 limit=9000 slack may-checkpoint -> START 6.1@1~\n"
        "running 5.1\n"
        "running 6.1\n"
        "at 40\n"
        "report 5.1 cpu=100 mem=300\n"
        "report 6.1 cpu=100 mem=290\n"
        "exited 2.1 -> RELEASE 2.1@1\n"
        "released 2.1\n"
        "report 1.1 cpu=100 mem=210\n"
        "submit 7 p=9 v=1 m=250 limit=100 -> CHECKPOINT 6.1@1~\n"
        "at 50\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "submit 8 p=9 v=1 m=250 limit=100\n"
        "released 3.1 -> CHECKPOINT 5.1@1~\n"
        "checkpointed 6.1 -> RELEASE 6.1@1\n"
        "released 6.1 -> START 7.1@1\n"
        "? 8 RUNNING none starting\n"
        "checkpointed 5.1 -> RELEASE 5.1@1\n"
        "released 5.1 -> START 8.1@1\n");
}

/* --- starts, where no round is near ----------------------------------------------------------- */

static void start_is_given_up_at_the_bound_itself(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_BALANCE_INTERVAL_USEC,
                          86400 * (gint64)G_USEC_PER_SEC,
                          "node 1 4 1000\n"
                          "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 20\n"
                          "report 1.1 cpu=1000 mem=300\n"
                          "submit 3 v=2 m=500 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
                          "running 3.1\n"
                          "submit 4 v=4 m=700 limit=5000\n"
                          "at 40\n"
                          "report 3.1 cpu=1000 mem=400 left=100\n"
                          "report 1.1 cpu=1000 mem=300\n"
                          "exited 1.1 -> RELEASE 1.1@1\n"
                          "at 41\n"
                          "released 1.1 -> CHECKPOINT 3.1@1~\n"
                          "at 161\n"
                          "timer\n" /* the checkpoint takes its time */
                          "at 281\n"
                          "timer\n"
                          "next 341\n"
                          "at 341\n"
                          "timer\n" /* there is no other node: it begins to wait anew */
                          "checkpointed 3.1 -> RELEASE 3.1@1\n"
                          "released 3.1 -> START 4.2@1\n");
}

/* 1 has 300 MiB, is predicted to need 50, and may grow; 5, of 600, is in slack. What 1 would grow by is what it would need
 * more, not what it would have more: 390 for 140. */
#define NEEDS_LITTLE                                                                               \
    "node 1 8 1000\n"                                                                              \
    "submit 1 v=1 m=300 mmax=600 limit=10000 -> START 1.1@1\n"                                     \
    "submit 2 v=1 m=200 limit=10000 -> START 2.1@1\n"                                              \
    "submit 9 v=1 m=480 limit=10000 -> START 9.1@1\n"                                              \
    "running 1.1\n"                                                                                \
    "running 2.1\n"                                                                                \
    "running 9.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=10 mem=50 left=250\n"                                                          \
    "report 2.1 cpu=10 mem=10 left=190\n"                                                          \
    "report 9.1 cpu=10 mem=0 left=480\n"                                                           \
    "submit 5 v=1 m=600 limit=5000 slack may-checkpoint -> START 5.1@1~\n"                         \
    "running 5.1\n"                                                                                \
    "report 5.1 cpu=10 mem=570 left=30\n"                                                          \
    "at 40\n"                                                                                      \
    "report 5.1 cpu=10 mem=570 left=30\n"

/* 6 waits until 7 has left. */
#define FIRST_WAITS                                                                                \
    NEEDS_LITTLE                                                                                   \
    "submit 7 v=1 m=31 limit=5000 slack may-checkpoint -> START 7.1@1~\n"                          \
    "running 7.1\n"                                                                                \
    "report 7.1 cpu=10 mem=30 left=1\n"                                                            \
    "at 60\n"                                                                                      \
    "report 7.1 cpu=10 mem=30 left=1\n"                                                            \
    "exited 9.1 -> RELEASE 9.1@1\n"                                                                \
    "submit 6 v=1 m=350 limit=10000\n"                                                             \
    "released 9.1 -> CHECKPOINT 7.1@1~\n"                                                          \
    "at 61\n"

static void who_came_first_is_not_kept_waiting_by_a_growth(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALLOON,
             FIRST_WAITS "needs 1 50\n"
                         "resize 1 m=440 -> CHECKPOINT 5.1@1~\n"
                         "needs 1 440\n"
                         "exited 7.1 -> RELEASE 7.1@1\n"
                         "released 7.1 -> START 6.1@1\n");
}

/* What 1 occupies beyond its need is not what it would grow by: without it there is no room for 6 either. */
static void growth_counts_for_what_it_does_not_occupy_yet(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALLOON,
             FIRST_WAITS "resize 1 m=440 -> CHECKPOINT 5.1@1~\n"
                         "report 1.1 cpu=10 mem=50 left=250 touched=200\n"
                         "exited 7.1 -> RELEASE 7.1@1\n"
                         "released 7.1\n"
                         "exited 5.1 -> RELEASE 5.1@1\n"
                         "released 5.1 -> START 6.1@1 RESIZE 1.1@1=1/440\n");
}

static void growth_that_is_given_up_leaves_no_need(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALLOON,
             NEEDS_LITTLE "exited 9.1 -> RELEASE 9.1@1\n"
                          "released 9.1\n"
                          "needs 1 50\n"
                          "resize 1 m=500 -> CHECKPOINT 5.1@1~\n"
                          "needs 1 500\n"
                          "at 100\n"
                          "timer\n"
                          "report 1.1 cpu=10 mem=60 left=240\n"
                          "needs 1 500\n"
                          "at 340\n"
                          "timer\n"
                          "needs 1 60\n");
}

/* --- growth ----------------------------------------------------------------------------------- */

/* 1 has 400 MiB and room for 600 beside 2, which uses little; 3 is in slack. */
#define MAY_GROW(wanted)                                                                           \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=1 m=400 mmax=600 limit=10000 " wanted " -> START 1.1@1\n"                          \
    "submit 2 v=1 m=400 limit=10000 -> START 2.1@1\n"                                              \
    "running 1.1\n"                                                                                \
    "running 2.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=100 mem=200 left=200\n"                                                        \
    "report 2.1 cpu=100 mem=100 left=300\n"                                                        \
    "submit 3 v=3 m=500 limit=10000 may-checkpoint slack -> START 3.1@1~\n"                        \
    "running 3.1\n"                                                                                \
    "at 40\n"                                                                                      \
    "report 3.1 cpu=100 mem=450 left=50\n"                                                         \
    "report 2.1 cpu=100 mem=100 left=300\n"                                                        \
    "report 1.1 cpu=100 mem=200 left=200\n"

static void growth_waits_until_the_memory_is_free(void **state)
{
    run(MAY_GROW("") "resize 1 m=600 -> CHECKPOINT 3.1@1~\n"
                     "resize 1 m=600\n" /* the same again */
                     "resize 1 m=500 ! being resized\n"
                     "holds 1 1 600\n"
                     "checkpointed 3.1 -> RELEASE 3.1@1\n"
                     "released 3.1 -> RESIZE 1.1@1=1/600\n"
                     "resized 1.1\n"
                     "holds 1 1 600\n");
    /* Where nobody is in its way it does not. */
    run(MAY_GROW("") "resize 1 m=450 -> RESIZE 1.1@1=1/450\n");
}

static void growth_is_given_up_at_the_bound_and_the_guest_stays(void **state)
{
    run(MAY_GROW("") "resize 1 m=600 -> CHECKPOINT 3.1@1~\n"
                     "at 340\n"
                     "timer\n"
                     "holds 1 1 400\n"
                     "? 1 RUNNING none running\n");
}

static void growth_that_waits_gives_way(void **state)
{
    run(MAY_GROW("") "resize 1 m=600 -> CHECKPOINT 3.1@1~\n"
                     "cancel 1 -> STOP 1.1@1\n");
    run(MAY_GROW("") "resize 1 m=600 -> CHECKPOINT 3.1@1~\n"
                     "freeze 1 -> FREEZE 1.1@1\n"
                     "holds 1 1 400\n");
    run(MAY_GROW("") "resize 1 m=600 -> CHECKPOINT 3.1@1~\n"
                     "left 1\n"
                     "join 1 2.1:running 3.1:running -> CHECKPOINT 3.1@1~ RELEASE 1.1@1\n");
}

static void growth_that_waits_outlives_a_restart(void **state)
{
    run(MAY_GROW("") "resize 1 m=600 -> CHECKPOINT 3.1@1~\n"
                     "restart\n"
                     "join 1 1.1:running 2.1:running 3.1:running -> CHECKPOINT 3.1@1~\n"
                     "holds 1 1 600\n"
                     "report 1.1 cpu=100 mem=200 left=200\n"
                     "report 2.1 cpu=100 mem=100 left=300\n"
                     "checkpointed 3.1 -> RELEASE 3.1@1\n"
                     "released 3.1 -> RESIZE 1.1@1=1/600\n");
}

/* It stalls meanwhile, and what is done at its limit is done if nothing comes of it. */
static void guest_at_its_limit_waits_for_its_growth(void **state)
{
    run(MAY_GROW("") "report 1.1 cpu=100 mem=390 left=10 psi=300 -> CHECKPOINT 3.1@1~\n"
                     "report 1.1 cpu=100 mem=390 left=10 psi=300\n"
                     "holds 1 1 500\n"
                     "at 340\n"
                     "timer\n"
                     "holds 1 1 400\n"
                     "report 1.1 cpu=100 mem=390 left=10 psi=300 -> FREEZE 1.1@1\n");
}

/* 1 stands still at its limit, and its user gives it more, for which 3 is to leave first. */
#define WAITS_FOR_MORE                                                                             \
    MAY_GROW("")                                                                                   \
    "report 1.1 cpu=100 mem=390 left=10 psi=300 -> CHECKPOINT 3.1@1~\n"                            \
    "at 340\n"                                                                                     \
    "timer\n"                                                                                      \
    "report 1.1 cpu=100 mem=390 left=10 psi=300 -> FREEZE 1.1@1\n"                                 \
    "frozen 1.1\n"                                                                                 \
    "resize 1 m=600\n"

/* It does not go on with what was too little. */
static void frozen_guest_stays_at_its_limit_when_its_growth_is_given_up(void **state)
{
    run(WAITS_FOR_MORE "? 1 SUSPENDED at-limit running\n"
                       "at 640\n"
                       "timer\n"
                       "? 1 SUSPENDED at-limit running\n"
                       "resize 1 m=600\n"
                       "checkpointed 3.1 -> RELEASE 3.1@1\n"
                       "released 3.1 -> RESIZE 1.1@1^=1/600\n");
}

/* It does not wait for room any more, and is not frozen again at once. */
static void frozen_guest_that_waits_for_more_may_go_on_as_it_is(void **state)
{
    run(WAITS_FOR_MORE "thaw 1 -> THAW 1.1@1\n"
                       "thawed 1.1\n"
                       "? 1 RUNNING none running\n"
                       "holds 1 1 400\n");
}

/* Nor who is to stand still for another reason by now: there would be nobody to take it. */
static void frozen_guest_that_waits_for_more_may_be_kept_still(void **state)
{
    run(WAITS_FOR_MORE "freeze 1\n"
                       "? 1 SUSPENDED frozen-by-user running\n"
                       "holds 1 1 400\n"
                       "checkpointed 3.1 -> RELEASE 3.1@1\n"
                       "released 3.1\n"
                       "thaw 1 -> THAW 1.1@1\n");
}

/* 9 is in slack on node 4, and has room on node 3. Two guests wait to be moved to node 2 meanwhile, as many as may move at a
 * time in the cluster. */
#define LEAVES_NODE_4(moves)                                                                       \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "node 3 4 1000\n"                                                                              \
    "node 4 4 1000\n"                                                                              \
    "submit 1 v=1 m=300 nodes=1,2 may-move limit=100000 -> START 1.1@1\n"                          \
    "submit 6 v=1 m=300 nodes=1,2 may-move limit=100000 -> START 6.1@1\n"                          \
    "submit 2 v=1 m=400 nodes=2 limit=100000 -> START 2.1@2\n"                                     \
    "submit 10 v=1 m=1000 nodes=3 limit=100000 -> START 10.1@3\n"                                  \
    "submit 8 v=1 m=500 nodes=4 limit=100000 -> START 8.1@4\n"                                     \
    "running 1.1\nrunning 6.1\nrunning 2.1\nrunning 10.1\nrunning 8.1\n"                           \
    "cordon 3\n"                                                                                   \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=10 mem=280 left=20\n"                                                          \
    "report 6.1 cpu=10 mem=280 left=20\n"                                                          \
    "report 2.1 cpu=10 mem=200 left=200\n"                                                         \
    "report 10.1 cpu=10 mem=100 left=900\n"                                                        \
    "report 8.1 cpu=10 mem=100 left=400\n"                                                         \
    "submit 5 v=1 m=620 nodes=2 slack may-checkpoint limit=90000 -> START 5.1@2~\n"                \
    "running 5.1\n"                                                                                \
    "report 5.1 cpu=10 mem=600 left=20\n"                                                          \
    "submit 9 v=1 m=600 nodes=3,4 slack may-move may-checkpoint limit=90000 -> START 9.1@4~\n"     \
    "running 9.1\n"                                                                                \
    "report 9.1 cpu=10 mem=580 left=20\n"                                                          \
    "at 40\n"                                                                                      \
    "report 5.1 cpu=10 mem=600 left=20\n"                                                          \
    "report 9.1 cpu=10 mem=580 left=20\n"                                                          \
    "undrain 3\n" moves "submit 11 v=1 m=450 nodes=4 limit=1000 -> MIGRATE 9.1@4>3~\n"

static void moves_that_wait_do_not_make_others_checkpoints(void **state)
{
    guint32 features = BERTH_FEATURE_ALL & ~(BERTH_FEATURE_PROMOTION | BERTH_FEATURE_BALLOON);
    core_script_run_tuned(features, BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE, 1, LEAVES_NODE_4(""));
    core_script_run_tuned(features, BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE, 1,
                          LEAVES_NODE_4("migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
                                        "checkpointed 5.1 failed\n"
                                        "migrate 6 to=2 op\n"));
}

/* Its node is pressed, and nothing can be done with it: it was let go for nothing. */
static void checkpoint_that_waited_for_a_move_begins_when_that_is_let_go_in_vain(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION,
             "node 1 4 1000\n"
             "node 2 4 1000\n"
             "submit 8 v=1 m=900 nodes=1 limit=100000 -> START 8.1@1\n"
             "submit 2 v=1 m=900 nodes=2 limit=100000 -> START 2.1@2\n"
             "running 8.1\n"
             "running 2.1\n"
             "at 20\n"
             "report 8.1 cpu=10 mem=100 left=800\n"
             "report 2.1 cpu=10 mem=200 left=700\n"
             "submit 1 v=1 m=500 nodes=1,2 slack may-move may-checkpoint limit=90000 "
             "-> START 1.1@1~\n"
             "running 1.1\n"
             "report 1.1 cpu=10 mem=300 left=200\n"
             "submit 5 v=1 m=680 nodes=2 slack may-checkpoint limit=90000 -> START 5.1@2~\n"
             "running 5.1\n"
             "report 5.1 cpu=10 mem=570 left=110\n"
             "at 40\n"
             "report 1.1 cpu=10 mem=300 left=200\n"
             "report 5.1 cpu=10 mem=570 left=110\n"
             "resize 2 m=400 -> RESIZE 2.1@2=1/400\n"
             "resized 2.1\n"
             "pressed 1 -> CHECKPOINT 1.1@1~\n"
             "checkpointed 1.1 failed\n"
             "migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
             "checkpoint 1\n"
             "at 45\n"
             "pressed 1 -> CHECKPOINT 1.1@1#2~\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(move_that_has_room_waits_for_the_cluster),
        cmocka_unit_test(move_waits_until_the_memory_is_free),
        cmocka_unit_test(move_is_given_up_at_the_bound_and_the_guest_stays),
        cmocka_unit_test(move_that_waits_is_called_off_at_once),
        cmocka_unit_test(job_that_waits_to_be_moved_ends_where_it_is),
        cmocka_unit_test(move_that_waits_for_a_node_that_is_lost_is_given_up),
        cmocka_unit_test(move_leaves_when_the_node_is_back),
        cmocka_unit_test(move_that_waits_outlives_a_restart),
        cmocka_unit_test(move_that_waits_gives_way_to_a_freeze),
        cmocka_unit_test(move_that_waits_gives_way_at_the_time_limit),
        cmocka_unit_test(checkpoint_waits_for_the_move),
        cmocka_unit_test(drain_finds_another_node_when_its_move_is_given_up),
        cmocka_unit_test(move_that_waits_takes_no_turn),
        cmocka_unit_test(guest_that_waits_elsewhere_can_still_be_sent_away),
        cmocka_unit_test(who_came_first_has_his_room_first),
        cmocka_unit_test(start_is_given_up_at_the_bound_itself),
        cmocka_unit_test(who_came_first_is_not_kept_waiting_by_a_growth),
        cmocka_unit_test(growth_counts_for_what_it_does_not_occupy_yet),
        cmocka_unit_test(growth_that_is_given_up_leaves_no_need),
        cmocka_unit_test(moves_that_wait_do_not_make_others_checkpoints),
        cmocka_unit_test(checkpoint_that_waited_for_a_move_begins_when_that_is_let_go_in_vain),
        cmocka_unit_test(growth_waits_until_the_memory_is_free),
        cmocka_unit_test(growth_is_given_up_at_the_bound_and_the_guest_stays),
        cmocka_unit_test(growth_that_waits_gives_way),
        cmocka_unit_test(growth_that_waits_outlives_a_restart),
        cmocka_unit_test(guest_at_its_limit_waits_for_its_growth),
        cmocka_unit_test(frozen_guest_stays_at_its_limit_when_its_growth_is_given_up),
        cmocka_unit_test(frozen_guest_that_waits_for_more_may_go_on_as_it_is),
        cmocka_unit_test(frozen_guest_that_waits_for_more_may_be_kept_still),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
