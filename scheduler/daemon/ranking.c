/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of what is looked at from its first on, and mostly no further than a screen is long.
 *
 * Invariant: once it is asked for, the first N_HEAP of ITEMS are a heap, whose first comes before all others in
 * it; behind it are those that come before all of the heap, the very first of them last. */
#include "config.h"

#include "scheduler/daemon/ranking.h"

#include <string.h>

struct BerthRanking {
    GArray *items; /* BerthRanked */
    guint n_heap;
    gboolean is_heap;
};

BerthRanking *berth_ranking_new(void)
{
    BerthRanking *ranking = g_new0(BerthRanking, 1);
    ranking->items = g_array_new(FALSE, FALSE, sizeof(BerthRanked));
    return ranking;
}

void berth_ranking_free(BerthRanking *ranking)
{
    g_array_unref(ranking->items);
    g_free(ranking);
}

void berth_ranking_add(BerthRanking *ranking, const BerthRanked *ranked)
{
    g_assert(!ranking->is_heap);
    g_array_append_vals(ranking->items, ranked, 1);
}

guint berth_ranking_size(const BerthRanking *ranking)
{
    return ranking->items->len;
}

static gboolean is_before(const BerthRanked *a, const BerthRanked *b)
{
    if (a->key != b->key)
        return a->key > b->key;
    if (a->guest.job == 0)
        return strcmp(a->name, b->name) < 0;
    if (a->guest.job != b->guest.job)
        return a->guest.job < b->guest.job;
    if (a->guest.task != b->guest.task)
        return a->guest.task < b->guest.task;
    return a->guest.guest < b->guest.guest;
}

static void sift_down(BerthRanked *items, guint n, guint at)
{
    BerthRanked moved = items[at];
    for (guint child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(&items[child + 1], &items[child]))
            child++;
        if (is_before(&moved, &items[child]))
            break;
        items[at] = items[child];
    }
    items[at] = moved;
}

static void make_heap(BerthRanking *ranking)
{
    BerthRanked *items = (BerthRanked *)(void *)ranking->items->data;
    ranking->is_heap = TRUE;
    ranking->n_heap = ranking->items->len;
    for (guint at = ranking->n_heap / 2; at > 0; at--)
        sift_down(items, ranking->n_heap, at - 1);
}

/* The first of the heap gets behind it. */
static void take_first(BerthRanking *ranking)
{
    BerthRanked *items = (BerthRanked *)(void *)ranking->items->data;
    BerthRanked first = items[0];
    guint last = --ranking->n_heap;
    items[0] = items[last];
    items[last] = first;
    if (last > 0)
        sift_down(items, last, 0);
}

const BerthRanked *berth_ranking_at(BerthRanking *ranking, guint at)
{
    guint n = ranking->items->len;
    if (at >= n)
        return NULL;
    if (!ranking->is_heap)
        make_heap(ranking);
    while (n - ranking->n_heap <= at)
        take_first(ranking);
    return &g_array_index(ranking->items, BerthRanked, n - 1 - at);
}
