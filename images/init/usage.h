/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "images/init/stall_share.h"

#include "proto/berth.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t total_kib;
    uint64_t available_kib;
    uint64_t free_kib;       /* used for nothing, not even as page cache */
    uint64_t shmem_huge_kib; /* of tmpfs, in huge pages */
    uint64_t swap_used_kib;
} UsageMemory;

/* Reads /proc/meminfo's TEXT; absent lines are 0. Pure. */
UsageMemory usage_parse_memory(const char *text);

UsageMemory usage_memory(void);

/* What the kernel counts of stalls: zeroed at first. */
typedef struct {
    StallShare cpu_some, memory_some, memory_full, io_some;
} UsageStalls;

/* Fills in what the guest can measure NOW (monotonic). memory_peak_mib in USAGE is raised, never lowered, and pressures are
 * of the time since earlier calls: the same USAGE and STALLS are to be handed in each time. */
void usage_measure(Berth__Usage *usage, UsageStalls *stalls, uint64_t now_usec);
/* The same without the pressures, which say nothing of a job that has ended: reading them takes an
 * emulated guest milliseconds. */
void usage_measure_totals(Berth__Usage *usage);

/* Raises memory_peak_mib to what one process is known to have had resident. */
void usage_note_resident(Berth__Usage *usage, uint64_t kib);

/* Whether the root file system has no room left for the job. */
bool usage_disk_is_full(void);
