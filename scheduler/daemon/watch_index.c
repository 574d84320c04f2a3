/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which watches are of which jobs.
 *
 * Invariants: all links of a job are in one list, whose first the table has; its key is in the place of that link. Those of
 * all jobs are in the list of job 0. A job that is watched costs some 50 bytes, as one user may watch a million. */
#include "scheduler/daemon/watch_index.h"

typedef struct Link Link;
struct Link {
    BerthWatchPlace *place;
    Link *previous, *next;
};

struct BerthWatchPlace {
    gpointer watch;
    GArray *jobs;
    guint n_links;
    Link links[]; /* one for each of JOBS, in their order; or the one of all */
};

struct BerthWatchIndex {
    GHashTable *first; /* guint64 (job) -> Link */
};

static const guint64 of_all = 0;

BerthWatchIndex *berth_watch_index_new(void)
{
    BerthWatchIndex *index = g_new0(BerthWatchIndex, 1);
    index->first = g_hash_table_new(g_int64_hash, g_int64_equal);
    return index;
}

void berth_watch_index_free(BerthWatchIndex *index)
{
    g_assert(g_hash_table_size(index->first) == 0);
    g_hash_table_unref(index->first);
    g_free(index);
}

static gpointer key_of(const Link *link)
{
    const BerthWatchPlace *place = link->place;
    if (place->jobs->len == 0)
        return (gpointer)&of_all;
    return &g_array_index(place->jobs, guint64, link - place->links);
}

static void add_link(BerthWatchIndex *index, Link *link)
{
    link->next = g_hash_table_lookup(index->first, key_of(link));
    if (link->next != NULL)
        link->next->previous = link;
    g_hash_table_replace(index->first, key_of(link), link);
}

static void remove_link(BerthWatchIndex *index, const Link *link)
{
    if (link->next != NULL)
        link->next->previous = link->previous;
    if (link->previous != NULL)
        link->previous->next = link->next;
    else if (link->next != NULL)
        g_hash_table_replace(index->first, key_of(link->next), link->next);
    else
        g_hash_table_remove(index->first, key_of(link));
}

BerthWatchPlace *berth_watch_index_add(BerthWatchIndex *index, GArray *jobs, gpointer watch)
{
    guint n_links = MAX(jobs->len, 1);
    BerthWatchPlace *place = g_malloc0(sizeof *place + n_links * sizeof place->links[0]);
    place->watch = watch;
    place->jobs = g_array_ref(jobs);
    place->n_links = n_links;
    for (guint i = 0; i < n_links; i++) {
        place->links[i].place = place;
        add_link(index, &place->links[i]);
    }
    return place;
}

void berth_watch_index_remove(BerthWatchIndex *index, BerthWatchPlace *place)
{
    for (guint i = 0; i < place->n_links; i++)
        remove_link(index, &place->links[i]);
    g_array_unref(place->jobs);
    g_free(place);
}

static void each_of(const BerthWatchIndex *index, guint64 job, GFunc func, gpointer user_data)
{
    const Link *next = g_hash_table_lookup(index->first, &job);
    while (next != NULL) {
        const Link *link = next;
        next = link->next;
        func(link->place->watch, user_data);
    }
}

void berth_watch_index_each(const BerthWatchIndex *index, guint64 job, GFunc func,
                            gpointer user_data)
{
    each_of(index, of_all, func, user_data);
    if (job != of_all)
        each_of(index, job, func, user_data);
}
