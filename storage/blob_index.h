/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* The index of a blob: its size and a CRC-32C of each block of BERTH_BLOB_BLOCK_BYTES, so that a
 * piece of a large blob can be checked without reading all of it. Stored beside the content.
 *
 * Format, integers little-endian: "BERTHBX1", u64 size, u64 upload, u32 block size, u32 CRC-32C
 * of these 28 bytes; then a u32 CRC-32C per block. */

#define BERTH_BLOB_BLOCK_BYTES        (64u * 1024)
#define BERTH_BLOB_INDEX_HEADER_BYTES 32u
#define BERTH_BLOB_SUM_BYTES          4u

typedef struct {
    guint64 size_bytes;
    guint64 upload_id;
} BerthBlobHeader;

/* Collects the sums while content passes by. */
typedef struct BerthBlobSums BerthBlobSums;
BerthBlobSums *berth_blob_sums_new(void);
void berth_blob_sums_free(BerthBlobSums *sums);
void berth_blob_sums_append(BerthBlobSums *sums, const guint8 *data, gsize length);
/* The whole index of what was appended (transfer full). Nothing may be appended after. */
GBytes *berth_blob_sums_finish(BerthBlobSums *sums, const BerthBlobHeader *header);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthBlobSums, berth_blob_sums_free)

/* FALSE if DATA does not start with an intact header. */
gboolean berth_blob_header_parse(const guint8 *data, gsize length, BerthBlobHeader *out_header);

/* Checks DATA, which starts at a block's first byte and ends at a block's or the blob's end,
 * against SUMS, the sums from that block on. On a mismatch FALSE and the block, counted from the
 * start of DATA. */
gboolean berth_blob_sums_verify(const guint8 *data, gsize length, const guint8 *sums,
                                gsize sums_length, gsize *out_bad_block);
