/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a batch: the list of changes that the loop fills, and how each is written. What is packed
 * here needs nothing of its origin any more, so that a batch can go to another thread. */
#include "scheduler/store/batch.h"

#include "common/error.h"
#include "scheduler/store/history.h"

#define SHA256_BYTES 32

typedef enum {
    CHANGE_ADD_JOB,
    CHANGE_UPDATE_JOB,
    CHANGE_PUT_TASK,
    CHANGE_PUT_NODE,
    CHANGE_PUT_IMAGE,
    CHANGE_REMOVE_IMAGE,
    CHANGE_PUT_UNWANTED,
    CHANGE_REMOVE_UNWANTED,
    CHANGE_PUT_BLOB,
    CHANGE_ADD_EVENT,
    CHANGE_PUT_USE,
    CHANGE_PUT_PRIOR,
    CHANGE_REMOVE_PRIOR,
    CHANGE_RESERVE_JOBS,
    CHANGE_REMOVE_OLD,
    CHANGE_REMOVE_EVENTS,
    CHANGE_REMOVE_BLOB,
    N_CHANGES,
} ChangeKind;

/* Which fields count, by kind: see the functions that make them. */
typedef struct {
    ChangeKind kind;
    gboolean done;
    guint32 task;
    guint32 rest_last; /* of the tasks for which this one stands */
    guint32 uid;
    int state; /* or why an object is unwanted */
    guint32 unstarted;
    guint64 number; /* of the job or event; or what is reserved */
    guint64 job;    /* of an event; 0 = of none; or the next one */
    GBytes *record; /* or a blob's content */
    GBytes *spec;
    GBytes *digests; /* of the blobs that a job names, one after the other; or of one blob */
    BerthStoreOldJob old;
    char *name; /* of a node, image, use or prior, an idempotency key, or the id of an object */
} Change;

struct BerthStoreBatch {
    GArray *changes; /* Change */
};

static void change_clear(gpointer data)
{
    Change *change = data;
    g_clear_pointer(&change->record, g_bytes_unref);
    g_clear_pointer(&change->spec, g_bytes_unref);
    g_clear_pointer(&change->digests, g_bytes_unref);
    g_clear_pointer(&change->name, g_free);
}

BerthStoreBatch *berth_store_batch_new(void)
{
    BerthStoreBatch *batch = g_new(BerthStoreBatch, 1);
    batch->changes = g_array_new(FALSE, FALSE, sizeof(Change));
    g_array_set_clear_func(batch->changes, change_clear);
    return batch;
}

void berth_store_batch_free(BerthStoreBatch *batch)
{
    g_array_unref(batch->changes);
    g_free(batch);
}

gboolean berth_store_batch_is_empty(const BerthStoreBatch *batch)
{
    return batch->changes->len == 0;
}

/* --- filling -------------------------------------------------------------------------------- */

static guint32 count_unstarted(const Berth__Job *job)
{
    guint32 count = 0;
    for (gsize i = 0; i < job->n_unstarted; i++) {
        const Berth__IndexRange *range = job->unstarted[i];
        count += (range->last - range->first) / MAX(range->step, 1) + 1;
    }
    return count;
}

/* A job's record has neither spec nor tasks: they have records of their own. */
static GBytes *pack_job(const Berth__Job *job)
{
    Berth__Job bare = *job;
    bare.spec = NULL;
    bare.tasks = NULL;
    bare.n_tasks = 0;
    return store_pack(&bare.base);
}

static void append_digest(GByteArray *digests, const Berth__BlobRef *blob)
{
    if (blob != NULL && blob->sha256.len == SHA256_BYTES)
        g_byte_array_append(digests, blob->sha256.data, SHA256_BYTES);
}

GBytes *store_digests_of(const Berth__JobSpec *spec)
{
    GByteArray *digests = g_byte_array_new();
    append_digest(digests, spec->script);
    append_digest(digests, spec->environment);
    for (gsize i = 0; i < spec->n_inputs; i++)
        append_digest(digests, spec->inputs[i]->blob);
    if (spec->each != NULL)
        append_digest(digests, spec->each->blob);
    return g_byte_array_free_to_bytes(digests);
}

void berth_store_batch_add_job(BerthStoreBatch *batch, const Berth__Job *job,
                               const Berth__JobSpec *spec, const char *idempotency_key)
{
    gboolean has_key = idempotency_key != NULL && *idempotency_key != '\0';
    Change change = {.kind = CHANGE_ADD_JOB,
                     .number = job->id,
                     .uid = job->uid,
                     .state = (int)job->state,
                     .unstarted = count_unstarted(job),
                     .record = pack_job(job),
                     .spec = store_pack(&spec->base),
                     .digests = store_digests_of(spec),
                     .name = has_key ? g_strdup(idempotency_key) : NULL};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_update_job(BerthStoreBatch *batch, const Berth__Job *job)
{
    Change change = {.kind = CHANGE_UPDATE_JOB,
                     .number = job->id,
                     .state = (int)job->state,
                     .unstarted = count_unstarted(job),
                     .record = pack_job(job)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_put_task(BerthStoreBatch *batch, const Berth__StoredTask *task,
                                gboolean is_done)
{
    g_return_if_fail(task->task != NULL);
    Change change = {.kind = CHANGE_PUT_TASK,
                     .number = task->task->job,
                     .task = task->task->index,
                     .rest_last = task->task->rest_step > 0 ? task->task->rest_last : 0,
                     .done = is_done,
                     .record = store_pack(&task->base)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_put_node(BerthStoreBatch *batch, const Berth__StoredNode *node)
{
    g_return_if_fail(node->info != NULL);
    Change change = {.kind = CHANGE_PUT_NODE,
                     .record = store_pack(&node->base),
                     .name = g_strdup(node->info->name)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_put_image(BerthStoreBatch *batch, const Berth__Image *image)
{
    Change change = {.kind = CHANGE_PUT_IMAGE,
                     .record = store_pack(&image->base),
                     .name = g_strdup(image->name)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_remove_image(BerthStoreBatch *batch, const char *name)
{
    Change change = {.kind = CHANGE_REMOVE_IMAGE, .name = g_strdup(name)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_put_unwanted(BerthStoreBatch *batch, const char *id, BerthUnwanted why)
{
    Change change = {.kind = CHANGE_PUT_UNWANTED, .state = (int)why, .name = g_strdup(id)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_remove_unwanted(BerthStoreBatch *batch, const char *id)
{
    Change change = {.kind = CHANGE_REMOVE_UNWANTED, .name = g_strdup(id)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_put_blob(BerthStoreBatch *batch, const guint8 sha256[32], GBytes *content)
{
    Change change = {.kind = CHANGE_PUT_BLOB,
                     .record = g_bytes_ref(content),
                     .digests = g_bytes_new(sha256, SHA256_BYTES)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_remove_old(BerthStoreBatch *batch, const BerthStoreOldJob *old)
{
    Change change = {.kind = CHANGE_REMOVE_OLD, .old = *old};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_remove_events(BerthStoreBatch *batch, guint64 up_to_seq)
{
    Change change = {.kind = CHANGE_REMOVE_EVENTS, .number = up_to_seq};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_remove_blob(BerthStoreBatch *batch, GBytes *sha256)
{
    Change change = {.kind = CHANGE_REMOVE_BLOB, .digests = g_bytes_ref(sha256)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_add_event(BerthStoreBatch *batch, const Berth__Event *event)
{
    Change change = {.kind = CHANGE_ADD_EVENT,
                     .number = event->seq,
                     .job = event->job,
                     .record = store_pack(&event->base)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_put_use(BerthStoreBatch *batch, const Berth__StoredUse *use)
{
    Change change = {.kind = CHANGE_PUT_USE,
                     .record = store_pack(&use->base),
                     .name = use->is_user ? g_strdup_printf("user %u/%u", use->account, use->uid)
                                          : g_strdup_printf("account %u", use->account)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_put_prior(BerthStoreBatch *batch, const Berth__StoredPrior *prior)
{
    Change change = {.kind = prior->siblings > 0 ? CHANGE_PUT_PRIOR : CHANGE_REMOVE_PRIOR,
                     .record = store_pack(&prior->base),
                     .name = g_strdup_printf("%u/%" G_GUINT64_FORMAT "/%u/%" G_GUINT64_FORMAT,
                                             prior->uid, prior->family, prior->vcpus,
                                             prior->memory_mib)};
    g_array_append_val(batch->changes, change);
}

void berth_store_batch_reserve_jobs(BerthStoreBatch *batch, guint64 jobs_reserved, guint64 next_job)
{
    Change change = {.kind = CHANGE_RESERVE_JOBS, .number = jobs_reserved, .job = next_job};
    g_array_append_val(batch->changes, change);
}

/* --- writing -------------------------------------------------------------------------------- */

static gboolean add_spec(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) insert =
        store_db_statement(db, "INSERT INTO spec (job, record) VALUES (?1, ?2)", error);
    if (insert == NULL)
        return FALSE;
    store_bind_uint64(insert, 1, change->number);
    store_bind_bytes(insert, 2, change->spec);
    return store_db_run(db, insert, "add a job's specification", NULL, error);
}

static gboolean add_blob_references(StoreDb *db, const Change *change, GError **error)
{
    gsize size = 0;
    const guint8 *digests = g_bytes_get_data(change->digests, &size);
    for (gsize at = 0; at < size; at += SHA256_BYTES) {
        g_autoptr(StoreStatement) insert = store_db_statement(
            db, "INSERT OR IGNORE INTO job_blob (sha256, job) VALUES (?1, ?2)", error);
        if (insert == NULL)
            return FALSE;
        sqlite3_bind_blob(insert, 1, digests + at, SHA256_BYTES, SQLITE_STATIC);
        store_bind_uint64(insert, 2, change->number);
        if (!store_db_run(db, insert, "note a job's blob", NULL, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean add_key(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) insert = store_db_statement(
        db, "INSERT INTO idempotency (uid, key, job) VALUES (?1, ?2, ?3)", error);
    if (insert == NULL)
        return FALSE;
    sqlite3_bind_int64(insert, 1, change->uid);
    sqlite3_bind_text(insert, 2, change->name, -1, SQLITE_STATIC);
    store_bind_uint64(insert, 3, change->number);
    return store_db_run(db, insert, "add an idempotency key", NULL, error);
}

static gboolean apply_add_job(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) insert = store_db_statement(
        db, "INSERT INTO job (id, uid, state, record, unstarted) VALUES (?1, ?2, ?3, ?4, ?5)",
        error);
    if (insert == NULL)
        return FALSE;
    store_bind_uint64(insert, 1, change->number);
    sqlite3_bind_int64(insert, 2, change->uid);
    sqlite3_bind_int(insert, 3, change->state);
    store_bind_bytes(insert, 4, change->record);
    sqlite3_bind_int64(insert, 5, change->unstarted);
    return store_db_run(db, insert, "add a job", NULL, error) && add_spec(db, change, error) &&
           add_blob_references(db, change, error) &&
           (change->name == NULL || add_key(db, change, error));
}

static gboolean set_error_unknown_job(const Change *change, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL,
                "cannot change job %" G_GUINT64_FORMAT " in the state database: it has no such job",
                change->number);
    return FALSE;
}

/* A job is open while one of its tasks is not done. */
#define SOME_OPEN "EXISTS (SELECT 1 FROM task WHERE task.job = ?1 AND done = 0)"

static gboolean apply_update_job(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) update = store_db_statement(
        db,
        "UPDATE job SET state = ?2, record = ?3, unstarted = ?4, open = ?4 > 0 OR " SOME_OPEN
        " WHERE id = ?1",
        error);
    if (update == NULL)
        return FALSE;
    store_bind_uint64(update, 1, change->number);
    sqlite3_bind_int(update, 2, change->state);
    store_bind_bytes(update, 3, change->record);
    sqlite3_bind_int64(update, 4, change->unstarted);
    guint changed = 0;
    if (!store_db_run(db, update, "update a job", &changed, error))
        return FALSE;
    return changed == 1 || set_error_unknown_job(change, error);
}

static gboolean refresh_open(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) update = store_db_statement(
        db, "UPDATE job SET open = unstarted > 0 OR " SOME_OPEN " WHERE id = ?1", error);
    if (update == NULL)
        return FALSE;
    store_bind_uint64(update, 1, change->number);
    guint changed = 0;
    if (!store_db_run(db, update, "update a job", &changed, error))
        return FALSE;
    return changed == 1 || set_error_unknown_job(change, error);
}

static gboolean apply_put_task(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) put =
        store_db_statement(db,
                           "INSERT OR REPLACE INTO task (job, number, done, record, rest_last)"
                           " VALUES (?1, ?2, ?3, ?4, ?5)",
                           error);
    if (put == NULL)
        return FALSE;
    store_bind_uint64(put, 1, change->number);
    sqlite3_bind_int64(put, 2, change->task);
    sqlite3_bind_int(put, 3, change->done ? 1 : 0);
    store_bind_bytes(put, 4, change->record);
    sqlite3_bind_int64(put, 5, change->rest_last);
    return store_db_run(db, put, "write a task", NULL, error) && refresh_open(db, change, error);
}

static gboolean put_named(StoreDb *db, const Change *change, const char *sql, const char *what,
                          GError **error)
{
    g_autoptr(StoreStatement) put = store_db_statement(db, sql, error);
    if (put == NULL)
        return FALSE;
    sqlite3_bind_text(put, 1, change->name, -1, SQLITE_STATIC);
    store_bind_bytes(put, 2, change->record);
    return store_db_run(db, put, what, NULL, error);
}

static gboolean apply_put_node(StoreDb *db, const Change *change, GError **error)
{
    return put_named(db, change, "INSERT OR REPLACE INTO node (name, record) VALUES (?1, ?2)",
                     "write a node", error);
}

static gboolean apply_put_image(StoreDb *db, const Change *change, GError **error)
{
    return put_named(db, change, "INSERT OR REPLACE INTO image (name, record) VALUES (?1, ?2)",
                     "write an image", error);
}

static gboolean remove_named(StoreDb *db, const Change *change, const char *sql, const char *what,
                             GError **error)
{
    g_autoptr(StoreStatement) remove = store_db_statement(db, sql, error);
    if (remove == NULL)
        return FALSE;
    sqlite3_bind_text(remove, 1, change->name, -1, SQLITE_STATIC);
    return store_db_run(db, remove, what, NULL, error);
}

static gboolean apply_remove_image(StoreDb *db, const Change *change, GError **error)
{
    return remove_named(db, change, "DELETE FROM image WHERE name = ?1", "remove an image", error);
}

static gboolean apply_put_unwanted(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) put = store_db_statement(
        db, "INSERT OR REPLACE INTO unwanted_image (id, reason) VALUES (?1, ?2)", error);
    if (put == NULL)
        return FALSE;
    sqlite3_bind_text(put, 1, change->name, -1, SQLITE_STATIC);
    sqlite3_bind_int(put, 2, change->state);
    return store_db_run(db, put, "note an object to be removed", NULL, error);
}

static gboolean apply_remove_unwanted(StoreDb *db, const Change *change, GError **error)
{
    return remove_named(db, change, "DELETE FROM unwanted_image WHERE id = ?1",
                        "forget an object that was removed", error);
}

static gboolean apply_put_use(StoreDb *db, const Change *change, GError **error)
{
    return put_named(db, change, "INSERT OR REPLACE INTO used (name, record) VALUES (?1, ?2)",
                     "write what was used", error);
}

/* A row that is written again gets a new rowid, above all others. */
static gboolean apply_put_prior(StoreDb *db, const Change *change, GError **error)
{
    return put_named(db, change, "INSERT OR REPLACE INTO prior (name, record) VALUES (?1, ?2)",
                     "write what a family needed", error);
}

static gboolean apply_remove_prior(StoreDb *db, const Change *change, GError **error)
{
    return remove_named(db, change, "DELETE FROM prior WHERE name = ?1",
                        "remove what a family needed", error);
}

/* The same digest is the same content: what is there stays. */
static gboolean apply_put_blob(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) put = store_db_statement(
        db, "INSERT OR IGNORE INTO blob (sha256, content) VALUES (?1, ?2)", error);
    if (put == NULL)
        return FALSE;
    store_bind_bytes(put, 1, change->digests);
    store_bind_bytes(put, 2, change->record);
    return store_db_run(db, put, "write a blob", NULL, error);
}

static gboolean apply_add_event(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) insert =
        store_db_statement(db, "INSERT INTO event (seq, job, record) VALUES (?1, ?2, ?3)", error);
    if (insert == NULL)
        return FALSE;
    store_bind_uint64(insert, 1, change->number);
    store_bind_uint64(insert, 2, change->job);
    store_bind_bytes(insert, 3, change->record);
    return store_db_run(db, insert, "add an event", NULL, error);
}

static gboolean apply_reserve_jobs(StoreDb *db, const Change *change, GError **error)
{
    g_autoptr(StoreStatement) update = store_db_statement(
        db, "UPDATE identity SET jobs_reserved = ?1, next_job = max(next_job, ?2)", error);
    if (update == NULL)
        return FALSE;
    store_bind_uint64(update, 1, change->number);
    store_bind_uint64(update, 2, change->job);
    return store_db_run(db, update, "reserve job numbers", NULL, error);
}

static gboolean apply_remove_old(StoreDb *db, const Change *change, GError **error)
{
    return store_history_remove(db, &change->old, error);
}

static gboolean apply_remove_events(StoreDb *db, const Change *change, GError **error)
{
    return store_history_remove_events(db, change->number, error);
}

static gboolean apply_remove_blob(StoreDb *db, const Change *change, GError **error)
{
    return store_history_remove_blob(db, change->digests, error);
}

gboolean store_batch_apply(const BerthStoreBatch *batch, StoreDb *db, GError **error)
{
    static gboolean (*const apply[N_CHANGES])(StoreDb *, const Change *, GError **) = {
        [CHANGE_ADD_JOB] = apply_add_job,
        [CHANGE_UPDATE_JOB] = apply_update_job,
        [CHANGE_PUT_TASK] = apply_put_task,
        [CHANGE_PUT_NODE] = apply_put_node,
        [CHANGE_PUT_IMAGE] = apply_put_image,
        [CHANGE_REMOVE_IMAGE] = apply_remove_image,
        [CHANGE_PUT_UNWANTED] = apply_put_unwanted,
        [CHANGE_REMOVE_UNWANTED] = apply_remove_unwanted,
        [CHANGE_PUT_BLOB] = apply_put_blob,
        [CHANGE_ADD_EVENT] = apply_add_event,
        [CHANGE_PUT_USE] = apply_put_use,
        [CHANGE_PUT_PRIOR] = apply_put_prior,
        [CHANGE_REMOVE_PRIOR] = apply_remove_prior,
        [CHANGE_RESERVE_JOBS] = apply_reserve_jobs,
        [CHANGE_REMOVE_OLD] = apply_remove_old,
        [CHANGE_REMOVE_EVENTS] = apply_remove_events,
        [CHANGE_REMOVE_BLOB] = apply_remove_blob,
    };
    for (guint i = 0; i < batch->changes->len; i++) {
        const Change *change = &g_array_index(batch->changes, Change, i);
        if (!apply[change->kind](db, change, error))
            return FALSE;
    }
    return TRUE;
}
