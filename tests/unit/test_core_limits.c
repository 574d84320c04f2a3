/* SPDX-License-Identifier: Apache-2.0 */
/* Guests at the limit of what they have: grown, moved to grow, frozen or ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* Who lacks vCPUs gets them with the first report that says so. */
static void run_at_once(const char *script)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_LIMIT_CPU_USEC, 0, script);
}

static void guest_with_nothing_available_is_grown(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=2 m=400 mmax=550 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 cpu=1000 mem=0 left=0\n" /* not told */
        "report 1.1 cpu=1000 mem=400 left=0 -> RESIZE 1.1@1\n");
}

static void guest_near_its_limit_is_grown_up_to_its_ceiling(void **state)
{
    run_at_once(
        "node 1 4 1000\n"
        "submit 1 v=2 m=400 mmax=550 vmax=3 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 cpu=1000 mem=300 left=100\n"
        "report 1.1 cpu=1000 mem=390 left=10 -> RESIZE 1.1@1\n"
        "report 1.1 cpu=1000 mem=390 left=10\n" /* one thing at a time */
        "submit 2 v=1 m=501\n"                  /* it has 500 now */
        "cancel 2\n"
        "resized 1.1 failed\n"
        "submit 3 v=1 m=501 limit=1 -> START 3.1@1\n"
        "report 1.1 cpu=1000 mem=390 left=10 psi=100 -> FREEZE 1.1@1\n" /* no room to grow */
        "frozen 1.1\n"
        "? 1 SUSPENDED at-limit running\n"
        "report 1.1 cpu=0 mem=390 left=10\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1\n"
        "thaw 1 -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "? 1 RUNNING - running\n"
        "report 1.1 cpu=2000 mem=390 left=10 cpu-psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "report 1.1 cpu=2000 mem=490 left=10 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "report 1.1 cpu=2000 mem=540 left=10 cpu-psi=500\n" /* small, and does not stall */
        "report 1.1 cpu=2000 mem=540 left=10 psi=100\n"     /* perhaps of what it had */
        "at 30\n"
        "report 1.1 cpu=2000 mem=540 left=10 psi=100 -> FREEZE 1.1@1\n"
        "cancel 1 -> STOP 1.1@1\n"
        "exited 1.1 -> RELEASE 1.1@1\n");
}

static void guest_grows_as_far_as_its_user_may_go(void **state)
{
    run_at_once("node 1 4 1000\n"
                "user 1000 m=450 v=2\n"
                "submit 1 v=2 m=400 mmax=800 vmax=4 -> START 1.1@1\n"
                "running 1.1\n"
                "report 1.1 cpu=2000 mem=390 left=10 cpu-psi=500 -> RESIZE 1.1@1\n"
                "holds 1 2 450\n"
                "resized 1.1\n"
                "report 1.1 cpu=2000 mem=440 left=10 cpu-psi=500\n"
                "report 1.1 cpu=1000 mem=440 left=10 psi=100\n" /* others of his may give it back */
                "user 1000\n"
                "report 1.1 cpu=1000 mem=440 left=10 psi=100 -> RESIZE 1.1@1\n"
                "holds 1 2 562\n");
}

static void guest_that_cannot_grow_where_it_is_moves_to_grow(void **state)
{
    const char *full = "node 1 4 1000\n"
                       "node 2 4 400\n"
                       "node 3 4 1000\n"
                       "submit 2 v=2 m=1000 nodes=1 -> START 2.1@1\n"
                       "submit 1 v=2 m=400 mmax=800 may-move nodes=1,2,3 -> START 1.1@2\n"
                       "running 2.1\n"
                       "running 1.1\n";
    g_autofree char *moves = g_strconcat(full,
                                         "report 1.1 cpu=1000 mem=390 left=10 -> MIGRATE 1.1@2>3\n"
                                         "submit 3 v=1 m=501 nodes=3\n" /* 500 are kept for it */
                                         "cancel 3\n"
                                         "migrated 1.1 -> RESIZE 1.1@3\n"
                                         "resized 1.1\n"
                                         "report 1.1 cpu=1000 mem=490 left=10 -> RESIZE 1.1@3\n"
                                         "resized 1.1 failed\n"
                                         "submit 4 v=1 m=500 nodes=3 -> START 4.1@3\n",
                                         NULL);
    g_autofree char *stays =
        g_strconcat(full,
                    "submit 3 v=1 m=501 nodes=3 -> START 3.1@3\n" /* 499 are left of the 500 */
                    "report 1.1 cpu=1000 mem=390 left=10\n"
                    "report 1.1 cpu=1000 mem=390 left=10 psi=100 -> FREEZE 1.1@2\n",
                    NULL);
    run(moves);
    run(stays);
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_GROWTH, stays);
}

static void guest_that_lacks_vcpus_for_long_is_grown_up_to_its_ceiling(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=1 vmax=3 m=400 limit=9000 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=250\n"
        "at 29\n"
        "report 1.1 cpu=800 mem=100 left=300 cpu-psi=250\n"
        "at 30\n"
        "report 1.1 cpu=800 mem=100 left=300 cpu-psi=250 -> RESIZE 1.1@1\n"
        "at 61\n"
        "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=900\n" /* it is not there yet */
        "resized 1.1\n"
        "report 1.1 cpu=1599 mem=100 left=300 cpu-psi=900\n"
        "at 100\n"
        "report 1.1 cpu=1600 mem=100 left=300 cpu-psi=900\n"
        "at 130\n"
        "report 1.1 cpu=1600 mem=100 left=300 cpu-psi=900 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "holds 1 3 400\n"
        "at 140\n"
        "report 1.1 cpu=3000 mem=100 left=300 cpu-psi=900\n"
        "at 200\n"
        "report 1.1 cpu=3000 mem=100 left=300 cpu-psi=900\n"); /* has all that it may have */
}

static void guest_whose_vcpus_do_not_all_work_is_not_grown(void **state)
{
    const char *one = "node 1 4 1000\n"
                      "submit 1 v=1 vmax=2 m=400 limit=9000 -> START 1.1@1\n"
                      "running 1.1\n"
                      "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=900\n"
                      "at 29\n";
    g_autofree char *burst = g_strconcat(one,
                                         "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=249\n"
                                         "at 58\n"
                                         "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=900\n"
                                         "at 87\n"
                                         "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=900\n",
                                         NULL);
    /* By its node, or because that holds it back. */
    g_autofree char *starved =
        g_strconcat(one,
                    "report 1.1 cpu=799 mem=100 left=300 cpu-psi=900 starved=6\n"
                    "at 60\n"
                    "report 1.1 cpu=10 mem=100 left=300 cpu-psi=900\n"
                    "at 90\n"
                    "report 1.1 cpu=10 mem=100 left=300 cpu-psi=900\n"
                    "at 91\n"
                    "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=900\n" /* of before */
                    "at 96\n"
                    "report 1.1 cpu=1000 mem=100 left=300 cpu-psi=100\n",
                    NULL);
    run(burst);
    run(starved);
}

/* It takes nobody in, and what is left of it is left for those who are there. */
static void guest_on_a_cordoned_node_is_grown_there(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=2 m=400 mmax=500 kill limit=9000 may-move nodes=1,2 -> START 1.1@1\n"
        "running 1.1\n"
        "cordon 1\n"
        "report 1.1 cpu=1000 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "at 30\n"
        "report 1.1 cpu=1000 mem=490 left=10 psi=500 -> STOP 1.1@1\n");
    /* Cordoned while it was on its way there to grow. */
    run("node 1 4 1000\n"
        "submit 1 v=2 m=400 mmax=500 kill limit=9000 may-move -> START 1.1@1\n"
        "submit 2 v=2 m=600 limit=9000 -> START 2.1@1\n"
        "running 1.1\n"
        "node 2 4 1000\n"
        "report 1.1 cpu=1000 mem=390 left=10 psi=500 -> MIGRATE 1.1@1>2\n"
        "cordon 2\n"
        "migrated 1.1 -> RESIZE 1.1@2\n");
}

static void guest_in_slack_is_backed_to_grow(void **state)
{
    const char *in_slack =
        IDLE_NODE "submit 2 m=200 mmax=300 kill may-move slack may-checkpoint -> START 2.1@1~\n"
                  "running 2.1\n";
    g_autofree char *elsewhere = g_strconcat(in_slack,
                                             "node 2 1 250\n"
                                             "report 2.1 mem=190 left=10 psi=500 "
                                             "-> MIGRATE 2.1@1>2\n"
                                             "migrated 2.1 -> RESIZE 2.1@2\n"
                                             "resized 2.1\n"
                                             "at 65\n"
                                             "report 2.1 mem=240 left=10 psi=500 -> STOP 2.1@2\n",
                                             NULL);
    g_autofree char *nowhere = g_strconcat(in_slack,
                                           "node 2 1 240\n"
                                           "report 2.1 mem=190 left=10 psi=500 -> STOP 2.1@1\n",
                                           NULL);
    run(elsewhere);
    run(nowhere);
    /* It did not run yet when all of the room was free. */
    run(IDLE_NODE "submit 2 m=200 mmax=300 kill slack may-checkpoint -> START 2.1@1~\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "running 2.1\n"
                  "report 2.1 mem=190 left=10 psi=500 -> RESIZE 2.1@1\n"
                  "resized 2.1\n"
                  "report 2.1 mem=190 left=10 psi=500 -> RESIZE 2.1@1\n"
                  "resized 2.1\n"
                  "report 2.1 mem=240 left=10 psi=500 -> RESIZE 2.1@1\n");
}

/* 2 has grown from 1 vCPU to 2: node 2 has room for one, and 3 is none of its nodes. */
static void grown_guest_is_drained_to_where_all_of_it_has_room(void **state)
{
    run_at_once("node 1 4 4000\n"
                "node 2 4 4000\n"
                "node 3 4 4000\n"
                "submit 1 v=3 nodes=1 limit=10000 -> START 1.1@1\n"
                "submit 2 v=1 vmax=2 may-move nodes=1,2 limit=10000 -> START 2.1@1\n"
                "running 2.1\n"
                "submit 3 v=3 nodes=2 limit=10000 -> START 3.1@2\n"
                "exited 1.1 -> RELEASE 1.1@1\n"
                "released 1.1\n"
                "report 2.1 cpu=1000 mem=10 left=90 cpu-psi=500 -> RESIZE 2.1@1\n"
                "resized 2.1\n"
                "drain 1\n"
                "exited 3.1 -> RELEASE 3.1@2\n"
                "released 3.1\n"
                "undrain 1\n"
                "drain 1 -> MIGRATE 2.1@1>2\n"
                "migrated 2.1\n");
}

static void guest_grows_in_what_there_is_room_for(void **state)
{
    const char *no_vcpus = "node 1 4 1000\n"
                           "submit 1 v=2 m=400 mmax=800 vmax=4 kill -> START 1.1@1\n"
                           "submit 2 v=2 m=100 -> START 2.1@1\n"
                           "running 1.1\n"
                           "report 1.1 cpu=2000 mem=390 left=10 psi=500 cpu-psi=500 "
                           "-> RESIZE 1.1@1\n"
                           "submit 3 v=1 m=400 limit=1\n"
                           "exited 2.1 -> RELEASE 2.1@1\n"
                           "released 2.1 -> START 3.1@1\n";
    const char *no_memory = "node 1 4 1000\n"
                            "submit 1 v=2 m=400 mmax=800 vmax=3 kill -> START 1.1@1\n"
                            "submit 2 v=1 m=600 -> START 2.1@1\n"
                            "running 1.1\n"
                            "report 1.1 cpu=2000 mem=390 left=10 psi=500 cpu-psi=500 "
                            "-> RESIZE 1.1@1\n"
                            "resized 1.1\n"
                            "at 30\n"
                            "report 1.1 cpu=2000 mem=390 left=10 psi=500 cpu-psi=500 "
                            "-> STOP 1.1@1\n";
    run_at_once(no_vcpus);
    run_at_once(no_memory);
}

static void guest_that_will_have_room_waits_for_it(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 2000\n"
        "submit 1 v=1 m=400 mmax=900 may-move kill nodes=1,2 -> START 1.1@1\n"
        "submit 2 v=1 m=450 nodes=1 -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "report 1.1 cpu=100 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "at 60\n"
        "report 1.1 cpu=100 mem=490 left=10\n" /* in its cooldown, and does not stall */
        "? 1 RUNNING - running\n"
        "at 300\n"
        "report 1.1 cpu=100 mem=490 left=10 -> MIGRATE 1.1@1>2\n"
        "migrated 1.1 -> RESIZE 1.1@2\n"
        "resized 1.1\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVES_PER_NODE, 1,
                          "node 1 4 1000\n"
                          "node 2 4 2000\n"
                          "submit 1 v=1 m=500 mmax=900 may-move kill nodes=1,2 -> START 1.1@1\n"
                          "submit 2 v=1 m=500 mmax=900 may-move kill nodes=1,2 -> START 2.1@1\n"
                          "running 1.1\n"
                          "running 2.1\n"
                          "report 1.1 cpu=100 mem=490 left=10 psi=500 -> MIGRATE 1.1@1>2\n"
                          "report 2.1 cpu=100 mem=490 left=10 psi=500\n" /* one move at a time */
                          "? 2 RUNNING - running\n");
}

/* As if there were no room, however much there is; and not tried again at once. */
static void guest_that_does_not_take_more_is_at_its_limit(void **state)
{
    static const struct {
        const char *on_limit, *then;
    } cases[] = {
        {"", " -> FREEZE 1.1@1\n"}, {" kill", " -> STOP 1.1@1\n"}, {" notify", "\nshort 1 60\n"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *script =
            g_strconcat("node 1 4 1000\n"
                        "submit 1 m=400 mmax=800 vmax=2 limit=9000",
                        cases[i].on_limit,
                        " -> START 1.1@1\n"
                        "running 1.1\n"
                        "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
                        "at 60\n"
                        "resized 1.1 failed\n"
                        "report 1.1 mem=390 left=10 psi=99\n" /* it gets along */
                        "report 1.1 mem=390 left=10 psi=100",
                        cases[i].then, NULL);
        run(script);
    }
}

static void guest_that_did_not_take_more_is_tried_again(void **state)
{
    run_at_once("node 1 4 1000\n"
                "submit 1 m=400 mmax=800 vmax=2 notify limit=9000 -> START 1.1@1\n"
                "running 1.1\n"
                "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
                "resized 1.1 failed\n"
                "at 299\n"
                "report 1.1 mem=390 left=10 psi=500\n"
                "report 1.1 cpu=1000 mem=390 left=10 psi=500 cpu-psi=500 "
                "-> RESIZE 1.1@1\n"
                "holds 1 2 400\n"
                "resized 1.1\n"
                "report 1.1 mem=390 left=10 psi=500\n"
                "at 300\n"
                "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
                "holds 1 2 500\n"
                "resized 1.1 failed\n"
                "resize 1 m=600 -> RESIZE 1.1@1=2/600\n" /* who asks for it may */
                "resized 1.1\n"
                "report 1.1 mem=590 left=10 -> RESIZE 1.1@1\n");
}

static void guest_that_was_grown_is_not_grown_again_for_what_it_was_before(void **state)
{
    run("node 1 4 2000\n"
        "submit 1 v=1 m=400 mmax=1000 vmax=2 limit=9000 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "report 1.1 mem=390 left=10 psi=500\n"  /* measured before */
        "report 1.1 mem=390 left=110 psi=500\n" /* has what it needs */
        "holds 1 1 500\n"
        "report 1.1 mem=490 left=10 -> RESIZE 1.1@1\n" /* has not */
        "report 1.1 mem=490 left=135\n"                /* got, and not heard of */
        "resized 1.1\n"
        "report 1.1 mem=620 left=5 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "at 29\n"
        "report 1.1 mem=660 left=121 psi=500\n"
        "at 30\n"
        "report 1.1 mem=660 left=121 psi=500 -> RESIZE 1.1@1\n");
}

/* What presses it is that it is to give back what it does not have. */
static void guest_that_cannot_give_memory_back_is_not_grown_for_that(void **state)
{
    run("node 1 4 2000\n"
        "submit 1 v=1 m=400 mmax=800 limit=9000 on-limit=freeze -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 mem=300 left=100\n"
        "resize 1 m=200 -> RESIZE 1.1@1=1/200\n"
        "report 1.1 mem=300 left=2 psi=500\n"
        "resized 1.1 failed\n"
        "report 1.1 mem=300 left=2 psi=500\n"   /* measured before */
        "report 1.1 mem=300 left=100 psi=300\n" /* has it back */
        "holds 1 1 400\n"
        "at 29\n"
        "report 1.1 mem=300 left=100 psi=100\n"
        "report 1.1 mem=390 left=10 -> RESIZE 1.1@1\n" /* and needs more than that now */
        "holds 1 1 500\n"
        "resized 1.1\n"
        "resize 1 m=420 -> RESIZE 1.1@1=1/420\n"
        "resized 1.1\n"
        "report 1.1 mem=390 left=30 psi=500\n" /* from when it gave that */
        "at 59\n"
        "report 1.1 mem=390 left=30 psi=500 -> RESIZE 1.1@1\n");
}

static void guest_that_cannot_give_memory_back_is_not_frozen_for_that(void **state)
{
    run("node 1 4 2000\n"
        "submit 1 v=1 m=400 limit=9000 on-limit=freeze -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 mem=300 left=100\n"
        "resize 1 m=200 -> RESIZE 1.1@1=1/200\n"
        "resized 1.1 failed\n"
        "report 1.1 mem=300 left=100 psi=500\n"
        "at 29\n"
        "report 1.1 mem=300 left=100 psi=500\n"
        "at 30\n"
        "report 1.1 mem=300 left=100 psi=500 -> FREEZE 1.1@1\n");
}

static void guest_that_fills_its_memory_is_grown_before_it_is_full(void **state)
{
    const char *begins = "node 1 4 2000\n"
                         "submit 1 v=1 m=400 mmax=1000 limit=9000 -> START 1.1@1\n"
                         "running 1.1\n"
                         "at 1\n"
                         "report 1.1 mem=100 left=300\n"
                         "at 2\n";
    g_autofree char *steadily =
        g_strconcat(begins,
                    "report 1.1 mem=200 left=200\n"
                    "report 1.1 mem=220 left=180\n" /* too soon to tell */
                    "at 3\n"
                    "report 1.1 mem=218 left=182 " /* 18 MiB/s: 180, and 4 */
                    "-> RESIZE 1.1@1\n"
                    "holds 1 1 580\n",
                    NULL);
    g_autofree char *slowly = g_strconcat(begins,
                                          "report 1.1 mem=110 left=290\n"
                                          "at 6\n"
                                          "report 1.1 mem=110 left=290\n" /* not measured anew */
                                          "at 7\n"
                                          "report 1.1 mem=200 left=200\n"
                                          "at 17\n"
                                          "report 1.1 mem=290 left=110\n"
                                          "at 18\n"
                                          "report 1.1 mem=310 left=90 -> RESIZE 1.1@1\n"
                                          "holds 1 1 500\n",
                                          NULL);
    g_autofree char *at_once = g_strconcat(begins,
                                           "report 1.1 mem=370 left=30\n"
                                           "at 3\n"
                                           "report 1.1 mem=370 left=30\n"
                                           "at 4\n"
                                           "report 1.1 mem=372 left=28\n",
                                           NULL);
    run(steadily);
    run(slowly);
    run(at_once);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_GROW_USEC, 0,
                          "node 1 4 2000\n"
                          "submit 1 v=1 m=400 mmax=1000 limit=9000 -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 1\n"
                          "report 1.1 mem=100 left=300\n"
                          "at 2\n"
                          "report 1.1 mem=200 left=200\n"
                          "at 3\n"
                          "report 1.1 mem=300 left=100\n"
                          "at 4\n"
                          "report 1.1 mem=380 left=20\n");
}

static void on_limit_is_what_the_job_says(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 m=400 kill -> START 1.1@1\n"
        "submit 2 m=400 notify -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "report 1.1 mem=390 left=10 psi=99\n"
        "report 1.1 mem=390 left=10 psi=100 -> STOP 1.1@1\n"
        "at 5\n"
        "report 2.1 mem=390 left=10 psi=100\n"
        "short 2 5\n"
        "short 1 never\n"
        "exited 1.1 signal=15 -> RELEASE 1.1@1\n"
        "? 1 OUT_OF_MEMORY memory-limit releasing\n");
    run_with(BERTH_FEATURE_ALL & ~(BERTH_FEATURE_FREEZING | BERTH_FEATURE_GROWTH),
             "node 1 4 1000\n"
             "submit 1 m=400 mmax=800 -> START 1.1@1\n"
             "running 1.1\n"
             "report 1.1 mem=390 left=10 psi=100\n"
             "short 1 0\n");
}

static void shortage_is_told_until_there_is_more(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 m=400 mmax=600 notify -> START 1.1@1\n"
        "submit 2 m=600 limit=100 -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 5\n"
        "report 1.1 mem=390 left=10 psi=99\n" /* is near its limit, and does not stall */
        "short 1 never\n"
        "report 1.1 mem=390 left=10 psi=100\n" /* no room to grow */
        "short 1 5\n"
        "at 6\n"
        "report 1.1 mem=390 left=10 psi=100\n"
        "report 1.1 mem=390 left=10 psi=0\n" /* as near as before */
        "short 1 5\n"
        "restart\n"
        "join 1 1.1:running 2.1:running\n"
        "short 1 5\n"
        "exited 2.1 -> RELEASE 2.1@1\n"
        "released 2.1\n"
        "report 1.1 mem=390 left=10 psi=100 -> RESIZE 1.1@1\n"
        "short 1 5\n"
        "resized 1.1\n"
        "short 1 never\n"
        "report 1.1 mem=490 left=10 psi=100 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "report 1.1 mem=590 left=10 psi=100\n" /* perhaps of what it had */
        "short 1 never\n"
        "at 40\n"
        "report 1.1 mem=590 left=10 psi=100\n" /* has all that it may have */
        "short 1 40\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "short 1 never\n");
}

/* Each change of it is written and told. */
static void shortage_that_comes_and_goes_is_one(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 m=400 notify -> START 1.1@1\n"
        "running 1.1\n"
        "at 5\n"
        "report 1.1 mem=390 left=10 psi=100\n"
        "at 15\n"
        "report 1.1 mem=200 left=200\n"
        "short 1 5\n"
        "at 60\n"
        "report 1.1 mem=390 left=10\n" /* near it again, though it does not stall */
        "at 119\n"
        "report 1.1 mem=200 left=200\n"
        "short 1 5\n"
        "restart\n"
        "join 1 1.1:running\n"
        "at 120\n"
        "report 1.1 mem=200 left=200\n"
        "short 1 never\n"
        "report 1.1 mem=390 left=10 psi=100\n"
        "short 1 120\n");
}

/* More vCPUs, or less memory, are no remedy. */
static void shortage_ends_with_more_memory_alone(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 m=400 mmax=1000 vmax=2 notify -> START 1.1@1\n"
        "submit 2 m=600 -> START 2.1@1\n"
        "running 1.1\n"
        "report 1.1 mem=390 left=10 psi=100\n"
        "short 1 0\n"
        "resize 1 v=2 -> RESIZE 1.1@1=2/400\n"
        "resized 1.1\n"
        "short 1 0\n"
        "resize 1 m=300 -> RESIZE 1.1@1=2/300\n"
        "resized 1.1\n"
        "short 1 0\n"
        "resize 1 m=400 -> RESIZE 1.1@1=2/400\n"
        "resized 1.1\n"
        "short 1 never\n");
}

/* 1, of 400 MiB of at most 800, stands still because they are too few and 3 has the rest; 4 waits. */
#define FROZEN_BESIDE_3                                                                            \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=2 m=400 mmax=800 may-move limit=100000 -> START 1.1@1\n"                           \
    "running 1.1\n"                                                                                \
    "submit 3 v=1 m=600 limit=100000 -> START 3.1@1\n"                                             \
    "running 3.1\n"                                                                                \
    "report 1.1 cpu=1000 mem=390 left=10 psi=100 -> FREEZE 1.1@1\n"                                \
    "frozen 1.1\n"                                                                                 \
    "submit 4 v=1 m=600 limit=1000\n"

static void guest_that_stands_still_at_its_limit_is_first_when_room_comes_free(void **state)
{
    const char *grows = FROZEN_BESIDE_3 "exited 3.1 -> RELEASE 3.1@1\n"
                                        "released 3.1 -> RESIZE 1.1@1^\n"
                                        "? 1 SUSPENDED at-limit running\n";
    g_autofree char *goes_on = g_strconcat(grows,
                                           "resized 1.1 -> THAW 1.1@1\n"
                                           "thawed 1.1\n"
                                           "? 1 RUNNING none running\n"
                                           "holds 1 2 500\n",
                                           NULL);
    g_autofree char *restarted = g_strconcat(grows,
                                             "restart\n"
                                             "join 1 1.1:running -> RESIZE 1.1@1^\n"
                                             "resized 1.1 -> THAW 1.1@1\n",
                                             NULL);
    run(goes_on);
    run(restarted);
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_GROWTH,
             FROZEN_BESIDE_3 "exited 3.1 -> RELEASE 3.1@1\n"
                             "released 3.1 -> START 4.1@1\n");
    run(FROZEN_BESIDE_3 "freeze 1\n" /* that is as its user wants it */
                        "exited 3.1 -> RELEASE 3.1@1\n"
                        "released 3.1 -> START 4.1@1\n");
}

static void guest_that_stands_still_at_its_limit_moves_to_room_that_came_free(void **state)
{
    const char *moves = FROZEN_BESIDE_3 "cancel 4\n"
                                        "node 2 4 1000\n"
                                        "at 300\n"
                                        "timer -> MIGRATE 1.1@1>2\n";
    g_autofree char *goes_on = g_strconcat(moves,
                                           "migrated 1.1 -> RESIZE 1.1@2^\n"
                                           "resized 1.1 -> THAW 1.1@2\n"
                                           "thawed 1.1\n"
                                           "? 1 RUNNING none running\n",
                                           NULL);
    g_autofree char *stays = g_strconcat(moves,
                                         "migrated 1.1 failed\n" /* not with what was too little */
                                         "? 1 SUSPENDED at-limit running\n",
                                         NULL);
    run(goes_on);
    run(stays);
}

/* That it has moved, or was frozen, is no reason to let it stand still. */
static void guest_that_stands_still_for_memory_moves_in_its_cooldown(void **state)
{
    run(FROZEN_BESIDE_3 "cancel 4\n"
                        "node 2 4 1000\n"
                        "at 60\n"
                        "timer -> MIGRATE 1.1@1>2\n"
                        "migrated 1.1 -> RESIZE 1.1@2^\n");
    run(IDLE_NODE
        "submit 2 m=200 mmax=300 slack may-move may-checkpoint limit=5000 -> START 2.1@1~\n"
        "running 2.1\n"
        "report 2.1 mem=190 left=10 psi=500 -> FREEZE 2.1@1~\n"
        "frozen 2.1\n"
        "node 2 4 1000\n"
        "at 60\n"
        "timer -> MIGRATE 2.1@1>2\n"
        "migrated 2.1 -> RESIZE 2.1@2^\n"
        "resized 2.1 -> THAW 2.1@2\n");
}

/* One that has come, and is as near to its limit as that, does not move again at once; but one that stalls does. */
static void guest_that_stalls_moves_in_its_cooldown(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=2 m=400 mmax=800 may-move limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "node 2 4 400\n"
        "migrate 1 to=2 op -> MIGRATE 1.1@1>2\n"
        "migrated 1.1\n"
        "at 10\n"
        "report 1.1 mem=390 left=10\n"
        "at 20\n"
        "report 1.1 mem=390 left=10 psi=500 -> MIGRATE 1.1@2>1\n"
        "migrated 1.1 -> RESIZE 1.1@1\n");
}

/* What has failed is not tried again at once: until then there is no room for it. */
static void guest_that_stalls_and_could_not_move_rests(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=2 m=400 mmax=800 may-move notify limit=100000 -> START 1.1@1\n"
        "submit 2 v=2 m=600 limit=100000 -> START 2.1@1\n"
        "running 1.1\n"
        "node 2 4 1000\n"
        "at 10\n"
        "report 1.1 mem=390 left=10 psi=500 -> MIGRATE 1.1@1>2\n"
        "migrated 1.1 failed\n"
        "at 11\n"
        "report 1.1 mem=390 left=10 psi=500\n"
        "short 1 11\n"
        "at 69\n"
        "report 1.1 mem=390 left=10 psi=500\n"
        "at 70\n"
        "report 1.1 mem=390 left=10 psi=500 -> MIGRATE 1.1@1>2\n"
        "migrated 1.1 failed\n"
        "at 189\n"
        "report 1.1 mem=390 left=10 psi=500\n"
        "at 190\n"
        "report 1.1 mem=390 left=10 psi=500 -> MIGRATE 1.1@1>2\n");
}

static void guest_that_stands_still_at_its_limit_makes_do_with_less_than_a_step(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=1 m=400 mmax=800 limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=1 m=570 limit=100000 -> START 2.1@1\n"
        "submit 3 v=1 m=6 limit=100000 -> START 3.1@1\n"
        "running 2.1\n"
        "running 3.1\n"
        "report 1.1 cpu=1000 mem=390 left=10 psi=100 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 60\n"
        "timer\n" /* 24 of the 25 that are a quarter of one */
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1 -> RESIZE 1.1@1^\n"
        "resized 1.1 -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "holds 1 1 430\n");
}

/* It is not frozen for that. */
static void guest_that_stalls_makes_do_with_less_than_a_step(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=1 m=400 mmax=800 limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=1 m=575 limit=100000 -> START 2.1@1\n"
        "report 1.1 mem=390 left=10\n" /* it gets along, and may get a step yet */
        "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
        "holds 1 1 425\n"
        "resized 1.1\n"
        "at 30\n"
        "report 1.1 mem=415 left=10 psi=500 -> FREEZE 1.1@1\n");
}

static void guest_in_slack_that_stands_still_is_backed_and_gets_more(void **state)
{
    run(IDLE_NODE "submit 2 m=200 mmax=300 slack may-checkpoint limit=5000 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "report 2.1 mem=190 left=10 psi=500 -> FREEZE 2.1@1~\n"
                  "frozen 2.1\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> RESIZE 2.1@1\n" /* no ^: it stands still until it has more */
                  "resized 2.1 -> RESIZE 2.1@1^\n"
                  "resized 2.1 -> THAW 2.1@1\n"
                  "thawed 2.1\n"
                  "? 2 RUNNING none running\n"
                  "holds 2 1 250\n");
}

/* Each time for twice as long. */
static void guest_that_does_not_take_more_is_left_alone_for_longer(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=1 m=400 mmax=800 notify limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1 failed\n"
        "at 300\n"
        "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1 failed\n"
        "at 899\n"
        "report 1.1 mem=390 left=10 psi=500\n"
        "at 900\n"
        "report 1.1 mem=390 left=10 psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1\n"
        "at 931\n"
        "report 1.1 mem=490 left=10 psi=500 -> RESIZE 1.1@1\n"
        "resized 1.1 failed\n"
        "at 1231\n"
        "report 1.1 mem=490 left=10 psi=500 -> RESIZE 1.1@1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guest_with_nothing_available_is_grown),
        cmocka_unit_test(guest_near_its_limit_is_grown_up_to_its_ceiling),
        cmocka_unit_test(guest_grows_as_far_as_its_user_may_go),
        cmocka_unit_test(guest_that_cannot_grow_where_it_is_moves_to_grow),
        cmocka_unit_test(guest_that_lacks_vcpus_for_long_is_grown_up_to_its_ceiling),
        cmocka_unit_test(guest_whose_vcpus_do_not_all_work_is_not_grown),
        cmocka_unit_test(guest_on_a_cordoned_node_is_grown_there),
        cmocka_unit_test(guest_in_slack_is_backed_to_grow),
        cmocka_unit_test(grown_guest_is_drained_to_where_all_of_it_has_room),
        cmocka_unit_test(guest_grows_in_what_there_is_room_for),
        cmocka_unit_test(guest_that_will_have_room_waits_for_it),
        cmocka_unit_test(guest_that_does_not_take_more_is_at_its_limit),
        cmocka_unit_test(guest_that_did_not_take_more_is_tried_again),
        cmocka_unit_test(guest_that_was_grown_is_not_grown_again_for_what_it_was_before),
        cmocka_unit_test(guest_that_cannot_give_memory_back_is_not_grown_for_that),
        cmocka_unit_test(guest_that_cannot_give_memory_back_is_not_frozen_for_that),
        cmocka_unit_test(guest_that_fills_its_memory_is_grown_before_it_is_full),
        cmocka_unit_test(on_limit_is_what_the_job_says),
        cmocka_unit_test(shortage_is_told_until_there_is_more),
        cmocka_unit_test(shortage_that_comes_and_goes_is_one),
        cmocka_unit_test(shortage_ends_with_more_memory_alone),
        cmocka_unit_test(guest_that_stands_still_at_its_limit_is_first_when_room_comes_free),
        cmocka_unit_test(guest_that_stands_still_at_its_limit_moves_to_room_that_came_free),
        cmocka_unit_test(guest_that_stands_still_for_memory_moves_in_its_cooldown),
        cmocka_unit_test(guest_that_stalls_moves_in_its_cooldown),
        cmocka_unit_test(guest_that_stalls_and_could_not_move_rests),
        cmocka_unit_test(guest_that_stands_still_at_its_limit_makes_do_with_less_than_a_step),
        cmocka_unit_test(guest_that_stalls_makes_do_with_less_than_a_step),
        cmocka_unit_test(guest_in_slack_that_stands_still_is_backed_and_gets_more),
        cmocka_unit_test(guest_that_does_not_take_more_is_left_alone_for_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
