/* SPDX-License-Identifier: Apache-2.0 */
/* Owns making the kernel tell its host anew of what is free. Pages lose the mark that they were told of when they
 * are taken from the kernel's free lists. So they are taken, and let go: by a file in a file system of huge pages that
 * nobody else sees. Its pages are allocated and not written to, so that the host need not bring what it does not hold; huge, as
 * smaller ones are not told of (mm/page_reporting.c), and so that a gigabyte takes some hundred steps. */
#include "images/init/give_back.h"

#include "images/init/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

/* It is worth the while from so much on, and so much of what the guest has; a QEMU has some memory of its own. */
#define DUE_MIN_KIB (96u * 1024u)
#define DUE_PART    8u
/* What stays free for others meanwhile. */
#define LEFT_MIN_KIB (16u * 1024u)
#define LEFT_PART    32u
/* Taken at a time. */
#define STEP_BYTES (16u << 20)
/* A guest that gets no CPU is not to be without its memory for long. */
#define MOST_USEC 1000000u

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

    return memory->total_kib != 0 && memory->free_kib >= left_kib(memory) + STEP_BYTES / 1024 &&
           resident_kib >= in_use_kib + due_kib;
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

/* Until there are no more huge pages, or hardly anything would be left. */
static void take_all(int file)
{
    uint64_t until_usec = now_usec() + MOST_USEC;
    UsageMemory before = usage_memory();

    for (off_t at = 0; now_usec() < until_usec; at += STEP_BYTES) {
        UsageMemory now;

        if (before.free_kib < left_kib(&before) + STEP_BYTES / 1024 ||
            fallocate(file, 0, at, STEP_BYTES) != 0)
            return;
        now = usage_memory();
        if (now.shmem_huge_kib < before.shmem_huge_kib + STEP_BYTES / 1024)
            return;
        before = now;
    }
}

pid_t give_back_start(void)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (path_write("/proc/self/oom_score_adj", "1000")) {
        int file = open_huge_file();

        if (file >= 0)
            take_all(file);
    }
    _exit(0);
}
