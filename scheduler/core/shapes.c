/* SPDX-License-Identifier: Apache-2.0 */
/* Owns an index over the nodes per size of guest: a tournament tree of keys. A key is the rank of
 * a node (cells.h) if the size fits now, else LATER plus the instant at which it will.
 *
 * Sizes are rounded down to few, so that a lasting few dozen of trees answers for all jobs. A tree
 * takes in the changes of nodes when it is used next. */
#include "scheduler/core/shapes.h"

#include "scheduler/core/cells.h"
#include "scheduler/core/key_heap.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/profile.h"

/* Trees of 16 bytes per node: 64 of them answer for most queues, and cost 1 KiB per node. */
#define TREES_MAX 64u
#define LATER     CORE_CELLS_RANK_MAX
#define NEVER     G_MAXUINT64
/* Of the leading bits of a size, so many count. */
#define BITS 3u

typedef struct {
    CoreSize size;
    guint64 *keys; /* root at 1, leaves from WIDTH */
    guint width;
    guint n_nodes;
    guint64 seen; /* changes of nodes up to this one are in it */
    guint64 used; /* the walk that last used it */
} Tree;

struct CoreWalk {
    const CoreNodes *nodes;
    const Tree *tree;
    CoreKeyHeap front; /* places of the tree by their keys, then by the first leaf below */
    GArray *now;       /* CoreWalked */
    guint64 limit;     /* keys from here on do not matter */
    gboolean is_open;
};

struct CoreShapes {
    GPtrArray *trees;
    guint64 walks;
    CoreWalk walk; /* the one under way */
};

/* --- keys ----------------------------------------------------------------------------------- */

static guint64 round_down(guint64 value)
{
    guint bits = g_bit_storage(value);
    if (bits <= BITS)
        return value;
    return value >> (bits - BITS) << (bits - BITS);
}

static guint64 key_of(const BerthCore *core, CoreNode *node, CoreSize size)
{
    gint64 earliest_usec = core_profile_earliest(core, node, size);
    if (earliest_usec == G_MAXINT64)
        return NEVER;
    if (earliest_usec != G_MININT64)
        return LATER + (guint64)MAX(earliest_usec, 0);
    return core_cells_rank(&core->nodes, node, size);
}

/* --- trees ---------------------------------------------------------------------------------- */

static void tree_free(gpointer data)
{
    Tree *tree = data;
    g_free(tree->keys);
    g_free(tree);
}

static void fill(const BerthCore *core, Tree *tree)
{
    const CoreNodes *nodes = &core->nodes;
    tree->width = nodes->width;
    tree->n_nodes = nodes->nodes->len;
    tree->keys = g_renew(guint64, tree->keys, 2 * tree->width);
    for (guint i = 0; i < tree->width; i++)
        tree->keys[tree->width + i] =
            i < tree->n_nodes ? key_of(core, g_ptr_array_index(nodes->nodes, i), tree->size)
                              : NEVER;
    for (guint at = tree->width - 1; at > 0; at--)
        tree->keys[at] = MIN(tree->keys[2 * at], tree->keys[2 * at + 1]);
}

static void refresh(const BerthCore *core, Tree *tree, guint32 handle)
{
    guint at = tree->width + handle - 1;
    guint64 key = key_of(core, core_nodes_get(&core->nodes, handle), tree->size);
    if (tree->keys[at] == key)
        return;
    tree->keys[at] = key;
    for (at /= 2; at > 0; at /= 2) {
        guint64 least = MIN(tree->keys[2 * at], tree->keys[2 * at + 1]);
        if (tree->keys[at] == least)
            return;
        tree->keys[at] = least;
    }
}

static void catch_up(const BerthCore *core, Tree *tree)
{
    const CoreNodes *nodes = &core->nodes;
    guint64 newest = core_nodes_next_change(nodes);
    /* So many changes are of the same nodes, again and again. */
    gboolean is_far_behind =
        tree->seen < nodes->first_change || newest - tree->seen > nodes->nodes->len;
    if (is_far_behind || tree->width != nodes->width || tree->n_nodes != nodes->nodes->len) {
        fill(core, tree);
    } else {
        for (guint64 i = tree->seen; i < newest; i++)
            refresh(core, tree,
                    g_array_index(nodes->changes, guint32, (guint)(i - nodes->first_change)));
    }
    tree->seen = newest;
}

static Tree *take_tree(CoreShapes *shapes, CoreSize size)
{
    Tree *oldest = NULL;
    for (guint i = 0; i < shapes->trees->len; i++) {
        Tree *tree = g_ptr_array_index(shapes->trees, i);
        if (tree->size.vcpus == size.vcpus && tree->size.memory_mib == size.memory_mib)
            return tree;
        if (oldest == NULL || tree->used < oldest->used)
            oldest = tree;
    }
    if (shapes->trees->len < TREES_MAX) {
        oldest = g_new0(Tree, 1);
        g_ptr_array_add(shapes->trees, oldest);
    }
    oldest->size = size;
    oldest->width = 0;
    return oldest;
}

CoreShapes *core_shapes_new(void)
{
    CoreShapes *shapes = g_new0(CoreShapes, 1);
    shapes->trees = g_ptr_array_new_with_free_func(tree_free);
    shapes->walk.now = g_array_new(FALSE, FALSE, sizeof(CoreWalked));
    return shapes;
}

void core_shapes_free(CoreShapes *shapes)
{
    g_ptr_array_unref(shapes->trees);
    core_key_heap_clear(&shapes->walk.front);
    g_array_unref(shapes->walk.now);
    g_free(shapes);
}

gsize core_shapes_bytes(const CoreShapes *shapes)
{
    gsize bytes = sizeof *shapes;
    for (guint i = 0; i < shapes->trees->len; i++)
        bytes += sizeof(Tree) +
                 2 * sizeof(guint64) * ((const Tree *)g_ptr_array_index(shapes->trees, i))->width;
    return bytes;
}

/* --- walks ---------------------------------------------------------------------------------- */

CoreWalk *core_shapes_walk(BerthCore *core, CoreSize size)
{
    CoreSize rounded = {(guint32)round_down(size.vcpus), round_down(size.memory_mib)};
    CoreWalk *walk = &core->shapes->walk;
    g_assert(!walk->is_open);
    walk->is_open = TRUE;
    walk->nodes = &core->nodes;
    walk->limit = NEVER;
    walk->front.n = 0;
    g_array_set_size(walk->now, 0);
    if (core->nodes.width == 0)
        return walk;
    Tree *tree = take_tree(core->shapes, rounded);
    tree->used = ++core->shapes->walks;
    catch_up(core, tree);
    walk->tree = tree;
    core_key_heap_push(&walk->front, (CoreKeyed){tree->keys[1], 0, 1});
    return walk;
}

void core_walk_end(CoreWalk *walk)
{
    walk->is_open = FALSE;
}

void core_walk_limit(CoreWalk *walk, gint64 until_usec)
{
    walk->limit = until_usec == G_MININT64 ? LATER : LATER + (guint64)MAX(until_usec, 0);
}

/* Of an entry of the front. */
static CoreKeyed child_of(const Tree *tree, const CoreKeyed *front, gboolean is_right)
{
    guint at = 2 * front->value + (is_right ? 1 : 0);
    guint leaves = tree->width >> (g_bit_storage(at) - 1);
    return (CoreKeyed){tree->keys[at], front->id + (is_right ? leaves : 0), at};
}

/* Down to the first leaf with the least key; what is passed by on the way is left for later. */
CoreNode *core_walk_next(CoreWalk *walk, gint64 *out_earliest_usec)
{
    const Tree *tree = walk->tree;
    if (walk->front.n == 0)
        return NULL;
    CoreKeyed front = core_key_heap_pop(&walk->front);
    if (front.key >= walk->limit)
        return NULL;
    while (front.value < tree->width) {
        gboolean is_right = tree->keys[2 * front.value] != front.key;
        CoreKeyed other = child_of(tree, &front, !is_right);
        front = child_of(tree, &front, is_right);
        if (other.key < walk->limit)
            core_key_heap_push(&walk->front, other);
    }
    *out_earliest_usec = front.key < LATER ? G_MININT64 : (gint64)(front.key - LATER);
    return g_ptr_array_index(walk->nodes->nodes, front.value - tree->width);
}

static void take_now(CoreWalk *walk, CoreKeyed front)
{
    const Tree *tree = walk->tree;
    if (front.key >= LATER) {
        core_key_heap_push(&walk->front, front);
    } else if (front.value >= tree->width) {
        CoreNode *node = g_ptr_array_index(walk->nodes->nodes, front.value - tree->width);
        CoreWalked walked = {node, front.key};
        g_array_append_val(walk->now, walked);
    } else {
        take_now(walk, child_of(tree, &front, FALSE));
        take_now(walk, child_of(tree, &front, TRUE));
    }
}

const GArray *core_walk_take_now(CoreWalk *walk)
{
    if (walk->front.n > 0)
        take_now(walk, core_key_heap_pop(&walk->front));
    return walk->now;
}
