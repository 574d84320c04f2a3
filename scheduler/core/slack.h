/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* The node with room in its slack for a guest that needs NEEDS of a reservation of SIZE, other than
 * EXCEPT; NULL = none. */
CoreNode *core_slack_find(BerthCore *core, const CoreClass *class, CoreNeeds needs, guint32 except);
/* Starts in slack whoever may and fits, in the order of the jobs. TRUE: somebody has, who waited
 * before others. */
gboolean core_slack_pass(BerthCore *core);
/* Backs guests in slack with the room that became free on their nodes, if no planned start needs
 * it. */
void core_slack_promote_fresh(BerthCore *core);
