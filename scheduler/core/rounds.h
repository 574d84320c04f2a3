/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What is looked at from time to time: promotion by a move, balancing, drains, and what relief could
 * not do at once. */
void core_arm_round(BerthCore *core);
void core_round(BerthCore *core);
