/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the ranges of indices of messages. */
#include "common/ranges.h"

#include "common/error.h"

#include <stdlib.h>

void berth_ranges_set(Berth__IndexRange ***ranges, size_t *n_ranges, const BerthIndexSet *set)
{
    for (size_t i = 0; i < *n_ranges; i++)
        berth__index_range__free_unpacked((*ranges)[i], NULL);
    free(*ranges);
    *ranges = NULL;
    *n_ranges = set ? berth_index_set_n_ranges(set) : 0;
    if (*n_ranges == 0)
        return;
    /* The message is freed by protobuf-c, with free(): what g_new() gives is of malloc(). */
    *ranges = g_new(Berth__IndexRange *, *n_ranges);
    for (guint i = 0; i < *n_ranges; i++) {
        const BerthIndexRange *range = berth_index_set_range(set, i);
        (*ranges)[i] = g_new(Berth__IndexRange, 1);
        berth__index_range__init((*ranges)[i]);
        (*ranges)[i]->first = range->first;
        (*ranges)[i]->last = range->last;
        (*ranges)[i]->step = range->step;
    }
}

BerthRanges berth_ranges_of(const BerthIndexSet *set)
{
    BerthRanges ranges = {NULL, 0};
    berth_ranges_set(&ranges.ranges, &ranges.n, set);
    return ranges;
}

void berth_ranges_clear(BerthRanges *ranges)
{
    berth_ranges_set(&ranges->ranges, &ranges->n, NULL);
}

BerthIndexRange berth_range_of(const Berth__IndexRange *range)
{
    return (BerthIndexRange){range->first, range->last, MAX(range->step, 1)};
}

static gboolean refuse(const char *what, const char *why, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s %s", what, why);
    return FALSE;
}

/* Ranges that do not rise are put in index by index: so many indices are looked at for that, in all. */
#define UNITED_MAX 10000000u

static gboolean add(BerthIndexSet *set, const Berth__IndexRange *range, guint64 *count,
                    guint64 *united, guint32 count_max, const char *what, GError **error)
{
    guint32 behind = 0;
    BerthIndexRange one = berth_range_of(range);
    if (one.last < one.first)
        return refuse(what, "have a range that ends before it begins", error);
    if (one.last > BERTH_INDEX_MAX)
        return refuse(what, "have an index beyond 999999999", error);
    *count += berth_index_range_count(&one);
    if (*count > count_max) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s are more than %" G_GUINT32_FORMAT, what, count_max);
        return FALSE;
    }
    if (berth_index_set_next(set, one.first, &behind))
        *united += (guint64)berth_index_set_count(set) + berth_index_range_count(&one);
    if (*united > UNITED_MAX)
        return refuse(what, "have large ranges that overlap: name them rising", error);
    berth_index_set_add(set, one);
    /* Those that interleave come to more than were named. */
    if (berth_index_set_n_ranges(set) > BERTH_RANGES_MAX)
        return refuse(what, "are more than 1000 ranges", error);
    return TRUE;
}

BerthIndexSet *berth_ranges_take(Berth__IndexRange *const *ranges, size_t n_ranges,
                                 guint32 count_max, const char *what, GError **error)
{
    g_autoptr(BerthIndexSet) set = berth_index_set_new();
    guint64 count = 0;
    guint64 united = 0;
    if (n_ranges > BERTH_RANGES_MAX) {
        refuse(what, "are more than 1000 ranges", error);
        return NULL;
    }
    for (size_t i = 0; i < n_ranges; i++)
        if (!add(set, ranges[i], &count, &united, count_max, what, error))
            return NULL;
    return g_steal_pointer(&set);
}

gboolean berth_ranges_take_tasks(Berth__IndexRange *const *ranges, size_t n_ranges,
                                 BerthIndexSet **out_tasks, GError **error)
{
    BerthIndexSet *tasks = NULL;
    if (n_ranges > 0 &&
        !(tasks = berth_ranges_take(ranges, n_ranges, G_MAXUINT32, "the tasks", error)))
        return FALSE;
    *out_tasks = tasks;
    return TRUE;
}
