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
/* Memory comes in blocks of this size, with 64 bytes for each page of 4 KiB, also of those that are not in use. */
#define BLOCK_KIB            (128u * 1024u)
#define BLOCK_STRUCTURES_KIB (2u * 1024u)
/* Kernel memory that a process takes at the very least, by which their number is limited. */
#define KIB_PER_PROCESS 64u
#define PIDS_MIN        256u
#define PIDS_MAX        (4u * 1024u * 1024u)
#define EXEC_PATH_MAX   64u
/* Where a job is slowed, its processes sleep the longer, up to 2 s for each 256 KiB, the more of its memory is taken beyond that, in
 * relation to it: from a hundredth on, and at four hundredths for 0.1 s (mm/memcontrol.c, calculate_high_delay()). So small ones
 * need a larger part of it. */
#define SLOW_PART      24u
#define SLOW_MOST_PART 8u
#define SLOW_MIN_BYTES (12u << 20)
#define SLOW_MAX_BYTES (1u << 30)
/* What the kernel keeps for itself at boot is no part of what a guest says that it has: this, and so much of it, at most. */
#define KEPT_KIB  (16u * 1024u)
#define KEPT_PART 16u
/* Longer than the host waits for a guest to give memory back before it returns what it did give
 * (nodeagent/guest_resize.c). */
#define SETTLED_USEC 60000000u

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

uint64_t cgroups_job_high_bytes(uint64_t limit_bytes, uint64_t total_kib, uint64_t max_kib)
{
    uint64_t slow = clamp(limit_bytes / SLOW_PART, SLOW_MIN_BYTES, SLOW_MAX_BYTES);

    if (total_kib + KEPT_KIB + max_kib / KEPT_PART >= max_kib)
        return 0;
    return limit_bytes -
           (slow < limit_bytes / SLOW_MOST_PART ? slow : limit_bytes / SLOW_MOST_PART);
}

uint64_t cgroups_overhead_kib(uint64_t overhead_kib, uint64_t began_kib, uint64_t total_kib)
{
    uint64_t came_kib = total_kib > began_kib ? total_kib - began_kib : 0;

    return overhead_kib + (came_kib + BLOCK_KIB - 1) / BLOCK_KIB * BLOCK_STRUCTURES_KIB;
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

/* A limit below what a group has is made true by the kernel by killing, and one of just that when the group
 * takes its next page: it keeps the one that it has. */
bool cgroups_set_job_memory(uint64_t memory_total_kib, uint64_t overhead_kib, uint64_t max_kib)
{
    char text[32];
    uint64_t limit = cgroups_job_memory_bytes(memory_total_kib, overhead_kib);
    uint64_t high;
    uint64_t now =
        path_read_small(JOB "/memory.current", text, sizeof text) ? strtoull(text, NULL, 10) : 0;

    if (now > limit)
        return false;
    (void)set_number(JOB "/memory.max", limit);
    high = cgroups_job_high_bytes(limit, memory_total_kib, max_kib);
    if (high != 0)
        (void)set_number(JOB "/memory.high", high);
    else
        (void)path_write(JOB "/memory.high", "max");
    return true;
}

bool memory_limit_is_due(MemoryLimit *limit, uint64_t total_kib, uint64_t now_usec)
{
    if (total_kib != limit->seen_kib) {
        limit->seen_kib = total_kib;
        limit->seen_usec = now_usec;
    }
    return total_kib > limit->total_kib ||
           (total_kib < limit->total_kib && now_usec - limit->seen_usec >= SETTLED_USEC);
}

bool cgroups_setup(uint64_t memory_total_kib, uint64_t overhead_kib, Fault *fault)
{
    if (!path_write(ROOT "/cgroup.subtree_control", "+memory +pids +cpu") ||
        mkdir(JOB, 0755) != 0) {
        fault_set_errno(fault, errno, "cannot make the job's control group in the guest");
        return false;
    }
    (void)set_number(JOB "/pids.max", cgroups_job_pids(memory_total_kib));
    (void)cgroups_set_job_memory(memory_total_kib, overhead_kib, 0);
    if (!path_write("/proc/self/oom_score_adj", "-1000"))
        say("cannot protect PID 1 from the out-of-memory killer: %m");
    return true;
}

int cgroups_open_job(void)
{
    return open(JOB, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Sends SIGNAL to the processes of the group at PATH; SIGKILL also to those below it. */
static void signal_group(const char *path, int signal)
{
    char file[EXEC_PATH_MAX + 16];
    size_t length;
    char *list;

    (void)snprintf(file, sizeof file, "%s/cgroup.kill", path);
    if (signal == SIGKILL && path_write(file, "1"))
        return;
    (void)snprintf(file, sizeof file, "%s/cgroup.procs", path);
    list = path_read(file, &length);
    if (list == NULL) {
        say("cannot list the processes of %s: %m", path);
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

void cgroups_signal_job(int signal)
{
    signal_group(JOB, signal);
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

static void exec_path(unsigned number, char path[EXEC_PATH_MAX])
{
    (void)snprintf(path, EXEC_PATH_MAX, JOB "/exec-%u", number);
}

bool cgroups_open_exec(unsigned number, int *out_fd)
{
    char path[EXEC_PATH_MAX];

    int fd;

    exec_path(number, path);
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return false;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    *out_fd = fd;
    return true;
}

void cgroups_signal_exec(unsigned number, int signal)
{
    char path[EXEC_PATH_MAX];

    exec_path(number, path);
    signal_group(path, signal);
}

bool cgroups_exec_is_populated(unsigned number)
{
    char file[EXEC_PATH_MAX + 16];
    char path[EXEC_PATH_MAX];

    exec_path(number, path);
    (void)snprintf(file, sizeof file, "%s/cgroup.events", path);
    return read_flat(file, "populated") != 0;
}

void cgroups_remove_exec(unsigned number)
{
    char path[EXEC_PATH_MAX];

    exec_path(number, path);
    if (rmdir(path) != 0)
        say("cannot remove %s: %m", path);
}

uint32_t cgroups_job_oom_kills(void)
{
    return (uint32_t)read_flat(JOB "/memory.events", "oom_kill");
}

uint64_t cgroups_job_cpu_usec(void)
{
    return read_flat(JOB "/cpu.stat", "usage_usec");
}
