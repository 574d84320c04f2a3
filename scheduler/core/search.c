/* SPDX-License-Identifier: Apache-2.0 */
/* FIT, with time: where a task can be, now or first, beside what is planned. Best fit: the node that
 * has least left (shapes.c). Knows neither the order of jobs nor what follows from a fit. */
#include "scheduler/core/search.h"

#include "scheduler/core/cells.h"
#include "scheduler/core/class.h"
#include "scheduler/core/key_heap.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/near.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/shapes.h"
#include "scheduler/core/supply.h"
#include "scheduler/core/timers.h"

/* So many nodes that would spread a guest over cells are looked at before one of them is taken. */
#define SPREADING_MAX 8u

CoreNeed core_search_need(const BerthCore *core, const CoreClass *class, gint64 length_usec,
                          guint heeds)
{
    return (CoreNeed){class->shape.start, length_usec, core_class_can_move(core, class), heeds};
}

/* The nodes of CLASS's constraint in their order, or those of a walk. */
typedef struct {
    BerthCore *core;
    const CoreClass *class;
    CoreWalk *walk;
    guint32 next;
} Source;

static Source source_open(BerthCore *core, const CoreClass *class)
{
    Source source = {core, class, NULL, 0};
    if (class->shape.n_nodes == 0)
        source.walk = core_shapes_walk(core, class->shape.start);
    return source;
}

static void source_close(Source *source)
{
    g_clear_pointer(&source->walk, core_walk_end);
}

/* Nodes that have no room before UNTIL_USEC may be left out. */
static void source_limit(const Source *source, gint64 until_usec)
{
    if (source->walk != NULL)
        core_walk_limit(source->walk, until_usec);
}

static CoreNode *source_next(Source *source, gint64 *out_earliest_usec)
{
    const CoreShape *shape = &source->class->shape;
    if (source->walk != NULL)
        return core_walk_next(source->walk, out_earliest_usec);
    while (source->next < shape->n_nodes) {
        CoreNode *node = core_nodes_get(&source->core->nodes, shape->nodes[source->next++]);
        *out_earliest_usec = core_profile_earliest(source->core, node, shape->start);
        if (*out_earliest_usec != G_MAXINT64)
            return node;
    }
    return NULL;
}

/* A walk comes in order of time; a constraint's nodes do not. */
static gboolean source_is_sorted(const Source *source)
{
    return source->walk != NULL;
}

/* --- now ------------------------------------------------------------------------------------ */

/* Keys of a walk are those of a smaller size: where the first node would spread the guest over cells,
 * the next few may not. */
static gboolean one_now_avoiding(BerthCore *core, const CoreClass *class, const CoreNeed *need,
                                 guint32 avoid, guint32 *out_node)
{
    guint64 best_rank = G_MAXUINT64;
    gint64 earliest_usec = 0;
    guint left = SPREADING_MAX;
    Source source = source_open(core, class);
    source_limit(&source, G_MININT64);
    CoreNode *node;
    while (left > 0 && (node = source_next(&source, &earliest_usec)) != NULL) {
        if (earliest_usec != G_MININT64 || node->handle == avoid ||
            core_profile_count(core, node, need, core->now_usec, 1) == 0)
            continue;
        guint64 rank = core_cells_rank(&core->nodes, node, need->size);
        left = core_cells_rank_is_whole(rank) ? 0 : left - 1;
        if (rank < best_rank) {
            best_rank = rank;
            *out_node = node->handle;
        }
    }
    source_close(&source);
    return best_rank != G_MAXUINT64;
}

static gboolean now_avoiding(BerthCore *core, const CoreClass *class, gint64 length_usec,
                             guint heeds, guint32 avoid, guint32 *out_nodes)
{
    CoreNeed need = core_search_need(core, class, length_usec, heeds);
    guint32 left = class->shape.guests;
    if (left == 1)
        return one_now_avoiding(core, class, &need, avoid, out_nodes);
    Source source = source_open(core, class);
    gint64 earliest_usec = 0;
    CoreNode *node;
    source_limit(&source, G_MININT64);
    while (left > 0 && (node = source_next(&source, &earliest_usec)) != NULL) {
        if (earliest_usec != G_MININT64 || node->handle == avoid)
            continue;
        guint32 count = core_profile_count(core, node, &need, core->now_usec, left);
        for (; count > 0; count--)
            out_nodes[class->shape.guests - left--] = node->handle;
    }
    source_close(&source);
    if (left == 0)
        core_near_gather(core, class, &need, avoid, out_nodes);
    return left == 0;
}

/* Without room on as many nodes as it needs, all else is in vain. */
gboolean core_search_may_fit_now(const BerthCore *core, const CoreClass *class)
{
    CoreBarriers none = {NULL, 0};
    return class->shape.n_nodes > 0 ||
           core_nodes_first(&core->nodes, class->shape.start, CORE_LOOK_AT_FREE, none) != NULL;
}

gboolean core_search_now(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                         guint32 avoid, guint32 *out_nodes)
{
    if (!core_search_may_fit_now(core, class))
        return FALSE;
    return (avoid != 0 && now_avoiding(core, class, length_usec, heeds, avoid, out_nodes)) ||
           now_avoiding(core, class, length_usec, heeds, 0, out_nodes);
}

gboolean core_search_among(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                           guint32 avoid, const GArray *candidates, guint32 *out_nodes)
{
    CoreNeed need = core_search_need(core, class, length_usec, heeds);
    guint64 best_rank = G_MAXUINT64;
    if (class->shape.guests > 1 || class->shape.n_nodes > 0 || avoid != 0)
        return core_search_now(core, class, length_usec, heeds, avoid, out_nodes);
    for (guint i = 0; i < candidates->len; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, g_array_index(candidates, guint32, i));
        if (!core_size_fits(need.size, core_node_free(node)))
            continue;
        guint64 rank = core_cells_rank(&core->nodes, node, need.size);
        if (rank > best_rank || (rank == best_rank && node->handle > out_nodes[0]) ||
            core_profile_count(core, node, &need, core->now_usec, 1) == 0)
            continue;
        best_rank = rank;
        out_nodes[0] = node->handle;
    }
    return best_rank != G_MAXUINT64;
}

/* --- first, one guest ----------------------------------------------------------------------- */

/* Whichever of those with room now is free of plans first: all of them have to be asked. Among equals
 * the one that is walked first. */
static gint64 first_of_now(BerthCore *core, const Source *source, const CoreNeed *need,
                           guint32 *out_node)
{
    gint64 best_usec = G_MAXINT64;
    guint64 best_key = 0;
    if (source->walk == NULL)
        return best_usec;
    const GArray *walked = core_walk_take_now(source->walk);
    for (guint i = 0; i < walked->len; i++) {
        const CoreWalked *at = &g_array_index(walked, CoreWalked, i);
        gint64 first_usec = core_profile_first(core, at->node, need, 1);
        if (first_usec > best_usec || first_usec == G_MAXINT64 ||
            (first_usec == best_usec && at->key >= best_key))
            continue;
        best_usec = first_usec;
        best_key = at->key;
        *out_node = at->node->handle;
    }
    core_walk_limit(source->walk, best_usec);
    return best_usec;
}

static gint64 first_of_one(BerthCore *core, const CoreClass *class, const CoreNeed *need,
                           guint32 *out_node)
{
    gint64 earliest_usec = 0;
    Source source = source_open(core, class);
    gint64 best_usec = first_of_now(core, &source, need, out_node);
    CoreNode *node;
    while ((node = source_next(&source, &earliest_usec)) != NULL) {
        gint64 first_usec = core_profile_first(core, node, need, 1);
        if (first_usec < best_usec) {
            best_usec = first_usec;
            *out_node = node->handle;
            source_limit(&source, best_usec);
        }
    }
    source_close(&source);
    return best_usec;
}

/* --- first, a gang -------------------------------------------------------------------------- */

/* A node that may take part. */
typedef struct {
    guint32 node;
    gint64 since_usec; /* it has room for one; G_MININT64 = now */
    guint32 count;     /* at the instant that is looked at, it has room for so many */
    CoreCurve curve;   /* at its next change */
} Part;

/* What it can take when the gang starts. */
typedef struct {
    gint64 since_usec;
    guint32 node;
    guint32 count;
} Share;

typedef struct {
    BerthCore *core;
    CoreNeed need;
    guint32 guests;
    GArray *parts;       /* Part, as they came */
    CoreKeyHeap changes; /* when the room of a part changes next; by the part */
    guint64 count;       /* sum over the parts */
    gint64 counted_usec; /* parts counted at once are to be looked at then; G_MAXINT64 = none */
    gint64 soon_usec;    /* the instant after now */
    GArray *falls;       /* gint64: the instants at which COUNT sank */
} Gang;

/* Those that are free last come first: what is free now is left to who can use it now. */
static int compare_shares(gconstpointer a, gconstpointer b)
{
    const Share *share_a = a;
    const Share *share_b = b;
    if (share_a->since_usec != share_b->since_usec)
        return share_a->since_usec > share_b->since_usec ? -1 : 1;
    return share_a->node < share_b->node ? -1 : share_a->node > share_b->node;
}

static void add_change(Gang *gang, gint64 at_usec, guint part)
{
    core_key_heap_push(&gang->changes, (CoreKeyed){(guint64)at_usec, part, 0});
}

static void add_part(Gang *gang, CoreNode *node, gint64 since_usec)
{
    Part part = {.node = node->handle, .since_usec = since_usec};
    CoreCurve *curve = &part.curve;
    core_curve_begin(curve, gang->core, node, &gang->need, gang->guests, gang->soon_usec);
    if (curve->count == 0 && !core_curve_next(curve)) {
        core_curve_end(curve);
        return;
    }
    g_array_append_val(gang->parts, part);
    add_change(gang, curve->at_usec, gang->parts->len - 1);
}

/* The same, of one that has room now: it is counted at once, without a change of its own for that. */
static void add_part_of_now(Gang *gang, CoreNode *node)
{
    Part part = {.node = node->handle, .since_usec = G_MININT64};
    CoreCurve *curve = &part.curve;
    core_curve_begin(curve, gang->core, node, &gang->need, gang->guests, gang->soon_usec);
    part.count = curve->count;
    gang->count += part.count;
    if (part.count > 0)
        gang->counted_usec = curve->at_usec;
    gboolean changes = core_curve_next(curve);
    if (changes)
        add_change(gang, curve->at_usec, gang->parts->len);
    if (changes || part.count > 0)
        g_array_append_val(gang->parts, part);
    else
        core_curve_end(curve);
}

static gint64 next_change(const Gang *gang)
{
    gint64 at_usec = gang->counted_usec;
    if (gang->changes.n > 0)
        at_usec = MIN(at_usec, (gint64)core_key_heap_first(&gang->changes).key);
    return at_usec;
}

/* All changes of the next instant, which is returned. */
static gint64 take_changes(Gang *gang)
{
    gint64 at_usec = next_change(gang);
    guint64 count = gang->count;
    gang->counted_usec = G_MAXINT64;
    while (gang->changes.n > 0 && next_change(gang) == at_usec) {
        guint32 id = core_key_heap_first(&gang->changes).id;
        Part *part = &g_array_index(gang->parts, Part, id);
        gang->count = gang->count - part->count + part->curve.count;
        part->count = part->curve.count;
        if (core_curve_next(&part->curve))
            core_key_heap_replace_first(&gang->changes,
                                        (CoreKeyed){(guint64)part->curve.at_usec, id, 0});
        else
            core_key_heap_pop(&gang->changes);
    }
    if (gang->count < count)
        g_array_append_val(gang->falls, at_usec);
    return at_usec;
}

/* All that have room now matter from the beginning, in whatever order. */
static void add_parts_of_now(Gang *gang, const Source *source)
{
    if (source->walk == NULL)
        return;
    const GArray *walked = core_walk_take_now(source->walk);
    for (guint i = 0; i < walked->len; i++)
        add_part_of_now(gang, g_array_index(walked, CoreWalked, i).node);
}

/* The first instant at which there is room for all of them between the nodes. A node is taken in before
 * the first instant at which it could have room. */
static gint64 first_of_gang(Gang *gang, Source *source)
{
    gint64 next_usec = G_MININT64;
    add_parts_of_now(gang, source);
    CoreNode *node = source_next(source, &next_usec);
    for (;;) {
        while (node != NULL && (!source_is_sorted(source) || next_usec <= next_change(gang))) {
            add_part(gang, node, next_usec);
            node = source_next(source, &next_usec);
        }
        if (next_change(gang) == G_MAXINT64)
            return G_MAXINT64;
        gint64 at_usec = take_changes(gang);
        if (gang->count >= gang->guests)
            return at_usec;
    }
}

static void assign(Gang *gang, guint32 *out_nodes)
{
    g_autoptr(GArray) shares = g_array_new(FALSE, FALSE, sizeof(Share));
    guint32 left = gang->guests;
    for (guint i = 0; i < gang->parts->len; i++) {
        const Part *part = &g_array_index(gang->parts, Part, i);
        Share share = {part->since_usec, part->node, part->count};
        if (share.count > 0)
            g_array_append_val(shares, share);
    }
    g_array_sort(shares, compare_shares);
    for (guint i = 0; i < shares->len && left > 0; i++) {
        const Share *share = &g_array_index(shares, Share, i);
        for (guint32 count = MIN(share->count, left); count > 0; count--)
            out_nodes[gang->guests - left--] = share->node;
    }
}

/* Only nodes that are parts can have room before that start. */
static CoreSupply *supply_of(const Gang *gang, gint64 start_usec, const guint32 *nodes)
{
    CoreSupply *supply = core_supply_new(&gang->need, gang->guests, start_usec, nodes, gang->falls);
    for (guint i = 0; supply != NULL && i < gang->parts->len; i++) {
        guint32 handle = g_array_index(gang->parts, Part, i).node;
        core_supply_take(supply, gang->core, core_nodes_get(&gang->core->nodes, handle),
                         gang->need.heeds);
    }
    return supply;
}

static gint64 place_gang(BerthCore *core, const CoreClass *class, const CoreNeed *need,
                         guint32 *out_nodes, CoreSupply **out_supply)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Part));
    g_autoptr(GArray) falls = g_array_new(FALSE, FALSE, sizeof(gint64));
    Gang gang = {.core = core,
                 .need = *need,
                 .guests = class->shape.guests,
                 .parts = parts,
                 .counted_usec = G_MAXINT64,
                 .soon_usec = core_time_add(core->now_usec, 1),
                 .falls = falls};
    Source source = source_open(core, class);
    gint64 found_usec = first_of_gang(&gang, &source);
    source_close(&source);
    if (found_usec != G_MAXINT64)
        assign(&gang, out_nodes);
    for (guint i = 0; i < parts->len; i++)
        core_curve_end(&g_array_index(parts, Part, i).curve);
    core_key_heap_clear(&gang.changes);
    if (found_usec != G_MAXINT64 && out_supply != NULL)
        *out_supply = supply_of(&gang, found_usec, out_nodes);
    return found_usec;
}

/* Without a node that large, whoever leaves, all else is in vain. */
static gboolean may_fit_ever(const BerthCore *core, const CoreClass *class)
{
    CoreBarriers none = {NULL, 0};
    return class->shape.n_nodes > 0 ||
           core_nodes_first(&core->nodes, class->shape.start, CORE_LOOK_AT_CAPACITY, none) != NULL;
}

gint64 core_search_first(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                         guint32 *out_nodes, CoreSupply **out_supply)
{
    CoreNeed need = core_search_need(core, class, length_usec, heeds);
    if (out_supply != NULL)
        *out_supply = NULL;
    if (!may_fit_ever(core, class))
        return G_MAXINT64;
    if (class->shape.guests == 1)
        return first_of_one(core, class, &need, out_nodes);
    return place_gang(core, class, &need, out_nodes, out_supply);
}
