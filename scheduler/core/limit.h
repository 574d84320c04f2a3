/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What becomes of a guest that needs more than it has. */
void core_limit_check(BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage);
/* GUEST is grown, and goes on, if it stands still at its limit and there is room. */
void core_limit_grow_again(BerthCore *core, CoreGuest *guest);
/* Guests of NODE that stand still at their limit are grown, and go on, where there is room. */
void core_limit_grow_on(BerthCore *core, const CoreNode *node);
/* ... of all nodes on which room came free. */
void core_limit_grow_fresh(BerthCore *core);
/* TASK is, or is no longer, one that stalls and goes on all the same. */
void core_limit_set_short(BerthCore *core, CoreTask *task, gboolean is_short);
/* NODE could back GUEST with SIZE for as long as it is thought to run, beside the planned starts before HEEDS. */
gboolean core_limit_could_back(const BerthCore *core, CoreNode *node, const CoreGuest *guest,
                               CoreSize size, guint heeds);
/* A node, other than its own, that can back GUEST with SIZE for as long as it is thought to run, beside the
 * planned starts before HEEDS: the first below its caps of moves; else one that is not. NULL = none. */
CoreNode *core_limit_find_place(const BerthCore *core, const CoreGuest *guest, CoreSize size,
                                guint heeds);
/* GUEST has more or less than its class starts with: it was resized, or another task of its array goes on with something else. */
gboolean core_limit_is_of_another_size(const CoreGuest *guest);
/* The node that can back all that GUEST has now; the best of all, its own too, unless it is of another size. NULL = none. */
CoreNode *core_limit_find_backing(BerthCore *core, const CoreGuest *guest, guint heeds);
