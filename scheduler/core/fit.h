/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/nodes.h"
#include "scheduler/core/state.h"

/* The nodes for the guests of a task of CLASS among those that are open and not behind a barrier.
 * FALSE = there is no room for all. AVOID: a node that is only taken if no other will do; 0 = none. */
gboolean core_fit(BerthCore *core, const CoreClass *class, guint32 avoid, CoreBarriers barriers,
                  guint32 *out_nodes);
/* Whether some such node could hold a guest of one if it were empty. */
gboolean core_fit_could(const BerthCore *core, const CoreClass *class, CoreBarriers barriers);
