/* SPDX-License-Identifier: Apache-2.0 */
/* FIT, of gangs: on as few nodes as will do, and among as many on those nearest to each other: of one
 * rack, else of one fabric. What the guests of a gang tell each other stays on a node, or within a
 * switch.
 *
 * Only asked once it is sure that the gang starts, so that one that waits costs nothing here; and
 * looks at a bounded number of nodes, so that a start costs O((guests + CANDIDATES_MIN) log nodes). */
#include "scheduler/core/near.h"

#include "scheduler/core/cells.h"
#include "scheduler/core/nodes.h"

/* Nodes that are looked at for each share of the gang, beyond those that it needs at least. */
#define CANDIDATES_MIN 64u

typedef enum {
    WITHIN_RACK,
    WITHIN_FABRIC,
    ANYWHERE,
    N_DISTANCES,
} Distance;

typedef struct {
    const CoreNode *node;
    guint32 count;               /* guests of the gang that it has room for */
    guint64 rank;                /* cells.h: least for the best fit */
    guint64 totals[N_DISTANCES]; /* of COUNT over all that are as near to it */
} Candidate;

typedef struct {
    BerthCore *core;
    const CoreClass *class;
    const CoreNeed *need;
    guint32 avoid;
    GArray *candidates; /* Candidate */
} Gathering;

/* A set of nodes for all guests. */
typedef struct {
    guint32 n_nodes;
    guint64 rank; /* sum over them */
    guint32 *of_guests;
} Choice;

/* --- candidates ----------------------------------------------------------------------------- */

static void add_candidate(Gathering *gathering, CoreNode *node)
{
    BerthCore *core = gathering->core;
    guint32 guests = gathering->class->shape.guests;
    Candidate candidate = {.node = node};
    if (node->handle == gathering->avoid)
        return;
    candidate.count = core_profile_count(core, node, gathering->need, core->now_usec, guests);
    candidate.rank = core_cells_rank(&core->nodes, node, gathering->need->size);
    if (candidate.count > 0)
        g_array_append_val(gathering->candidates, candidate);
}

/* Nodes that have room for a share of the gang. */
static void add_sharers(Gathering *gathering, guint32 share)
{
    const CoreNodes *nodes = &gathering->core->nodes;
    CoreSize size = gathering->need->size;
    guint64 vcpus = (guint64)size.vcpus * share;
    CoreSize all = {(guint32)MIN(vcpus, G_MAXUINT32), size.memory_mib * share};
    guint32 left = gathering->class->shape.guests / share + CANDIDATES_MIN;
    for (CoreNode *node = core_nodes_next(nodes, all, 0); node != NULL && left > 0; left--) {
        add_candidate(gathering, node);
        node = core_nodes_next(nodes, all, node->handle);
    }
}

static int compare_handles(gconstpointer a, gconstpointer b)
{
    guint32 handle_a = ((const Candidate *)a)->node->handle;
    guint32 handle_b = ((const Candidate *)b)->node->handle;
    return handle_a < handle_b ? -1 : handle_a > handle_b;
}

static void drop_doubles(GArray *candidates)
{
    guint n = 0;
    g_array_sort(candidates, compare_handles);
    for (guint i = 0; i < candidates->len; i++) {
        const Candidate *candidate = &g_array_index(candidates, Candidate, i);
        if (n == 0 || g_array_index(candidates, Candidate, n - 1).node != candidate->node)
            g_array_index(candidates, Candidate, n++) = *candidate;
    }
    g_array_set_size(candidates, n);
}

static void gather(Gathering *gathering, const guint32 *nodes)
{
    const CoreShape *shape = &gathering->class->shape;
    CoreNodes *table = &gathering->core->nodes;
    for (guint32 i = 0; i < shape->guests; i++)
        if (i == 0 || nodes[i] != nodes[i - 1])
            add_candidate(gathering, core_nodes_get(table, nodes[i]));
    for (guint32 i = 0; i < shape->n_nodes; i++)
        add_candidate(gathering, core_nodes_get(table, shape->nodes[i]));
    for (guint32 share = shape->guests; shape->n_nodes == 0 && share > 1; share = (share + 1) / 2)
        add_sharers(gathering, share);
    if (shape->n_nodes == 0)
        add_sharers(gathering, 1);
    drop_doubles(gathering->candidates);
}

/* --- neighbourhoods ------------------------------------------------------------------------- */

/* Of what it is at that distance from its like; 0 = nobody said. */
static guint32 place_of(const Candidate *candidate, Distance distance)
{
    switch (distance) {
    case WITHIN_RACK:
        return candidate->node->rack;
    case WITHIN_FABRIC:
        return candidate->node->fabric;
    default:
        return 1;
    }
}

static int compare_u64(guint64 a, guint64 b)
{
    return a < b ? -1 : a > b;
}

/* Neighbourhoods together; in each those that take most first, and those of large parts of it. */
static int compare_candidates(gconstpointer first, gconstpointer second, gpointer user_data)
{
    Distance distance = *(const Distance *)user_data;
    const Candidate *a = first;
    const Candidate *b = second;
    int order = compare_u64(place_of(a, distance), place_of(b, distance));
    if (order == 0)
        order = compare_u64(b->count, a->count);
    for (int nearer = (int)distance - 1; order == 0 && nearer >= 0; nearer--) {
        order = compare_u64(b->totals[nearer], a->totals[nearer]);
        if (order == 0)
            order = compare_u64(place_of(a, (Distance)nearer), place_of(b, (Distance)nearer));
    }
    if (order == 0)
        order = compare_u64(a->rank, b->rank);
    return order != 0 ? order : compare_handles(a, b);
}

/* The end of the neighbourhood that begins at BEGIN; notes in all of it how much it takes. */
static guint end_of(GArray *candidates, guint begin, Distance distance)
{
    const Candidate *first = &g_array_index(candidates, Candidate, begin);
    guint32 place = place_of(first, distance);
    guint64 total = 0;
    guint end = begin;
    for (; end < candidates->len; end++) {
        const Candidate *candidate = &g_array_index(candidates, Candidate, end);
        if (place_of(candidate, distance) != place)
            break;
        total += candidate->count;
    }
    for (guint i = begin; i < end; i++)
        g_array_index(candidates, Candidate, i).totals[distance] = place != 0 ? total : 0;
    return end;
}

/* --- choosing ------------------------------------------------------------------------------- */

static gboolean is_nearer(const Candidate *a, const Candidate *b, const Candidate *to)
{
    for (Distance distance = WITHIN_RACK; to != NULL && distance < ANYWHERE; distance++) {
        guint32 place = place_of(to, distance);
        gboolean is_a = place != 0 && place_of(a, distance) == place;
        gboolean is_b = place != 0 && place_of(b, distance) == place;
        if (is_a != is_b)
            return is_a;
    }
    return a->rank < b->rank;
}

/* From BEGIN on there are some that take all LEFT guests: of them the one nearest to LAST, else the
 * best fit. */
static const Candidate *last_of(const GArray *candidates, guint begin, guint end, guint32 left,
                                const Candidate *last)
{
    const Candidate *best = &g_array_index(candidates, Candidate, begin);
    for (guint i = begin + 1; i < end; i++) {
        const Candidate *candidate = &g_array_index(candidates, Candidate, i);
        if (candidate->count < left)
            break;
        if (is_nearer(candidate, best, last))
            best = candidate;
    }
    return best;
}

/* The fewest nodes of a neighbourhood that take all GUESTS. FALSE: they do not. */
static gboolean choose(const GArray *candidates, guint begin, guint end, guint32 guests,
                       Choice *choice)
{
    const Candidate *last = NULL;
    guint32 left = guests;
    choice->n_nodes = 0;
    choice->rank = 0;
    for (guint i = begin; i < end && left > 0; i++) {
        const Candidate *candidate = &g_array_index(candidates, Candidate, i);
        if (candidate->count >= left)
            candidate = last_of(candidates, i, end, left, last);
        for (guint32 k = MIN(candidate->count, left); k > 0; k--)
            choice->of_guests[guests - left--] = candidate->node->handle;
        choice->n_nodes++;
        choice->rank += candidate->rank >> 8; /* the sum of many does not overflow */
        last = candidate;
    }
    return left == 0;
}

static gboolean is_better(const Choice *a, const Choice *b, gboolean is_as_near)
{
    if (a->n_nodes != b->n_nodes)
        return a->n_nodes < b->n_nodes;
    return is_as_near && a->rank < b->rank;
}

static void choose_within(const Gathering *gathering, Distance distance, Choice *trial,
                          Choice *best)
{
    GArray *candidates = gathering->candidates;
    gboolean any = FALSE;
    g_array_sort_with_data(candidates, compare_candidates, &distance);
    for (guint begin = 0; begin < candidates->len;) {
        guint end = end_of(candidates, begin, distance);
        gboolean is_told = place_of(&g_array_index(candidates, Candidate, begin), distance) != 0;
        if (is_told && choose(candidates, begin, end, gathering->class->shape.guests, trial) &&
            is_better(trial, best, any)) {
            Choice worse = *best;
            *best = *trial;
            *trial = worse;
            any = TRUE;
        }
        begin = end;
    }
}

void core_near_gather(BerthCore *core, const CoreClass *class, const CoreNeed *need, guint32 avoid,
                      guint32 *nodes)
{
    guint32 guests = class->shape.guests;
    g_autoptr(GArray) candidates = g_array_new(FALSE, FALSE, sizeof(Candidate));
    Gathering gathering = {core, class, need, avoid, candidates};
    g_autofree guint32 *first = g_new(guint32, guests);
    g_autofree guint32 *second = g_new(guint32, guests);
    Choice best = {G_MAXUINT32, 0, first};
    Choice trial = {0, 0, second};
    gather(&gathering, nodes);
    for (Distance distance = WITHIN_RACK; distance < N_DISTANCES; distance++)
        choose_within(&gathering, distance, &trial, &best);
    for (guint32 i = 0; i < guests; i++)
        nodes[i] = best.of_guests[i];
}
