/* SPDX-License-Identifier: Apache-2.0 */
/* Owns, during a pass, what fresh nodes have left: to say in a few comparisons that none of them has
 * room for a class, for each of many classes. */
#include "scheduler/core/fresh.h"

#include "scheduler/core/class.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/timers.h"

typedef struct {
    CoreNode *node;
    guint first, n; /* its steps: now, and each planned start there. Their number stays the same */
} Opening;

struct CoreFresh {
    BerthCore *core;
    guint heeds;
    GArray *openings; /* Opening, in the order of the fresh nodes */
    GArray *steps;    /* CoreStep */
    GArray *scratch;  /* CoreStep */
    CoreSize most;    /* now, on any of them, of each */
};

static void note_most(CoreFresh *fresh)
{
    fresh->most = (CoreSize){0, 0};
    for (guint i = 0; i < fresh->openings->len; i++) {
        guint first = g_array_index(fresh->openings, Opening, i).first;
        CoreSize room = g_array_index(fresh->steps, CoreStep, first).room;
        fresh->most.vcpus = MAX(fresh->most.vcpus, room.vcpus);
        fresh->most.memory_mib = MAX(fresh->most.memory_mib, room.memory_mib);
    }
}

/* Of the fresh nodes that have none yet. */
static void add_openings(CoreFresh *fresh)
{
    BerthCore *core = fresh->core;
    for (guint i = fresh->openings->len; i < core->nodes.fresh->len; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, g_array_index(core->nodes.fresh, guint32, i));
        Opening opening = {.node = node, .first = fresh->steps->len};
        core_profile_outlook(core, node, fresh->heeds, fresh->steps);
        opening.n = fresh->steps->len - opening.first;
        g_array_append_val(fresh->openings, opening);
    }
}

CoreFresh *core_fresh_new(BerthCore *core, guint heeds)
{
    CoreFresh *fresh = g_new0(CoreFresh, 1);
    fresh->core = core;
    fresh->heeds = heeds;
    fresh->openings = g_array_new(FALSE, FALSE, sizeof(Opening));
    fresh->steps = g_array_new(FALSE, FALSE, sizeof(CoreStep));
    fresh->scratch = g_array_new(FALSE, FALSE, sizeof(CoreStep));
    add_openings(fresh);
    note_most(fresh);
    return fresh;
}

void core_fresh_free(CoreFresh *fresh)
{
    g_array_unref(fresh->openings);
    g_array_unref(fresh->steps);
    g_array_unref(fresh->scratch);
    g_free(fresh);
}

static void update_one(CoreFresh *fresh, const Opening *opening)
{
    GArray *steps = fresh->scratch;
    g_array_set_size(steps, 0);
    core_profile_outlook(fresh->core, opening->node, fresh->heeds, steps);
    for (guint i = 0; i < opening->n; i++)
        g_array_index(fresh->steps, CoreStep, opening->first + i) =
            g_array_index(steps, CoreStep, i);
}

void core_fresh_update(CoreFresh *fresh, const guint32 *nodes, guint32 n_nodes)
{
    guint32 n = 0;
    g_autofree guint32 *set = core_class_node_set(nodes, n_nodes, &n);
    for (guint i = 0; i < fresh->openings->len; i++) {
        const Opening *opening = &g_array_index(fresh->openings, Opening, i);
        if (core_class_node_set_has(set, n, opening->node->handle))
            update_one(fresh, opening);
    }
    add_openings(fresh);
    note_most(fresh);
}

gboolean core_fresh_may_have_room(const CoreFresh *fresh, CoreSize size)
{
    return core_size_fits(size, fresh->most);
}

/* Until END_USEC. */
static gboolean fits(const CoreFresh *fresh, const Opening *opening, CoreSize size, gint64 end_usec)
{
    const CoreStep *steps = &g_array_index(fresh->steps, CoreStep, opening->first);
    if (!core_size_fits(size, steps[0].room))
        return FALSE;
    for (guint i = 1; i < opening->n; i++)
        if (steps[i].start_usec < end_usec && !core_size_fits(size, steps[i].room))
            return FALSE;
    return TRUE;
}

gboolean core_fresh_has_room(const CoreFresh *fresh, const CoreClass *class, gint64 length_usec)
{
    const CoreShape *shape = &class->shape;
    gint64 now_usec = fresh->core->now_usec;
    gint64 end_usec = core_time_add(now_usec, length_usec);
    for (guint i = 0; i < fresh->openings->len; i++) {
        const Opening *opening = &g_array_index(fresh->openings, Opening, i);
        if (fits(fresh, opening, shape->start, end_usec) &&
            core_class_allows(class, opening->node->handle) &&
            !core_maintenance_forbids(fresh->core, opening->node, class, length_usec))
            return TRUE;
    }
    return FALSE;
}
