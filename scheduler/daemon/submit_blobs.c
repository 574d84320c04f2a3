/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rule by which a blob is either in the store (small) or in storage, and its use when a
 * job is submitted. */
#include "config.h"

#include "scheduler/daemon/submit_blobs.h"

#include "common/error.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/spec_check.h"

#include <string.h>

static void place_free(gpointer data)
{
    BerthBlobPlace *place = data;
    g_clear_pointer(&place->content, g_bytes_unref);
    g_free(place);
}

static gboolean add_place(GPtrArray *places, GHashTable *by_digest, const Berth__BlobRef *blob,
                          GError **error)
{
    const BerthBlobPlace *known = g_hash_table_lookup(by_digest, blob->sha256.data);
    if (known && known->size_bytes != blob->size_bytes) {
        g_autofree char *text = berth_blob_text(&blob->sha256);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s is named with two different sizes", text);
        return FALSE;
    }
    if (!known) {
        BerthBlobPlace *place = g_new0(BerthBlobPlace, 1);
        memcpy(place->digest, blob->sha256.data, BERTH_SHA256_BYTES);
        place->size_bytes = blob->size_bytes;
        g_ptr_array_add(places, place);
        g_hash_table_insert(by_digest, place->digest, place);
    }
    return TRUE;
}

static void digest_of(const ProtobufCBinaryData *content, guint8 *out_digest)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize length = BERTH_SHA256_BYTES;
    g_checksum_update(checksum, content->data, (gssize)content->len);
    g_checksum_get_digest(checksum, out_digest, &length);
}

static gboolean check_inline_size(gsize size, GError **error)
{
    if (size <= BERTH_BLOB_INLINE_MAX_BYTES)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "an inline content has %zu bytes; at most %u are allowed: upload it with "
                "Blobs.Put",
                size, BERTH_BLOB_INLINE_MAX_BYTES);
    return FALSE;
}

static gboolean take_inline(GHashTable *by_digest, const ProtobufCBinaryData *content,
                            GError **error)
{
    guint8 digest[BERTH_SHA256_BYTES];
    if (!check_inline_size(content->len, error))
        return FALSE;
    digest_of(content, digest);
    BerthBlobPlace *place = g_hash_table_lookup(by_digest, digest);
    if (!place || place->size_bytes != content->len) {
        ProtobufCBinaryData data = {sizeof digest, digest};
        g_autofree char *text = berth_blob_text(&data);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "an inline content (%s, %zu bytes) is not named by the job", text,
                    content->len);
        return FALSE;
    }
    if (!place->content)
        place->content = g_bytes_new(content->data, content->len);
    return TRUE;
}

static gboolean take_shared(BerthBlobPlace *place, GHashTable *shared, GError **error)
{
    GBytes *content = shared && !place->content ? g_hash_table_lookup(shared, place->digest) : NULL;
    if (!content)
        return TRUE;
    if (!check_inline_size(g_bytes_get_size(content), error))
        return FALSE;
    if (g_bytes_get_size(content) != place->size_bytes) {
        g_autofree char *hex = berth_digest_to_hex(place->digest);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "sha256:%s is named with %" G_GUINT64_FORMAT " bytes, and came with %zu", hex,
                    place->size_bytes, g_bytes_get_size(content));
        return FALSE;
    }
    place->content = g_bytes_ref(content);
    return TRUE;
}

/* What is small, and did not come with the request, may be in the store. */
static gboolean look_up(BerthBlobPlace *place, BerthStore *store, GError **error)
{
    GError *failed = NULL;
    if (!store || place->content || place->size_bytes > BERTH_BLOB_INLINE_MAX_BYTES)
        return TRUE;
    place->content = berth_store_get_blob(store, place->digest, &failed);
    if (!failed)
        return TRUE;
    g_propagate_error(error, failed);
    return FALSE;
}

GHashTable *berth_submit_blobs_share(const ProtobufCBinaryData *contents, gsize n_contents)
{
    GHashTable *shared = g_hash_table_new_full(berth_digest_hash, berth_digest_equal, g_free,
                                               (GDestroyNotify)g_bytes_unref);
    for (gsize i = 0; i < n_contents; i++) {
        guint8 *digest = g_malloc(BERTH_SHA256_BYTES);
        digest_of(&contents[i], digest);
        g_hash_table_insert(shared, digest, g_bytes_new(contents[i].data, contents[i].len));
    }
    return shared;
}

GPtrArray *berth_submit_blobs_place(const Berth__JobSpec *spec, const ProtobufCBinaryData *contents,
                                    gsize n_contents, GHashTable *shared, BerthStore *store,
                                    GError **error)
{
    g_autoptr(GPtrArray) places = g_ptr_array_new_with_free_func(place_free);
    g_autoptr(GHashTable) by_digest = g_hash_table_new(berth_digest_hash, berth_digest_equal);
    g_autoptr(GPtrArray) blobs = berth_spec_blobs(spec);
    for (guint i = 0; i < blobs->len; i++)
        if (!add_place(places, by_digest, g_ptr_array_index(blobs, i), error))
            return NULL;
    for (gsize i = 0; i < n_contents; i++)
        if (!take_inline(by_digest, &contents[i], error))
            return NULL;
    gsize budget = BERTH_INLINE_BUDGET_BYTES;
    for (guint i = 0; i < places->len; i++) {
        BerthBlobPlace *place = g_ptr_array_index(places, i);
        if (!take_shared(place, shared, error) || !look_up(place, store, error))
            return NULL;
        place->to_storage = !place->content || place->size_bytes > budget;
        if (!place->to_storage)
            budget -= (gsize)place->size_bytes;
    }
    return g_steal_pointer(&places);
}

static const BerthBlobPlace *find_place(const GPtrArray *places, const Berth__BlobRef *blob)
{
    for (guint i = 0; i < places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(places, i);
        if (berth_digest_equal(place->digest, blob->sha256.data))
            return place;
    }
    return NULL;
}

void berth_submit_blobs_note(Berth__JobSpec *spec, const GPtrArray *places)
{
    g_autoptr(GPtrArray) blobs = berth_spec_blobs(spec);
    for (guint i = 0; i < blobs->len; i++) {
        Berth__BlobRef *blob = g_ptr_array_index(blobs, i);
        const BerthBlobPlace *place = find_place(places, blob);
        blob->in_state = place && !place->to_storage;
    }
}

static gboolean recall(BerthBlobPlace *place, BerthStore *store, GError **error)
{
    GError *failed = NULL;
    place->content = berth_store_get_blob(store, place->digest, &failed);
    if (failed) {
        g_propagate_error(error, failed);
        return FALSE;
    }
    if (!place->content) {
        g_autofree char *hex = berth_digest_to_hex(place->digest);
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
            "the content sha256:%s of the job is not in the daemon's state any more; submit "
            "the job again",
            hex);
        return FALSE;
    }
    return TRUE;
}

GPtrArray *berth_submit_blobs_recall(const Berth__JobSpec *spec, BerthStore *store, GError **error)
{
    g_autoptr(GPtrArray) places = g_ptr_array_new_with_free_func(place_free);
    g_autoptr(GHashTable) by_digest = g_hash_table_new(berth_digest_hash, berth_digest_equal);
    g_autoptr(GPtrArray) blobs = berth_spec_blobs(spec);
    for (guint i = 0; i < blobs->len; i++) {
        const Berth__BlobRef *blob = g_ptr_array_index(blobs, i);
        guint known = places->len;
        if (!add_place(places, by_digest, blob, error))
            return NULL;
        if (places->len == known)
            continue;
        BerthBlobPlace *place = g_ptr_array_index(places, known);
        place->to_storage = !blob->in_state;
        if (blob->in_state && !recall(place, store, error))
            return NULL;
    }
    return g_steal_pointer(&places);
}

GBytes *berth_submit_blobs_content(const GPtrArray *places, const Berth__BlobRef *blob)
{
    const BerthBlobPlace *place = find_place(places, blob);
    return place && place->content ? g_bytes_ref(place->content) : NULL;
}

gboolean berth_submit_blobs_need_storage(const GPtrArray *places)
{
    for (guint i = 0; i < places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(places, i);
        if (place->to_storage)
            return TRUE;
    }
    return FALSE;
}

static gboolean write_blob(const BerthBlobPlace *place, BerthStorage *storage, GError **error)
{
    g_autoptr(BerthBlobWriter) writer =
        berth_storage_blob_create(storage, place->digest, place->size_bytes, error);
    gsize length = 0;
    const void *data = g_bytes_get_data(place->content, &length);
    return writer && berth_blob_writer_append(writer, data, length, error) &&
           berth_blob_writer_commit(writer, error);
}

gboolean berth_submit_blobs_settle(const GPtrArray *places, BerthStorage *storage, GError **error)
{
    for (guint i = 0; i < places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(places, i);
        gboolean exists = FALSE;
        if (!place->to_storage)
            continue;
        if (!berth_storage_blob_exists(storage, place->digest, &exists, error))
            return FALSE;
        if (!exists && !place->content) {
            g_autofree char *hex = berth_digest_to_hex(place->digest);
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                        "the content sha256:%s (%" G_GUINT64_FORMAT " bytes) that the job names "
                        "was not uploaded: upload it with Blobs.Put and submit again",
                        hex, place->size_bytes);
            return FALSE;
        }
        if (!exists && !write_blob(place, storage, error))
            return FALSE;
    }
    return TRUE;
}

GBytes *berth_submit_blobs_environment(const Berth__JobSpec *spec, const GPtrArray *places,
                                       BerthStorage *storage, GError **error)
{
    if (!spec->environment)
        return NULL;
    GBytes *content = berth_submit_blobs_content(places, spec->environment);
    if (content || !storage)
        return content;
    return berth_storage_blob_read(storage, spec->environment->sha256.data, 0,
                                   (gsize)spec->environment->size_bytes, error);
}
