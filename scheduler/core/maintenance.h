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
/* Some of NODE's is between FROM and TO. */
gboolean core_maintenance_blocks(const CoreNode *node, gint64 from_usec, gint64 to_usec);
