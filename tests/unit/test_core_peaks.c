/* SPDX-License-Identifier: Apache-2.0 */
/* What running guests were measured to need, over a restart: told to the driver now and then, and put
 * back. Guests settle in 10 s; a peak is told when it is 12.5 % off, and but for memory that has grown
 * once an hour. Peaks of memory halve in 12 h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* --- telling ------------------------------------------------------------------------------------ */

static void peak_is_told_when_the_guest_has_settled(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 cpu=2000 mem=300\n"
        "at 9\n"
        "report 1.1 cpu=1000 mem=200\n"
        "peak 1 0 0\n"
        "at 10\n"
        "report 1.1 cpu=1000 mem=200\n"
        "peak 1 1987 298\n"); /* nearer to what is measured, for 9 s and for 1 s */
}

static void memory_is_told_when_it_has_grown_by_a_step(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "report 1.1 cpu=1000 mem=400\n"
        "peak 1 1000 400\n"
        "report 1.1 cpu=4000 mem=450\n" /* just a step, and vCPUs alone are no reason */
        "peak 1 1000 400\n"
        "report 1.1 cpu=0 mem=451\n"
        "peak 1 4000 451\n"
        "report 1.1 cpu=0 mem=600\n"
        "report 1.1 cpu=0 mem=1000\n"
        "peak 1 4000 1000\n");
}

static void all_else_is_told_once_an_hour(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "report 1.1 cpu=1000 mem=400\n"
        "peak 1 1000 400\n"
        "at 3599\n"
        "report 1.1 cpu=2000 mem=400\n" /* the first hour begins when the guest does */
        "peak 1 1000 400\n"
        "at 3600\n"
        "report 1.1 cpu=2000 mem=400\n"
        "peak 1 2000 400\n"
        "report 1.1 cpu=3000 mem=400\n"
        "at 7199\n"
        "report 1.1 cpu=4000 mem=400\n"
        "peak 1 2000 400\n"
        "at 7200\n"
        "report 1.1 cpu=2100 mem=400\n"
        "peak 1 3997 400\n"
        "at 50400\n" /* half of the way from 400 to 0 in 12 h */
        "report 1.1 cpu=3998 mem=0\n"
        "peak 1 3998 200\n");
}

/* Looked at once an hour whether or not there was anything to tell. */
static void peak_that_stays_is_not_told_again(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "report 1.1 cpu=1000 mem=400\n"
        "at 3600\n"
        "report 1.1 cpu=1125 mem=400\n"
        "peak 1 1000 400\n"
        "at 7199\n"
        "report 1.1 cpu=2000 mem=400\n"
        "peak 1 1000 400\n"
        "at 7200\n"
        "report 1.1 cpu=2000 mem=400\n"
        "peak 1 2000 400\n");
}

/* Of a gang: of that guest which needs most. */
static void gang_tells_of_the_guest_that_needs_most(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 v=4 m=1000 guests=2 limit=100000 -> START 1.1@1 START 1+1.1@2\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "at 10\n"
        "report 1+1.1 cpu=1000 mem=400\n"
        "peak 1 1000 400\n"
        "report 1.1 cpu=3000 mem=300\n"
        "peak 1 1000 400\n"
        "report 1.1 cpu=0 mem=500\n"
        "peak 1 3000 500\n"
        "at 3600\n"
        "report 1+1.1 cpu=0 mem=0\n" /* the other one still needs as much */
        "peak 1 3000 500\n");
}

/* A run that begins anew is not known; one that goes on from a checkpoint is. */
static void peak_is_of_the_present_run(void **state)
{
    const char *script = "node 1 4 1000\n"
                         "submit 1 v=4 m=1000 save limit=20 may-checkpoint -> START 1.1@1\n"
                         "running 1.1\n"
                         "at 10\n"
                         "report 1.1 cpu=1000 mem=400\n"
                         "peak 1 1000 400\n";
    const char *const ends[] = {
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1.2@1\n"
        "peak 1 0 0\n"
        "needs 1 1000\n",
        "at 20\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "peak 1 1000 400\n"
        "? 1 SUSPENDED time-limit none\n",
    };
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *whole = g_strconcat(script, ends[i], NULL);
        run(whole);
    }
}

static void nothing_is_told_without_prediction(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PREDICTION,
             "node 1 4 1000\n"
             "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
             "running 1.1\n"
             "at 10\n"
             "report 1.1 cpu=1000 mem=400\n"
             "peak 1 0 0\n"
             "restart guests\n"
             "needs 1 1000\n");
}

/* --- putting back ------------------------------------------------------------------------------- */

/* Job 1 has 4 vCPUs and 1000 MiB, all that there is, and has told of 1 vCPU and 400 MiB. */
#define TOLD                                                                                       \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"                                             \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=1000 mem=400\n"

static void guest_needs_what_was_told_and_a_step_until_it_is_measured(void **state)
{
    run(TOLD "needs 1 400\n"
             "restart guests\n"
             "needs 1 450\n"
             "join 1 1.1:running\n"
             "needs 1 450\n"
             "report 1.1 cpu=1000 mem=100\n"
             "needs 1 400\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PEAK_MARGIN_PERMILLE, 100,
                          TOLD "needs 1 440\n"
                               "restart guests\n"
                               "needs 1 495\n" /* and the margin */
                               "join 1 1.1:running\n"
                               "report 1.1 cpu=1000 mem=500\n"
                               "needs 1 550\n"
                               "report 1.1 cpu=1000 mem=950\n"
                               "needs 1 1000\n"
                               "restart guests\n"
                               "needs 1 1000\n"); /* never more than it reserved */
}

static void who_waits_starts_in_slack_after_a_restart_when_nodes_have_reported(void **state)
{
    run(TOLD "submit 2 v=2 m=600 slack may-checkpoint\n" /* 600 and a tenth are not left */
             "restart guests\n"
             "submit 3 v=2 m=450 slack may-checkpoint\n"
             "join 1 1.1:running\n"
             "report 1.1 cpu=1000 mem=400 -> START 3.1@1~\n");
    /* Its page cache was not stored, and is in the way of all others. */
    run(TOLD "restart guests\n"
             "submit 3 v=2 m=450 slack may-checkpoint\n"
             "join 1 1.1:running\n"
             "report 1.1 cpu=1000 mem=400 touched=900\n"
             "at 80\n"
             "timer\n");
    /* So is that of a guest which was not heard of yet, but for as long as another would settle. */
    run("node 1 4 1000\n"
        "submit 1 v=2 m=500 limit=10000 -> START 1.1@1\n"
        "submit 2 v=2 m=500 limit=10000 -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=100\n"
        "report 2.1 cpu=1000 mem=100\n"
        "at 25\n"
        "restart guests\n"
        "submit 3 v=1 m=450 slack may-checkpoint\n"
        "join 1 1.1:running 2.1:running\n"
        "report 1.1 cpu=1000 mem=100\n"
        "at 34\n"
        "hold 3\n"
        "release 3\n"
        "at 35\n"
        "hold 3\n"
        "release 3 -> START 3.1@1~\n");
    /* Not told: it settles anew, and nobody comes. */
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 9\n"
        "report 1.1 cpu=1000 mem=400\n"
        "restart guests\n"
        "needs 1 1000\n"
        "submit 3 v=2 m=100 slack may-checkpoint\n"
        "join 1 1.1:running\n"
        "at 18\n"
        "report 1.1 cpu=1000 mem=400\n"
        "needs 1 1000\n"
        "peak 1 0 0\n"
        "hold 3\n"
        "release 3\n"
        "at 19\n"
        "report 1.1 cpu=1000 mem=400\n"
        "peak 1 1000 400\n"
        "hold 3\n"
        "release 3 -> START 3.1@1~\n");
}

/* Counted with a step each they need more than there is; measured, they do not. */
static void restart_sends_nobody_away_for_what_was_not_told(void **state)
{
    const char *script = TOLD "submit 2 v=2 m=500 slack may-checkpoint -> START 2.1@1~\n"
                              "running 2.1\n"
                              "at 40\n"
                              "report 2.1 cpu=100 mem=300\n"
                              "submit 3 v=2 m=200 slack may-checkpoint -> START 3.1@1~\n"
                              "running 3.1\n"
                              "at 60\n"
                              "report 3.1 cpu=100 mem=190\n"
                              "restart guests\n"
                              "needs 1 450\n"
                              "needs 2 337\n"
                              "needs 3 200\n"
                              "join 1 1.1:running 2.1:running 3.1:running\n"
                              "report 3.1 cpu=100 mem=190\n";
    const char *const ends[] = {
        "report 2.1 cpu=100 mem=300\n"
        "report 1.1 cpu=1000 mem=400\n",
        "report 1.1 cpu=1000 mem=400\n"
        "report 2.1 cpu=100 mem=300\n",
        /* What is measured is no less true than it was without the restart, */
        "report 2.1 cpu=100 mem=300\n"
        "report 1.1 cpu=1000 mem=461 -> CHECKPOINT 3.1@1~\n",
        /* and so is pressure. */
        "pressed 1 -> CHECKPOINT 3.1@1~\n",
    };
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *whole = g_strconcat(script, ends[i], NULL);
        run(whole);
    }
}

/* Until they are measured, guests in slack are taken to use what they needed: nobody else comes who
 * could not be written out with them in time, and none of them leaves for that. */
static void bound_of_evacuation_holds_over_a_restart(void **state)
{
    /* 6 s less 5 for a checkpoint of any size: 400 MiB, of which a tenth stays free. */
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_EVACUATION_MAX_USEC,
                          6 * (gint64)G_USEC_PER_SEC,
                          "node 1 4 1000\n"
                          "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 20\n"
                          "report 1.1 cpu=100 mem=10\n"
                          "submit 2 v=1 m=500 slack may-checkpoint -> START 2.1@1~\n"
                          "running 2.1\n"
                          "at 40\n"
                          "report 2.1 cpu=100 mem=390\n"
                          "restart guests\n"
                          "join 1 1.1:running 2.1:running\n"
                          "submit 3 v=1 m=100 slack may-checkpoint\n"
                          "report 1.1 cpu=100 mem=10\n"
                          "hold 3\n"
                          "release 3\n"
                          "report 2.1 cpu=100 mem=300 -> START 3.1@1~\n"
                          "running 3.1\n"
                          "at 60\n"
                          "report 3.1 cpu=100 mem=50\n"
                          /* Remembered are 390 and 50, which is too much; used are 350. */
                          "restart guests\n"
                          "join 1 1.1:running 2.1:running 3.1:running\n"
                          "report 3.1 cpu=100 mem=50\n"
                          "report 1.1 cpu=100 mem=10\n"
                          "report 2.1 cpu=100 mem=300\n"
                          "report 2.1 cpu=100 mem=351 -> CHECKPOINT 2.1@1~\n");
}

/* 3 is never heard of again: its node is relieved all the same once others have settled. */
static void silent_guest_keeps_no_node_from_relief(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 limit=100000 may-checkpoint slack -> START 2.1@1~\n"
                  "running 2.1\n"
                  "submit 3 v=1 m=50 limit=100000 may-checkpoint slack -> START 3.1@1~\n"
                  "running 3.1\n"
                  "at 40\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "report 2.1 cpu=100 mem=200 left=300\n"
                  "report 3.1 cpu=100 mem=10 left=40\n"
                  "at 50\n"
                  "restart guests\n"
                  "join 1 1.1:running 2.1:running 3.1:running\n"
                  "at 5000\n"
                  "report 2.1 cpu=100 mem=200 left=300\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "at 5020\n"
                  "report 1.1 cpu=1000 mem=900 -> CHECKPOINT 2.1@1~ CHECKPOINT 3.1@1~\n");
}

/* It waits with its checkpoint while berthd is restarted. */
static void checkpointed_guest_goes_on_with_what_it_needed(void **state)
{
    run(TOLD "submit 2 v=2 m=500 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
             "running 2.1\n"
             "at 40\n"
             "report 2.1 cpu=100 mem=200\n"
             "peak 2 100 200\n"
             "report 1.1 cpu=1000 mem=900 -> CHECKPOINT 2.1@1~\n"
             "checkpointed 2.1 -> RELEASE 2.1@1\n"
             "released 2.1\n"
             "restart guests\n"
             "peak 2 100 200\n"
             "join 1 1.1:running\n"
             "report 1.1 cpu=1000 mem=900\n"
             "exited 1.1 -> RELEASE 1.1@1\n"
             "released 1.1 -> RESTORE 2.2@1\n"
             "needs 2 225\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_is_told_when_the_guest_has_settled),
        cmocka_unit_test(memory_is_told_when_it_has_grown_by_a_step),
        cmocka_unit_test(all_else_is_told_once_an_hour),
        cmocka_unit_test(peak_that_stays_is_not_told_again),
        cmocka_unit_test(gang_tells_of_the_guest_that_needs_most),
        cmocka_unit_test(peak_is_of_the_present_run),
        cmocka_unit_test(nothing_is_told_without_prediction),
        cmocka_unit_test(guest_needs_what_was_told_and_a_step_until_it_is_measured),
        cmocka_unit_test(who_waits_starts_in_slack_after_a_restart_when_nodes_have_reported),
        cmocka_unit_test(restart_sends_nobody_away_for_what_was_not_told),
        cmocka_unit_test(bound_of_evacuation_holds_over_a_restart),
        cmocka_unit_test(silent_guest_keeps_no_node_from_relief),
        cmocka_unit_test(checkpointed_guest_goes_on_with_what_it_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
