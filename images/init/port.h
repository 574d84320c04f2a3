/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "images/init/fault.h"

/* Opens the virtio-serial port called NAME for reading and writing, non-blocking, close-on-exec.
 * Waits for it for TIMEOUT_MSEC. /dev and /sys are mounted. -1 with FAULT set. */
int port_open(const char *name, int timeout_msec, Fault *fault);
