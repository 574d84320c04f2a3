/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the connections that read, and when reads are held back (see readers.h). Who is held back waits for those who read
 * already, as long as the longest of them takes, but for hold_max_usec at most: what is in the way then may be a
 * program of somebody else, which nobody here can hold back. */
#include "scheduler/store/readers.h"

#define PAUSE_FACTOR 10

struct StoreReaders {
    GMutex mutex;
    GCond cond;
    GQueue free; /* StoreDb */
    guint n_taken;
    gint64 hold_max_usec;
    gboolean is_held;
    gint64 held_until_usec;
    gint64 not_before_usec; /* no hold begins before */
};

StoreReaders *store_readers_new(const char *path, guint n, gint64 hold_max_usec, GError **error)
{
    g_autoptr(StoreReaders) readers = g_new0(StoreReaders, 1);
    g_mutex_init(&readers->mutex);
    g_cond_init(&readers->cond);
    g_queue_init(&readers->free);
    readers->hold_max_usec = hold_max_usec;
    for (guint i = 0; i < n; i++) {
        StoreDb *db = store_db_open(path, STORE_DB_READ_ONLY, error);
        if (db == NULL)
            return NULL;
        g_queue_push_tail(&readers->free, db);
    }
    return g_steal_pointer(&readers);
}

void store_readers_close(StoreReaders *readers)
{
    g_queue_clear_full(&readers->free, (GDestroyNotify)store_db_close);
}

void store_readers_free(StoreReaders *readers)
{
    store_readers_close(readers);
    g_mutex_clear(&readers->mutex);
    g_cond_clear(&readers->cond);
    g_free(readers);
}

/* With the mutex. */
static void release(StoreReaders *readers, gboolean is_done)
{
    if (!readers->is_held)
        return;
    readers->is_held = FALSE;
    if (!is_done)
        readers->not_before_usec = g_get_monotonic_time() + PAUSE_FACTOR * readers->hold_max_usec;
    g_cond_broadcast(&readers->cond);
}

StoreDb *store_readers_take(StoreReaders *readers)
{
    g_mutex_lock(&readers->mutex);
    while (readers->is_held || g_queue_is_empty(&readers->free)) {
        if (!readers->is_held)
            g_cond_wait(&readers->cond, &readers->mutex);
        else if (!g_cond_wait_until(&readers->cond, &readers->mutex, readers->held_until_usec))
            release(readers, FALSE);
    }
    StoreDb *db = g_queue_pop_head(&readers->free);
    readers->n_taken++;
    g_mutex_unlock(&readers->mutex);
    return db;
}

gboolean store_readers_give(StoreReaders *readers, StoreDb *db)
{
    g_mutex_lock(&readers->mutex);
    g_queue_push_tail(&readers->free, db);
    readers->n_taken--;
    gboolean is_last = readers->is_held && readers->n_taken == 0;
    g_cond_broadcast(&readers->cond);
    g_mutex_unlock(&readers->mutex);
    return is_last;
}

void store_readers_hold(StoreReaders *readers)
{
    gint64 now_usec = g_get_monotonic_time();
    g_mutex_lock(&readers->mutex);
    if (!readers->is_held && readers->n_taken > 0 && now_usec >= readers->not_before_usec) {
        readers->is_held = TRUE;
        readers->held_until_usec = now_usec + readers->hold_max_usec;
    }
    g_mutex_unlock(&readers->mutex);
}

void store_readers_release(StoreReaders *readers, gboolean is_done)
{
    g_mutex_lock(&readers->mutex);
    release(readers, is_done);
    g_mutex_unlock(&readers->mutex);
}
