/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is known of many classes together of how little they ask for: the least that any of them does,
 * of vCPUs, memory and time at once. Each by itself would say that there is room where the vCPUs are enough for
 * some of them and the memory for others, but both for none. So all are kept of which none asks for less of
 * anything than another one, or as much (the minima; Kung, Luccio and Preparata 1975). Of many classes they
 * are few, mostly: with a kind that asks for the least of everything, that one alone. Of more than
 * CORE_LEASTS_MAX those are made one that differ least, by the least of each that either asks for: then it may
 * be that no class asks for so little, but none asks for less.
 *
 * Invariants: they rise in vCPUs, among equals in time, then in memory; what they are follows from the parts that
 * they are joined of alone. */
#include "scheduler/core/least.h"

#include <string.h>

/* One of those that are being joined. */
typedef struct {
    CoreLeast least;
    guint apart; /* from the next one */
} Corner;

typedef struct {
    Corner at[3 * CORE_LEASTS_MAX];
    guint n;
} Corners;

/* --- those of one ---------------------------------------------------------------------------- */

static guint n_of(const CoreLeasts *leasts)
{
    return leasts->n_singles + leasts->n_gangs;
}

static const CoreLeast *first_of(const CoreLeasts *leasts)
{
    return n_of(leasts) > 1 ? leasts->more : &leasts->one;
}

CoreLeasts core_leasts_of_one(const CoreLeast *least, gboolean is_gang)
{
    return (CoreLeasts){.n_singles = !is_gang, .n_gangs = is_gang != FALSE, .one = *least};
}

const CoreLeast *core_leasts_singles(const CoreLeasts *leasts, guint *out_n)
{
    *out_n = leasts->n_singles;
    return first_of(leasts);
}

const CoreLeast *core_leasts_gangs(const CoreLeasts *leasts, guint *out_n)
{
    *out_n = leasts->n_gangs;
    return first_of(leasts) + leasts->n_singles;
}

/* --- fewer ----------------------------------------------------------------------------------- */

/* 16 times its logarithm to base 2, about. */
static guint log_of(guint64 value)
{
    guint bits = g_bit_storage(value);
    return 16 * bits + (guint)((bits > 4 ? value >> (bits - 5) : value << (5 - bits)) & 15);
}

static guint apart_by(guint64 a, guint64 b)
{
    guint log_a = log_of(a);
    guint log_b = log_of(b);
    return MAX(log_a, log_b) - MIN(log_a, log_b);
}

/* How much less than they do their common least asks for. */
static guint apart(const CoreLeast *a, const CoreLeast *b)
{
    return apart_by(a->size.vcpus, b->size.vcpus) +
           apart_by(a->size.memory_mib, b->size.memory_mib) +
           apart_by((guint64)a->length_usec, (guint64)b->length_usec);
}

static gboolean asks_no_less(const CoreLeast *a, const CoreLeast *b)
{
    return core_size_fits(b->size, a->size) && a->length_usec >= b->length_usec;
}

static CoreLeast least_of(const CoreLeast *a, const CoreLeast *b)
{
    return (CoreLeast){
        {MIN(a->size.vcpus, b->size.vcpus), MIN(a->size.memory_mib, b->size.memory_mib)},
        MIN(a->length_usec, b->length_usec)};
}

/* That at place I and the next one become BOTH, who has no use for others that ask for no less. Of those before it
 * these are the last, with as many vCPUs and more time: it is behind what is left of them. */
static void put_for_two(Corners *corners, guint at)
{
    const CoreLeast both = least_of(&corners->at[at].least, &corners->at[at + 1].least);
    guint n = 0;
    guint last = 0;
    for (guint i = 0; i < corners->n; i++) {
        Corner *corner = &corners->at[n];
        if (i != at && asks_no_less(&corners->at[i].least, &both))
            continue;
        *corner = corners->at[i];
        if (i == at)
            corner->least = both;
        if (n > 0 && (i == at || last == at || last + 1 < i))
            corner[-1].apart = apart(&corner[-1].least, &corner->least);
        last = i;
        n++;
    }
    corners->n = n;
}

static void make_fewer(Corners *corners)
{
    for (guint i = 0; i + 1 < corners->n; i++)
        corners->at[i].apart = apart(&corners->at[i].least, &corners->at[i + 1].least);
    while (corners->n > CORE_LEASTS_MAX) {
        guint closest = 0;
        for (guint i = 1; i + 1 < corners->n; i++)
            if (corners->at[i].apart < corners->at[closest].apart)
                closest = i;
        put_for_two(corners, closest);
    }
}

/* --- joining --------------------------------------------------------------------------------- */

typedef struct {
    const CoreLeast *next;
    guint left;
} List;

static gboolean comes_before(const CoreLeast *a, const CoreLeast *b)
{
    if (a->size.vcpus != b->size.vcpus)
        return a->size.vcpus < b->size.vcpus;
    if (a->length_usec != b->length_usec)
        return a->length_usec < b->length_usec;
    return a->size.memory_mib < b->size.memory_mib;
}

/* The next of all lists; NULL = there are no more. */
static const CoreLeast *take_next(List *lists, guint n_lists)
{
    List *first = NULL;
    for (guint i = 0; i < n_lists; i++)
        if (lists[i].left > 0 && (first == NULL || comes_before(lists[i].next, first->next)))
            first = &lists[i];
    if (first == NULL)
        return NULL;
    first->left--;
    return first->next++;
}

/* None asks for less than one that comes before it does. */
static void join_lists(Corners *corners, List *lists, guint n_lists)
{
    const CoreLeast *next;
    corners->n = 0;
    while ((next = take_next(lists, n_lists)) != NULL) {
        guint i = 0;
        while (i < corners->n && !asks_no_less(next, &corners->at[i].least))
            i++;
        if (i == corners->n)
            corners->at[corners->n++].least = *next;
    }
    if (corners->n > CORE_LEASTS_MAX)
        make_fewer(corners);
}

static void join_kind(Corners *corners, const CoreLeasts *const *parts, guint n_parts,
                      const CoreLeast *(*list_of)(const CoreLeasts *, guint *))
{
    List lists[3];
    guint n = 0;
    g_assert(n_parts <= G_N_ELEMENTS(lists));
    for (guint i = 0; i < n_parts; i++) {
        if (parts[i] == NULL)
            continue;
        lists[n].next = list_of(parts[i], &lists[n].left);
        n += lists[n].left > 0;
    }
    join_lists(corners, lists, n);
}

/* Room for so many, so that few changes of their number take other room. */
static guint room_for(guint n)
{
    return n > 1 ? 1u << g_bit_storage(n - 1) : 0;
}

/* Room for N in LEASTS. */
static CoreLeast *make_room(CoreLeasts *leasts, guint n)
{
    guint had = room_for(n_of(leasts));
    if (room_for(n) == 0)
        g_clear_pointer(&leasts->more, g_free);
    else if (room_for(n) != had)
        leasts->more = g_renew(CoreLeast, leasts->more, room_for(n));
    return n > 1 ? leasts->more : &leasts->one;
}

static void put(CoreLeast *to, const Corners *corners)
{
    for (guint i = 0; i < corners->n; i++)
        to[i] = corners->at[i].least;
}

static gboolean is_same(const CoreLeast *a, const CoreLeast *b)
{
    return core_size_equal(a->size, b->size) && a->length_usec == b->length_usec;
}

static gboolean is_put(const CoreLeast *at, guint n, const Corners *corners)
{
    guint i = 0;
    while (i < n && i < corners->n && is_same(&at[i], &corners->at[i].least))
        i++;
    return i == n && i == corners->n;
}

gboolean core_leasts_join(CoreLeasts *out, const CoreLeasts *const *parts, guint n_parts)
{
    Corners singles, gangs;
    join_kind(&singles, parts, n_parts, core_leasts_singles);
    join_kind(&gangs, parts, n_parts, core_leasts_gangs);
    if (is_put(first_of(out), out->n_singles, &singles) &&
        is_put(first_of(out) + out->n_singles, out->n_gangs, &gangs))
        return FALSE;
    CoreLeast *to = make_room(out, singles.n + gangs.n);
    put(to, &singles);
    put(to + singles.n, &gangs);
    out->n_singles = (guint8)singles.n;
    out->n_gangs = (guint8)gangs.n;
    return TRUE;
}

void core_leasts_clear(CoreLeasts *leasts)
{
    g_free(leasts->more);
    *leasts = (CoreLeasts){.more = NULL};
}

gboolean core_leasts_equal(const CoreLeasts *a, const CoreLeasts *b)
{
    const CoreLeast *at_a = first_of(a);
    const CoreLeast *at_b = first_of(b);
    if (a->n_singles != b->n_singles || a->n_gangs != b->n_gangs)
        return FALSE;
    for (guint i = 0; i < n_of(a); i++)
        if (!is_same(&at_a[i], &at_b[i]))
            return FALSE;
    return TRUE;
}

gsize core_leasts_bytes(const CoreLeasts *leasts)
{
    return room_for(n_of(leasts)) * sizeof(CoreLeast);
}
