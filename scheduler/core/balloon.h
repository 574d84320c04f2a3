/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Guests in slack give host memory back that they have filled, with page cache above all, and are
 * not predicted to need: RESIZE with a balloon. */

/* Guests of NODE are asked, those that can give most first, until WANTED_MIB are on their way back to the
 * host. TRUE: so much is, from now or before. */
gboolean core_balloon_relieve(BerthCore *core, CoreNode *node, guint64 wanted_mib);
/* On its way back to NODE's host. */
guint64 core_balloon_under_way_mib(const CoreNode *node);
/* NODE has said that it is well: what it has to spare goes back to its guests. */
void core_balloon_relax(BerthCore *core, CoreNode *node);
/* GUEST was measured; IS_NEAR_LIMIT: of the memory that it has now. TRUE: a balloon keeps memory from it,
 * so that it is not at its own limit; it gets all of that back at once where it may need it. */
gboolean core_balloon_check(BerthCore *core, CoreGuest *guest, gboolean is_near_limit);
/* What was being done to GUEST is done: the same, as far as it is known without measuring. */
void core_balloon_settled(BerthCore *core, CoreGuest *guest);
