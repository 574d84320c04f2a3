/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the integrity of blobs: what is committed has the promised size and SHA-256, and what is
 * read is checked block by block against the index that the commit wrote. Moves no bytes itself. */
#include <string.h>

#include "common/error.h"
#include "storage/storage_backend.h"
#include "storage/storage_checks.h"

guint berth_digest_hash(gconstpointer digest)
{
    guint hash; /* a SHA-256 is evenly spread in every part */
    memcpy(&hash, digest, sizeof hash);
    return hash;
}

gboolean berth_digest_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, BERTH_SHA256_BYTES) == 0;
}

static void digest_to_hex(const guint8 digest[BERTH_SHA256_BYTES],
                          char hex[2 * BERTH_SHA256_BYTES + 1])
{
    for (guint i = 0; i < BERTH_SHA256_BYTES; i++)
        g_snprintf(hex + (gsize)2 * i, 3, "%02x", digest[i]);
}

BerthBlobWriter *berth_storage_blob_create(BerthStorage *storage,
                                           const guint8 digest[BERTH_SHA256_BYTES],
                                           guint64 size_bytes, GError **error)
{
    char hex[2 * BERTH_SHA256_BYTES + 1];
    digest_to_hex(digest, hex);
    if (size_bytes > BERTH_BLOB_SIZE_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "blob %s: %" G_GUINT64_FORMAT " bytes are too many: a blob has at most 1 TiB",
                    hex, size_bytes);
        return NULL;
    }
    BerthBlobWriter *writer = storage->backend->blob_create(storage, hex, size_bytes, error);
    if (writer == NULL)
        return NULL;
    writer->storage = berth_storage_ref(storage);
    memcpy(writer->hex, hex, sizeof hex);
    writer->size_bytes = size_bytes;
    writer->checksum = g_checksum_new(G_CHECKSUM_SHA256);
    writer->sums = berth_blob_sums_new();
    return writer;
}

gboolean berth_blob_writer_append(BerthBlobWriter *writer, const void *data, gsize length,
                                  GError **error)
{
    if (length > writer->size_bytes - writer->received_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "blob %s: more than the promised %" G_GUINT64_FORMAT " bytes came", writer->hex,
                    writer->size_bytes);
        return FALSE;
    }
    if (length == 0)
        return TRUE;
    if (!writer->storage->backend->blob_append(writer, data, length, error))
        return FALSE;
    for (gsize done = 0; done < length;) { /* GChecksum takes a gssize */
        gsize part = MIN(length - done, (gsize)1 << 30);
        g_checksum_update(writer->checksum, (const guchar *)data + done, (gssize)part);
        done += part;
    }
    berth_blob_sums_append(writer->sums, data, length);
    writer->received_bytes += length;
    return TRUE;
}

gboolean berth_blob_writer_commit(BerthBlobWriter *writer, GError **error)
{
    if (writer->received_bytes != writer->size_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "blob %s: only %" G_GUINT64_FORMAT " of the promised %" G_GUINT64_FORMAT
                    " bytes came",
                    writer->hex, writer->received_bytes, writer->size_bytes);
        return FALSE;
    }
    const char *hex = g_checksum_get_string(writer->checksum);
    if (strcmp(hex, writer->hex) != 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "blob %s: what came has the SHA-256 %s: it changed while it was sent",
                    writer->hex, hex);
        return FALSE;
    }
    BerthBlobHeader header = {.size_bytes = writer->size_bytes, .upload_id = writer->upload_id};
    g_autoptr(GBytes) index = berth_blob_sums_finish(writer->sums, &header);
    if (!writer->storage->backend->blob_commit(writer, index, error))
        return FALSE;
    writer->is_committed = TRUE;
    return TRUE;
}

void berth_blob_writer_free(BerthBlobWriter *writer)
{
    if (writer == NULL)
        return;
    g_autoptr(BerthStorage) storage = writer->storage;
    g_clear_pointer(&writer->checksum, g_checksum_free);
    g_clear_pointer(&writer->sums, berth_blob_sums_free);
    storage->backend->blob_writer_free(writer);
}

static gboolean read_header(BerthStorage *storage, const char *hex, BerthBlobHeader *out_header,
                            GError **error)
{
    g_autoptr(GBytes) bytes =
        storage->backend->blob_read_index(storage, hex, 0, BERTH_BLOB_INDEX_HEADER_BYTES, error);
    if (bytes == NULL)
        return FALSE;
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(bytes, &length);
    if (berth_blob_header_parse(data, length, out_header))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "blob %s: its index is corrupt: remove the blob and submit again", hex);
    return FALSE;
}

/* The content from START, the first byte of a block, to END, checked. */
static GBytes *read_blocks(BerthStorage *storage, const char *hex, const BerthBlobHeader *header,
                           guint64 start, guint64 end, GError **error)
{
    gsize length = (gsize)(end - start);
    gsize blocks = (length + BERTH_BLOB_BLOCK_BYTES - 1) / BERTH_BLOB_BLOCK_BYTES;
    guint64 sums_offset =
        BERTH_BLOB_INDEX_HEADER_BYTES + start / BERTH_BLOB_BLOCK_BYTES * BERTH_BLOB_SUM_BYTES;
    g_autoptr(GBytes) sums = storage->backend->blob_read_index(
        storage, hex, sums_offset, blocks * BERTH_BLOB_SUM_BYTES, error);
    if (sums == NULL)
        return NULL;
    g_autoptr(GBytes) content =
        storage->backend->blob_read_data(storage, hex, header->upload_id, start, length, error);
    if (content == NULL)
        return NULL;

    gsize sums_length = 0;
    const guint8 *sums_data = g_bytes_get_data(sums, &sums_length);
    gsize content_length = 0;
    const guint8 *data = g_bytes_get_data(content, &content_length);
    gsize bad_block = content_length / BERTH_BLOB_BLOCK_BYTES;
    if (content_length == length &&
        berth_blob_sums_verify(data, length, sums_data, sums_length, &bad_block))
        return g_steal_pointer(&content);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "blob %s: its content at byte %" G_GUINT64_FORMAT
                " is missing or corrupt: check the storage, remove the blob and submit again",
                hex, start + (guint64)bad_block * BERTH_BLOB_BLOCK_BYTES);
    return NULL;
}

GBytes *berth_storage_blob_read(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                                guint64 offset, gsize length, GError **error)
{
    char hex[2 * BERTH_SHA256_BYTES + 1];
    digest_to_hex(digest, hex);
    BerthBlobHeader header;
    if (!read_header(storage, hex, &header, error))
        return NULL;
    if (offset >= header.size_bytes || length == 0)
        return g_bytes_new(NULL, 0);
    guint64 end = offset + MIN(length, header.size_bytes - offset);
    guint64 start = offset - offset % BERTH_BLOB_BLOCK_BYTES;
    guint64 blocks_end = end + BERTH_BLOB_BLOCK_BYTES - 1;
    blocks_end -= blocks_end % BERTH_BLOB_BLOCK_BYTES;
    g_autoptr(GBytes) blocks =
        read_blocks(storage, hex, &header, start, MIN(blocks_end, header.size_bytes), error);
    if (blocks == NULL)
        return NULL;
    return g_bytes_new_from_bytes(blocks, (gsize)(offset - start), (gsize)(end - offset));
}

gboolean berth_storage_blob_exists(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                                   gboolean *out_exists, GError **error)
{
    char hex[2 * BERTH_SHA256_BYTES + 1];
    digest_to_hex(digest, hex);
    g_autoptr(GError) local_error = NULL;
    g_autoptr(GBytes) header = storage->backend->blob_read_index(
        storage, hex, 0, BERTH_BLOB_INDEX_HEADER_BYTES, &local_error);
    if (header == NULL && !g_error_matches(local_error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&local_error));
        return FALSE;
    }
    *out_exists = header != NULL;
    return TRUE;
}

gboolean berth_storage_blob_remove(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                                   GError **error)
{
    char hex[2 * BERTH_SHA256_BYTES + 1];
    digest_to_hex(digest, hex);
    return storage->backend->blob_remove(storage, hex, error);
}

char **berth_storage_blob_list(BerthStorage *storage, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!storage->backend->blob_list(storage, names, error))
        return NULL;
    return berth_storage_list_finish(names);
}
