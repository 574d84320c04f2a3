/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the schema: its statements, its versions and the way from each to the next, and the checks
 * of a database before it is used.
 *
 * Each table keeps a packed message of berth.proto as its record, beside the columns by which it
 * is looked up; a record is the truth, the columns are copies. application_id says that the file
 * is Berth's, user_version says which schema it has. AUTOINCREMENT keeps the largest number ever
 * used, so that none is given out twice even if rows are removed one day. */
#include "scheduler/store/schema.h"

#include "common/error.h"
#include "scheduler/store/store.h"

#define APPLICATION_ID 0x42455254 /* "BERT" */

/* As the first release made it; what came later is in the steps below, for new databases too. */
static const char first_sql[] =
    "CREATE TABLE job ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  uid INTEGER NOT NULL,"
    "  state INTEGER NOT NULL,"
    "  open INTEGER NOT NULL DEFAULT 1," /* some task is not done */
    "  record BLOB NOT NULL);"
    "CREATE INDEX job_by_uid ON job (uid, id);"
    "CREATE INDEX job_open ON job (id) WHERE open = 1;"
    "CREATE INDEX job_by_state ON job (state, id);"
    "CREATE INDEX job_by_uid_state ON job (uid, state, id);"
    "CREATE TABLE spec (job INTEGER PRIMARY KEY, record BLOB NOT NULL);"
    "CREATE TABLE task ("
    "  job INTEGER NOT NULL,"
    "  number INTEGER NOT NULL,"
    "  done INTEGER NOT NULL,"
    "  record BLOB NOT NULL,"
    "  PRIMARY KEY (job, number)) WITHOUT ROWID;"
    "CREATE INDEX task_open ON task (job) WHERE done = 0;"
    "CREATE TABLE idempotency ("
    "  uid INTEGER NOT NULL,"
    "  key TEXT NOT NULL,"
    "  job INTEGER NOT NULL,"
    "  PRIMARY KEY (uid, key)) WITHOUT ROWID;"
    "CREATE TABLE node (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE image (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE blob (sha256 BLOB NOT NULL UNIQUE, content BLOB NOT NULL);"
    "CREATE TABLE job_blob ("
    "  sha256 BLOB NOT NULL,"
    "  job INTEGER NOT NULL,"
    "  PRIMARY KEY (sha256, job)) WITHOUT ROWID;"
    "CREATE TABLE event ("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  job INTEGER NOT NULL," /* 0 = of no job */
    "  record BLOB NOT NULL);"
    "CREATE INDEX event_by_job ON event (job, seq) WHERE job <> 0;";

/* The statements that lead from schema N + 1 to N + 2. Never changed once they were released. */
static const char *const steps[BERTH_STORE_SCHEMA_VERSION - 1] = {
    /* What the policy learnt. Rows of priors are in the order in which they were written. */
    "CREATE TABLE used (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE prior (name TEXT PRIMARY KEY, record BLOB NOT NULL);",
    /* Which database it is, and which job numbers it may give out; one row. SQLite takes its randomness
     * from the system's. */
    "CREATE TABLE identity ("
    "  id TEXT NOT NULL,"
    "  jobs_reserved INTEGER NOT NULL,"
    "  next_job INTEGER NOT NULL);"
    "INSERT INTO identity VALUES (lower(hex(randomblob(16))), 0, 0);",
    /* Objects in storage that are to be removed, and why. Schema 3 had them among the images, as "id:" and
     * their id, and did not say why: as imports, of which none goes that may be an image. */
    "CREATE TABLE unwanted_image (id TEXT PRIMARY KEY, reason INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO unwanted_image SELECT substr(name, 4), 1 FROM image WHERE name LIKE 'id:%';"
    "DELETE FROM image WHERE name LIKE 'id:%';",
    /* How many tasks of an array have never started: they have no rows, and the job is open as long as there are such. */
    "ALTER TABLE job ADD COLUMN unstarted INTEGER NOT NULL DEFAULT 0;",
    /* The last task of those for which a row stands beside its own; 0 = none. */
    "ALTER TABLE task ADD COLUMN rest_last INTEGER NOT NULL DEFAULT 0;"
    "UPDATE task SET rest_last = berth_rest_last(record) WHERE berth_rest_last(record) > 0;"
    "CREATE INDEX task_rest ON task (job, number, rest_last) WHERE rest_last > 0;",
    /* So that the key of a job that is removed is found. */
    "CREATE INDEX idempotency_by_job ON idempotency (job);",
};

/* berth_rest_last(RECORD) of a task. */
static void rest_last(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    Berth__StoredTask *stored = berth__stored_task__unpack(
        NULL, (gsize)sqlite3_value_bytes(values[0]), sqlite3_value_blob(values[0]));
    sqlite3_result_int64(context, stored && stored->task ? stored->task->rest_last : 0);
    if (stored)
        berth__stored_task__free_unpacked(stored, NULL);
}

/* One transaction: FIRST, then what leads from schema VERSION to the present one. */
static gboolean build(StoreDb *db, const char *first, gint64 version, const char *what,
                      GError **error)
{
    g_autoptr(GString) sql = g_string_new("BEGIN IMMEDIATE;");
    if (!store_db_add_function(db, "berth_rest_last", rest_last, error))
        return FALSE;
    g_string_append(sql, first);
    for (gint64 i = version; i < BERTH_STORE_SCHEMA_VERSION; i++)
        g_string_append(sql, steps[i - 1]);
    g_string_append_printf(sql, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
                           APPLICATION_ID, BERTH_STORE_SCHEMA_VERSION);
    if (store_db_exec(db, sql->str, what, error))
        return TRUE;
    store_db_exec(db, "ROLLBACK", "roll back a transaction", NULL);
    return FALSE;
}

gboolean store_schema_create(StoreDb *db, GError **error)
{
    return build(db, first_sql, 1, "create the tables", error);
}

gboolean store_schema_upgrade(StoreDb *db, GError **error)
{
    gint64 version = 0;
    if (!store_db_get_int64(db, "PRAGMA user_version", "read the schema's version", &version,
                            error))
        return FALSE;
    return version == BERTH_STORE_SCHEMA_VERSION ||
           build(db, "", version, "bring it to the present schema", error);
}

gboolean store_schema_is_empty(StoreDb *db, gboolean *out_empty, GError **error)
{
    gint64 objects = 0;
    gint64 application = 0;
    if (!store_db_get_int64(db, "SELECT count(*) FROM sqlite_schema", "read the schema", &objects,
                            error) ||
        !store_db_get_int64(db, "PRAGMA application_id", "read the application id", &application,
                            error))
        return FALSE;
    *out_empty = objects == 0 && application == 0;
    return TRUE;
}

static gboolean check_version(StoreDb *db, const char *path, GError **error)
{
    gint64 version = 0;
    if (!store_db_get_int64(db, "PRAGMA user_version", "read the schema's version", &version,
                            error))
        return FALSE;
    if (version >= 1 && version <= BERTH_STORE_SCHEMA_VERSION)
        return TRUE;
    if (version > BERTH_STORE_SCHEMA_VERSION) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "cannot use the state database %s: it has schema %" G_GINT64_FORMAT
                    ", this berthd knows schemas up to %d; run the newer release that wrote it, "
                    "or put back a backup from before the upgrade",
                    path, version, BERTH_STORE_SCHEMA_VERSION);
        return FALSE;
    }
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "cannot use the state database %s: no release ever wrote schema %" G_GINT64_FORMAT
                "; put a backup in its place",
                path, version);
    return FALSE;
}

static gboolean check_integrity(StoreDb *db, const char *path, GError **error)
{
    g_autoptr(StoreStatement) check = store_db_statement(db, "PRAGMA quick_check(3)", error);
    gboolean row = FALSE;
    if (check == NULL || !store_db_step(db, check, "check the integrity", &row, error))
        return FALSE;
    const char *verdict = row ? (const char *)sqlite3_column_text(check, 0) : NULL;
    if (g_strcmp0(verdict, "ok") == 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "the state database %s is damaged: %s; put a backup in its place, or salvage what "
                "can be read with: sqlite3 '%s' .recover | sqlite3 NEW",
                path, verdict != NULL ? verdict : "its check says nothing", path);
    return FALSE;
}

gboolean store_schema_check(StoreDb *db, const char *path, GError **error)
{
    gint64 application = 0;
    if (!store_db_get_int64(db, "PRAGMA application_id", "read the application id", &application,
                            error))
        return FALSE;
    if (application != APPLICATION_ID) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                    "%s is a database, but not Berth's state (application id 0x%x, not 0x%x); "
                    "name another file, or put a backup in its place",
                    path, (guint)application, APPLICATION_ID);
        return FALSE;
    }
    if (!check_version(db, path, error))
        return FALSE;
    store_db_set_long(db, TRUE); /* it reads all of the database */
    gboolean ok = check_integrity(db, path, error);
    store_db_set_long(db, FALSE);
    return ok;
}
