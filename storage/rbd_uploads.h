/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The blobs and uploads found in a pool, for listing the ones and sweeping the others. */

#include "storage/rbd_internal.h"

/* Chunks of upload UPLOAD_ID of blob HEX. */
BerthRbdStream berth_rbd_upload_stream(BerthRbdStorage *self, const char *hex, guint64 upload_id);

typedef struct BerthRbdUploads BerthRbdUploads;
BerthRbdUploads *berth_rbd_uploads_new(void);
void berth_rbd_uploads_free(BerthRbdUploads *uploads);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRbdUploads, berth_rbd_uploads_free)

/* Notes object NAME of namespace "blobs": for berth_rbd_visit_objects(). */
void berth_rbd_uploads_add(const char *name, gpointer uploads);
/* Removes the chunks of uploads that no index names and that are older than a day, as far as that
 * is possible: their writers crashed. */
void berth_rbd_uploads_sweep(BerthRbdUploads *uploads, BerthRbdStorage *self);
/* Adds the digests of the blobs to NAMES. */
void berth_rbd_uploads_take_blobs(BerthRbdUploads *uploads, GPtrArray *names);
