/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/profile.h"
#include "scheduler/core/state.h"
#include "scheduler/core/supply.h"

/* FALSE: no node has room for a guest of CLASS now. Cheaper than the next, which is FALSE then too. */
gboolean core_search_may_fit_now(const BerthCore *core, const CoreClass *class);
/* Where a task of CLASS can start now without delaying the planned starts before HEEDS: writes the
 * node of each of its guests. AVOID: a node that is only taken if no others will do; 0 = none. LENGTH_USEC: for how
 * long it will run. */
gboolean core_search_now(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                         guint32 avoid, guint32 *out_nodes);
/* The same, but at best on CANDIDATES for a task of one guest. */
gboolean core_search_among(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                           guint32 avoid, const GArray *candidates, guint32 *out_nodes);
/* When and where it first can; G_MAXINT64 = never. *OUT_SUPPLY (transfer full), unless OUT_SUPPLY is
 * NULL: what there is for a gang before that; NULL = it is no gang, or that cannot be told. */
gint64 core_search_first(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                         guint32 *out_nodes, CoreSupply **out_supply);
/* What each guest of it asks of a node. */
CoreNeed core_search_need(const BerthCore *core, const CoreClass *class, gint64 length_usec,
                          guint heeds);
