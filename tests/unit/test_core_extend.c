/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that get another time limit: while they wait, run, or stand still at the one that they had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* Job 1 stands still at its limit of 100 s since then, on disk, and its node is free. */
#define AT_ITS_LIMIT                                                                               \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=4 limit=100 save may-checkpoint -> START 1.1@1\n"                                  \
    "running 1.1\n"                                                                                \
    "at 100\n"                                                                                     \
    "timer -> CHECKPOINT 1.1@1\n"                                                                  \
    "at 103\n"                                                                                     \
    "checkpointed 1.1 stored=90 -> RELEASE 1.1@1\n"                                                \
    "released 1.1\n"                                                                               \
    "? 1 SUSPENDED time-limit none\n"

static void job_at_its_time_limit_goes_on_when_that_is_extended(void **state)
{
    run(AT_ITS_LIMIT "saved 1 1 epoch=1 ran=100 stored=90\n"
                     "at 500\n"
                     "timer\n"
                     "extend 1 limit=100 ! it has used 00:01:40 already\n"
                     "extend 1 limit=40 ! it has used 00:01:40 already\n"
                     "extend 1 limit=130 -> RESTORE 1.2@1\n"
                     "? 1 RUNNING none starting\n"
                     "running 1.2\n"
                     "at 529\n"
                     "timer\n"
                     "at 530\n" /* 30 s were left, and nothing was lost or won */
                     "timer -> CHECKPOINT 1.2@1\n"
                     "checkpointed 1.2 -> RELEASE 1.2@1\n"
                     "released 1.2\n"
                     "saved 1 2 epoch=2 ran=130\n"
                     "? 1 SUSPENDED time-limit none\n"
                     "extend 1 limit=1000 op -> RESTORE 1.3@1\n"
                     "running 1.3\n"
                     "exited 1.3 -> RELEASE 1.3@1\n"
                     "? 1 COMPLETED none releasing\n");
}

static void job_at_its_time_limit_leaves_its_node_to_others_and_waits_for_room(void **state)
{
    run(AT_ITS_LIMIT "submit 2 v=4 limit=50 -> START 2.1@1\n"
                     "running 2.1\n"
                     "extend 1 limit=200\n"
                     "? 1 PENDING restoring none\n"
                     "why 1 resources\n"
                     "planned 1 153\n"
                     "exited 2.1 -> RELEASE 2.1@1\n"
                     "released 2.1 -> RESTORE 1.2@1\n");
    run(AT_ITS_LIMIT "cancel 1\n"
                     "? 1 CANCELLED cancelled-by-user none\n"
                     "timer\n"
                     "? 1 -\n");
}

static void job_at_its_time_limit_is_let_go_on_by_nothing_else(void **state)
{
    run(AT_ITS_LIMIT "thaw 1 ! berth extend\n"
                     "thaw 1 op ! berth extend\n"
                     "thaw 1 to=1 ! berth extend\n"
                     "freeze 1 ! has used all of its time limit\n"
                     "freeze 1 disk op ! has used all of its time limit\n"
                     "resize 1 v=2 ! does not run\n"
                     "migrate 1 ! does not run\n"
                     "hold 1 ! does not wait\n"
                     "? 1 SUSPENDED time-limit none\n");
    /* But it may go on from before it. */
    run("node 1 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "at 40\n"
        "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
        "checkpointed 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "restore 1 from=2 epoch=1 ran=100\n"
        "? 1 SUSPENDED time-limit none\n"
        "restore 1 from=1 epoch=1 ran=40 -> RESTORE 1.2@1\n"
        "running 1.2\n"
        "at 159\n"
        "timer\n"
        "at 160\n"
        "timer -> CHECKPOINT 1.2@1\n");
}

static void job_at_its_time_limit_survives_a_restart(void **state)
{
    run(AT_ITS_LIMIT "restart\n"
                     "join 1\n"
                     "? 1 SUSPENDED time-limit none\n"
                     "thaw 1 ! berth extend\n"
                     "extend 1 limit=130 -> RESTORE 1.2@1\n"
                     "restart\n"
                     "join 1 1.2:starting -> RESTORE 1.2@1\n"
                     "running 1.2\n"
                     "at 132\n"
                     "timer\n"
                     "at 133\n"
                     "timer -> CHECKPOINT 1.2@1\n"
                     "restart\n"
                     "join 1 1.2:running -> CHECKPOINT 1.2@1\n"
                     "checkpointed 1.2 -> RELEASE 1.2@1\n"
                     "restart\n"
                     "join 1 -> RELEASE 1.2@1\n"
                     "? 1 SUSPENDED time-limit releasing\n"
                     "released 1.2\n"
                     "extend 1 limit=200 -> RESTORE 1.3@1\n");
}

static void job_that_is_extended_while_it_is_being_checkpointed_goes_on_after_that(void **state)
{
    static const char *saved = "node 1 4 1000\n"
                               "submit 1 v=4 limit=100 save may-checkpoint -> START 1.1@1\n"
                               "running 1.1\n"
                               "at 100\n"
                               "timer -> CHECKPOINT 1.1@1\n"
                               "freeze 1 ! has used all of its time limit\n"
                               "extend 1 limit=150\n";
    g_autofree char *works = g_strconcat(saved,
                                         "at 110\n"
                                         "checkpointed 1.1 -> RELEASE 1.1@1\n"
                                         "? 1 PENDING restoring releasing\n"
                                         "released 1.1 -> RESTORE 1.2@1\n"
                                         "running 1.2\n"
                                         "at 159\n"
                                         "timer\n"
                                         "at 160\n"
                                         "timer -> CHECKPOINT 1.2@1\n",
                                         NULL);
    g_autofree char *fails = g_strconcat(saved,
                                         "at 110\n"
                                         "checkpointed 1.1 failed\n"
                                         "? 1 RUNNING none running\n"
                                         "at 150\n"
                                         "timer\n"
                                         "next 160\n"
                                         "at 160\n"
                                         "timer -> CHECKPOINT 1.1@1\n",
                                         NULL);
    run(works);
    run(fails);
}

/* It was to be saved, and its node is lost: what it did since its last checkpoint it does again, within its limit. */
static void job_that_is_lost_at_its_time_limit_goes_on_from_before_it(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "at 60\n"
        "checkpoint 1 -> CHECKPOINT 1.1@1#1\n"
        "checkpointed 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "left 1\n"
        "at 160\n"
        "timer -> FENCE 1.1@1\n"
        "? 1 PENDING requeued fencing\n"
        "fenced 1.1 -> RESTORE 1.2@2\n"
        "running 1.2\n"
        "at 199\n"
        "timer\n"
        "at 200\n"
        "timer -> CHECKPOINT 1.2@2\n");
    run("node 1 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1.2@1\n");
}

static void frozen_job_comes_to_its_time_limit_too(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "? 1 SUSPENDED time-limit running\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "extend 1 limit=110 -> RESTORE 1.2@1\n");
    run("node 1 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "freeze 1 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "extend 1 limit=150 op\n"
        "checkpointed 1.1 failed -> THAW 1.1@1\n");
}

static void limit_of_what_runs_is_an_operators_to_put_off(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 limit=100 save may-checkpoint -> START 1.1@1\n"
        "extend 1 limit=200 ! let it come to its limit\n" /* it boots, in its place */
        "running 1.1\n"
        "submit 2 v=4 limit=100\n"
        "planned 2 100\n"
        "at 50\n"
        "extend 1 limit=200 ! others are planned behind its time limit\n"
        "extend 1 limit=50 op ! it has used 00:00:50 already\n"
        "extend 1 limit=200 op\n"
        "planned 2 200\n"
        "extend 1 limit=90\n" /* less is nobody's loss */
        "planned 2 90\n"
        "extend 2 limit=500\n" /* it waits */
        "extend 3 limit=500 ! no unfinished job 3\n"
        "at 89\n"
        "timer\n"
        "at 90\n"
        "timer -> CHECKPOINT 1.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "extend 1 limit=200 ! ask one\n"
        "cancel 1 -> STOP 1.1@1\n"
        "extend 1 limit=200 op ! is ending\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "extend 1 limit=200 op ! already ended\n");
}

static void limit_that_changes_lets_others_before_or_behind(void **state)
{
    /* 3 fits before the start of 2 when it is short enough. */
    run("node 1 4 1000\n"
        "submit 1 v=3 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=4 limit=100\n"
        "submit 3 v=1 limit=200\n"
        "why 3 room-kept\n"
        "extend 3 limit=100 -> START 3.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 v=3 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=4 limit=100\n"
        "submit 3 v=1 limit=200\n"
        "extend 1 limit=300 op -> START 3.1@1\n"
        "planned 2 300\n");
}

static void limit_of_an_array_is_that_of_all_its_tasks(void **state)
{
    run("node 1 2 1000\n"
        "submit 1 array=3 limit=100 save may-checkpoint -> START 1.1@1 START 1/1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "running 1/1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1/2.1@1\n"
        "extend 1 limit=150 ! runs\n"
        "extend 1 limit=150 op\n"
        "? 1 PENDING restoring none\n"
        "running 1/2.1\n"
        "at 159\n"
        "timer\n"
        "at 160\n"
        "timer -> CHECKPOINT 1/1.1@1\n"
        "checkpointed 1/1.1 -> RELEASE 1/1.1@1\n"
        "released 1/1.1 -> RESTORE 1.2@1\n"
        "exited 1/2.1 -> RELEASE 1/2.1@1\n"
        "released 1/2.1\n"
        "running 1.2\n"
        "at 210\n"
        "timer -> CHECKPOINT 1.2@1\n");
}

static void limit_that_came_while_its_node_was_away_is_put_off(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 99\n"
        "left 1\n"
        "at 100\n"
        "timer\n"
        "extend 1 limit=140 op\n"
        "join 1 1.1:running\n"
        "? 1 RUNNING none running\n"
        "at 139\n"
        "timer\n"
        "at 140\n"
        "timer -> STOP 1.1@1\n");
}

static void limit_of_a_held_job_is_changed_while_it_waits(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 held limit=100 -> \n"
        "extend 1 limit=50\n"
        "restart\n"
        "join 1\n"
        "release 1 -> START 1.1@1\n"
        "running 1.1\n"
        "at 50\n"
        "timer -> STOP 1.1@1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_at_its_time_limit_goes_on_when_that_is_extended),
        cmocka_unit_test(job_at_its_time_limit_leaves_its_node_to_others_and_waits_for_room),
        cmocka_unit_test(job_at_its_time_limit_is_let_go_on_by_nothing_else),
        cmocka_unit_test(job_at_its_time_limit_survives_a_restart),
        cmocka_unit_test(job_that_is_extended_while_it_is_being_checkpointed_goes_on_after_that),
        cmocka_unit_test(job_that_is_lost_at_its_time_limit_goes_on_from_before_it),
        cmocka_unit_test(frozen_job_comes_to_its_time_limit_too),
        cmocka_unit_test(limit_of_what_runs_is_an_operators_to_put_off),
        cmocka_unit_test(limit_that_changes_lets_others_before_or_behind),
        cmocka_unit_test(limit_of_an_array_is_that_of_all_its_tasks),
        cmocka_unit_test(limit_that_came_while_its_node_was_away_is_put_off),
        cmocka_unit_test(limit_of_a_held_job_is_changed_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
