/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/work.h"

/* The daemon's worker threads, in lanes that do not wait for each other: a storage that hangs must
 * not keep anybody from reading the queue. Within a lane users take turns, and none has all of its
 * threads: what one of them asks for delays the others by one piece of work. How much a user may
 * have waiting is bounded by the calls that a user may have open. */

typedef enum {
    BERTH_LANE_READ,            /* the store, for users */
    BERTH_LANE_NAMES,           /* the system's user database, for users */
    BERTH_LANE_START,           /* both, for guests that are to start */
    BERTH_LANE_STORAGE_CONTROL, /* fences and checks */
    BERTH_LANE_STORAGE_DATA,    /* logs, blobs, images */
    BERTH_LANE_STORAGE_CLEAN,   /* garbage */
    BERTH_LANE_OUTPUT,          /* output to users' files, which may be on anything */
    BERTH_N_LANES,
} BerthLane;

typedef struct BerthWorkers BerthWorkers;
BerthWorkers *berth_workers_new(void);
/* Nothing may be in flight: see berth_workers_drain(). */
void berth_workers_free(BerthWorkers *workers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthWorkers, berth_workers_free)

/* For whom work is done: a uid, or the daemon itself, which may have all threads of a lane. */
#define BERTH_WORKERS_SELF G_MAXUINT32

/* As berth_work_pool_run(), without a cancellable. */
void berth_workers_run_for(BerthWorkers *workers, BerthLane lane, guint32 uid, const char *what,
                           BerthWorkFunc func, gpointer input, GDestroyNotify input_free,
                           GDestroyNotify result_free, guint timeout_msec,
                           GAsyncReadyCallback callback, gpointer user_data);
/* The same for the daemon itself. */
void berth_workers_run(BerthWorkers *workers, BerthLane lane, const char *what, BerthWorkFunc func,
                       gpointer input, GDestroyNotify input_free, GDestroyNotify result_free,
                       guint timeout_msec, GAsyncReadyCallback callback, gpointer user_data);

/* Runs the main context until nothing is in flight, at most TIMEOUT_MSEC. FALSE: something is. */
gboolean berth_workers_drain(BerthWorkers *workers, guint timeout_msec);
