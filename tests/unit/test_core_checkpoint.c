/* SPDX-License-Identifier: Apache-2.0 */
/* What is saved of running guests because somebody asked for it or because it is due, and what goes on from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* Without rounds, so that only what is asked for has a time. */
static void run_timed(const char *script)
{
    run_with(BERTH_FEATURE_CHECKPOINT, script);
}

#define TWO_NODES                                                                                  \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"
#define ONE_RUNS                                                                                   \
    TWO_NODES "submit 1 v=1 m=100 may-move may-checkpoint -> START 1.1@1\n"                        \
              "running 1.1\n"
/* A checkpoint of 100 MiB keeps 164: no headers to speak of, and 64 for the devices. */
#define ONE_IS_SAVED                                                                               \
    ONE_RUNS "at 10\n"                                                                             \
             "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"                                                \
             "at 15\n"                                                                             \
             "checkpointed 1.1 stored=30 paused=1\n"

static void checkpoint_saves_what_runs_on(void **state)
{
    run(ONE_RUNS "at 10\n"
                 "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "saved 1 0 kept=164\n"
                 "checkpoint 1\n" /* the one that is under way */
                 "at 15\n"
                 "checkpointed 1.1 stored=30 paused=1\n"
                 "? 1 RUNNING none running\n"
                 "saved 1 1 epoch=1 ran=14 stored=30\n"
                 "at 20\n"
                 "checkpoint 1 op -> CHECKPOINT 1.1@1#2\n"
                 "checkpointed 1.1 stored=50\n"
                 "saved 1 2 epoch=1 ran=19 stored=50\n"
                 "at 30\n"
                 "exited 1.1 -> RELEASE 1.1@1\n"
                 "? 1 COMPLETED none releasing\n");
}

/* What a checkpoint under way was paused for is not charged, what it ran is. */
static void checkpoint_is_charged_but_for_its_pause(void **state)
{
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 50\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
              "at 70\n"
              "checkpointed 1.1 paused=5\n"
              "saved 1 1 epoch=1 ran=65\n"
              "at 100\n"
              "timer\n"
              "next 105\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 70\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
              "at 90\n"
              "checkpointed 1.1 failed\n" /* nobody knows for how long it stood still */
              "saved 1 0\n"
              "at 100\n"
              "timer\n"
              "next 120\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 90\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
              "at 110\n"
              "timer\n" /* its limit waits for the answer */
              "checkpointed 1.1 paused=1\n"
              "timer -> STOP 1.1@1\n");
}

/* Its command got a signal first, and time for what it does then. */
static void what_runs_on_before_it_stands_still_is_charged_until_then(void **state)
{
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 50\n"
              "freeze 1 disk -> CHECKPOINT 1.1@1\n"
              "at 70\n"
              "checkpointed 1.1 paused=5 -> RELEASE 1.1@1\n"
              "saved 1 1 epoch=1 ran=65\n"
              "released 1.1\n"
              "thaw 1 -> RESTORE 1.2@1\n"
              "running 1.2\n"
              "at 105\n"
              "timer -> STOP 1.2@1\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 50\n"
              "freeze 1 disk -> CHECKPOINT 1.1@1\n"
              "at 70\n"
              "checkpointed 1.1 -> RELEASE 1.1@1\n" /* an agent that does not say */
              "saved 1 1 epoch=1 ran=50\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 50\n"
              "freeze 1 disk -> CHECKPOINT 1.1@1\n"
              "at 65\n"
              "report 1.1 starved=8\n" /* it gets no CPU for what it does then */
              "at 70\n"
              "checkpointed 1.1 paused=5 -> RELEASE 1.1@1\n"
              "saved 1 1 epoch=1 ran=57\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 50\n"
              "report 1.1\n"
              "freeze 1 disk -> CHECKPOINT 1.1@1\n"
              "at 65\n"
              "report 1.1 starved=8\n" /* after what is charged */
              "at 70\n"
              "checkpointed 1.1 -> RELEASE 1.1@1\n"
              "saved 1 1 epoch=1 ran=50\n");
}

static void what_runs_on_until_a_checkpoint_fails_is_charged(void **state)
{
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 70\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
              "at 90\n"
              "checkpointed 1.1 failed paused=5\n"
              "at 100\n"
              "timer\n"
              "next 105\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 70\n"
              "report 1.1\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
              "at 80\n"
              "report 1.1 starved=6\n" /* is of what it is not charged anyway */
              "at 90\n"
              "checkpointed 1.1 failed\n"
              "report 1.1\n"
              "at 100\n"
              "timer\n"
              "next 120\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 70\n"
              "report 1.1\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
              "at 80\n"
              "report 1.1 starved=6\n" /* before it stood still, so beside that */
              "at 90\n"
              "checkpointed 1.1 failed paused=5\n"
              "report 1.1\n"
              "at 100\n"
              "timer\n"
              "next 111\n");
    run_timed("node 1 4 1000\n"
              "submit 1 v=1 m=100 limit=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 70\n"
              "report 1.1\n"
              "freeze 1 disk -> CHECKPOINT 1.1@1\n"
              "at 80\n"
              "report 1.1 starved=6\n"
              "at 90\n"
              "report 1.1 starved=4\n" /* half of it while it stood still */
              "checkpointed 1.1 paused=5 -> RELEASE 1.1@1\n"
              "saved 1 1 epoch=1 ran=77\n");
}

static void checkpoint_needs_something_that_runs(void **state)
{
    run(ONE_RUNS "checkpoint 7 ! no unfinished job 7\n"
                 "submit 2 held may-checkpoint\n"
                 "checkpoint 2 ! does not run\n"
                 "submit 3 guests=2 may-checkpoint -> START 3.1@1 START 3+1.1@1\n"
                 "checkpoint 3 ! several guests\n"
                 "submit 4 -> START 4.1@1\n"
                 "checkpoint 4 ! kind = rbd\n"
                 "freeze 4 disk ! kind = rbd\n"
                 "cancel 1 -> STOP 1.1@1\n"
                 "checkpoint 1 ! does not run\n");
    run_with(BERTH_FEATURE_MIGRATION, ONE_RUNS "checkpoint 1 ! kind = rbd\n"
                                               "restore 1 from=1 epoch=1 ran=1 ! kind = rbd\n");
}

static void checkpoint_waits_until_the_guest_can_be_saved(void **state)
{
    run(TWO_NODES "submit 1 may-checkpoint -> START 1.1@1\n"
                  "checkpoint 1\n" /* it boots */
                  "running 1.1 -> CHECKPOINT 1.1@1#1\n");
    run(ONE_RUNS "freeze 1 -> FREEZE 1.1@1\n"
                 "checkpoint 1\n"
                 "frozen 1.1 -> CHECKPOINT 1.1@1#1\n"
                 "checkpointed 1.1\n"
                 "? 1 SUSPENDED frozen-by-user running\n");
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "checkpoint 1\n"
                 "migrated 1.1 -> CHECKPOINT 1.1@2#1\n"
                 "migrate 1 ! being checkpointed\n");
    run(ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "left 1\n"
                 "join 1 1.1:running -> CHECKPOINT 1.1@1#1\n");
}

/* Two at a node; the others follow in the order in which they were asked for. */
static void checkpoints_share_their_nodes_link(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 may-checkpoint -> START 1.1@1\n"
        "submit 2 may-checkpoint -> START 2.1@1\n"
        "submit 3 may-checkpoint -> START 3.1@1\n"
        "submit 4 may-checkpoint -> START 4.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "running 3.1\n"
        "running 4.1\n"
        "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
        "checkpoint 2 -> CHECKPOINT 2.1@1#1\n"
        "checkpoint 4\n"
        "checkpoint 3\n"
        "checkpointed 2.1 -> CHECKPOINT 4.1@1#1\n"
        "exited 1.1 -> RELEASE 1.1@1 CHECKPOINT 3.1@1#1\n");
}

static void checkpoint_outlives_a_restart(void **state)
{
    run(ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "restart\n"
                 "join 2\n"
                 "join 1 1.1:running -> CHECKPOINT 1.1@1#1\n"
                 "checkpointed 1.1 stored=30\n"
                 "saved 1 1 epoch=1 stored=30\n");
    run(ONE_RUNS "freeze 1 -> FREEZE 1.1@1\n"
                 "checkpoint 1\n"
                 "restart\n"
                 "join 1 1.1:running -> FREEZE 1.1@1\n"
                 "frozen 1.1 -> CHECKPOINT 1.1@1#1\n");
}

/* --- space ---------------------------------------------------------------------------------- */

static void checkpoint_keeps_its_space_before(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 200,
                          ONE_RUNS "submit 2 m=100 may-checkpoint -> START 2.1@1\n"
                                   "running 2.1\n"
                                   "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                                   "checkpoint 2 ! may take 164 MiB, and 36 MiB\n"
                                   "freeze 2 disk ! may take 164 MiB, and 36 MiB\n"
                                   "space 0 164 36\n"
                                   "checkpointed 1.1 stored=30\n"
                                   "space 30 0 170\n"
                                   "checkpoint 2 -> CHECKPOINT 2.1@1#1\n"
                                   "checkpointed 2.1 failed\n"
                                   "saved 2 0\n"
                                   "checkpoint 1 -> CHECKPOINT 1.1@1#2\n"
                                   "checkpointed 1.1 stored=60\n"
                                   "checkpoint 1 ! and 140 MiB\n"
                                   "restart\n"
                                   "join 1 1.1:running 2.1:running\n"
                                   "checkpoint 1 ! and 140 MiB\n"
                                   "checkpoints 1 from=2 epoch=1 stored=25\n"
                                   "checkpoint 1 -> CHECKPOINT 1.1@1#3\n"
                                   "gone 1.1 guest-crashed -> RELEASE 1.1@1\n"
                                   "released 1.1\n" /* and all of its checkpoints go */
                                   "checkpoint 2 -> CHECKPOINT 2.1@1#2\n");
}

/* Of which half is for checkpoints that are still to be made. */
static void checkpoint_keeps_to_the_room_that_storage_has(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 100000,
                          ONE_RUNS
                          "submit 2 m=100 may-checkpoint -> START 2.1@1\n"
                          "running 2.1\n"
                          "storage room=327\n"
                          "checkpoint 1 ! may take 164 MiB, and 163 MiB\n"
                          "storage room=400\n"
                          "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                          "checkpoint 2 ! may take 164 MiB, and 36 MiB\n"
                          "checkpointed 1.1 stored=30\n" /* which storage has told by then */
                          "storage room=370\n"
                          "checkpoint 2 -> CHECKPOINT 2.1@1#1\n"
                          "restart\n" /* nothing is known any more */
                          "join 1 1.1:running 2.1:running -> CHECKPOINT 2.1@1#1\n"
                          "checkpoint 1 -> CHECKPOINT 1.1@1#2\n");
}

/* --- every so often ------------------------------------------------------------------------- */

static void checkpoint_is_due_every_so_often(void **state)
{
    run_timed("node 1 4 1000\n"
              "submit 1 limit=10000 every=100 may-checkpoint -> START 1.1@1\n"
              "at 5\n"
              "running 1.1\n"
              "next 105\n"
              "at 105\n"
              "timer -> CHECKPOINT 1.1@1#1\n"
              "at 110\n"
              "checkpointed 1.1\n"
              "next 205\n"
              "at 150\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#2\n" /* counts */
              "checkpointed 1.1\n"
              "next 250\n"
              "restart\n"
              "join 1 1.1:running\n"
              "next 250\n"
              "freeze 1 -> FREEZE 1.1@1\n"
              "frozen 1.1\n"
              "at 250\n"
              "timer\n" /* nothing has changed since it stands still */
              "thaw 1 -> THAW 1.1@1\n"
              "thawed 1.1 -> CHECKPOINT 1.1@1#3\n"
              "checkpointed 1.1 failed\n"
              "next 350\n"
              "exited 1.1 -> RELEASE 1.1@1\n"
              "released 1.1\n"
              "next never\n");
}

/* Of running since it was saved last: what is due by now is taken at once. */
static void how_often_is_changed_while_it_runs(void **state)
{
    run_timed("node 1 4 1000\n"
              "submit 1 limit=10000 may-checkpoint -> START 1.1@1\n"
              "at 5\n"
              "running 1.1\n"
              "next 10005\n"
              "at 50\n"
              "checkpoint-every 1 every=100\n"
              "next 105\n"
              "checkpoint-every 1 every=20\n"
              "timer -> CHECKPOINT 1.1@1#1\n"
              "checkpoint-every 1\n"
              "checkpointed 1.1\n"
              "next 10005\n"
              "checkpoint-every 1 every=30\n"
              "next 80\n"
              "checkpoint-every 2 every=30 ! no unfinished job 2\n"
              "exited 1.1 -> RELEASE 1.1@1\n"
              "released 1.1\n"
              "next never\n");
    run_timed("node 1 4 1000\n"
              "submit 1 limit=10000 every=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "freeze 1 -> FREEZE 1.1@1\n"
              "frozen 1.1\n"
              "at 100\n"
              "timer\n" /* it is saved when it goes on */
              "checkpoint-every 1\n"
              "thaw 1 -> THAW 1.1@1\n"
              "thawed 1.1\n");
    run_timed("node 1 4 1000\n"
              "submit 1 limit=10000 -> START 1.1@1\n"
              "checkpoint-every 1 every=30 ! cannot be checkpointed\n"
              "checkpoint-every 1\n");
}

/* A freeze to disk that was asked for meanwhile, and has not had its turn, keeps the space of one that is due no more. */
static void checkpoint_that_is_due_no_more_leaves_its_space_to_a_freeze(void **state)
{
    run_timed("node 1 4 1000\n"
              "submit 1 may-checkpoint -> START 1.1@1\n"
              "submit 2 may-checkpoint -> START 2.1@1\n"
              "submit 3 limit=10000 every=100 may-checkpoint -> START 3.1@1\n"
              "running 1.1\n"
              "running 2.1\n"
              "running 3.1\n"
              "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
              "checkpoint 2 -> CHECKPOINT 2.1@1#1\n"
              "at 100\n"
              "timer\n"
              "saved 3 0 kept=164\n"
              "freeze 3 disk\n"
              "checkpoint-every 3\n"
              "saved 3 0 kept=164\n"
              "checkpointed 1.1 -> CHECKPOINT 3.1@1\n"
              "checkpointed 3.1 stored=30 -> RELEASE 3.1@1\n"
              "saved 3 1 epoch=1 ran=100 stored=30\n");
}

/* Who is being saved to leave his node is saved: none is due meanwhile, and none when it has failed. */
static void checkpoint_is_not_due_while_one_is_taken(void **state)
{
    run_timed("node 1 4 1000\n"
              "submit 1 limit=10000 every=100 may-checkpoint -> START 1.1@1\n"
              "running 1.1\n"
              "at 50\n"
              "freeze 1 disk -> CHECKPOINT 1.1@1\n"
              "at 120\n"
              "timer\n"
              "checkpointed 1.1 failed\n"
              "next 150\n");
}

static void checkpoint_that_finds_no_space_is_missed(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_CHECKPOINT, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 163,
                          "node 1 4 1000\n"
                          "submit 1 every=100 may-checkpoint -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 100\n"
                          "timer\n"
                          "missed 1 100\n"
                          "next 200\n");
}

/* --- going on from it ----------------------------------------------------------------------- */

#define LOST_AND_BACK(epoch, next)                                                                 \
    "gone 1." epoch " guest-vanished -> RELEASE 1." epoch "@1\n"                                   \
    "released 1." epoch " -> RESTORE 1." next "@1\n"                                               \
    "running 1." next "\n"

/* So often since the newest one: who comes on is not given up. */
static void losses_count_since_the_newest_checkpoint(void **state)
{
    run(ONE_IS_SAVED LOST_AND_BACK("1", "2") LOST_AND_BACK(
        "2", "3") "checkpoint 1 -> CHECKPOINT 1.3@1#2\n"
                  "checkpointed 1.3 stored=30 paused=1\n" LOST_AND_BACK("3", "4")
                      LOST_AND_BACK("4", "5") "gone 1.5 guest-vanished -> RELEASE 1.5@1\n"
                                              "? 1 NODE_FAIL guest-vanished releasing\n");
}

static void lost_guest_goes_on_from_its_checkpoint(void **state)
{
    run_timed(ONE_IS_SAVED "at 20\n"
                           "left 1\n"
                           "at 80\n"
                           "timer -> FENCE 1.1@1\n"
                           "? 1 PENDING requeued fencing\n"
                           "fenced 1.1 -> RESTORE 1.2@2\n"
                           "running 1.2\n"
                           "next 1066\n" /* of 1000 s it had used 14 */
                           "saved 1 1 epoch=1 ran=14 stored=30\n");
    run(ONE_IS_SAVED "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "released 1.1 -> RESTORE 1.2@1\n");
    /* One that may not begin again may go on. */
    run("node 1 4 1000\n"
        "submit 1 may-checkpoint no-requeue -> START 1.1@1\n"
        "running 1.1\n"
        "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
        "checkpointed 1.1\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "? 1 PENDING requeued releasing\n"
        "released 1.1 -> RESTORE 1.2@1\n");
}

/* The node may be slow: it is put back once more, on another where there is one. */
static void restored_guest_that_does_not_answer_keeps_its_checkpoint(void **state)
{
    run(ONE_IS_SAVED "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "released 1.1 -> RESTORE 1.2@1\n"
                     "gone 1.2 boot-deadline -> RELEASE 1.2@1\n"
                     "? 1 PENDING requeued releasing\n"
                     "released 1.2 -> RESTORE 1.3@1\n");
}

static void checkpoint_under_way_is_none(void **state)
{
    run(ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "left 1\n"
                 "at 60\n"
                 "timer -> FENCE 1.1@1\n"
                 "saved 1 0\n"
                 "fenced 1.1 -> START 1.2@2\n"
                 "running 1.2\n"
                 "checkpoint 1 -> CHECKPOINT 1.2@2#2\n"); /* no serial comes twice */
}

#define ONE_IS_DOUBTED                                                                             \
    ONE_RUNS "at 10\n"                                                                             \
             "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"                                                \
             "doubted 1 0\n"                                                                       \
             "left 1\n"                                                                            \
             "at 75\n"                                                                             \
             "timer -> FENCE 1.1@1\n"                                                              \
             "doubted 1 1 ran=10\n"

/* Its node may have made it, and was lost before it could say so. */
static void checkpoint_under_way_is_doubted_until_nothing_is_left_of_its_guest(void **state)
{
    run(ONE_IS_DOUBTED "fenced 1.1 -> START 1.2@2\n"
                       "doubted 1 0\n");
    run(ONE_IS_DOUBTED "checkpoints 1 from=1 epoch=1 ran=10 stored=30\n"
                       "doubted 1 0\n"
                       "fenced 1.1 -> RESTORE 1.2@2\n"
                       "saved 1 1 epoch=1 ran=10 stored=30\n");
    run(ONE_RUNS "at 10\n"
                 "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                 "doubted 1 1 ran=10\n"
                 "released 1.1 -> START 1.2@1\n"
                 "doubted 1 0\n");
    /* It was answered, or is not wanted. */
    run(ONE_IS_SAVED "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "doubted 1 0\n");
    run(ONE_IS_SAVED "checkpoint 1 -> CHECKPOINT 1.1@1#2\n"
                     "restore 1 from=1 epoch=1 ran=14 -> RELEASE 1.1@1\n"
                     "doubted 1 0\n");
    run(ONE_IS_SAVED "checkpoint 1 -> CHECKPOINT 1.1@1#2\n"
                     "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "doubted 1 2 ran=14\n"
                     "restore 1 from=1 epoch=1 ran=14\n"
                     "doubted 1 0\n");
}

static void checkpoints_that_are_gone_are_not_gone_on_from(void **state)
{
    run(ONE_IS_SAVED "checkpoints 1\n"
                     "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "released 1.1 -> START 1.2@1\n");
    /* What cannot be used is told before the start that failed for it. */
    run(ONE_IS_SAVED "checkpoint 1 -> CHECKPOINT 1.1@1#2\n"
                     "checkpointed 1.1 stored=60\n"
                     "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "released 1.1 -> RESTORE 1.2@1\n"
                     "checkpoints 1 from=1 epoch=1 ran=14 stored=30\n"
                     "start-failed 1.2 -> RELEASE 1.2@1\n"
                     "released 1.2\n"
                     "at 20\n"
                     "timer -> RESTORE 1.3@2\n"
                     "saved 1 1 epoch=1 ran=14 stored=30\n");
}

/* As often as the nodes fail; who has nothing to go on from is not tried again so often. */
static void restore_that_fails_is_tried_again_as_long_as_there_is_a_checkpoint(void **state)
{
    run(ONE_IS_SAVED "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "released 1.1 -> RESTORE 1.2@1\n"
                     "start-failed 1.2 -> RELEASE 1.2@1\n"
                     "released 1.2\n"
                     "at 100\n"
                     "timer -> RESTORE 1.3@2\n"
                     "start-failed 1.3 -> RELEASE 1.3@2\n"
                     "released 1.3\n"
                     "at 200\n"
                     "timer -> RESTORE 1.4@1\n"
                     "start-failed 1.4 -> RELEASE 1.4@1\n"
                     "released 1.4\n"
                     "? 1 PENDING starting-later none\n"
                     "at 300\n"
                     "timer -> RESTORE 1.5@2\n"
                     "running 1.5\n"
                     "? 1 RUNNING none running\n");
    run(TWO_NODES "submit 1 may-checkpoint -> START 1.1@1\n"
                  "start-failed 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "at 100\n"
                  "timer -> START 1.2@2\n"
                  "start-failed 1.2 -> RELEASE 1.2@2\n"
                  "released 1.2\n"
                  "at 200\n"
                  "timer -> START 1.3@1\n"
                  "start-failed 1.3 -> RELEASE 1.3@1\n"
                  "? 1 FAILED start-failed releasing\n");
}

static void restore_puts_back_what_runs(void **state)
{
    run(ONE_IS_SAVED "at 20\n"
                     "checkpoint 1 -> CHECKPOINT 1.1@1#2\n"
                     "checkpointed 1.1 stored=60\n"
                     "at 30\n"
                     "restore 1 from=1 epoch=1 ran=14 -> RELEASE 1.1@1\n"
                     "? 1 PENDING restoring releasing\n"
                     "released 1.1 -> RESTORE 1.2@1\n"
                     "saved 1 1 epoch=1 ran=14 stored=60\n"
                     "running 1.2\n"
                     "restore 1 ! no checkpoint\n"
                     "restore 9 from=1 epoch=1 ! no unfinished job 9\n"
                     "migrate 1 -> MIGRATE 1.2@1>2\n"
                     "restore 1 from=1 epoch=1 ran=14 ! being moved\n"
                     "migrated 1.2\n"
                     "cancel 1 -> STOP 1.2@2\n"
                     "restore 1 from=1 epoch=1 ran=14 ! is ending\n");
    /* Its node is away: when that is lost, it goes on elsewhere. */
    run(ONE_IS_SAVED "left 1\n"
                     "restore 1 from=1 epoch=1 ran=14\n"
                     "? 1 PENDING restoring releasing\n"
                     "at 75\n"
                     "timer -> FENCE 1.1@1\n"
                     "fenced 1.1 -> RESTORE 1.2@2\n");
    /* What stood still does so again. */
    run(ONE_IS_SAVED "freeze 1 -> FREEZE 1.1@1\n"
                     "frozen 1.1\n"
                     "restore 1 from=1 epoch=1 ran=14 -> RELEASE 1.1@1\n"
                     "released 1.1 -> RESTORE 1.2@1\n"
                     "running 1.2 -> FREEZE 1.2@1\n");
}

/* --- size ----------------------------------------------------------------------------------- */

#define ONE_HAS_GROWN                                                                              \
    TWO_NODES "submit 1 v=1 m=100 vmax=3 mmax=600 may-move may-checkpoint -> START 1.1@1\n"        \
              "running 1.1\n"                                                                      \
              "resize 1 v=3 m=600 -> RESIZE 1.1@1=3/600\n"                                         \
              "resized 1.1\n"                                                                      \
              "freeze 1 disk -> CHECKPOINT 1.1@1\n"                                                \
              "checkpointed 1.1 -> RELEASE 1.1@1\n"                                                \
              "saved 1 1 epoch=1 v=3 m=600\n"                                                      \
              "released 1.1\n"

/* What was saved fits no other size: it waits for room for that, though its job asks for less. */
static void grown_one_goes_on_where_all_of_it_has_room(void **state)
{
    const char *waits = "submit 2 v=2 m=400 -> START 2.1@1\n"
                        "submit 3 v=2 m=600 nodes=2 -> START 3.1@2\n"
                        "running 2.1\n"
                        "running 3.1\n"
                        "thaw 1 to=2 ! has no room\n"
                        "thaw 1\n"
                        "? 1 PENDING restoring none\n"
                        "why 1 resources\n"
                        "exited 2.1 -> RELEASE 2.1@1\n"
                        "released 2.1 -> RESTORE 1.2@1\n"
                        "submit 4 v=2 m=100 nodes=1\n" /* one vCPU is left */
                        "submit 5 v=1 m=400 nodes=1 -> START 5.1@1\n"
                        "running 1.2\n"
                        "resize 1 v=3 m=600\n" /* it has that */
                        "resize 1 v=1 m=100 -> RESIZE 1.2@1=1/100\n"
                        "resized 1.2 -> START 4.1@1\n";
    g_autofree char *told = g_strconcat(ONE_HAS_GROWN, waits, NULL);
    g_autofree char *put_back =
        g_strconcat(ONE_HAS_GROWN, "restart\njoin 1\njoin 2\n", waits, NULL);
    run(told);
    run(put_back);
}

/* One that has shrunk takes no more than it has. */
static void shrunken_one_goes_on_where_there_is_little_room(void **state)
{
    run(TWO_NODES "submit 1 v=3 m=600 nodes=1 may-checkpoint -> START 1.1@1\n"
                  "running 1.1\n"
                  "resize 1 v=1 m=200 -> RESIZE 1.1@1=1/200\n"
                  "resized 1.1\n"
                  "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                  "checkpointed 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "submit 2 v=3 m=800 nodes=1 -> START 2.1@1\n"
                  "thaw 1 -> RESTORE 1.2@1\n");
}

/* Of an array each task takes what it takes: the grown one, and those that have none. */
static void tasks_of_an_array_take_each_its_own_size(void **state)
{
    run(TWO_NODES "submit 1 array=4 v=2 m=400 nodes=1 may-checkpoint -> START 1.1@1 START 1/1.1@1\n"
                  "running 1.1\n"
                  "running 1/1.1\n"
                  "checkpoint 1 -> CHECKPOINT 1.1@1#1 CHECKPOINT 1/1.1@1#1\n"
                  "checkpointed 1.1\n"
                  "checkpointed 1/1.1\n"
                  "checkpoint 1 -> CHECKPOINT 1.1@1#2 CHECKPOINT 1/1.1@1#2\n"
                  "checkpointed 1.1\n"
                  "checkpointed 1/1.1\n"
                  "restore 1 from=1 epoch=1 v=3 m=700 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "exited 1/1.1 -> RELEASE 1/1.1@1\n"
                  "released 1/1.1 -> RESTORE 1.2@1\n"
                  "running 1.2\n"
                  "submit 2 v=1 m=300 nodes=1 -> START 2.1@1\n"
                  "exited 1.2 -> RELEASE 1.2@1\n"
                  "released 1.2 -> START 1/2.1@1\n"
                  "exited 2.1 -> RELEASE 2.1@1\n"
                  "released 2.1 -> START 1/3.1@1\n");
}

/* What it is to go on from changes while it waits, and with it how much that takes. */
static void waiting_one_takes_the_size_of_what_it_is_put_back_to(void **state)
{
    run(TWO_NODES "submit 1 v=1 m=100 nodes=1 may-checkpoint -> START 1.1@1\n"
                  "running 1.1\n"
                  "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                  "checkpointed 1.1\n"
                  "checkpoint 1 -> CHECKPOINT 1.1@1#2\n"
                  "checkpointed 1.1\n"
                  "submit 2 v=2 m=200 nodes=1 -> START 2.1@1\n"
                  "running 2.1\n"
                  "restore 1 from=1 epoch=1 v=4 m=600 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "? 1 PENDING restoring none\n"
                  "restore 1 from=2 epoch=1 v=2 m=800 -> RESTORE 1.2@1\n");
}

/* --- to disk -------------------------------------------------------------------------------- */

#define ONE_IS_ON_DISK                                                                             \
    ONE_RUNS "at 10\n"                                                                             \
             "freeze 1 disk -> CHECKPOINT 1.1@1\n"                                                 \
             "saved 1 0 kept=164\n"                                                                \
             "at 15\n"                                                                             \
             "checkpointed 1.1 stored=30 -> RELEASE 1.1@1\n"                                       \
             "? 1 SUSPENDED frozen-by-user releasing\n"                                            \
             "saved 1 1 epoch=1 ran=10 stored=30\n"                                                \
             "released 1.1\n"                                                                      \
             "? 1 SUSPENDED frozen-by-user none\n"

static void freeze_to_disk_gives_the_node_back(void **state)
{
    run_timed(ONE_IS_ON_DISK "submit 2 v=4 m=1000 -> START 2.1@1\n"
                             "next never\n"
                             "at 5000\n"
                             "freeze 1 disk\n"
                             "thaw 1 -> RESTORE 1.2@2\n"
                             "thaw 1 ! not frozen\n"
                             "running 1.2\n"
                             "? 1 RUNNING none running\n"
                             "next 5990\n");
    /* It waits as any other does. */
    run(ONE_IS_ON_DISK "submit 2 v=4 m=1000 -> START 2.1@1\n"
                       "submit 3 v=4 m=1000 -> START 3.1@2\n"
                       "running 2.1\n"
                       "running 3.1\n"
                       "thaw 1\n"
                       "? 1 PENDING restoring none\n"
                       "why 1 resources\n"
                       "exited 2.1 -> RELEASE 2.1@1\n"
                       "released 2.1 -> RESTORE 1.2@1\n");
    run(ONE_IS_ON_DISK "freeze 1 op\n"
                       "? 1 SUSPENDED frozen-by-operator none\n"
                       "thaw 1 ! an operator\n"
                       "cancel 1\n"
                       "? 1 CANCELLED cancelled-by-user none\n");
    run(ONE_IS_ON_DISK "restart\n"
                       "? 1 SUSPENDED frozen-by-user none\n"
                       "join 1\n"
                       "thaw 1 -> RESTORE 1.2@1\n");
}

static void thaw_from_disk_goes_where_it_is_wanted(void **state)
{
    run(ONE_IS_ON_DISK "thaw 1 to=2 -> RESTORE 1.2@2\n"
                       "running 1.2\n"
                       "exited 1.2 -> RELEASE 1.2@2\n");
    run(ONE_IS_ON_DISK "thaw 1 to=7 ! no such node\n"
                       "cordon 2\n"
                       "thaw 1 to=2 ! cordoned\n"
                       "undrain 2\n"
                       "submit 2 v=4 m=1000 -> START 2.1@1\n"
                       "thaw 1 to=1 ! has no room\n"
                       "storage down\n"
                       "thaw 1 to=2 ! storage does not answer\n"
                       "storage up\n"
                       "user 1000 tasks=1\n"
                       "thaw 1 to=2 ! as much as it may\n"
                       "? 1 SUSPENDED frozen-by-user none\n");
    run(ONE_RUNS "freeze 1 -> FREEZE 1.1@1\n"
                 "frozen 1.1\n"
                 "thaw 1 to=2 ! berth migrate\n"
                 "freeze 1 disk -> CHECKPOINT 1.1@1\n" /* after all */
                 "checkpointed 1.1 -> RELEASE 1.1@1\n"
                 "thaw 1 to=2 ! still leaving\n"
                 "thaw 1\n"
                 "? 1 PENDING restoring releasing\n"
                 "released 1.1 -> RESTORE 1.2@1\n");
}

static void freeze_to_disk_that_fails_leaves_the_guest_as_it_was(void **state)
{
    run(ONE_RUNS "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                 "checkpointed 1.1 failed\n"
                 "? 1 RUNNING none running\n"
                 "saved 1 0\n"
                 "thaw 1 ! not frozen\n");
    run(ONE_RUNS "freeze 1 -> FREEZE 1.1@1\n"
                 "frozen 1.1\n"
                 "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                 "checkpointed 1.1 failed\n"
                 "? 1 SUSPENDED frozen-by-user running\n");
    /* Not any more, but it is too late: it goes on from what was saved. */
    run(ONE_RUNS "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                 "thaw 1\n"
                 "checkpointed 1.1 -> RELEASE 1.1@1\n"
                 "? 1 PENDING restoring releasing\n");
    run(TWO_NODES "submit 1 may-checkpoint -> START 1.1@1\n"
                  "freeze 1 disk\n"
                  "saved 1 0 kept=164\n"
                  "thaw 1\n"
                  "saved 1 0\n");
}

/* Which is another one: there is space for both, or it is refused. */
static void freeze_to_disk_follows_a_checkpoint_under_way(void **state)
{
    run(ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "saved 1 0 kept=164\n"
                 "freeze 1 disk\n"
                 "saved 1 0 kept=328\n"
                 "freeze 1 disk\n"
                 "saved 1 0 kept=328\n"
                 "checkpointed 1.1 stored=30 -> CHECKPOINT 1.1@1\n"
                 "saved 1 1 epoch=1 stored=30 kept=164\n"
                 "checkpointed 1.1 stored=60 -> RELEASE 1.1@1\n"
                 "saved 1 2 epoch=1 stored=60\n"
                 "? 1 SUSPENDED frozen-by-user releasing\n");
    run(ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "freeze 1 disk\n"
                 "restart\n"
                 "join 1 1.1:running -> CHECKPOINT 1.1@1#1\n"
                 "saved 1 0 kept=328\n"
                 "checkpointed 1.1 failed -> CHECKPOINT 1.1@1\n"
                 "saved 1 0 kept=164\n"
                 "checkpointed 1.1 failed\n"
                 "saved 1 0\n"
                 "? 1 RUNNING none running\n");
    run(ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "freeze 1 disk\n"
                 "thaw 1\n"
                 "saved 1 0 kept=164\n"
                 "checkpointed 1.1 stored=30\n"
                 "saved 1 1 epoch=1 stored=30\n"
                 "? 1 RUNNING none running\n");
    run(ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                 "freeze 1 disk\n"
                 "gone 1.1 guest-crashed -> RELEASE 1.1@1\n"
                 "saved 1 0\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 200,
                          ONE_RUNS "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
                                   "freeze 1 disk ! may take 164 MiB, and 36 MiB\n"
                                   "checkpointed 1.1 stored=30\n"
                                   "freeze 1 disk -> CHECKPOINT 1.1@1\n");
}

/* The wish outlives the guest; the space that was kept for it does not. */
static void freeze_to_disk_without_space_is_missed(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 200,
                          ONE_RUNS "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                                   "at 10\n"
                                   "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                                   "submit 2 m=100 may-checkpoint -> START 2.1@1\n"
                                   "running 2.1\n"
                                   "checkpoint 2 -> CHECKPOINT 2.1@1#1\n"
                                   "released 1.1 -> START 1.2@1\n"
                                   "at 20\n"
                                   "running 1.2 -> FREEZE 1.2@1\n"
                                   "missed 1 20\n"
                                   "frozen 1.2\n"
                                   "? 1 SUSPENDED frozen-by-user running\n");
}

/* It is to stand still, and what it is to go on from is there. */
static void freeze_to_disk_of_a_lost_guest_is_done(void **state)
{
    run(ONE_IS_SAVED "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                     "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                     "released 1.1\n"
                     "? 1 SUSPENDED frozen-by-user none\n"
                     "thaw 1 -> RESTORE 1.2@1\n");
    run(ONE_RUNS "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                 "left 1\n"
                 "at 60\n"
                 "timer -> FENCE 1.1@1\n"
                 "fenced 1.1 -> START 1.2@2\n"
                 "running 1.2 -> CHECKPOINT 1.2@2\n");
    /* Its node dies before it is rid of it. */
    run(ONE_RUNS "freeze 1 disk -> CHECKPOINT 1.1@1\n"
                 "checkpointed 1.1 -> RELEASE 1.1@1\n"
                 "left 1\n"
                 "at 60\n"
                 "timer -> FENCE 1.1@1\n"
                 "? 1 SUSPENDED frozen-by-user fencing\n"
                 "fenced 1.1\n"
                 "thaw 1 -> RESTORE 1.2@2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_saves_what_runs_on),
        cmocka_unit_test(checkpoint_is_charged_but_for_its_pause),
        cmocka_unit_test(what_runs_on_before_it_stands_still_is_charged_until_then),
        cmocka_unit_test(what_runs_on_until_a_checkpoint_fails_is_charged),
        cmocka_unit_test(checkpoint_needs_something_that_runs),
        cmocka_unit_test(checkpoint_waits_until_the_guest_can_be_saved),
        cmocka_unit_test(checkpoints_share_their_nodes_link),
        cmocka_unit_test(checkpoint_outlives_a_restart),
        cmocka_unit_test(checkpoint_keeps_its_space_before),
        cmocka_unit_test(checkpoint_keeps_to_the_room_that_storage_has),
        cmocka_unit_test(checkpoint_is_due_every_so_often),
        cmocka_unit_test(checkpoint_is_not_due_while_one_is_taken),
        cmocka_unit_test(how_often_is_changed_while_it_runs),
        cmocka_unit_test(checkpoint_that_is_due_no_more_leaves_its_space_to_a_freeze),
        cmocka_unit_test(checkpoint_that_finds_no_space_is_missed),
        cmocka_unit_test(losses_count_since_the_newest_checkpoint),
        cmocka_unit_test(lost_guest_goes_on_from_its_checkpoint),
        cmocka_unit_test(restored_guest_that_does_not_answer_keeps_its_checkpoint),
        cmocka_unit_test(checkpoint_under_way_is_none),
        cmocka_unit_test(checkpoint_under_way_is_doubted_until_nothing_is_left_of_its_guest),
        cmocka_unit_test(checkpoints_that_are_gone_are_not_gone_on_from),
        cmocka_unit_test(restore_that_fails_is_tried_again_as_long_as_there_is_a_checkpoint),
        cmocka_unit_test(restore_puts_back_what_runs),
        cmocka_unit_test(freeze_to_disk_gives_the_node_back),
        cmocka_unit_test(grown_one_goes_on_where_all_of_it_has_room),
        cmocka_unit_test(shrunken_one_goes_on_where_there_is_little_room),
        cmocka_unit_test(tasks_of_an_array_take_each_its_own_size),
        cmocka_unit_test(waiting_one_takes_the_size_of_what_it_is_put_back_to),
        cmocka_unit_test(thaw_from_disk_goes_where_it_is_wanted),
        cmocka_unit_test(freeze_to_disk_that_fails_leaves_the_guest_as_it_was),
        cmocka_unit_test(freeze_to_disk_follows_a_checkpoint_under_way),
        cmocka_unit_test(freeze_to_disk_without_space_is_missed),
        cmocka_unit_test(freeze_to_disk_of_a_lost_guest_is_done),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
