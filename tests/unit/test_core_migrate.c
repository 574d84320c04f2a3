/* SPDX-License-Identifier: Apache-2.0 */
/* Who is to go on on another node because somebody asked for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

#define TWO_NODES                                                                                  \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"
#define ONE_RUNS                                                                                   \
    TWO_NODES "submit 1 v=1 m=100 nodes=1,2 may-move -> START 1.1@1\n"                             \
              "running 1.1\n"

static void migrate_moves_what_runs_to_where_it_is_wanted(void **state)
{
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "migrate 1 to=2\n" /* the same again */
                 "migrate 1 ! being moved already\n"
                 "migrated 1.1\n"
                 "migrate 1 to=2 ! runs there already\n"
                 "migrate 1 to=1 -> MIGRATE 1.1@2>1\n"
                 "migrated 1.1 failed\n"
                 "exited 1.1 -> RELEASE 1.1@2\n");
    run(ONE_RUNS "migrate 1 op -> MIGRATE 1.1@1>2\n" /* wherever there is room */
                 "migrated 1.1\n"
                 "exited 1.1 -> RELEASE 1.1@2\n");
}

/* Whoever comes back first: it may have arrived at the other end. */
static void who_was_moved_when_both_ends_were_lost_is_fenced_before_he_starts_again(void **state)
{
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "left 1\n"
                 "left 2\n"
                 "at 60\n"
                 "timer -> FENCE 1.1@1\n"
                 "join 1\n"
                 "? 1 PENDING requeued fencing\n"
                 "join 2 1.1:running -> RELEASE 1.1@2\n"
                 "fence-failed 1.1\n"
                 "at 64\n"
                 "timer -> FENCE 1.1@1\n"
                 "fenced 1.1 -> RELEASE 1.1@1\n"
                 "released 1.1 on=1 -> START 1.2@1\n");
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "left 1\n"
                 "at 60\n"
                 "timer -> RELEASE 1.1@2 FENCE 1.1@1\n"
                 "restart -> FENCE 1.1@1\n" /* which knows no more that it was moved */
                 "join 1\n"
                 "? 1 PENDING requeued fencing\n");
}

static void migrate_holds_room_at_both_ends_until_it_is_done(void **state)
{
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "submit 2 v=4 m=100 nodes=2\n"
                 "submit 3 v=4 m=100 nodes=1\n"
                 "migrated 1.1 -> START 3.1@1\n");
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "submit 2 v=4 m=100 nodes=2\n"
                 "migrated 1.1 failed -> START 2.1@2\n");
}

static void migrate_is_refused_with_the_reason(void **state)
{
    run(ONE_RUNS "migrate 2 ! no unfinished job 2\n"
                 "migrate 1 to=7 ! no such node\n"
                 "cordon 2\n"
                 "migrate 1 to=2 ! cordoned or drained\n"
                 "migrate 1 ! no other node\n"
                 "undrain 2\n"
                 "changed 2 cannot\n"
                 "migrate 1 to=2 ! gets no new guests\n"
                 "changed 2 can\n"
                 "left 2\n"
                 "migrate 1 to=2 ! not reached\n"
                 "migrate 1 ! nodes that it may use are away\n"
                 "join 2\n"
                 "submit 2 v=4 m=100 nodes=2 -> START 2.1@2\n"
                 "migrate 2 ! does not run yet\n"
                 "migrate 1 to=2 ! has no room\n"
                 "submit 3 v=1 m=100 held\n"
                 "migrate 3 ! does not run\n"
                 "freeze 1 -> FREEZE 1.1@1\n"
                 "migrate 1 ! being frozen\n"
                 "frozen 1.1\n"
                 "cancel 1 -> STOP 1.1@1\n"
                 "migrate 1 ! is ending\n");
    run(TWO_NODES "submit 1 guests=2 may-move -> START 1.1@1 START 1+1.1@1\n"
                  "running 1.1\n"
                  "running 1+1.1\n"
                  "migrate 1 ! several guests\n");
    run(TWO_NODES "submit 1 v=1 m=100 nodes=1 may-move -> START 1.1@1\n"
                  "running 1.1\n"
                  "migrate 1 to=2 ! for other nodes\n");
    run(TWO_NODES "submit 1 v=1 m=100 -> START 1.1@1\n" /* of storage that nodes do not share */
                  "running 1.1\n"
                  "migrate 1 to=2 ! nodes share\n");
    run(ONE_RUNS "left 1\n"
                 "migrate 1 to=2 ! its node is not reached\n");
}

static void migrate_does_not_take_what_is_planned_for_others(void **state)
{
    run(ONE_RUNS "submit 2 v=2 m=100 limit=100 nodes=2 -> START 2.1@2\n"
                 "running 2.1\n"
                 "submit 3 v=4 m=100 nodes=2\n" /* planned for second 100 */
                 "migrate 1 to=2 ! planned for others\n");
}

static void frozen_guest_is_moved_as_it_is(void **state)
{
    run(ONE_RUNS "freeze 1 -> FREEZE 1.1@1\n"
                 "frozen 1.1\n"
                 "migrate 1 -> MIGRATE 1.1@1>2\n"
                 "migrated 1.1\n"
                 "? 1 SUSPENDED frozen-by-user running\n"
                 "thaw 1 -> THAW 1.1@2\n");
}

static void move_that_is_called_off_ends_with_its_answer(void **state)
{
    run(ONE_RUNS "migrate-not 1 ! not being moved\n"
                 "migrate 1 -> MIGRATE 1.1@1>2\n"
                 "migrate-not 1 -> STAY 1.1@1\n"
                 "migrate-not 1\n"
                 "migrated 1.1 failed\n"
                 "migrate 1 -> MIGRATE 1.1@1>2\n"
                 "migrate-not 1 -> STAY 1.1@1\n"
                 "migrated 1.1\n" /* too late */
                 "exited 1.1 -> RELEASE 1.1@2\n");
    run(ONE_RUNS "migrate 1 op -> MIGRATE 1.1@1>2\n"
                 "migrate-not 1 ! an operator\n"
                 "migrate-not 1 op -> STAY 1.1@1\n");
    run(ONE_RUNS "drain 1 -> MIGRATE 1.1@1>2\n"
                 "migrate-not 1 op ! undrain\n");
}

/* What is open when berthd is killed is asked for again when the node is back; room is held meanwhile. */
static void open_move_outlives_a_restart(void **state)
{
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "restart\n"
                 "join 2\n"
                 "submit 2 v=4 m=100 nodes=2\n"
                 "join 1 1.1:running -> MIGRATE 1.1@1>2\n"
                 "migrated 1.1 failed -> START 2.1@2\n");
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "migrate-not 1 -> STAY 1.1@1\n"
                 "restart\n"
                 "join 2\n"
                 "join 1 1.1:running -> MIGRATE 1.1@1>2 STAY 1.1@1\n"
                 "migrated 1.1 failed\n"
                 "exited 1.1 -> RELEASE 1.1@1\n");
}

/* It has left, and nobody has heard of it: it is asked for where it was, which tells. */
static void guest_that_has_left_is_no_loss(void **state)
{
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "restart\n"
                 "join 2 1.1:running\n"
                 "join 1 -> MIGRATE 1.1@1>2\n"
                 "migrated 1.1\n"
                 "? 1 RUNNING none running\n"
                 "exited 1.1 -> RELEASE 1.1@2\n");
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "cancel 1 -> STOP 1.1@1\n"
                 "left 1\n"
                 "join 1 -> MIGRATE 1.1@1>2\n"
                 "migrated 1.1 -> STOP 1.1@2\n");
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "cancel 1 -> STOP 1.1@1\n"
                 "left 1\n"
                 "join 1 1.1:running -> STOP 1.1@1 MIGRATE 1.1@1>2\n"
                 "migrated 1.1 failed\n"
                 "exited 1.1 -> RELEASE 1.1@1\n");
}

/* Whoever says that it has ended is believed, and both ends are cleared. */
static void guest_that_ends_on_its_way_has_ended(void **state)
{
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "exited 1.1 on=2 -> RELEASE 1.1@2 RELEASE 1.1@1\n"
                 "? 1 COMPLETED none releasing\n");
}

/* That one end lost it says nothing of the other; who moves it asks both. */
static void guest_that_is_gone_where_it_was_to_come_runs_on(void **state)
{
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "gone 1.1 guest-vanished on=2\n"
                 "? 1 RUNNING none running\n"
                 "migrated 1.1 failed\n"
                 "exited 1.1 -> RELEASE 1.1@1\n");
    run(ONE_RUNS "migrate 1 to=2 -> MIGRATE 1.1@1>2\n"
                 "gone 1.1 guest-vanished on=1 -> RELEASE 1.1@2 RELEASE 1.1@1\n");
}

/* --- drains --------------------------------------------------------------------------------- */

#define THREE_RUN                                                                                  \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "submit 1 v=1 m=100 may-move -> START 1.1@1\n"                                                 \
    "submit 2 v=1 m=100 may-move -> START 2.1@1\n"                                                 \
    "submit 3 v=1 m=100 may-move -> START 3.1@1\n"                                                 \
    "running 1.1\n"                                                                                \
    "running 2.1\n"                                                                                \
    "running 3.1\n"

static void guests_that_cannot_be_moved_keep_no_other_from_it(void **state)
{
    run(THREE_RUN "drain 1 -> MIGRATE 1.1@1>2 MIGRATE 2.1@1>2\n" /* as many as may be */
                  "migrated 1.1 failed -> MIGRATE 3.1@1>2\n"
                  "migrated 2.1 failed\n"
                  "migrated 3.1\n"
                  "submit 4 v=1 m=100 nodes=2 -> START 4.1@2\n"
                  "at 60\n"
                  "timer -> MIGRATE 1.1@1>2 MIGRATE 2.1@1>2\n"
                  "migrated 1.1 failed\n"
                  "migrated 2.1 failed\n"
                  "at 120\n"
                  "timer\n" /* twice as long */
                  "at 180\n"
                  "timer -> MIGRATE 1.1@1>2 MIGRATE 2.1@1>2\n"
                  "migrated 1.1 failed\n"
                  "undrain 1 -> STAY 2.1@1\n"
                  "drain 1 -> MIGRATE 1.1@1>2\n" /* what was in the way may be mended */
                  "migrated 1.1\n"
                  "migrated 2.1\n"); /* too far on its way to stay */
}

static void node_to_which_none_comes_is_taken_last(void **state)
{
    run(THREE_RUN "submit 4 v=1 m=100 nodes=2 -> START 4.1@2\n"
                  "node 3 4 1000\n"
                  "drain 1 -> MIGRATE 1.1@1>2 MIGRATE 2.1@1>2\n"
                  "migrated 1.1 failed -> MIGRATE 3.1@1>3\n"
                  "migrated 2.1 failed\n"
                  "migrated 3.1\n"
                  "at 60\n"
                  "timer -> MIGRATE 1.1@1>3 MIGRATE 2.1@1>3\n"
                  "migrated 1.1 failed\n" /* now of two that are as bad the best */
                  "migrated 2.1 failed\n"
                  "at 180\n"
                  "timer -> MIGRATE 1.1@1>2 MIGRATE 2.1@1>2\n"
                  "migrated 1.1\n"
                  "migrated 2.1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(migrate_moves_what_runs_to_where_it_is_wanted),
        cmocka_unit_test(who_was_moved_when_both_ends_were_lost_is_fenced_before_he_starts_again),
        cmocka_unit_test(migrate_holds_room_at_both_ends_until_it_is_done),
        cmocka_unit_test(migrate_is_refused_with_the_reason),
        cmocka_unit_test(migrate_does_not_take_what_is_planned_for_others),
        cmocka_unit_test(frozen_guest_is_moved_as_it_is),
        cmocka_unit_test(move_that_is_called_off_ends_with_its_answer),
        cmocka_unit_test(open_move_outlives_a_restart),
        cmocka_unit_test(guest_that_has_left_is_no_loss),
        cmocka_unit_test(guest_that_ends_on_its_way_has_ended),
        cmocka_unit_test(guest_that_is_gone_where_it_was_to_come_runs_on),
        cmocka_unit_test(guests_that_cannot_be_moved_keep_no_other_from_it),
        cmocka_unit_test(node_to_which_none_comes_is_taken_last),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
