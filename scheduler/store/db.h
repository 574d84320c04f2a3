/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gio/gio.h>
#include <protobuf-c/protobuf-c.h>
#include <sqlite3.h>

/* One SQLite connection with its prepared statements. Used by one thread at a time. */
typedef struct StoreDb StoreDb;

typedef enum {
    STORE_DB_READ_ONLY,
    STORE_DB_READ_WRITE,
    STORE_DB_CREATE, /* read and write; made if absent */
} StoreDbMode;

/* PATH: a file, or a "file:" URI; vfs=ceph in it loads Ceph's VFS. */
StoreDb *store_db_open(const char *path, StoreDbMode mode, GError **error);
void store_db_close(StoreDb *db);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreDb, store_db_close)

/* Sets ERROR from the connection's last failure with code RC; WHAT was tried ("read job 7"). */
void store_db_set_error(StoreDb *db, int rc, const char *what, GError **error);

/* A statement that is prepared once and used again: (transfer none), but to be let go of by
 * store_statement_release(), which g_autoptr(StoreStatement) does. */
typedef sqlite3_stmt StoreStatement;
StoreStatement *store_db_statement(StoreDb *db, const char *sql, GError **error);
void store_statement_release(StoreStatement *statement);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreStatement, store_statement_release)

/* One step. TRUE with *OUT_ROW: whether there is a row. */
gboolean store_db_step(StoreDb *db, StoreStatement *statement, const char *what, gboolean *out_row,
                       GError **error);
/* Runs a statement that gives no rows; *OUT_CHANGED (may be NULL): rows that it changed. */
gboolean store_db_run(StoreDb *db, StoreStatement *statement, const char *what, guint *out_changed,
                      GError **error);
/* One or more statements without parameters. */
gboolean store_db_exec(StoreDb *db, const char *sql, const char *what, GError **error);
/* The one integer that SQL gives; 0 if it gives no row. */
gboolean store_db_get_int64(StoreDb *db, const char *sql, const char *what, gint64 *out_value,
                            GError **error);

/* Makes FUNC known to the connection's statements as NAME, which has one argument. */
gboolean store_db_add_function(StoreDb *db, const char *name,
                               void (*func)(sqlite3_context *, int, sqlite3_value **),
                               GError **error);

/* Begins a copy of the database into COPY, for sqlite3_backup_step(). NULL: COPY has the error. */
sqlite3_backup *store_db_begin_backup(StoreDb *db, sqlite3 *copy);

/* While STOP (may be NULL) is set, a statement that runs long looks at it, and fails with CANCELLED
 * once it is triggered. */
void store_db_set_stop(StoreDb *db, GCancellable *stop);
/* While IS_LONG: what this connection does takes long, and may, as long as it makes progress: a
 * service manager that waits for this process is told so. */
void store_db_set_long(StoreDb *db, gboolean is_long);
/* Keeps the write-ahead log near MAX_BYTES at most: beyond it each commit tries to empty the file,
 * without waiting for whoever reads, and FUNC is told whether that worked. */
typedef void (*StoreJournalFunc)(gboolean is_emptied, gpointer user_data);
void store_db_bound_journal(StoreDb *db, gint64 max_bytes, StoreJournalFunc func,
                            gpointer user_data);
/* Tries to empty it now. FALSE: somebody reads what is in there. */
gboolean store_db_empty_journal(StoreDb *db);

/* Binding and columns. A guint64 above G_MAXINT64 is taken as that. */
void store_bind_uint64(StoreStatement *statement, int index, guint64 value);
void store_bind_bytes(StoreStatement *statement, int index, GBytes *bytes);
/* Unpacks a record column; (transfer full). DATA_LOSS if it is no such message. */
gpointer store_column_message(StoreStatement *statement, int column,
                              const ProtobufCMessageDescriptor *descriptor, const char *what,
                              GError **error);
GBytes *store_pack(const ProtobufCMessage *message);
