/* SPDX-License-Identifier: Apache-2.0 */
/* Who is to stand still because somebody asked for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

static void freeze_stops_what_runs_until_it_is_thawed(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "freeze 1\n"
        "? 1 RUNNING none running\n"
        "frozen 1.1\n"
        "? 1 SUSPENDED frozen-by-user running\n"
        "freeze 1\n"
        "thaw 1 -> THAW 1.1@1\n"
        "thaw 1\n"
        "thawed 1.1\n"
        "? 1 RUNNING none running\n"
        "thaw 1 ! not frozen\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "? 1 COMPLETED none releasing\n");
}

/* But not that of one that an operator froze: nobody knows when it comes. */
static void time_limit_of_who_stands_still_is_known(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "limit 1 100\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "limit 1 100\n"
        "at 10\n"
        "limit 1 100\n"
        "thaw 1 -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "limit 1 100\n"
        "freeze 1 op -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "limit 1 never\n");
}

static void freeze_needs_something_that_runs(void **state)
{
    run("node 1 1 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2\n"
        "freeze 2 ! berth hold\n"
        "thaw 2 ! not frozen\n"
        "freeze 3 ! no unfinished job 3\n"
        "running 1.1\n"
        "cancel 1 -> STOP 1.1@1\n"
        "freeze 1 ! is ending\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "freeze 1 ! already ended\n");
    run("node 1 4 1000\n"
        "submit 1 guests=2 -> START 1.1@1 START 1+1.1@1\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "freeze 1 ! several guests\n");
}

static void freeze_waits_until_the_guest_can_stand_still(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "freeze 1\n" /* it boots */
        "running 1.1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n");
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 may-move -> START 1.1@1\n"
        "running 1.1\n"
        "drain 1 -> MIGRATE 1.1@1>2\n"
        "freeze 1\n"
        "migrated 1.1 -> FREEZE 1.1@2\n"
        "thaw 1\n" /* the wish has changed while it is being frozen */
        "frozen 1.1 -> THAW 1.1@2\n"
        "thawed 1.1\n"
        "? 1 RUNNING none running\n");
}

static void freeze_of_an_operator_is_an_operators_to_end(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "freeze 1 op\n"
        "? 1 SUSPENDED frozen-by-operator running\n"
        "freeze 1\n"
        "? 1 SUSPENDED frozen-by-operator running\n"
        "thaw 1 ! an operator, who alone\n"
        "thaw 1 op -> THAW 1.1@1\n"
        "thawed 1.1\n");
}

static void freeze_that_fails_is_no_wish_any_more(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1 failed\n"
        "? 1 RUNNING none running\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "thaw 1 -> THAW 1.1@1\n"
        "thawed 1.1 failed\n"
        "? 1 SUSPENDED frozen-by-user running\n"
        "thaw 1 -> THAW 1.1@1\n");
}

static void frozen_guest_that_is_stopped_goes_on_to_its_end(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "cancel 1 -> STOP 1.1@1\n"
        "? 1 RUNNING none stopping\n"
        "exited 1.1 signal=15 -> RELEASE 1.1@1\n"
        "? 1 CANCELLED cancelled-by-user releasing\n");
}

static void frozen_time_is_its_users_own_and_not_an_operators(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 100\n"
        "timer -> STOP 1.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "freeze 1 op -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 100\n"
        "timer\n"
        "at 300\n"
        "timer\n"
        "thaw 1 op -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "at 389\n"
        "timer\n"
        "at 390\n"
        "timer -> STOP 1.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 30\n"
        "freeze 1 op\n" /* 20 of its user's */
        "at 80\n"
        "thaw 1 op -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "at 149\n"
        "timer\n"
        "at 150\n"
        "timer -> STOP 1.1@1\n");
}

static void frozen_time_of_an_operator_is_not_charged_by_a_checkpoint(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=200 slack may-checkpoint limit=100 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "at 30\n"
                  "freeze 2 op -> FREEZE 2.1@1~\n"
                  "frozen 2.1\n"
                  "at 400\n" /* it may be moved again */
                  "pressed 1 -> CHECKPOINT 2.1@1~\n"
                  "at 430\n"
                  "checkpointed 2.1 failed\n"
                  "at 440\n"
                  "thaw 2 op -> THAW 2.1@1~\n"
                  "thawed 2.1\n"
                  "at 529\n"
                  "timer\n"
                  "at 530\n" /* 10 it had used */
                  "timer -> STOP 2.1@1\n");
    run(IDLE_NODE
        "submit 2 v=1 m=200 slack may-checkpoint limit=100 -> START 2.1@1~\n"
        "running 2.1\n"
        "at 30\n"
        "freeze 2 op -> FREEZE 2.1@1~\n"
        "frozen 2.1\n"
        "at 400\n"
        "pressed 1 -> CHECKPOINT 2.1@1~\n"
        "checkpointed 2.1 -> RELEASE 2.1@1\n"
        "released 2.1\n"
        "at 700\n" /* nobody comes into the slack of a node that lacked memory before that */
        "timer -> RESTORE 2.2@1~\n"
        "running 2.2 -> FREEZE 2.2@1~\n"
        "thaw 2 op\n"
        "frozen 2.2 -> THAW 2.2@1~\n"
        "thawed 2.2\n"
        "at 789\n"
        "timer\n"
        "at 790\n"
        "timer -> STOP 2.2@1\n");
}

/* It could not be thawed, and its user wants it to stand still by now. */
static void frozen_time_is_charged_from_when_its_user_wants_it(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "freeze 1 op -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 20\n"
        "thaw 1 op -> THAW 1.1@1\n"
        "freeze 1\n"
        "thawed 1.1 failed\n"
        "? 1 SUSPENDED frozen-by-user running\n"
        "at 109\n"
        "timer\n"
        "at 110\n"
        "timer -> STOP 1.1@1\n");
}

static void frozen_guest_stays_so_over_a_restart(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "freeze 1 op -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 60\n"
        "restart\n"
        "join 1 1.1:running\n"
        "? 1 SUSPENDED frozen-by-operator running\n"
        "at 70\n"
        "thaw 1 op -> THAW 1.1@1\n"
        "restart\n"
        "join 1 1.1:running -> THAW 1.1@1\n" /* its answer was not heard */
        "thawed 1.1\n"
        "report 1.1\n"
        "at 159\n"
        "timer\n"
        "at 160\n"
        "timer -> STOP 1.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "restart\n"
        "join 1 1.1:running -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "? 1 SUSPENDED frozen-by-user running\n");
}

/* Whether it was done was not heard, and the wish is another by now: the node is asked again. */
static void freeze_that_was_not_answered_before_a_restart_is_asked_again(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "thaw 1\n"
        "restart\n"
        "join 1 1.1:running -> FREEZE 1.1@1\n"
        "frozen 1.1 -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "? 1 RUNNING none running\n"
        "restart\n"
        "join 1 1.1:running\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "thaw 1 -> THAW 1.1@1\n"
        "freeze 1\n"
        "restart\n"
        "join 1 1.1:running -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "? 1 SUSPENDED frozen-by-user running\n");
}

/* Nor is the time lost that it has stood still before, which it is not charged for. */
static void freeze_that_is_asked_again_after_a_restart_leaves_the_time_before_it(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "freeze 1 op -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 60\n"
        "thaw 1 op -> THAW 1.1@1\n"
        "freeze 1 op\n"
        "restart\n"
        "join 1 1.1:running -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 70\n"
        "thaw 1 op -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "report 1.1\n"
        "at 159\n"
        "timer\n"
        "at 160\n"
        "timer -> STOP 1.1@1\n");
}

static void frozen_job_that_is_lost_is_frozen_again(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 op -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1.2@1\n"
        "running 1.2 -> FREEZE 1.2@1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeze_stops_what_runs_until_it_is_thawed),
        cmocka_unit_test(time_limit_of_who_stands_still_is_known),
        cmocka_unit_test(freeze_needs_something_that_runs),
        cmocka_unit_test(freeze_waits_until_the_guest_can_stand_still),
        cmocka_unit_test(freeze_of_an_operator_is_an_operators_to_end),
        cmocka_unit_test(freeze_that_fails_is_no_wish_any_more),
        cmocka_unit_test(frozen_guest_that_is_stopped_goes_on_to_its_end),
        cmocka_unit_test(frozen_time_is_its_users_own_and_not_an_operators),
        cmocka_unit_test(frozen_time_of_an_operator_is_not_charged_by_a_checkpoint),
        cmocka_unit_test(frozen_time_is_charged_from_when_its_user_wants_it),
        cmocka_unit_test(frozen_guest_stays_so_over_a_restart),
        cmocka_unit_test(freeze_that_was_not_answered_before_a_restart_is_asked_again),
        cmocka_unit_test(freeze_that_is_asked_again_after_a_restart_leaves_the_time_before_it),
        cmocka_unit_test(frozen_job_that_is_lost_is_frozen_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
