/* SPDX-License-Identifier: Apache-2.0 */
/* FIT: which nodes take a task, now. First fit in order of the handles. Knows neither the order of
 * jobs nor what follows from a fit. search.c does it with time. */
#include "scheduler/core/fit.h"

#include "scheduler/core/class.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/timers.h"

static CoreNode *first_of_constraint(const BerthCore *core, const CoreClass *class,
                                     CoreLookAt look_at, CoreBarriers barriers)
{
    for (guint32 i = 0; i < class->shape.n_nodes; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, class->shape.nodes[i]);
        if (!core_node_is_open(node) || core_barriers_close(barriers, core_node_capacity(node)))
            continue;
        CoreSize room =
            look_at == CORE_LOOK_AT_FREE ? core_node_free(node) : core_node_capacity(node);
        if (core_size_fits(class->shape.start, room))
            return node;
    }
    return NULL;
}

static CoreNode *first(const BerthCore *core, const CoreClass *class, CoreBarriers barriers)
{
    if (class->shape.n_nodes > 0)
        return first_of_constraint(core, class, CORE_LOOK_AT_FREE, barriers);
    return core_nodes_first(&core->nodes, class->shape.start, CORE_LOOK_AT_FREE, barriers);
}

static void set_hidden(BerthCore *core, CoreNode *node, gboolean is_hidden)
{
    node->is_hidden = is_hidden;
    core_nodes_changed(&core->nodes, node);
}

/* Node after node, as many guests on each as it has room for; those that were taken are hidden. */
static gboolean fit_avoiding(BerthCore *core, const CoreClass *class, guint32 avoid,
                             CoreBarriers barriers, guint32 *out_nodes)
{
    g_autoptr(GPtrArray) hidden = g_ptr_array_new();
    CoreNode *node = core_nodes_get(&core->nodes, avoid);
    guint32 left = class->shape.guests;
    if (node != NULL && !node->is_hidden) {
        set_hidden(core, node, TRUE);
        g_ptr_array_add(hidden, node);
    }
    while (left > 0 && (node = first(core, class, barriers)) != NULL) {
        guint32 count =
            core_maintenance_forbids(core, node, class, core_class_length_usec(core, class))
                ? 0
                : core_size_count(class->shape.start, core_node_free(node), left);
        for (; count > 0; count--)
            out_nodes[class->shape.guests - left--] = node->handle;
        if (left == 0)
            break;
        set_hidden(core, node, TRUE);
        g_ptr_array_add(hidden, node);
    }
    for (guint i = 0; i < hidden->len; i++)
        set_hidden(core, g_ptr_array_index(hidden, i), FALSE);
    return left == 0;
}

gboolean core_fit(BerthCore *core, const CoreClass *class, guint32 avoid, CoreBarriers barriers,
                  guint32 *out_nodes)
{
    return fit_avoiding(core, class, avoid, barriers, out_nodes) ||
           (avoid != 0 && fit_avoiding(core, class, 0, barriers, out_nodes));
}

gboolean core_fit_could(const BerthCore *core, const CoreClass *class, CoreBarriers barriers)
{
    if (class->shape.n_nodes > 0)
        return first_of_constraint(core, class, CORE_LOOK_AT_CAPACITY, barriers) != NULL;
    return core_nodes_first(&core->nodes, class->shape.start, CORE_LOOK_AT_CAPACITY, barriers) !=
           NULL;
}
