/* SPDX-License-Identifier: Apache-2.0 */
/* Guests in slack leave before backed guests that grow have come to need their memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* A checkpoint of the 1000 MiB that job 2 has touched takes 7.5 s. */
#define FILLING                                                                                    \
    "node 1 4 10000\n"                                                                             \
    "submit 1 v=3 m=9000 limit=10000 -> START 1.1@1\n"                                             \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=1000 mem=1000 touched=1000\n"                                                  \
    "submit 2 v=1 m=2000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"                       \
    "running 2.1\n"                                                                                \
    "report 2.1 cpu=1000 mem=1000 touched=1000\n"

/* A tenth of the node is headroom, half of which is 500 MiB. */
static void slack_leaves_before_a_backed_guest_that_grows_fast_needs_it(void **state)
{
    run(FILLING "at 21\n"
                "report 1.1 cpu=1000 mem=2000 touched=2000\n"
                "at 22\n"
                "report 1.1 cpu=1000 mem=3000 touched=3000 -> CHECKPOINT 2.1@1~\n"
                "checkpointed 2.1 -> RELEASE 2.1@1\n"
                "released 2.1\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_GROWTH_LEAD_PERMILLE, 0,
                          FILLING "at 21\n"
                                  "report 1.1 cpu=1000 mem=2000 touched=2000\n"
                                  "at 22\n"
                                  "report 1.1 cpu=1000 mem=3000 touched=3000\n");
}

static void nobody_comes_to_where_a_backed_guest_grows_fast(void **state)
{
    run("node 1 4 10000\n"
        "submit 1 v=3 m=9000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "at 21\n"
        "report 1.1 cpu=1000 mem=2000 touched=2000\n"
        "at 22\n"
        "report 1.1 cpu=1000 mem=3000 touched=3000\n"
        "submit 2 v=1 m=2000 limit=10000 slack may-checkpoint\n"
        "at 23\n" /* it may only have paused */
        "report 1.1 cpu=1000 mem=3000 touched=3000\n"
        "submit 3 v=1 m=1900 limit=10000 slack may-checkpoint\n"
        "cancel 3\n"
        "at 24\n"
        "report 1.1 cpu=1000 mem=3000 touched=3000\n"
        "at 400\n"
        "timer -> START 2.1@1~\n");
}

/* It has been larger, which is what it is predicted to need again. */
static void growth_below_what_is_predicted_takes_nothing_more(void **state)
{
    run("node 1 4 10000\n"
        "submit 1 v=3 m=9000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=6000 touched=6000\n"
        "submit 2 v=1 m=2000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "report 2.1 cpu=1000 mem=1000 touched=1000\n"
        "at 21\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "at 22\n"
        "report 1.1 cpu=1000 mem=1200 touched=1200\n"
        "at 23\n"
        "report 1.1 cpu=1000 mem=1400 touched=1400\n");
}

/* From then on it is growth. */
static void who_grows_back_to_what_it_was_sends_nobody_away(void **state)
{
    run("node 1 4 10000\n"
        "submit 1 v=3 m=9000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=5000 touched=5000\n"
        "at 21\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "submit 2 v=1 m=2000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "report 2.1 cpu=1000 mem=1000 touched=1000\n"
        "at 22\n"
        "report 1.1 cpu=1000 mem=2000 touched=2000\n"
        "at 23\n"
        "report 1.1 cpu=1000 mem=3000 touched=3000\n"
        "at 24\n"
        "report 1.1 cpu=1000 mem=4000 touched=4000\n"
        "at 25\n"
        "report 1.1 cpu=1000 mem=5000 touched=5000 -> CHECKPOINT 2.1@1~\n");
}

/* Job 2 takes 55 s to leave. After two seconds of growth eight more are looked ahead at, after four of them sixteen. */
static void growth_is_looked_ahead_at_as_far_as_it_is_known(void **state)
{
    run("node 1 4 50000\n"
        "submit 1 v=3 m=49000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "submit 2 v=1 m=30000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "report 2.1 cpu=1000 mem=20000 touched=20000\n"
        "at 21\n"
        "report 1.1 cpu=1000 mem=2000 touched=2000\n"
        "at 22\n"
        "report 1.1 cpu=1000 mem=3000 touched=3000\n"
        "at 23\n"
        "report 1.1 cpu=1000 mem=4000 touched=4000\n"
        "at 24\n"
        "report 1.1 cpu=1000 mem=5000 touched=5000 -> CHECKPOINT 2.1@1~\n");
}

/* When it runs it takes as long to leave as any: it goes while that costs nothing. */
static void who_has_not_begun_to_run_leaves_before_growth_needs_it(void **state)
{
    run("node 1 4 10000\n"
        "submit 1 v=3 m=9000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "submit 2 v=1 m=2000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
        "at 21\n"
        "report 1.1 cpu=1000 mem=2000 touched=2000\n"
        "at 22\n"
        "report 1.1 cpu=1000 mem=3000 touched=3000 -> RELEASE 2.1@1\n");
}

/* Each of the four in slack has gone after 15 s, and until then there is room. But they leave two at a time over one link: the 14000 MiB that lack
 * when job 1 has all that it reserved, 39 s from then on, take longer. At half that speed they do not. */
static void those_who_leave_slower_than_others_grow_begin_in_time(void **state)
{
    static const char *const begins =
        "node 1 8 62000\n"
        "submit 1 v=4 m=60000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "submit 2 m=4000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
        "submit 3 m=4000 limit=10000 slack may-checkpoint -> START 3.1@1~\n"
        "submit 4 m=4000 limit=10000 slack may-checkpoint -> START 4.1@1~\n"
        "submit 5 m=4000 limit=10000 slack may-checkpoint -> START 5.1@1~\n"
        "running 2.1\n"
        "running 3.1\n"
        "running 4.1\n"
        "running 5.1\n"
        "report 2.1 cpu=100 mem=4000 touched=4000\n"
        "report 3.1 cpu=100 mem=4000 touched=4000\n"
        "report 4.1 cpu=100 mem=4000 touched=4000\n"
        "report 5.1 cpu=100 mem=4000 touched=4000\n"
        "at 30\n";
    g_autofree char *fast = g_strconcat(
        begins,
        "report 1.1 cpu=1000 mem=11000 touched=11000\n"
        "at 40\n"
        "report 1.1 cpu=1000 mem=21000 touched=21000 -> CHECKPOINT 5.1@1~ CHECKPOINT 4.1@1~\n",
        NULL);
    g_autofree char *slow = g_strconcat(begins,
                                        "report 1.1 cpu=1000 mem=6000 touched=6000\n"
                                        "at 40\n"
                                        "report 1.1 cpu=1000 mem=11000 touched=11000\n",
                                        NULL);
    run(fast);
    run(slow);
}

/* Who is saved and runs on grows on meanwhile, and who is in slack has that before him. */
static void periodic_checkpoint_is_no_leaving(void **state)
{
    run("node 1 4 10000\n"
        "submit 1 v=3 m=9000 limit=10000 may-checkpoint every=40 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "submit 2 v=1 m=2000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "report 2.1 cpu=1000 mem=1000 touched=1000\n"
        "at 40\n"
        "timer -> CHECKPOINT 1.1@1#1\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "at 41\n"
        "report 1.1 cpu=1000 mem=2000 touched=2000\n"
        "at 42\n"
        "report 1.1 cpu=1000 mem=3000 touched=3000 -> CHECKPOINT 2.1@1~\n");
}

/* It grows where it goes, too. */
static void growth_of_who_comes_sends_slack_away_before(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION,
             "node 1 4 10000\n"
             "node 2 4 10000\n"
             "submit 1 v=3 m=9000 limit=10000 nodes=1,2 may-move may-checkpoint -> START 1.1@1\n"
             "running 1.1\n"
             "submit 3 v=1 m=1000 limit=10000 nodes=2 -> START 3.1@2\n"
             "submit 4 v=3 m=100 limit=10000 nodes=2 -> START 4.1@2\n"
             "running 3.1\n"
             "running 4.1\n"
             "at 20\n"
             "report 1.1 cpu=1000 mem=1000 touched=1000\n"
             "report 3.1 cpu=100 mem=100\n"
             "report 4.1 cpu=100 mem=100\n"
             "submit 2 v=1 m=2000 limit=10000 nodes=2 slack may-checkpoint -> START 2.1@2~\n"
             "running 2.1\n"
             "report 2.1 cpu=1000 mem=1000 touched=1000\n"
             "exited 4.1 -> RELEASE 4.1@2\n"
             "released 4.1\n"
             "migrate 1 to=2 op -> MIGRATE 1.1@1>2\n"
             "at 21\n"
             "report 1.1 cpu=1000 mem=2000 touched=2000\n"
             "at 22\n"
             "report 1.1 cpu=1000 mem=3000 touched=3000\n"
             "report 3.1 cpu=100 mem=100 -> CHECKPOINT 2.1@2~\n");
}

/* Of job 2, which began just before a restart, is nothing known but what it has been seen to use since. */
static void growth_counts_while_others_settle_anew(void **state)
{
    run("node 1 4 10000\n"
        "submit 1 v=3 m=9000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=1000 touched=1000\n"
        "submit 2 v=1 m=2000 limit=10000 slack may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "restart guests\n"
        "join 1 1.1:running 2.1:running\n"
        "at 21\n"
        "report 2.1 cpu=1000 mem=1500 touched=1500\n"
        "report 1.1 cpu=1000 mem=2000 touched=2000\n"
        "at 22\n"
        "report 1.1 cpu=1000 mem=3000 touched=3000\n"
        "at 23\n"
        "report 1.1 cpu=1000 mem=4000 touched=4000 -> CHECKPOINT 2.1@1~\n");
}

static void what_is_taken_at_once_is_no_growth(void **state)
{
    run(FILLING "at 21\n"
                "report 1.1 cpu=1000 mem=5000 touched=5000\n"
                "at 22\n"
                "report 1.1 cpu=1000 mem=5100 touched=5100\n");
    /* Two reports of one moment are one look. */
    run(FILLING "at 21\n"
                "report 1.1 cpu=1000 mem=5000 touched=5000\n"
                "report 1.1 cpu=1000 mem=5050 touched=5050\n"
                "at 22\n"
                "report 1.1 cpu=1000 mem=5050 touched=5050\n");
}

/* No news for twice as long as a look, and 5 s at least: it may have ended. What another guest takes is too much only with it. */
static void growth_that_was_not_heard_of_lately_is_over(void **state)
{
    static const char *const grows = FILLING "submit 3 v=1 m=1000 limit=10000 -> START 3.1@1\n"
                                             "running 3.1\n"
                                             "report 3.1 cpu=1000 mem=100\n"
                                             "at 31\n"
                                             "report 1.1 cpu=1000 mem=1000 touched=1000\n"
                                             "report 3.1 cpu=1000 mem=100\n"
                                             "at 32\n"
                                             "report 1.1 cpu=1000 mem=1650 touched=1650\n"
                                             "at 33\n"
                                             "report 1.1 cpu=1000 mem=2300 touched=2300\n";
    g_autofree char *soon =
        g_strconcat(grows, "at 38\nreport 3.1 cpu=1000 mem=900 -> CHECKPOINT 2.1@1~\n", NULL);
    g_autofree char *ended = g_strconcat(grows,
                                         "exited 1.1 -> RELEASE 1.1@1\n"
                                         "at 34\n"
                                         "report 3.1 cpu=1000 mem=900\n",
                                         NULL);
    g_autofree char *late = g_strconcat(grows, "at 39\nreport 3.1 cpu=1000 mem=900\n", NULL);
    run(soon);
    run(ended);
    run(late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slack_leaves_before_a_backed_guest_that_grows_fast_needs_it),
        cmocka_unit_test(nobody_comes_to_where_a_backed_guest_grows_fast),
        cmocka_unit_test(growth_below_what_is_predicted_takes_nothing_more),
        cmocka_unit_test(who_grows_back_to_what_it_was_sends_nobody_away),
        cmocka_unit_test(growth_is_looked_ahead_at_as_far_as_it_is_known),
        cmocka_unit_test(who_has_not_begun_to_run_leaves_before_growth_needs_it),
        cmocka_unit_test(those_who_leave_slower_than_others_grow_begin_in_time),
        cmocka_unit_test(periodic_checkpoint_is_no_leaving),
        cmocka_unit_test(growth_of_who_comes_sends_slack_away_before),
        cmocka_unit_test(growth_counts_while_others_settle_anew),
        cmocka_unit_test(what_is_taken_at_once_is_no_growth),
        cmocka_unit_test(growth_that_was_not_heard_of_lately_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
