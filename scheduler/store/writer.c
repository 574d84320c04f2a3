/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the writing thread and its connection: group commit. All batches that wait when it is free
 * go into one transaction, so that a sync is shared by all who asked meanwhile.
 *
 * Invariants: requests are served in the order in which they came; a commit is answered after the
 * transaction that holds it is durable; after the first failure nothing is written any more, and
 * every commit is answered with that failure. */
#include "scheduler/store/writer.h"

#include "scheduler/store/batch.h"

typedef struct {
    StoreReadFunc func;
    gpointer data;
    GError **error;
    gboolean ok;
    gboolean done;
    GMutex mutex;
    GCond cond;
} ReadCall;

/* One of: a commit (batch, task), a read, or neither: the end. */
typedef struct {
    BerthStoreBatch *batch;
    GTask *task;
    ReadCall *read;
} Request;

struct StoreWriter {
    StoreDb *db;
    GAsyncQueue *requests; /* Request */
    GThread *thread;
    GError *failure; /* of the writing thread only */
};

static void request_free(Request *request)
{
    g_clear_pointer(&request->batch, berth_store_batch_free);
    g_clear_object(&request->task);
    g_free(request);
}

static gboolean write_group(StoreWriter *writer, GPtrArray *group, GError **error)
{
    if (!store_db_exec(writer->db, "BEGIN IMMEDIATE", "begin a transaction", error))
        return FALSE;
    for (guint i = 0; i < group->len; i++) {
        const Request *request = g_ptr_array_index(group, i);
        if (!store_batch_apply(request->batch, writer->db, error))
            return FALSE;
    }
    return store_db_exec(writer->db, "COMMIT", "commit a transaction", error);
}

static void commit_group(StoreWriter *writer, GPtrArray *group)
{
    if (writer->failure == NULL && !write_group(writer, group, &writer->failure))
        /* Fails harmlessly where SQLite has rolled back by itself. */
        store_db_exec(writer->db, "ROLLBACK", "roll back a transaction", NULL);
    for (guint i = 0; i < group->len; i++) {
        const Request *request = g_ptr_array_index(group, i);
        if (writer->failure != NULL)
            g_task_return_error(request->task, g_error_copy(writer->failure));
        else
            g_task_return_boolean(request->task, TRUE);
    }
    g_ptr_array_set_size(group, 0);
}

static void answer_read(StoreWriter *writer, ReadCall *call)
{
    gboolean ok = call->func(writer->db, call->data, call->error);
    g_mutex_lock(&call->mutex);
    call->ok = ok;
    call->done = TRUE;
    g_cond_signal(&call->cond);
    g_mutex_unlock(&call->mutex);
}

static gpointer writer_run(gpointer data)
{
    StoreWriter *writer = data;
    g_autoptr(GPtrArray) group = g_ptr_array_new_with_free_func((GDestroyNotify)request_free);
    for (;;) {
        Request *request = g_async_queue_pop(writer->requests);
        while (request != NULL && request->batch != NULL) {
            g_ptr_array_add(group, request);
            request = g_async_queue_try_pop(writer->requests);
        }
        if (group->len > 0)
            commit_group(writer, group);
        if (request == NULL)
            continue;
        ReadCall *read = request->read;
        request_free(request);
        if (read == NULL)
            return NULL;
        answer_read(writer, read);
    }
}

StoreWriter *store_writer_new(StoreDb *db)
{
    StoreWriter *writer = g_new0(StoreWriter, 1);
    writer->db = db;
    writer->requests = g_async_queue_new();
    writer->thread = g_thread_new("store", writer_run, writer);
    return writer;
}

void store_writer_free(StoreWriter *writer)
{
    g_async_queue_push(writer->requests, g_new0(Request, 1));
    g_thread_join(writer->thread);
    g_async_queue_unref(writer->requests);
    store_db_close(writer->db);
    g_clear_error(&writer->failure);
    g_free(writer);
}

void store_writer_commit(StoreWriter *writer, BerthStoreBatch *batch, GTask *task)
{
    Request *request = g_new0(Request, 1);
    request->batch = batch;
    request->task = task;
    g_async_queue_push(writer->requests, request);
}

gboolean store_writer_read(StoreWriter *writer, StoreReadFunc func, gpointer data, GError **error)
{
    ReadCall call = {.func = func, .data = data, .error = error};
    g_mutex_init(&call.mutex);
    g_cond_init(&call.cond);
    Request *request = g_new0(Request, 1);
    request->read = &call;
    g_async_queue_push(writer->requests, request);
    g_mutex_lock(&call.mutex);
    while (!call.done)
        g_cond_wait(&call.cond, &call.mutex);
    g_mutex_unlock(&call.mutex);
    g_cond_clear(&call.cond);
    g_mutex_clear(&call.mutex);
    return call.ok;
}
