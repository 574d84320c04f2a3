/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* The NUMA cells of a node, and what its backed guests take of each. A set of cells is a mask: bit I
 * is cell I. A node that told of fewer than two has none, and all sets on it are 0. */

/* NODE is as INFO says; its guests are spread anew if it was not before. Needs the capacity set. */
void core_cells_set(const CoreNodes *nodes, CoreNode *node, const BerthCoreNodeInfo *info);
void core_cells_free(CoreNode *node);
gsize core_cells_bytes(const CoreNode *node);
/* For tests: what is used is what guests take. */
gboolean core_cells_are_sound(const CoreNode *node);
/* The cells for a guest of SIZE: the fewest that have room for it together, else all; among as many
 * those that leave most cells whole, then the nearest to each other, then those with least left. */
guint32 core_cells_choose(const CoreNodes *nodes, const CoreNode *node, CoreSize size);
/* Whether CELLS together have room for SIZE. */
gboolean core_cells_fit(const CoreNode *node, guint32 cells, CoreSize size);
/* A guest of SIZE takes CELLS of NODE, or gives them back: an equal part of it each. */
void core_cells_take(CoreNode *node, guint32 cells, CoreSize size);
void core_cells_give(CoreNode *node, guint32 cells, CoreSize size);
/* How good NODE is for a guest of SIZE that fits it now, less is better: by the cells that it would
 * span, then by what the node has left, then by how many whole cells it would break. Less than
 * CORE_CELLS_RANK_MAX. */
guint64 core_cells_rank(const CoreNodes *nodes, const CoreNode *node, CoreSize size);
#define CORE_CELLS_RANK_MAX ((guint64)1 << 61)
/* A node of that rank has it in one cell. */
gboolean core_cells_rank_is_whole(guint64 rank);
