/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* As many ranges as one request, or one array, may name, or be held in. */
#define BERTH_RANGES_MAX 1000u

/* Sets of task indices, as arrays have them: "0-999999", "1-99:2,200". Kept as ranges, so that a set costs what
 * it takes to write it down, however many indices are in it. Pure. */

/* FIRST, FIRST + STEP and so on up to LAST, which is one of them; STEP is at least 1. */
typedef struct {
    guint32 first;
    guint32 last;
    guint32 step;
} BerthIndexRange;

#define BERTH_INDEX_MAX 999999999u

/* Tasks of one job, be it an array or not, which is task 0 alone. */
typedef struct {
    guint64 job;
    BerthIndexRange tasks;
} BerthTaskRange;

/* Of a record of a task that stands for others too: FIRST, and what follows it up to REST_LAST by REST_STEP, which is 0 of
 * one that stands for itself alone. */
BerthIndexRange berth_index_range_of(guint32 first, guint32 rest_last, guint32 rest_step);
/* It has a step, and does not end before it begins: nothing else below takes one that is not. */
gboolean berth_index_range_is_valid(const BerthIndexRange *range);
/* How many indices RANGE has. */
guint32 berth_index_range_count(const BerthIndexRange *range);
gboolean berth_index_range_contains(const BerthIndexRange *range, guint32 index);
/* What both have, which is a range too; in time that does not depend on their length. FALSE: nothing. */
gboolean berth_index_range_intersect(const BerthIndexRange *a, const BerthIndexRange *b,
                                     BerthIndexRange *out_both);
/* Reads "7", "0-9" or "0-9:3" into *OUT, whose LAST is then the last that there is. INVALID_ARGUMENT. */
gboolean berth_index_range_parse(const char *text, BerthIndexRange *out_range, GError **error);
/* (transfer full) */
char *berth_index_range_format(const BerthIndexRange *range);

typedef struct BerthIndexSet BerthIndexSet;
BerthIndexSet *berth_index_set_new(void);
BerthIndexSet *berth_index_set_copy(const BerthIndexSet *set);
void berth_index_set_free(BerthIndexSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthIndexSet, berth_index_set_free)

/* What is in it already, or is not, does no harm. Where a range and those of the set lie between the same two indices, and
 * have not the same step, it is put in index by index, and those that both have are taken out so. */
void berth_index_set_add(BerthIndexSet *set, BerthIndexRange range);
void berth_index_set_remove(BerthIndexSet *set, BerthIndexRange range);
void berth_index_set_add_one(BerthIndexSet *set, guint32 index);

void berth_index_set_add_all(BerthIndexSet *set, const BerthIndexSet *others);
/* In time that grows with the ranges of both, as that of without() does. */
void berth_index_set_remove_all(BerthIndexSet *set, const BerthIndexSet *others);

gboolean berth_index_set_contains(const BerthIndexSet *set, guint32 index);
/* Some index of RANGE is in it. */
gboolean berth_index_set_meets(const BerthIndexSet *set, const BerthIndexRange *range);
/* Those of RANGE that are in it, in as many ranges as the set has there at most. (transfer full) */
BerthIndexSet *berth_index_set_within(const BerthIndexSet *set, const BerthIndexRange *range);
/* Those of SET that are in OTHERS, in time that grows with the ranges of both. (transfer full) */
BerthIndexSet *berth_index_set_both(const BerthIndexSet *set, const BerthIndexSet *others);
/* Those of SET that are not in OTHERS, in time that grows with the ranges of both, where each of these meets few of the
 * others'. (transfer full) */
BerthIndexSet *berth_index_set_without(const BerthIndexSet *set, const BerthIndexSet *others);
/* The same of SET (transfer full). (transfer full) */
BerthIndexSet *berth_index_set_subtract(BerthIndexSet *set, const BerthIndexSet *others);
guint32 berth_index_set_count(const BerthIndexSet *set);
/* The range with the fewest indices that has all of SET, which is not empty. */
BerthIndexRange berth_index_set_cover(const BerthIndexSet *set);
/* The smallest from FROM on. FALSE: there is none. */
gboolean berth_index_set_next(const BerthIndexSet *set, guint32 from, guint32 *out_index);
/* The largest; the set is not empty. */
guint32 berth_index_set_last(const BerthIndexSet *set);
/* Its ranges, rising: none begins before the one before it has ended. */
guint berth_index_set_n_ranges(const BerthIndexSet *set);
const BerthIndexRange *berth_index_set_range(const BerthIndexSet *set, guint i);

/* "0-9,20-30:2,40": ranges in any order, of COUNT_MAX indices in all at most. INVALID_ARGUMENT: says what is wrong.
 * (transfer full) */
BerthIndexSet *berth_index_set_parse(const char *text, guint32 count_max, GError **error);
/* What parse() reads as the same set; "" of an empty one. (transfer full) */
char *berth_index_set_format(const BerthIndexSet *set);
