/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every kind of storage must do, as cmocka tests. A program opens a storage, sets
 * conformance_storage and runs them; test_storage_dir and test_storage_rbd do. */

#include "tests/lib/assert.h"

#include "storage/storage.h"

extern BerthStorage *conformance_storage;
/* What qemu-img needs to open rbd disks, or NULL: ":conf=PATH:id=USER:keyring=PATH". */
extern const char *conformance_rbd_options;

/* Appends all of them to TO, an array of struct CMUnitTest. */
void conformance_append(GArray *to);
/* ... only those of blobs and logs, which the other has too. */
void conformance_append_streams(GArray *to);

/* Bytes that differ at every offset and for every seed. (transfer full) */
guint8 *conformance_pattern(guint seed, gsize length);
void conformance_sha256(const guint8 *data, gsize length, guint8 digest[BERTH_SHA256_BYTES]);
/* A committed image of SIZE_BYTES whose start is DATA. */
void conformance_image(BerthStorage *storage, const char *image_id, guint64 size_bytes,
                       const guint8 *data, gsize length);
/* Is NAME in NAMES, which must be sorted, without doubles? Fails the test on ERROR. */
gboolean conformance_list_has(char **names, GError *error, const char *name);
void conformance_blob(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                      const guint8 *data, gsize length);
