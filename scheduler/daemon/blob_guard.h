/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include "scheduler/daemon/daemon.h"
#include "storage/storage.h"

/* Keeps the collection of garbage and the submission of jobs apart: a blob that somebody has just
 * uploaded or asked for is not removed, and one that is being removed is not promised. */

/* A blob that was touched is safe for this long: time to submit the job that names it. */
#define BERTH_BLOB_GUARD_SEC (2 * 3600)
/* As many of one user may be safe at a time. */
#define BERTH_BLOB_GUARD_USER_MAX 100000u

BerthBlobGuard *berth_blob_guard_new(void);
void berth_blob_guard_free(BerthBlobGuard *guard);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthBlobGuard, berth_blob_guard_free)

/* UID has uploaded it, or asked for it and it is there. DIGEST has BERTH_SHA256_BYTES. FALSE:
 * UNAVAILABLE, it is being removed at this moment; RESOURCE_EXHAUSTED, the user has too many. */
gboolean berth_blob_guard_touch(BerthBlobGuard *guard, guint32 uid, const guint8 *digest,
                                GError **error);
/* Keeps it until unpin(), once for each call, while somebody looks whether it is there. FALSE: it
 * is being removed at this moment; treat it as absent. */
gboolean berth_blob_guard_pin(BerthBlobGuard *guard, const guint8 *digest);
void berth_blob_guard_unpin(BerthBlobGuard *guard, const guint8 *digest);
/* FALSE: it is pinned, or was touched lately, and may not be removed. Else touch() and pin() refuse
 * it until end_removal(). */
gboolean berth_blob_guard_begin_removal(BerthBlobGuard *guard, const guint8 *digest);
void berth_blob_guard_end_removal(BerthBlobGuard *guard, const guint8 *digest);
/* Forgets what was touched long ago. */
void berth_blob_guard_sweep(BerthBlobGuard *guard);

/* "sha256:0123abcd..." for messages (transfer full). */
char *berth_blob_text(const ProtobufCBinaryData *digest);
/* Lower-case hex of BERTH_SHA256_BYTES bytes, and back; FALSE: not such a digest. */
char *berth_digest_to_hex(const guint8 *digest);
gboolean berth_digest_from_hex(const char *hex, guint8 out_digest[BERTH_SHA256_BYTES]);
