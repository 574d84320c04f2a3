/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of which blobs are about to be used and which are about to be removed. Reads and
 * writes nothing.
 *
 * Invariants: no digest is both pinned, or touched within BERTH_BLOB_GUARD_SEC, and being removed;
 * a user has BERTH_BLOB_GUARD_USER_MAX touched ones at most. */
#include "config.h"

#include "scheduler/daemon/blob_guard.h"

#include "common/error.h"

#include <string.h>

#define GUARD_USEC ((gint64)BERTH_BLOB_GUARD_SEC * G_USEC_PER_SEC)

typedef struct {
    gint64 at_usec; /* monotonic */
    guint32 uid;    /* who touched it last */
} Touch;

struct BerthBlobGuard {
    GHashTable *touched; /* GBytes -> Touch */
    GHashTable *by_user; /* uid -> how many of these */
    GHashTable *pinned;  /* GBytes -> how often */
    GHashTable *removed; /* set of GBytes */
};

BerthBlobGuard *berth_blob_guard_new(void)
{
    BerthBlobGuard *guard = g_new0(BerthBlobGuard, 1);
    guard->touched =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, g_free);
    guard->by_user = g_hash_table_new(NULL, NULL);
    guard->pinned =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    guard->removed =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    return guard;
}

void berth_blob_guard_free(BerthBlobGuard *guard)
{
    g_hash_table_unref(guard->touched);
    g_hash_table_unref(guard->by_user);
    g_hash_table_unref(guard->pinned);
    g_hash_table_unref(guard->removed);
    g_free(guard);
}

static guint count_user(const BerthBlobGuard *guard, guint32 uid)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(guard->by_user, GUINT_TO_POINTER(uid)));
}

static void add_to_user(BerthBlobGuard *guard, guint32 uid, gint change)
{
    guint count = (guint)((gint)count_user(guard, uid) + change);
    if (count == 0)
        g_hash_table_remove(guard->by_user, GUINT_TO_POINTER(uid));
    else
        g_hash_table_insert(guard->by_user, GUINT_TO_POINTER(uid), GUINT_TO_POINTER(count));
}

static gboolean check_touch(const BerthBlobGuard *guard, guint32 uid, GBytes *key,
                            const Touch *known, GError **error)
{
    if (g_hash_table_contains(guard->removed, key)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                            "an old copy of this content is being removed at this moment; try "
                            "again");
        return FALSE;
    }
    if (!(known && known->uid == uid) && count_user(guard, uid) >= BERTH_BLOB_GUARD_USER_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "you have uploaded or named %u different files within %u hours, which is all "
                    "that one user may; try again later",
                    BERTH_BLOB_GUARD_USER_MAX, BERTH_BLOB_GUARD_SEC / 3600);
        return FALSE;
    }
    return TRUE;
}

gboolean berth_blob_guard_touch(BerthBlobGuard *guard, guint32 uid, const guint8 *digest,
                                GError **error)
{
    g_autoptr(GBytes) key = g_bytes_new(digest, BERTH_SHA256_BYTES);
    Touch *touch = g_hash_table_lookup(guard->touched, key);
    if (!check_touch(guard, uid, key, touch, error))
        return FALSE;
    if (touch) {
        add_to_user(guard, touch->uid, -1);
    } else {
        touch = g_new0(Touch, 1);
        g_hash_table_insert(guard->touched, g_steal_pointer(&key), touch);
    }
    touch->at_usec = g_get_monotonic_time();
    touch->uid = uid;
    add_to_user(guard, uid, 1);
    return TRUE;
}

gboolean berth_blob_guard_pin(BerthBlobGuard *guard, const guint8 *digest)
{
    g_autoptr(GBytes) key = g_bytes_new(digest, BERTH_SHA256_BYTES);
    if (g_hash_table_contains(guard->removed, key))
        return FALSE;
    guint pins = GPOINTER_TO_UINT(g_hash_table_lookup(guard->pinned, key));
    g_hash_table_insert(guard->pinned, g_steal_pointer(&key), GUINT_TO_POINTER(pins + 1));
    return TRUE;
}

void berth_blob_guard_unpin(BerthBlobGuard *guard, const guint8 *digest)
{
    g_autoptr(GBytes) key = g_bytes_new(digest, BERTH_SHA256_BYTES);
    guint pins = GPOINTER_TO_UINT(g_hash_table_lookup(guard->pinned, key));
    g_return_if_fail(pins > 0);
    if (pins == 1)
        g_hash_table_remove(guard->pinned, key);
    else
        g_hash_table_insert(guard->pinned, g_steal_pointer(&key), GUINT_TO_POINTER(pins - 1));
}

static gboolean is_old(gpointer key, gpointer value, gpointer user_data)
{
    const Touch *touch = value;
    if (g_get_monotonic_time() - touch->at_usec < GUARD_USEC)
        return FALSE;
    add_to_user(user_data, touch->uid, -1);
    return TRUE;
}

gboolean berth_blob_guard_begin_removal(BerthBlobGuard *guard, const guint8 *digest)
{
    g_autoptr(GBytes) key = g_bytes_new(digest, BERTH_SHA256_BYTES);
    Touch *touch = g_hash_table_lookup(guard->touched, key);
    if (g_hash_table_contains(guard->pinned, key) || (touch && !is_old(NULL, touch, guard)))
        return FALSE;
    g_hash_table_remove(guard->touched, key);
    g_hash_table_add(guard->removed, g_steal_pointer(&key));
    return TRUE;
}

void berth_blob_guard_end_removal(BerthBlobGuard *guard, const guint8 *digest)
{
    g_autoptr(GBytes) key = g_bytes_new(digest, BERTH_SHA256_BYTES);
    g_hash_table_remove(guard->removed, key);
}

void berth_blob_guard_sweep(BerthBlobGuard *guard)
{
    g_hash_table_foreach_remove(guard->touched, is_old, guard);
}

char *berth_digest_to_hex(const guint8 *digest)
{
    char *hex = g_malloc(2 * BERTH_SHA256_BYTES + 1);
    for (guint i = 0; i < BERTH_SHA256_BYTES; i++)
        g_snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}

gboolean berth_digest_from_hex(const char *hex, guint8 out_digest[BERTH_SHA256_BYTES])
{
    if (strlen(hex) != 2 * BERTH_SHA256_BYTES)
        return FALSE;
    guint8 digest[BERTH_SHA256_BYTES];
    for (guint i = 0; i < BERTH_SHA256_BYTES; i++) {
        int high = g_ascii_xdigit_value(hex[2 * i]);
        int low = g_ascii_xdigit_value(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return FALSE;
        digest[i] = (guint8)(high * 16 + low);
    }
    memcpy(out_digest, digest, sizeof digest);
    return TRUE;
}

char *berth_blob_text(const ProtobufCBinaryData *digest)
{
    if (digest->len != BERTH_SHA256_BYTES)
        return g_strdup("(not a digest)");
    g_autofree char *hex = berth_digest_to_hex(digest->data);
    return g_strdup_printf("sha256:%s", hex);
}
