/* SPDX-License-Identifier: Apache-2.0 */
/* Guests in slack leave for those who are backed, and for a node that lacks memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* --- guaranteed starts ---------------------------------------------------------------------- */

static void backed_start_waits_until_slack_is_checkpointed(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=3 m=600 limit=10000 -> START 1.1@1\n"
        "submit 2 v=1 m=400 limit=10000 -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "report 2.1 cpu=100 mem=100\n"
        "submit 3 v=2 m=600 limit=9000 slack may-checkpoint -> START 3.1@1~\n"
        "running 3.1\n"
        "exited 2.1 -> RELEASE 2.1@1\n"
        "released 2.1\n"
        "submit 4 v=1 m=400 limit=100 -> CHECKPOINT 3.1@1~\n"
        "op 3 room-needed\n"
        "? 4 RUNNING - starting\n"
        "checkpointed 3.1 -> RELEASE 3.1@1\n"
        "? 3 PENDING evicted releasing\n"
        "released 3.1 -> START 4.1@1\n"
        "why 3 resources\n"
        "running 4.1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> RESTORE 3.2@1\n");
}

static void backed_start_moves_slack_to_another_node(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=4 m=600 limit=10000 nodes=1 -> START 1.1@1\n"
        "submit 2 v=4 m=600 limit=10000 nodes=2 -> START 2.1@2\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "submit 3 v=2 m=700 limit=9000 slack may-move -> START 3.1@1~\n"
        "running 3.1\n"
        "report 2.1 cpu=100 mem=100\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> RESIZE 3.1@1\n" /* promoted: it is alone there */
        "resized 3.1\n");
    /* It could not be, and so yields to whoever is backed; it is tried again after a cooldown. */
    run("node 1 4 1000\n"
        "submit 1 v=4 m=600 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "submit 2 v=2 m=700 limit=9000 slack may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "submit 3 v=1 m=100 limit=9000\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 3.1@1 RESIZE 2.1@1\n"
        "resized 2.1 failed\n"
        "cancel 3 -> STOP 3.1@1\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1\n"
        "at 3620\n"
        "submit 4 v=1 m=100 limit=9000 -> START 4.1@1\n"
        "cancel 4 -> STOP 4.1@1\n"
        "exited 4.1 -> RELEASE 4.1@1\n"
        "released 4.1 -> RESIZE 2.1@1\n");
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=4 m=600 limit=10000 nodes=1 -> START 1.1@1\n"
        "submit 2 v=4 m=600 limit=10000 nodes=2 -> START 2.1@2\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "submit 3 v=2 m=700 limit=9000 slack may-move -> START 3.1@1~\n"
        "running 3.1\n"
        "report 2.1 cpu=100 mem=100\n"
        "submit 4 v=4 m=900 limit=100 nodes=1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> MIGRATE 3.1@1>2~\n"
        "? 4 RUNNING - starting\n"
        "migrated 3.1 -> START 4.1@1\n"
        "exited 3.1 -> RELEASE 3.1@2\n");
}

static void slack_that_did_not_begin_is_started_again(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=600 slack may-checkpoint -> START 2.1@1~\n"
                  "report 1.1 cpu=1000 mem=500 -> RELEASE 2.1@1\n"
                  "? 2 PENDING evicted releasing\n"
                  "released 2.1\n");
    /* Its command may have begun, and must not begin twice: it leaves when it is known to run. */
    run(IDLE_NODE "submit 2 v=1 m=600 slack may-checkpoint no-requeue -> START 2.1@1~\n"
                  "taken 2.1\n"
                  "report 1.1 cpu=1000 mem=500\n"
                  "running 2.1\n"
                  "report 1.1 cpu=1000 mem=500 -> CHECKPOINT 2.1@1~\n");
    run(IDLE_NODE "submit 2 v=1 m=600 slack may-checkpoint no-requeue -> START 2.1@1~\n"
                  "report 1.1 cpu=1000 mem=500 -> RELEASE 2.1@1\n");
}

/* Each time that somebody who is backed takes the room, whoever is sent there next would be started in vain,
 * be it another task of the same array: nobody is, for a cooldown. */
static void slack_of_who_did_not_begin_rests(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=2 m=500 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "submit 2 v=3 m=600 limit=20000 array=3 slack may-checkpoint -> START 2.1@1~\n"
        "at 21\n"
        "submit 3 v=1 m=400 limit=1000 p=1 -> RELEASE 2.1@1\n"
        "released 2.1 -> START 3.1@1\n"
        "running 3.1\n"
        "at 31\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1\n"
        "submit 4 v=1 m=400 limit=1000 p=1 -> START 4.1@1\n"
        "running 4.1\n"
        "at 41\n"
        "exited 4.1 -> RELEASE 4.1@1\n"
        "released 4.1\n"
        "at 320\n"
        "timer\n"
        "at 380\n"
        "timer -> START 2.2@1~\n"
        "running 2.2\n");
}

/* --- relief --------------------------------------------------------------------------------- */

/* Rounds come before the node is lost, and take its guests at more than they were known to need. */
static void slack_of_a_node_that_is_away_stays_and_its_cancel_stands(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_BALANCE_INTERVAL_USEC,
                          20 * (gint64)G_USEC_PER_SEC,
                          "node 1 4 1000\n"
                          "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 20\n"
                          "report 1.1 cpu=1000 mem=800\n"
                          "submit 2 m=100 slack may-checkpoint -> START 2.1@1~\n"
                          "restart guests\n"
                          "cancel 2\n"
                          "at 40\n"
                          "timer\n"
                          "? 2 RUNNING none starting\n"
                          "join 1 1.1:running 2.1:starting -> STOP 2.1@1\n");
}

/* By its node, which had no other way: it gets a backed start, however often it was requeued. */
static void who_is_crowded_out_waits_for_a_backed_start(void **state)
{
    run(IDLE_NODE
        "submit 2 v=2 m=500 slack may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "gone 2.1 crowded-out -> RELEASE 2.1@1\n"
        "? 2 PENDING crowded-out releasing\n"
        "released 2.1\n"
        "submit 3 v=1 m=400 slack may-checkpoint -> START 3.1@1~\n"
        "running 3.1\n"
        "gone 1.1 crowded-out -> RELEASE 1.1@1\n" /* it was backed: so it is lost as any */
        "? 1 PENDING requeued releasing\n");
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint no-requeue -> START 2.1@1~\n"
                  "running 2.1\n"
                  "gone 2.1 crowded-out -> RELEASE 2.1@1\n"
                  "? 2 NODE_FAIL crowded-out releasing\n");
}

static void growth_of_a_backed_guest_sends_slack_away(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint -> START 2.1@1~\n"
                  "running 2.1\n"
                  "report 1.1 cpu=1000 mem=440\n" /* within half of the headroom */
                  "report 1.1 cpu=1000 mem=460 -> CHECKPOINT 2.1@1~\n"
                  "report 1.1 cpu=1000 mem=900\n"
                  "checkpointed 2.1 failed -> \n"
                  "report 1.1 cpu=1000 mem=900\n" /* what fails at once would be tried for ever */
                  "at 100\n"
                  "report 1.1 cpu=1000 mem=900 -> CHECKPOINT 2.1@1~\n"
                  "checkpointed 2.1 -> RELEASE 2.1@1\n"
                  "released 2.1\n");
}

/* Where it goes another one in slack uses what it will use: nobody waits for a report after it has come. */
static void move_of_a_backed_guest_sends_slack_away_from_where_it_goes(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=2 m=500 limit=10000 nodes=1,2 may-move may-checkpoint -> START 1.1@1\n"
        "submit 2 v=2 m=500 limit=10000 nodes=2 -> START 2.1@2\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=500 mem=480\n"
        "report 2.1 cpu=500 mem=300\n"
        "submit 5 v=3 m=500 limit=5000 nodes=2 slack may-checkpoint -> START 5.1@2~\n"
        "running 5.1\n"
        "report 5.1 cpu=500 mem=480\n"
        "at 40\n"
        "report 5.1 cpu=500 mem=480\n"
        "report 1.1 cpu=500 mem=480\n"
        "report 2.1 cpu=500 mem=300\n"
        "migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
        "checkpointed 5.1 -> RELEASE 5.1@2\n"
        "released 5.1 -> MIGRATE 1.1@1>2\n"
        "migrated 1.1\n");
}

static void node_under_pressure_sends_one_away(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=200 slack may-checkpoint -> START 2.1@1~\n"
                  "submit 3 v=1 m=200 slack may-checkpoint -> START 3.1@1~\n"
                  "running 2.1\n"
                  "running 3.1\n"
                  "pressed 1 -> CHECKPOINT 3.1@1~\n"
                  "op 3 pressure\n"
                  "pressed 1\n"
                  "exited 3.1 -> RELEASE 3.1@1\n"
                  "checkpointed 3.1\n"
                  "released 3.1\n"
                  "pressed 1 -> CHECKPOINT 2.1@1~\n"
                  "cancel 2 -> STOP 2.1@1\n"
                  "checkpointed 2.1 -> RELEASE 2.1@1\n"
                  "? 2 CANCELLED cancelled-by-user releasing\n");
}

/* From the host's word until it takes that back and nobody is leaving, whatever guests say meanwhile. */
static void node_is_told_to_lack_memory_once(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint -> START 2.1@1~\n"
                  "running 2.1\n"
                  "report 2.1 cpu=100 mem=100\n"
                  "lacks 1 no\n"
                  "pressed 1 -> CHECKPOINT 2.1@1~\n"
                  "lacks 1 yes\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "lacks 1 yes\n"
                  "pressed 1 left=900\n"
                  "lacks 1 yes\n"
                  "checkpointed 2.1 -> RELEASE 2.1@1\n"
                  "released 2.1\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "lacks 1 no\n");
}

/* Predictions do not know why it lacks memory: it may be page cache. */
static void nobody_comes_back_to_a_node_under_pressure(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=200 slack may-checkpoint -> START 2.1@1~\n"
                  "running 2.1\n"
                  "pressed 1 left=49 -> CHECKPOINT 2.1@1~\n"
                  "at 22\n"
                  "checkpointed 2.1 -> RELEASE 2.1@1\n"
                  "released 2.1\n"
                  "pressed 1 left=51\n"
                  "at 1000\n"
                  "timer -> RESTORE 2.2@1~\n");
}

static void node_with_hardly_any_memory_left_sends_one_away(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=200 slack may-checkpoint -> START 2.1@1~\n"
                  "running 2.1\n"
                  "pressed 1 left=51\n" /* half of the headroom is 50 */
                  "pressed 1 left=51 psi=99\n"
                  "pressed 1 left=49 -> CHECKPOINT 2.1@1~\n"
                  "pressed 1 left=1\n");
}

static void migration_that_fails_leaves_the_guest_where_it_was(void **state)
{
    run(IDLE_NODE "node 2 4 1000\n"
                  "submit 9 v=4 m=600 limit=10000 nodes=2 -> START 9.1@2\n"
                  "submit 2 v=2 m=500 slack may-move nodes=1 limit=9000 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "report 1.1 cpu=1000 mem=600\n" /* nowhere to go */
                  "exited 2.1 -> RELEASE 2.1@1\n"
                  "released 2.1\n");
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=4 m=500 limit=10000 -> START 1.1@1\n"
        "submit 2 v=4 m=500 limit=10000 may-move -> START 2.1@2\n"
        "running 2.1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "drain 2 -> MIGRATE 2.1@2>1\n"
        "migrated 2.1 failed\n"
        "undrain 2\n"
        "submit 3 v=4 m=500 -> START 3.1@1\n"
        "exited 2.1 -> RELEASE 2.1@2\n");
}

/* --- what does not work out ------------------------------------------------------------------ */

/* 3 runs in slack, and 4 starts in its room; there is another node, in whose slack it could be. */
#define ROOM_IS_NEEDED(features)                                                                   \
    IDLE_NODE "submit 3 v=2 m=500 limit=10000 " features " slack -> START 3.1@1~\n"                \
              "running 3.1\n"                                                                      \
              "submit 4 p=1 v=4 m=700 limit=5000 nodes=1\n"                                        \
              "node 2 4 1000\n"                                                                    \
              "submit 9 v=4 m=1000 limit=20000 nodes=2 -> START 9.1@2\n"                           \
              "running 9.1\n"                                                                      \
              "at 40\n"                                                                            \
              "report 9.1 cpu=500 mem=100\n"                                                       \
              "report 3.1 cpu=1000 mem=400 left=100\n"                                             \
              "report 1.1 cpu=1000 mem=300\n"                                                      \
              "exited 1.1 -> RELEASE 1.1@1\n"

/* What fails at once would be tried for ever; the other way out is tried, and both again later. */
static void relief_that_fails_rests(void **state)
{
    run(ROOM_IS_NEEDED("may-move") "released 1.1 -> MIGRATE 3.1@1>2~\n"
                                   "migrated 3.1 failed\n"
                                   "report 3.1 cpu=1000 mem=400 left=100\n"
                                   "report 9.1 cpu=500 mem=100\n"
                                   "? 4 RUNNING none starting\n");
    run(ROOM_IS_NEEDED("may-checkpoint") "released 1.1 -> CHECKPOINT 3.1@1~\n"
                                         "checkpointed 3.1 failed\n"
                                         "report 3.1 cpu=1000 mem=400 left=100\n"
                                         "? 4 RUNNING none starting\n");
    run(ROOM_IS_NEEDED("may-move may-checkpoint") "released 1.1 -> MIGRATE 3.1@1>2~\n"
                                                  "migrated 3.1 failed -> CHECKPOINT 3.1@1~\n"
                                                  "checkpointed 3.1 failed\n"
                                                  "report 3.1 cpu=1000 mem=400 left=100\n");
}

/* 3 would be worth most, but there is nowhere to move to, and its checkpoint rests: 5 leaves. */
static void who_cannot_leave_holds_up_nobody(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=200\n"
        "submit 3 v=1 m=300 limit=10000 may-move may-checkpoint slack -> START 3.1@1~\n"
        "running 3.1\n"
        "at 40\n"
        "report 3.1 cpu=100 mem=280 left=20\n"
        "report 1.1 cpu=1000 mem=200\n"
        "submit 5 v=1 m=250 limit=75 may-checkpoint slack -> START 5.1@1~\n" /* is soon over */
        "running 5.1\n"
        "at 60\n"
        "report 5.1 cpu=100 mem=200 left=50 touched=2000\n"
        "report 3.1 cpu=100 mem=280 left=20\n"
        "report 1.1 cpu=1000 mem=200\n"
        "submit 4 p=1 v=4 m=700 limit=5000\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> CHECKPOINT 3.1@1~\n"
        "checkpointed 3.1 failed -> CHECKPOINT 5.1@1~\n");
}

/* 3 runs in slack on the first of two nodes that are backed in full, and 4 waits for them. */
#define BOTH_ARE_WAITED_FOR(wanted)                                                                \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"                                             \
    "running 1.1\n"                                                                                \
    "submit 2 v=4 m=1000 limit=10000 -> START 2.1@2\n"                                             \
    "running 2.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=1000 mem=300\n"                                                                \
    "report 2.1 cpu=4000 mem=1000\n"                                                               \
    "submit 3 v=2 m=500 limit=10000 may-checkpoint slack -> START 3.1@1~\n"                        \
    "running 3.1\n"                                                                                \
    "submit 4 v=4 m=700 limit=5000 " wanted "\n"                                                   \
    "at 40\n"                                                                                      \
    "report 3.1 cpu=1000 mem=400 left=100\n"                                                       \
    "report 1.1 cpu=1000 mem=300\n"

/* Whoever should make room for it cannot, or hangs: after evacuation_max it starts where there is room. */
static void backed_start_does_not_wait_for_ever(void **state)
{
    run(BOTH_ARE_WAITED_FOR("") "exited 1.1 -> RELEASE 1.1@1\n"
                                "released 1.1 -> CHECKPOINT 3.1@1~\n"
                                "exited 2.1 -> RELEASE 2.1@2\n"
                                "released 2.1\n"
                                "at 300\n"
                                "timer\n"
                                "? 4 RUNNING none starting\n"
                                "at 400\n"
                                "timer -> START 4.2@2\n");
}

/* All of a gang are taken back, those too that had room and have been started. */
static void gang_does_not_wait_for_ever(void **state)
{
    run(BOTH_ARE_WAITED_FOR("guests=2") "exited 1.1 -> RELEASE 1.1@1\n"
                                        "exited 2.1 -> RELEASE 2.1@2\n"
                                        "released 1.1\n"
                                        "released 2.1 -> CHECKPOINT 3.1@1~ START 4+1.1@2\n"
                                        "at 400\n"
                                        "timer -> RELEASE 4+1.1@2\n"
                                        "? 4 PENDING starting-later releasing\n");
}

/* The first guest of 4 waits for 3 to leave, the other one has been started. */
#define GANG_WAITS(wanted)                                                                         \
    BOTH_ARE_WAITED_FOR("guests=2 " wanted)                                                        \
    "exited 1.1 -> RELEASE 1.1@1\n"                                                                \
    "exited 2.1 -> RELEASE 2.1@2\n"                                                                \
    "released 1.1\n"                                                                               \
    "released 2.1 -> CHECKPOINT 3.1@1~ START 4+1.1@2\n"

/* It waits for the other node, and was accepted. */
static void cancel_of_a_gang_stands_when_there_is_no_room(void **state)
{
    run(GANG_WAITS("") "at 390\n"
                       "left 2\n"
                       "cancel 4\n"
                       "? 4 RUNNING - starting\n"
                       "at 400\n"
                       "timer\n"
                       "join 2 4+1.1:running -> STOP 4.1@1 STOP 4+1.1@2\n");
}

/* Its command would run twice. */
static void gang_that_has_begun_and_may_not_again_waits_on(void **state)
{
    run(GANG_WAITS("no-requeue") "taken 4+1.1\n"
                                 "running 4+1.1\n"
                                 "at 400\n"
                                 "timer\n"
                                 "? 4 RUNNING - starting\n"
                                 "checkpointed 3.1 -> RELEASE 3.1@1\n"
                                 "released 3.1 -> START 4.1@1\n");
    run(GANG_WAITS("no-requeue") "at 400\n"
                                 "timer -> RELEASE 4+1.1@2\n"
                                 "? 4 PENDING starting-later releasing\n");
}

static void gang_avoids_the_node_that_had_no_room(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "node 3 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 nodes=1 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=4 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"
        "running 2.1\n"
        "submit 5 v=4 m=1000 limit=10000 nodes=3 -> START 5.1@3\n"
        "running 5.1\n"
        "at 20\n"
        "report 2.1 cpu=1000 mem=300\n"
        "submit 3 v=2 m=500 limit=10000 may-checkpoint slack -> START 3.1@2~\n"
        "running 3.1\n"
        "submit 4 v=4 m=700 limit=5000 guests=2\n"
        "at 40\n"
        "report 3.1 cpu=1000 mem=400 left=100\n"
        "report 2.1 cpu=1000 mem=300\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "exited 2.1 -> RELEASE 2.1@2\n"
        "released 1.1\n"
        "released 2.1 -> START 4.1@1 CHECKPOINT 3.1@2~\n"
        "exited 5.1 -> RELEASE 5.1@3\n"
        "released 5.1\n"
        "at 400\n"
        "timer -> RELEASE 4.1@1\n"
        "released 4.1 -> START 4.2@1 START 4+1.2@3\n");
}

/* Its node comes back without it, as nobody has asked for it there. */
static void guest_that_waits_for_room_is_not_missing(void **state)
{
    run(GANG_WAITS("no-requeue") "taken 4+1.1\n"
                                 "left 1\n"
                                 "join 1 3.1:running -> CHECKPOINT 3.1@1~\n"
                                 "? 4 RUNNING - starting\n"
                                 "checkpointed 3.1 -> RELEASE 3.1@1\n"
                                 "released 3.1 -> START 4.1@1\n");
}

static void nobody_leaves_for_a_start_that_was_given_up(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=200\n"
        "submit 3 v=1 m=400 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
        "running 3.1\n"
        "submit 5 v=1 m=250 limit=10000 may-checkpoint slack -> START 5.1@1~\n"
        "running 5.1\n"
        "submit 4 p=5 v=4 m=700 limit=5000\n"
        "at 40\n"
        "report 3.1 cpu=1000 mem=350 left=50\n"
        "report 5.1 cpu=1000 mem=200 left=50\n"
        "report 1.1 cpu=1000 mem=200\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> CHECKPOINT 3.1@1~\n"
        "cancel 4 -> RESIZE 5.1@1\n" /* nobody was asked to start it */
        "? 4 CANCELLED cancelled-by-user none\n"
        "checkpointed 3.1 failed\n");
}

/* Others leave at their own pace: who is moved for balance, say, or is checkpointed and runs on. */
static void who_is_waited_for_is_told_so(void **state)
{
    static const struct {
        BerthActionKind kind;
        gboolean stops;
        BerthReason reason;
        gboolean is_pressing;
    } cases[] = {
        {BERTH_ACTION_MIGRATE, FALSE, BERTH_REASON_PRESSURE, TRUE},
        {BERTH_ACTION_MIGRATE, FALSE, BERTH_REASON_SLACK_FULL, TRUE},
        {BERTH_ACTION_MIGRATE, FALSE, BERTH_REASON_ROOM_NEEDED, TRUE},
        {BERTH_ACTION_MIGRATE, FALSE, BERTH_REASON_STARVED, TRUE},
        {BERTH_ACTION_MIGRATE, FALSE, BERTH_REASON_BALANCE, FALSE},
        {BERTH_ACTION_MIGRATE, FALSE, BERTH_REASON_DEFRAGMENT, FALSE},
        {BERTH_ACTION_MIGRATE, FALSE, BERTH_REASON_DRAIN, FALSE},
        {BERTH_ACTION_CHECKPOINT, TRUE, BERTH_REASON_ROOM_NEEDED, TRUE},
        {BERTH_ACTION_CHECKPOINT, TRUE, BERTH_REASON_TIME_LIMIT, TRUE},
        {BERTH_ACTION_CHECKPOINT, TRUE, BERTH_REASON_DRAIN, FALSE},
        {BERTH_ACTION_CHECKPOINT, FALSE, BERTH_REASON_PRESSURE, FALSE},
        {BERTH_ACTION_RESIZE, FALSE, BERTH_REASON_PRESSURE, FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const BerthCoreAction action = {
            .kind = cases[i].kind, .stops = cases[i].stops, .reason = cases[i].reason};
        assert_int_equal(berth_core_action_is_pressing(&action), cases[i].is_pressing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gang_does_not_wait_for_ever),
        cmocka_unit_test(cancel_of_a_gang_stands_when_there_is_no_room),
        cmocka_unit_test(gang_that_has_begun_and_may_not_again_waits_on),
        cmocka_unit_test(gang_avoids_the_node_that_had_no_room),
        cmocka_unit_test(guest_that_waits_for_room_is_not_missing),
        cmocka_unit_test(nobody_leaves_for_a_start_that_was_given_up),
        cmocka_unit_test(backed_start_does_not_wait_for_ever),
        cmocka_unit_test(relief_that_fails_rests),
        cmocka_unit_test(who_cannot_leave_holds_up_nobody),
        cmocka_unit_test(backed_start_waits_until_slack_is_checkpointed),
        cmocka_unit_test(backed_start_moves_slack_to_another_node),
        cmocka_unit_test(slack_that_did_not_begin_is_started_again),
        cmocka_unit_test(slack_of_who_did_not_begin_rests),
        cmocka_unit_test(slack_of_a_node_that_is_away_stays_and_its_cancel_stands),
        cmocka_unit_test(who_is_crowded_out_waits_for_a_backed_start),
        cmocka_unit_test(growth_of_a_backed_guest_sends_slack_away),
        cmocka_unit_test(move_of_a_backed_guest_sends_slack_away_from_where_it_goes),
        cmocka_unit_test(node_under_pressure_sends_one_away),
        cmocka_unit_test(node_is_told_to_lack_memory_once),
        cmocka_unit_test(nobody_comes_back_to_a_node_under_pressure),
        cmocka_unit_test(node_with_hardly_any_memory_left_sends_one_away),
        cmocka_unit_test(migration_that_fails_leaves_the_guest_where_it_was),
        cmocka_unit_test(who_is_waited_for_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
