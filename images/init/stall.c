/* SPDX-License-Identifier: Apache-2.0 */
/* Owns hearing from the kernel that tasks stall (Documentation/accounting/psi.rst, "Monitoring for pressure
 * thresholds"). The kernel wakes for it only while there is pressure: a guest that has none pays nothing. */
#include "images/init/stall.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_USEC 1000000u

int stall_open(const char *path, uint32_t msec)
{
    char trigger[64];
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    size_t length;

    if (fd < 0)
        return -1;
    (void)snprintf(trigger, sizeof trigger, "some %" PRIu32 " %u", msec * 1000, WINDOW_USEC);
    length = strlen(trigger) + 1; /* with its NUL, as the kernel's own example */
    if (write(fd, trigger, length) == (ssize_t)length)
        return fd;
    close(fd);
    return -1;
}
