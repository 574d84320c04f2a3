/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Getting guests in slack out of the way. */

/* Memory that guests in slack of one node may use, without page cache: it can be written out within the
 * evacuation bound. What is left of their cache by then is written, too, and takes its time on top. */
guint64 core_relief_most_mib(const BerthCore *core);
/* Makes room in NODE's memory for its backed guests, if their needs and those of the guests in slack
 * are more than it has. TRUE: enough, or all that can be, is out of the way. FALSE also while it is not
 * known after a restart. */
gboolean core_relief_make_room(BerthCore *core, CoreNode *node);
/* Something left NODE, or is known not to leave: starts that waited for the room go on. */
void core_relief_room_changed(BerthCore *core, CoreNode *node);
/* Backed guests that have waited on NODE for room for longer than that may take are to start elsewhere. */
void core_relief_give_up_waiting(BerthCore *core, CoreNode *node);
/* The needs of NODE's guests have changed. */
void core_relief_check(BerthCore *core, CoreNode *node);
/* NODE says what it has, and whether somebody stalls there for want of memory. */
void core_relief_report(BerthCore *core, CoreNode *node, const BerthCoreNodeUsage *usage);
/* What NODE's guests are predicted to need, and what they occupy beyond that. */
guint64 core_relief_taken_mib(const CoreNode *node);
/* Of the host: with so much available balloons have taken enough. */
guint64 core_relief_well_mib(const BerthCore *core, const CoreNode *node);
