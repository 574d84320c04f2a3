/* SPDX-License-Identifier: Apache-2.0 */
/* Owns one SQLite connection: opening it, its prepared statements, and the translation of
 * SQLite's result codes into Berth's errors. Knows no table.
 *
 * Invariant: a cached statement that nobody holds is reset and has no bindings, so that it keeps
 * neither a read transaction nor memory of others. */
#include "scheduler/store/db.h"

#include "common/error.h"
#include "common/notify.h"

#include <string.h>

#define BUSY_TIMEOUT_MSEC 10000
/* Instructions of SQLite's machine between two looks at whether to go on: some microseconds. */
#define STOP_INSTRUCTIONS 1000
/* As SQLite's own: pages of the log from which on a commit copies them into the database. */
#define CHECKPOINT_PAGES 1000
/* A manager is asked for this much time, this often. */
#define EXTEND_SEC 60
#define TELL_USEC  (10 * G_USEC_PER_SEC)

struct StoreDb {
    sqlite3 *handle;
    char *path;
    GHashTable *statements; /* SQL -> sqlite3_stmt */
    gint64 journal_max_bytes;
    StoreJournalFunc journal_func;
    gpointer journal_data;
    gint64 told_usec; /* when the service manager was last told of progress */
};

/* SQLite does not tell the errno of each failed write (not that of a commit). */
static int code_of_io_error(int system_errno)
{
    return system_errno == 0 ? BERTH_ERROR_UNAVAILABLE
                             : (int)berth_error_code_from_errno(system_errno);
}

static int error_code_of(int rc, int system_errno)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
        return BERTH_ERROR_RESOURCE_EXHAUSTED;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return BERTH_ERROR_DATA_LOSS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return BERTH_ERROR_PERMISSION_DENIED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return BERTH_ERROR_FAILED_PRECONDITION;
    case SQLITE_CONSTRAINT:
        return BERTH_ERROR_ALREADY_EXISTS;
    case SQLITE_INTERRUPT:
        return BERTH_ERROR_CANCELLED;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return code_of_io_error(system_errno);
    default:
        return BERTH_ERROR_INTERNAL;
    }
}

static const char *remedy_of(int code)
{
    switch (code) {
    case BERTH_ERROR_RESOURCE_EXHAUSTED:
        return "; make room there and start berthd again, nothing that was confirmed is lost";
    case BERTH_ERROR_UNAVAILABLE:
        return "; its disk, quota or file size limit fails (see the kernel's log): mend that and "
               "start berthd again, nothing that was confirmed is lost";
    case BERTH_ERROR_DATA_LOSS:
        return "; stop berthd, then put a backup in its place, or salvage what can be read with: "
               "sqlite3 DAMAGED .recover | sqlite3 NEW";
    case BERTH_ERROR_PERMISSION_DENIED:
        return "; the file and its directory must be writable by the user that berthd runs as";
    case BERTH_ERROR_FAILED_PRECONDITION:
        return "; another berthd or program has it open: stop that first";
    default:
        return "";
    }
}

void store_db_set_error(StoreDb *db, int rc, const char *what, GError **error)
{
    int system_errno = db->handle != NULL ? sqlite3_system_errno(db->handle) : 0;
    int code = error_code_of(rc, system_errno);
    const char *text = db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc);
    gboolean is_io = (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN;
    gboolean has_errno = is_io && system_errno != 0;
    g_set_error(error, BERTH_ERROR, code, "cannot %s in the state database %s: %s%s%s%s", what,
                db->path, text, has_errno ? ": " : "", has_errno ? g_strerror(system_errno) : "",
                remedy_of(code));
}

/* --- opening -------------------------------------------------------------------------------- */

/* Ceph's VFS is registered for the whole process by loading it into any connection. */
static gboolean load_ceph_vfs(GError **error)
{
    if (sqlite3_vfs_find("ceph") != NULL)
        return TRUE;
    sqlite3 *memory = NULL;
    char *message = NULL;
    int rc = sqlite3_open(":memory:", &memory);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(memory, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_load_extension(memory, "libcephsqlite.so", NULL, &message);
    if (rc != SQLITE_OK)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                    "cannot load SQLite's VFS for Ceph: %s; install the package "
                    "libsqlite3-mod-ceph, or keep the state in a local file",
                    message != NULL ? message : sqlite3_errstr(rc));
    sqlite3_free(message);
    sqlite3_close(memory);
    return rc == SQLITE_OK;
}

gboolean store_db_add_function(StoreDb *db, const char *name,
                               void (*func)(sqlite3_context *, int, sqlite3_value **),
                               GError **error)
{
    int rc = sqlite3_create_function(db->handle, name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                     func, NULL, NULL);
    if (rc == SQLITE_OK)
        return TRUE;
    store_db_set_error(db, rc, "add a function", error);
    return FALSE;
}

static int open_flags(StoreDbMode mode)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
    if (mode == STORE_DB_READ_ONLY)
        return flags | SQLITE_OPEN_READONLY;
    return flags | SQLITE_OPEN_READWRITE | (mode == STORE_DB_CREATE ? SQLITE_OPEN_CREATE : 0);
}

static void statement_destroy(gpointer statement)
{
    sqlite3_finalize(statement);
}

StoreDb *store_db_open(const char *path, StoreDbMode mode, GError **error)
{
    if (g_str_has_prefix(path, "file:") && strstr(path, "vfs=ceph") != NULL &&
        !load_ceph_vfs(error))
        return NULL;
    g_autoptr(StoreDb) db = g_new0(StoreDb, 1);
    db->path = g_strdup(path);
    db->statements = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, statement_destroy);
    int rc = sqlite3_open_v2(path, &db->handle, open_flags(mode), NULL);
    if (rc != SQLITE_OK) {
        store_db_set_error(db, rc, "open it", error);
        return NULL;
    }
    /* Whoever creates wants it for itself alone: a lock held by another will not go away soon. */
    if (mode != STORE_DB_CREATE)
        sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MSEC);
    return g_steal_pointer(&db);
}

void store_db_close(StoreDb *db)
{
    g_hash_table_unref(db->statements);
    sqlite3_close(db->handle);
    g_free(db->path);
    g_free(db);
}

static int look_at_stop(void *stop)
{
    return g_cancellable_is_cancelled(stop) ? 1 : 0;
}

void store_db_set_stop(StoreDb *db, GCancellable *stop)
{
    sqlite3_progress_handler(db->handle, stop != NULL ? STOP_INSTRUCTIONS : 0,
                             stop != NULL ? look_at_stop : NULL, stop);
}

static int tell_manager(void *data)
{
    StoreDb *db = data;
    gint64 now_usec = g_get_monotonic_time();
    if (now_usec - db->told_usec >= TELL_USEC) {
        db->told_usec = now_usec;
        berth_notify_extend_timeout(EXTEND_SEC);
    }
    return 0;
}

void store_db_set_long(StoreDb *db, gboolean is_long)
{
    db->told_usec = 0;
    sqlite3_progress_handler(db->handle, is_long ? STOP_INSTRUCTIONS : 0,
                             is_long ? tell_manager : NULL, db);
}

/* Without waiting for who reads. FALSE: somebody was in the way. */
static gboolean checkpoint(sqlite3 *handle, int mode)
{
    sqlite3_busy_timeout(handle, 0);
    int rc = sqlite3_wal_checkpoint_v2(handle, "main", mode, NULL, NULL);
    sqlite3_busy_timeout(handle, BUSY_TIMEOUT_MSEC);
    return rc == SQLITE_OK;
}

gboolean store_db_empty_journal(StoreDb *db)
{
    return checkpoint(db->handle, SQLITE_CHECKPOINT_TRUNCATE);
}

/* Replaces SQLite's own checkpoint after a commit, which never makes the file shorter. Where readers are in the way the
 * next commit tries again. */
static int after_commit(void *data, sqlite3 *handle, const char *name, int pages)
{
    StoreDb *db = data;
    gint64 page_bytes = 0;
    if (pages < CHECKPOINT_PAGES)
        return SQLITE_OK;
    store_db_get_int64(db, "PRAGMA page_size", "read the page size", &page_bytes, NULL);
    if (pages * page_bytes <= db->journal_max_bytes)
        checkpoint(handle, SQLITE_CHECKPOINT_PASSIVE);
    else
        db->journal_func(store_db_empty_journal(db), db->journal_data);
    return SQLITE_OK;
}

void store_db_bound_journal(StoreDb *db, gint64 max_bytes, StoreJournalFunc func,
                            gpointer user_data)
{
    db->journal_max_bytes = max_bytes;
    db->journal_func = func;
    db->journal_data = user_data;
    sqlite3_wal_hook(db->handle, after_commit, db);
}

/* --- statements ----------------------------------------------------------------------------- */

StoreStatement *store_db_statement(StoreDb *db, const char *sql, GError **error)
{
    sqlite3_stmt *statement = g_hash_table_lookup(db->statements, sql);
    if (statement != NULL)
        return statement;
    int rc = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    if (rc != SQLITE_OK) {
        store_db_set_error(db, rc, "prepare a statement", error);
        return NULL;
    }
    g_hash_table_insert(db->statements, g_strdup(sql), statement);
    return statement;
}

void store_statement_release(StoreStatement *statement)
{
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

gboolean store_db_step(StoreDb *db, StoreStatement *statement, const char *what, gboolean *out_row,
                       GError **error)
{
    int rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        store_db_set_error(db, rc, what, error);
        return FALSE;
    }
    *out_row = rc == SQLITE_ROW;
    return TRUE;
}

gboolean store_db_run(StoreDb *db, StoreStatement *statement, const char *what, guint *out_changed,
                      GError **error)
{
    gboolean row = FALSE;
    if (!store_db_step(db, statement, what, &row, error))
        return FALSE;
    if (out_changed != NULL)
        *out_changed = (guint)sqlite3_changes(db->handle);
    return TRUE;
}

gboolean store_db_exec(StoreDb *db, const char *sql, const char *what, GError **error)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        store_db_set_error(db, rc, what, error);
    return rc == SQLITE_OK;
}

gboolean store_db_get_int64(StoreDb *db, const char *sql, const char *what, gint64 *out_value,
                            GError **error)
{
    g_autoptr(StoreStatement) statement = store_db_statement(db, sql, error);
    gboolean row = FALSE;
    if (statement == NULL || !store_db_step(db, statement, what, &row, error))
        return FALSE;
    *out_value = row ? sqlite3_column_int64(statement, 0) : 0;
    return TRUE;
}

sqlite3_backup *store_db_begin_backup(StoreDb *db, sqlite3 *copy)
{
    return sqlite3_backup_init(copy, "main", db->handle, "main");
}

/* --- values --------------------------------------------------------------------------------- */

void store_bind_uint64(StoreStatement *statement, int index, guint64 value)
{
    sqlite3_bind_int64(statement, index, (sqlite3_int64)MIN(value, (guint64)G_MAXINT64));
}

void store_bind_bytes(StoreStatement *statement, int index, GBytes *bytes)
{
    gsize size = 0;
    const void *data = g_bytes_get_data(bytes, &size);
    /* A NULL pointer would be bound as NULL, not as an empty blob. */
    sqlite3_bind_blob64(statement, index, size > 0 ? data : "", size, SQLITE_STATIC);
}

gpointer store_column_message(StoreStatement *statement, int column,
                              const ProtobufCMessageDescriptor *descriptor, const char *what,
                              GError **error)
{
    const void *data = sqlite3_column_blob(statement, column);
    gsize size = (gsize)sqlite3_column_bytes(statement, column);
    gpointer message = protobuf_c_message_unpack(descriptor, NULL, size, data);
    if (message == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                    "cannot %s in the state database: the stored %s is damaged%s", what,
                    descriptor->short_name, remedy_of(BERTH_ERROR_DATA_LOSS));
    return message;
}

GBytes *store_pack(const ProtobufCMessage *message)
{
    gsize size = protobuf_c_message_get_packed_size(message);
    guint8 *data = g_malloc(size);
    protobuf_c_message_pack(message, data);
    return g_bytes_new_take(data, size);
}
