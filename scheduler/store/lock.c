/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lock file beside a local state database. */
#include "scheduler/store/lock.h"

#include "common/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static void set_error_held(const char *path, int fd, GError **error)
{
    char pid[32] = "";
    gssize length = pread(fd, pid, sizeof pid - 1, 0);
    pid[length > 0 ? length : 0] = '\0';
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "the state %s is in use by another berthd (pid %s): stop that first, or give this "
                "one a state of its own",
                path, *pid != '\0' ? g_strstrip(pid) : "unknown");
}

int store_lock_take(const char *path, GError **error)
{
    g_autofree char *lock_path = g_strconcat(path, ".lock", NULL);
    int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        int err = errno;
        g_autofree char *directory = g_path_get_dirname(path);
        berth_set_error_errno(error, err,
                              "cannot open the lock file %s (%s must exist and be writable by the "
                              "user that berthd runs as)",
                              lock_path, directory);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            set_error_held(path, fd, error);
        else
            berth_set_error_errno(error, errno, "cannot lock %s", lock_path);
        close(fd);
        return -1;
    }
    g_autofree char *pid = g_strdup_printf("%ld\n", (long)getpid());
    /* Only for the message above: a full disk must not keep berthd from reading its state. */
    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, strlen(pid), 0) < 0)
        g_debug("cannot note the pid in %s: %s", lock_path, g_strerror(errno));
    return fd;
}
