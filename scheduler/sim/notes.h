/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/sim/options.h"
#include "scheduler/sim/replay.h"

/* Of the options: what has no effect on any of the policies of this run, or not on one that a user might
 * expect it to have. Lines, "" where there is nothing to say. (transfer full) */
char *sim_notes(const SimOptions *options);
/* Likewise of --tune, when the core that wrote the log of REPLAY did not use the constant. (transfer full) */
char *sim_notes_of_replay(const SimOptions *options, const SimReplay *replay);
