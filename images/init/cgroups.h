/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job's control group, /sys/fs/cgroup/job. It keeps a job that takes all memory, processes or CPU from
 * taking PID 1 with it, which is outside. */

#include "images/init/fault.h"

#include <stdbool.h>
#include <stdint.h>

/* Limits of the job's group in a guest of MEMORY_TOTAL_KIB, of which OVERHEAD_KIB were taken by the kernel
 * and PID 1 before the job began. Pure. */
uint64_t cgroups_job_memory_bytes(uint64_t memory_total_kib, uint64_t overhead_kib);
uint64_t cgroups_job_pids(uint64_t memory_total_kib);

/* What is taken in a guest of TOTAL_KIB that had BEGAN_KIB when OVERHEAD_KIB were: the kernel keeps the page structures of
 * memory that has come in what it had. Pure. */
uint64_t cgroups_overhead_kib(uint64_t overhead_kib, uint64_t began_kib, uint64_t total_kib);

/* From how much of its LIMIT_BYTES on the job is slowed, in a guest of TOTAL_KIB that may be given MAX_KIB in all: it stalls, which is
 * heard of, where it would have been ended, and has more or stands still when it is full. 0: it is not, as there is no more for it.
 * Pure. */
uint64_t cgroups_job_high_bytes(uint64_t limit_bytes, uint64_t total_kib, uint64_t max_kib);

/* Makes the job's group and protects the caller from the job. */
bool cgroups_setup(uint64_t memory_total_kib, uint64_t overhead_kib, Fault *fault);

/* Sets the job's memory limit anew, for the guest has grown or shrunk, or may be given MAX_KIB in all. false: the job uses more than that
 * now, and keeps the limit that it has: to be set again. */
bool cgroups_set_job_memory(uint64_t memory_total_kib, uint64_t overhead_kib, uint64_t max_kib);

/* When the job's limit is to follow the guest's memory: at once when it grows. A guest that shrinks may get
 * back what it has given, if it cannot give all that it is to; its job must not have died of it. */
typedef struct {
    uint64_t total_kib; /* which the limit was set for */
    uint64_t seen_kib;  /* newest, and since when it is so */
    uint64_t seen_usec;
} MemoryLimit;

/* Whether the limit is to be set for TOTAL_KIB. Pure. */
bool memory_limit_is_due(MemoryLimit *limit, uint64_t total_kib, uint64_t now_usec);

/* Opens the job's group, for a process to be made in it. -1 with errno set. */
int cgroups_open_job(void);

/* Sends SIGNAL to all processes of the job, but for commands beside it; SIGKILL also reaches these and also reaches those that are being made. */
void cgroups_signal_job(int signal);

/* Whether any process of the job is left. */
bool cgroups_job_is_populated(void);

/* Processes of the job that the kernel killed for memory. */
uint32_t cgroups_job_oom_kills(void);

/* CPU time of the job's processes, the ended ones too, in microseconds. */
uint64_t cgroups_job_cpu_usec(void);

/* Groups of commands beside the job's own, within the job's, by NUMBER: limits and counts are the job's.
 * Opens a new one, for a process to be made in it; false with errno set. */
bool cgroups_open_exec(unsigned number, int *out_fd);
void cgroups_signal_exec(unsigned number, int signal);
bool cgroups_exec_is_populated(unsigned number);
/* Of one without processes. */
void cgroups_remove_exec(unsigned number);

/* The number after KEY and a space at the start of a line of TEXT; 0 when there is none. Pure. */
uint64_t cgroups_parse_flat(const char *text, const char *key);
