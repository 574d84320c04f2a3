/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/pb.h"

/* What a node is told about a guest that it is to start. The job's specification, its small blobs
 * and the user's groups are looked up on a worker: they are in no memory before. */

/* Bytes of the largest task that SPEC can become, whoever's it is and wherever it runs. */
gsize berth_start_request_task_bytes_max(const Berth__JobSpec *spec);

/* FUNC on the loop: REQUEST (transfer full), or NULL and ERROR. */
typedef void (*BerthStartRequestFunc)(Berth__StartGuestRequest *request, const GError *error,
                                      gpointer user_data);
void berth_start_request_make(BerthDaemon *daemon, const BerthGuestId *id,
                              BerthStartRequestFunc func, gpointer user_data);

/* What the request is built from, apart from blobs. Strings are (transfer none). */
typedef struct {
    BerthGuestId id;
    const char *user;
    guint32 uid;
    guint32 gid;
    const guint32 *groups;
    gsize n_groups;
    const char *node;
    guint64 time_limit_sec; /* as it is now; 0: as it was submitted */
    const char *image_id;
    guint64 image_bytes;
    guint32 boot_deadline_sec;
    const char *log_id; /* NULL: the epoch's own */
    guint32 checkpoint; /* serial of the one that it goes on from; 0: it boots */
    guint32 from_epoch; /* of the guest that that was taken of */
    gboolean is_opportunistic;
    const char *line; /* its own of the job's; NULL: it has none */
} BerthStartFacts;

/* Pure. (transfer full) */
Berth__StartGuestRequest *berth_start_request_build(const Berth__JobSpec *spec,
                                                    const BerthStartFacts *facts);
