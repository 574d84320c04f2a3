/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the node table: capacity, what is reserved on each node, and the tree by which the first
 * node with enough room is found. Knows nothing of why a node is up or hidden.
 *
 * Invariants: reserved is the sum over guests; spans[i] summarises spans[2i] and spans[2i+1], and
 * a leaf is what core_node_free() and core_node_is_open() say of its node. A node that is not open
 * has neither capacity nor room in the tree, and counts as infinitely large for the smallest:
 * whatever is behind a barrier, it is not in the way. */
#include "scheduler/core/nodes.h"

#include "scheduler/core/cells.h"

#include <string.h>

#define FIRST_WIDTH      8u
#define CHANGES_PER_NODE 4u
#define CHANGES_MIN      1024u

static const CoreSpan closed_span = {.min_capacity = {G_MAXUINT32, G_MAXUINT64}};
static const CoreSlack no_slack = {.least_load_mib = G_MAXUINT64};

/* --- one node ------------------------------------------------------------------------------- */

CoreSize core_node_capacity(const CoreNode *node)
{
    return (CoreSize){node->capacity.vcpus, node->capacity.memory_mib};
}

gboolean core_node_is_open(const CoreNode *node)
{
    return node->state == BERTH_NODE_UP && !node->is_hidden &&
           node->admission == BERTH_ADMISSION_OPEN && !node->cannot_start && !node->is_closed;
}

gboolean core_node_is_empty(const CoreNode *node)
{
    return node->guests->len == 0 && node->incoming->len == 0 && node->n_strays == 0;
}

guint64 core_nodes_left(const CoreNodes *nodes, CoreSize room)
{
    return ((guint64)room.vcpus << nodes->vcpu_shift) + room.memory_mib;
}

CoreSize core_node_unreserved(const CoreNode *node)
{
    return node->n_strays > 0 ? (CoreSize){0, 0}
                              : core_size_sub(core_node_capacity(node), node->reserved);
}

CoreSize core_node_free(const CoreNode *node)
{
    return core_node_is_open(node) ? core_node_unreserved(node) : (CoreSize){0, 0};
}

static CoreSize size_min(CoreSize a, CoreSize b)
{
    return (CoreSize){MIN(a.vcpus, b.vcpus), MIN(a.memory_mib, b.memory_mib)};
}

static CoreSpan span_of_node(const CoreNode *node)
{
    if (!core_node_is_open(node))
        return closed_span;
    CoreSize capacity = core_node_capacity(node);
    return (CoreSpan){core_node_free(node), capacity, capacity};
}

CoreNeeds core_node_slack_without(const CoreNodes *nodes, const CoreNode *node,
                                  const CoreGuest *guest)
{
    CoreNeeds gone = guest != NULL ? guest->needs : (CoreNeeds){0, 0};
    guint64 gone_extra_mib = guest != NULL ? guest->extra_mib : 0;
    if (!core_node_is_open(node) || node->n_strays > 0)
        return (CoreNeeds){0, 0};
    guint64 cpu_milli = (guint64)node->capacity.vcpus * (1000 - nodes->keep_cpu_permille);
    guint64 memory_mib = node->capacity.memory_mib * (1000 - nodes->keep_memory_permille) / 1000;
    guint64 needed_milli =
        (guint64)(node->needs.cpu_milli - gone.cpu_milli) * node->coincidence >> 16;
    guint64 needed_mib =
        node->needs.memory_mib - gone.memory_mib + node->extra_mib - gone_extra_mib;
    return (CoreNeeds){(guint32)(cpu_milli - MIN(cpu_milli, needed_milli)),
                       memory_mib - MIN(memory_mib, needed_mib)};
}

CoreNeeds core_node_slack(const CoreNodes *nodes, const CoreNode *node)
{
    return core_node_slack_without(nodes, node, NULL);
}

static guint64 evacuation_mib(const CoreNodes *nodes, guint n)
{
    guint64 at_a_time = MAX(nodes->evacuated_at_a_time, 1);
    return (n + at_a_time - 1) / at_a_time * nodes->evacuation_mib;
}

guint64 core_node_evacuation_mib(const CoreNodes *nodes, const CoreNode *node)
{
    return node->slack_used_mib + evacuation_mib(nodes, node->n_in_slack);
}

guint64 core_nodes_grown_mib(const CoreNodes *nodes, guint64 used_mib)
{
    return used_mib * 1000 / MAX(1000 - MIN(nodes->keep_memory_permille, 1000), 1);
}

guint64 core_node_slack_load_mib(const CoreNodes *nodes, const CoreNode *node, guint n_more,
                                 guint64 more_mib)
{
    return core_nodes_grown_mib(nodes, node->slack_used_mib + more_mib) +
           evacuation_mib(nodes, node->n_in_slack + n_more);
}

void core_nodes_slack_changed(CoreNodes *nodes, const CoreNode *node)
{
    guint at = nodes->width + node->handle - 1;
    nodes->slacks[at] =
        (CoreSlack){core_node_slack(nodes, node), core_node_slack_load_mib(nodes, node, 1, 0)};
    for (at /= 2; at > 0; at /= 2) {
        const CoreSlack *left = &nodes->slacks[2 * at];
        const CoreSlack *right = &nodes->slacks[2 * at + 1];
        nodes->slacks[at] = (CoreSlack){{MAX(left->most.cpu_milli, right->most.cpu_milli),
                                         MAX(left->most.memory_mib, right->most.memory_mib)},
                                        MIN(left->least_load_mib, right->least_load_mib)};
    }
}

static void update_spans(CoreNodes *nodes, const CoreNode *node)
{
    core_nodes_slack_changed(nodes, node);
    guint at = nodes->width + node->handle - 1;
    nodes->spans[at] = span_of_node(node);
    for (at /= 2; at > 0; at /= 2) {
        const CoreSpan *left = &nodes->spans[2 * at];
        const CoreSpan *right = &nodes->spans[2 * at + 1];
        nodes->spans[at] = (CoreSpan){core_size_max(left->max_free, right->max_free),
                                      core_size_max(left->max_capacity, right->max_capacity),
                                      size_min(left->min_capacity, right->min_capacity)};
    }
}

/* --- table ---------------------------------------------------------------------------------- */

static void node_free(gpointer data)
{
    CoreNode *node = data;
    g_ptr_array_unref(node->guests);
    g_ptr_array_unref(node->incoming);
    g_array_unref(node->steps);
    g_clear_pointer(&node->blocks, g_array_unref);
    core_cells_free(node);
    g_free(node->name);
    g_free(node);
}

void core_nodes_init(CoreNodes *nodes)
{
    nodes->nodes = g_ptr_array_new_with_free_func(node_free);
    nodes->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    nodes->width = 0;
    nodes->spans = NULL;
    nodes->slacks = NULL;
    nodes->largest = NULL;
    nodes->most = (CoreSize){0, 0};
    nodes->largest_is_old = FALSE;
    nodes->keep_cpu_permille = nodes->keep_memory_permille = 0;
    nodes->changes = g_array_new(FALSE, FALSE, sizeof(guint32));
    nodes->first_change = 1;
    nodes->total_vcpus = nodes->total_mib = 0;
    nodes->vcpu_shift = 0;
    nodes->fresh = g_array_new(FALSE, FALSE, sizeof(guint32));
    nodes->emptied = g_array_new(FALSE, FALSE, sizeof(guint32));
}

void core_nodes_clear(CoreNodes *nodes)
{
    g_clear_pointer(&nodes->by_name, g_hash_table_unref);
    g_clear_pointer(&nodes->nodes, g_ptr_array_unref);
    g_clear_pointer(&nodes->spans, g_free);
    g_clear_pointer(&nodes->slacks, g_free);
    g_clear_pointer(&nodes->changes, g_array_unref);
    g_clear_pointer(&nodes->emptied, g_array_unref);
    g_clear_pointer(&nodes->fresh, g_array_unref);
}

static void grow(CoreNodes *nodes)
{
    nodes->width = nodes->width == 0 ? FIRST_WIDTH : nodes->width * 2;
    nodes->spans = g_renew(CoreSpan, nodes->spans, 2 * nodes->width);
    nodes->slacks = g_renew(CoreSlack, nodes->slacks, 2 * nodes->width);
    for (guint i = 0; i < 2 * nodes->width; i++) {
        nodes->spans[i] = closed_span;
        nodes->slacks[i] = no_slack;
    }
    for (guint i = 0; i < nodes->nodes->len; i++)
        update_spans(nodes, g_ptr_array_index(nodes->nodes, i));
}

CoreNode *core_nodes_add(CoreNodes *nodes, const char *name)
{
    CoreNode *node = g_new0(CoreNode, 1);
    node->handle = nodes->nodes->len + 1;
    node->name = g_strdup(name);
    node->state = BERTH_NODE_DOWN;
    node->guests = g_ptr_array_new();
    node->incoming = g_ptr_array_new();
    node->coincidence = 65536;
    node->steps = g_array_new(FALSE, FALSE, sizeof(CoreStep));
    node->steps_are_old = node->left_is_old = node->part_is_old = TRUE;
    node->timer.kind = CORE_TIMER_NODE;
    g_ptr_array_add(nodes->nodes, node);
    g_hash_table_insert(nodes->by_name, node->name, node);
    if (nodes->nodes->len > nodes->width)
        grow(nodes);
    return node;
}

CoreNode *core_nodes_get(const CoreNodes *nodes, guint32 handle)
{
    if (handle == 0 || handle > nodes->nodes->len)
        return NULL;
    return g_ptr_array_index(nodes->nodes, handle - 1);
}

CoreNode *core_nodes_find_name(const CoreNodes *nodes, const char *name)
{
    return g_hash_table_lookup(nodes->by_name, name);
}

/* --- reserving ------------------------------------------------------------------------------ */

static CoreSize *part_of(CoreNode *node, gboolean is_opportunistic)
{
    return is_opportunistic ? &node->slack : &node->reserved;
}

static void add_needs(CoreNode *node, CoreNeeds needs, gint sign)
{
    node->needs.cpu_milli += (guint32)sign * needs.cpu_milli;
    node->needs.memory_mib += (guint64)(gint64)sign * needs.memory_mib;
}

static void add_used(CoreNode *node, CoreNeeds used, gboolean is_opportunistic, gint sign)
{
    guint64 memory_mib = (guint64)(gint64)sign * used.memory_mib;
    node->used.cpu_milli += (guint32)sign * used.cpu_milli;
    node->used.memory_mib += memory_mib;
    node->slack_used_mib += is_opportunistic ? memory_mib : 0;
    node->n_in_slack += is_opportunistic ? (guint)sign : 0;
}

void core_nodes_note_growth(CoreNode *node, const CoreGuest *guest)
{
    node->grows_until_usec = MAX(node->grows_until_usec, core_growth_until_usec(&guest->growth));
}

void core_nodes_reserve(CoreNodes *nodes, CoreNode *node, CoreGuest *guest)
{
    CoreSize *part = part_of(node, guest->is_opportunistic);
    guest->node = node->handle;
    guest->place = node->guests->len;
    g_ptr_array_add(node->guests, guest);
    if (guest->cells == 0 && !guest->is_opportunistic)
        guest->cells = core_cells_choose(nodes, node, guest->size);
    core_cells_take(node, guest->cells, guest->size);
    if (!guest->is_opportunistic)
        core_nodes_note_growth(node, guest);
    *part = core_size_add(*part, guest->size);
    add_needs(node, guest->needs, 1);
    add_used(node, guest->used, guest->is_opportunistic, 1);
    node->extra_mib += guest->extra_mib;
    core_nodes_changed(nodes, node);
}

void core_nodes_unreserve(CoreNodes *nodes, CoreNode *node, CoreGuest *guest)
{
    CoreSize *part = part_of(node, guest->is_opportunistic);
    g_ptr_array_remove_index_fast(node->guests, guest->place);
    if (guest->place < node->guests->len) {
        CoreGuest *moved = g_ptr_array_index(node->guests, guest->place);
        moved->place = guest->place;
    }
    core_cells_give(node, guest->cells, guest->size);
    guest->cells = 0;
    *part = core_size_sub(*part, guest->size);
    add_needs(node, guest->needs, -1);
    add_used(node, guest->used, guest->is_opportunistic, -1);
    node->extra_mib -= guest->extra_mib;
    if (core_size_fits(node->reserved, core_node_capacity(node)))
        node->oversubscribed = FALSE;
    core_nodes_changed(nodes, node);
    core_nodes_fresh(nodes, node);
    core_nodes_one_left(nodes, node);
}

void core_nodes_hold(CoreNodes *nodes, CoreNode *to, CoreGuest *guest)
{
    CoreSize *part = part_of(to, guest->is_opportunistic_there);
    guest->to = to->handle;
    guest->to_place = to->incoming->len;
    guest->held = guest->needs;
    guest->held.memory_mib += core_size_sub(guest->to_size, guest->size).memory_mib;
    guest->held_used_mib = guest->is_opportunistic_there ? guest->used.memory_mib : 0;
    to->slack_used_mib += guest->held_used_mib;
    to->n_in_slack += guest->is_opportunistic_there;
    guest->held_extra_mib = guest->extra_mib;
    to->extra_mib += guest->held_extra_mib;
    g_ptr_array_add(to->incoming, guest);
    if (!guest->is_opportunistic_there)
        core_nodes_note_growth(to, guest);
    guest->to_cells =
        guest->is_opportunistic_there ? 0 : core_cells_choose(nodes, to, guest->to_size);
    core_cells_take(to, guest->to_cells, guest->to_size);
    *part = core_size_add(*part, guest->to_size);
    add_needs(to, guest->held, 1);
    core_nodes_changed(nodes, to);
}

void core_nodes_unhold(CoreNodes *nodes, CoreNode *to, CoreGuest *guest)
{
    CoreSize *part = part_of(to, guest->is_opportunistic_there);
    g_ptr_array_remove_index_fast(to->incoming, guest->to_place);
    if (guest->to_place < to->incoming->len) {
        CoreGuest *moved = g_ptr_array_index(to->incoming, guest->to_place);
        moved->to_place = guest->to_place;
    }
    core_cells_give(to, guest->to_cells, guest->to_size);
    *part = core_size_sub(*part, guest->to_size);
    add_needs(to, guest->held, -1);
    to->slack_used_mib -= guest->held_used_mib;
    to->n_in_slack -= guest->is_opportunistic_there;
    to->extra_mib -= guest->held_extra_mib;
    core_nodes_changed(nodes, to);
    core_nodes_fresh(nodes, to);
    core_nodes_one_left(nodes, to);
}

static int compare_guests(gconstpointer a, gconstpointer b)
{
    const CoreGuest *guest_a = *(CoreGuest *const *)a;
    const CoreGuest *guest_b = *(CoreGuest *const *)b;
    const BerthCoreTask *task_a = &guest_a->task->record;
    const BerthCoreTask *task_b = &guest_b->task->record;
    if (task_a->job != task_b->job)
        return task_a->job < task_b->job ? -1 : 1;
    if (task_a->task != task_b->task)
        return task_a->task < task_b->task ? -1 : 1;
    return guest_a->index < guest_b->index ? -1 : guest_a->index > guest_b->index;
}

GPtrArray *core_node_guests_sorted(const CoreNode *node)
{
    GPtrArray *guests = g_ptr_array_copy(node->guests, NULL, NULL);
    g_ptr_array_sort(guests, compare_guests);
    return guests;
}

/* --- the largest ---------------------------------------------------------------------------- */

gboolean core_node_is_larger(const CoreNode *a, const CoreNode *b)
{
    if (a->capacity.memory_mib != b->capacity.memory_mib)
        return a->capacity.memory_mib > b->capacity.memory_mib;
    return a->capacity.vcpus > b->capacity.vcpus;
}

static void find_largest(CoreNodes *nodes)
{
    nodes->largest = NULL;
    nodes->most = (CoreSize){0, 0};
    for (guint i = 0; i < nodes->nodes->len; i++) {
        const CoreNode *node = g_ptr_array_index(nodes->nodes, i);
        if (!node->has_joined)
            continue;
        if (nodes->largest == NULL || core_node_is_larger(node, nodes->largest))
            nodes->largest = node;
        nodes->most.vcpus = MAX(nodes->most.vcpus, node->capacity.vcpus);
        nodes->most.memory_mib = MAX(nodes->most.memory_mib, node->capacity.memory_mib);
    }
}

const CoreNode *core_nodes_largest(CoreNodes *nodes, CoreSize *out_most)
{
    if (nodes->largest_is_old)
        find_largest(nodes);
    nodes->largest_is_old = FALSE;
    *out_most = nodes->most;
    return nodes->largest;
}

/* --- the tree ------------------------------------------------------------------------------- */

static void set_capacity(CoreNodes *nodes, CoreNode *node, const BerthResources *capacity)
{
    nodes->largest_is_old = TRUE;
    nodes->total_vcpus += capacity->vcpus;
    nodes->total_vcpus -= node->capacity.vcpus;
    nodes->total_mib += capacity->memory_mib;
    nodes->total_mib -= node->capacity.memory_mib;
    node->capacity = *capacity;
    guint shift = g_bit_storage(nodes->total_mib / MAX(nodes->total_vcpus, 1)) - 1;
    if (shift == nodes->vcpu_shift)
        return;
    /* All that was reckoned with the old one is old. */
    nodes->vcpu_shift = shift;
    nodes->first_change += nodes->changes->len + 1;
    g_array_set_size(nodes->changes, 0);
}

void core_nodes_set_info(CoreNodes *nodes, CoreNode *node, const BerthCoreNodeInfo *info)
{
    set_capacity(nodes, node, &info->capacity);
    core_cells_set(nodes, node, info);
    node->cannot_start = info->cannot_start;
    node->rack = info->rack;
    node->fabric = info->fabric;
}

/* Readers of the log that are further behind look at all nodes, which costs them no more. */
static void log_change(CoreNodes *nodes, guint32 handle)
{
    if (nodes->changes->len > CHANGES_PER_NODE * nodes->nodes->len + CHANGES_MIN) {
        nodes->first_change += nodes->changes->len;
        g_array_set_size(nodes->changes, 0);
    }
    g_array_append_val(nodes->changes, handle);
}

void core_nodes_changed(CoreNodes *nodes, CoreNode *node)
{
    node->steps_are_old = node->left_is_old = node->part_is_old = TRUE;
    log_change(nodes, node->handle);
    update_spans(nodes, node);
}

guint64 core_nodes_next_change(const CoreNodes *nodes)
{
    return nodes->first_change + nodes->changes->len;
}

void core_nodes_one_left(CoreNodes *nodes, const CoreNode *node)
{
    if (node->admission == BERTH_ADMISSION_DRAINING && core_node_is_empty(node))
        g_array_append_val(nodes->emptied, node->handle);
}

void core_nodes_fresh(CoreNodes *nodes, CoreNode *node)
{
    if (node->fresh != 0)
        return;
    g_array_append_val(nodes->fresh, node->handle);
    node->fresh = nodes->fresh->len;
}

gboolean core_barriers_close(CoreBarriers barriers, CoreSize capacity)
{
    for (guint i = 0; i < barriers.n; i++)
        if (core_size_fits(barriers.sizes[i], capacity))
            return TRUE;
    return FALSE;
}

static CoreNode *first_below(const CoreNodes *nodes, guint at, CoreSize need, CoreLookAt look_at,
                             CoreBarriers barriers)
{
    const CoreSpan *span = &nodes->spans[at];
    CoreSize most = look_at == CORE_LOOK_AT_FREE ? span->max_free : span->max_capacity;
    if (!core_size_fits(need, most) || core_barriers_close(barriers, span->min_capacity))
        return NULL;
    if (at >= nodes->width)
        return g_ptr_array_index(nodes->nodes, at - nodes->width);
    CoreNode *left = first_below(nodes, 2 * at, need, look_at, barriers);
    return left != NULL ? left : first_below(nodes, 2 * at + 1, need, look_at, barriers);
}

CoreSize core_nodes_most_free(const CoreNodes *nodes)
{
    return nodes->width == 0 ? (CoreSize){0, 0} : nodes->spans[1].max_free;
}

CoreNode *core_nodes_first(const CoreNodes *nodes, CoreSize need, CoreLookAt look_at,
                           CoreBarriers barriers)
{
    return nodes->width == 0 ? NULL : first_below(nodes, 1, need, look_at, barriers);
}

/* FIRST: the handle of the first leaf below AT, less one. */
static CoreNode *next_below(const CoreNodes *nodes, guint at, guint first, CoreSize need,
                            guint32 after)
{
    guint leaves = nodes->width >> (g_bit_storage(at) - 1);
    if (first + leaves <= after || !core_size_fits(need, nodes->spans[at].max_free))
        return NULL;
    if (at >= nodes->width)
        return g_ptr_array_index(nodes->nodes, at - nodes->width);
    CoreNode *node = next_below(nodes, 2 * at, first, need, after);
    return node != NULL ? node : next_below(nodes, 2 * at + 1, first + leaves / 2, need, after);
}

CoreNode *core_nodes_next(const CoreNodes *nodes, CoreSize need, guint32 after)
{
    return nodes->width == 0 ? NULL : next_below(nodes, 1, 0, need, after);
}
