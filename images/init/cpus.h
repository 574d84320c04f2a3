/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Takes the next range, *OUT_FIRST to *OUT_LAST, from *AT, which points into a list of the kernel's ("0-3,8"),
 * and moves on behind it. false: there is none. */
bool cpus_next_range(const char **at, uint32_t *out_first, uint32_t *out_last);

/* Sets all processors to work that are plugged in and are not used yet. The kernel does not by itself. */
void cpus_use_all(void);
