/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler is told of a host's CPUs where some are kept for the host. */
#include <config.h>

#include "common/message.h"
#include "nodeagent/agent_private.h"
#include "tests/lib/assert.h"

static void add_cell(GArray *cells, guint32 id, guint32 first_cpu, gboolean says_which)
{
    BerthHostCell cell = {.id = id,
                          .cpus = 2,
                          .memory_mib = 1024,
                          .cpu_ids = g_array_new(FALSE, FALSE, sizeof(guint32)),
                          .distances = g_array_new(FALSE, FALSE, sizeof(guint32))};
    for (guint32 cpu = first_cpu; says_which && cpu < first_cpu + 2; cpu++)
        g_array_append_val(cell.cpu_ids, cpu);
    g_array_append_val(cells, cell);
}

static void clear_cell(gpointer data)
{
    BerthHostCell *cell = data;
    g_array_unref(cell->cpu_ids);
    g_array_unref(cell->distances);
}

static Berth__NodeInfo *info_with(const char *guest_cpus, gboolean says_which)
{
    const BerthNodeConfig config = {.name = (char *)"n1", .guest_cpus = (char *)guest_cpus};
    const BerthProbeResult acceleration = {.use_kvm = TRUE, .reason = (char *)""};
    g_autoptr(GArray) cells = g_array_new(FALSE, FALSE, sizeof(BerthHostCell));
    g_array_set_clear_func(cells, clear_cell);
    add_cell(cells, 0, 0, says_which);
    add_cell(cells, 1, 2, says_which);
    const BerthHost host = {.cpus = 4,
                            .memory_mib = 2048,
                            .cells = cells,
                            .machine = (char *)"pc-q35-7.2",
                            .qemu_version = (char *)"7.2.0",
                            .libvirt_version = (char *)"9.0.0"};
    return berth_node_info_new(&config, &host, &acceleration, "maximum", "", NULL);
}

/* Nobody is to be placed in a cell in which no vCPU may run. */
static void cells_offer_what_is_not_kept_for_the_host(void **state)
{
    static const struct {
        const char *guest_cpus;
        guint32 vcpus, of_cells[2];
    } cases[] = {{NULL, 4, {2, 2}}, {"1,3", 2, {1, 1}}, {"2-3", 2, {0, 2}}, {"1-3", 3, {1, 2}}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__NodeInfo *info = info_with(cases[i].guest_cpus, TRUE);
        assert_int_equal(info->cpus, 4);
        assert_int_equal(info->vcpus, cases[i].vcpus);
        assert_int_equal(info->n_cells, 2);
        for (guint k = 0; k < 2; k++)
            assert_int_equal(info->cells[k]->cpus, cases[i].of_cells[k]);
        berth_message_free(&info->base);
    }
}

static void cells_of_unknown_cpus_offer_all(void **state)
{
    Berth__NodeInfo *info = info_with("2-3", FALSE);
    assert_int_equal(info->vcpus, 2);
    assert_int_equal(info->cells[0]->cpus, 2);
    assert_int_equal(info->cells[1]->cpus, 2);
    berth_message_free(&info->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_offer_what_is_not_kept_for_the_host),
        cmocka_unit_test(cells_of_unknown_cpus_offer_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
