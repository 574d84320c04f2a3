/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of a copy of the database while it is written to. It is made in pieces, on the writing thread and by its
 * connection: what that commits between two pieces goes into the copy where this has come by already, so that it never
 * begins anew, as a copy by another connection does; and where the database is locked by its one connection nobody
 * else could make any. The writing thread only reads the database: writing the copy is the caller's, who may be slow.
 *
 * Invariants: the members of a backup but for its store are the writing thread's; a piece is copied between two
 * transactions. */
#include "common/error.h"
#include "scheduler/store/read.h"
#include "scheduler/store/sink.h"

/* So long does who commits wait for a piece, and a few pages more. */
#define PIECE_USEC      4000
#define PIECE_MAX_BYTES (4u << 20)
/* More than that, and no more than this, where the database grows as fast: see least_bytes(). */
#define LEAST_MAX_BYTES (64 << 20)
/* Between two looks at the clock: a page where they are large, as on Ceph. */
#define LOOK_BYTES 65536
/* What may have been committed while the caller writes one piece. */
#define WAITING_MAX_BYTES (128u << 20)

struct BerthStoreBackup {
    BerthStore *store;
    StoreSink *sink;
    sqlite3 *copy;
    sqlite3_backup *backup; /* NULL = it is done */
    gint64 page_bytes;
    gint64 n_pages; /* of the database, when the last piece was copied */
};

/* --- on the writing thread ---------------------------------------------------------------------- */

static gboolean set_error(const BerthStoreBackup *backup, int rc, GError **error)
{
    if (store_sink_is_full(backup->sink))
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
            "cannot copy the state database: what is to be written waits for the copy's disk, "
            "and has become more than %u MiB; name a place that is faster",
            WAITING_MAX_BYTES >> 20);
    else
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "cannot copy the state database: %s",
                    sqlite3_errstr(rc));
    return FALSE;
}

static gboolean begin(StoreDb *db, gpointer data, GError **error)
{
    BerthStoreBackup *backup = data;
    if (!store_db_get_int64(db, "PRAGMA page_size", "read the page size", &backup->page_bytes,
                            error) ||
        !store_db_get_int64(db, "PRAGMA page_count", "count the pages", &backup->n_pages, error))
        return FALSE;
    int rc = store_sink_open(backup->sink, &backup->copy);
    if (rc != SQLITE_OK)
        return set_error(backup, rc, error);
    backup->backup = store_db_begin_backup(db, backup->copy);
    return backup->backup != NULL || set_error(backup, sqlite3_errcode(backup->copy), error);
}

typedef struct {
    BerthStoreBackup *backup;
    BerthStoreBackupState state;
    GPtrArray *pieces; /* StoreSinkPiece */
} Step;

/* Twice what has come since the last piece: so the end is reached however fast jobs come, within what a piece may have. */
static gint64 least_bytes(const BerthStoreBackup *backup)
{
    gint64 n_new = sqlite3_backup_pagecount(backup->backup) - backup->n_pages;
    return MIN(2 * n_new * backup->page_bytes, LEAST_MAX_BYTES);
}

static int copy_pages(BerthStoreBackup *backup)
{
    gint64 until_usec = g_get_monotonic_time() + PIECE_USEC;
    int n_pages = (int)MAX(LOOK_BYTES / backup->page_bytes, 1);
    gint64 copied_bytes = 0;
    int rc;
    do {
        rc = sqlite3_backup_step(backup->backup, n_pages);
        copied_bytes += n_pages * backup->page_bytes;
    } while (rc == SQLITE_OK && (copied_bytes < least_bytes(backup) ||
                                 (g_get_monotonic_time() < until_usec &&
                                  store_sink_waiting_bytes(backup->sink) < PIECE_MAX_BYTES)));
    backup->n_pages = sqlite3_backup_pagecount(backup->backup);
    return rc;
}

static gboolean copy_piece(StoreDb *db, gpointer data, GError **error)
{
    Step *step = data;
    BerthStoreBackup *backup = step->backup;
    int rc = copy_pages(backup);
    if (rc != SQLITE_OK && rc != SQLITE_DONE)
        return set_error(backup, rc, error);
    int n_pages = sqlite3_backup_pagecount(backup->backup);
    step->state.total_pages = (guint64)n_pages;
    step->state.copied_pages = (guint64)(n_pages - sqlite3_backup_remaining(backup->backup));
    step->state.page_bytes = (guint64)backup->page_bytes;
    step->state.is_done = rc == SQLITE_DONE;
    if (step->state.is_done) {
        rc = sqlite3_backup_finish(g_steal_pointer(&backup->backup));
        if (rc != SQLITE_OK)
            return set_error(backup, rc, error);
    }
    step->pieces = store_sink_take(backup->sink);
    return TRUE;
}

static gboolean end(StoreDb *db, gpointer data, GError **error)
{
    BerthStoreBackup *backup = data;
    if (backup->backup)
        sqlite3_backup_finish(g_steal_pointer(&backup->backup));
    sqlite3_close(backup->copy);
    return TRUE;
}

/* --- on the caller's ---------------------------------------------------------------------------- */

BerthStoreBackup *berth_store_backup_begin(BerthStore *store, GError **error)
{
    g_autoptr(BerthStoreBackup) backup = g_new0(BerthStoreBackup, 1);
    backup->store = store;
    backup->sink = store_sink_new(WAITING_MAX_BYTES);
    if (!store_run_on_writer(store, begin, backup, error))
        return NULL;
    return g_steal_pointer(&backup);
}

static gboolean hand_over(const GPtrArray *pieces, BerthStoreBackupFunc func, gpointer user_data,
                          GError **error)
{
    for (guint i = 0; i < pieces->len; i++) {
        const StoreSinkPiece *piece = g_ptr_array_index(pieces, i);
        g_autoptr(GBytes) content = g_bytes_new_static(piece->data->data, piece->data->len);
        if (!func(content, piece->offset, user_data, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_store_backup_step(BerthStoreBackup *backup, BerthStoreBackupFunc func,
                                 gpointer user_data, BerthStoreBackupState *out_state,
                                 GError **error)
{
    Step next = {.backup = backup};
    if (!store_run_on_writer(backup->store, copy_piece, &next, error))
        return FALSE;
    g_autoptr(GPtrArray) pieces = next.pieces;
    if (!hand_over(pieces, func, user_data, error))
        return FALSE;
    *out_state = next.state;
    return TRUE;
}

void berth_store_backup_free(BerthStoreBackup *backup)
{
    store_run_on_writer(backup->store, end, backup, NULL);
    store_sink_free(backup->sink);
    g_free(backup);
}
