/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the maintenance of nodes: nobody starts there meanwhile, no task that cannot be moved is
 * planned across it, and those that can are moved away when it begins. */
#include "scheduler/core/maintenance.h"

#include "scheduler/core/class.h"
#include "scheduler/core/drain.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/room.h"
#include "scheduler/core/rounds.h"
#include "scheduler/core/timers.h"

gboolean core_maintenance_blocks(const CoreNode *node, gint64 from_usec, gint64 to_usec)
{
    for (guint i = 0; node->blocks != NULL && i < node->blocks->len; i++) {
        const CoreBlock *block = &g_array_index(node->blocks, CoreBlock, i);
        if (block->start_usec < to_usec && from_usec < block->end_usec)
            return TRUE;
    }
    return FALSE;
}

gboolean core_maintenance_is_now(const BerthCore *core, const CoreNode *node)
{
    return core_maintenance_blocks(node, core->now_usec, core->now_usec + 1);
}

gboolean core_maintenance_forbids(const BerthCore *core, const CoreNode *node,
                                  const CoreClass *class, gint64 length_usec)
{
    if (core_class_can_move(core, class))
        return core_maintenance_is_now(core, node);
    return core_maintenance_blocks(node, core->now_usec,
                                   core_time_add(core->now_usec, length_usec));
}

static void changed(BerthCore *core, CoreNode *node)
{
    core_nodes_changed(&core->nodes, node);
    core->pass_wanted = core->plan_wanted = TRUE;
}

/* NODE is free of one, so that whoever waits may try there; one that begins, or is to come, only takes. */
static void opened(BerthCore *core, CoreNode *node)
{
    changed(core, node);
    core_nodes_fresh(&core->nodes, node);
}

static void remove_from(BerthCore *core, CoreNode *node, guint32 id)
{
    for (guint i = node->blocks != NULL ? node->blocks->len : 0; i > 0; i--) {
        if (g_array_index(node->blocks, CoreBlock, i - 1).id != id)
            continue;
        g_array_remove_index(node->blocks, i - 1);
        opened(core, node);
    }
}

/* Wakes the core when the next one begins or ends. */
static void arm(BerthCore *core)
{
    gint64 due_usec = G_MAXINT64;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        const GArray *blocks = core_nodes_get(&core->nodes, handle)->blocks;
        for (guint i = 0; blocks != NULL && i < blocks->len; i++) {
            const CoreBlock *block = &g_array_index(blocks, CoreBlock, i);
            gint64 next_usec =
                block->start_usec > core->now_usec ? block->start_usec : block->end_usec;
            if (next_usec > core->now_usec)
                due_usec = MIN(due_usec, next_usec);
        }
    }
    core_timer_set(core, &core->maintenance, due_usec);
}

/* What has ended on NODE is over; what is under way there wants it empty. */
static void look_at(BerthCore *core, CoreNode *node)
{
    for (guint i = node->blocks != NULL ? node->blocks->len : 0; i > 0; i--) {
        if (g_array_index(node->blocks, CoreBlock, i - 1).end_usec > core->now_usec)
            continue;
        g_array_remove_index(node->blocks, i - 1);
        opened(core, node);
    }
    if (!core_maintenance_is_now(core, node))
        return;
    changed(core, node);
    core_room_forsake(core, node);
    core_drain_evacuate(core, node);
}

void core_maintenance_due(BerthCore *core)
{
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        look_at(core, core_nodes_get(&core->nodes, handle));
    arm(core);
}

static void clear(BerthCore *core, guint32 id)
{
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        remove_from(core, core_nodes_get(&core->nodes, handle), id);
}

void core_maintenance_clear(BerthCore *core, guint32 id)
{
    clear(core, id);
    arm(core);
}

void core_maintenance_set(BerthCore *core, guint32 id, const guint32 *nodes, gsize n_nodes,
                          gint64 start_usec, gint64 end_usec)
{
    CoreBlock block = {id, start_usec, end_usec};
    clear(core, id);
    for (gsize i = 0; i < n_nodes; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, nodes[i]);
        if (node == NULL || end_usec <= start_usec)
            continue;
        if (node->blocks == NULL)
            node->blocks = g_array_new(FALSE, FALSE, sizeof(CoreBlock));
        g_array_append_val(node->blocks, block);
        changed(core, node);
    }
    core_maintenance_due(core);
}
