/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Times at which nodes are needed for something else. */
typedef struct {
    guint32 id;
    gint64 start_usec, end_usec;
} CoreBlock;

void core_maintenance_set(BerthCore *core, guint32 id, const guint32 *nodes, gsize n_nodes,
                          gint64 start_usec, gint64 end_usec);
void core_maintenance_clear(BerthCore *core, guint32 id);
/* One has begun or ended. */
void core_maintenance_due(BerthCore *core);
/* A task of CLASS that starts now and takes LENGTH_USEC may not be on NODE: one is under way, or it
 * would meet one and could not be moved away. */
gboolean core_maintenance_forbids(const BerthCore *core, const CoreNode *node,
                                  const CoreClass *class, gint64 length_usec);
/* NODE is needed for something else now. */
gboolean core_maintenance_is_now(const BerthCore *core, const CoreNode *node);
/* Some of NODE's is between FROM and TO. */
gboolean core_maintenance_blocks(const CoreNode *node, gint64 from_usec, gint64 to_usec);
