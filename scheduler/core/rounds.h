/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What is looked at from time to time: promotion by a move, balancing, drains, and what relief could
 * not do at once. */
void core_arm_round(BerthCore *core);
/* Where guests cannot be moved but checkpointed, too: of use to drains alone. */
void core_arm_round_for_drain(BerthCore *core);
void core_round(BerthCore *core);
