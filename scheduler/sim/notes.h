/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/sim/options.h"

/* Of --without and --tune: what has no effect on any of the policies, or not on one that a user might
 * expect it to have. Lines, "" where there is nothing to say. (transfer full) */
char *sim_notes(const SimOptions *options);
