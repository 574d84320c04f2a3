/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A guest's task and the contents of its files: inline ones from the request, others from storage,
 * read in pieces. */

#include "nodeagent/storage_lane.h"
#include "proto/berth.pb-c.h"

typedef struct BerthGuestFiles BerthGuestFiles;

/* A piece in one frame to the guest. */
#define BERTH_GUEST_PIECE_MAX (128u * 1024u)

/* Copies REQUEST. INVALID_ARGUMENT: no task, too large a one for the channel, or a blob without a
 * digest. LANE outlives it. */
BerthGuestFiles *berth_guest_files_new(const Berth__StartGuestRequest *request,
                                       BerthStorageLane *lane, GError **error);
void berth_guest_files_free(BerthGuestFiles *files);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuestFiles, berth_guest_files_free)

/* (transfer none) */
const Berth__GuestTask *berth_guest_files_task(const BerthGuestFiles *files);
/* Environment, script, inputs: those present, in that order. */
guint berth_guest_files_count(const BerthGuestFiles *files);
guint64 berth_guest_files_size(const BerthGuestFiles *files, guint index);

/* The bytes of file INDEX from OFFSET, BERTH_GUEST_PIECE_MAX of them or to its end. OFFSET is less than its
 * size. Errors: those of storage; DATA_LOSS if a blob is shorter than it should be. */
void berth_guest_files_read_async(BerthGuestFiles *files, guint index, guint64 offset,
                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);
/* (transfer full) */
GBytes *berth_guest_files_read_finish(GAsyncResult *result, GError **error);
