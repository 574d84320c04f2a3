/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of actions in the simulated world. */
#include "scheduler/sim/costs.h"
#include "tests/lib/assert.h"

#define SEC_USEC ((gint64)G_USEC_PER_SEC)

static void make(SimCosts *costs)
{
    sim_costs_of_guests(costs);
    costs->values[SIM_COST_MIGRATE_FIXED_USEC] = SEC_USEC;
    costs->values[SIM_COST_MIGRATE_MIB_PER_SEC] = 1000;
    costs->values[SIM_COST_DIRTY_MIB_PER_CPU_SEC] = 100;
    costs->values[SIM_COST_CHECKPOINT_FIXED_USEC] = 2 * SEC_USEC;
    costs->values[SIM_COST_CHECKPOINT_MIB_PER_SEC] = 500;
    costs->values[SIM_COST_RESTORE_FIXED_USEC] = 3 * SEC_USEC;
}

static void sim_costs_migrate_copies_what_is_dirtied_again(void **state)
{
    SimCosts costs;
    make(&costs);
    assert_int_equal(sim_costs_migrate_usec(&costs, 8000, 0, 1), 9 * SEC_USEC);
    /* 2 vCPUs dirty 200 MiB/s: 1 / (1 - 0.2) = 1.25 times as much. */
    assert_int_equal(sim_costs_migrate_usec(&costs, 8000, 2000, 1), 11 * SEC_USEC);
    /* Beyond the bandwidth: four times, not for ever. */
    assert_int_equal(sim_costs_migrate_usec(&costs, 8000, 32000, 1), 33 * SEC_USEC);
}

static void sim_costs_transfers_share_the_link(void **state)
{
    SimCosts costs;
    make(&costs);
    assert_int_equal(sim_costs_migrate_usec(&costs, 8000, 0, 4), 33 * SEC_USEC);
    assert_int_equal(sim_costs_checkpoint_usec(&costs, 1000, 1), 4 * SEC_USEC);
    assert_int_equal(sim_costs_checkpoint_usec(&costs, 1000, 3), 8 * SEC_USEC);
    assert_int_equal(sim_costs_restore_usec(&costs, 1000, 1), 5 * SEC_USEC);
}

static void sim_costs_balloon_takes_page_by_page(void **state)
{
    SimCosts costs;
    make(&costs);
    costs.values[SIM_COST_RESIZE_USEC] = SEC_USEC;
    costs.values[SIM_COST_BALLOON_MIB_PER_SEC] = 500;
    assert_int_equal(sim_costs_balloon_usec(&costs, 0), SEC_USEC);
    assert_int_equal(sim_costs_balloon_usec(&costs, 2000), 5 * SEC_USEC);
}

static void sim_costs_of_processes_are_free(void **state)
{
    SimCosts costs;
    sim_costs_of_processes(&costs);
    assert_int_equal(costs.values[SIM_COST_BOOT_USEC], 0);
    assert_int_equal(costs.values[SIM_COST_STOP_USEC], 0);
    assert_int_equal(costs.values[SIM_COST_RELEASE_USEC], 0);
}

static void sim_costs_parse_sets_one_and_refuses_the_rest(void **state)
{
    static const char *const bad[] = {
        "boot_usec", "boot_usec=", "boot_usec=-1",          "boot_usec=x", "boot=1",
        "=1",        "",           "migrate_mib_per_sec=0", "boot_use=1",  "boot_usecs=1"};
    SimCosts costs;
    sim_costs_of_guests(&costs);
    assert_true(sim_costs_parse(&costs, "boot_usec=77", NULL));
    assert_int_equal(costs.values[SIM_COST_BOOT_USEC], 77);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(sim_costs_parse(&costs, bad[i], &error));
        assert_non_null(strstr(error->message, "--cost"));
    }
    assert_int_equal(costs.values[SIM_COST_BOOT_USEC], 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_costs_migrate_copies_what_is_dirtied_again),
        cmocka_unit_test(sim_costs_transfers_share_the_link),
        cmocka_unit_test(sim_costs_balloon_takes_page_by_page),
        cmocka_unit_test(sim_costs_of_processes_are_free),
        cmocka_unit_test(sim_costs_parse_sets_one_and_refuses_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
