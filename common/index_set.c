/* SPDX-License-Identifier: Apache-2.0 */
/* Owns sets of indices.
 *
 * Invariant: the ranges of a set rise, and none begins before the one before it has ended, so that each is found by
 * halving; neighbours that could be one range are one. */
#include "common/index_set.h"

#include "common/error.h"
#include "common/units.h"

#include <string.h>

/* So many ranges are taken out of a set one by one: each moves those behind it, and the whole set is not built anew. */
#define REMOVE_BY_ONE_MAX 16u

struct BerthIndexSet {
    GArray *ranges; /* BerthIndexRange */
    guint32 count;
};

/* --- a range ---------------------------------------------------------------------------------- */

BerthIndexRange berth_index_range_of(guint32 first, guint32 rest_last, guint32 rest_step)
{
    return rest_step > 0 ? (BerthIndexRange){first, rest_last, rest_step}
                         : (BerthIndexRange){first, first, 1};
}

gboolean berth_index_range_is_valid(const BerthIndexRange *range)
{
    return range->step > 0 && range->last >= range->first;
}

guint32 berth_index_range_count(const BerthIndexRange *range)
{
    return (range->last - range->first) / range->step + 1;
}

gboolean berth_index_range_contains(const BerthIndexRange *range, guint32 index)
{
    return index >= range->first && index <= range->last &&
           (index - range->first) % range->step == 0;
}

static BerthIndexRange only(guint32 index)
{
    return (BerthIndexRange){index, index, 1};
}

/* With LAST the last that there is, and a STEP of 1 where it says nothing. */
static BerthIndexRange tidy(BerthIndexRange range)
{
    range.last -= (range.last - range.first) % range.step;
    if (range.first == range.last)
        range.step = 1;
    return range;
}

/* The inverse of A modulo M, by Euclid's extended algorithm (Knuth, TAOCP 4.5.2); they have no common divisor. */
static gint64 invert(gint64 a, gint64 m)
{
    gint64 rest = m, next_rest = a % m;
    gint64 factor = 0, next_factor = 1;
    while (next_rest != 0) {
        gint64 quotient = rest / next_rest;
        gint64 rest_after = rest - quotient * next_rest;
        gint64 factor_after = factor - quotient * next_factor;
        rest = next_rest;
        next_rest = rest_after;
        factor = next_factor;
        next_factor = factor_after;
    }
    return factor < 0 ? factor + m : factor;
}

static gint64 common_divisor(gint64 a, gint64 b)
{
    while (b != 0) {
        gint64 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The Chinese remainder theorem: i = A->first (mod A->step) and i = B->first (mod B->step). No product is larger than the
 * square of the largest index. */
gboolean berth_index_range_intersect(const BerthIndexRange *a, const BerthIndexRange *b,
                                     BerthIndexRange *out_both)
{
    gint64 low = MAX(a->first, b->first);
    gint64 high = MIN(a->last, b->last);
    gint64 divisor = common_divisor(a->step, b->step);
    gint64 apart = (gint64)b->first - a->first;
    if (low > high || apart % divisor != 0)
        return FALSE;
    gint64 turns = b->step / divisor; /* of A's step, until both are met again */
    gint64 turn = 0;
    if (turns > 1) {
        gint64 wanted = (apart / divisor % turns + turns) % turns;
        turn = wanted * invert(a->step / divisor, turns) % turns;
    }
    gint64 step = a->step * turns;
    gint64 first = a->first + a->step * turn;
    if (first < low)
        first += (low - first + step - 1) / step * step;
    if (first > high)
        return FALSE;
    gint64 last = high - (high - first) % step;
    *out_both = (BerthIndexRange){(guint32)first, (guint32)last, last > first ? (guint32)step : 1};
    return TRUE;
}

static gboolean refuse(const char *text, const char *why, GError **error)
{
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)MIN(strlen(text), 80));
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%s\" names no indices of an array: %s; write 0-9, 1-99:2 or 3,7,10-20", valid,
                why);
    return FALSE;
}

/* Of the LENGTH bytes at TEXT. */
static gboolean read_number(const char *text, gsize length, guint32 *out_number)
{
    g_autofree char *digits = g_strndup(text, length);
    guint64 number = 0;
    if (!berth_parse_uint64(digits, 0, BERTH_INDEX_MAX, &number, NULL))
        return FALSE;
    *out_number = (guint32)number;
    return TRUE;
}

gboolean berth_index_range_parse(const char *text, BerthIndexRange *out_range, GError **error)
{
    static const char numbers[] = "an index is a number from 0 to 999999999";
    BerthIndexRange range = {.step = 1};
    gsize length = strcspn(text, "-:");
    if (!read_number(text, length, &range.first))
        return refuse(text, numbers, error);
    range.last = range.first;
    const char *rest = text + length;
    if (*rest == ':')
        return refuse(text, "a step belongs to a range", error);
    if (*rest == '-') {
        length = strcspn(++rest, ":");
        if (!read_number(rest, length, &range.last))
            return refuse(text, numbers, error);
        rest += length;
        if (*rest == ':' &&
            (!read_number(rest + 1, strlen(rest + 1), &range.step) || range.step == 0))
            return refuse(text, "a step is a number from 1 on", error);
    }
    if (range.last < range.first)
        return refuse(text, "a range ends before it begins", error);
    *out_range = tidy(range);
    return TRUE;
}

static void append_range(GString *text, const BerthIndexRange *range)
{
    if (text->len > 0)
        g_string_append_c(text, ',');
    g_string_append_printf(text, "%u", range->first);
    if (range->last == range->first)
        return;
    if (range->last - range->first == range->step && range->step > 1) {
        g_string_append_printf(text, ",%u", range->last);
        return;
    }
    g_string_append_printf(text, "-%u", range->last);
    if (range->step > 1)
        g_string_append_printf(text, ":%u", range->step);
}

char *berth_index_range_format(const BerthIndexRange *range)
{
    GString *text = g_string_new(NULL);
    append_range(text, range);
    return g_string_free(text, FALSE);
}

/* --- life ------------------------------------------------------------------------------------- */

BerthIndexSet *berth_index_set_new(void)
{
    BerthIndexSet *set = g_new0(BerthIndexSet, 1);
    set->ranges = g_array_new(FALSE, FALSE, sizeof(BerthIndexRange));
    return set;
}

BerthIndexSet *berth_index_set_copy(const BerthIndexSet *set)
{
    BerthIndexSet *copy = g_new0(BerthIndexSet, 1);
    copy->ranges = g_array_copy(set->ranges);
    copy->count = set->count;
    return copy;
}

void berth_index_set_free(BerthIndexSet *set)
{
    g_array_unref(set->ranges);
    g_free(set);
}

/* --- looking ---------------------------------------------------------------------------------- */

static BerthIndexRange *get(const BerthIndexSet *set, guint i)
{
    return &g_array_index(set->ranges, BerthIndexRange, i);
}

/* The first of its ranges that ends at INDEX or later, or their number. */
static guint place_of(const BerthIndexSet *set, guint32 index)
{
    guint low = 0;
    guint high = set->ranges->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (get(set, middle)->last < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

gboolean berth_index_set_contains(const BerthIndexSet *set, guint32 index)
{
    guint i = place_of(set, index);
    return i < set->ranges->len && berth_index_range_contains(get(set, i), index);
}

gboolean berth_index_set_meets(const BerthIndexSet *set, const BerthIndexRange *range)
{
    BerthIndexRange both;
    for (guint i = place_of(set, range->first);
         i < set->ranges->len && get(set, i)->first <= range->last; i++)
        if (berth_index_range_intersect(get(set, i), range, &both))
            return TRUE;
    return FALSE;
}

guint32 berth_index_set_count(const BerthIndexSet *set)
{
    return set->count;
}

BerthIndexRange berth_index_set_cover(const BerthIndexSet *set)
{
    guint32 first = get(set, 0)->first;
    gint64 step = 0;
    for (guint i = 0; i < set->ranges->len; i++) {
        const BerthIndexRange *range = get(set, i);
        step = common_divisor(step, range->first - first);
        if (range->last > range->first)
            step = common_divisor(step, range->step);
    }
    return (BerthIndexRange){first, berth_index_set_last(set), step > 0 ? (guint32)step : 1};
}

gboolean berth_index_set_next(const BerthIndexSet *set, guint32 from, guint32 *out_index)
{
    guint i = place_of(set, from);
    if (i >= set->ranges->len)
        return FALSE;
    const BerthIndexRange *range = get(set, i);
    guint32 behind = from > range->first ? (from - range->first) % range->step : 0;
    *out_index = MAX(from, range->first) + (behind > 0 ? range->step - behind : 0);
    return TRUE;
}

guint32 berth_index_set_last(const BerthIndexSet *set)
{
    return get(set, set->ranges->len - 1)->last;
}

guint berth_index_set_n_ranges(const BerthIndexSet *set)
{
    return set->ranges->len;
}

const BerthIndexRange *berth_index_set_range(const BerthIndexSet *set, guint i)
{
    return get(set, i);
}

/* --- changing --------------------------------------------------------------------------------- */

/* A and B, which comes after it, as one range, if they are. */
static gboolean join(BerthIndexRange *a, const BerthIndexRange *b)
{
    guint32 gap = b->first - a->last;
    gboolean a_is_one = a->first == a->last;
    gboolean b_is_one = b->first == b->last;
    /* Two that are alone are a range where they are neighbours. */
    if ((!a_is_one && a->step != gap) || (!b_is_one && b->step != gap) ||
        (a_is_one && b_is_one && gap != 1))
        return FALSE;
    a->last = b->last;
    a->step = gap;
    return TRUE;
}

/* The ranges I and I + 1 may be one. */
static void join_at(BerthIndexSet *set, guint i)
{
    if (i + 1 < set->ranges->len && join(get(set, i), get(set, i + 1)))
        g_array_remove_index(set->ranges, i + 1);
}

/* Those of RANGES, for indices that rise. */
static void append_one(GArray *ranges, guint32 index)
{
    BerthIndexRange last = only(index);
    if (ranges->len > 0) {
        BerthIndexRange *before = &g_array_index(ranges, BerthIndexRange, ranges->len - 1);
        if (join(before, &last))
            return;
        /* The third at the same distance makes a range of what were two. */
        if (ranges->len > 1 && before->first == before->last) {
            BerthIndexRange *two = before - 1;
            if (two->first == two->last && before->first - two->first == index - before->first) {
                *two = (BerthIndexRange){two->first, index, index - before->first};
                g_array_set_size(ranges, ranges->len - 1);
                return;
            }
        }
    }
    g_array_append_val(ranges, last);
}

/* Three alone at one distance are a range. The ranges from I on that may begin such are N. */
static void join_thirds(BerthIndexSet *set, guint i, guint n)
{
    for (guint k = i; k < i + n && k + 2 < set->ranges->len; k++) {
        BerthIndexRange *a = get(set, k), *b = get(set, k + 1), *c = get(set, k + 2);
        if (a->first != a->last || b->first != b->last || c->first != c->last ||
            b->first - a->first != c->first - b->first)
            continue;
        *a = (BerthIndexRange){a->first, c->last, b->first - a->first};
        g_array_remove_range(set->ranges, k + 1, 2);
        join_at(set, k);
    }
}

/* Puts NEW in the place of the N ranges from I on. */
static void replace(BerthIndexSet *set, guint i, guint n, const GArray *new)
{
    for (guint k = 0; k < n; k++)
        set->count -= berth_index_range_count(get(set, i + k));
    if (n > 0)
        g_array_remove_range(set->ranges, i, n);
    g_array_insert_vals(set->ranges, i, new->data, new->len);
    for (guint k = 0; k < new->len; k++)
        set->count += berth_index_range_count(get(set, i + k));
    if (new->len > 0)
        join_at(set, i + new->len - 1);
    if (i > 0)
        join_at(set, i - 1);
    guint before = MIN(i, 2);
    join_thirds(set, i - before, before + new->len);
}

/* Those of RANGE, which are behind all of RANGES, from FROM on and before END. */
static void append_part(GArray *ranges, const BerthIndexRange *range, guint64 from, guint64 end)
{
    guint64 skipped =
        from > range->first ? (from - range->first + range->step - 1) / range->step : 0;
    guint64 first = range->first + skipped * range->step;
    guint64 last = MIN(end, (guint64)range->last + 1);
    if (first >= last)
        return;
    BerthIndexRange part =
        tidy((BerthIndexRange){(guint32)first, (guint32)(last - 1), range->step});
    if (part.first == part.last)
        append_one(ranges, part.first);
    else if (ranges->len == 0 ||
             !join(&g_array_index(ranges, BerthIndexRange, ranges->len - 1), &part))
        g_array_append_val(ranges, part);
}

/* The union of RANGE with those of the set that it meets: N from I on. What lies between the same two indices of both is
 * gone through one by one. */
static GArray *unite(const BerthIndexSet *set, guint i, guint n, const BerthIndexRange *range)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(BerthIndexRange));
    const BerthIndexRange *first = get(set, i), *last = get(set, i + n - 1);
    guint64 from = MAX(first->first, range->first);
    guint64 end = (guint64)MIN(last->last, range->last) + 1;
    append_part(all, first, 0, from);
    append_part(all, range, 0, from);
    guint64 own =
        range->first + (from - range->first + range->step - 1) / range->step * range->step;
    for (guint k = i; k < i + n; k++) {
        const BerthIndexRange *old = get(set, k);
        guint64 behind = from > old->first ? (from - old->first + old->step - 1) / old->step : 0;
        for (guint64 index = old->first + behind * old->step; index <= old->last && index < end;
             index += old->step) {
            for (; own < index && own < end; own += range->step)
                append_one(all, (guint32)own);
            own += own == index ? range->step : 0;
            append_one(all, (guint32)index);
        }
    }
    for (; own < end; own += range->step)
        append_one(all, (guint32)own);
    append_part(all, last, end, G_MAXUINT32);
    append_part(all, range, end, G_MAXUINT32);
    return all;
}

void berth_index_set_add(BerthIndexSet *set, BerthIndexRange range)
{
    range = tidy(range);
    guint i = place_of(set, range.first);
    guint n = 0;
    while (i + n < set->ranges->len && get(set, i + n)->first <= range.last)
        n++;
    g_autoptr(GArray) new = NULL;
    gboolean swallows_all =
        range.step == 1 &&
        (n == 0 || (get(set, i)->first >= range.first && get(set, i + n - 1)->last <= range.last));
    if (n == 0 || swallows_all) {
        new = g_array_new(FALSE, FALSE, sizeof range);
        g_array_append_val(new, range);
    } else {
        new = unite(set, i, n, &range);
    }
    replace(set, i, n, new);
}

/* What is left of OLD without RANGE: what lies between two indices that both have is a range, or one. */
static void append_rest(GArray *rest, const BerthIndexRange *old, const BerthIndexRange *range)
{
    guint64 from = old->first;
    BerthIndexRange both;
    gboolean meet = berth_index_range_intersect(old, range, &both);
    if (meet && both.step == old->step) {
        append_part(rest, old, from, both.first);
        from = (guint64)both.last + 1;
    } else if (meet) {
        for (guint64 index = both.first; index <= both.last; index += both.step) {
            append_part(rest, old, from, index);
            from = index + 1;
        }
    }
    append_part(rest, old, from, G_MAXUINT32);
}

void berth_index_set_remove(BerthIndexSet *set, BerthIndexRange range)
{
    range = tidy(range);
    guint i = place_of(set, range.first);
    guint n = 0;
    g_autoptr(GArray) rest = g_array_new(FALSE, FALSE, sizeof(BerthIndexRange));
    for (; i + n < set->ranges->len && get(set, i + n)->first <= range.last; n++)
        append_rest(rest, get(set, i + n), &range);
    if (n > 0)
        replace(set, i, n, rest);
}

/* RANGE, which is behind all of SET. */
static void append(BerthIndexSet *set, const BerthIndexRange *range)
{
    guint n = set->ranges->len;
    g_array_append_val(set->ranges, *range);
    set->count += berth_index_range_count(range);
    if (n > 0)
        join_at(set, n - 1);
    n = set->ranges->len;
    if (n > 2)
        join_thirds(set, n - 3, 1);
}

/* Adds those of RANGE, which is behind all of OUT, that are not in OTHERS. */
static void add_without(BerthIndexSet *out, const BerthIndexRange *range,
                        const BerthIndexSet *others)
{
    guint i = place_of(others, range->first);
    if (i == others->ranges->len || get(others, i)->first > range->last) {
        append(out, range);
        return;
    }
    g_autoptr(BerthIndexSet) left = berth_index_set_new();
    append(left, range);
    for (; i < others->ranges->len && get(others, i)->first <= range->last; i++)
        berth_index_set_remove(left, *get(others, i));
    for (guint k = 0; k < left->ranges->len; k++)
        append(out, get(left, k));
}

BerthIndexSet *berth_index_set_without(const BerthIndexSet *set, const BerthIndexSet *others)
{
    BerthIndexSet *without = berth_index_set_new();
    for (guint i = 0; i < set->ranges->len; i++)
        add_without(without, get(set, i), others);
    return without;
}

BerthIndexSet *berth_index_set_subtract(BerthIndexSet *set, const BerthIndexSet *others)
{
    BerthIndexSet *rest = berth_index_set_without(set, others);
    berth_index_set_free(set);
    return rest;
}

void berth_index_set_remove_all(BerthIndexSet *set, const BerthIndexSet *others)
{
    if (others->ranges->len <= REMOVE_BY_ONE_MAX) {
        for (guint i = 0; i < others->ranges->len; i++)
            berth_index_set_remove(set, *get(others, i));
        return;
    }
    BerthIndexSet *rest = berth_index_set_without(set, others);
    BerthIndexSet old = *set;
    *set = *rest;
    *rest = old;
    berth_index_set_free(rest);
}

/* Adds those of RANGE, which is behind all of OUT, that are in SET. */
static void add_within(BerthIndexSet *out, const BerthIndexSet *set, const BerthIndexRange *range)
{
    BerthIndexRange both;
    for (guint i = place_of(set, range->first);
         i < set->ranges->len && get(set, i)->first <= range->last; i++)
        if (berth_index_range_intersect(get(set, i), range, &both))
            append(out, &both);
}

BerthIndexSet *berth_index_set_within(const BerthIndexSet *set, const BerthIndexRange *range)
{
    BerthIndexSet *within = berth_index_set_new();
    add_within(within, set, range);
    return within;
}

BerthIndexSet *berth_index_set_both(const BerthIndexSet *set, const BerthIndexSet *others)
{
    BerthIndexSet *both = berth_index_set_new();
    for (guint i = 0; i < others->ranges->len; i++)
        add_within(both, set, get(others, i));
    return both;
}

void berth_index_set_add_all(BerthIndexSet *set, const BerthIndexSet *others)
{
    for (guint i = 0; i < others->ranges->len; i++)
        berth_index_set_add(set, *get(others, i));
}

void berth_index_set_add_one(BerthIndexSet *set, guint32 index)
{
    if (!berth_index_set_contains(set, index))
        berth_index_set_add(set, only(index));
}

/* --- text ------------------------------------------------------------------------------------- */

BerthIndexSet *berth_index_set_parse(const char *text, guint32 count_max, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    g_autoptr(BerthIndexSet) set = berth_index_set_new();
    guint64 count = 0;
    if (!parts[0])
        refuse(text, "it is empty", error);
    for (guint i = 0; parts[i]; i++) {
        BerthIndexRange range;
        if (!berth_index_range_parse(parts[i], &range, error))
            return NULL;
        count += berth_index_range_count(&range);
        if (count > count_max) {
            g_autofree char *why = g_strdup_printf("they are more than %u", count_max);
            refuse(text, why, error);
            return NULL;
        }
        berth_index_set_add(set, range);
    }
    return parts[0] ? g_steal_pointer(&set) : NULL;
}

char *berth_index_set_format(const BerthIndexSet *set)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < set->ranges->len; i++)
        append_range(text, get(set, i));
    return g_string_free(text, FALSE);
}
