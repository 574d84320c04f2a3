/* SPDX-License-Identifier: Apache-2.0 */
/* Owns nothing: a write(2) that goes on until all is written. */
#include "common/write.h"

#include <errno.h>
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
