/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* For each size that was asked for lately, the nodes in the order in which they could take it: first
 * those with room now, the fullest first; then by when they will have room. */
CoreShapes *core_shapes_new(void);
void core_shapes_free(CoreShapes *shapes);

/* Walks that order. The size is rounded down, so that a node may come too early, never too late. */
typedef struct CoreWalk CoreWalk;
CoreWalk *core_shapes_walk(BerthCore *core, CoreSize size);
/* NULL: no more nodes would ever have room. *OUT_EARLIEST_USEC: no later than it will have room;
 * G_MININT64: it has now. */
CoreNode *core_walk_next(CoreWalk *walk, gint64 *out_earliest_usec);
void core_walk_free(CoreWalk *walk);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CoreWalk, core_walk_free)
gsize core_shapes_bytes(const CoreShapes *shapes);
