/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One output stream of the command: the bytes between what the host has made durable (acked) and
 * what was read from the pipe (end), in a bounded buffer. All offsets count from the stream's
 * first byte. acked <= sent <= end <= acked + capacity, always. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

typedef struct Ring Ring;

/* CAPACITY in bytes, > 0; the memory is touched at once. NULL when there is not enough. */
Ring *ring_new(size_t capacity);
void ring_free(Ring *ring); /* NULL is allowed */

uint64_t ring_acked(const Ring *ring);
uint64_t ring_end(const Ring *ring);
size_t ring_room(const Ring *ring);
bool ring_is_empty(const Ring *ring); /* everything was acknowledged */

/* The free space as 0, 1 or 2 pieces to read into; returns their number. Then ring_added(). */
int ring_space(Ring *ring, struct iovec space[2]);
void ring_added(Ring *ring, size_t bytes);

/* The next unsent bytes in one piece, MAX at most; NULL when all is sent. Valid until ring_ack(). */
const uint8_t *ring_peek(const Ring *ring, size_t max, uint64_t *out_offset, size_t *out_length);
void ring_sent(Ring *ring, size_t bytes);

/* The host has everything before OFFSET. An older offset changes nothing; one beyond the end is
 * refused (false): the host cannot have what was never sent. */
bool ring_ack(Ring *ring, uint64_t offset);

/* A new session: everything that is not acknowledged is to be sent again. */
void ring_rewind(Ring *ring);
