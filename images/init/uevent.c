/* SPDX-License-Identifier: Apache-2.0 */
/* Owns hearing of devices that the kernel finds while PID 1 already runs. */
#include "images/init/uevent.h"

#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t now_msec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int uevent_open(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void uevent_drain(int fd)
{
    char event[4096];

    while (recv(fd, event, sizeof event, 0) > 0 || errno == ENOBUFS || errno == EINTR)
        errno = 0;
}

bool uevent_wait(bool (*condition)(void *data), void *data, int timeout_msec)
{
    int64_t deadline = now_msec() + timeout_msec;
    struct pollfd fd = {.events = POLLIN};
    bool holds;

    if (condition(data))
        return true;
    /* Listen first, then look: what appears in between is announced. */
    fd.fd = uevent_open();
    while (!(holds = condition(data))) {
        int64_t left = deadline - now_msec();

        if (fd.fd < 0 || left <= 0)
            break;
        if (poll(&fd, 1, (int)left) > 0)
            uevent_drain(fd.fd);
    }
    if (fd.fd >= 0)
        close(fd.fd);
    return holds;
}
