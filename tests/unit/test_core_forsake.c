/* SPDX-License-Identifier: Apache-2.0 */
/* A start or a move that waits for room on a node leaves only if that node takes guests when the room has come free; and nobody
 * was asked for a start before that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* 6 is to be started where 5, in slack, has to leave for it. */
#define WAITS(options)                                                                             \
    "node 1 4 1000\n"                                                                              \
    "submit 2 v=2 m=500 limit=10000 nodes=1 -> START 2.1@1\n"                                      \
    "running 2.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 2.1 cpu=500 mem=300\n"                                                                 \
    "submit 5 v=3 m=500 limit=5000 nodes=1 slack may-checkpoint -> START 5.1@1~\n"                 \
    "running 5.1\n"                                                                                \
    "report 5.1 cpu=500 mem=480\n"                                                                 \
    "submit 6 v=2 m=500 limit=1000 " options " -> CHECKPOINT 5.1@1~\n"
#define ROOM_IS_MADE "checkpointed 5.1 -> RELEASE 5.1@1\n"

/* --- starts --------------------------------------------------------------------------------- */

static void start_leaves_when_room_is_made(void **state)
{
    run(WAITS("") ROOM_IS_MADE "released 5.1 -> START 6.1@1\n");
}

static void start_does_not_leave_for_a_node_that_was_closed(void **state)
{
    run(WAITS("") "cordon 1\n"
                  "? 6 PENDING starting-later none\n" ROOM_IS_MADE "released 5.1\n"
                  "undrain 1 -> START 6.2@1\n");
    run(WAITS("") "drain 1\n"
                  "? 6 PENDING starting-later none\n" ROOM_IS_MADE "released 5.1\n");
    run(WAITS("") "changed 1 cannot v=4\n"
                  "? 6 PENDING starting-later none\n" ROOM_IS_MADE "released 5.1\n");
}

/* What 6 leaves would be enough for 7. */
static void starts_that_are_sent_away_leave_nothing_to_each_other(void **state)
{
    run("node 1 4 1000\n"
        "submit 2 v=2 m=300 limit=10000 nodes=1 -> START 2.1@1\n"
        "running 2.1\n"
        "at 20\n"
        "report 2.1 cpu=500 mem=200\n"
        "submit 5 v=3 m=400 limit=5000 nodes=1 slack may-checkpoint -> START 5.1@1~\n"
        "running 5.1\n"
        "report 5.1 cpu=500 mem=390\n"
        "submit 6 v=1 m=500 limit=1000 -> CHECKPOINT 5.1@1~\n"
        "submit 7 v=1 m=200 limit=1000\n"
        "drain 1\n"
        "? 6 PENDING starting-later none\n"
        "? 7 PENDING starting-later none\n");
}

static void start_goes_elsewhere_at_once_where_its_node_was_closed(void **state)
{
    run(WAITS("") "node 2 4 1000\n"
                  "cordon 1 -> START 6.2@2\n");
    run(WAITS("") "node 2 4 1000\n"
                  "changed 1 cannot v=4 -> START 6.2@2\n");
    run(WAITS("") "node 2 4 1000\n"
                  "left 1 -> START 6.2@2\n");
}

static void start_does_not_leave_for_a_node_that_has_become_smaller(void **state)
{
    run(WAITS("") "changed 1 can v=2\n"
                  "? 6 PENDING starting-later none\n" ROOM_IS_MADE "released 5.1\n");
}

/* ... be it under way, or to come before the end of what cannot be moved. */
static void start_does_not_leave_for_a_node_in_maintenance(void **state)
{
    run(WAITS("") "maintenance 1 node=1 from=20 to=5000\n"
                  "? 6 PENDING starting-later none\n" ROOM_IS_MADE "released 5.1\n");
    run(WAITS("") "maintenance 1 node=1 from=900 to=5000\n" ROOM_IS_MADE "released 5.1\n");
    run(WAITS("may-move") "maintenance 1 node=1 from=900 to=5000\n" ROOM_IS_MADE
                          "released 5.1 -> START 6.1@1\n");
}

static void start_does_not_leave_while_storage_is_down(void **state)
{
    run(WAITS("") "storage down\n"
                  "exited 5.1 -> RELEASE 5.1@1\n"
                  "released 5.1\n"
                  "storage up -> START 6.1@1\n");
}

/* --- nobody was asked for it ---------------------------------------------------------------- */

static void start_that_never_left_is_not_lost_with_its_node(void **state)
{
    run(WAITS("no-requeue") "left 1\n"
                            "? 6 PENDING starting-later none\n"
                            "at 80\n"
                            "timer -> FENCE 2.1@1 FENCE 5.1@1\n"
                            "? 6 PENDING starting-later none\n");
}

static void start_that_never_left_is_cancelled_at_once(void **state)
{
    run(WAITS("") "cancel 6\n"
                  "? 6 CANCELLED cancelled-by-user none\n");
    run(WAITS("") "left 1\n"
                  "cancel 6\n"
                  "? 6 CANCELLED cancelled-by-user none\n");
}

/* --- moves ---------------------------------------------------------------------------------- */

static void move_does_not_leave_for_a_node_that_was_closed(void **state)
{
    run(MOVE_WAITS "changed 2 cannot v=4\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n");
    run(MOVE_WAITS "maintenance 1 node=2 from=30 to=90000\n"
                   "exited 5.1 -> RELEASE 5.1@2\n"
                   "released 5.1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_leaves_when_room_is_made),
        cmocka_unit_test(start_does_not_leave_for_a_node_that_was_closed),
        cmocka_unit_test(starts_that_are_sent_away_leave_nothing_to_each_other),
        cmocka_unit_test(start_goes_elsewhere_at_once_where_its_node_was_closed),
        cmocka_unit_test(start_does_not_leave_for_a_node_that_has_become_smaller),
        cmocka_unit_test(start_does_not_leave_for_a_node_in_maintenance),
        cmocka_unit_test(start_does_not_leave_while_storage_is_down),
        cmocka_unit_test(start_that_never_left_is_not_lost_with_its_node),
        cmocka_unit_test(start_that_never_left_is_cancelled_at_once),
        cmocka_unit_test(move_does_not_leave_for_a_node_that_was_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
