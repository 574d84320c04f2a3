/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/pb.h"
#include "scheduler/store/store.h"
#include "storage/storage.h"

/* Where the contents of a job's blobs are. Small ones travel to the node inside StartGuest, up to a
 * budget; the node reads the rest from storage. Submission decides which, makes sure that each can be
 * had that way, and notes it in the specification: what other jobs bring later does not change it.
 * Runs on workers. */

/* Of all contents in one StartGuest: well below the limit of a frame. */
#define BERTH_INLINE_BUDGET_BYTES (2u << 20)

typedef struct {
    guint8 digest[BERTH_SHA256_BYTES];
    guint64 size_bytes;
    GBytes *content;     /* if at hand: inline, or in the store */
    gboolean to_storage; /* must be in storage: too large to travel, or not at hand */
} BerthBlobPlace;

/* Contents that came for several jobs, by their digests. (transfer full) Digest to GBytes, owning. */
GHashTable *berth_submit_blobs_share(const ProtobufCBinaryData *contents, gsize n_contents);
/* The distinct blobs of SPEC, in order. CONTENTS came with the request, for this job; those of SHARED (may be NULL) are
 * there for whoever names them. What is in neither is looked up in STORE (may be NULL). INVALID_ARGUMENT: one of CONTENTS that SPEC does not
 * name, one larger than BERTH_BLOB_INLINE_MAX_BYTES, sizes that do not match.
 * (transfer full) GPtrArray of BerthBlobPlace, owning. */
GPtrArray *berth_submit_blobs_place(const Berth__JobSpec *spec, const ProtobufCBinaryData *contents,
                                    gsize n_contents, GHashTable *shared, BerthStore *store,
                                    GError **error);
/* Notes in SPEC which blobs are in the state. */
void berth_submit_blobs_note(Berth__JobSpec *spec, const GPtrArray *places);
/* The places of a SPEC that was noted, with the contents of those in the state. DATA_LOSS: one is not
 * there any more. (transfer full) */
GPtrArray *berth_submit_blobs_recall(const Berth__JobSpec *spec, BerthStore *store, GError **error);
/* Does any place need storage? */
gboolean berth_submit_blobs_need_storage(const GPtrArray *places);
/* Makes sure that each to_storage blob is in STORAGE: writes those whose content is at hand.
 * NOT_FOUND: one is nowhere. */
gboolean berth_submit_blobs_settle(const GPtrArray *places, BerthStorage *storage, GError **error);
/* BLOB's content from its place (transfer full); NULL: it is in storage. */
GBytes *berth_submit_blobs_content(const GPtrArray *places, const Berth__BlobRef *blob);
/* The environment's content from its place, else from STORAGE (may be NULL). NULL without an error:
 * SPEC has none, or it is in storage only and STORAGE is NULL (transfer full). */
GBytes *berth_submit_blobs_environment(const Berth__JobSpec *spec, const GPtrArray *places,
                                       BerthStorage *storage, GError **error);
