/* SPDX-License-Identifier: Apache-2.0 */
/* Owns finding the channel's device. There is no udev in the guest, so /dev/virtio-ports does not
 * exist: the kernel tells the ports' names in sysfs. */
#include "images/init/port.h"

#include "images/init/paths.h"
#include "images/init/uevent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PORTS "/sys/class/virtio-ports"

typedef struct {
    const char *name;
    char device[PATH_MAX];
} Search;

static bool find(void *data)
{
    Search *search = data;
    DIR *ports = opendir(PORTS);
    struct dirent *port;
    bool found = false;

    while (ports != NULL && !found && (port = readdir(ports)) != NULL) {
        char path[PATH_MAX];
        char name[128];

        (void)snprintf(path, sizeof path, PORTS "/%s/name", port->d_name);
        if (port->d_name[0] == '.' || !path_read_small(path, name, sizeof name))
            continue;
        name[strcspn(name, "\n")] = '\0';
        found = strcmp(name, search->name) == 0;
        if (found)
            (void)snprintf(search->device, sizeof search->device, "/dev/%s", port->d_name);
    }
    if (ports != NULL)
        closedir(ports);
    return found;
}

int port_open(const char *name, int timeout_msec, Fault *fault)
{
    Search search = {.name = name};
    int fd;

    if (!uevent_wait(find, &search, timeout_msec)) {
        fault_set(fault, "the guest has no virtio-serial port '%s'", name);
        return -1;
    }
    fd = open(search.device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        fault_set_errno(fault, errno, "cannot open %s, the port '%s'", search.device, name);
    return fd;
}
