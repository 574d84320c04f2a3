/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* For each size that was asked for lately, the nodes in the order in which they could take it: first
 * those with room now, the fullest first; then by when they will have room. */
CoreShapes *core_shapes_new(void);
void core_shapes_free(CoreShapes *shapes);

/* Walks that order; one walk at a time. The size is rounded down, so that a node may come too early,
 * never too late. (transfer none): until core_walk_end(). */
typedef struct CoreWalk CoreWalk;
CoreWalk *core_shapes_walk(BerthCore *core, CoreSize size);
void core_walk_end(CoreWalk *walk);
/* NULL: no more nodes would ever have room. *OUT_EARLIEST_USEC: no later than it will have room;
 * G_MININT64: it has now. */
CoreNode *core_walk_next(CoreWalk *walk, gint64 *out_earliest_usec);
/* One that has room now. Walked in the order of keys, then of handles. */
typedef struct {
    CoreNode *node;
    guint64 key;
} CoreWalked;
/* Before the first of them is walked: all nodes that have room now (CoreWalked), handles rising, which
 * costs less than to walk them. They are not walked any more. (transfer none): until the walk's end. */
const GArray *core_walk_take_now(CoreWalk *walk);
/* Nodes that only have room at UNTIL_USEC or later are not wanted; G_MININT64: those without now. */
void core_walk_limit(CoreWalk *walk, gint64 until_usec);
gsize core_shapes_bytes(const CoreShapes *shapes);
