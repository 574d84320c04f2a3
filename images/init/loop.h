/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "images/init/fault.h"

#include <stdint.h>

typedef struct Loop Loop;

/* Prepares for serving the host on PORT_FD (borrowed), with buffers that fit MEMORY_TOTAL_KIB. SIGCHLD
 * must be blocked. NULL with FAULT set. */
Loop *loop_new(int port_fd, uint64_t memory_total_kib, Fault *fault);

/* Tells the host that the guest cannot do its work, as soon as a host is there. */
void loop_fail(Loop *loop, const char *message);

/* Of the guest's memory, then MEMORY_TOTAL_KIB, OVERHEAD_KIB were taken before the job began. */
void loop_set_overhead(Loop *loop, uint64_t memory_total_kib, uint64_t overhead_kib);

/* Serves the host until it wants the guest to be off, or a failure was told and nobody cares. */
void loop_run(Loop *loop);
