/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of values in a heap. Invariant: no item comes before the one at half its place, which
 * is counted from 0 and rounded down. */
#include "scheduler/core/key_heap.h"

static gboolean is_before(const CoreKeyed *a, const CoreKeyed *b)
{
    return a->key != b->key ? a->key < b->key : a->id < b->id;
}

/* ITEM belongs at the root or below it; what is at the root now is in the way. */
static void sink(CoreKeyHeap *heap, CoreKeyed item)
{
    CoreKeyed *items = heap->items;
    guint at = 0;
    for (guint child = 1; child < heap->n; child = 2 * at + 1) {
        if (child + 1 < heap->n && is_before(&items[child + 1], &items[child]))
            child++;
        if (!is_before(&items[child], &item))
            break;
        items[at] = items[child];
        at = child;
    }
    items[at] = item;
}

void core_key_heap_clear(CoreKeyHeap *heap)
{
    g_clear_pointer(&heap->items, g_free);
    heap->n = heap->allocated = 0;
}

void core_key_heap_push(CoreKeyHeap *heap, CoreKeyed item)
{
    if (heap->n == heap->allocated) {
        heap->allocated = MAX(4, heap->allocated * 2);
        heap->items = g_renew(CoreKeyed, heap->items, heap->allocated);
    }
    guint at = heap->n++;
    for (; at > 0 && is_before(&item, &heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}

CoreKeyed core_key_heap_pop(CoreKeyHeap *heap)
{
    CoreKeyed first = heap->items[0];
    heap->n--;
    if (heap->n > 0)
        sink(heap, heap->items[heap->n]);
    return first;
}

void core_key_heap_replace_first(CoreKeyHeap *heap, CoreKeyed item)
{
    sink(heap, item);
}
