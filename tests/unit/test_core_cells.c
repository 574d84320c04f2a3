/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA cells: in which a guest is counted, and which node is taken because of that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* Four vCPUs and 1000 MiB in each of two cells. */
#define TWO_CELLS "node 1 8 2000 cells=2\n"

static void guest_that_fits_a_cell_is_in_one(void **state)
{
    run(TWO_CELLS "submit 1 v=4 m=1000 -> START 1.1@1[0]\n"
                  "submit 2 v=1 m=600 -> START 2.1@1[1]\n"
                  "submit 3 v=1 m=400 -> START 3.1@1[1]\n");
}

static void larger_guest_spans_the_fewest(void **state)
{
    run("node 1 16 4000 cells=4\n"
        "submit 1 v=5 m=100 -> START 1.1@1[0,1]\n"
        "submit 2 v=8 m=1001 -> START 2.1@1[2,3]\n");
    run("node 1 16 4000 cells=4\n"
        "submit 1 v=16 m=100 -> START 1.1@1[0,1,2,3]\n");
}

/* The first takes 3 vCPUs each of cells 0 and 1; what fits beside it leaves cells 2 and 3 alone. */
static void broken_cells_are_filled_before_whole_ones(void **state)
{
    run("node 1 16 4000 cells=4\n"
        "submit 1 v=6 m=600 -> START 1.1@1[0,1]\n"
        "submit 2 v=1 m=100 -> START 2.1@1[0]\n"
        "submit 3 v=1 m=100 -> START 3.1@1[1]\n"
        "submit 4 v=8 m=2000 -> START 4.1@1[2,3]\n");
}

/* Cell 1 is broken: of those that are whole, 2 and 3 are neighbours, 0 and 2 are not. */
static void cells_that_a_guest_spans_are_near_each_other(void **state)
{
    run("node 1 16 4000 cells=4\n"
        "submit 1 v=3 m=900 -> START 1.1@1[0]\n"
        "submit 2 v=3 m=900 -> START 2.1@1[1]\n"
        "running 1.1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "submit 3 v=8 m=2000 -> START 3.1@1[2,3]\n");
}

/* Two vCPUs are free in each cell: nothing that fits the node waits for a cell. */
static void guest_is_spread_rather_than_kept_waiting(void **state)
{
    run(TWO_CELLS "submit 1 v=2 m=100 limit=10 -> START 1.1@1[0]\n"
                  "submit 2 v=2 m=100 -> START 2.1@1[0]\n"
                  "submit 3 v=2 m=100 -> START 3.1@1[1]\n"
                  "running 1.1\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1\n"
                  "submit 4 v=4 m=100 -> START 4.1@1[0,1]\n");
}

/* Node 1 is fuller, but only node 2 has a cell with room for all of it. */
static void node_that_has_it_in_one_cell_comes_first(void **state)
{
    run("node 1 8 2000 cells=2\n"
        "node 2 8 2000 cells=2\n"
        "submit 1 v=3 m=100 nodes=1 -> START 1.1@1[0]\n"
        "submit 2 v=3 m=100 nodes=1 -> START 2.1@1[1]\n"
        "submit 3 v=2 m=100 -> START 3.1@2[0]\n"
        "submit 4 v=1 m=100 -> START 4.1@1[0]\n");
}

/* Both have 8 vCPUs and 3700 MiB left; node 1 would break a cell. */
static void among_equally_full_nodes_cells_are_kept_whole(void **state)
{
    run("node 1 16 4000 cells=4\n"
        "node 2 16 4000 cells=4\n"
        "submit 1 v=4 m=150 nodes=1 -> START 1.1@1[0]\n"
        "submit 2 v=4 m=150 nodes=1 -> START 2.1@1[1]\n"
        "submit 3 v=3 m=100 nodes=2 -> START 3.1@2[0]\n"
        "submit 4 v=3 m=100 nodes=2 -> START 4.1@2[1]\n"
        "submit 5 v=2 m=100 nodes=2 -> START 5.1@2[2]\n"
        "submit 6 v=2 m=100 -> START 6.1@2[2]\n"
        "submit 7 v=4 m=100 -> START 7.1@2[3]\n");
}

/* Sizes of the index are rounded down: 300 MiB seem to fit where 260 are left. */
static void rounded_index_does_not_spread_a_guest(void **state)
{
    run("node 1 8 1000 cells=2\n"
        "node 2 8 1100 cells=2\n"
        "submit 1 v=1 m=240 nodes=1 -> START 1.1@1[0]\n"
        "submit 2 v=1 m=235 nodes=1 -> START 2.1@1[0]\n"
        "submit 3 v=1 m=240 nodes=1 -> START 3.1@1[1]\n"
        "submit 4 v=1 m=300 -> START 4.1@2[0]\n");
}

static void restart_and_new_cells_spread_guests_anew(void **state)
{
    run("node 1 8 2000 cells=2\n"
        "submit 1 v=4 m=1000 -> START 1.1@1[0]\n"
        "running 1.1\n"
        "changed 1 can cells=4\n"
        "submit 2 v=2 m=500 -> START 2.1@1[2]\n"
        "changed 1 can cells=1\n"
        "submit 3 v=1 m=10 -> START 3.1@1\n"
        "changed 1 can cells=2\n"
        "submit 4 v=1 m=10 -> START 4.1@1[1]\n");
    run("node 1 8 2000 cells=2\n"
        "submit 1 v=4 m=1000 -> START 1.1@1[0]\n"
        "running 1.1\n"
        "restart\n"
        "join 1 1.1:running\n"
        "submit 2 v=4 m=1000 -> START 2.1@1[1]\n");
}

/* What a node offers is less than what it has: half of each cell. */
static void node_that_offers_half_has_half_of_each_cell(void **state)
{
    run("node 1 8 2000 cells=2\n"
        "changed 1 can v=4\n"
        "submit 1 v=2 m=100 -> START 1.1@1[0]\n"
        "submit 2 v=2 m=100 -> START 2.1@1[1]\n");
}

/* One that grows stays where it is if it can; what it had is free again if the node refuses. */
static void growing_guest_keeps_its_cell_if_that_has_room(void **state)
{
    run(TWO_CELLS "submit 1 v=1 m=400 mmax=900 limit=10000 -> START 1.1@1[0]\n"
                  "running 1.1\n"
                  "submit 2 v=1 m=450 limit=10000 -> START 2.1@1[0]\n"
                  "report 1.1 mem=395 left=5 -> RESIZE 1.1@1[0]\n"
                  "resized 1.1\n"
                  "report 1.1 mem=495 left=5 -> RESIZE 1.1@1[1]\n"
                  "resized 1.1 failed\n"
                  "submit 3 v=1 m=550 -> START 3.1@1[0]\n");
}

/* Slack is of the node; whoever is promoted is counted in a cell from then on. */
static void guest_in_slack_is_in_no_cell_until_it_is_promoted(void **state)
{
    run("node 1 4 1000 cells=2\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1[0,1]\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 cpu=1000 mem=300\n"
        "submit 2 v=2 m=500 slack may-move may-checkpoint -> START 2.1@1~\n"
        "running 2.1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> RESIZE 2.1@1[0]\n");
}

static void migrating_guest_is_counted_in_cells_at_both_ends(void **state)
{
    run("node 1 4 1000 cells=2\n"
        "node 2 4 1000 cells=2\n"
        "submit 1 v=2 m=500 may-move limit=10000 nodes=1,2 -> START 1.1@1[0]\n"
        "submit 2 v=1 m=100 nodes=2 -> START 2.1@2[0]\n"
        "running 1.1\n"
        "drain 1 -> MIGRATE 1.1@1>2[1]\n"
        "migrated 1.1\n"
        "submit 3 v=1 m=100 nodes=2 -> START 3.1@2[0]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guest_that_fits_a_cell_is_in_one),
        cmocka_unit_test(larger_guest_spans_the_fewest),
        cmocka_unit_test(broken_cells_are_filled_before_whole_ones),
        cmocka_unit_test(cells_that_a_guest_spans_are_near_each_other),
        cmocka_unit_test(guest_is_spread_rather_than_kept_waiting),
        cmocka_unit_test(node_that_has_it_in_one_cell_comes_first),
        cmocka_unit_test(among_equally_full_nodes_cells_are_kept_whole),
        cmocka_unit_test(rounded_index_does_not_spread_a_guest),
        cmocka_unit_test(restart_and_new_cells_spread_guests_anew),
        cmocka_unit_test(node_that_offers_half_has_half_of_each_cell),
        cmocka_unit_test(growing_guest_keeps_its_cell_if_that_has_room),
        cmocka_unit_test(guest_in_slack_is_in_no_cell_until_it_is_promoted),
        cmocka_unit_test(migrating_guest_is_counted_in_cells_at_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
