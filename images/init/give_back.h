/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Free memory that the host holds for its guest all the same. A kernel tells its host once of what is free in it (free page
 * reporting), and the host takes that back. Whoever copies the guest, to move it or to save it, reads that memory and writes it
 * elsewhere, and on some hosts that alone takes memory for it again; of which the guest's kernel knows nothing. It tells of it anew
 * once it was in use. */

#include "images/init/usage.h"

#include <stdbool.h>
#include <sys/types.h>

/* Whether a host that holds RESIDENT_KIB for a guest with MEMORY holds much that is free there, and that it can be told of. Pure. */
bool give_back_is_due(const UsageMemory *memory, uint64_t resident_kib);

/* Makes a process that takes what is free, in part, for some milliseconds, and ends; it is the first that the kernel ends if memory
 * becomes short meanwhile. What is available is less as long as it lives. -1 with errno set. */
pid_t give_back_start(void);
/* Whether there was more to be taken, of one that has ended with WAIT_STATUS. What has been taken is told of within seconds, and
 * the kernel then gives out what was not before that. */
bool give_back_is_to_go_on(int wait_status);
