/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* A round: guests in the slack of busy nodes are wanted on idle ones, by themselves or in exchange for smaller ones there.
 * Nothing without BERTH_FEATURE_BALANCING. */
void core_balance(BerthCore *core);

/* GUEST may be in the slack of TO once GONE, which is there, has left; NULL = beside all. */
gboolean core_balance_has_room(const BerthCore *core, const CoreNode *to, const CoreGuest *guest,
                               const CoreGuest *gone);
/* It takes TAKES_USEC to move GUEST, and others that change places with it, away from FROM, the load of which sinks by
 * GAIN permille: that is worth it. */
gboolean core_balance_is_worth(const BerthCore *core, const CoreGuest *guest, gint64 takes_usec,
                               const CoreNode *from, guint64 gain);
void core_balance_move(BerthCore *core, CoreGuest *guest, CoreNode *to);
