/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* The classes in which a job waits, by rank, higher first, then by their first job's number. Each of
 * these costs O(log classes). A class's RANK and HEAD stay as they are while it is in the tree. */

void core_order_tree_add(BerthCore *core, CoreClass *class);
void core_order_tree_remove(BerthCore *core, CoreClass *class);
/* What CLASS's sum was made of has changed: its LEFT_TO_SLACK. It may be in the tree or not. */
void core_order_tree_refresh(BerthCore *core, CoreClass *class);
/* All of them get the rank that RANK_OF says and their places by it: O(classes), if that leaves them in
 * their order; else O(classes log classes). */
void core_order_tree_rank(BerthCore *core, gint64 (*rank_of)(BerthCore *, const CoreClass *));

guint core_order_n(const BerthCore *core);
/* The one with AT before it; NULL = there are no more. */
CoreClass *core_order_at(const BerthCore *core, guint at);
/* How many are before CLASS; all of them if it is not in the tree. */
guint core_order_place(const BerthCore *core, const CoreClass *class);
/* Below 0: A is before B. Those that are in no tree are equal, and behind all others. */
gint core_order_compare(const CoreClass *a, const CoreClass *b);

/* FALSE: none of the classes that SUM is of may be one that is looked for. */
typedef gboolean (*CoreOrderMay)(const CoreOrderSum *sum, gpointer user_data);
/* The first one from place *AT on of which alone MAY says that it may be; NULL = none. *AT becomes its place,
 * or the number of all. Passes over whole parts of the tree by their sums. */
CoreClass *core_order_find(BerthCore *core, guint *at, CoreOrderMay may, gpointer user_data);
/* What CLASS has for the tree, in it or not. */
void core_order_tree_forget(CoreClass *class);
/* Beside the class itself. */
gsize core_order_tree_bytes(const CoreClass *class);
/* Every sum is one of what is below it, and the tree is in order. For invariants. */
gboolean core_order_tree_is_sound(const BerthCore *core);
