/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that operators cordon and drain: who comes, who leaves, what is told, and what a restart keeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script.h"

#define FEATURES (BERTH_FEATURE_MIGRATION | BERTH_FEATURE_CHECKPOINT)

static void run(const char *script)
{
    BerthCoreConfig config = core_script_config;
    config.policy = BERTH_POLICY_CONSERVATIVE;
    core_script_run(&config, script);
}

static void run_moving(const char *script)
{
    core_script_run_tuned(FEATURES, BERTH_TUNING_SETTLE_USEC, 10 * (gint64)G_USEC_PER_SEC, script);
}

static void cordoned_node_gets_no_guests_and_keeps_its_own(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "cordon 1\n"
        "admits 1 cordoned\n"
        "submit 2 limit=100\n"
        "why 2 node-unavailable\n"
        "node 2 8 1000 -> START 2.1@2\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "submit 3 nodes=1\n"
        "why 3 node-unavailable\n"
        "undrain 1 -> START 3.1@1\n"
        "admits 1 open\n");
}

static void cordoned_node_moves_nobody_and_drained_one_does(void **state)
{
    run_moving("node 1 8 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "node 2 8 1000\n"
               "cordon 1\n"
               "at 100\n"
               "timer\n"
               "drain 1 -> MIGRATE 1.1@1>2\n"
               "admits 1 draining\n"
               "migrated 1.1\n"
               "admits 1 draining empty\n");
}

/* What it began with has no room there. */
static void drained_node_moves_who_gave_something_back(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 v=4 m=800 limit=5000 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "resize 1 v=1 m=400 -> RESIZE 1.1@1=1/400\n"
               "resized 1.1\n"
               "node 2 4 1000\n"
               "submit 2 v=3 m=500 limit=5000 nodes=2 -> START 2.1@2\n"
               "running 2.1\n"
               "drain 1 -> MIGRATE 1.1@1>2\n");
}

/* Two at a time may move: a third does not wait for a round. */
static void drained_node_moves_the_next_as_soon_as_one_has_moved(void **state)
{
    run_moving("node 1 8 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "submit 2 limit=500 may-move -> START 2.1@1\n"
               "submit 3 limit=500 may-move -> START 3.1@1\n"
               "running 1.1\n"
               "running 2.1\n"
               "running 3.1\n"
               "node 2 8 1000\n"
               "drain 1 -> MIGRATE 1.1@1>2 MIGRATE 2.1@1>2\n"
               "at 5\n"
               "migrated 1.1 failed -> MIGRATE 3.1@1>2\n"
               "at 6\n"
               "migrated 2.1\n"
               "at 65\n"
               "timer -> MIGRATE 1.1@1>2\n");
}

/* Nor does where they go get more at a time than its link takes. */
static void drains_keep_the_cap_of_where_guests_go(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 v=2 limit=5000 may-move -> START 1.1@1\n"
               "submit 2 v=2 limit=5000 may-move -> START 2.1@1\n"
               "running 1.1\n"
               "running 2.1\n"
               "node 2 2 1000\n"
               "submit 3 v=2 limit=5000 may-move -> START 3.1@2\n"
               "running 3.1\n"
               "node 3 8 1000\n"
               "drain 1 -> MIGRATE 1.1@1>3 MIGRATE 2.1@1>3\n"
               "drain 2\n"
               "migrated 1.1 -> MIGRATE 3.1@2>3\n");
}

/* Neither does one that is saved wait for a round, nor one of another node that is drained. */
static void drained_nodes_save_the_next_as_soon_as_one_is_saved(void **state)
{
    run_moving("node 1 6 1000\n"
               "node 2 2 1000\n"
               "submit 1 v=2 limit=5000 may-checkpoint nodes=1 -> START 1.1@1\n"
               "submit 2 v=2 limit=5000 may-checkpoint nodes=1 -> START 2.1@1\n"
               "submit 3 v=2 limit=5000 may-checkpoint nodes=1 -> START 3.1@1\n"
               "submit 4 v=2 limit=5000 may-checkpoint nodes=2 -> START 4.1@2\n"
               "running 1.1\n"
               "running 2.1\n"
               "running 3.1\n"
               "running 4.1\n"
               "drain 1\n"
               "drain 2\n"
               "at 60\n"
               "timer -> CHECKPOINT 1.1@1 CHECKPOINT 2.1@1\n"
               "at 61\n"
               "checkpointed 1.1 stored=50 -> RELEASE 1.1@1 CHECKPOINT 3.1@1\n"
               "exited 2.1 -> RELEASE 2.1@1 CHECKPOINT 4.1@2\n"
               "checkpointed 3.1 stored=50 -> RELEASE 3.1@1\n"
               "checkpointed 4.1 stored=50 -> RELEASE 4.1@2\n");
}

/* It is in the midst of something else when the drain begins. */
static void drained_guest_leaves_when_it_is_done_with_what_it_is_at(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 v=2 limit=5000 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "node 2 4 1000\n"
               "freeze 1 -> FREEZE 1.1@1\n"
               "drain 1\n"
               "at 5\n"
               "frozen 1.1 failed -> MIGRATE 1.1@1>2\n");
}

/* Which moves nobody itself: two are saved there. */
static void drain_goes_on_when_a_node_that_takes_its_guests_has_a_turn_left(void **state)
{
    run_moving("node 1 8 1000\n"
               "submit 1 v=2 limit=5000 may-checkpoint nodes=1 -> START 1.1@1\n"
               "submit 2 v=2 limit=5000 may-checkpoint nodes=1 -> START 2.1@1\n"
               "running 1.1\n"
               "running 2.1\n"
               "node 2 2 1000\n"
               "cordon 1\n"
               "submit 3 v=2 limit=5000 may-move nodes=1,2 -> START 3.1@2\n"
               "running 3.1\n"
               "undrain 1\n"
               "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
               "checkpoint 2 -> CHECKPOINT 2.1@1#1\n"
               "drain 2\n"
               "at 5\n"
               "checkpointed 1.1 stored=50 -> MIGRATE 3.1@2>1\n");
}

/* A minute, which may begin just after a round. */
static void drain_tries_again_when_its_guest_has_rested(void **state)
{
    run_moving("node 1 8 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "node 2 8 1000\n"
               "drain 1 -> MIGRATE 1.1@1>2\n"
               "at 61\n"
               "timer\n"
               "migrated 1.1 failed\n"
               "at 120\n"
               "timer\n"
               "at 121\n"
               "timer -> MIGRATE 1.1@1>2\n");
}

/* Its guests cannot be told to leave: nothing is held for them elsewhere meanwhile. */
static void drained_node_that_is_away_moves_its_guests_when_it_is_back(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "node 2 4 1000\n"
               "left 1\n"
               "drain 1\n"
               "submit 2 v=4 m=1000 nodes=2 -> START 2.1@2\n"
               "exited 2.1 -> RELEASE 2.1@2\n"
               "released 2.1\n"
               "join 1 1.1:running -> MIGRATE 1.1@1>2\n");
}

/* The stop waited for the node that it has left. */
static void guest_that_leaves_a_node_that_is_away_is_stopped_where_it_is(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "node 2 4 1000\n"
               "drain 1 -> MIGRATE 1.1@1>2\n"
               "left 1\n"
               "cancel 1\n"
               "migrated 1.1 on=2 -> STOP 1.1@2\n"
               "? 1 RUNNING none stopping\n");
}

/* Nothing else has room: it waits for that for 60 s. */
static void drained_guest_without_a_place_is_checkpointed(void **state)
{
    run_moving("node 1 4 1000\n"
               "node 2 1 1000\n"
               "submit 1 v=2 limit=5000 may-move may-checkpoint -> START 1.1@1\n"
               "running 1.1\n"
               "drain 1\n"
               "next 60\n"
               "at 59\n"
               "timer\n"
               "at 60\n"
               "timer -> CHECKPOINT 1.1@1\n"
               "checkpointed 1.1 stored=50 -> RELEASE 1.1@1\n"
               "released 1.1\n"
               "admits 1 draining empty\n"
               "? 1 PENDING drain none\n"
               "saved 1 1 epoch=1 ran=60 stored=50\n"
               "node 3 4 1000 -> RESTORE 1.2@3\n");
}

/* It can neither be moved nor saved before. */
static void drained_guest_that_boots_leaves_when_it_runs(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 v=2 limit=5000 may-move -> START 1.1@1\n"
               "submit 2 v=2 limit=5000 may-checkpoint nodes=1 -> START 2.1@1\n"
               "node 2 2 1000\n"
               "drain 1\n"
               "at 5\n"
               "running 1.1 -> MIGRATE 1.1@1>2\n"
               "at 7\n"
               "running 2.1\n"
               "at 66\n"
               "timer\n"
               "at 67\n"
               "timer -> CHECKPOINT 2.1@1\n");
}

static void drained_guest_waits_for_a_place_first(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 v=2 limit=5000 may-move may-checkpoint -> START 1.1@1\n"
               "running 1.1\n"
               "drain 1\n"
               "next 60\n"
               "at 30\n"
               "node 2 4 1000\n"
               "at 60\n"
               "timer -> MIGRATE 1.1@1>2\n");
}

/* ... and cannot be checkpointed either, at first. */
static void drained_guest_that_fails_to_move_is_checkpointed(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 v=2 limit=50000 may-move may-checkpoint -> START 1.1@1\n"
               "running 1.1\n"
               "node 2 4 1000\n"
               "drain 1 -> MIGRATE 1.1@1>2\n"
               "migrated 1.1 failed\n"
               "at 60\n"
               "timer -> MIGRATE 1.1@1>2\n"
               "migrated 1.1 failed\n"
               "at 180\n"
               "timer -> MIGRATE 1.1@1>2\n"
               "migrated 1.1 failed\n"
               "at 420\n"
               "timer -> CHECKPOINT 1.1@1\n"
               "checkpointed 1.1 failed\n"
               "at 900\n"
               "timer -> MIGRATE 1.1@1>2\n"
               "migrated 1.1 failed\n"
               "at 1860\n"
               "timer -> CHECKPOINT 1.1@1\n");
}

static void drained_guest_is_checkpointed_after_as_many_failures_as_the_site_says(void **state)
{
    core_script_run_tuned(FEATURES, BERTH_TUNING_DRAIN_FAILURES_MAX, 1,
                          "node 1 4 1000\n"
                          "submit 1 v=2 limit=50000 may-move may-checkpoint -> START 1.1@1\n"
                          "running 1.1\n"
                          "node 2 4 1000\n"
                          "drain 1 -> MIGRATE 1.1@1>2\n"
                          "migrated 1.1 failed\n"
                          "at 60\n"
                          "timer -> CHECKPOINT 1.1@1\n");
}

static void drained_guest_that_may_only_be_there_is_checkpointed(void **state)
{
    run_moving("node 1 4 1000\n"
               "node 2 4 1000\n"
               "submit 1 nodes=1 limit=5000 may-move may-checkpoint -> START 1.1@1\n"
               "submit 2 nodes=1 limit=5000 may-move -> START 2.1@1\n"
               "running 1.1\n"
               "running 2.1\n"
               "drain 1\n"
               "at 60\n"
               "timer -> CHECKPOINT 1.1@1\n"
               "checkpointed 1.1 -> RELEASE 1.1@1\n"
               "released 1.1\n"
               "why 1 node-unavailable\n"
               "undrain 1 -> RESTORE 1.2@1\n");
}

static void drained_node_is_told_to_be_empty_when_its_last_guest_is_removed(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "drain 1\n"
        "admits 1 draining\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "admits 1 draining\n"
        "exited 2.1 -> RELEASE 2.1@1\n"
        "admits 1 draining\n"
        "released 2.1\n"
        "admits 1 draining empty\n");
}

static void drained_empty_node_is_told_so_at_once(void **state)
{
    run("node 1 8 1000\n"
        "drain 1\n"
        "admits 1 draining empty\n");
}

static void drained_node_is_empty_when_its_last_stray_is_removed(void **state)
{
    run("node 1 8 1000\n"
        "left 1\n"
        "drain 1\n"
        "join 1 7.3:running -> RELEASE 7.3@1\n"
        "admits 1 draining\n"
        "released 7.3\n"
        "admits 1 draining empty\n");
}

static void drained_node_whose_host_dies_is_empty_when_its_guests_are_fenced(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 limit=500 -> START 1.1@1\n"
        "running 1.1\n"
        "drain 1\n"
        "left 1\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "admits 1 draining\n"
        "fenced 1.1\n"
        "admits 1 draining empty\n"
        "? 1 PENDING requeued none\n"
        "why 1 node-unavailable\n");
}

static void cordon_ends_a_drain_and_keeps_the_node_closed(void **state)
{
    run_moving("node 1 8 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "drain 1\n" /* there is no other node */
               "cordon 1\n"
               "admits 1 cordoned\n"
               "node 2 8 1000\n"
               "at 100\n"
               "timer\n"
               "submit 2 nodes=1\n"
               "undrain 1 -> START 2.1@1\n");
}

static void undrained_node_takes_guests_at_once_and_moves_no_more(void **state)
{
    run_moving("node 1 8 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "drain 1\n"
               "submit 2\n"
               "undrain 1 -> START 2.1@1\n"
               "node 2 8 1000\n"
               "at 100\n"
               "timer\n");
}

static void what_moves_for_a_drain_that_is_ended_stays(void **state)
{
    const char *const ends[] = {"undrain 1", "cordon 1"};
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *script =
            g_strdup_printf("node 1 8 1000\n"
                            "submit 1 limit=500 may-move -> START 1.1@1\n"
                            "running 1.1\n"
                            "submit 2 limit=500 may-move -> START 2.1@1\n"
                            "running 2.1\n"
                            "node 2 8 1000\n"
                            "migrate 2 to=2 op -> MIGRATE 2.1@1>2\n" /* for somebody */
                            "drain 1 -> MIGRATE 1.1@1>2\n"
                            "%s -> STAY 1.1@1\n"
                            "migrated 1.1 failed\n"
                            "at 100\n"
                            "timer\n"
                            "? 1 RUNNING none running\n",
                            ends[i]);
        run_moving(script);
    }
}

static void admission_outlives_a_restart(void **state)
{
    run_moving("node 1 8 1000\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "running 1.1\n"
               "drain 1\n"
               "node 2 8 1000\n"
               "cordon 2\n"
               "restart\n"
               "admits 1 draining\n"
               "admits 2 cordoned empty\n"
               "join 1 1.1:running\n"
               "join 2\n"
               "submit 2 limit=500\n"
               "why 2 node-unavailable\n"
               "at 10\n"
               "undrain 2 -> START 2.1@2\n"
               "at 100\n"
               "timer -> MIGRATE 1.1@1>2\n"
               "migrated 1.1\n"
               "restart\n"
               "admits 1 draining empty\n"
               "join 1\n"
               "submit 3 nodes=1\n"
               "why 3 node-unavailable\n");
}

static void admission_outlives_sessions_and_the_loss_of_the_node(void **state)
{
    run("node 1 8 1000\n"
        "cordon 1\n"
        "left 1\n"
        "at 60\n"
        "timer\n"
        "join 1\n"
        "admits 1 cordoned empty\n"
        "submit 1\n"
        "why 1 node-unavailable\n");
}

static void given_up_node_is_lost_at_once_and_its_jobs_start_elsewhere(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 no-requeue -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "node 2 8 1000\n"
        "give-up 1\n" /* it has a session */
        "left 1\n"
        "next 60\n"
        "at 5\n"
        "give-up 1 -> FENCE 1.1@1 FENCE 2.1@1\n"
        "next never\n"
        "? 2 NODE_FAIL node-lost fencing\n"
        "give-up 1\n"
        "fenced 1.1 -> START 1.2@2\n"
        "fenced 2.1\n"
        "join 1 1.1:running 2.1:running -> RELEASE 1.1@1 RELEASE 2.1@1\n");
}

/* Limit and grace (10 s) of those whose end is waited for, from the start of their commands on. */
static void plan_says_what_moves_and_when_the_others_are_at_their_limits(void **state)
{
    run_moving(
        "node 1 8 2000\n"
        "node 2 1 1\n"
        "submit 1 limit=500 may-move -> START 1.1@1\n"
        "submit 2 limit=300 -> START 2.1@1\n"
        "submit 3 limit=0 -> START 3.1@1\n"
        "submit 4 limit=200 -> START 4.1@1\n"
        "submit 5 limit=400 -> START 5.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "running 2.1\n"
        "running 3.1\n"
        "running 5.1\n"
        "at 30\n"
        "cancel 5 -> STOP 5.1@1\n"
        "leave 1 1.1:no-room:510 2.1:waits:330 3.1:waits:never 4.1:waits:240 5.1:waits:40\n"
        "leave 1 1.1:no-room:510 2.1:waits:330 3.1:waits:never 4.1:waits:240 5.1:waits:40\n"
        "freeze 2 op -> FREEZE 2.1@1\n"
        "frozen 2.1\n"
        "exited 5.1 -> RELEASE 5.1@1\n"
        "leave 1 1.1:no-room:510 2.1:waits:never 3.1:waits:never 4.1:waits:240 5.1:waits:30\n"
        "cordon 2\n"
        "leave 1 1.1:waits:510 2.1:waits:never 3.1:waits:never 4.1:waits:240 5.1:waits:30\n");
}

/* A moment in which others took all of its CPU says nothing of the hours that it has left. */
static void plan_says_what_is_known_of_a_limit(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "leave 1 1.1:waits:110\n"
        "at 20\n"
        "report 1.1 starved=20\n"
        "leave 1 1.1:waits:130\n"
        "at 40\n"
        "report 1.1 starved=10\n"
        "leave 1 1.1:waits:140\n");
}

/* Booting, or in the midst of something else: it moves when that is over, unless it is to end. */
static void plan_says_that_who_cannot_move_yet_moves(void **state)
{
    run_moving("node 1 8 1000\n"
               "node 2 8 1000\n"
               "cordon 2\n"
               "submit 1 limit=500 may-move -> START 1.1@1\n"
               "undrain 2\n"
               "leave 1 1.1:moves:510\n"
               "running 1.1\n"
               "freeze 1 -> FREEZE 1.1@1\n"
               "leave 1 1.1:moves:510\n"
               "cancel 1 -> STOP 1.1@1\n"
               "leave 1 1.1:waits:10\n");
}

/* A move of theirs takes 2 s and 2 s more to copy 2000 MiB, a checkpoint 5 s and 5 s more, after the minute for which
 * there might have been room. Two are under way at a time, at a node and in a small cluster. */
static void plan_says_how_long_it_takes(void **state)
{
    run_moving("node 1 8 8000\n"
               "node 2 1 1\n"
               "empties 1 1 0\n"
               "submit 1 m=2000 limit=500 may-move -> START 1.1@1\n"
               "submit 2 m=2000 limit=500 may-move -> START 2.1@1\n"
               "submit 3 m=2000 limit=500 -> START 3.1@1\n"
               "running 1.1\n"
               "running 2.1\n"
               "running 3.1\n"
               "empties 1 1 4\n"
               "empties 1 2 8\n"
               "submit 4 m=2000 limit=500 may-move -> START 4.1@1\n"
               "running 4.1\n"
               "empties 1 1 8\n"
               "node 3 1 2000\n"
               "submit 5 m=2000 limit=500 may-checkpoint -> START 5.1@3\n"
               "running 5.1\n"
               "empties 3 1 70\n");
    run_moving("node 1 8 8000\n"
               "submit 1 m=2000 limit=500 may-checkpoint signal=30 -> START 1.1@1\n"
               "running 1.1\n"
               "empties 1 1 100\n"
               "freeze 1 op -> FREEZE 1.1@1\n"
               "frozen 1.1\n" /* and gets no signal */
               "empties 1 1 70\n"
               "thaw 1 op -> THAW 1.1@1\n"
               "thawed 1.1\n"
               "freeze 1 disk -> CHECKPOINT 1.1@1\n"
               "empties 1 1 40\n");
}

/* Node 2 has room for the first two of them alone: the third is saved after the minute for which it waits for more, and that
 * takes 6 s. */
static void plan_says_for_whom_there_is_no_room(void **state)
{
    run_moving("node 1 8 4000\n"
               "submit 1 m=400 limit=500 may-move may-checkpoint -> START 1.1@1\n"
               "submit 2 m=400 limit=500 may-move -> START 2.1@1\n"
               "submit 3 m=400 limit=500 may-move may-checkpoint -> START 3.1@1\n"
               "submit 4 m=400 limit=500 may-move -> START 4.1@1\n"
               "running 1.1\n"
               "running 2.1\n"
               "running 3.1\n"
               "running 4.1\n"
               "node 2 8 1000\n"
               "leave 1 1.1:moves:510 2.1:moves:510 3.1:no-room:510 4.1:no-room:510\n"
               "empties 1 1 66\n"
               "node 3 8 900\n"
               "leave 1 1.1:moves:510 2.1:moves:510 3.1:moves:510 4.1:moves:510\n");
}

/* Those that are on their way have their room there, and it is not counted twice; one that has ended waits for nothing. */
static void plan_during_a_drain_says_what_is_done(void **state)
{
    run_moving("node 1 8 4000\n"
               "submit 1 m=400 limit=500 may-move may-checkpoint -> START 1.1@1\n"
               "submit 2 m=400 limit=500 may-move may-checkpoint -> START 2.1@1\n"
               "submit 3 m=400 limit=500 may-move may-checkpoint -> START 3.1@1\n"
               "running 1.1\n"
               "running 2.1\n"
               "running 3.1\n"
               "node 2 8 1000\n"
               "drain 1 -> MIGRATE 1.1@1>2 MIGRATE 2.1@1>2\n"
               "leave 1 1.1:moves:510 2.1:moves:510 3.1:no-room:510\n"
               "exited 3.1 -> RELEASE 3.1@1\n"
               "leave 1 1.1:moves:510 2.1:moves:510 3.1:waits:0\n");
}

#define WITH_SPACE(mib, script)                                                                    \
    core_script_run_tuned(FEATURES, BERTH_TUNING_CHECKPOINT_SPACE_MIB, mib, script)

static void plan_says_for_whose_checkpoint_there_is_no_space(void **state)
{
    WITH_SPACE(600, "node 1 8 4000\n"
                    "submit 1 m=400 limit=500 nodes=1 may-checkpoint -> START 1.1@1\n"
                    "submit 2 m=400 limit=500 nodes=1 may-checkpoint -> START 2.1@1\n"
                    "running 1.1\n"
                    "running 2.1\n"
                    "leave 1 1.1:waits:510 2.1:waits+no-space:510\n"
                    "checkpoint 2 -> CHECKPOINT 2.1@1#1\n" /* for which it is kept */
                    "leave 1 1.1:waits+no-space:510 2.1:waits:510\n");
}

static void drained_guest_for_whose_checkpoint_there_is_no_space_is_told_once(void **state)
{
    WITH_SPACE(300, "node 1 8 4000\n"
                    "submit 1 m=400 limit=5000 nodes=1 may-checkpoint -> START 1.1@1\n"
                    "running 1.1\n"
                    "drain 1\n"
                    "at 60\n"
                    "timer\n"
                    "missed 1 60 drain\n"
                    "at 120\n"
                    "timer\n"
                    "missed 1 60 drain\n"
                    "undrain 1\n"
                    "drain 1\n"
                    "at 180\n"
                    "timer\n"
                    "missed 1 180 drain\n");
}

/* Whoever removes a checkpoint so that there is need not wait for the next minute. */
static void drained_guest_is_saved_as_soon_as_there_is_space(void **state)
{
    WITH_SPACE(600, "node 1 8 4000\n"
                    "node 2 8 4000\n"
                    "submit 1 m=400 limit=5000 nodes=1 may-checkpoint -> START 1.1@1\n"
                    "submit 2 m=400 limit=5000 nodes=2 may-checkpoint -> START 2.1@2\n"
                    "running 1.1\n"
                    "running 2.1\n"
                    "checkpoint 2 -> CHECKPOINT 2.1@2#1\n"
                    "checkpointed 2.1 stored=400\n"
                    "drain 1\n"
                    "at 60\n"
                    "timer\n"
                    "missed 1 60 drain\n"
                    "at 70\n"
                    "checkpoints 2 -> CHECKPOINT 1.1@1\n");
}

static void drained_guest_is_saved_as_soon_as_a_job_leaves_its_space(void **state)
{
    WITH_SPACE(600, "node 1 8 4000\n"
                    "node 2 8 4000\n"
                    "submit 1 m=400 limit=5000 nodes=1 may-checkpoint -> START 1.1@1\n"
                    "submit 2 m=400 limit=5000 nodes=2 may-checkpoint -> START 2.1@2\n"
                    "running 1.1\n"
                    "running 2.1\n"
                    "checkpoint 2 -> CHECKPOINT 2.1@2#1\n"
                    "checkpointed 2.1 stored=400\n"
                    "drain 1\n"
                    "at 60\n"
                    "timer\n"
                    "missed 1 60 drain\n"
                    "at 70\n"
                    "exited 2.1 -> RELEASE 2.1@2\n"
                    "released 2.1 -> CHECKPOINT 1.1@1\n");
}

/* That its last guest found no place for long is no haste for the next, which has just come to a node that is to be
 * emptied. */
static void new_guest_has_all_of_the_patience(void **state)
{
    run_moving("node 1 4 1000\n"
               "submit 1 v=4 m=500 may-checkpoint may-move limit=900000 -> START 1.1@1\n"
               "running 1.1\n"
               "report 1.1 cpu=100 mem=100 left=300\n"
               "drain 1\n"
               "at 100000\n"
               "timer -> CHECKPOINT 1.1@1\n"
               "checkpointed 1.1 -> RELEASE 1.1@1\n"
               "released 1.1\n"
               "node 2 4 1000 -> RESTORE 1.2@2\n"
               "running 1.2\n"
               "at 300000\n"
               "maintenance 1 node=2 from=300000 to=400000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cordoned_node_gets_no_guests_and_keeps_its_own),
        cmocka_unit_test(cordoned_node_moves_nobody_and_drained_one_does),
        cmocka_unit_test(drained_node_moves_who_gave_something_back),
        cmocka_unit_test(drained_node_moves_the_next_as_soon_as_one_has_moved),
        cmocka_unit_test(drained_nodes_save_the_next_as_soon_as_one_is_saved),
        cmocka_unit_test(drained_guest_leaves_when_it_is_done_with_what_it_is_at),
        cmocka_unit_test(drain_goes_on_when_a_node_that_takes_its_guests_has_a_turn_left),
        cmocka_unit_test(drain_tries_again_when_its_guest_has_rested),
        cmocka_unit_test(drains_keep_the_cap_of_where_guests_go),
        cmocka_unit_test(drained_node_that_is_away_moves_its_guests_when_it_is_back),
        cmocka_unit_test(guest_that_leaves_a_node_that_is_away_is_stopped_where_it_is),
        cmocka_unit_test(drained_guest_without_a_place_is_checkpointed),
        cmocka_unit_test(drained_guest_that_boots_leaves_when_it_runs),
        cmocka_unit_test(drained_guest_waits_for_a_place_first),
        cmocka_unit_test(drained_guest_that_fails_to_move_is_checkpointed),
        cmocka_unit_test(drained_guest_is_checkpointed_after_as_many_failures_as_the_site_says),
        cmocka_unit_test(drained_guest_that_may_only_be_there_is_checkpointed),
        cmocka_unit_test(drained_node_is_told_to_be_empty_when_its_last_guest_is_removed),
        cmocka_unit_test(drained_empty_node_is_told_so_at_once),
        cmocka_unit_test(drained_node_is_empty_when_its_last_stray_is_removed),
        cmocka_unit_test(drained_node_whose_host_dies_is_empty_when_its_guests_are_fenced),
        cmocka_unit_test(cordon_ends_a_drain_and_keeps_the_node_closed),
        cmocka_unit_test(undrained_node_takes_guests_at_once_and_moves_no_more),
        cmocka_unit_test(what_moves_for_a_drain_that_is_ended_stays),
        cmocka_unit_test(admission_outlives_a_restart),
        cmocka_unit_test(admission_outlives_sessions_and_the_loss_of_the_node),
        cmocka_unit_test(given_up_node_is_lost_at_once_and_its_jobs_start_elsewhere),
        cmocka_unit_test(plan_says_what_moves_and_when_the_others_are_at_their_limits),
        cmocka_unit_test(plan_says_what_is_known_of_a_limit),
        cmocka_unit_test(plan_says_that_who_cannot_move_yet_moves),
        cmocka_unit_test(plan_says_how_long_it_takes),
        cmocka_unit_test(plan_says_for_whom_there_is_no_room),
        cmocka_unit_test(plan_during_a_drain_says_what_is_done),
        cmocka_unit_test(plan_says_for_whose_checkpoint_there_is_no_space),
        cmocka_unit_test(drained_guest_for_whose_checkpoint_there_is_no_space_is_told_once),
        cmocka_unit_test(drained_guest_is_saved_as_soon_as_there_is_space),
        cmocka_unit_test(drained_guest_is_saved_as_soon_as_a_job_leaves_its_space),
        cmocka_unit_test(new_guest_has_all_of_the_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
