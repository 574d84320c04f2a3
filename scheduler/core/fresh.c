/* SPDX-License-Identifier: Apache-2.0 */
/* Owns, during a pass, what fresh nodes have left: to say in a few comparisons that none of them has
 * room for a class, for each of many classes. Invariant: most[i] is the most of each that most[2i] and
 * most[2i+1] have, and a leaf is what its opening has now. */
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
    CoreSize *most;   /* root at 1, leaves from WIDTH */
    guint width;      /* power of two, >= number of openings; 0 = there are none */
};

static const Opening *opening_at(const CoreFresh *fresh, guint i)
{
    return &g_array_index(fresh->openings, Opening, i);
}

static CoreSize room_now(const CoreFresh *fresh, guint i)
{
    return g_array_index(fresh->steps, CoreStep, opening_at(fresh, i)->first).room;
}

static void sum_up(CoreFresh *fresh, guint at)
{
    fresh->most[at] = core_size_max(fresh->most[2 * at], fresh->most[2 * at + 1]);
}

static void make_tree(CoreFresh *fresh)
{
    guint n = fresh->openings->len;
    fresh->width = n > 0 ? 1 : 0;
    while (fresh->width < n)
        fresh->width *= 2;
    fresh->most = g_renew(CoreSize, fresh->most, 2 * fresh->width);
    for (guint i = 0; i < fresh->width; i++)
        fresh->most[fresh->width + i] = i < n ? room_now(fresh, i) : (CoreSize){0, 0};
    for (guint at = fresh->width; at > 1; at--)
        sum_up(fresh, at - 1);
}

static void update_tree(CoreFresh *fresh, guint i)
{
    guint at = fresh->width + i;
    fresh->most[at] = room_now(fresh, i);
    for (at /= 2; at > 0; at /= 2)
        sum_up(fresh, at);
}

/* Of the fresh nodes that have none yet. */
static void add_openings(CoreFresh *fresh)
{
    BerthCore *core = fresh->core;
    guint n = fresh->openings->len;
    for (guint i = n; i < core->nodes.fresh->len; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, g_array_index(core->nodes.fresh, guint32, i));
        Opening opening = {.node = node, .first = fresh->steps->len};
        core_profile_outlook(core, node, fresh->heeds, fresh->steps);
        opening.n = fresh->steps->len - opening.first;
        g_array_append_val(fresh->openings, opening);
    }
    if (fresh->openings->len > fresh->width)
        make_tree(fresh);
    else
        for (guint i = n; i < fresh->openings->len; i++)
            update_tree(fresh, i);
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
    return fresh;
}

void core_fresh_free(CoreFresh *fresh)
{
    g_array_unref(fresh->openings);
    g_array_unref(fresh->steps);
    g_array_unref(fresh->scratch);
    g_free(fresh->most);
    g_free(fresh);
}

static void update_one(CoreFresh *fresh, guint i)
{
    GArray *steps = fresh->scratch;
    const Opening *opening = opening_at(fresh, i);
    g_array_set_size(steps, 0);
    core_profile_outlook(fresh->core, opening->node, fresh->heeds, steps);
    for (guint step = 0; step < opening->n; step++)
        g_array_index(fresh->steps, CoreStep, opening->first + step) =
            g_array_index(steps, CoreStep, step);
    update_tree(fresh, i);
}

void core_fresh_update(CoreFresh *fresh, const guint32 *nodes, guint32 n_nodes)
{
    for (guint32 i = 0; i < n_nodes; i++) {
        const CoreNode *node = core_nodes_get(&fresh->core->nodes, nodes[i]);
        if (node->fresh > 0 && node->fresh <= fresh->openings->len)
            update_one(fresh, node->fresh - 1);
    }
    add_openings(fresh);
}

/* What is asked for. */
typedef struct {
    CoreSize size;
    gint64 length_usec, end_usec;
    const CoreClass *class; /* NULL = may be anywhere, whatever maintenance is to come */
} Ask;

static gboolean may_be_on(const CoreFresh *fresh, const Opening *opening, const Ask *ask)
{
    return ask->class == NULL ||
           (core_class_allows(ask->class, opening->node->handle) &&
            !core_maintenance_forbids(fresh->core, opening->node, ask->class, ask->length_usec));
}

static gboolean fits(const CoreFresh *fresh, const Opening *opening, const Ask *ask)
{
    const CoreStep *steps = &g_array_index(fresh->steps, CoreStep, opening->first);
    if (!core_size_fits(ask->size, steps[0].room))
        return FALSE;
    for (guint i = 1; i < opening->n; i++)
        if (steps[i].start_usec < ask->end_usec && !core_size_fits(ask->size, steps[i].room))
            return FALSE;
    return may_be_on(fresh, opening, ask);
}

static gboolean any_fits_below(const CoreFresh *fresh, guint at, const Ask *ask)
{
    if (!core_size_fits(ask->size, fresh->most[at]))
        return FALSE;
    if (at >= fresh->width)
        return at - fresh->width < fresh->openings->len &&
               fits(fresh, opening_at(fresh, at - fresh->width), ask);
    return any_fits_below(fresh, 2 * at, ask) || any_fits_below(fresh, 2 * at + 1, ask);
}

static gboolean any_fits(const CoreFresh *fresh, CoreSize size, gint64 length_usec,
                         const CoreClass *class)
{
    Ask ask = {size, length_usec, core_time_add(fresh->core->now_usec, length_usec), class};
    return fresh->width > 0 && any_fits_below(fresh, 1, &ask);
}

gboolean core_fresh_may_have_room(const CoreFresh *fresh, const CoreLeast *least)
{
    return any_fits(fresh, least->size, least->length_usec, NULL);
}

gboolean core_fresh_has_room(const CoreFresh *fresh, const CoreClass *class, gint64 length_usec)
{
    return any_fits(fresh, class->shape.start, length_usec, class);
}
