/* SPDX-License-Identifier: Apache-2.0 */
/* Owns making the kernel tell its host anew of what is free. Pages lose the mark that they were told of when they
 * are taken from the kernel's free lists. So they are taken, and let go: by a file in a file system of huge pages that
 * nobody else sees. Its pages are allocated and not written to, so that the host need not bring what it does not hold; huge, as
 * smaller ones are not told of (mm/page_reporting.c), and so that a gigabyte takes some hundred steps. */
#include "images/init/give_back.h"

#include "images/init/paths.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* It is worth the while from so much on, and so much of what the guest has. A QEMU that emulates has 100 to 150 MiB of its own. */
#define DUE_MIN_KIB (192u * 1024u)
#define DUE_PART    8u
/* What stays free for others meanwhile. Who takes half of that beside what is taken here is let have it. */
#define LEFT_MIN_KIB (32u * 1024u)
#define LEFT_PART    16u
/* Taken at a time: huge pages. Where there are none any more, that many small ones may be reclaimed instead. */
#define HUGE_KIB   2048u
#define STEPS_MOST 1024u
/* A guest that gets little CPU is not to be without its memory for long. */
#define MOST_USEC 300000u
#define GOES_ON   1 /* exit status */

static uint64_t left_kib(const UsageMemory *memory)
{
    uint64_t part = memory->total_kib / LEFT_PART;

    return part > LEFT_MIN_KIB ? part : LEFT_MIN_KIB;
}

bool give_back_is_due(const UsageMemory *memory, uint64_t resident_kib)
{
    uint64_t in_use_kib =
        memory->total_kib > memory->free_kib ? memory->total_kib - memory->free_kib : 0;
    uint64_t part = memory->total_kib / DUE_PART;
    uint64_t due_kib = part > DUE_MIN_KIB ? part : DUE_MIN_KIB;

    return memory->total_kib != 0 && memory->free_kib >= left_kib(memory) + HUGE_KIB &&
           resident_kib >= in_use_kib + due_kib;
}

static uint64_t step_kib(const UsageMemory *memory)
{
    return (memory->total_kib / STEPS_MOST / HUGE_KIB + 1) * HUGE_KIB;
}

static uint64_t now_usec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* A file that nobody sees, of huge pages as far as there are any. It is gone with its descriptor. */
static int open_huge_file(void)
{
    int file_system = fsopen("tmpfs", FSOPEN_CLOEXEC);
    int mount = -1;
    int file = -1;

    if (file_system >= 0 && fsconfig(file_system, FSCONFIG_SET_STRING, "huge", "always", 0) == 0 &&
        fsconfig(file_system, FSCONFIG_SET_STRING, "size", "100%", 0) == 0 &&
        fsconfig(file_system, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        mount = fsmount(file_system, FSMOUNT_CLOEXEC, 0);
    if (mount >= 0)
        file = openat(mount, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (mount >= 0)
        close(mount);
    if (file_system >= 0)
        close(file_system);
    return file;
}

/* Until there are no more huge pages, hardly anything would be left, or it has taken too long. Whoever takes memory meanwhile ends it,
 * too; it may be the kernel, for a moment, for what it reports. Returns the exit status. */
static int take_all(int file)
{
    const uint64_t until_usec = now_usec() + MOST_USEC;
    const UsageMemory first = usage_memory();
    const uint64_t step = step_kib(&first);
    UsageMemory now = first;

    for (uint64_t taken_kib = 0;; taken_kib += step) {
        bool was_huge = now.shmem_huge_kib >= first.shmem_huge_kib + taken_kib;

        if (now_usec() >= until_usec ||
            now.free_kib + taken_kib + left_kib(&first) / 2 < first.free_kib)
            return GOES_ON;
        if (!was_huge || now.free_kib < left_kib(&now) + step ||
            fallocate(file, 0, (off_t)taken_kib * 1024, (off_t)step * 1024) != 0)
            return 0;
        now = usage_memory();
    }
}

pid_t give_back_start(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid != 0)
        return pid;
    /* It executes nothing, which would close them: others would find a script open for writing, and pipes that do not end. */
    (void)close_range(STDERR_FILENO + 1, ~0u, 0);
    if (path_write("/proc/self/oom_score_adj", "1000")) {
        int file = open_huge_file();

        if (file >= 0)
            status = take_all(file);
    }
    _exit(status);
}

bool give_back_is_to_go_on(int wait_status)
{
    return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == GOES_ON;
}
