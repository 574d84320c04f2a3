/* SPDX-License-Identifier: Apache-2.0 */
/* Owns measuring inside the guest. Memory is what is not available: page cache is no demand. */
#include "images/init/usage.h"

#include "common/pressure.h"
#include "images/init/cgroups.h"
#include "images/init/paths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* A write needs blocks for its metadata too, so it fails with a few blocks left. */
#define DISK_FULL_BYTES (64u * 1024u)

/* The number after KEY at the start of a line. */
static uint64_t number_after(const char *text, const char *key)
{
    size_t length = strlen(key);

    while (*text != '\0') {
        if (strncmp(text, key, length) == 0)
            return strtoull(text + length, NULL, 10);
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return 0;
}

UsageMemory usage_parse_memory(const char *text)
{
    uint64_t swap = number_after(text, "SwapTotal:");
    uint64_t swap_free = number_after(text, "SwapFree:");

    return (UsageMemory){.total_kib = number_after(text, "MemTotal:"),
                         .available_kib = number_after(text, "MemAvailable:"),
                         .free_kib = number_after(text, "MemFree:"),
                         .shmem_huge_kib = number_after(text, "ShmemHugePages:"),
                         .swap_used_kib = swap > swap_free ? swap - swap_free : 0};
}

UsageMemory usage_memory(void)
{
    char text[4096];

    return path_read_small("/proc/meminfo", text, sizeof text) ? usage_parse_memory(text)
                                                               : (UsageMemory){0};
}

void usage_note_resident(Berth__Usage *usage, uint64_t kib)
{
    if (kib / 1024 > usage->memory_peak_mib)
        usage->memory_peak_mib = kib / 1024;
}

void usage_measure_totals(Berth__Usage *usage)
{
    UsageMemory memory = usage_memory();
    struct statvfs disk;

    usage->memory_total_mib = memory.total_kib / 1024;
    usage->memory_available_mib = memory.available_kib / 1024;
    if (memory.total_kib > memory.available_kib)
        usage_note_resident(usage, memory.total_kib - memory.available_kib);
    usage->swap_used_mib = memory.swap_used_kib / 1024;
    usage->guest_cpu_usec = cgroups_job_cpu_usec();
    usage->oom_kills = cgroups_job_oom_kills();
    if (statvfs("/", &disk) == 0)
        usage->disk_free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
}

static uint32_t stalled(StallShare *share, uint64_t now_usec, const char *text, const char *kind)
{
    return stall_share_note(share, now_usec, berth_pressure_parse_total(text, kind));
}

void usage_measure(Berth__Usage *usage, UsageStalls *stalls, uint64_t now_usec)
{
    char text[512];

    usage_measure_totals(usage);
    if (path_read_small("/proc/pressure/cpu", text, sizeof text))
        usage->psi_cpu_some = stalled(&stalls->cpu_some, now_usec, text, "some");
    if (path_read_small("/proc/pressure/memory", text, sizeof text)) {
        usage->psi_memory_some = stalled(&stalls->memory_some, now_usec, text, "some");
        usage->psi_memory_full = stalled(&stalls->memory_full, now_usec, text, "full");
    }
    if (path_read_small("/proc/pressure/io", text, sizeof text))
        usage->psi_io_some = stalled(&stalls->io_some, now_usec, text, "some");
}

bool usage_disk_is_full(void)
{
    struct statvfs disk;

    if (statvfs("/", &disk) != 0)
        return false;
    return (uint64_t)disk.f_bavail * disk.f_frsize < DISK_FULL_BYTES ||
           (disk.f_files > 0 && disk.f_favail == 0);
}
