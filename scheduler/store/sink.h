/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>
#include <sqlite3.h>

/* A database of SQLite that is no file: what is written to it waits in memory until it is taken, for one who writes it
 * elsewhere, in another thread and at his own pace. Only for copies by sqlite3_backup, which writes whole pages and
 * reads none that it has let go of: what was taken cannot be read. */

typedef struct StoreSink StoreSink;

/* One that has MAX_BYTES waiting takes no more: it fails with SQLITE_FULL, then and ever after. */
StoreSink *store_sink_new(gsize max_bytes);
/* Opens it; SQLite's code. *OUT_DB is to be closed before SINK is freed. */
int store_sink_open(StoreSink *sink, sqlite3 **out_db);
void store_sink_free(StoreSink *sink);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreSink, store_sink_free)

typedef struct {
    guint64 offset;
    GByteArray *data;
} StoreSinkPiece;

/* What waits, in the order in which it was written. (transfer full, StoreSinkPiece) */
GPtrArray *store_sink_take(StoreSink *sink);
gsize store_sink_waiting_bytes(const StoreSink *sink);
gboolean store_sink_is_full(const StoreSink *sink);
