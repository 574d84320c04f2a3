/* SPDX-License-Identifier: Apache-2.0 */
/* Where the guests of one task go: on few nodes, near to each other, all or none, and never in slack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* By best fit alone two would go to node 1. */
static void gang_is_on_one_node_if_that_takes_all(void **state)
{
    run("node 1 4 1000\n"
        "node 2 8 2000\n"
        "node 3 16 4000\n"
        "submit 1 v=2 guests=3 -> START 1.1@2 START 1+1.1@2 START 1+2.1@2\n");
}

/* Two nodes of 8 rather than three; what is left over goes where it fits best. */
static void gang_is_on_the_fewest_nodes(void **state)
{
    run("node 1 4 1000\n"
        "node 2 8 2000\n"
        "node 3 5 2000\n"
        "node 4 8 2000\n"
        "submit 1 v=4 guests=3 -> START 1.1@2 START 1+1.1@2 START 1+2.1@1\n"
        "submit 2 v=4 guests=3 -> START 2.1@4 START 2+1.1@4 START 2+2.1@3\n");
}

static void gang_stays_within_a_rack(void **state)
{
    run("node 1 4 1000 rack=1\n"
        "node 2 4 1000 rack=2\n"
        "node 3 4 1000\n"
        "node 4 4 1000 rack=2\n"
        "submit 1 v=4 guests=2 -> START 1.1@2 START 1+1.1@4\n"
        "submit 2 v=4 guests=2 -> START 2.1@1 START 2+1.1@3\n");
}

static void gang_larger_than_a_rack_stays_within_a_fabric(void **state)
{
    run("node 1 4 1000 rack=1 fabric=1\n"
        "node 2 4 1000 rack=2 fabric=2\n"
        "node 3 4 1000 rack=3 fabric=2\n"
        "node 4 4 1000 rack=4 fabric=1\n"
        "node 5 4 1000 rack=3 fabric=2\n"
        "submit 1 v=4 guests=3 -> START 1.1@3 START 1+1.1@5 START 1+2.1@2\n");
}

/* A rack has room on two nodes; one node of another has it alone. */
static void fewer_nodes_come_before_nearer_ones(void **state)
{
    run("node 1 4 1000 rack=1\n"
        "node 2 4 1000 rack=1\n"
        "node 3 8 2000 rack=2\n"
        "submit 1 v=4 guests=2 -> START 1.1@3 START 1+1.1@3\n");
}

static void gang_starts_whole_or_not_at_all(void **state)
{
    run("node 1 4 1000 rack=1\n"
        "node 2 4 1000 rack=1\n"
        "submit 1 v=1 limit=10 nodes=1 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 2 v=4 guests=2\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 2.1@1 START 2+1.1@2\n");
}

static void gang_goes_near_only_where_its_constraint_allows(void **state)
{
    run("node 1 4 1000 rack=1\n"
        "node 2 4 1000 rack=2\n"
        "node 3 4 1000 rack=2\n"
        "node 4 4 1000 rack=1\n"
        "submit 1 v=4 guests=2 nodes=1,2,4 -> START 1.1@1 START 1+1.1@4\n");
}

/* Nodes 3 and 4 are a rack, and planned for job 2, which may start in 100 s. */
static void near_nodes_are_not_taken_from_planned_starts(void **state)
{
    static const char nodes[] = "node 1 4 1000 rack=1\n"
                                "node 2 4 1000 rack=2\n"
                                "node 3 4 1000 rack=3\n"
                                "node 4 4 1000 rack=3\n"
                                "submit 1 v=1 limit=100 nodes=3 -> START 1.1@3\n"
                                "running 1.1\n";
    g_autofree char *planned =
        g_strconcat(nodes,
                    "submit 2 v=4 guests=2 nodes=3,4 p=1\n"
                    "planned 2 100\n"
                    "submit 3 v=3 guests=2 limit=101 -> START 3.1@1 START 3+1.1@2\n",
                    NULL);
    g_autofree char *brief =
        g_strconcat(nodes,
                    "submit 2 v=4 guests=2 nodes=3,4 p=1\n"
                    "submit 3 v=3 guests=2 limit=100 -> START 3.1@3 START 3+1.1@4\n",
                    NULL);
    run(planned);
    run(brief);
}

/* Node 1 failed to start it: it goes elsewhere, although that is farther apart. */
static void gang_avoids_the_node_where_it_failed(void **state)
{
    run("node 1 8 1000 rack=1\n"
        "node 2 4 1000 rack=2\n"
        "node 3 4 1000 rack=3\n"
        "submit 1 v=4 guests=2 -> START 1.1@1 START 1+1.1@1\n"
        "start-failed 1.1 -> RELEASE 1.1@1 RELEASE 1+1.1@1\n"
        "released 1.1\n"
        "released 1+1.1\n"
        "at 10\n"
        "timer -> START 1.2@2 START 1+1.2@3\n");
}

/* Whatever it allows: its guests could not leave at once, nor one without the others. */
static void gang_never_starts_in_slack(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=100 guests=2 slack may-move may-checkpoint\n"
                  "submit 3 v=1 m=100 slack may-move may-checkpoint -> START 3.1@1~\n"
                  "why 2 resources\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gang_is_on_one_node_if_that_takes_all),
        cmocka_unit_test(gang_is_on_the_fewest_nodes),
        cmocka_unit_test(gang_stays_within_a_rack),
        cmocka_unit_test(gang_larger_than_a_rack_stays_within_a_fabric),
        cmocka_unit_test(fewer_nodes_come_before_nearer_ones),
        cmocka_unit_test(gang_starts_whole_or_not_at_all),
        cmocka_unit_test(gang_goes_near_only_where_its_constraint_allows),
        cmocka_unit_test(near_nodes_are_not_taken_from_planned_starts),
        cmocka_unit_test(gang_avoids_the_node_where_it_failed),
        cmocka_unit_test(gang_never_starts_in_slack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
