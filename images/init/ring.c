/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the bytes of one output stream from the pipe until the host has acknowledged them.
 * It knows neither pipes nor channels. Invariant: acked <= sent <= end <= acked + capacity. */
#include "images/init/ring.h"

#include <stdlib.h>
#include <string.h>

struct Ring {
    uint64_t acked;
    uint64_t sent;
    uint64_t end;
    size_t capacity;
    uint8_t bytes[];
};

Ring *ring_new(size_t capacity)
{
    Ring *ring = malloc(sizeof *ring + capacity);

    if (ring != NULL) {
        /* Touch it: what is here now cannot be missing when the job has eaten the memory. */
        memset(ring, 0, sizeof *ring + capacity);
        ring->capacity = capacity;
    }
    return ring;
}

void ring_free(Ring *ring)
{
    free(ring);
}

uint64_t ring_acked(const Ring *ring)
{
    return ring->acked;
}

uint64_t ring_end(const Ring *ring)
{
    return ring->end;
}

size_t ring_room(const Ring *ring)
{
    return ring->capacity - (size_t)(ring->end - ring->acked);
}

bool ring_is_empty(const Ring *ring)
{
    return ring->acked == ring->end;
}

int ring_space(Ring *ring, struct iovec space[2])
{
    size_t room = ring_room(ring);
    size_t start = (size_t)(ring->end % ring->capacity);
    size_t first = ring->capacity - start < room ? ring->capacity - start : room;

    if (room == 0)
        return 0;
    space[0] = (struct iovec){.iov_base = ring->bytes + start, .iov_len = first};
    if (first == room)
        return 1;
    space[1] = (struct iovec){.iov_base = ring->bytes, .iov_len = room - first};
    return 2;
}

void ring_added(Ring *ring, size_t bytes)
{
    ring->end += bytes;
}

const uint8_t *ring_peek(const Ring *ring, size_t max, uint64_t *out_offset, size_t *out_length)
{
    size_t unsent = (size_t)(ring->end - ring->sent);
    size_t start = (size_t)(ring->sent % ring->capacity);
    size_t length = ring->capacity - start < unsent ? ring->capacity - start : unsent;

    if (unsent == 0)
        return NULL;
    *out_offset = ring->sent;
    *out_length = length < max ? length : max;
    return ring->bytes + start;
}

void ring_sent(Ring *ring, size_t bytes)
{
    ring->sent += bytes;
}

bool ring_ack(Ring *ring, uint64_t offset)
{
    if (offset > ring->end)
        return false;
    if (offset > ring->acked)
        ring->acked = offset;
    /* After a new session the host may already have what is about to be sent again. */
    if (ring->sent < ring->acked)
        ring->sent = ring->acked;
    return true;
}

void ring_rewind(Ring *ring)
{
    ring->sent = ring->acked;
}
