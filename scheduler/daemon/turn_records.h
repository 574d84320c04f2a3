/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/engine.h"

/* Records that are written in a turn although the core did not change what they are of. What it did change
 * berth_turn_event() writes. */

void berth_turn_put_task(BerthTurn *turn, guint64 job, guint32 task);
void berth_turn_put_node(BerthTurn *turn, guint32 node);

/* The output of a task that wants_output was copied, or cannot be (FAILURE says why; NULL = it was):
 * its record is written, and it is forgotten if nothing else is left of it. */
void berth_turn_output_copied(BerthTurn *turn, guint64 job, guint32 task, const char *failure);
