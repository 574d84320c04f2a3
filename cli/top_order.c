/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of nodes and guests where all of them are here: the same as the daemon's. */
#include "cli/top_order.h"

#include <string.h>

/* Above what any node tells of its stalls. */
#define PRESSED 1000000u

typedef struct {
    Berth__TopRequest__Order by;
    guint64 now_usec; /* of the snapshot */
} Order;

static guint64 pressure_of_node(const Berth__Node *node, guint64 now_usec)
{
    const Berth__NodeUsage *usage = node->usage;
    guint64 first = node->pressed_until_usec > now_usec ? PRESSED : 0;
    return first + (usage != NULL
                        ? MAX(MAX(usage->psi_cpu_some, usage->psi_memory_some), usage->psi_io_some)
                        : 0);
}

static guint32 worst_of_guest(const Berth__TopGuest *guest)
{
    const Berth__Usage *usage = guest->task->usage;
    guint32 starved = guest->starved_permille * 10;
    if (usage == NULL)
        return starved;
    guint32 stalled = MAX(MAX(usage->psi_cpu_some, usage->psi_memory_some), usage->psi_io_some);
    return MAX(MAX(stalled, usage->throttled_permille * 10), starved);
}

/* One that is away uses nothing. */
static guint64 key_of_node(const Berth__Node *node, const Order *order)
{
    if (node->state != BERTH__NODE_STATE__NODE_UP)
        return 0;
    switch (order->by) {
    case BERTH__TOP_REQUEST__ORDER__BY_CPU:
        return node->used_milli;
    case BERTH__TOP_REQUEST__ORDER__BY_MEMORY:
        return node->used_mib;
    case BERTH__TOP_REQUEST__ORDER__BY_PRESSURE:
        return pressure_of_node(node, order->now_usec);
    default:
        return 0;
    }
}

static guint64 used_mib(const Berth__Usage *usage)
{
    return usage != NULL
               ? usage->memory_total_mib - MIN(usage->memory_available_mib, usage->memory_total_mib)
               : 0;
}

static guint64 key_of_guest(const Berth__TopGuest *guest, Berth__TopRequest__Order order)
{
    switch (order) {
    case BERTH__TOP_REQUEST__ORDER__BY_CPU:
        return guest->task->used_milli;
    case BERTH__TOP_REQUEST__ORDER__BY_MEMORY:
        return used_mib(guest->task->usage);
    case BERTH__TOP_REQUEST__ORDER__BY_PRESSURE:
        return worst_of_guest(guest);
    case BERTH__TOP_REQUEST__ORDER__BY_TIME_LEFT:
        return guest->limit_usec != 0 ? G_MAXUINT64 - guest->limit_usec : 0;
    case BERTH__TOP_REQUEST__ORDER__BY_MOVE:
        return guest->task->moved != NULL ? guest->task->moved->time_usec : 0;
    default:
        return 0;
    }
}

/* Larger ones come first. */
static gint compare_keys(guint64 a, guint64 b)
{
    return a > b ? -1 : a < b;
}

static gint compare_nodes(gconstpointer a, gconstpointer b, gpointer order)
{
    return compare_keys(key_of_node(*(Berth__Node *const *)a, order),
                        key_of_node(*(Berth__Node *const *)b, order));
}

static gint compare_guests(gconstpointer a, gconstpointer b, gpointer order)
{
    Berth__TopRequest__Order by = ((const Order *)order)->by;
    return compare_keys(key_of_guest(*(Berth__TopGuest *const *)a, by),
                        key_of_guest(*(Berth__TopGuest *const *)b, by));
}

/* The sort is a stable one. */
void berth_top_put_in_order(Berth__TopReply *snapshot, Berth__TopRequest__Order by)
{
    Order order = {by, snapshot->now_usec};
    g_qsort_with_data(snapshot->nodes, (gint)snapshot->n_nodes, sizeof *snapshot->nodes,
                      compare_nodes, &order);
    g_qsort_with_data(snapshot->guests, (gint)snapshot->n_guests, sizeof *snapshot->guests,
                      compare_guests, &order);
}

/* --- pages ------------------------------------------------------------------------------------ */

static gboolean is_behind(const Berth__TopGuest *a, const Berth__TopGuest *b)
{
    if (a->task->job != b->task->job)
        return a->task->job > b->task->job;
    if (a->task->index != b->task->index)
        return a->task->index > b->task->index;
    return a->guest > b->guest;
}

static void add_nodes(Berth__TopReply *all, Berth__TopReply *page)
{
    gsize n_left = 0;
    all->nodes = g_realloc_n(all->nodes, all->n_nodes + page->n_nodes, sizeof *all->nodes);
    for (gsize i = 0; i < page->n_nodes; i++) {
        Berth__Node *node = page->nodes[i];
        if (all->n_nodes > 0 &&
            strcmp(node->info->name, all->nodes[all->n_nodes - 1]->info->name) <= 0)
            page->nodes[n_left++] = node;
        else
            all->nodes[all->n_nodes++] = node;
    }
    page->n_nodes = n_left;
}

static void add_guests(Berth__TopReply *all, Berth__TopReply *page)
{
    gsize n_left = 0;
    all->guests = g_realloc_n(all->guests, all->n_guests + page->n_guests, sizeof *all->guests);
    for (gsize i = 0; i < page->n_guests; i++) {
        Berth__TopGuest *guest = page->guests[i];
        if (all->n_guests > 0 && !is_behind(guest, all->guests[all->n_guests - 1]))
            page->guests[n_left++] = guest;
        else
            all->guests[all->n_guests++] = guest;
    }
    page->n_guests = n_left;
}

void berth_top_add_page(Berth__TopReply *all, Berth__TopReply *page)
{
    add_nodes(all, page);
    add_guests(all, page);
}
