/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Blocking work (libvirt, librbd, SQLite) off the loop: a function runs on a worker thread with
 * inputs that nobody else touches; its result arrives in the caller's main context. */

#include <gio/gio.h>

/* Runs on a worker. INPUT is read, never changed. Returns the result, which may be NULL, or sets
 * ERROR. CANCELLABLE is triggered when nobody waits for the result any more; looking at it is
 * optional. */
typedef gpointer (*BerthWorkFunc)(gconstpointer input, GCancellable *cancellable, GError **error);

typedef struct BerthWorkPool BerthWorkPool;

/* NAME is for messages ("storage"). At most MAX_THREADS functions run at once, and at most
 * MAX_QUEUED wait for a thread: more fail at once with RESOURCE_EXHAUSTED. */
BerthWorkPool *berth_work_pool_new(const char *name, guint max_threads, guint max_queued);
/* Waits for the functions that run; what is queued fails with CANCELLED. Callbacks that are due
 * still arrive when the callers' contexts run. */
void berth_work_pool_free(BerthWorkPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthWorkPool, berth_work_pool_free)
/* The same without waiting: what runs runs on, and its result is dropped unless its caller's context still runs
 * then. */
void berth_work_pool_abandon(BerthWorkPool *pool);

/* Runs FUNC(INPUT). The pool takes INPUT and frees it with INPUT_FREE (may be NULL) when FUNC has
 * returned or will not run. RESULT_FREE (may be NULL) frees a result that nobody takes.
 * WHAT names the work in messages ("create disk d1").
 * TIMEOUT_MSEC (0 = none) counts from now, waiting included. Past it, or when CANCELLABLE (may be
 * NULL) is triggered, CALLBACK gets DEADLINE_EXCEEDED or CANCELLED at once: the function, if it
 * runs, runs on, and its outcome is dropped. CALLBACK arrives exactly once, never from inside this
 * call, in the thread-default main context of this call. */
void berth_work_pool_run(BerthWorkPool *pool, const char *what, BerthWorkFunc func, gpointer input,
                         GDestroyNotify input_free, GDestroyNotify result_free, guint timeout_msec,
                         GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data);
/* CALLBACK gets ERROR (transfer full), as if work had failed with it; never from inside this call. */
void berth_work_fail(GError *error, GAsyncReadyCallback callback, gpointer user_data);
/* What FUNC returned (transfer full). NULL with ERROR unset is a result too. */
gpointer berth_work_finish(GAsyncResult *result, GError **error);
/* For a FUNC that returns NULL always: FALSE if it set ERROR. */
gboolean berth_work_finish_empty(GAsyncResult *result, GError **error);
