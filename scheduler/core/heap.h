/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* A binary heap of things that carry their place in it, so that any can be found, moved and taken
 * out in O(log n). The order must be total: equal things would come out as their history has it. */
typedef struct {
    guint place; /* from 1; 0 = in no heap */
} CoreHeapLink;

/* Below 0: A comes out before B. */
typedef int (*CoreHeapCompare)(const CoreHeapLink *a, const CoreHeapLink *b);

typedef struct {
    CoreHeapLink **links; /* from place 1 */
    guint n, allocated;
    CoreHeapCompare compare;
} CoreHeap;

void core_heap_init(CoreHeap *heap, CoreHeapCompare compare);
void core_heap_clear(CoreHeap *heap);
/* LINK is in no heap before the first and in this one before the others. */
void core_heap_push(CoreHeap *heap, CoreHeapLink *link);
void core_heap_remove(CoreHeap *heap, CoreHeapLink *link);
/* LINK's rank has changed. */
void core_heap_moved(CoreHeap *heap, CoreHeapLink *link);
/* NULL if empty. */
CoreHeapLink *core_heap_first(const CoreHeap *heap);
/* So many come out before LINK, but MOST at most. Looks at those, and at what is right below them. */
guint core_heap_count_before(const CoreHeap *heap, const CoreHeapLink *link, guint most);

static inline gboolean core_heap_has(const CoreHeapLink *link)
{
    return link->place != 0;
}

#define CORE_CONTAINER_OF(pointer, type, member)                                                   \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Goes through a heap in its order and leaves it as it is; it must not change meanwhile. */
typedef struct {
    const CoreHeap *heap;
    GArray *front; /* guint: places whose elders were all given */
} CoreHeapWalk;
void core_heap_walk_begin(CoreHeapWalk *walk, const CoreHeap *heap);
/* NULL = that was all. */
CoreHeapLink *core_heap_walk_next(CoreHeapWalk *walk);
void core_heap_walk_end(CoreHeapWalk *walk);
