/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* Keeps a second berthd off a state file: PATH.lock is locked while the process lives, and says
 * its pid. -1 with FAILED_PRECONDITION (names the pid) when another has it, or NOT_FOUND,
 * PERMISSION_DENIED, ... Closing the descriptor, or the end of the process however it comes,
 * gives the lock back. The file itself stays: removing it would let two processes hold two. */
int store_lock_take(const char *path, GError **error);
