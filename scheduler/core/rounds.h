/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What is looked at from time to time: promotion by a move, balancing, drains, and what relief could
 * not do at once. */
void core_arm_round(BerthCore *core);
void core_round(BerthCore *core);
/* Guests that can be moved leave NODE, as many as may at a time; the others follow in rounds. */
void core_round_evacuate(BerthCore *core, CoreNode *node);
/* NODE is to be empty, or is in use again. */
void core_round_drain(BerthCore *core, guint32 node, gboolean draining);
