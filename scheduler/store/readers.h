/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/db.h"

/* The connections that read, for any thread. They can be held back for a moment: as long as one that began before a
 * commit reads, what was committed since stays in the write-ahead log, and where reads overlap one always does. */
typedef struct StoreReaders StoreReaders;

/* N connections to the database at PATH. Reads are held back for HOLD_MAX_USEC at most, and not again for ten times as
 * long if that was of no use. */
StoreReaders *store_readers_new(const char *path, guint n, gint64 hold_max_usec, GError **error);
/* Closes the connections; all have been given back. */
void store_readers_close(StoreReaders *readers);
void store_readers_free(StoreReaders *readers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreReaders, store_readers_free)

/* One that nobody else has, to be given back. Waits for one, and while reads are held back. */
StoreDb *store_readers_take(StoreReaders *readers);
/* TRUE: it was the last that kept those from reading who are held back: call store_readers_release() soon. */
gboolean store_readers_give(StoreReaders *readers, StoreDb *db);

/* Whoever would begin to read waits, if somebody reads now. */
void store_readers_hold(StoreReaders *readers);
/* They go on. IS_DONE: what they were held back for is done. */
void store_readers_release(StoreReaders *readers, gboolean is_done);
