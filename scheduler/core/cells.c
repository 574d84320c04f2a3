/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the NUMA cells of nodes: in which of them a backed guest is, and what each has left. A guest
 * that fits one is in one; others span as few as there are that have room for them together.
 *
 * Cells never keep a guest from a node: where its room is scattered over more cells than the guest
 * would need, the guest is spread, because waiting costs more than distant memory. Guests in slack
 * are in no cell: they run wherever there is something left.
 *
 * Invariant: what is used of a cell is the sum over the backed guests of the node, and over those on
 * their way to it, of equal parts of each for the cells that it spans. */
#include "scheduler/core/cells.h"

#include "scheduler/core/nodes.h"

#define SPANS_SHIFT 58u
#define LEFT_SHIFT  4u
#define LEFT_MAX    (((guint64)1 << (SPANS_SHIFT - LEFT_SHIFT)) - 1)

struct CoreCells {
    guint n;
    CoreSize capacity[BERTH_CELLS_MAX]; /* of what the node offers */
    CoreSize used[BERTH_CELLS_MAX];
};

static guint count_of(guint32 cells)
{
    guint count = 0;
    for (; cells != 0; cells &= cells - 1)
        count++;
    return count;
}

/* --- one set of cells ----------------------------------------------------------------------- */

static CoreSize free_of(const CoreCells *cells, guint32 set)
{
    CoreSize sum = {0, 0};
    for (guint i = 0; i < cells->n; i++)
        if (set & (1u << i))
            sum = core_size_add(sum, core_size_sub(cells->capacity[i], cells->used[i]));
    return sum;
}

static gboolean is_whole(const CoreCells *cells, guint i)
{
    return cells->used[i].vcpus == 0 && cells->used[i].memory_mib == 0;
}

static guint whole_in(const CoreCells *cells, guint32 set)
{
    guint count = 0;
    for (guint i = 0; i < cells->n; i++)
        count += (set & (1u << i)) && is_whole(cells, i);
    return count;
}

/* Firmware numbers them socket by socket: what is between the first and the last is the distance. */
static guint spread_of(guint32 set)
{
    return (guint)(g_bit_nth_msf(set, -1) - g_bit_nth_lsf(set, -1));
}

/* --- choosing ------------------------------------------------------------------------------- */

typedef struct {
    CoreSize room;
    guint count, whole;
} Sum;

typedef struct {
    guint32 set; /* 0 = none yet */
    guint count, whole, spread;
    guint64 left;
} Choice;

static gboolean is_better(const Choice *a, const Choice *b)
{
    if (b->set == 0 || a->count != b->count)
        return b->set == 0 || a->count < b->count;
    if (a->whole != b->whole)
        return a->whole < b->whole;
    return a->spread != b->spread ? a->spread < b->spread : a->left < b->left;
}

static void consider(const CoreNodes *nodes, guint32 set, const Sum *sum, CoreSize size,
                     Choice *best)
{
    if ((best->set != 0 && sum->count > best->count) || !core_size_fits(size, sum->room))
        return;
    Choice choice = {set, sum->count, sum->whole, spread_of(set),
                     core_nodes_left(nodes, core_size_sub(sum->room, size))};
    if (is_better(&choice, best))
        *best = choice;
}

/* Of each set, from those without its last cell. */
static void add_up(const CoreCells *cells, Sum sums[1u << BERTH_CELLS_MAX])
{
    sums[0] = (Sum){{0, 0}, 0, 0};
    for (guint i = 0; i < cells->n; i++) {
        CoreSize room = core_size_sub(cells->capacity[i], cells->used[i]);
        for (guint32 set = 0; set < 1u << i; set++)
            sums[set | 1u << i] = (Sum){core_size_add(sums[set].room, room), sums[set].count + 1,
                                        sums[set].whole + is_whole(cells, i)};
    }
}

/* Whole, and of one size: as on a node without guests. */
static gboolean are_all_alike(const CoreCells *cells)
{
    for (guint i = 0; i < cells->n; i++)
        if (!is_whole(cells, i) || cells->capacity[i].vcpus != cells->capacity[0].vcpus ||
            cells->capacity[i].memory_mib != cells->capacity[0].memory_mib)
            return FALSE;
    return TRUE;
}

/* Of such cells the first are as good as any others that are beside each other. SIZE fits in all. */
static guint32 first_of_alike(const CoreCells *cells, CoreSize size)
{
    CoreSize room = cells->capacity[0];
    guint count = 1;
    for (; !core_size_fits(size, room); count++)
        room = core_size_add(room, cells->capacity[0]);
    return (1u << count) - 1;
}

guint32 core_cells_choose(const CoreNodes *nodes, const CoreNode *node, CoreSize size)
{
    const CoreCells *cells = node->cells;
    Sum sums[1u << BERTH_CELLS_MAX];
    Choice best = {0};
    if (cells == NULL)
        return 0;
    guint32 all = (1u << cells->n) - 1;
    if (!core_size_fits(size, free_of(cells, all)))
        return all;
    if (are_all_alike(cells))
        return first_of_alike(cells, size);
    for (guint i = 0; i < cells->n; i++) {
        Sum one = {core_size_sub(cells->capacity[i], cells->used[i]), 1, is_whole(cells, i)};
        consider(nodes, 1u << i, &one, size, &best);
    }
    if (best.set != 0)
        return best.set;
    add_up(cells, sums);
    for (guint32 set = 1; set <= all; set++)
        if (core_size_fits(size, sums[set].room))
            consider(nodes, set, &sums[set], size, &best);
    return best.set;
}

gboolean core_cells_fit(const CoreNode *node, guint32 cells, CoreSize size)
{
    return node->cells != NULL && core_size_fits(size, free_of(node->cells, cells));
}

guint64 core_cells_rank(const CoreNodes *nodes, const CoreNode *node, CoreSize size)
{
    guint64 left = core_nodes_left(nodes, core_node_free(node));
    guint64 rank = MIN(left, LEFT_MAX) << LEFT_SHIFT;
    if (node->cells == NULL)
        return rank;
    guint32 set = core_cells_choose(nodes, node, size);
    return rank | (guint64)(count_of(set) - 1) << SPANS_SHIFT | whole_in(node->cells, set);
}

gboolean core_cells_rank_is_whole(guint64 rank)
{
    return rank >> SPANS_SHIFT == 0;
}

/* --- taking --------------------------------------------------------------------------------- */

/* The part of SIZE that is in the PLACE-th of COUNT cells. */
static CoreSize part_of(CoreSize size, guint place, guint count)
{
    return (CoreSize){size.vcpus / count + (place < size.vcpus % count),
                      size.memory_mib / count + (place < size.memory_mib % count)};
}

static void change(CoreNode *node, guint32 cells, CoreSize size, CoreSize (*by)(CoreSize, CoreSize))
{
    guint count = count_of(cells);
    guint place = 0;
    for (guint i = 0; node->cells != NULL && i < node->cells->n; i++)
        if (cells & (1u << i))
            node->cells->used[i] = by(node->cells->used[i], part_of(size, place++, count));
}

void core_cells_take(CoreNode *node, guint32 cells, CoreSize size)
{
    change(node, cells, size, core_size_add);
}

void core_cells_give(CoreNode *node, guint32 cells, CoreSize size)
{
    change(node, cells, size, core_size_sub);
}

/* --- what a node has ------------------------------------------------------------------------ */

/* PART of SUM, of what is offered; whatever the numbers, it does not overflow. */
static guint64 share(guint64 offered, guint64 part, guint64 sum)
{
    for (; sum > G_MAXUINT32; sum /= 2)
        part /= 2;
    return sum == 0 ? 0 : offered / sum * part + offered % sum * part / sum;
}

/* A node may offer less than it has: of each cell in proportion. NULL = it has none to tell apart. */
static CoreCells *cells_of(const BerthCoreNodeInfo *info)
{
    guint64 vcpus = 0;
    guint64 memory_mib = 0;
    if (info->n_cells < 2 || info->n_cells > BERTH_CELLS_MAX)
        return NULL;
    for (guint32 i = 0; i < info->n_cells; i++) {
        vcpus += info->cells[i].vcpus;
        memory_mib += info->cells[i].memory_mib;
    }
    CoreCells *cells = g_new0(CoreCells, 1);
    cells->n = info->n_cells;
    for (guint i = 0; i < cells->n; i++)
        cells->capacity[i] =
            (CoreSize){(guint32)share(info->capacity.vcpus, info->cells[i].vcpus, vcpus),
                       share(info->capacity.memory_mib, info->cells[i].memory_mib, memory_mib)};
    return cells;
}

static gboolean are_equal(const CoreSize *a, const CoreSize *b, guint n)
{
    for (guint i = 0; i < n; i++)
        if (a[i].vcpus != b[i].vcpus || a[i].memory_mib != b[i].memory_mib)
            return FALSE;
    return TRUE;
}

static gboolean is_same_layout(const CoreCells *a, const CoreCells *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->n == b->n && are_equal(a->capacity, b->capacity, a->n);
}

static void spread_guests(const CoreNodes *nodes, CoreNode *node)
{
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        guest->cells = guest->is_opportunistic ? 0 : core_cells_choose(nodes, node, guest->size);
        core_cells_take(node, guest->cells, guest->size);
    }
    for (guint i = 0; i < node->incoming->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->incoming, i);
        guest->to_cells =
            guest->is_opportunistic_there ? 0 : core_cells_choose(nodes, node, guest->to_size);
        core_cells_take(node, guest->to_cells, guest->to_size);
    }
}

void core_cells_set(const CoreNodes *nodes, CoreNode *node, const BerthCoreNodeInfo *info)
{
    CoreCells *cells = cells_of(info);
    if (is_same_layout(node->cells, cells)) {
        g_free(cells);
        return;
    }
    core_cells_free(node);
    node->cells = cells;
    spread_guests(nodes, node);
}

gboolean core_cells_are_sound(const CoreNode *node)
{
    CoreNode sum = {.cells = NULL};
    g_autofree CoreCells *cells = NULL;
    if (node->cells == NULL)
        return TRUE;
    cells = g_new0(CoreCells, 1);
    cells->n = node->cells->n;
    sum.cells = cells;
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if ((guest->cells == 0) != guest->is_opportunistic)
            return FALSE;
        core_cells_take(&sum, guest->cells, guest->size);
    }
    for (guint i = 0; i < node->incoming->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->incoming, i);
        if ((guest->to_cells == 0) != guest->is_opportunistic_there)
            return FALSE;
        core_cells_take(&sum, guest->to_cells, guest->to_size);
    }
    return are_equal(cells->used, node->cells->used, cells->n);
}

gsize core_cells_bytes(const CoreNode *node)
{
    return node->cells != NULL ? sizeof *node->cells : 0;
}

void core_cells_free(CoreNode *node)
{
    g_clear_pointer(&node->cells, g_free);
}
