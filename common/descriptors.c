/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the limit of this process's open files. */
#define _GNU_SOURCE /* O_PATH */
#include "common/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* For handshakes that are under way, the database, logs, workers and programs; a quarter where that would be too much. */
#define RESERVE 256u

static gboolean is_raised;
static struct rlimit before;

void berth_descriptors_raise_limit(void)
{
    if (is_raised || getrlimit(RLIMIT_NOFILE, &before) != 0 || before.rlim_cur == before.rlim_max)
        return;
    struct rlimit raised = {.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
    is_raised = setrlimit(RLIMIT_NOFILE, &raised) == 0;
}

/* Between fork and exec: system calls, and nothing else. */
void berth_descriptors_restore_limit(gpointer unused)
{
    if (is_raised)
        (void)setrlimit(RLIMIT_NOFILE, &before);
}

guint berth_descriptors_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    return (guint)MIN(limit.rlim_cur, G_MAXINT);
}

guint berth_descriptors_left(void)
{
    guint max = berth_descriptors_max();
    int fd = open("/", O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0;
    close(fd);
    return max - MIN(max, (guint)fd);
}

gboolean berth_descriptors_are_few(void)
{
    return berth_descriptors_left() < MIN(RESERVE, berth_descriptors_max() / 4);
}
