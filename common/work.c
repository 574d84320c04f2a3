/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way of blocking functions to worker threads and of their results back. Does not own
 * what they do, nor their order.
 *
 * A Work is shared by its caller's main context (timer, cancellation, the answer) and by a worker
 * (the function). Everything that decides lives in the caller's context, so that the first of
 * result, deadline and cancellation answers and the rest is dropped, without a lock. The worker
 * only fills `result` and `reason`, and hands them over by a source in that context. */
#include "common/work.h"

#include "common/error.h"

struct BerthWorkPool {
    gatomicrefcount
        refs; /* the owner's, and one for each piece of work until a worker is done with it */
    char *name;
    GThreadPool *threads;
    guint max_queued;
    gint stopping; /* atomic */
};

typedef struct {
    gatomicrefcount refs;
    BerthWorkPool *pool; /* the worker's reference */
    char *what;
    BerthWorkFunc func;
    gpointer input;
    GDestroyNotify input_free;
    GDestroyNotify result_free;
    GCancellable *abandoned; /* triggered when nobody waits any more */
    GMainContext *context;
    /* the worker's until it has handed over, the context's from then on */
    gpointer result;
    GError *reason;
    /* the context's */
    GTask *task; /* NULL once answered */
    guint timeout_msec;
    GSource *timer;
    GSource *cancelled;
} Work;

static Work *work_ref(Work *work)
{
    g_atomic_ref_count_inc(&work->refs);
    return work;
}

static void work_unref(gpointer data)
{
    Work *work = data;
    if (!g_atomic_ref_count_dec(&work->refs))
        return;
    if (work->result != NULL && work->result_free != NULL)
        work->result_free(work->result);
    g_clear_error(&work->reason);
    g_clear_object(&work->task);
    g_object_unref(work->abandoned);
    g_main_context_unref(work->context);
    g_free(work->what);
    g_free(work);
}

static void clear_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

/* Takes the task for an answer; NULL if there was one already. In the caller's context. */
static GTask *take_task(Work *work)
{
    clear_source(&work->timer);
    clear_source(&work->cancelled);
    return g_steal_pointer(&work->task);
}

static gboolean on_done(gpointer data)
{
    Work *work = data;
    g_autoptr(GTask) task = take_task(work);
    if (task == NULL)
        return G_SOURCE_REMOVE;
    if (work->reason != NULL)
        g_task_return_error(task, g_steal_pointer(&work->reason));
    else
        g_task_return_pointer(task, g_steal_pointer(&work->result), work->result_free);
    return G_SOURCE_REMOVE;
}

static gboolean on_timeout(gpointer data)
{
    Work *work = data;
    g_autoptr(GTask) task = take_task(work);
    g_cancellable_cancel(work->abandoned);
    g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                            "%s: not done after %u ms; it may still take effect", work->what,
                            work->timeout_msec);
    return G_SOURCE_REMOVE;
}

static gboolean on_cancelled(GCancellable *cancellable, gpointer data)
{
    Work *work = data;
    g_autoptr(GTask) task = take_task(work);
    g_cancellable_cancel(work->abandoned);
    g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_CANCELLED, "%s: cancelled", work->what);
    return G_SOURCE_REMOVE;
}

static void pool_unref(BerthWorkPool *pool)
{
    if (!g_atomic_ref_count_dec(&pool->refs))
        return;
    g_free(pool->name);
    g_free(pool);
}

/* On a worker. */
static void run_work(gpointer data, gpointer pool_data)
{
    Work *work = data;
    if (g_atomic_int_get(&work->pool->stopping))
        g_set_error(&work->reason, BERTH_ERROR, BERTH_ERROR_CANCELLED, "%s: %s is shutting down",
                    work->what, work->pool->name);
    else if (!g_cancellable_is_cancelled(work->abandoned))
        work->result = work->func(work->input, work->abandoned, &work->reason);
    if (work->input_free != NULL)
        work->input_free(g_steal_pointer(&work->input));
    pool_unref(g_steal_pointer(&work->pool));

    g_autoptr(GSource) done = g_idle_source_new();
    g_source_set_priority(done, G_PRIORITY_DEFAULT);
    g_source_set_callback(done, on_done, work, work_unref);
    g_source_attach(done, work->context);
}

BerthWorkPool *berth_work_pool_new(const char *name, guint max_threads, guint max_queued)
{
    BerthWorkPool *pool = g_new0(BerthWorkPool, 1);
    g_atomic_ref_count_init(&pool->refs);
    pool->name = g_strdup(name);
    pool->max_queued = max_queued;
    pool->threads = g_thread_pool_new(run_work, NULL, (gint)max_threads, FALSE, NULL);
    return pool;
}

void berth_work_pool_free(BerthWorkPool *pool)
{
    if (pool == NULL)
        return;
    g_atomic_int_set(&pool->stopping, 1);
    g_thread_pool_free(pool->threads, FALSE, TRUE);
    pool_unref(pool);
}

void berth_work_pool_abandon(BerthWorkPool *pool)
{
    g_atomic_int_set(&pool->stopping, 1);
    g_thread_pool_free(pool->threads, FALSE, FALSE);
    pool_unref(pool);
}

static Work *work_new(BerthWorkPool *pool, const char *what, BerthWorkFunc func, gpointer input,
                      GDestroyNotify input_free, GDestroyNotify result_free)
{
    Work *work = g_new0(Work, 1);
    g_atomic_ref_count_init(&work->refs);
    g_atomic_ref_count_inc(&pool->refs);
    work->pool = pool;
    work->what = g_strdup(what);
    work->func = func;
    work->input = input;
    work->input_free = input_free;
    work->result_free = result_free;
    work->abandoned = g_cancellable_new();
    work->context = g_main_context_ref_thread_default();
    return work;
}

static GSource *attach(Work *work, GSource *source, GSourceFunc func)
{
    g_source_set_callback(source, func, work_ref(work), work_unref);
    g_source_attach(source, work->context);
    return source;
}

void berth_work_pool_run(BerthWorkPool *pool, const char *what, BerthWorkFunc func, gpointer input,
                         GDestroyNotify input_free, GDestroyNotify result_free, guint timeout_msec,
                         GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, berth_work_pool_run);
    if (g_thread_pool_unprocessed(pool->threads) >= pool->max_queued) {
        if (input_free != NULL)
            input_free(input);
        g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                                "%s: %u pieces of work wait for %s already; try again later", what,
                                pool->max_queued, pool->name);
        return;
    }
    Work *work = work_new(pool, what, func, input, input_free, result_free);
    work->task = g_steal_pointer(&task);
    work->timeout_msec = timeout_msec;
    if (timeout_msec > 0)
        work->timer = attach(work, g_timeout_source_new(timeout_msec), on_timeout);
    if (cancellable != NULL)
        work->cancelled =
            attach(work, g_cancellable_source_new(cancellable), G_SOURCE_FUNC(on_cancelled));
    g_thread_pool_push(pool->threads, work, NULL);
}

void berth_work_fail(GError *error, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, berth_work_pool_run);
    g_task_return_error(task, error);
}

gpointer berth_work_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, berth_work_pool_run), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

gboolean berth_work_finish_empty(GAsyncResult *result, GError **error)
{
    g_autoptr(GError) reason = NULL;
    berth_work_finish(result, &reason);
    if (reason == NULL)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&reason));
    return FALSE;
}
