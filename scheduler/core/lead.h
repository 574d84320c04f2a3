/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What backed guests are about to take. Of 6 GiB that are kept free a guest which fills 1 GiB a second leaves nothing while
 * 8 are copied: who is in slack has to begin to leave before the room is short. */

/* What backed guests of NODE, and such that come, will have taken beyond what they are predicted to need, if they grow on as
 * they do, when those have left who are in its slack; what they have reserved at most. */
guint64 core_lead_mib(const BerthCore *core, const CoreNode *node);

/* The same where one of CLASS would be in its slack, too, with MIB to copy when it leaves and SIGNAL_USEC that it is given before it is saved.
 * Who grew until just now counts as well: it may only have paused. */
guint64 core_lead_with_mib(const BerthCore *core, const CoreNode *node, const CoreClass *class,
                           guint64 mib, gint64 signal_usec);
