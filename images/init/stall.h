/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* A descriptor that becomes urgent to read (EPOLLPRI), once a second at most, when some task has stalled for MSEC
 * (1 to 1000) within a second. PATH: "/proc/pressure/memory", but in tests. -1: the kernel does not do that. */
int stall_open(const char *path, uint32_t msec);
