/* SPDX-License-Identifier: Apache-2.0 */
/* Owns nothing: a write(2) that goes on until all is written, and what makes a name durable. */
#include "common/write.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

gboolean berth_write_all(int fd, const void *data, gsize length)
{
    const guint8 *next = data;
    while (length > 0) {
        ssize_t n = write(fd, next, length);
        if (n < 0 && errno != EINTR)
            return FALSE;
        next += MAX(n, 0);
        length -= (gsize)MAX(n, 0);
    }
    return TRUE;
}

gboolean berth_sync_directory_of(const char *path)
{
    g_autofree char *directory = g_path_get_dirname(path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    gboolean is_synced = fd >= 0 && fsync(fd) == 0;
    int failed = errno;
    if (fd >= 0)
        close(fd);
    errno = failed;
    return is_synced;
}
