/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/profile.h"
#include "scheduler/core/state.h"

/* NODES has a node with room now for each guest of a task of CLASS, a gang. Replaces them by others
 * if that makes them fewer, or brings them nearer to each other. AVOID is not among them; 0 = none. */
void core_near_gather(BerthCore *core, const CoreClass *class, const CoreNeed *need, guint32 avoid,
                      guint32 *nodes);
