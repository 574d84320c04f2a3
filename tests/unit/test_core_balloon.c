/* SPDX-License-Identifier: Apache-2.0 */
/* Relief. Balloons: what guests in slack occupy and do not need goes back to a host that lacks memory,
 * before anybody has to leave. Guests in slack that get no CPU move to where there is some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* Job 2 is in the slack of IDLE_NODE, whose headroom is 100 MiB: it uses 200 of its 500 MiB, and
 * has filled 250 more with page cache. Of 450 it keeps 250: what it uses, and twice what is
 * available to a guest near its limit. */
#define CACHING                                                                                    \
    IDLE_NODE "submit 2 v=2 m=500 limit=10000 may-move may-checkpoint slack -> START 2.1@1~\n"     \
              "running 2.1\n"                                                                      \
              "at 40\n"                                                                            \
              "report 2.1 cpu=100 mem=200 left=300 touched=450\n"

/* 40 MiB are available: 60 are lacking, and 64 are the least that is asked for. */
#define BALLOONED                                                                                  \
    CACHING "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"                                            \
            "at 42\n"                                                                              \
            "resized 2.1\n"

static void relief_with_cache_asks_a_balloon_before_it_moves(void **state)
{
    /* A second one is not asked for while the first is under way, nor soon after it. */
    run(CACHING "node 2 4 1000\n"
                "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
                "at 41\n"
                "pressed 1 left=40\n"
                "resized 2.1\n"
                "at 45\n"
                "pressed 1 left=40 -> MIGRATE 2.1@1>2~\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALLOON,
             CACHING "node 2 4 1000\n"
                     "pressed 1 left=40 -> MIGRATE 2.1@1>2~\n");
}

static void relief_with_too_little_cache_does_both(void **state)
{
    /* The host lacks 99 MiB; 70 are to be had. */
    run(IDLE_NODE "submit 2 v=2 m=500 limit=10000 may-checkpoint slack -> START 2.1@1~\n"
                  "running 2.1\n"
                  "submit 3 v=1 m=100 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
                  "running 3.1\n"
                  "at 40\n"
                  "report 2.1 cpu=100 mem=200 left=300 touched=320\n"
                  "report 3.1 cpu=100 mem=50 left=50 touched=60\n"
                  "pressed 1 left=1 -> RESIZE 2.1@1(250)~ CHECKPOINT 3.1@1~\n");
}

static void relief_without_cache_moves(void **state)
{
    /* Less than 64 MiB is not worth it; nor is anything known of a guest that does not tell. */
    run(IDLE_NODE "submit 2 v=2 m=500 limit=10000 may-checkpoint slack -> START 2.1@1~\n"
                  "running 2.1\n"
                  "at 40\n"
                  "report 2.1 cpu=100 mem=200 left=300 touched=313\n"
                  "pressed 1 left=40 -> CHECKPOINT 2.1@1~\n");
    run(IDLE_NODE "submit 2 v=2 m=500 limit=10000 may-checkpoint slack -> START 2.1@1~\n"
                  "running 2.1\n"
                  "at 40\n"
                  "report 2.1 cpu=100 mem=200 left=300\n"
                  "pressed 1 left=40 -> CHECKPOINT 2.1@1~\n");
}

/* Of 5000 MiB job 2 has touched 1550 and keeps 1250, a quarter: 3750 are to be taken for 300, 500 a second. */
static void relief_by_a_balloon_takes_no_longer_than_evacuation_may(void **state)
{
    const char *const ends[] = {[7] = "pressed 1 left=300 -> CHECKPOINT 2.1@1~\n",
                                [8] = "pressed 1 left=300 -> RESIZE 2.1@1(3750)~\n"};
    for (guint sec = 7; sec <= 8; sec++) {
        g_autofree char *script =
            g_strconcat("node 1 4 8000\n"
                        "submit 1 v=4 m=8000 limit=10000 -> START 1.1@1\n"
                        "running 1.1\n"
                        "at 20\n"
                        "report 1.1 cpu=1000 mem=300\n"
                        "submit 2 v=1 m=5000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
                        "running 2.1\n"
                        "at 40\n"
                        "report 2.1 cpu=100 mem=200 left=4800 touched=1550\n",
                        ends[sec], NULL);
        core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_EVACUATION_MAX_USEC,
                              sec * (gint64)G_USEC_PER_SEC, script);
    }
}

static void relief_before_pressure_asks_a_balloon(void **state)
{
    /* 500 MiB of job 2 and what job 1 needs: 900 is all but the headroom, and 850 is well. */
    run(CACHING "report 2.1 cpu=100 mem=200 left=300 touched=500\n"
                "report 1.1 cpu=1000 mem=400\n"
                "report 1.1 cpu=1000 mem=420 -> RESIZE 2.1@1(70)~\n");
}

static void slack_with_cache_has_less_room(void **state)
{
    /* 900 less 300 and 450. */
    run(CACHING "submit 3 v=1 m=151 limit=100 may-checkpoint slack\n"
                "submit 4 v=1 m=150 limit=100 may-checkpoint slack -> START 4.1@1~\n");
}

static void balloon_of_a_guest_that_grows_is_given_back(void **state)
{
    /* 386 MiB are left to it, of which a twentieth is 19. */
    run(BALLOONED "report 2.1 cpu=100 mem=366 left=20 touched=386\n"
                  "at 43\n"
                  "report 2.1 cpu=100 mem=368 left=18 touched=386 -> RESIZE 2.1@1~\n"
                  "at 44\n"
                  "resized 2.1\n"
                  "report 2.1 cpu=100 mem=370 left=130 touched=500\n");
    run(BALLOONED "report 2.1 cpu=100 mem=200 left=186 psi=100 touched=386 -> RESIZE 2.1@1~\n");
    /* Short of memory it is not stopped, but gets it back, as often as that takes. */
    run(IDLE_NODE
        "submit 2 v=2 m=500 limit=10000 may-move may-checkpoint slack kill -> START 2.1@1~\n"
        "running 2.1\n"
        "at 40\n"
        "report 2.1 cpu=100 mem=200 left=300 touched=450\n"
        "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
        "report 2.1 cpu=100 mem=380 left=6 psi=900 touched=386\n"
        "resized 2.1\n"
        "report 2.1 cpu=100 mem=380 left=6 psi=900 touched=386 -> RESIZE 2.1@1~\n"
        "resized 2.1 failed\n"
        "report 2.1 cpu=100 mem=380 left=6 psi=900 touched=386 -> RESIZE 2.1@1~\n"
        "resized 2.1\n"
        "at 69\n" /* until then that may be of what it had before */
        "report 2.1 cpu=100 mem=490 left=10 psi=900 touched=500\n"
        "at 70\n"
        "report 2.1 cpu=100 mem=490 left=10 psi=900 touched=500 -> STOP 2.1@1\n");
}

static void balloon_that_leaves_less_than_predicted_is_given_back(void **state)
{
    /* With a margin of a quarter 200 MiB are 250, and 55 more are spare: 165 can be had. */
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PEAK_MARGIN_PERMILLE, 250,
                          CACHING "pressed 1 left=1 -> RESIZE 2.1@1(149)~\n"
                                  "at 42\n"
                                  "resized 2.1\n"
                                  "report 2.1 cpu=100 mem=280 left=71 touched=351\n"
                                  "report 2.1 cpu=100 mem=282 left=69 touched=351 "
                                  "-> RESIZE 2.1@1~\n");
}

static void balloon_of_a_node_that_is_well_is_given_back(void **state)
{
    /* A cooldown after the node last said that it is pressed, and if 150 MiB are left then. */
    run(BALLOONED "at 339\n"
                  "pressed 1 left=500\n"
                  "at 340\n"
                  "pressed 1 left=263\n"
                  "pressed 1 left=264 -> RESIZE 2.1@1~\n"
                  "pressed 1 left=264\n"
                  "at 341\n"
                  "resized 2.1\n"
                  "pressed 1 left=264\n");
}

static void node_is_pressed_and_well_where_the_site_says(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PRESSED_PERMILLE, 400,
                          CACHING "pressed 1 left=40\n"
                                  "pressed 1 left=39 -> RESIZE 2.1@1(114)~\n");
    /* With 100 MiB that are left then. */
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_WELL_PERMILLE, 1000,
                          BALLOONED "at 340\n"
                                    "pressed 1 left=213\n"
                                    "pressed 1 left=214 -> RESIZE 2.1@1~\n");
}

static void balloon_that_fails_is_asked_again_later_each_time(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 limit=10000 may-move slack -> START 2.1@1~\n"
                  "running 2.1\n"
                  "at 40\n"
                  "report 2.1 cpu=100 mem=200 left=300 touched=450\n"
                  "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
                  "at 41\n"
                  "resized 2.1 failed\n"
                  "at 339\n"
                  "pressed 1 left=40\n"
                  "at 340\n"
                  "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
                  "resized 2.1 failed\n"
                  "at 939\n"
                  "pressed 1 left=40\n"
                  "at 940\n"
                  "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n");
    /* Who cannot give it back leaves. */
    run(CACHING "node 2 4 1000\n"
                "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
                "at 41\n"
                "resized 2.1 failed\n"
                "pressed 1 left=40 -> MIGRATE 2.1@1>2~\n");
}

static void balloon_in_a_restart_is_not_forgotten(void **state)
{
    run(CACHING "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
                "at 41\n"
                "restart guests\n"
                "join 1 1.1:running 2.1:running -> RESIZE 2.1@1(114)~\n"
                "at 42\n"
                "resized 2.1\n"
                "at 60\n"
                "report 1.1 cpu=1000 mem=300\n"
                "report 2.1 cpu=100 mem=200 left=186 touched=386\n"
                "pressed 1 left=264 -> RESIZE 2.1@1~\n"
                /* On its way back. */
                "at 61\n"
                "restart guests\n"
                "join 1 1.1:running 2.1:running -> RESIZE 2.1@1~\n"
                "resized 2.1 failed\n"
                "at 62\n"
                "report 2.1 cpu=100 mem=375 left=11 touched=386 -> RESIZE 2.1@1~\n"
                "resized 2.1\n"
                "report 2.1 cpu=100 mem=375 left=125 touched=500\n");
    /* It failed: it never had one. */
    run(CACHING "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
                "at 41\n"
                "restart guests\n"
                "join 1 1.1:running 2.1:running -> RESIZE 2.1@1(114)~\n"
                "resized 2.1 failed\n"
                "at 60\n"
                "report 1.1 cpu=1000 mem=300\n"
                "report 2.1 cpu=100 mem=390 left=10 psi=50 touched=400\n");
}

/* What job 2 fills with page cache is known when it has reported: until then the room may not be there. */
static void backed_start_after_a_restart_waits_for_reports(void **state)
{
    const char *script = CACHING "cancel 1 -> STOP 1.1@1\n"
                                 "exited 1.1 -> RELEASE 1.1@1\n"
                                 "released 1.1\n"
                                 "restart guests\n"
                                 "join 1 2.1:running\n"
                                 "submit 3 v=2 m=700\n"
                                 "? 3 RUNNING - starting\n";
    const char *const ends[] = {
        "report 2.1 cpu=100 mem=200 left=300 touched=450 -> RESIZE 2.1@1(250)~\n"
        "at 41\n"
        "resized 2.1 -> START 3.1@1\n",
        "report 2.1 cpu=100 mem=200 left=300 touched=200 -> START 3.1@1\n",
        /* It is never heard of: by the next round it is taken at what was stored of it. */
        "next 100\n"
        "at 100\n"
        "timer -> START 3.1@1\n",
    };
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *whole = g_strconcat(script, ends[i], NULL);
        run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION, whole);
    }
    /* All that is reserved has room. */
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION,
             CACHING "cancel 1 -> STOP 1.1@1\n"
                     "exited 1.1 -> RELEASE 1.1@1\n"
                     "released 1.1\n"
                     "restart guests\n"
                     "join 1 2.1:running\n"
                     "submit 3 v=2 m=500 -> START 3.1@1\n");
}

/* How long it is to be left alone is not stored: it is asked once more, and rests again. */
static void balloon_after_a_restart_is_asked_once_more(void **state)
{
    run(BALLOONED "at 45\n"
                  "restart guests\n"
                  "join 1 1.1:running 2.1:running\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "report 2.1 cpu=100 mem=200 left=186 touched=386\n"
                  "pressed 1 left=40 -> RESIZE 2.1@1(178)~\n"
                  "at 46\n"
                  "resized 2.1\n"
                  "report 2.1 cpu=100 mem=200 left=122 touched=322\n"
                  "pressed 1 left=40 -> CHECKPOINT 2.1@1~\n");
}

/* Not at each report of the node, but after a cooldown. */
static void balloon_that_could_not_be_given_back_rests(void **state)
{
    run(BALLOONED "at 400\n"
                  "pressed 1 left=500 -> RESIZE 2.1@1~\n"
                  "resized 2.1 failed\n"
                  "at 699\n"
                  "pressed 1 left=500\n"
                  "at 700\n"
                  "pressed 1 left=500 -> RESIZE 2.1@1~\n");
}

static void balloon_of_a_promoted_guest_is_given_back(void **state)
{
    run(BALLOONED "cancel 1 -> STOP 1.1@1\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> RESIZE 2.1@1\n"
                  "resized 2.1 failed\n" /* it is in slack as before */
                  "report 2.1 cpu=100 mem=200 left=186 touched=386\n"
                  "report 2.1 cpu=100 mem=370 left=16 touched=386 -> RESIZE 2.1@1~\n"
                  "resized 2.1\n"
                  "report 2.1 cpu=100 mem=370 left=130 touched=400\n");
    run(BALLOONED "cancel 1 -> STOP 1.1@1\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> RESIZE 2.1@1\n"
                  "resized 2.1\n"
                  /* That may be of what it lacked before. */
                  "report 2.1 cpu=100 mem=490 left=10 psi=900 touched=500\n"
                  "report 2.1 cpu=100 mem=370 left=130 touched=400\n"
                  "at 99\n"
                  "report 2.1 cpu=100 mem=490 left=10 psi=900 touched=500 -> FREEZE 2.1@1\n");
}

/* What it keeps is known, and asked for again if that was under way; and so is a promotion. */
static void balloon_is_known_after_a_restart(void **state)
{
    run(BALLOONED "restart\n"
                  "join 1 1.1:running 2.1:running\n"
                  "report 2.1 cpu=100 mem=370 left=16 touched=386 -> RESIZE 2.1@1~\n");
    run(CACHING "pressed 1 left=40 -> RESIZE 2.1@1(114)~\n"
                "restart\n"
                "join 1 1.1:running 2.1:running -> RESIZE 2.1@1(114)~\n"
                "resized 2.1\n");
    run(BALLOONED "cancel 1 -> STOP 1.1@1\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> RESIZE 2.1@1\n"
                  "restart\n"
                  "join 1 2.1:running -> RESIZE 2.1@1\n"
                  "resized 2.1\n"
                  "report 2.1 cpu=100 mem=370 left=130 touched=400\n");
}

static void backed_start_waits_for_a_balloon(void **state)
{
    /* 700 MiB beside the 450 that job 2 occupies are 150 too many. */
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION,
             CACHING "cancel 1 -> STOP 1.1@1\n"
                     "exited 1.1 -> RELEASE 1.1@1\n"
                     "released 1.1\n"
                     "submit 3 v=2 m=700 -> RESIZE 2.1@1(200)~\n"
                     "at 41\n"
                     "resized 2.1 -> START 3.1@1\n");
    /* It does not work: job 2 leaves. */
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION,
             CACHING "cancel 1 -> STOP 1.1@1\n"
                     "exited 1.1 -> RELEASE 1.1@1\n"
                     "released 1.1\n"
                     "submit 3 v=2 m=700 -> RESIZE 2.1@1(200)~\n"
                     "at 41\n"
                     "resized 2.1 failed -> CHECKPOINT 2.1@1~\n"
                     "at 42\n"
                     "checkpointed 2.1 -> RELEASE 2.1@1\n"
                     "released 2.1 -> START 3.1@1 RESTORE 2.2@1~\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relief_with_cache_asks_a_balloon_before_it_moves),
        cmocka_unit_test(relief_with_too_little_cache_does_both),
        cmocka_unit_test(relief_without_cache_moves),
        cmocka_unit_test(relief_by_a_balloon_takes_no_longer_than_evacuation_may),
        cmocka_unit_test(relief_before_pressure_asks_a_balloon),
        cmocka_unit_test(slack_with_cache_has_less_room),
        cmocka_unit_test(balloon_of_a_guest_that_grows_is_given_back),
        cmocka_unit_test(balloon_that_leaves_less_than_predicted_is_given_back),
        cmocka_unit_test(balloon_of_a_node_that_is_well_is_given_back),
        cmocka_unit_test(node_is_pressed_and_well_where_the_site_says),
        cmocka_unit_test(balloon_that_fails_is_asked_again_later_each_time),
        cmocka_unit_test(balloon_in_a_restart_is_not_forgotten),
        cmocka_unit_test(backed_start_after_a_restart_waits_for_reports),
        cmocka_unit_test(balloon_after_a_restart_is_asked_once_more),
        cmocka_unit_test(balloon_that_could_not_be_given_back_rests),
        cmocka_unit_test(balloon_of_a_promoted_guest_is_given_back),
        cmocka_unit_test(balloon_is_known_after_a_restart),
        cmocka_unit_test(backed_start_waits_for_a_balloon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
