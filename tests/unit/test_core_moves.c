/* SPDX-License-Identifier: Apache-2.0 */
/* Moves: what becomes of them, and those of rounds: promotion, want of CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* --- migration and failures ------------------------------------------------------------------ */

#define MIGRATING                                                                                  \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "submit 1 v=4 m=500 limit=10000 may-move -> START 1.1@1\n"                                     \
    "running 1.1\n"                                                                                \
    "drain 1 -> MIGRATE 1.1@1>2\n"                                                                 \
    "submit 2 v=1 m=100 limit=10\n" /* room is held at both ends */                                \
    "cancel 2\n"

static void migrating_guest_that_ends_is_released_at_both_ends(void **state)
{
    run(MIGRATING "exited 1.1 -> RELEASE 1.1@2 RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "released 1.1\n"
                  "submit 3 -> START 3.1@2\n");
}

static void migrating_guest_is_asked_for_again_when_its_node_joins(void **state)
{
    run(MIGRATING "left 1\n"
                  "join 1 1.1:running -> MIGRATE 1.1@1>2\n"
                  "left 1\n"
                  "join 1 -> MIGRATE 1.1@1>2\n"
                  "left 2\n"
                  "join 2 1.1:running\n"
                  "migrated 1.1\n"
                  "cancel 1 -> STOP 1.1@2\n");
}

static void migrating_guest_is_believed_from_both_ends_and_then_from_its_node(void **state)
{
    run(MIGRATING "node 3 1 100\n"
                  "exited 1.1 on=3\n"
                  "migrated 1.1 failed on=3\n"
                  "released 1.1 on=2\n"
                  "migrated 1.1 on=2\n"
                  "exited 1.1 on=1\n"
                  "gone 1.1 guest-vanished on=1\n"
                  "? 1 RUNNING - running\n"
                  "exited 1.1 on=2 -> RELEASE 1.1@2\n"
                  "released 1.1 on=1\n"
                  "? 1 COMPLETED - releasing\n"
                  "released 1.1 on=2\n"
                  "? 1 COMPLETED - none\n");
    run(MIGRATING "exited 1.1 on=2 -> RELEASE 1.1@2 RELEASE 1.1@1\n");
}

static void migrating_guest_of_a_lost_node_is_fenced(void **state)
{
    run(MIGRATING "left 1\n"
                  "at 100\n"
                  "timer -> RELEASE 1.1@2 FENCE 1.1@1\n"
                  "fenced 1.1\n"
                  "released 1.1 -> START 1.2@2\n");
}

static void migration_to_a_node_that_got_lost_ends_there(void **state)
{
    run(MIGRATING "left 2\n"
                  "at 61\n"
                  "timer\n"
                  "migrated 1.1 -> FENCE 1.1@2\n"
                  "undrain 1\n"
                  "fenced 1.1 -> START 1.2@1\n");
}

static void cancel_during_migration_stops_where_it_arrives(void **state)
{
    run(MIGRATING "cancel 1 -> STOP 1.1@1\n"
                  "migrated 1.1 -> STOP 1.1@2\n"
                  "exited 1.1 -> RELEASE 1.1@2\n");
}

/* --- promotion, balancing ------------------------------------------------------------------- */

static void promotion_moves_to_where_there_is_room(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=9000 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "node 2 4 1000\n"
                  "at 60\n"
                  "timer\n" /* the first round wants it */
                  "at 120\n"
                  "timer -> MIGRATE 2.1@1>2\n"
                  "migrated 2.1\n"
                  "at 180\n"
                  "timer\n");
}

/* It takes 2.5 s, and 200 s are left in the second round. */
static void promotion_is_for_who_has_time_left_for_it(void **state)
{
    const char *two_rounds =
        IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=300 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "node 2 4 1000\n"
                  "at 60\n"
                  "timer\n"
                  "at 120\n";
    g_autofree char *moves = g_strconcat(two_rounds, "timer -> MIGRATE 2.1@1>2\n", NULL);
    g_autofree char *stays = g_strconcat(two_rounds, "timer\n", NULL);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVE_WORTH_PERMILLE, 80000, moves);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVE_WORTH_PERMILLE, 80001, stays);
}

/* 2 has grown from 100 to 500 MiB, was saved with them, and has them in the slack of 1. */
#define LARGER_IN_SLACK                                                                            \
    "node 1 4 1000\n"                                                                              \
    "submit 2 v=1 m=100 mmax=500 limit=560 slack may-move may-checkpoint -> START 2.1@1\n"         \
    "running 2.1\n"                                                                                \
    "resize 2 m=500 -> RESIZE 2.1@1=1/500\n"                                                       \
    "resized 2.1\n"                                                                                \
    "freeze 2 disk -> CHECKPOINT 2.1@1\n"                                                          \
    "checkpointed 2.1 stored=30 -> RELEASE 2.1@1\n"                                                \
    "released 2.1\n"                                                                               \
    "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"                                             \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=1000 mem=300\n"                                                                \
    "thaw 2 -> RESTORE 2.2@1~\n"                                                                   \
    "running 2.2\n"

/* It takes 2.45 s, and 220 s are left in the second round after its cooldown. */
static void promotion_of_a_grown_guest_copies_all_that_it_has(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVE_WORTH_PERMILLE, 90000,
                          LARGER_IN_SLACK "report 2.2 cpu=1000 mem=400 left=100 touched=450\n"
                                          "node 2 4 1000\n"
                                          "at 300\n"
                                          "timer\n"
                                          "at 360\n"
                                          "timer\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVE_WORTH_PERMILLE, 80000,
                          LARGER_IN_SLACK "report 2.2 cpu=1000 mem=400 left=100 touched=450\n"
                                          "node 2 4 1000\n"
                                          "at 300\n"
                                          "timer\n"
                                          "at 360\n"
                                          "timer -> MIGRATE 2.2@1>2\n");
}

/* It may need 565 MiB (500, 1 for headers, 64 beside) of half of what there is, and 3 may need 135. */
static void slack_keeps_to_the_room_that_storage_has(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 100000,
                          LARGER_IN_SLACK "storage room=1398\n"
                                          "submit 3 v=1 m=71 slack may-checkpoint\n"
                                          "storage room=1380\n"
                                          "storage room=1400 -> START 3.1@1~\n");
}

/* Of 729 MiB 30 are taken, and it may need 565. */
static void slack_of_a_grown_guest_keeps_space_for_all_that_it_has(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 729,
                          LARGER_IN_SLACK "submit 3 v=1 m=71 slack may-checkpoint\n"
                                          "submit 4 v=1 m=70 slack may-checkpoint -> START 4.1@1~\n"
                                          "exited 2.2 -> RELEASE 2.2@1\n"
                                          "released 2.2 -> START 3.1@1~\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 729,
                          LARGER_IN_SLACK
                          "restart\n"
                          "join 1 1.1:running 2.2:running\n"
                          "at 40\n"
                          "report 1.1 cpu=1000 mem=300\n"
                          "report 2.2 cpu=1000 mem=100 left=400\n"
                          "submit 3 v=1 m=71 slack may-checkpoint\n"
                          "submit 4 v=1 m=70 slack may-checkpoint -> START 4.1@1~\n");
}

/* 2 is in slack, and could not be backed in the instant in which all other room became free. */
#define BOOTED_MEANWHILE                                                                           \
    IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=9000 -> START 2.1@1~\n"                     \
              "exited 1.1 -> RELEASE 1.1@1\n"                                                      \
              "released 1.1\n"                                                                     \
              "running 2.1\n"                                                                      \
              "at 60\n"

/* Who could only be moved needs none. */
static void slack_of_who_is_not_checkpointed_needs_no_space(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 0,
                          IDLE_NODE "submit 2 v=1 m=100 slack may-checkpoint\n"
                                    "submit 3 v=1 m=100 slack may-move -> START 3.1@1~\n");
    core_script_run_tuned(BERTH_FEATURE_ALL & ~BERTH_FEATURE_CHECKPOINT,
                          BERTH_TUNING_CHECKPOINT_SPACE_MIB, 0,
                          IDLE_NODE "submit 2 v=1 m=100 slack may-move may-checkpoint "
                                    "-> START 2.1@1~\n");
}

static void promotion_in_place_is_made_up_for_in_the_next_round(void **state)
{
    run(BOOTED_MEANWHILE "timer -> RESIZE 2.1@1\n"
                         "resized 2.1\n"
                         "at 120\n"
                         "timer\n");
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=9000 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "freeze 2 -> FREEZE 2.1@1~\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "frozen 2.1\n"
                  "at 60\n"
                  "timer -> RESIZE 2.1@1\n");
    /* Rather than that it moves; nor in the way of who is planned. */
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=9000 -> START 2.1@1~\n"
                  "node 2 2 600\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "running 2.1\n"
                  "at 60\n"
                  "timer -> RESIZE 2.1@1\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION, BOOTED_MEANWHILE "timer\n");
}

static void promotion_in_a_restart_stays_one(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=9000 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "node 2 4 1000\n"
                  "at 60\n"
                  "timer\n"
                  "at 120\n"
                  "timer -> MIGRATE 2.1@1>2\n"
                  "restart guests\n"
                  "join 2\n"
                  "join 1 1.1:running 2.1:running -> MIGRATE 2.1@1>2\n"
                  "migrated 2.1\n"
                  /* Nobody is backed there beside it. */
                  "submit 3 m=501\n");
}

static void promotion_delays_no_planned_start(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint limit=9000 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "submit 3 v=4 m=1000 limit=10\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> CHECKPOINT 2.1@1~\n"
                  "checkpointed 2.1 -> RELEASE 2.1@1\n"
                  "released 2.1 -> START 3.1@1\n");
}

/* --- starvation ----------------------------------------------------------------------------- */

/* Job 2 is in slack on node 1, and lost so many of 20 s; all of node 2 is reserved, and used as said. */
static void play_starved(guint seconds, const char *usage, const char *then)
{
    g_autofree char *script =
        g_strdup_printf(IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=9000 -> START 2.1@1~\n"
                                  "running 2.1\n"
                                  "node 2 4 1000\n"
                                  "submit 3 v=4 m=1000 limit=9000 -> START 3.1@2\n"
                                  "running 3.1\n"
                                  "at 40\n"
                                  "report 3.1 %s mem=300\n"
                                  "report 2.1 cpu=100 mem=100 starved=%u\n"
                                  "at 60\n"
                                  "timer\n"
                                  "at 120\n"
                                  "timer%s\n",
                        usage, seconds, then);
    run(script);
}

static void starved_guest_moves_to_where_cpu_is_free(void **state)
{
    play_starved(16, "cpu=2000", " -> MIGRATE 2.1@1>2~\nop 2 starved");
    play_starved(15, "cpu=2000", "");
    play_starved(16, "cpu=2001", "");
}

static void frozen_guest_is_not_moved_for_want_of_cpu(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=9000 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "node 2 4 1000\n"
                  "submit 3 v=4 m=1000 limit=9000 -> START 3.1@2\n"
                  "running 3.1\n"
                  "at 40\n"
                  "report 3.1 cpu=2000 mem=300\n"
                  "report 2.1 cpu=100 mem=490 left=5 psi=500 starved=16 -> FREEZE 2.1@1~\n"
                  "frozen 2.1\n"
                  "at 60\n"
                  "timer\n"
                  "at 400\n"
                  "timer\n"
                  "at 460\n"
                  "timer\n");
}

/* Each wants two vCPUs, and less than three are free on node 2. (Balancing would move one for its own reasons.) */
static void starved_guests_do_not_move_to_the_same_vcpus(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALANCING,
             "node 1 8 2000\n"
             "submit 1 v=8 m=2000 limit=100000 nodes=1 -> START 1.1@1\n"
             "running 1.1\n"
             "at 20\n"
             "report 1.1 cpu=4000 mem=300\n"
             "submit 2 v=2 m=200 slack may-move limit=9000 -> START 2.1@1~\n"
             "running 2.1\n"
             "submit 3 v=2 m=200 slack may-move limit=9000 -> START 3.1@1~\n"
             "running 3.1\n"
             "node 2 5 1000\n"
             "submit 4 v=5 m=500 limit=9000 nodes=2 -> START 4.1@2\n"
             "running 4.1\n"
             "at 40\n"
             "report 4.1 cpu=2000 mem=300\n"
             "report 1.1 cpu=8000 mem=300\n"
             "report 2.1 cpu=100 mem=100 left=100 starved=18\n"
             "report 3.1 cpu=100 mem=100 left=100 starved=18\n"
             "at 60\n"
             "timer\n"
             "at 120\n"
             "timer -> MIGRATE 2.1@1>2~\n");
}

#define STARVES_FOR_HOURS(waiting)                                                                 \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=4 m=1000 limit=90000 -> START 1.1@1\n"                                             \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=1000 mem=300\n" waiting                                                        \
    "submit 3 v=2 m=400 slack may-checkpoint limit=90000 -> START 3.1@1~\n"                        \
    "running 3.1\n"                                                                                \
    "at 40\n"                                                                                      \
    "report 3.1 cpu=100 mem=100 left=100 starved=18\n"                                             \
    "at 14000\n"                                                                                   \
    "report 1.1 cpu=1000 mem=300\n"                                                                \
    "report 3.1 cpu=100 mem=100 left=100 starved=13900\n"                                          \
    "timer\n"                                                                                      \
    "at 14500\n"                                                                                   \
    "report 3.1 cpu=100 mem=100 left=100 starved=490\n"

/* Later jobs would get all room that comes free, and it none. It has its turn, and is not let into slack before. */
static void starved_guest_waits_for_a_backed_start_if_it_is_first(void **state)
{
    run(STARVES_FOR_HOURS("") "submit 4 v=4 m=600 limit=900\n"
                              "timer -> CHECKPOINT 3.1@1~\n"
                              "checkpointed 3.1 -> RELEASE 3.1@1\n"
                              "? 3 PENDING starved releasing\n"
                              "released 3.1\n"
                              "at 20000\n"
                              "report 1.1 cpu=100 mem=300\n"
                              "exited 1.1 -> RELEASE 1.1@1\n"
                              "released 1.1 -> RESTORE 3.2@1\n");
    /* it stood still, and nobody knows yet what it gets from now on */
    run(STARVES_FOR_HOURS("") "submit 4 v=4 m=600 limit=900\n"
                              "freeze 3 -> FREEZE 3.1@1~\n"
                              "frozen 3.1\n"
                              "thaw 3 -> THAW 3.1@1~\n"
                              "thawed 3.1\n"
                              "at 14900\n"
                              "timer\n");
    run(STARVES_FOR_HOURS("") "timer\n"); /* nobody waits who could be preferred to it */
    run(STARVES_FOR_HOURS("submit 2 v=4 m=600 limit=900\n") "timer\n"); /* its turn has not come */
    run(STARVES_FOR_HOURS("") "submit 4 v=4 m=600 limit=900\n"
                              "timer -> CHECKPOINT 3.1@1~\n"
                              "checkpointed 3.1 failed\n"
                              "timer\n"
                              "at 14900\n"
                              "report 3.1 cpu=100 mem=100 left=100 starved=390\n"
                              "timer -> CHECKPOINT 3.1@1~\n");
}

/* Also what is still to leave when the scheduler restarts, and what has left and boots for its start then. */
static void starved_guest_waits_for_a_backed_start_over_a_restart(void **state)
{
    run(STARVES_FOR_HOURS("") "submit 4 v=4 m=600 limit=900\n"
                              "timer -> CHECKPOINT 3.1@1~\n"
                              "checkpointed 3.1 -> RELEASE 3.1@1\n"
                              "restart guests\n"
                              "join 1 1.1:running -> RELEASE 3.1@1\n"
                              "released 3.1\n"
                              "report 1.1 cpu=100 mem=300\n"
                              "at 15000\n"
                              "report 1.1 cpu=100 mem=300\n"
                              "timer\n"
                              "at 15100\n"
                              "timer\n"
                              "exited 1.1 -> RELEASE 1.1@1\n"
                              "released 1.1 -> RESTORE 3.2@1\n");
    run(STARVES_FOR_HOURS("node 2 4 1000\n"
                          "submit 7 v=4 m=1000 limit=90000 nodes=2 -> START 7.1@2\n"
                          "running 7.1\n") "submit 4 v=4 m=600 limit=900\n"
                                           "timer -> CHECKPOINT 3.1@1~\n"
                                           "checkpointed 3.1 -> RELEASE 3.1@1\n"
                                           "released 3.1\n"
                                           "exited 1.1 -> RELEASE 1.1@1\n"
                                           "released 1.1 -> RESTORE 3.2@1\n"
                                           "cancel 4\n"
                                           "restart guests\n"
                                           "submit 6 p=5 v=4 m=600 limit=900 nodes=1\n"
                                           "join 2 7.1:running\n"
                                           "join 1 -> RELEASE 3.2@1\n"
                                           "released 3.2 -> START 6.1@1\n"
                                           "at 15000\n"
                                           "report 7.1 cpu=100 mem=100\n"
                                           "timer\n"
                                           "at 15100\n"
                                           "report 7.1 cpu=100 mem=100\n"
                                           "timer\n");
}

/* Rounds go on although nobody starts. */
static void promotion_by_a_move_goes_on_after_a_restart(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 nodes=1 -> START 1.1@1\n"
        "submit 2 v=4 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "submit 3 v=2 m=500 limit=9000 slack may-move -> START 3.1@1~\n"
        "running 3.1\n"
        "at 40\n"
        "report 3.1 cpu=100 mem=100\n"
        "restart guests\n"
        "join 1 1.1:running 3.1:running\n"
        "join 2 2.1:exited -> RELEASE 2.1@2\n"
        "released 2.1\n"
        "next 100\n"
        "at 100\n"
        "timer\n"
        "at 160\n"
        "timer -> MIGRATE 3.1@1>2\n");
}

/* A task of its array goes on with less, and they are of a class that starts with so much: what is looked for is all
 * that it has. */
static void promotion_by_a_move_backs_all_that_a_guest_has(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 9 v=4 m=1000 limit=90000 nodes=1 -> START 9.1@1\n"
        "submit 8 v=2 m=500 limit=90000 nodes=2 -> START 8.1@2\n"
        "submit 1 array=2 v=2 m=500 slack may-move may-checkpoint limit=90000 -> START 1.1@2\n"
        "running 9.1\n"
        "running 8.1\n"
        "running 1.1\n"
        "resize 1 v=1 m=200 -> RESIZE 1.1@2=1/200\n"
        "resized 1.1\n"
        "checkpoint 1 -> CHECKPOINT 1.1@2#1\n"
        "checkpointed 1.1\n"
        "at 20\n"
        "report 9.1 cpu=1000 mem=300\n"
        "timer\n"
        "at 60\n"
        "timer -> START 1/1.1@1~\n"
        "running 1/1.1\n"
        "at 100\n"
        "report 1/1.1 cpu=100 mem=100 left=300\n"
        "restore 1 from=1 epoch=1 ran=0 v=1 m=200 -> RELEASE 1.1@2\n"
        "released 1.1 -> RESTORE 1.2@2\n" /* which leaves 1 vCPU and 300 MiB there */
        "running 1.2\n"
        "at 500\n"
        "timer\n"
        "at 560\n"
        "timer\n"
        "exited 8.1 -> RELEASE 8.1@2\n"
        "released 8.1\n"
        "at 620\n"
        "timer\n"
        "at 680\n"
        "timer -> MIGRATE 1/1.1@1>2\n");
}

/* To another one that has room; also where its job names those that it may use. */
static void refused_move_is_made_to_another_node(void **state)
{
    static const char *const named[] = {"", "nodes=1,2,3"};
    for (guint i = 0; i < G_N_ELEMENTS(named); i++) {
        g_autofree char *script =
            g_strdup_printf("node 1 4 1000\n"
                            "node 2 4 1000\n"
                            "node 3 4 1000\n"
                            "submit 1 v=4 m=1000 limit=10000 nodes=1 -> START 1.1@1\n"
                            "submit 2 v=4 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"
                            "submit 5 v=4 m=1000 limit=10000 nodes=3 -> START 5.1@3\n"
                            "running 1.1\n"
                            "running 2.1\n"
                            "running 5.1\n"
                            "at 20\n"
                            "report 1.1 cpu=1000 mem=300\n"
                            "submit 3 v=2 m=500 limit=10000 may-move slack %s -> START 3.1@1~\n"
                            "running 3.1\n"
                            "report 2.1 cpu=1000 mem=300\n"
                            "report 5.1 cpu=1000 mem=310\n"
                            "at 40\n"
                            "report 3.1 cpu=1000 mem=400 left=100\n"
                            "report 1.1 cpu=1000 mem=900 -> MIGRATE 3.1@1>2~\n"
                            "migrated 3.1 failed\n"
                            "at 110\n"
                            "report 1.1 cpu=1000 mem=900 -> MIGRATE 3.1@1>3~\n",
                            named[i]);
        run(script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(migrating_guest_that_ends_is_released_at_both_ends),
        cmocka_unit_test(migrating_guest_is_asked_for_again_when_its_node_joins),
        cmocka_unit_test(migrating_guest_is_believed_from_both_ends_and_then_from_its_node),
        cmocka_unit_test(migrating_guest_of_a_lost_node_is_fenced),
        cmocka_unit_test(migration_to_a_node_that_got_lost_ends_there),
        cmocka_unit_test(cancel_during_migration_stops_where_it_arrives),
        cmocka_unit_test(promotion_moves_to_where_there_is_room),
        cmocka_unit_test(promotion_is_for_who_has_time_left_for_it),
        cmocka_unit_test(promotion_of_a_grown_guest_copies_all_that_it_has),
        cmocka_unit_test(slack_keeps_to_the_room_that_storage_has),
        cmocka_unit_test(slack_of_a_grown_guest_keeps_space_for_all_that_it_has),
        cmocka_unit_test(slack_of_who_is_not_checkpointed_needs_no_space),
        cmocka_unit_test(promotion_in_place_is_made_up_for_in_the_next_round),
        cmocka_unit_test(promotion_in_a_restart_stays_one),
        cmocka_unit_test(promotion_delays_no_planned_start),
        cmocka_unit_test(starved_guest_moves_to_where_cpu_is_free),
        cmocka_unit_test(frozen_guest_is_not_moved_for_want_of_cpu),
        cmocka_unit_test(starved_guests_do_not_move_to_the_same_vcpus),
        cmocka_unit_test(starved_guest_waits_for_a_backed_start_if_it_is_first),
        cmocka_unit_test(starved_guest_waits_for_a_backed_start_over_a_restart),
        cmocka_unit_test(promotion_by_a_move_goes_on_after_a_restart),
        cmocka_unit_test(promotion_by_a_move_backs_all_that_a_guest_has),
        cmocka_unit_test(refused_move_is_made_to_another_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
