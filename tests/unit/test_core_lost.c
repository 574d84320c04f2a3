/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks whose guest or node is lost: requeued, fenced, released by a node that comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script.h"

static void run(const char *script)
{
    core_script_run(&core_script_config, script);
}

static void run_without_fence(const char *script)
{
    BerthCoreConfig config = core_script_config;
    config.can_fence = FALSE;
    core_script_run(&config, script);
}

static void task_lost_guests_are_requeued_a_few_times(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "why 1 requeued\n"
        "released 1.1 -> START 1.2@1\n"
        "running 1.2\n"
        "gone 1.2 guest-vanished -> RELEASE 1.2@1\n"
        "released 1.2 -> START 1.3@1\n"
        "running 1.3\n"
        "gone 1.3 guest-vanished -> RELEASE 1.3@1\n"
        "? 1 NODE_FAIL guest-vanished releasing\n");
}

/* It may have run: nobody has heard of it, but its node had it. */
static void task_taken_and_missing_is_lost(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "taken 1.1\n"
        "taken 1.1\n"
        "left 1\n"
        "join 1 -> RELEASE 1.1@1\n"
        "? 1 PENDING requeued releasing\n"
        "released 1.1 -> START 1.2@1\n"
        "left 1\n" /* nobody has taken 1.2 on */
        "join 1 -> RELEASE 1.2@1\n"
        "? 1 PENDING starting-later releasing\n");
    run("node 1 4 1000\n"
        "submit 1 no-requeue -> START 1.1@1\n"
        "taken 1.1\n"
        "restart\n"
        "join 1 -> RELEASE 1.1@1\n"
        "? 1 NODE_FAIL guest-vanished releasing\n");
}

static void task_not_taken_and_missing_starts_with_a_new_epoch(void **state)
{
    GString *script = g_string_new("node 1 4 1000\nsubmit 1 no-requeue -> START 1.1@1\n");
    for (guint i = 1; i <= 10; i++) /* however often: it is no loss */
        g_string_append_printf(script,
                               "restart\n"
                               "join 1 -> RELEASE 1.%u@1\n"
                               "released 1.%u -> START 1.%u@1\n",
                               i, i, i + 1);
    run(script->str);
    g_string_free(script, TRUE);
}

static void task_no_requeue_fails_when_its_guest_is_lost(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 no-requeue -> START 1.1@1\n"
        "running 1.1\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "? 1 NODE_FAIL guest-vanished releasing\n");
}

static void task_on_lost_node_is_fenced_before_it_starts_elsewhere(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "left 1\n"
        "? 1 RUNNING - running\n"
        "next 60\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "? 1 PENDING requeued fencing\n"
        "why 1 requeued\n"
        "next never\n"
        "fence-failed 1.1\n"
        "next 64\n"
        "at 64\n"
        "timer -> FENCE 1.1@1\n"
        "fenced 1.1 -> START 1.2@2\n"
        "fenced 1.1\n"
        /* The old guest is still there when the node comes back. */
        "join 1 1.1:running -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "? 1 RUNNING - starting\n");
}

static void task_being_fenced_is_released_by_a_node_that_comes_back(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "left 1\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "join 1 1.1:running -> RELEASE 1.1@1\n"
        "? 1 PENDING requeued releasing\n"
        "fenced 1.1\n"       /* says less than the node can */
        "fence-failed 1.1\n" /* nor does this matter now */
        "next 180\n"
        "released 1.1 -> START 1.2@1\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "left 1\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "join 1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1.2@1\n");
}

/* The fence of one guest is open, the other's node is there: what is tried again is not forgotten for that. */
static void gang_fence_that_failed_is_tried_again_while_others_are_removed(void **state)
{
    run("node 1 1 100\n"
        "node 2 1 100\n"
        "submit 1 guests=2 -> START 1.1@1 START 1+1.1@2\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "left 2\n"
        "at 60\n"
        "timer -> RELEASE 1.1@1 FENCE 1+1.1@2\n"
        "fence-failed 1+1.1\n"
        "next 64\n"
        "at 64\n"
        "timer -> FENCE 1+1.1@2\n"
        "fence-failed 1+1.1\n"
        "left 1\n"
        "join 1 1.1:running -> RELEASE 1.1@1\n"
        "next 68\n"
        "at 68\n"
        "timer -> FENCE 1+1.1@2\n"
        "fence-failed 1+1.1\n"
        "join 2 -> RELEASE 1+1.1@2\n"
        "next 188\n");
}

static void gang_fence_that_failed_is_tried_again_after_another_node_is_lost(void **state)
{
    run("node 1 1 100\n"
        "node 2 1 100\n"
        "submit 1 guests=2 -> START 1.1@1 START 1+1.1@2\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "left 1\n"
        "at 2\n"
        "left 2\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "fence-failed 1.1\n"
        "at 62\n"
        "timer -> FENCE 1+1.1@2\n"
        "fenced 1+1.1\n"
        "next 64\n"
        "at 64\n"
        "timer -> FENCE 1.1@1\n"
        "fenced 1.1\n"
        "next never\n"
        "? 1 PENDING requeued none\n");
}

static void task_without_fence_fails_on_lost_node(void **state)
{
    run_without_fence("node 1 4 1000\n"
                      "node 2 4 1000\n"
                      "submit 1 -> START 1.1@1\n"
                      "running 1.1\n"
                      "left 1\n"
                      "at 60\n"
                      "timer\n"
                      "? 1 NODE_FAIL node-lost none\n"
                      "join 1 1.1:running -> RELEASE 1.1@1\n"
                      "? 1 -\n");
}

static void task_lost_while_removing_keeps_its_outcome(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "left 1\n"
        "at 60\n"
        "timer\n"
        "? 1 COMPLETED - none\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 -> RELEASE 1.1@1\n"
        "left 1\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n" /* nobody said that nothing of it runs */
        "? 1 PENDING starting-later fencing\n"
        "cancel 1\n"
        "? 1 CANCELLED cancelled-by-user fencing\n"
        "fenced 1.1\n"
        "? 1 CANCELLED cancelled-by-user none\n");
    run_without_fence("node 1 4 1000\n"
                      "submit 1 -> START 1.1@1\n"
                      "start-failed 1.1 -> RELEASE 1.1@1\n"
                      "left 1\n"
                      "at 60\n"
                      "timer\n"
                      "? 1 NODE_FAIL node-lost none\n");
}

static void task_no_requeue_is_fenced_but_fails(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 no-requeue -> START 1.1@1\n"
        "left 1\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "? 1 NODE_FAIL node-lost fencing\n");
}

/* As by virsh migrate. Its old node forgets it once it cannot write any more. */
static void task_that_left_is_fenced_before_it_starts_again(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "gone 1.1 guest-vanished left -> FENCE 1.1@1\n"
        "? 1 PENDING requeued fencing\n"
        "gone 1.1 guest-vanished left\n"
        "fence-failed 1.1\n"
        "next 4\n"
        "at 4\n"
        "timer -> FENCE 1.1@1\n"
        "fenced 1.1 -> RELEASE 1.1@1\n"
        "? 1 PENDING requeued releasing\n"
        "next 124\n"
        "released 1.1 -> START 1.2@1\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "left 1\n"
        "join 1 1.1:left:guest-vanished -> FENCE 1.1@1\n"
        "? 1 PENDING requeued fencing\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "cancel 1 -> STOP 1.1@1\n"
        "gone 1.1 guest-vanished left -> FENCE 1.1@1\n"
        "? 1 CANCELLED cancelled-by-user fencing\n"
        "fenced 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "? 1 CANCELLED cancelled-by-user none\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "gone 1.1 guest-vanished not-begun left -> FENCE 1.1@1\n");
}

/* That it is not there says nothing of where it is. */
static void task_that_left_is_fenced_whatever_its_node_does(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "gone 1.1 guest-vanished left -> FENCE 1.1@1\n"
        "left 1\n"
        "join 1\n"
        "? 1 PENDING requeued fencing\n"
        "fenced 1.1 -> RELEASE 1.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "left 1\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "join 1 1.1:left:guest-vanished\n"
        "? 1 PENDING requeued fencing\n"
        "fenced 1.1 -> RELEASE 1.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "gone 1.1 guest-vanished left -> FENCE 1.1@1\n"
        "left 1\n"
        "at 60\n"
        "timer -> FENCE 1.1@1\n"
        "fenced 1.1\n"
        "? 1 PENDING requeued none\n");
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "gone 1.1 guest-vanished left -> FENCE 1.1@1\n"
        "restart -> FENCE 1.1@1\n"
        "join 1\n"
        "fenced 1.1 -> RELEASE 1.1@1\n");
}

static void task_that_left_without_fence_fails(void **state)
{
    run_without_fence("node 1 4 1000\n"
                      "submit 1 -> START 1.1@1\n"
                      "running 1.1\n"
                      "gone 1.1 guest-vanished left -> RELEASE 1.1@1\n"
                      "? 1 NODE_FAIL guest-vanished releasing\n");
}

/* Two are lost, and what it is then frozen as is as good as new: neither these nor starts that fail count against that. */
static void task_lost_guests_are_counted_from_its_checkpoint(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 1,
                          "node 1 4 1000\n"
                          "submit 1 may-checkpoint -> START 1.1@1\n"
                          "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
                          "released 1.1 -> START 1.2@1\n"
                          "running 1.2\n"
                          "gone 1.2 guest-vanished -> RELEASE 1.2@1\n"
                          "released 1.2 -> START 1.3@1\n"
                          "running 1.3\n"
                          "at 100\n"
                          "freeze 1 disk -> CHECKPOINT 1.3@1\n"
                          "checkpointed 1.3 stored=100 -> RELEASE 1.3@1\n"
                          "released 1.3\n"
                          "thaw 1 -> RESTORE 1.4@1\n"
                          "start-failed 1.4 storage -> RELEASE 1.4@1\n"
                          "released 1.4\n"
                          "at 105\n"
                          "timer -> RESTORE 1.5@1\n"
                          "running 1.5\n"
                          "gone 1.5 guest-vanished -> RELEASE 1.5@1\n"
                          "released 1.5 -> RESTORE 1.6@1\n"
                          "running 1.6\n"
                          "gone 1.6 guest-vanished -> RELEASE 1.6@1\n"
                          "released 1.6 -> RESTORE 1.7@1\n"
                          "running 1.7\n"
                          "gone 1.7 guest-vanished -> RELEASE 1.7@1\n"
                          "? 1 NODE_FAIL guest-vanished releasing\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_lost_guests_are_requeued_a_few_times),
        cmocka_unit_test(task_lost_guests_are_counted_from_its_checkpoint),
        cmocka_unit_test(task_taken_and_missing_is_lost),
        cmocka_unit_test(task_not_taken_and_missing_starts_with_a_new_epoch),
        cmocka_unit_test(task_no_requeue_fails_when_its_guest_is_lost),
        cmocka_unit_test(task_on_lost_node_is_fenced_before_it_starts_elsewhere),
        cmocka_unit_test(task_being_fenced_is_released_by_a_node_that_comes_back),
        cmocka_unit_test(gang_fence_that_failed_is_tried_again_while_others_are_removed),
        cmocka_unit_test(gang_fence_that_failed_is_tried_again_after_another_node_is_lost),
        cmocka_unit_test(task_without_fence_fails_on_lost_node),
        cmocka_unit_test(task_lost_while_removing_keeps_its_outcome),
        cmocka_unit_test(task_no_requeue_is_fenced_but_fails),
        cmocka_unit_test(task_that_left_is_fenced_before_it_starts_again),
        cmocka_unit_test(task_that_left_is_fenced_whatever_its_node_does),
        cmocka_unit_test(task_that_left_without_fence_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
