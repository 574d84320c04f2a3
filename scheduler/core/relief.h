/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Getting guests in slack out of the way. */

/* All in the slack of one node can be written out within the evacuation bound T if what they use, without page cache, and what
 * could be written in the time that they take besides, are no more than this, T * B: core_node_evacuation_mib().
 *
 * N of them are written c = moves_per_node at a time over the node's one link of B = checkpoint_mib_per_sec, each with F =
 * checkpoint_fixed_usec in which it does not use that. The last is done after M / B + ceil(N / c) * F at most, M being what
 * all of them use, whoever's turn comes first: some place of the c has no more than floor(N / c) of them, and while it is
 * taken the link stands idle only as long as that one is in the part that writes nothing. After that nobody waits for
 * his turn, and those who are left have F before them at most; unless all places have N / c, then what is true of the first
 * is true of the one that is done last. What is left of their cache by then is written, too, and takes its time on top; so
 * does what is under way at the node for others when it begins. */
guint64 core_relief_most_mib(const BerthCore *core);
/* What could be written in F. */
guint64 core_relief_guest_mib(const BerthCore *core);
/* Makes room in NODE's memory for its backed guests, if their needs and those of the guests in slack
 * are more than it has. TRUE: enough, or all that can be, is out of the way. FALSE also while it is not
 * known after a restart. */
gboolean core_relief_make_room(BerthCore *core, CoreNode *node);
/* Something left NODE, or is known not to leave: who waited for the room (room.h) has it, in the order in which they came. */
void core_relief_room_changed(BerthCore *core, CoreNode *node);
/* The needs of NODE's guests have changed. */
void core_relief_check(BerthCore *core, CoreNode *node);
/* NODE says what it has, and whether somebody stalls there for want of memory. */
void core_relief_report(BerthCore *core, CoreNode *node, const BerthCoreNodeUsage *usage);
/* What NODE's guests are predicted to need, and what they occupy beyond that. */
guint64 core_relief_taken_mib(const CoreNode *node);
/* Of the host: with so much available balloons have taken enough. */
guint64 core_relief_well_mib(const BerthCore *core, const CoreNode *node);
/* Of NODE's memory: to stay free of slack, for what predictions miss. */
guint64 core_relief_headroom_mib(const BerthCore *core, const CoreNode *node);
