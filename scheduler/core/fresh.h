/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What the nodes with more room than the last pass saw have left beside the first HEEDS planned starts. */
typedef struct CoreFresh CoreFresh;

CoreFresh *core_fresh_new(BerthCore *core, guint heeds);
void core_fresh_free(CoreFresh *fresh);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CoreFresh, core_fresh_free)
/* Guests have started on NODES; and others may have become fresh. */
void core_fresh_update(CoreFresh *fresh, const guint32 *nodes, guint32 n_nodes);
/* FALSE: none of them has room for so much from now on, for anybody. */
gboolean core_fresh_may_have_room(const CoreFresh *fresh, const CoreLeast *least);
/* One of them has room for a guest of CLASS for LENGTH_USEC from now on, and CLASS may be there. */
gboolean core_fresh_has_room(const CoreFresh *fresh, const CoreClass *class, gint64 length_usec);
