/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Moves that nobody backed waits for: only of who may be moved, and only if two rounds in a row want the same. */

/* A move that takes TAKES_USEC, for what lasts FOR_USEC. */
gboolean core_want_is_worth(const BerthCore *core, gint64 takes_usec, gint64 for_usec);
/* GUEST can be moved now, is not in its cooldown, and has as much time left as makes a move worth while. */
gboolean core_want_may_move(const BerthCore *core, const CoreGuest *guest);
/* This round wants GUEST on TO. TRUE: so did the one before. FALSE also where this one already wants something else
 * of GUEST, which stands. */
gboolean core_want_again(BerthCore *core, CoreGuest *guest, const CoreNode *to);
/* The same, and moves it there if so did the one before and the caps of moves let it; IS_OPPORTUNISTIC: into the slack
 * there. TRUE: it moves. */
gboolean core_want_on(BerthCore *core, CoreGuest *guest, CoreNode *to, gboolean is_opportunistic,
                      BerthReason reason);
