/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the file system, in SQLite's sense, that has one file, which is kept by nobody: see sink.h. Nothing here
 * blocks, whatever what is taken from it is written to.
 *
 * Invariant: pieces that follow each other in the file are one, up to PIECE_MAX_BYTES. */
#include "scheduler/store/sink.h"

#include <string.h>

#define PIECE_MAX_BYTES (1u << 20)
/* Of no page more than one: others in a sector would be read, and what was taken cannot be. */
#define SECTOR_BYTES 512
/* In a database's header: which versions of SQLite may write and read it, 1 (a journal of its own) or 2 (WAL). */
#define WRITE_VERSION_AT 18
#define READ_VERSION_AT  19

struct StoreSink {
    sqlite3_vfs vfs;
    char *name;
    GPtrArray *pieces; /* StoreSinkPiece */
    gsize waiting_bytes;
    gsize max_bytes;
    guint64 end; /* size of the file */
    gboolean is_full;
};

typedef struct {
    sqlite3_file base;
    StoreSink *sink;
} SinkFile;

static void piece_free(gpointer data)
{
    StoreSinkPiece *piece = data;
    g_byte_array_unref(piece->data);
    g_free(piece);
}

static StoreSink *sink_of(sqlite3_file *file)
{
    return ((SinkFile *)(void *)file)->sink;
}

/* --- the file ----------------------------------------------------------------------------------- */

static StoreSinkPiece *piece_for(StoreSink *sink, guint64 offset, gsize length)
{
    StoreSinkPiece *last =
        sink->pieces->len > 0 ? g_ptr_array_index(sink->pieces, sink->pieces->len - 1) : NULL;
    if (last && last->offset + last->data->len == offset &&
        last->data->len + length <= PIECE_MAX_BYTES)
        return last;
    StoreSinkPiece *piece = g_new(StoreSinkPiece, 1);
    *piece = (StoreSinkPiece){offset, g_byte_array_new()};
    g_ptr_array_add(sink->pieces, piece);
    return piece;
}

/* The copy is one file, which can be opened where no other can be made beside it, and put on any file system. */
static void unset_wal(StoreSinkPiece *piece, gsize at, gsize length)
{
    if (length <= READ_VERSION_AT)
        return;
    piece->data->data[at + WRITE_VERSION_AT] = 1;
    piece->data->data[at + READ_VERSION_AT] = 1;
}

static int sink_write(sqlite3_file *file, const void *data, int length, sqlite3_int64 offset)
{
    StoreSink *sink = sink_of(file);
    if (sink->is_full || sink->waiting_bytes + (gsize)length > sink->max_bytes) {
        sink->is_full = TRUE;
        sink->waiting_bytes = 0;
        g_ptr_array_set_size(sink->pieces, 0);
        return SQLITE_FULL;
    }
    StoreSinkPiece *piece = piece_for(sink, (guint64)offset, (gsize)length);
    gsize at = piece->data->len;
    g_byte_array_append(piece->data, data, (guint)length);
    if (offset == 0)
        unset_wal(piece, at, (gsize)length);
    sink->waiting_bytes += (gsize)length;
    sink->end = MAX(sink->end, (guint64)offset + (guint64)length);
    return SQLITE_OK;
}

/* Of a page that is about to be replaced as a whole: any content will do. */
static int sink_read(sqlite3_file *file, void *data, int length, sqlite3_int64 offset)
{
    memset(data, 0, (gsize)length);
    return (guint64)offset + (guint64)length <= sink_of(file)->end ? SQLITE_OK
                                                                   : SQLITE_IOERR_SHORT_READ;
}

static int sink_file_size(sqlite3_file *file, sqlite3_int64 *out_size)
{
    *out_size = (sqlite3_int64)sink_of(file)->end;
    return SQLITE_OK;
}

/* A database that nobody vacuums never shrinks; what stands behind its end says nothing. */
static int sink_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return SQLITE_OK;
}

static int sink_close(sqlite3_file *file)
{
    return SQLITE_OK;
}

static int sink_do_nothing(sqlite3_file *file, int flags)
{
    return SQLITE_OK;
}

static int sink_check_reserved_lock(sqlite3_file *file, int *out_is_reserved)
{
    *out_is_reserved = 0;
    return SQLITE_OK;
}

static int sink_control(sqlite3_file *file, int op, void *argument)
{
    return SQLITE_NOTFOUND;
}

static int sink_sector_size(sqlite3_file *file)
{
    return SECTOR_BYTES;
}

static int sink_characteristics(sqlite3_file *file)
{
    return 0;
}

/* --- the file system ---------------------------------------------------------------------------- */

static int sink_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *out_flags)
{
    static const sqlite3_io_methods methods = {.iVersion = 1,
                                               .xClose = sink_close,
                                               .xRead = sink_read,
                                               .xWrite = sink_write,
                                               .xTruncate = sink_truncate,
                                               .xSync = sink_do_nothing,
                                               .xFileSize = sink_file_size,
                                               .xLock = sink_do_nothing,
                                               .xUnlock = sink_do_nothing,
                                               .xCheckReservedLock = sink_check_reserved_lock,
                                               .xFileControl = sink_control,
                                               .xSectorSize = sink_sector_size,
                                               .xDeviceCharacteristics = sink_characteristics};
    if (!(flags & SQLITE_OPEN_MAIN_DB)) {
        file->pMethods = NULL;
        return SQLITE_CANTOPEN;
    }
    SinkFile *sink_file = (SinkFile *)(void *)file;
    sink_file->base.pMethods = &methods;
    sink_file->sink = vfs->pAppData;
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int sink_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    return SQLITE_OK;
}

static int sink_access(sqlite3_vfs *vfs, const char *name, int flags, int *out_result)
{
    *out_result = 0;
    return SQLITE_OK;
}

static int sink_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *out_path)
{
    g_strlcpy(out_path, name, (gsize)size);
    return SQLITE_OK;
}

StoreSink *store_sink_new(gsize max_bytes)
{
    StoreSink *sink = g_new0(StoreSink, 1);
    sink->max_bytes = max_bytes;
    sink->pieces = g_ptr_array_new_with_free_func(piece_free);
    sink->name = g_strdup_printf("berth-sink-%p", (void *)sink);
    sink->vfs = *sqlite3_vfs_find(NULL); /* for the time, and chance */
    sink->vfs.pNext = NULL;
    sink->vfs.zName = sink->name;
    sink->vfs.pAppData = sink;
    sink->vfs.szOsFile = sizeof(SinkFile);
    sink->vfs.xOpen = sink_open;
    sink->vfs.xDelete = sink_delete;
    sink->vfs.xAccess = sink_access;
    sink->vfs.xFullPathname = sink_full_pathname;
    return sink;
}

/* It has no journal: a copy that fails is thrown away. */
int store_sink_open(StoreSink *sink, sqlite3 **out_db)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_vfs_register(&sink->vfs, 0);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_open_v2("copy", &db,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                             SQLITE_OPEN_EXRESCODE,
                         sink->name);
    sqlite3_vfs_unregister(&sink->vfs); /* the connection has found it */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                          NULL);
    if (rc == SQLITE_OK)
        *out_db = db;
    else
        sqlite3_close(db);
    return rc;
}

void store_sink_free(StoreSink *sink)
{
    g_ptr_array_unref(sink->pieces);
    g_free(sink->name);
    g_free(sink);
}

/* --- taking ------------------------------------------------------------------------------------- */

GPtrArray *store_sink_take(StoreSink *sink)
{
    GPtrArray *pieces = g_steal_pointer(&sink->pieces);
    sink->pieces = g_ptr_array_new_with_free_func(piece_free);
    sink->waiting_bytes = 0;
    return pieces;
}

gsize store_sink_waiting_bytes(const StoreSink *sink)
{
    return sink->waiting_bytes;
}

gboolean store_sink_is_full(const StoreSink *sink)
{
    return sink->is_full;
}
