/* SPDX-License-Identifier: Apache-2.0 */
/* Order, fit and decision: who starts where, who waits, and why. */
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

static void placement_is_first_fit_by_handle(void **state)
{
    run("node 1 2 1000\n"
        "node 2 4 1000\n"
        "node 3 4 300\n"
        "submit 1 v=3 -> START 1.1@2\n"
        "submit 2 v=2 -> START 2.1@1\n"
        "submit 3 v=1 m=100 -> START 3.1@2\n"
        "submit 4 v=2 m=300 -> START 4.1@3\n"
        "submit 5 v=1 m=1\n"
        "why 5 resources\n");
}

static void placement_goes_by_priority_then_number(void **state)
{
    run("node 1 1 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 p=1\n"
        "submit 3 p=5\n"
        "submit 4 p=5\n"
        "submit 5 p=5 m=200\n"
        "why 3 resources\n"
        "why 4 priority\n"
        "why 5 priority\n"
        "why 2 priority\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 3.1@1\n"
        "cancel 4\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1 -> START 5.1@1\n"
        "exited 5.1 -> RELEASE 5.1@1\n"
        "released 5.1 -> START 2.1@1\n");
}

static void placement_counts_overhead(void **state)
{
    BerthCoreConfig config = core_script_config;
    config.guest_overhead_mib = 50;
    core_script_run(&config, "node 1 8 400\n"
                             "submit 1 m=100 -> START 1.1@1\n"
                             "submit 2 m=150 -> START 2.1@1\n"
                             "submit 3 m=1\n"
                             "submit 4 m=350\n"
                             "submit 5 m=351 ! the largest, n1, has 8 vCPUs and 350 MiB\n");
}

static void placement_waiter_keeps_all_nodes_it_could_use(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "node 3 2 1000\n"
        "submit 1 v=3 -> START 1.1@1\n"
        "submit 2 v=3 -> START 2.1@2\n"
        "submit 3 v=4\n"                /* waits for node 1 or 2 */
        "submit 4 v=1 -> START 4.1@3\n" /* node 3 is too small for it anyway */
        "submit 5 v=1 -> START 5.1@3\n"
        "submit 6 v=1\n" /* there is room on 1 and 2, but not for it */
        "why 3 resources\n"
        "why 6 resources\n" /* node 3 is kept for nobody, and full */
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 3.1@1 START 6.1@2\n");
}

static void placement_constrained_waiter_blocks_only_its_nodes(void **state)
{
    run("node 1 2 1000\n"
        "node 2 2 1000\n"
        "node 3 2 1000\n"
        "submit 1 v=1 nodes=2 -> START 1.1@2\n"
        "submit 2 v=2 nodes=2\n"
        "why 2 resources\n"
        "submit 3 v=1 nodes=2\n"
        "why 3 priority\n"
        "submit 4 v=2 -> START 4.1@1\n"
        "submit 5 v=1 nodes=2,3 -> START 5.1@3\n"
        "submit 6 v=2 nodes=3,2,3\n"
        "why 6 resources\n"
        "submit 7 v=1 nodes=2,3\n"
        "why 7 priority\n"
        "exited 1.1 -> RELEASE 1.1@2\n"
        "released 1.1 -> START 2.1@2\n");
}

static void placement_held_and_backing_off_jobs_block_nobody(void **state)
{
    run("node 1 2 1000\n"
        "submit 1 v=2 held\n"
        "? 1 PENDING held-by-user none\n"
        "submit 2 v=1 -> START 2.1@1\n"
        "start-failed 2.1 -> RELEASE 2.1@1\n"
        "released 2.1\n"
        "submit 3 v=2 -> START 3.1@1\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1\n"
        "at 4\n"
        "timer -> START 2.2@1\n");
}

static void placement_on_absent_nodes_waits_for_them(void **state)
{
    run("node 1 1 1000\n"
        "node 2 1 1000\n"
        "left 2\n"
        "submit 1 nodes=2\n"
        "why 1 node-unavailable\n"
        "submit 2 -> START 2.1@1\n" /* nothing is kept on a node that is away */
        "left 1\n"
        "submit 3\n"
        "why 3 node-unavailable\n"
        "join 2 -> START 1.1@2\n"
        "why 3 resources\n");
}

/* Three jobs, whose starts fail on node 1, close it. */
#define THREE_FAILURES                                                                             \
    "node 1 8 1000\n"                                                                              \
    "submit 1 -> START 1.1@1\n"                                                                    \
    "submit 2 -> START 2.1@1\n"                                                                    \
    "submit 3 -> START 3.1@1\n"                                                                    \
    "start-failed 1.1 -> RELEASE 1.1@1\n"                                                          \
    "start-failed 2.1 storage -> RELEASE 2.1@1\n"                                                  \
    "start-failed 3.1 -> RELEASE 3.1@1\n"                                                          \
    "released 1.1\n"                                                                               \
    "released 2.1\n"                                                                               \
    "released 3.1\n"

static void node_where_starts_fail_is_closed_for_a_while(void **state)
{
    run(THREE_FAILURES "submit 4\n"
                       "why 4 node-unavailable\n"
                       "at 4\n"
                       "timer\n"
                       "next 32\n"
                       "at 32\n"
                       "timer -> START 1.2@1 START 2.2@1 START 3.2@1 START 4.1@1\n"
                       "next never\n");
}

/* What is in use for a while is no fault of a node's, however many wait for such. */
static void node_where_starts_wait_for_what_is_in_use_stays_open(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 -> START 2.1@1\n"
        "submit 3 -> START 3.1@1\n"
        "start-failed 1.1 passes -> RELEASE 1.1@1\n"
        "start-failed 2.1 passes -> RELEASE 2.1@1\n"
        "start-failed 3.1 passes -> RELEASE 3.1@1\n"
        "released 1.1\n"
        "released 2.1\n"
        "released 3.1\n"
        "submit 4 -> START 4.1@1\n"
        "why 1 starting-later\n");
}

static void node_is_closed_after_as_many_failures_as_the_site_says(void **state)
{
    core_script_run_tuned(0, BERTH_TUNING_NODE_FAILURES_MAX, 1,
                          "node 1 8 1000\n"
                          "submit 1 -> START 1.1@1\n"
                          "start-failed 1.1 -> RELEASE 1.1@1\n"
                          "released 1.1\n"
                          "submit 2\n"
                          "why 2 node-unavailable\n"
                          "at 4\n"
                          "timer\n"
                          "next 32\n"
                          "at 32\n"
                          "timer -> START 1.2@1 START 2.1@1\n");
}

static void node_where_starts_fail_again_is_closed_for_longer(void **state)
{
    run(THREE_FAILURES "at 32\n"
                       "timer -> START 1.2@1 START 2.2@1 START 3.2@1\n"
                       "start-failed 2.2 -> RELEASE 2.2@1\n"
                       "released 2.2\n"
                       "at 40\n"
                       "timer\n"
                       "why 2 node-unavailable\n"
                       "next 96\n");
}

static void node_where_a_start_works_is_trusted_again(void **state)
{
    run(THREE_FAILURES "at 32\n"
                       "timer -> START 1.2@1 START 2.2@1 START 3.2@1\n"
                       "running 3.2\n"
                       "start-failed 2.2 -> RELEASE 2.2@1\n"
                       "start-failed 1.2 -> RELEASE 1.2@1\n"
                       "submit 4 -> START 4.1@1\n");
}

static void node_where_starts_failed_is_open_after_a_new_session(void **state)
{
    run(THREE_FAILURES "submit 4\n"
                       "left 1\n"
                       "join 1 -> START 4.1@1\n");
}

static void node_where_starts_failed_is_open_after_an_outage(void **state)
{
    run(THREE_FAILURES "submit 4\n"
                       "storage down\n"
                       "storage up -> START 4.1@1\n");
}

static void node_is_not_closed_by_one_job_nor_by_a_job_that_cannot_start(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "at 4\n"
        "timer -> START 1.2@1\n"
        "start-failed 1.2 -> RELEASE 1.2@1\n"
        "released 1.2\n"
        "at 12\n"
        "timer -> START 1.3@1\n"
        "submit 2 -> START 2.1@1\n"
        "submit 3 -> START 3.1@1\n"
        "start-failed 1.3 -> RELEASE 1.3@1\n"
        "start-failed 2.1 permanent -> RELEASE 2.1@1\n"
        "start-failed 3.1 permanent -> RELEASE 3.1@1\n"
        "submit 4 -> START 4.1@1\n");
}

static void node_is_not_closed_in_an_outage(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 -> START 2.1@1\n"
        "submit 3 -> START 3.1@1\n"
        "storage down\n"
        "start-failed 1.1 storage -> RELEASE 1.1@1\n"
        "start-failed 2.1 storage -> RELEASE 2.1@1\n"
        "start-failed 3.1 storage -> RELEASE 3.1@1\n"
        "submit 4\n"
        "storage up -> START 4.1@1\n");
}

static void node_without_storage_is_avoided(void **state)
{
    run("node 1 8 1000\n"
        "node 2 8 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 storage -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "at 4\n"
        "timer -> START 1.2@2\n");
}

static void node_that_cannot_start_gets_nothing_until_it_can(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 -> START 1.1@1\n"
        "changed 1 cannot\n"
        "submit 2\n"
        "why 2 node-unavailable\n"
        "running 1.1\n" /* what it has goes on */
        "node 2 1 100 -> START 2.1@2\n"
        "submit 3\n"
        "left 1\n"
        "join 1 1.1:running\n"
        "why 3 resources\n"
        "restart\n"
        "join 1 1.1:running\n"
        "changed 1 can -> START 3.1@1\n");
}

static void placement_waits_for_storage(void **state)
{
    run("node 1 4 1000\n"
        "storage down\n"
        "submit 1\n"
        "submit 2\n"
        "why 1 storage-unavailable\n"
        "storage down\n"
        "cancel 2\n"
        "storage up -> START 1.1@1\n"
        "storage up\n");
}

static void placement_cancelled_waiter_lets_others_go(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=2 -> START 1.1@1\n"
        "submit 2 v=4\n"
        "submit 3 v=1\n"
        "submit 4 v=1\n"
        "cancel 2 -> START 3.1@1 START 4.1@1\n");
    run("node 1 4 1000\n"
        "submit 1 v=2 -> START 1.1@1\n"
        "submit 2 v=4\n"
        "submit 3 v=1\n"
        "hold 2 -> START 3.1@1\n"
        "why 2 held-by-user\n");
}

static void placement_strays_keep_a_node_clear(void **state)
{
    run("node 1 2 1000\n"
        "left 1\n"
        "submit 1\n"
        "join 1 9.3:running 8.1:gone -> RELEASE 9.3@1 RELEASE 8.1@1\n"
        "why 1 resources\n"
        "released 9.3\n"
        "released 9.3\n"
        "released 8.1 -> START 1.1@1\n");
    run("node 1 2 1000\n"
        "left 1\n"
        "submit 1\n"
        "join 1 9.3:running -> RELEASE 9.3@1\n"
        "left 1\n"
        "join 1 -> START 1.1@1\n"); /* it is not there any more */
}

static void placement_node_that_shrank_takes_no_more(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=2 -> START 1.1@1\n"
        "submit 2 v=2 -> START 2.1@1\n"
        "left 1\n"
        "changed 1 can v=3\n" /* too late for this session */
        "join 1 1.1:starting 2.1:starting -> START 1.1@1 START 2.1@1\n"
        "submit 3 v=1\n"
        "why 3 resources\n"
        "submit 4 v=4 ! largest\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 3.1@1\n");
}

static void placement_of_many_nodes_finds_each(void **state)
{
    run("node 1 1 1000\nnode 2 1 1000\nnode 3 1 1000\nnode 4 1 1000\n"
        "node 5 1 1000\nnode 6 1 1000\nnode 7 1 1000\nnode 8 3 1000\n"
        "submit 1 v=3 -> START 1.1@8\n"
        "submit 2 -> START 2.1@1\nsubmit 3 -> START 3.1@2\nsubmit 4 -> START 4.1@3\n"
        "submit 5 -> START 5.1@4\nsubmit 6 -> START 6.1@5\nsubmit 7 -> START 7.1@6\n"
        "submit 8 -> START 8.1@7\n"
        "submit 9\n"
        "exited 5.1 -> RELEASE 5.1@4\n"
        "released 5.1 -> START 9.1@4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placement_is_first_fit_by_handle),
        cmocka_unit_test(placement_goes_by_priority_then_number),
        cmocka_unit_test(placement_counts_overhead),
        cmocka_unit_test(placement_waiter_keeps_all_nodes_it_could_use),
        cmocka_unit_test(placement_constrained_waiter_blocks_only_its_nodes),
        cmocka_unit_test(placement_held_and_backing_off_jobs_block_nobody),
        cmocka_unit_test(placement_on_absent_nodes_waits_for_them),
        cmocka_unit_test(node_where_starts_fail_is_closed_for_a_while),
        cmocka_unit_test(node_where_starts_wait_for_what_is_in_use_stays_open),
        cmocka_unit_test(node_is_closed_after_as_many_failures_as_the_site_says),
        cmocka_unit_test(node_where_starts_fail_again_is_closed_for_longer),
        cmocka_unit_test(node_where_a_start_works_is_trusted_again),
        cmocka_unit_test(node_where_starts_failed_is_open_after_a_new_session),
        cmocka_unit_test(node_where_starts_failed_is_open_after_an_outage),
        cmocka_unit_test(node_is_not_closed_by_one_job_nor_by_a_job_that_cannot_start),
        cmocka_unit_test(node_is_not_closed_in_an_outage),
        cmocka_unit_test(node_without_storage_is_avoided),
        cmocka_unit_test(node_that_cannot_start_gets_nothing_until_it_can),
        cmocka_unit_test(placement_waits_for_storage),
        cmocka_unit_test(placement_cancelled_waiter_lets_others_go),
        cmocka_unit_test(placement_strays_keep_a_node_clear),
        cmocka_unit_test(placement_node_that_shrank_takes_no_more),
        cmocka_unit_test(placement_of_many_nodes_finds_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
