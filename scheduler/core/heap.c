/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of links in a heap. Invariants: links[p]->place == p; no link ranks before the
 * one at half its place. */
#include "scheduler/core/heap.h"

void core_heap_init(CoreHeap *heap, CoreHeapCompare compare)
{
    *heap = (CoreHeap){.compare = compare};
}

void core_heap_clear(CoreHeap *heap)
{
    g_clear_pointer(&heap->links, g_free);
    heap->n = heap->allocated = 0;
}

static void put(CoreHeap *heap, guint place, CoreHeapLink *link)
{
    heap->links[place] = link;
    link->place = place;
}

static void sift_up(CoreHeap *heap, CoreHeapLink *link)
{
    guint place = link->place;
    for (; place > 1 && heap->compare(link, heap->links[place / 2]) < 0; place /= 2)
        put(heap, place, heap->links[place / 2]);
    put(heap, place, link);
}

static void sift_down(CoreHeap *heap, CoreHeapLink *link)
{
    guint place = link->place;
    for (guint child; (child = 2 * place) <= heap->n; place = child) {
        if (child < heap->n && heap->compare(heap->links[child + 1], heap->links[child]) < 0)
            child++;
        if (heap->compare(heap->links[child], link) >= 0)
            break;
        put(heap, place, heap->links[child]);
    }
    put(heap, place, link);
}

void core_heap_push(CoreHeap *heap, CoreHeapLink *link)
{
    g_assert(link->place == 0);
    if (heap->n + 1 >= heap->allocated) {
        heap->allocated = MAX(4, heap->allocated * 2);
        heap->links = g_renew(CoreHeapLink *, heap->links, heap->allocated);
    }
    heap->n++;
    put(heap, heap->n, link);
    sift_up(heap, link);
}

void core_heap_remove(CoreHeap *heap, CoreHeapLink *link)
{
    g_assert(link->place != 0 && heap->links[link->place] == link);
    guint place = link->place;
    CoreHeapLink *last = heap->links[heap->n];
    heap->n--;
    link->place = 0;
    if (last == link)
        return;
    put(heap, place, last);
    core_heap_moved(heap, last);
}

void core_heap_moved(CoreHeap *heap, CoreHeapLink *link)
{
    sift_up(heap, link);
    sift_down(heap, link);
}

CoreHeapLink *core_heap_first(const CoreHeap *heap)
{
    return heap->n > 0 ? heap->links[1] : NULL;
}

/* Of those at PLACE and below. */
static guint count_before(const CoreHeap *heap, guint place, const CoreHeapLink *link, guint most)
{
    guint n = 1;
    if (most == 0 || place > heap->n || heap->compare(heap->links[place], link) >= 0)
        return 0; /* nor does any below it come before */
    n += count_before(heap, 2 * place, link, most - n);
    return n + count_before(heap, 2 * place + 1, link, most - n);
}

guint core_heap_count_before(const CoreHeap *heap, const CoreHeapLink *link, guint most)
{
    return count_before(heap, 1, link, most);
}

void core_heap_walk_begin(CoreHeapWalk *walk, const CoreHeap *heap)
{
    guint root = 1;
    walk->heap = heap;
    walk->front = g_array_new(FALSE, FALSE, sizeof(guint));
    if (heap->n > 0)
        g_array_append_val(walk->front, root);
}

CoreHeapLink *core_heap_walk_next(CoreHeapWalk *walk)
{
    const CoreHeap *heap = walk->heap;
    if (walk->front->len == 0)
        return NULL;
    guint best = 0;
    for (guint i = 1; i < walk->front->len; i++)
        if (heap->compare(heap->links[g_array_index(walk->front, guint, i)],
                          heap->links[g_array_index(walk->front, guint, best)]) < 0)
            best = i;
    guint place = g_array_index(walk->front, guint, best);
    g_array_remove_index_fast(walk->front, best);
    for (guint child = 2 * place; child <= 2 * place + 1; child++)
        if (child <= heap->n)
            g_array_append_val(walk->front, child);
    return heap->links[place];
}

void core_heap_walk_end(CoreHeapWalk *walk)
{
    g_array_unref(walk->front);
}
