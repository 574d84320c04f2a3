/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
#include "proto/berth.pb-c.h"

/* Between sets of indices and the schema's ranges. */

/* Frees the ranges of a message, and puts those of SET in their place; NULL = none. */
void berth_ranges_set(Berth__IndexRange ***ranges, size_t *n_ranges, const BerthIndexSet *set);
/* Likewise beside a message, which borrows them. */
typedef struct {
    Berth__IndexRange **ranges;
    size_t n;
} BerthRanges;
BerthRanges berth_ranges_of(const BerthIndexSet *set);
void berth_ranges_clear(BerthRanges *ranges);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthRanges, berth_ranges_clear)

/* That of a message, as it came: it may end before it begins. */
BerthIndexRange berth_range_of(const Berth__IndexRange *range);
/* INVALID_ARGUMENT: they are too many, one ends before it begins, an index is too large, or they are more than COUNT_MAX indices.
 * WHAT names them in messages. (transfer full) */
BerthIndexSet *berth_ranges_take(Berth__IndexRange *const *ranges, size_t n_ranges,
                                 guint32 count_max, const char *what, GError **error);
/* Of a request that may name tasks of an array; *OUT_TASKS NULL = it names none. (transfer full) */
gboolean berth_ranges_take_tasks(Berth__IndexRange *const *ranges, size_t n_ranges,
                                 BerthIndexSet **out_tasks, GError **error);
