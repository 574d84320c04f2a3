/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Around whatever changes the state: forgets what is over, takes the time, and in the end starts
 * what can start. */
void core_event_begin(BerthCore *core, gint64 now_usec, BerthCoreEffects *effects);
void core_event_end(BerthCore *core);
