/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "images/init/ring.h"

#include <stdbool.h>
#include <stddef.h>

/* The read end of one output pipe of the command, and the ring that it is read into. */
typedef struct {
    Ring *ring; /* borrowed */
    int fd;     /* -1: not open, or at its end */
    bool quiet; /* the last read found nothing */
} Output;

/* Reads until the pipe is empty, its end is reached (it is closed then) or the ring is full. Returns
 * the bytes that were read. */
size_t output_read(Output *output);

/* Nothing is left to read, given that no process writes any more. */
bool output_is_drained(const Output *output);
