/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what completes while it is looked at. Jobs that nobody looks at cost nothing. */
#include "config.h"

#include "scheduler/daemon/elements.h"

typedef struct {
    guint64 job; /* first: the key */
    guint n_watchers;
    GArray *completed; /* BerthTaskRange */
} Watched;

struct BerthElements {
    GHashTable *watched; /* set of Watched, owned */
};

static void watched_free(gpointer data)
{
    Watched *watched = data;
    g_array_unref(watched->completed);
    g_free(watched);
}

BerthElements *berth_elements_new(void)
{
    BerthElements *elements = g_new(BerthElements, 1);
    elements->watched = g_hash_table_new_full(g_int64_hash, g_int64_equal, watched_free, NULL);
    return elements;
}

void berth_elements_free(BerthElements *elements)
{
    g_hash_table_unref(elements->watched);
    g_free(elements);
}

void berth_elements_watch(BerthElements *elements, guint64 job)
{
    Watched *watched = g_hash_table_lookup(elements->watched, &job);
    if (!watched) {
        watched = g_new(Watched, 1);
        *watched = (Watched){job, 0, g_array_new(FALSE, FALSE, sizeof(BerthTaskRange))};
        g_hash_table_add(elements->watched, watched);
    }
    watched->n_watchers++;
}

void berth_elements_unwatch(BerthElements *elements, guint64 job)
{
    Watched *watched = g_hash_table_lookup(elements->watched, &job);
    if (--watched->n_watchers == 0)
        g_hash_table_remove(elements->watched, &job);
}

void berth_elements_note(BerthElements *elements, guint64 job, BerthIndexRange tasks)
{
    const Watched *watched = g_hash_table_lookup(elements->watched, &job);
    BerthTaskRange range = {job, tasks};
    if (watched)
        g_array_append_val(watched->completed, range);
}

void berth_elements_add(const BerthElements *elements, guint64 job, GArray *completed)
{
    const Watched *watched = g_hash_table_lookup(elements->watched, &job);
    g_array_append_vals(completed, watched->completed->data, watched->completed->len);
}
