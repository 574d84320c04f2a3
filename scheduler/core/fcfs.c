/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, first come first served. A job that has to wait keeps every open node
 * that could hold it from all who come after it, so that nobody overtakes it where it may run and
 * it cannot starve; nodes that it could not use go on to others.
 *
 * A pass costs O((started + classes) log nodes): a class whose first job cannot start is done. The
 * nodes kept for an unconstrained class are described by a barrier (all of at least that
 * capacity), those kept for a constrained one are hidden one by one. */
#include "scheduler/core/placement.h"

#include "scheduler/core/class.h"
#include "scheduler/core/fit.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order_tree.h"

typedef struct {
    BerthCore *core;
    GArray *barriers;  /* CoreSize */
    GPtrArray *hidden; /* CoreNode */
    gboolean has_started;
} Pass;

static CoreBarriers barriers_of(const Pass *pass)
{
    return (CoreBarriers){(const CoreSize *)(void *)pass->barriers->data, pass->barriers->len};
}

static void hide(Pass *pass, CoreNode *node)
{
    node->is_hidden = TRUE;
    core_nodes_changed(&pass->core->nodes, node);
    g_ptr_array_add(pass->hidden, node);
}

static void keep_nodes_for(Pass *pass, const CoreClass *class)
{
    if (class->shape.n_nodes == 0) {
        g_array_append_val(pass->barriers, class->shape.start);
        return;
    }
    for (guint32 i = 0; i < class->shape.n_nodes; i++) {
        CoreNode *node = core_nodes_get(&pass->core->nodes, class->shape.nodes[i]);
        if (core_node_is_open(node) && core_size_fits(class->shape.start, core_node_capacity(node)))
            hide(pass, node);
    }
}

static void let_wait(Pass *pass, CoreClass *class)
{
    class->looked_at = pass->core->pass;
    class->is_blocked = !core_fit_could(pass->core, class, barriers_of(pass));
    /* What is blocked altogether has nothing to keep that is not kept already. */
    if (!class->is_blocked)
        keep_nodes_for(pass, class);
}

static void look_at(Pass *pass, CoreClass *class)
{
    if (core_placement_park(pass->core, class))
        return;
    g_autofree guint32 *nodes = g_new(guint32, class->shape.guests);
    if (core_fit(pass->core, class, core_placement_avoid(class), barriers_of(pass), nodes)) {
        core_placement_start(pass->core, class, nodes);
        pass->has_started = TRUE;
    } else {
        let_wait(pass, class);
    }
}

static gboolean any_node_is_left(const Pass *pass)
{
    return core_nodes_first(&pass->core->nodes, (CoreSize){1, 1}, CORE_LOOK_AT_CAPACITY,
                            barriers_of(pass)) != NULL;
}

static void end_pass(Pass *pass)
{
    for (guint i = 0; i < pass->hidden->len; i++) {
        CoreNode *node = g_ptr_array_index(pass->hidden, i);
        node->is_hidden = FALSE;
        core_nodes_changed(&pass->core->nodes, node);
    }
    g_ptr_array_unref(pass->hidden);
    g_array_unref(pass->barriers);
}

/* Who started may have used up the limits of one who waits: what was kept for him is free. N: so many at most, from
 * the first, were looked at. */
static void park_some(BerthCore *core, guint n)
{
    for (guint at = 0; at < n;) {
        CoreClass *class = core_order_at(core, at);
        if (class == NULL)
            return;
        gboolean keeps = class->looked_at == core->pass && !class->is_blocked;
        if (keeps && core_placement_park(core, class))
            core->pass_again = TRUE;
        else
            at++;
    }
}

void core_fcfs_pass(BerthCore *core)
{
    Pass pass = {.core = core,
                 .barriers = g_array_new(FALSE, FALSE, sizeof(CoreSize)),
                 .hidden = g_ptr_array_new()};
    guint at = 0;
    /* A class whose first task starts goes on to where its next one belongs. */
    CoreClass *class;
    while ((class = core_order_at(core, at)) != NULL && any_node_is_left(&pass)) {
        if (class->looked_at == core->pass)
            at++;
        else
            look_at(&pass, class);
    }
    end_pass(&pass);
    if (pass.has_started)
        park_some(core, at);
}
