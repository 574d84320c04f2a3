/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

void core_classes_init(BerthCore *core);
/* The class of that shape, made if there is none, with one more job that refers to it. NODES of the
 * shape may be in any order and name a node twice; they are copied. */
CoreClass *core_class_take(BerthCore *core, const CoreShape *shape);
/* One job less; the last one frees it. */
void core_class_drop(BerthCore *core, CoreClass *class);
/* Its job that is next in the order; NULL = none waits. */
CoreJob *core_class_head(const CoreClass *class);
/* TRUE: its constraint names NODE, or there is none. */
gboolean core_class_allows(const CoreClass *class, guint32 node);
/* A guest of it can be moved while it runs, as things are set. */
gboolean core_class_can_move(const BerthCore *core, const CoreClass *class);
gboolean core_class_can_checkpoint(const BerthCore *core, const CoreClass *class);
/* A task of it may start in slack, if there is room, as things are set. */
gboolean core_class_may_be_in_slack(const BerthCore *core, const CoreClass *class);
/* How long a task of it is planned for. */
gint64 core_class_length_usec(const BerthCore *core, const CoreClass *class);
/* Memory of the guest that its next task starts with, without the host's overhead. */
guint64 core_class_start_memory_mib(const CoreClass *class);
/* NODES, rising, each once; NULL = none. (transfer full) */
guint32 *core_class_node_set(const guint32 *nodes, gsize n_nodes, guint32 *out_n);
/* NODE is one of such a set. */
gboolean core_class_node_set_has(const guint32 *set, guint32 n, guint32 node);
