/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the guest's control groups. Invariant: every process of the job is in the job's group, which it is
 * born in, and PID 1 stays in the root group: moving a process makes the kernel wait for all CPUs. */
#include "images/init/cgroups.h"

#include "images/init/paths.h"
#include "images/init/say.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define JOB  ROOT "/job"

/* What the kernel needs to go on beyond its overhead at boot. With it, a job that wants too much meets its
 * own limit, where the kernel kills at once, and not the machine's, where it first tries everything. */
#define RESERVE_MIN_KIB (2u * 1024u)
#define RESERVE_MAX_KIB (32u * 1024u)
/* Kernel memory that a process takes at the very least, by which their number is limited. */
#define KIB_PER_PROCESS 64u
#define PIDS_MIN        256u
#define PIDS_MAX        (4u * 1024u * 1024u)

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

uint64_t cgroups_job_memory_bytes(uint64_t memory_total_kib, uint64_t overhead_kib)
{
    uint64_t reserve = clamp(memory_total_kib / 64, RESERVE_MIN_KIB, RESERVE_MAX_KIB);
    uint64_t kept = overhead_kib + reserve;

    /* A guest that has hardly more than its overhead leaves the job half of what there is. */
    return kept < memory_total_kib / 2 ? (memory_total_kib - kept) * 1024 : memory_total_kib * 512;
}

uint64_t cgroups_job_pids(uint64_t memory_total_kib)
{
    return clamp(memory_total_kib / KIB_PER_PROCESS, PIDS_MIN, PIDS_MAX);
}

/* Writes NUMBER to FILE; what cannot be written is told, since it is a protection less. */
static bool set_number(const char *file, uint64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    if (path_write(file, text))
        return true;
    say("cannot set %s to %s: %m", file, text);
    return false;
}

bool cgroups_set_job_memory(uint64_t memory_total_kib, uint64_t overhead_kib)
{
    return set_number(JOB "/memory.max", cgroups_job_memory_bytes(memory_total_kib, overhead_kib));
}

bool cgroups_setup(uint64_t memory_total_kib, uint64_t overhead_kib, Fault *fault)
{
    if (!path_write(ROOT "/cgroup.subtree_control", "+memory +pids +cpu") ||
        mkdir(JOB, 0755) != 0) {
        fault_set_errno(fault, errno, "cannot make the job's control group in the guest");
        return false;
    }
    (void)set_number(JOB "/pids.max", cgroups_job_pids(memory_total_kib));
    (void)cgroups_set_job_memory(memory_total_kib, overhead_kib);
    if (!path_write("/proc/self/oom_score_adj", "-1000"))
        say("cannot protect PID 1 from the out-of-memory killer: %m");
    return true;
}

int cgroups_open_job(void)
{
    return open(JOB, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cgroups_signal_job(int signal)
{
    size_t length;
    char *list;

    if (signal == SIGKILL && path_write(JOB "/cgroup.kill", "1"))
        return;
    list = path_read(JOB "/cgroup.procs", &length);
    if (list == NULL) {
        say("cannot list the job's processes: %m");
        return;
    }
    for (char *at = list; *at != '\0';) {
        long pid = strtol(at, &at, 10);

        if (pid > 1)
            (void)kill((pid_t)pid, signal); /* it may be gone already */
        at += strspn(at, "\n");
    }
    free(list);
}

uint64_t cgroups_parse_flat(const char *text, const char *key)
{
    size_t length = strlen(key);

    while (*text != '\0') {
        if (strncmp(text, key, length) == 0 && text[length] == ' ')
            return strtoull(text + length + 1, NULL, 10);
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return 0;
}

static uint64_t read_flat(const char *path, const char *key)
{
    char text[2048];

    return path_read_small(path, text, sizeof text) ? cgroups_parse_flat(text, key) : 0;
}

bool cgroups_job_is_populated(void)
{
    return read_flat(JOB "/cgroup.events", "populated") != 0;
}

uint32_t cgroups_job_oom_kills(void)
{
    return (uint32_t)read_flat(JOB "/memory.events", "oom_kill");
}

uint64_t cgroups_job_cpu_usec(void)
{
    return read_flat(JOB "/cpu.stat", "usage_usec");
}
