/* SPDX-License-Identifier: Apache-2.0 */
/* Owns moving bytes from a pipe to its ring. Invariant: never reads more than the ring can hold, so that
 * a host that acknowledges nothing stops the writer, and nothing is lost. */
#include "images/init/output.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

size_t output_read(Output *output)
{
    size_t total = 0;
    struct iovec space[2];
    int pieces;

    while (output->fd >= 0 && (pieces = ring_space(output->ring, space)) > 0) {
        ssize_t got = readv(output->fd, space, pieces);

        if (got > 0) {
            ring_added(output->ring, (size_t)got);
            output->quiet = false;
            total += (size_t)got;
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        output->quiet = true;
        if (got < 0 && errno == EAGAIN)
            break;
        close(output->fd);
        output->fd = -1;
    }
    return total;
}

bool output_is_drained(const Output *output)
{
    return output->fd < 0 || output->quiet;
}
