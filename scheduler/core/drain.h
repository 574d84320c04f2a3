/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* An operator has said what NODE may be used for. */
void core_drain_admit(BerthCore *core, guint32 node, BerthNodeAdmission admission);
/* NODE is to be empty. */
gboolean core_drain_is_under_way(const BerthCore *core, const CoreNode *node);
/* GUEST is backed, and could move into slack, if any has room for it: its job may be there, and space for its checkpoint is left beside
 * BESIDE_MIB more than is counted. */
gboolean core_drain_may_lodge(const BerthCore *core, const CoreGuest *guest, guint64 beside_mib);
/* Guests that can be moved leave NODE, as many as may at a time, if it is to be empty: it is drained, or has
 * maintenance now. Nothing while it is away. */
void core_drain_move_some(BerthCore *core, CoreNode *node);
/* The same; others follow as these have left, and in rounds. */
void core_drain_evacuate(BerthCore *core, CoreNode *node);
/* A guest on NODE can be moved, or checkpointed, that could not be: it is looked at when the event ends. */
void core_drain_look_again(BerthCore *core, CoreNode *node);
/* The event ends: guests leave where another look is to be taken; where a cap of moves kept some, if one has ended in it; and
 * where one lacked space for a checkpoint, if there is more now. */
void core_drain_go_on(BerthCore *core);
/* A guest may have waited for long enough for a place. */
void core_drain_due(BerthCore *core);
/* The event ends: notes the nodes that drains have emptied in it. */
void core_drain_tell_emptied(BerthCore *core);
