/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the count of starts under way, and whose turn is next. Knows no action.
 *
 * Invariant: a node is in `turn` if and only if it has starts that wait and room for one more. */
#include "config.h"

#include "scheduler/daemon/start_window.h"

typedef struct {
    BerthStartWindowFunc func;
    gpointer user_data;
} Entry;

typedef struct {
    guint32 node;
    guint under_way;
    gboolean in_turn;
    GQueue waiting; /* Entry */
} Queue;

struct BerthStartWindow {
    GHashTable *queues; /* node -> Queue, of those with starts */
    GQueue turn;        /* Queue */
    guint in_memory;
    gboolean is_granting;
};

static void queue_free(gpointer data)
{
    Queue *queue = data;
    g_queue_clear_full(&queue->waiting, g_free);
    g_free(queue);
}

BerthStartWindow *berth_start_window_new(void)
{
    BerthStartWindow *window = g_new0(BerthStartWindow, 1);
    window->queues = g_hash_table_new_full(NULL, NULL, NULL, queue_free);
    g_queue_init(&window->turn);
    return window;
}

void berth_start_window_free(BerthStartWindow *window)
{
    g_hash_table_unref(window->queues);
    g_queue_clear(&window->turn);
    g_free(window);
}

static Queue *queue_of(BerthStartWindow *window, guint32 node)
{
    Queue *queue = g_hash_table_lookup(window->queues, GUINT_TO_POINTER(node));
    if (!queue) {
        queue = g_new0(Queue, 1);
        queue->node = node;
        g_queue_init(&queue->waiting);
        g_hash_table_insert(window->queues, GUINT_TO_POINTER(node), queue);
    }
    return queue;
}

/* Brings QUEUE into the line or to its end; it may be gone afterwards. */
static void settle(BerthStartWindow *window, Queue *queue)
{
    if (!g_queue_is_empty(&queue->waiting) && queue->under_way < BERTH_START_WINDOW_NODE) {
        if (!queue->in_turn) {
            queue->in_turn = TRUE;
            g_queue_push_tail(&window->turn, queue);
        }
    } else if (g_queue_is_empty(&queue->waiting) && queue->under_way == 0) {
        g_hash_table_remove(window->queues, GUINT_TO_POINTER(queue->node));
    }
}

/* What a function does may make room, or give it back: one loop sees to all of it. */
static void grant(BerthStartWindow *window)
{
    if (window->is_granting)
        return;
    window->is_granting = TRUE;
    while (window->in_memory < BERTH_START_WINDOW_MEMORY && !g_queue_is_empty(&window->turn)) {
        Queue *queue = g_queue_pop_head(&window->turn);
        g_autofree Entry *entry = g_queue_pop_head(&queue->waiting);
        queue->in_turn = FALSE;
        queue->under_way++;
        window->in_memory++;
        settle(window, queue);
        entry->func(entry->user_data);
    }
    window->is_granting = FALSE;
}

void berth_start_window_enter(BerthStartWindow *window, guint32 node, BerthStartWindowFunc func,
                              gpointer user_data)
{
    Queue *queue = queue_of(window, node);
    Entry *entry = g_new(Entry, 1);
    *entry = (Entry){func, user_data};
    g_queue_push_tail(&queue->waiting, entry);
    settle(window, queue);
    grant(window);
}

void berth_start_window_sent(BerthStartWindow *window)
{
    window->in_memory--;
    grant(window);
}

void berth_start_window_leave(BerthStartWindow *window, guint32 node, gboolean was_sent)
{
    Queue *queue = queue_of(window, node);
    queue->under_way--;
    if (!was_sent)
        window->in_memory--;
    settle(window, queue);
    grant(window);
}
