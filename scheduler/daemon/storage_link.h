/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/workers.h"
#include "storage/storage.h"

/* The daemon's way to storage: opened in the background and again until it works, checked from
 * time to time, and used on worker threads only. */

typedef struct BerthStorageLink BerthStorageLink;

/* CONFIG and WORKERS outlive the link. CHECK_INTERVAL_SEC: between checks while storage answers; while it
 * does not, it is tried after 1 s, and then twice as long each time up to this. */
BerthStorageLink *berth_storage_link_new(const BerthStorageConfig *config, BerthWorkers *workers,
                                         guint check_interval_sec);
/* Nothing may be under way: see berth_workers_drain(). */
void berth_storage_link_free(BerthStorageLink *link);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStorageLink, berth_storage_link_free)

/* FUNC decides on a worker whether what was just opened (IS_NEW), or is being checked, may be used;
 * one call with IS_NEW at a time, when nothing was written to storage yet. FAILED_PRECONDITION: it is not ours, and is let go of until it is: tried
 * again as storage that does not answer. Before the start. */
typedef gboolean (*BerthStorageGuardFunc)(BerthStorage *storage, gboolean is_new,
                                          gpointer user_data, GError **error);
void berth_storage_link_set_guard(BerthStorageLink *link, BerthStorageGuardFunc func,
                                  gpointer user_data);
/* Begins to open it. FUNC after the first attempt, or when that takes longer than two operations may
 * (op_timeout; UNAVAILABLE then), and whenever the answer changes; ERROR is NULL
 * while storage answers, and berth_storage_link_is_foreign() of one that answers but is not ours. */
typedef void (*BerthStorageChangedFunc)(const GError *error, gpointer user_data);
void berth_storage_link_start(BerthStorageLink *link, BerthStorageChangedFunc func,
                              gpointer user_data);
/* A node says that it does not answer: looks now, and not only when the next check is due. */
void berth_storage_link_doubt(BerthStorageLink *link);
/* No more attempts and checks. */
void berth_storage_link_stop(BerthStorageLink *link);

/* Is ADDRESS the client of a handle that the daemon has, be it one that was replaced and that
 * somebody still uses? */
gboolean berth_storage_link_is_own(BerthStorageLink *link, const char *address);

/* "rbd" or "dir", as configured. */
const char *berth_storage_link_kind(BerthStorageLink *link);
/* (transfer none) */
BerthWorkers *berth_storage_link_workers(BerthStorageLink *link);
/* Does ERROR say that storage answers, but is not ours? */
gboolean berth_storage_link_is_foreign(const GError *error);
/* NULL while storage answers, else why it does not. */
const char *berth_storage_link_error(BerthStorageLink *link);

/* FUNC on a worker of a STORAGE lane, with INPUT that nobody else touches; the result comes by berth_work_finish().
 * What comes before FUNC of berth_storage_link_start() was called waits for that. UNAVAILABLE while
 * storage was never open. UID as in berth_workers_run_for(), INPUT_FREE and RESULT_FREE as in
 * berth_work_pool_run(). */
typedef gpointer (*BerthStorageFunc)(BerthStorage *storage, gconstpointer input, GError **error);
void berth_storage_link_run_for(BerthStorageLink *link, BerthLane lane, guint32 uid,
                                const char *what, BerthStorageFunc func, gpointer input,
                                GDestroyNotify input_free, GDestroyNotify result_free,
                                GAsyncReadyCallback callback, gpointer user_data);
/* The same for the daemon itself, and given up with DEADLINE_EXCEEDED after the time that N_OPS operations
 * may take; FUNC returns NULL, and may run on until the workers are freed. */
void berth_storage_link_run_within(BerthStorageLink *link, BerthLane lane, const char *what,
                                   guint n_ops, BerthStorageFunc func, gpointer input,
                                   GDestroyNotify input_free, GAsyncReadyCallback callback,
                                   gpointer user_data);
/* The same for the daemon itself. */
void berth_storage_link_run(BerthStorageLink *link, BerthLane lane, const char *what,
                            BerthStorageFunc func, gpointer input, GDestroyNotify input_free,
                            GDestroyNotify result_free, GAsyncReadyCallback callback,
                            gpointer user_data);
