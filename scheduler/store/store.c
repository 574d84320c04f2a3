/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a store's life: lock, creation, checks, the writing thread and the readers' connections.
 *
 * A local file is in WAL mode: one writer, and readers that neither wait for it nor hold it up. (But where reads that
 * overlap have kept the log from being emptied until it is long, new ones wait until those under way have ended.) A
 * database on another VFS (Ceph's) is locked exclusively by its one connection, which is also the
 * fence against a second berthd; reads then go through the writing thread. */
#include "scheduler/store/store.h"

#include "common/error.h"
#include "common/write.h"
#include "scheduler/store/batch.h"
#include "scheduler/store/lock.h"
#include "scheduler/store/read.h"
#include "scheduler/store/readers.h"
#include "scheduler/store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many as berthd has threads that read (scheduler/daemon/workers.c): none waits for another. */
#define N_READERS 24

/* A journal that readers have kept from being emptied for long is cut back to this. */
#define JOURNAL_MAX_BYTES (64 << 20)
/* So long at most do reads wait for that: most take some milliseconds. */
#define HOLD_MAX_USEC G_USEC_PER_SEC

struct BerthStore {
    char *path;
    int lock_fd; /* -1 = not a local file */
    StoreWriter *writer;
    StoreReaders *readers; /* NULL = read through the writer */
};

static gboolean is_local(const char *path)
{
    return !g_str_has_prefix(path, "file:");
}

/* --- creation ------------------------------------------------------------------------------- */

static gboolean sync_directory_of(const char *path, GError **error)
{
    if (berth_sync_directory_of(path))
        return TRUE;
    berth_set_error_errno(error, errno, "cannot sync the directory of %s", path);
    return FALSE;
}

static gboolean make_empty_file(const char *path, GError **error)
{
    /* SQLite gives its journal files the mode of the database: nobody else may read the scripts
     * and environments in there. */
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fchmod(fd, 0600) != 0) {
        berth_set_error_errno(error, errno, "cannot create the state database %s", path);
        if (fd >= 0)
            close(fd);
        return FALSE;
    }
    close(fd);
    return TRUE;
}

/* Made under another name and then renamed: a file of that name is complete, and one that has
 * become empty or short is known to be damaged. */
static gboolean create_local(const char *path, GError **error)
{
    g_autofree char *new_path = g_strconcat(path, ".new", NULL);
    if (!make_empty_file(new_path, error))
        return FALSE;
    g_autoptr(StoreDb) db = store_db_open(new_path, STORE_DB_READ_WRITE, error);
    if (db == NULL || !store_schema_create(db, error)) {
        g_unlink(new_path);
        return FALSE;
    }
    g_clear_pointer(&db, store_db_close);
    if (g_rename(new_path, path) != 0) {
        berth_set_error_errno(error, errno, "cannot rename %s to %s", new_path, path);
        return FALSE;
    }
    return sync_directory_of(path, error);
}

static gboolean create_local_if_absent(const char *path, GError **error)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        if (errno == ENOENT)
            return create_local(path, error);
        berth_set_error_errno(error, errno, "cannot look at the state database %s", path);
        return FALSE;
    }
    if (!S_ISREG(status.st_mode)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot use %s as the state database: it is not a file", path);
        return FALSE;
    }
    if (status.st_size == 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                    "the state database %s is empty, which it never is by itself; put a backup in "
                    "its place, or remove it to start with an empty state",
                    path);
        return FALSE;
    }
    return TRUE;
}

static StoreDb *open_local(const char *path, GError **error)
{
    if (!create_local_if_absent(path, error))
        return NULL;
    g_autoptr(StoreDb) db = store_db_open(path, STORE_DB_READ_WRITE, error);
    if (db == NULL || !store_schema_check(db, path, error) ||
        !store_db_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
                       "set up the journal", error) ||
        !store_schema_upgrade(db, error))
        return NULL;
    return g_steal_pointer(&db);
}

/* --- a database elsewhere ------------------------------------------------------------------- */

/* Ceph's VFS waits for the lock without end, and takes it from a holder that died after half a
 * minute: whoever still has it after this is alive. */
#define LOCK_DEADLINE_SEC 40

/* The attempt to get the lock, in a thread of its own because it cannot be told to give up. */
typedef struct {
    char *path;
    GMutex mutex;
    GCond cond;
    gboolean is_done;
    StoreDb *db;
    GError *error;
} Attempt;

static void attempt_clear(gpointer data)
{
    Attempt *attempt = data;
    g_clear_pointer(&attempt->db, store_db_close);
    g_clear_error(&attempt->error);
    g_mutex_clear(&attempt->mutex);
    g_cond_clear(&attempt->cond);
    g_free(attempt->path);
}

static StoreDb *open_locked(const char *path, GError **error)
{
    g_autoptr(StoreDb) db = store_db_open(path, STORE_DB_CREATE, error);
    /* Ceph's VFS has no place for temporary files. */
    if (db == NULL || !store_db_exec(db,
                                     "PRAGMA page_size = 65536; PRAGMA temp_store = MEMORY;"
                                     "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT",
                                     "take the exclusive lock", error))
        return NULL;
    return g_steal_pointer(&db);
}

static gpointer attempt_run(gpointer data)
{
    Attempt *attempt = data;
    GError *error = NULL;
    StoreDb *db = open_locked(attempt->path, &error);
    g_mutex_lock(&attempt->mutex);
    attempt->db = db;
    attempt->error = error;
    attempt->is_done = TRUE;
    g_cond_signal(&attempt->cond);
    g_mutex_unlock(&attempt->mutex);
    g_atomic_rc_box_release_full(attempt, attempt_clear);
    return NULL;
}

/* An attempt that is given up ends by itself when the lock is free, and lets go of it. */
static StoreDb *open_locked_in_time(const char *path, GError **error)
{
    Attempt *attempt = g_atomic_rc_box_new0(Attempt);
    attempt->path = g_strdup(path);
    g_mutex_init(&attempt->mutex);
    g_cond_init(&attempt->cond);
    g_thread_unref(g_thread_new("store-open", attempt_run, g_atomic_rc_box_acquire(attempt)));
    gint64 deadline = g_get_monotonic_time() + LOCK_DEADLINE_SEC * (gint64)G_USEC_PER_SEC;
    g_mutex_lock(&attempt->mutex);
    while (!attempt->is_done && g_cond_wait_until(&attempt->cond, &attempt->mutex, deadline))
        continue;
    StoreDb *db = g_steal_pointer(&attempt->db);
    if (attempt->error != NULL)
        g_propagate_error(error, g_steal_pointer(&attempt->error));
    else if (db == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "cannot lock the state database %s within %d s: another berthd has it, or its "
                    "storage does not answer; stop the other one, or look at the storage",
                    path, LOCK_DEADLINE_SEC);
    g_mutex_unlock(&attempt->mutex);
    g_atomic_rc_box_release_full(attempt, attempt_clear);
    return db;
}

static StoreDb *open_elsewhere(const char *path, GError **error)
{
    g_autoptr(StoreDb) db = open_locked_in_time(path, error);
    gboolean is_empty = FALSE;
    if (db == NULL ||
        !store_db_exec(db, "PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL",
                       "set up the journal", error) ||
        !store_schema_is_empty(db, &is_empty, error) ||
        (is_empty && !store_schema_create(db, error)) || !store_schema_check(db, path, error) ||
        !store_schema_upgrade(db, error))
        return NULL;
    return g_steal_pointer(&db);
}

/* --- opening and closing -------------------------------------------------------------------- */

/* A submission that did not come to an end may have left some. */
static gboolean remove_unused_blobs(StoreDb *db, GError **error)
{
    return store_db_exec(db,
                         "DELETE FROM blob WHERE NOT EXISTS"
                         " (SELECT 1 FROM job_blob WHERE job_blob.sha256 = blob.sha256)",
                         "remove unused blobs", error);
}

/* In the writing thread. */
static void on_long_journal(gboolean is_emptied, gpointer user_data)
{
    StoreReaders *readers = user_data;
    if (is_emptied)
        store_readers_release(readers, TRUE);
    else
        store_readers_hold(readers);
}

static gboolean open_readers(BerthStore *store, StoreDb *writing, GError **error)
{
    store->readers = store_readers_new(store->path, N_READERS, HOLD_MAX_USEC, error);
    if (store->readers == NULL)
        return FALSE;
    store_db_bound_journal(writing, JOURNAL_MAX_BYTES, on_long_journal, store->readers);
    return TRUE;
}

BerthStore *berth_store_open(const char *path, GError **error)
{
    g_autoptr(BerthStore) store = g_new0(BerthStore, 1);
    store->path = g_strdup(path);
    store->lock_fd = -1;
    gboolean local = is_local(path);
    if (local) {
        store->lock_fd = store_lock_take(path, error);
        if (store->lock_fd < 0)
            return NULL;
    }
    g_autoptr(StoreDb) db = local ? open_local(path, error) : open_elsewhere(path, error);
    if (db == NULL || (local && !open_readers(store, db, error)) || !remove_unused_blobs(db, error))
        return NULL;
    store->writer = store_writer_new(g_steal_pointer(&db));
    return g_steal_pointer(&store);
}

void berth_store_close(BerthStore *store)
{
    /* The connection that is closed last is to be the one that can empty the log. */
    if (store->readers != NULL)
        store_readers_close(store->readers);
    g_clear_pointer(&store->writer, store_writer_free);
    g_clear_pointer(&store->readers, store_readers_free);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    g_free(store->path);
    g_free(store);
}

/* --- the two ways in ------------------------------------------------------------------------ */

void berth_store_commit_async(BerthStore *store, BerthStoreBatch *batch,
                              GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, berth_store_commit_async);
    store_writer_commit(store->writer, batch, task);
}

gboolean berth_store_commit_finish(BerthStore *store, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, berth_store_commit_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

typedef struct {
    StoreReadFunc func;
    gpointer data;
} Snapshot;

static gboolean read_snapshot(StoreDb *db, gpointer data, GError **error)
{
    const Snapshot *snapshot = data;
    if (!store_db_exec(db, "BEGIN", "begin to read", error))
        return FALSE;
    gboolean ok = snapshot->func(db, snapshot->data, error);
    /* Nothing was written: this only lets go of the snapshot. */
    store_db_exec(db, "ROLLBACK", "end reading", NULL);
    return ok;
}

/* In the writing thread: nobody reads. */
static gboolean empty_journal(StoreDb *db, gpointer data, GError **error)
{
    store_readers_release(data, store_db_empty_journal(db));
    return TRUE;
}

gboolean store_read(BerthStore *store, StoreReadFunc func, gpointer data, GError **error)
{
    Snapshot snapshot = {.func = func, .data = data};
    if (store->readers == NULL)
        return store_writer_read(store->writer, read_snapshot, &snapshot, error);
    StoreDb *db = store_readers_take(store->readers);
    gboolean ok = read_snapshot(db, &snapshot, error);
    if (store_readers_give(store->readers, db))
        store_writer_read(store->writer, empty_journal, store->readers, NULL);
    return ok;
}

gboolean store_run_on_writer(BerthStore *store, StoreReadFunc func, gpointer data, GError **error)
{
    return store_writer_read(store->writer, func, data, error);
}
