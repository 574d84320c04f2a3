/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the names of blob chunks and the sweeping of uploads whose writers crashed. */
#include "storage/rbd_uploads.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define HEX_DIGITS        (2u * BERTH_SHA256_BYTES)
#define UPLOAD_DIGITS     16u
#define UPLOAD_AGE_SEC    (24 * 60 * 60)
#define UPLOAD_KEY_LENGTH (HEX_DIGITS + 1 + UPLOAD_DIGITS) /* "HEX:UPLOAD" */

struct BerthRbdUploads {
    GHashTable *blobs;   /* set of digests that have an index */
    GHashTable *uploads; /* "HEX:UPLOAD" -> guint64: one past its last chunk */
};

static char *chunk_name(const BerthRbdStream *stream, guint64 chunk)
{
    return g_strdup_printf("%s:%016" G_GINT64_MODIFIER "x:%08" G_GINT64_MODIFIER "x", stream->id,
                           stream->upload_id, chunk);
}

BerthRbdStream berth_rbd_upload_stream(BerthRbdStorage *self, const char *hex, guint64 upload_id)
{
    return (BerthRbdStream){
        .io = self->blobs, .id = hex, .upload_id = upload_id, .name = chunk_name};
}

BerthRbdUploads *berth_rbd_uploads_new(void)
{
    BerthRbdUploads *uploads = g_new0(BerthRbdUploads, 1);
    uploads->blobs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    uploads->uploads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return uploads;
}

void berth_rbd_uploads_free(BerthRbdUploads *uploads)
{
    if (uploads == NULL)
        return;
    g_hash_table_unref(uploads->blobs);
    g_hash_table_unref(uploads->uploads);
    g_free(uploads);
}

void berth_rbd_uploads_add(const char *name, gpointer data)
{
    BerthRbdUploads *uploads = data;
    if (berth_storage_digest_is_valid(name)) {
        g_hash_table_add(uploads->blobs, g_strdup(name));
        return;
    }
    if (strlen(name) <= UPLOAD_KEY_LENGTH + 1 || name[HEX_DIGITS] != ':' ||
        name[UPLOAD_KEY_LENGTH] != ':')
        return;
    g_autofree char *key = g_strndup(name, UPLOAD_KEY_LENGTH);
    guint64 end = g_ascii_strtoull(name + UPLOAD_KEY_LENGTH + 1, NULL, 16) + 1;
    guint64 *known = g_hash_table_lookup(uploads->uploads, key);
    if (known != NULL) {
        *known = MAX(*known, end);
        return;
    }
    guint64 *value = g_new(guint64, 1);
    *value = end;
    g_hash_table_insert(uploads->uploads, g_steal_pointer(&key), value);
}

/* The chunk of an upload that was written last tells when its writer was last alive. */
static gboolean is_old(BerthRbdStorage *self, const BerthRbdStream *stream, guint64 end)
{
    g_autofree char *name = stream->name(stream, end - 1);
    guint64 bytes = 0;
    time_t modified = 0;
    return rados_stat(self->blobs, name, &bytes, &modified) == 0 &&
           modified < time(NULL) - UPLOAD_AGE_SEC;
}

/* Asked after is_old(): a writer that old does not commit any more. */
static gboolean is_committed(BerthRbdStorage *self, const BerthRbdStream *stream)
{
    char head[BERTH_BLOB_INDEX_HEADER_BYTES];
    BerthBlobHeader header;
    int result = rados_read(self->blobs, stream->id, head, sizeof head, 0);
    if (result == -ENOENT)
        return FALSE;
    return result < 0 || !berth_blob_header_parse((const guint8 *)head, (gsize)result, &header) ||
           header.upload_id == stream->upload_id;
}

void berth_rbd_uploads_sweep(BerthRbdUploads *uploads, BerthRbdStorage *self)
{
    /* A digest with an index and one upload is in order: no need to ask. */
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) several = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    gpointer key = NULL, value = NULL;
    g_hash_table_iter_init(&iter, uploads->uploads);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        char *hex = g_strndup(key, HEX_DIGITS);
        if (!g_hash_table_contains(seen, hex))
            g_hash_table_add(seen, hex);
        else
            g_hash_table_add(several, hex);
    }
    g_hash_table_iter_init(&iter, uploads->uploads);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        g_autofree char *hex = g_strndup(key, HEX_DIGITS);
        if (g_hash_table_contains(uploads->blobs, hex) && !g_hash_table_contains(several, hex))
            continue;
        guint64 upload_id = g_ascii_strtoull((const char *)key + HEX_DIGITS + 1, NULL, 16);
        BerthRbdStream stream = berth_rbd_upload_stream(self, hex, upload_id);
        guint64 end = *(const guint64 *)value;
        if (is_old(self, &stream, end) && !is_committed(self, &stream))
            berth_rbd_stream_remove(&stream, 0, end);
    }
}

void berth_rbd_uploads_take_blobs(BerthRbdUploads *uploads, GPtrArray *names)
{
    GHashTableIter iter;
    gpointer hex = NULL;
    g_hash_table_iter_init(&iter, uploads->blobs);
    while (g_hash_table_iter_next(&iter, &hex, NULL))
        g_ptr_array_add(names, g_strdup(hex));
}
