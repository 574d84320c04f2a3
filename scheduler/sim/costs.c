/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of costs and their formulas.
 *
 * Measured: by bench/costs, guests that are emulated, two CPUs at a load of 9 to 15, migration and pool within
 * one machine. What is measured below a default there can be above it elsewhere: where it is said so,
 * the slower of what was seen is the default. */
#include "config.h"

#include "scheduler/sim/costs.h"

#include "common/error.h"
#include "common/units.h"

#include <string.h>

#define COPIES_MAX 4

typedef struct {
    const char *name;
    gint64 value; /* the default */
    const char *meaning;
    const char *source;
} CostInfo;

static const CostInfo costs_table[SIM_COST_N] = {
    [SIM_COST_BOOT_USEC] = {"boot_usec", 1500000, "from START to the command's first instruction",
                            "1.1 s of boot and power-off under TCG and 0.4 s of libvirt, measured"},
    [SIM_COST_STOP_USEC] = {"stop_usec", 1000000, "from STOP to the end of the command",
                            "a command that ends at SIGTERM; assumed"},
    [SIM_COST_RELEASE_USEC] =
        {"release_usec", 2000000, "until a guest that ended is gone",
         "0.2 s measured; 2.0 s, seen too, where libvirt waits for QEMU to exit: the slower"},
    [SIM_COST_FENCE_USEC] = {"fence_usec", 1000000, "to blocklist a client", "assumed"},
    [SIM_COST_MIGRATE_FIXED_USEC] = {"migrate_fixed_usec", 2300000,
                                     "of a migration apart from copying",
                                     "0.4 s measured; 2.0-2.5 s, seen too, where libvirt waits for "
                                     "the source's QEMU to exit: the slower"},
    [SIM_COST_MIGRATE_PAUSE_USEC] =
        {"migrate_pause_usec", 60000, "the guest stands still at the end",
         "46-72 ms measured on an idle machine, 186 ms on this busy one"},
    [SIM_COST_MIGRATE_MIB_PER_SEC] = {"migrate_mib_per_sec", 1000, "bandwidth of a node's link",
                                      "10 GbE less protocol; assumed: a lab has no link"},
    [SIM_COST_DIRTY_MIB_PER_CPU_SEC] = {"dirty_mib_per_cpu_sec", 50,
                                        "memory dirtied per second and busy vCPU",
                                        "assumed: it is the jobs'"},
    [SIM_COST_CHECKPOINT_FIXED_USEC] =
        {"checkpoint_fixed_usec", 1900000, "of a checkpoint apart from copying",
         "0.6 s measured; 1.9 s, seen too, of 512 MiB with 30 touched: the slower"},
    [SIM_COST_RESTORE_FIXED_USEC] = {"restore_fixed_usec", 500000,
                                     "of a restore apart from copying", "0.5 s measured"},
    [SIM_COST_CHECKPOINT_MIB_PER_SEC] = {"checkpoint_mib_per_sec", 400,
                                         "bandwidth of a node to checkpoint storage",
                                         "three replicas over 10 GbE; assumed: a lab has one disk"},
    [SIM_COST_FREEZE_USEC] = {"freeze_usec", 10000, "to stop or continue vCPUs",
                              "5 ms measured, with the call to libvirt"},
    [SIM_COST_RESIZE_USEC] = {"resize_usec", 1000000, "until the guest has its new size",
                              "0.7 s of a vCPU and 50 ms of 256 MiB measured, until the "
                              "guest has it online; the rest, for the way there, is assumed"},
    [SIM_COST_BALLOON_MIB_PER_SEC] = {"balloon_mib_per_sec", 500,
                                      "that a balloon takes, besides resize_usec",
                                      "page by page, cache that has to be dropped first; assumed"},
    [SIM_COST_CACHE_PERMILLE] = {"cache_permille", 0,
                                 "of what it reserved, page cache that a guest fills while it runs",
                                 "assumed: it is the jobs', and no trace tells it"},
    [SIM_COST_HOST_MIB] = {"host_mib", 0,
                           "that hosts count to what a guest occupies, besides its own memory",
                           "QEMU's: some 120 MiB where it emulates, measured by bench/mixed-day; "
                           "next to the memory of real jobs it is nothing"},
};

void sim_costs_of_guests(SimCosts *out_costs)
{
    for (guint i = 0; i < SIM_COST_N; i++)
        out_costs->values[i] = costs_table[i].value;
}

void sim_costs_of_processes(SimCosts *out_costs)
{
    sim_costs_of_guests(out_costs);
    out_costs->values[SIM_COST_BOOT_USEC] = 0;
    out_costs->values[SIM_COST_STOP_USEC] = 0;
    out_costs->values[SIM_COST_RELEASE_USEC] = 0;
    out_costs->values[SIM_COST_CACHE_PERMILLE] = 0; /* the host's own, that gives way */
    out_costs->values[SIM_COST_HOST_MIB] = 0;
}

gboolean sim_costs_parse(SimCosts *costs, const char *text, GError **error)
{
    const char *equals = strchr(text, '=');
    for (guint i = 0; equals != NULL && i < SIM_COST_N; i++) {
        const char *name = costs_table[i].name;
        guint64 value;
        if (strlen(name) != (gsize)(equals - text) || !g_str_has_prefix(text, name))
            continue;
        guint64 least = g_str_has_suffix(name, "mib_per_sec") ? 1 : 0;
        guint64 most = g_str_has_suffix(name, "_permille") ? 1000 : G_GUINT64_CONSTANT(1) << 40;
        if (!berth_parse_uint64(equals + 1, least, most, &value, error)) {
            g_prefix_error(error, "--cost %s: ", text);
            return FALSE;
        }
        costs->values[i] = (gint64)value;
        return TRUE;
    }
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < SIM_COST_N; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", costs_table[i].name);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "--cost %s: %s; names: %s", text,
                equals == NULL || equals == text ? "wants NAME=NUMBER" : "there is no such cost",
                names->str);
    return FALSE;
}

static gint64 copy_usec(guint64 memory_mib, guint64 mib_per_sec, guint n_transfers)
{
    return (gint64)(memory_mib * G_USEC_PER_SEC / mib_per_sec * MAX(n_transfers, 1u));
}

gint64 sim_costs_migrate_usec(const SimCosts *costs, guint64 memory_mib, guint32 cpu_milli,
                              guint n_transfers)
{
    guint64 link = (guint64)costs->values[SIM_COST_MIGRATE_MIB_PER_SEC];
    guint64 own = MAX(link / MAX(n_transfers, 1u), 1);
    guint64 dirty = (guint64)costs->values[SIM_COST_DIRTY_MIB_PER_CPU_SEC] * cpu_milli / 1000;
    guint64 copied = COPIES_MAX * memory_mib;
    if (dirty < own)
        copied = MIN(copied, memory_mib * own / (own - dirty));
    return costs->values[SIM_COST_MIGRATE_FIXED_USEC] + copy_usec(copied, link, n_transfers);
}

gint64 sim_costs_balloon_usec(const SimCosts *costs, guint64 memory_mib)
{
    return costs->values[SIM_COST_RESIZE_USEC] +
           copy_usec(memory_mib, (guint64)costs->values[SIM_COST_BALLOON_MIB_PER_SEC], 1);
}

gint64 sim_costs_checkpoint_usec(const SimCosts *costs, guint64 memory_mib, guint n_transfers)
{
    return costs->values[SIM_COST_CHECKPOINT_FIXED_USEC] +
           copy_usec(memory_mib, (guint64)costs->values[SIM_COST_CHECKPOINT_MIB_PER_SEC],
                     n_transfers);
}

gint64 sim_costs_restore_usec(const SimCosts *costs, guint64 memory_mib, guint n_transfers)
{
    return costs->values[SIM_COST_RESTORE_FIXED_USEC] +
           copy_usec(memory_mib, (guint64)costs->values[SIM_COST_CHECKPOINT_MIB_PER_SEC],
                     n_transfers);
}
