/* SPDX-License-Identifier: Apache-2.0 */
/* Guests that are backed, on nodes that are drained, and have room in the slack of others alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* 1 is backed on node 1; node 2 is reserved by 2, which uses a fifth of it. */
#define BESIDE_IDLE(wanted)                                                                        \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=2 m=400 limit=5000 may-move may-checkpoint " wanted " -> START 1.1@1\n"            \
    "running 1.1\n"                                                                                \
    "node 2 4 1000\n"                                                                              \
    "submit 2 v=4 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"                                     \
    "running 2.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=500 mem=100\n"                                                                 \
    "report 2.1 cpu=500 mem=200\n"
#define GOES_INTO_SLACK                                                                            \
    BESIDE_IDLE("slack")                                                                           \
    "drain 1\n"                                                                                    \
    "at 79\n"                                                                                      \
    "timer\n"                                                                                      \
    "at 80\n"                                                                                      \
    "timer -> MIGRATE 1.1@1>2~\n"

/* Two that need 465 MiB each for their checkpoints. */
#define TWO_BESIDE_IDLE                                                                            \
    "node 1 8 2000\n"                                                                              \
    "submit 1 v=1 m=400 limit=50000 may-move may-checkpoint slack -> START 1.1@1\n"                \
    "submit 3 v=1 m=400 limit=50000 may-move may-checkpoint slack -> START 3.1@1\n"                \
    "running 1.1\n"                                                                                \
    "running 3.1\n"                                                                                \
    "node 2 8 4000\n"                                                                              \
    "submit 2 v=8 m=4000 limit=100000 nodes=2 -> START 2.1@2\n"                                    \
    "running 2.1\n"                                                                                \
    "report 1.1 cpu=500 mem=100\n"                                                                 \
    "report 3.1 cpu=500 mem=100\n"                                                                 \
    "report 2.1 cpu=500 mem=200\n"                                                                 \
    "at 1000\n"                                                                                    \
    "report 1.1 cpu=500 mem=100\n"                                                                 \
    "report 3.1 cpu=500 mem=100\n"                                                                 \
    "report 2.1 cpu=500 mem=200\n"

/* A checkpoint would go on in the same slack, later. */
static void drained_guest_without_a_place_goes_on_in_slack(void **state)
{
    run(GOES_INTO_SLACK "migrated 1.1\n"
                        "admits 1 draining empty\n"
                        "exited 2.1 -> RELEASE 2.1@2\n"
                        "released 2.1 -> RESIZE 1.1@2\n" /* it is backed again */);
}

static void plan_says_who_goes_into_slack(void **state)
{
    run(BESIDE_IDLE("slack") "leave 1 1.1:slack:5010\n"
                             "empties 1 1 62\n"
                             "leave 1 with=2 1.1:waits:5010\n"
                             "node 3 4 300\n"
                             "leave 1 with=2 1.1:slack:5010\n"); /* that of 3 */
    run(BESIDE_IDLE("") "leave 1 1.1:no-room:5010\n");
}

/* There is slack for one of them. */
static void plan_counts_who_goes_into_slack_before(void **state)
{
    run("node 1 8 2000\n"
        "submit 1 v=1 m=400 limit=5000 may-move may-checkpoint slack -> START 1.1@1\n"
        "submit 3 v=1 m=400 limit=5000 may-move may-checkpoint slack -> START 3.1@1\n"
        "running 1.1\n"
        "running 3.1\n"
        "node 2 8 1000\n"
        "submit 2 v=8 m=1000 limit=10000 nodes=2 -> START 2.1@2\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=500 mem=380\n"
        "report 3.1 cpu=500 mem=380\n"
        "report 2.1 cpu=500 mem=200\n"
        "leave 1 1.1:slack:5010 3.1:no-room:5010\n");
}

static void drained_guest_that_may_not_be_in_slack_is_checkpointed(void **state)
{
    run(BESIDE_IDLE("") "drain 1\n"
                        "at 80\n"
                        "timer -> CHECKPOINT 1.1@1\n");
}

/* Space for its checkpoint is kept as soon as it leaves for there, also over a restart, and it is as large as it is. */
static void space_is_kept_for_who_goes_into_slack(void **state)
{
    const char *const restarts[] = {"restart\n", "restart guests\n"};
    for (guint i = 0; i < G_N_ELEMENTS(restarts); i++) {
        g_autofree char *script =
            g_strconcat(TWO_BESIDE_IDLE "leave 1 1.1:slack:50010 3.1:no-room+no-space:50010\n"
                                        "drain 1\n"
                                        "at 1060\n"
                                        "timer -> MIGRATE 1.1@1>2~\n"
                                        "space 0 465 435\n",
                        restarts[i],
                        "join 2 2.1:running\n"
                        "join 1 1.1:running 3.1:running -> MIGRATE 1.1@1>2~\n"
                        "space 0 465 435\n"
                        "migrated 1.1 failed\n"
                        "space 0 0 900\n",
                        NULL);
        core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 900, script);
    }
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 900,
                          TWO_BESIDE_IDLE "drain 1\n"
                                          "at 1060\n"
                                          "timer -> MIGRATE 1.1@1>2~\n"
                                          "migrated 1.1 failed -> MIGRATE 3.1@1>2~\n");
}

/* It does not have to be patient once more. */
static void drained_guest_goes_into_slack_when_it_has_a_turn(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_MOVES_PER_NODE, 1,
                          TWO_BESIDE_IDLE "drain 1\n"
                                          "at 1060\n"
                                          "timer -> MIGRATE 1.1@1>2~\n"
                                          "at 1070\n"
                                          "migrated 1.1 -> MIGRATE 3.1@1>2~\n");
}

/* Its next try is after a rest. */
static void drained_guest_that_fails_to_move_into_slack_stays(void **state)
{
    run(GOES_INTO_SLACK "migrated 1.1 failed\n"
                        "at 139\n"
                        "timer\n"
                        "at 140\n"
                        "timer -> MIGRATE 1.1@1>2~\n");
}

static void drained_guest_whose_drain_ends_stays_backed(void **state)
{
    run(GOES_INTO_SLACK "undrain 1 -> STAY 1.1@1\n"
                        "migrated 1.1 failed\n"
                        "? 1 RUNNING none running\n"
                        "admits 1 open\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drained_guest_without_a_place_goes_on_in_slack),
        cmocka_unit_test(plan_says_who_goes_into_slack),
        cmocka_unit_test(plan_counts_who_goes_into_slack_before),
        cmocka_unit_test(drained_guest_that_may_not_be_in_slack_is_checkpointed),
        cmocka_unit_test(space_is_kept_for_who_goes_into_slack),
        cmocka_unit_test(drained_guest_goes_into_slack_when_it_has_a_turn),
        cmocka_unit_test(drained_guest_that_fails_to_move_into_slack_stays),
        cmocka_unit_test(drained_guest_whose_drain_ends_stays_backed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
