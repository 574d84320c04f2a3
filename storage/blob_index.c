/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the format of a blob's index; its checksum is common's. Reads and writes nothing itself. */
#include "storage/blob_index.h"

#include <string.h>

#include "common/channel.h"

#define MAGIC       "BERTHBX1"
#define MAGIC_BYTES 8u

struct BerthBlobSums {
    GArray *sums; /* guint32, little-endian, of the full blocks */
    guint32 crc;  /* of the block that is being filled */
    gsize filled_bytes;
};

BerthBlobSums *berth_blob_sums_new(void)
{
    BerthBlobSums *sums = g_new0(BerthBlobSums, 1);
    sums->sums = g_array_new(FALSE, FALSE, sizeof(guint32));
    return sums;
}

void berth_blob_sums_free(BerthBlobSums *sums)
{
    if (sums == NULL)
        return;
    g_array_unref(sums->sums);
    g_free(sums);
}

static void end_block(BerthBlobSums *sums)
{
    guint32 little = GUINT32_TO_LE(sums->crc);
    g_array_append_val(sums->sums, little);
    sums->crc = 0;
    sums->filled_bytes = 0;
}

void berth_blob_sums_append(BerthBlobSums *sums, const guint8 *data, gsize length)
{
    while (length > 0) {
        gsize part = MIN(length, BERTH_BLOB_BLOCK_BYTES - sums->filled_bytes);
        sums->crc = berth_crc32c(sums->crc, data, part);
        sums->filled_bytes += part;
        data += part;
        length -= part;
        if (sums->filled_bytes == BERTH_BLOB_BLOCK_BYTES)
            end_block(sums);
    }
}

static void put_u32(guint8 *at, guint32 value)
{
    value = GUINT32_TO_LE(value);
    memcpy(at, &value, sizeof value);
}

static void put_u64(guint8 *at, guint64 value)
{
    value = GUINT64_TO_LE(value);
    memcpy(at, &value, sizeof value);
}

static guint32 get_u32(const guint8 *at)
{
    guint32 value;
    memcpy(&value, at, sizeof value);
    return GUINT32_FROM_LE(value);
}

static guint64 get_u64(const guint8 *at)
{
    guint64 value;
    memcpy(&value, at, sizeof value);
    return GUINT64_FROM_LE(value);
}

GBytes *berth_blob_sums_finish(BerthBlobSums *sums, const BerthBlobHeader *header)
{
    if (sums->filled_bytes > 0)
        end_block(sums);
    gsize sums_bytes = (gsize)sums->sums->len * BERTH_BLOB_SUM_BYTES;
    gsize length = BERTH_BLOB_INDEX_HEADER_BYTES + sums_bytes;
    guint8 *index = g_malloc(length);
    memcpy(index, MAGIC, MAGIC_BYTES);
    put_u64(index + 8, header->size_bytes);
    put_u64(index + 16, header->upload_id);
    put_u32(index + 24, BERTH_BLOB_BLOCK_BYTES);
    put_u32(index + 28, berth_crc32c(0, index, 28));
    if (sums_bytes > 0)
        memcpy(index + BERTH_BLOB_INDEX_HEADER_BYTES, sums->sums->data, sums_bytes);
    return g_bytes_new_take(index, length);
}

gboolean berth_blob_header_parse(const guint8 *data, gsize length, BerthBlobHeader *out_header)
{
    if (length < BERTH_BLOB_INDEX_HEADER_BYTES || memcmp(data, MAGIC, MAGIC_BYTES) != 0 ||
        get_u32(data + 28) != berth_crc32c(0, data, 28) ||
        get_u32(data + 24) != BERTH_BLOB_BLOCK_BYTES)
        return FALSE;
    out_header->size_bytes = get_u64(data + 8);
    out_header->upload_id = get_u64(data + 16);
    return TRUE;
}

gboolean berth_blob_sums_verify(const guint8 *data, gsize length, const guint8 *sums,
                                gsize sums_length, gsize *out_bad_block)
{
    gsize block = 0;
    for (gsize done = 0; done < length; block++) {
        gsize part = MIN(length - done, BERTH_BLOB_BLOCK_BYTES);
        if ((block + 1) * BERTH_BLOB_SUM_BYTES > sums_length ||
            get_u32(sums + block * BERTH_BLOB_SUM_BYTES) != berth_crc32c(0, data + done, part)) {
            *out_bad_block = block;
            return FALSE;
        }
        done += part;
    }
    return TRUE;
}
