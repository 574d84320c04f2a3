/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t total_kib;
    uint64_t available_kib;
    uint64_t swap_used_kib;
} UsageMemory;

/* Reads /proc/meminfo's TEXT; absent lines are 0. Pure. */
UsageMemory usage_parse_memory(const char *text);

UsageMemory usage_memory(void);

/* Fills in what the guest can measure now. memory_peak_mib in USAGE is raised, never lowered, so
 * the same USAGE is to be handed in each time. */
void usage_measure(Berth__Usage *usage);
/* The same without the pressures, which say nothing of a job that has ended: reading them takes an
 * emulated guest milliseconds. */
void usage_measure_totals(Berth__Usage *usage);

/* Raises memory_peak_mib to what one process is known to have had resident. */
void usage_note_resident(Berth__Usage *usage, uint64_t kib);

/* Whether the root file system has no room left for the job. */
bool usage_disk_is_full(void);
