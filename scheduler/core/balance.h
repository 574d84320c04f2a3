/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* A round: a guest in the slack of the busiest node is wanted on the idlest, by itself or in exchange for a smaller one
 * there. Nothing without BERTH_FEATURE_BALANCING. */
void core_balance(BerthCore *core);
/* The move of GUEST, number SERIAL of what was done to it, has ended: who is to go the other way in exchange follows if it is
 * where it was to be, and that is still as good. */
void core_balance_moved(BerthCore *core, const CoreGuest *guest, guint32 serial);
