/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* A binary heap of small values by their key, the least first. What is in it is copied and cannot be
 * found again, as heap.h's things can; in return it holds no pointer, calls nobody to compare, and is
 * emptied at once. */
typedef struct {
    guint64 key;
    guint32 id;    /* among equal keys the least first */
    guint32 value; /* does not count for the order */
} CoreKeyed;

typedef struct {
    CoreKeyed *items; /* NULL at first; from place 0 */
    guint n, allocated;
} CoreKeyHeap;

/* Back to what it was at first. */
void core_key_heap_clear(CoreKeyHeap *heap);
void core_key_heap_push(CoreKeyHeap *heap, CoreKeyed item);
/* Not of an empty one, as the next two. */
CoreKeyed core_key_heap_pop(CoreKeyHeap *heap);
/* Pops the first and pushes ITEM, for the price of one of them. */
void core_key_heap_replace_first(CoreKeyHeap *heap, CoreKeyed item);

static inline CoreKeyed core_key_heap_first(const CoreKeyHeap *heap)
{
    return heap->items[0];
}
