/* SPDX-License-Identifier: Apache-2.0 */
/* FIT, with time: where a task can be, now or first, beside what is planned. Best fit: the node that
 * has least left (shapes.c). Knows neither the order of jobs nor what follows from a fit. */
#include "scheduler/core/search.h"

#include "scheduler/core/cells.h"
#include "scheduler/core/class.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/near.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/shapes.h"
#include "scheduler/core/timers.h"

/* So many nodes that would spread a guest over cells are looked at before one of them is taken. */
#define SPREADING_MAX 8u

static CoreNeed need_of(const CoreClass *class, gint64 length_usec, guint heeds)
{
    return (CoreNeed){class->shape.size, length_usec, class->shape.may_move, heeds};
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
        source.walk = core_shapes_walk(core, class->shape.size);
    return source;
}

static void source_close(Source *source)
{
    g_clear_pointer(&source->walk, core_walk_free);
}

static CoreNode *source_next(Source *source, gint64 *out_earliest_usec)
{
    const CoreShape *shape = &source->class->shape;
    if (source->walk != NULL)
        return core_walk_next(source->walk, out_earliest_usec);
    while (source->next < shape->n_nodes) {
        CoreNode *node = core_nodes_get(&source->core->nodes, shape->nodes[source->next++]);
        *out_earliest_usec = core_profile_earliest(source->core, node, shape->size);
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
    CoreNode *node;
    while (left > 0 && (node = source_next(&source, &earliest_usec)) != NULL) {
        if (earliest_usec != G_MININT64 && source_is_sorted(&source))
            break;
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
    CoreNeed need = need_of(class, length_usec, heeds);
    guint32 left = class->shape.guests;
    if (left == 1)
        return one_now_avoiding(core, class, &need, avoid, out_nodes);
    Source source = source_open(core, class);
    gint64 earliest_usec = 0;
    CoreNode *node;
    while (left > 0 && (node = source_next(&source, &earliest_usec)) != NULL) {
        if (earliest_usec != G_MININT64 && source_is_sorted(&source))
            break;
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
static gboolean may_fit_now(const BerthCore *core, const CoreClass *class)
{
    CoreBarriers none = {NULL, 0};
    return class->shape.n_nodes > 0 ||
           core_nodes_first(&core->nodes, class->shape.size, CORE_LOOK_AT_FREE, none) != NULL;
}

gboolean core_search_now(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                         guint32 avoid, guint32 *out_nodes)
{
    if (!may_fit_now(core, class))
        return FALSE;
    return (avoid != 0 && now_avoiding(core, class, length_usec, heeds, avoid, out_nodes)) ||
           now_avoiding(core, class, length_usec, heeds, 0, out_nodes);
}

gboolean core_search_among(BerthCore *core, const CoreClass *class, gint64 length_usec, guint heeds,
                           guint32 avoid, const GArray *candidates, guint32 *out_nodes)
{
    CoreNeed need = need_of(class, length_usec, heeds);
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

static gint64 first_of_one(BerthCore *core, const CoreClass *class, const CoreNeed *need,
                           guint32 *out_node)
{
    gint64 best_usec = G_MAXINT64;
    gint64 earliest_usec = 0;
    Source source = source_open(core, class);
    CoreNode *node;
    while ((node = source_next(&source, &earliest_usec)) != NULL) {
        if (earliest_usec >= best_usec && source_is_sorted(&source))
            break;
        gint64 first_usec = core_profile_first(core, node, need, 1);
        if (first_usec < best_usec) {
            best_usec = first_usec;
            *out_node = node->handle;
        }
    }
    source_close(&source);
    return best_usec;
}

/* --- first, a gang -------------------------------------------------------------------------- */

/* A node that could take part, and for how many guests at the instant that is looked at. */
typedef struct {
    guint32 node;
    gint64 since_usec; /* it has room for one; G_MININT64 = now */
    guint32 count;
} Part;

/* At this instant so many more have room somewhere, by the ends of guests alone; none: a planned
 * task leaves. */
typedef struct {
    gint64 at_usec;
    guint32 more;
} Gain;

typedef struct {
    BerthCore *core;
    CoreNeed need;
    guint32 guests;
    GArray *parts; /* Part */
    GArray *gains; /* Gain */
    guint64 total; /* sum of all gains */
} Gang;

static int compare_gains(gconstpointer a, gconstpointer b)
{
    gint64 at_a = ((const Gain *)a)->at_usec;
    gint64 at_b = ((const Gain *)b)->at_usec;
    return at_a < at_b ? -1 : at_a > at_b;
}

/* Those that are free last come first: what is free now is left to who can use it now. */
static int compare_parts(gconstpointer a, gconstpointer b)
{
    const Part *part_a = a;
    const Part *part_b = b;
    if (part_a->since_usec != part_b->since_usec)
        return part_a->since_usec > part_b->since_usec ? -1 : 1;
    return part_a->node < part_b->node ? -1 : part_a->node > part_b->node;
}

static void add_gain(Gang *gang, gint64 at_usec, guint32 more)
{
    Gain gain = {MAX(at_usec, core_time_add(gang->core->now_usec, 1)), more};
    g_array_append_val(gang->gains, gain);
    gang->total += more;
}

static void add_part(Gang *gang, CoreNode *node, gint64 earliest_usec)
{
    Part part = {node->handle, earliest_usec, 0};
    const GArray *reservations = core_plan_reservations(gang->core, node);
    g_array_append_val(gang->parts, part);
    guint32 had = 0;
    for (guint i = 0; i < node->steps->len && had < gang->guests; i++) {
        const CoreStep *step = &g_array_index(node->steps, CoreStep, i);
        guint32 has = core_size_count(gang->need.size, step->room, gang->guests);
        if (has > had)
            add_gain(gang, step->start_usec, has - had);
        had = MAX(had, has);
    }
    for (guint i = 0; reservations != NULL && i < reservations->len; i++)
        add_gain(gang, g_array_index(reservations, CoreReservation, i).end_usec, 0);
    for (guint i = 0; node->blocks != NULL && i < node->blocks->len; i++)
        add_gain(gang, g_array_index(node->blocks, CoreBlock, i).end_usec, 0);
}

/* For how many of them the parts have room from AT_USEC on; notes for how many each. */
static guint32 count_at(Gang *gang, gint64 at_usec)
{
    guint32 left = gang->guests;
    for (guint i = 0; i < gang->parts->len; i++) {
        Part *part = &g_array_index(gang->parts, Part, i);
        CoreNode *node = core_nodes_get(&gang->core->nodes, part->node);
        part->count =
            left == 0 ? 0 : core_profile_count(gang->core, node, &gang->need, at_usec, left);
        left -= part->count;
    }
    return gang->guests - left;
}

/* The first instant from FROM_USEC on and before END_USEC at which there is room for all of them
 * between the parts. Where plans of others leave too little, as much again must be gained. */
static gint64 sweep(Gang *gang, gint64 from_usec, gint64 end_usec)
{
    guint64 sum = 0;
    guint64 wanted = gang->guests;
    gboolean plan_ended = FALSE;
    for (guint i = 0; i < gang->gains->len; i++) {
        const Gain *gain = &g_array_index(gang->gains, Gain, i);
        if (gain->at_usec >= end_usec)
            break;
        sum += gain->more;
        plan_ended |= gain->more == 0;
        gboolean is_last_of_instant =
            i + 1 == gang->gains->len ||
            g_array_index(gang->gains, Gain, i + 1).at_usec != gain->at_usec;
        if (!is_last_of_instant || gain->at_usec < from_usec || sum < gang->guests ||
            (sum < wanted && !plan_ended))
            continue;
        guint32 count = count_at(gang, gain->at_usec);
        if (count == gang->guests)
            return gain->at_usec;
        wanted = sum + (gang->guests - count);
        plan_ended = FALSE;
    }
    return G_MAXINT64;
}

/* Takes nodes in, in the order of the instants at which they have room, first until all guests could
 * find it and then twice as many at a time, until the sweep finds it before the next node's. */
static gint64 first_of_gang(Gang *gang, Source *source)
{
    gint64 next_usec = G_MININT64;
    gint64 swept_usec = G_MININT64;
    gint64 found_usec = G_MAXINT64;
    CoreNode *node = source_next(source, &next_usec);
    while (found_usec == G_MAXINT64 && node != NULL) {
        guint wanted = gang->total < gang->guests ? 1 : 2 * gang->parts->len;
        while (node != NULL && (gang->total < gang->guests || gang->parts->len < wanted ||
                                !source_is_sorted(source))) {
            add_part(gang, node, next_usec);
            node = source_next(source, &next_usec);
        }
        g_array_sort(gang->gains, compare_gains);
        g_array_sort(gang->parts, compare_parts);
        gint64 end_usec = node != NULL ? next_usec : G_MAXINT64;
        found_usec = sweep(gang, swept_usec, end_usec);
        swept_usec = end_usec;
    }
    return found_usec;
}

static gint64 place_gang(BerthCore *core, const CoreClass *class, const CoreNeed *need,
                         guint32 *out_nodes)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Part));
    g_autoptr(GArray) gains = g_array_new(FALSE, FALSE, sizeof(Gain));
    Gang gang = {core, *need, class->shape.guests, parts, gains, 0};
    Source source = source_open(core, class);
    gint64 found_usec = first_of_gang(&gang, &source);
    source_close(&source);
    guint32 n = 0;
    for (guint i = 0; found_usec != G_MAXINT64 && i < parts->len; i++)
        for (guint32 k = 0; k < g_array_index(parts, Part, i).count; k++)
            out_nodes[n++] = g_array_index(parts, Part, i).node;
    return found_usec;
}

/* Without a node that large, whoever leaves, all else is in vain. */
static gboolean may_fit_ever(const BerthCore *core, const CoreClass *class)
{
    CoreBarriers none = {NULL, 0};
    return class->shape.n_nodes > 0 ||
           core_nodes_first(&core->nodes, class->shape.size, CORE_LOOK_AT_CAPACITY, none) != NULL;
}

gint64 core_search_first(BerthCore *core, const CoreClass *class, gint64 length_usec,
                         guint32 *out_nodes)
{
    CoreNeed need = need_of(class, length_usec, CORE_HEEDS_ALL);
    if (!may_fit_ever(core, class))
        return G_MAXINT64;
    if (class->shape.guests == 1)
        return first_of_one(core, class, &need, out_nodes);
    return place_gang(core, class, &need, out_nodes);
}
