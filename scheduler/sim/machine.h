/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nodes that are simulated. */

#include <glib.h>

typedef struct {
    guint32 nodes;
    guint32 vcpus;      /* of each node, */
    guint64 memory_mib; /* likewise, */
    /* but for so many of NODES, the last ones, which have one vCPU less: where processors are no multiple of
     * nodes */
    guint32 n_smaller;
    guint64 smaller_mib; /* memory of each of these */
} SimMachine;

/* NODE counts from 1, as those below. */
static inline gboolean sim_machine_is_smaller(const SimMachine *machine, guint32 node)
{
    return node > machine->nodes - machine->n_smaller;
}

static inline guint32 sim_machine_vcpus(const SimMachine *machine, guint32 node)
{
    return machine->vcpus - (sim_machine_is_smaller(machine, node) ? 1 : 0);
}

static inline guint64 sim_machine_mib(const SimMachine *machine, guint32 node)
{
    return sim_machine_is_smaller(machine, node) ? machine->smaller_mib : machine->memory_mib;
}

/* Of all nodes. */
static inline guint64 sim_machine_all_vcpus(const SimMachine *machine)
{
    return (guint64)machine->nodes * machine->vcpus - machine->n_smaller;
}

static inline guint64 sim_machine_all_mib(const SimMachine *machine)
{
    return (machine->nodes - machine->n_smaller) * machine->memory_mib +
           machine->n_smaller * machine->smaller_mib;
}

/* So many guests of that size, with what their host needs for each, an empty machine holds. */
static inline guint64 sim_machine_holds(const SimMachine *machine, guint32 vcpus, guint64 mib)
{
    guint64 larger = MIN(machine->vcpus / vcpus, machine->memory_mib / mib);
    guint64 smaller = MIN((machine->vcpus - 1) / vcpus, machine->smaller_mib / mib);
    return larger * (machine->nodes - machine->n_smaller) + smaller * machine->n_smaller;
}
