/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/profile.h"
#include "scheduler/core/state.h"

/* How many guests of a gang that is planned to start at some instant there is room for before that,
 * on each node and on all of them together: at least as many as a search would count. */
typedef struct CoreSupply CoreSupply;

/* Without any node yet. START_USEC: of the gang of so many GUESTS, on NODES. FALLS (gint64, rising):
 * the instants before it at which there is less room than before. NULL: it has more guests than are
 * counted here. */
CoreSupply *core_supply_new(const CoreNeed *need, guint32 guests, gint64 start_usec,
                            const guint32 *nodes, const GArray *falls);
void core_supply_free(CoreSupply *supply);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CoreSupply, core_supply_free)
/* NODE as it is now, beside the planned starts before HEEDS. */
void core_supply_take(CoreSupply *supply, const BerthCore *core, CoreNode *node, guint heeds);
/* So many of the gang's guests are planned to be on NODE. */
guint32 core_supply_planned_on(const CoreSupply *supply, const CoreNode *node);
/* FALSE: at no instant from now until the gang's start is there room for all of it. */
gboolean core_supply_may_be_earlier(const CoreSupply *supply, gint64 now_usec);
gsize core_supply_bytes(const CoreSupply *supply);
