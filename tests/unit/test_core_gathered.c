/* SPDX-License-Identifier: Apache-2.0 */
/* Room that is gathered for large jobs, and all who have something to do with it: it is in the way of those
 * alone who could be in slack instead, it keeps nobody out for ever, and nobody who comes later gets it
 * before them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib.h>

#include "tests/unit/core_slack_script.h"

/* 2 has the firm start, on node 2; for 3 node 1 is gathered. */
#define GATHERED                                                                                   \
    "node 1 10 1000\n"                                                                             \
    "node 2 10 1000\n"                                                                             \
    "submit 1 v=4 m=500 nodes=1 limit=100000 -> START 1.1@1\n"                                     \
    "running 1.1\n"                                                                                \
    "submit 9 v=10 m=1000 nodes=2 limit=100000 -> START 9.1@2\n"                                   \
    "running 9.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=4000 mem=500\n"                                                                \
    "report 9.1 cpu=10000 mem=1000\n"                                                              \
    "submit 2 v=10 m=1000 nodes=2 limit=1000\n"                                                    \
    "submit 3 v=10 m=1000 nodes=1 limit=1000\n"

/* 8 is on node 1 and could be on node 3, which is gathered for job 3 from long after 8's end; 4 has made
 * that plan known. */
#define REFUGE(memory, more)                                                                       \
    "node 1 10 1000\n"                                                                             \
    "node 2 10 1000\n"                                                                             \
    "node 3 10 1000\n"                                                                             \
    "submit 9 v=10 m=1000 nodes=2 limit=100000 -> START 9.1@2\n"                                   \
    "running 9.1\n"                                                                                \
    "submit 8 v=4 " memory " limit=1000 may-move nodes=1,3 -> START 8.1@1\n"                       \
    "running 8.1\n" more "submit 7 v=4 m=500 limit=50000 nodes=3 -> START 7.1@3\n"                 \
    "running 7.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 9.1 cpu=10000 mem=1000\n"                                                              \
    "report 7.1 cpu=4000 mem=300\n"                                                                \
    "submit 2 v=10 m=1000 nodes=2 limit=1000\n"                                                    \
    "submit 3 v=10 m=1000 nodes=3 limit=1000\n"                                                    \
    "submit 4 v=1 m=100 limit=60000 may-checkpoint slack nodes=3 -> START 4.1@3~\n"                \
    "running 4.1\n"                                                                                \
    "planned 3 50000\n"

static void who_has_to_leave_is_not_kept_from_gathered_room(void **state)
{
    run(REFUGE("m=500", "") "drain 1 -> MIGRATE 8.1@1>3\n");
    run(REFUGE("m=500", "") "maintenance 1 node=1 from=100 to=5000\n"
                            "at 100\n"
                            "timer -> MIGRATE 8.1@1>3\n");
}

static void who_is_at_its_limit_grows_into_gathered_room(void **state)
{
    run(REFUGE("m=400 mmax=500",
               "submit 6 v=5 m=550 nodes=1 limit=100000 -> START 6.1@1\n"
               "running 6.1\n") "report 8.1 cpu=4000 mem=395 left=5 psi=500 -> MIGRATE 8.1@1>3\n");
}

/* Slack is not tried for more than backfill_depth classes in vain, but for those who were sent there. */
static void who_was_sent_to_slack_is_tried_there(void **state)
{
    static const gint64 depths[] = {1, 8};
    for (guint i = 0; i < G_N_ELEMENTS(depths); i++) {
        g_autoptr(GString) script = g_string_new(GATHERED);
        for (gint64 k = 0; k < depths[i]; k++)
            g_string_append_printf(
                script, "submit %d v=1 m=800 p=9 limit=%d may-checkpoint slack nodes=1\n",
                (int)(10 + k), (int)(500 + k));
        g_string_append(script, "submit 20 v=1 m=100 limit=100 may-checkpoint slack nodes=1"
                                " -> START 20.1@1~\n");
        core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_BACKFILL_DEPTH, depths[i],
                              script->str);
    }
}

/* 5 has no slack to go to and would get room that 4 was kept from, and send 4 away for it. */
static void who_is_in_slack_is_backed_before_one_who_comes_later(void **state)
{
    run(GATHERED "submit 4 v=1 m=300 limit=1000 may-checkpoint slack nodes=1 -> START 4.1@1~\n"
                 "running 4.1\n"
                 "at 40\n"
                 "report 4.1 cpu=1000 mem=300 left=100 touched=300\n"
                 "submit 5 v=1 m=301 limit=100 may-checkpoint slack nodes=1 -> RESIZE 4.1@1\n"
                 /* It could not be, and is not tried again at once. */
                 "resized 4.1 failed -> CHECKPOINT 4.1@1~\n");
}

/* Who comes for slack asks for gathered starts. Those of 3 and of gang 4 stand until 9 has left early; then
 * 3 starts, and 4 still waits for 2. Without that it comes when 1 has left. */
static void what_is_gathered_stands_until_a_node_has_more_room(void **state)
{
    core_script_run_tuned(
        BERTH_FEATURE_ALL, BERTH_TUNING_SLACK_PLAN_INTERVAL_USEC, 0,
        "node 1 10 1000\n"
        "node 2 10 1000\n"
        "submit 1 v=6 m=100 nodes=1 limit=1000 -> START 1.1@1\n"
        "submit 9 v=6 m=100 nodes=2 limit=1500 -> START 9.1@2\n"
        "running 1.1\n"
        "running 9.1\n"
        "at 20\n"
        "report 1.1 cpu=500 mem=100\n"
        "report 9.1 cpu=500 mem=100\n"
        "submit 2 v=8 m=10 nodes=1 limit=1000\n"
        "submit 3 v=10 m=10 nodes=2 limit=500\n"
        "submit 4 v=10 m=10 guests=2 limit=500\n"
        "submit 5 v=1 m=1 limit=5000 nodes=1 slack may-checkpoint -> START 5.1@1~\n"
        "planned 2 1000\n"
        "planned 3 1500\n"
        "planned 4 2000\n"
        "at 30\n"
        "submit 6 v=1 m=1 limit=5000 nodes=1 slack may-checkpoint -> START 6.1@1~\n"
        "planned 3 1500\n"
        "planned 4 2000\n"
        "exited 9.1 -> RELEASE 9.1@2\n"
        "at 40\n"
        "released 9.1 -> START 3.1@2\n"
        "submit 7 v=1 m=1 limit=5000 nodes=1 slack may-checkpoint -> START 7.1@1~\n"
        "planned 4 2000\n"
        "at 50\n"
        "cancel 2\n"
        "submit 8 v=1 m=1 limit=5000 nodes=1 slack may-checkpoint -> START 8.1@1~\n"
        "planned 4 1000\n");
}

/* User 7 may run one task: what comes after 2 of his could not start when it is 3's turn, and no room is kept for that. */
static void no_room_is_kept_for_more_than_who_may_run_at_once(void **state)
{
    static const char script[] =
        "node 1 10 1000\n"
        "node 2 10 1000\n"
        "user 7 tasks=%u\n"
        "submit 1 v=4 m=500 nodes=1 limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 9 v=10 m=1000 nodes=2 limit=100000 -> START 9.1@2\n"
        "running 9.1\n"
        "at 20\n"
        "report 1.1 cpu=4000 mem=500\n"
        "report 9.1 cpu=10000 mem=1000\n"
        "submit 2 v=10 m=1000 nodes=2 limit=1000 uid=7\n"
        "submit 3 v=10 m=1000 nodes=1 limit=1000 uid=7\n"
        "submit 4 v=1 m=300 limit=1000 may-checkpoint slack nodes=1 -> START 4.1@1%s\n";
    g_autofree char *one = g_strdup_printf(script, 1, "");
    g_autofree char *two = g_strdup_printf(script, 2, "~");
    run(one);
    run(two);
}

static void no_start_is_firm_for_more_than_who_may_run_at_once(void **state)
{
    static const char script[] = "node 1 4 1000\n"
                                 "node 2 4 1000\n"
                                 "account 1 v=%u\n"
                                 "submit 1 v=4 limit=1000 nodes=1 -> START 1.1@1\n"
                                 "running 1.1\n"
                                 "submit 2 v=1 limit=1100 nodes=2 -> START 2.1@2\n"
                                 "running 2.1\n"
                                 "submit 3 v=4 uid=7 account=1 limit=100000 p=5\n"
                                 "submit 4 v=4 uid=8 account=1 limit=1000 p=5\n"
                                 "planned 3 1000\n"
                                 "planned 4 %s\n"
                                 "submit 5 v=3 uid=9 limit=2000 p=1%s\n";
    g_autofree char *one = g_strdup_printf(script, 4, "never", " -> START 5.1@2");
    g_autofree char *two = g_strdup_printf(script, 8, "1100", "");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 8, one);
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 8, two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_to_leave_is_not_kept_from_gathered_room),
        cmocka_unit_test(who_is_at_its_limit_grows_into_gathered_room),
        cmocka_unit_test(who_was_sent_to_slack_is_tried_there),
        cmocka_unit_test(who_is_in_slack_is_backed_before_one_who_comes_later),
        cmocka_unit_test(what_is_gathered_stands_until_a_node_has_more_room),
        cmocka_unit_test(no_room_is_kept_for_more_than_who_may_run_at_once),
        cmocka_unit_test(no_start_is_firm_for_more_than_who_may_run_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
