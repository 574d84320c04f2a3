/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the maintenance of nodes: no task that cannot be moved is planned across it. */
#include "scheduler/core/maintenance.h"

#include "scheduler/core/nodes.h"

gboolean core_maintenance_blocks(const CoreNode *node, gint64 from_usec, gint64 to_usec)
{
    for (guint i = 0; node->blocks != NULL && i < node->blocks->len; i++) {
        const CoreBlock *block = &g_array_index(node->blocks, CoreBlock, i);
        if (block->start_usec < to_usec && from_usec < block->end_usec)
            return TRUE;
    }
    return FALSE;
}

static void changed(BerthCore *core, CoreNode *node)
{
    core_nodes_changed(&core->nodes, node);
    core_nodes_fresh(&core->nodes, node);
    core->pass_wanted = core->plan_wanted = TRUE;
}

static void remove_from(BerthCore *core, CoreNode *node, guint32 id)
{
    for (guint i = node->blocks != NULL ? node->blocks->len : 0; i > 0; i--) {
        if (g_array_index(node->blocks, CoreBlock, i - 1).id != id)
            continue;
        g_array_remove_index(node->blocks, i - 1);
        changed(core, node);
    }
}

void core_maintenance_clear(BerthCore *core, guint32 id)
{
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        remove_from(core, core_nodes_get(&core->nodes, handle), id);
}

void core_maintenance_set(BerthCore *core, guint32 id, const guint32 *nodes, gsize n_nodes,
                          gint64 start_usec, gint64 end_usec)
{
    CoreBlock block = {id, start_usec, end_usec};
    core_maintenance_clear(core, id);
    for (gsize i = 0; i < n_nodes; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, nodes[i]);
        if (node == NULL || end_usec <= start_usec)
            continue;
        if (node->blocks == NULL)
            node->blocks = g_array_new(FALSE, FALSE, sizeof(CoreBlock));
        g_array_append_val(node->blocks, block);
        changed(core, node);
    }
}
