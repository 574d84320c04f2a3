/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the front of the storage interface: the choice of a backend, and what is the same for
 * all of them: names and ranges are checked here, lists are sorted here. Images and blobs have
 * files of their own. Holds no state. */
#include "storage/storage.h"

#include <string.h>

#include "common/error.h"
#include "storage/storage_backend.h"
#include "storage/storage_checks.h"

#define NAME_BYTES_MAX 128

BerthStorage *berth_storage_connect(const BerthStorageConfig *config, GError **error)
{
    if (g_strcmp0(config->kind, "dir") == 0)
        return berth_dir_storage_connect(config, error);
    if (g_strcmp0(config->kind, "rbd") == 0)
        return berth_rbd_storage_connect(config, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "unknown kind of storage '%s': it is 'rbd' or 'dir'",
                config->kind != NULL ? config->kind : "");
    return NULL;
}

gboolean berth_storage_prepare(BerthStorage *storage, GError **error)
{
    return storage->backend->prepare(storage, error);
}

BerthStorage *berth_storage_open(const BerthStorageConfig *config, GError **error)
{
    g_autoptr(BerthStorage) storage = berth_storage_connect(config, error);
    if (storage == NULL || !berth_storage_prepare(storage, error))
        return NULL;
    return g_steal_pointer(&storage);
}

BerthStorage *berth_storage_ref(BerthStorage *storage)
{
    g_atomic_ref_count_inc(&storage->refs);
    return storage;
}

void berth_storage_free(BerthStorage *storage)
{
    if (storage != NULL && g_atomic_ref_count_dec(&storage->refs))
        storage->backend->free(storage);
}

gboolean berth_storage_is_shared(BerthStorage *storage)
{
    return !g_atomic_ref_count_compare(&storage->refs, 1);
}

const char *berth_storage_kind(BerthStorage *storage)
{
    return storage->backend->kind;
}

gboolean berth_storage_room(BerthStorage *storage, guint64 *out_bytes, GError **error)
{
    return storage->backend->room(storage, out_bytes, error);
}

gboolean berth_storage_check(BerthStorage *storage, GError **error)
{
    return storage->backend->check(storage, error);
}

char *berth_storage_client_address(BerthStorage *storage)
{
    return storage->backend->client_address(storage);
}

gboolean berth_storage_is_fenced(BerthStorage *storage)
{
    return storage->backend->is_fenced(storage);
}

gboolean berth_storage_is_worn(BerthStorage *storage)
{
    return storage->backend->is_worn(storage);
}

gboolean berth_storage_fence(BerthStorage *storage, const char *const *addresses, GError **error)
{
    if (addresses == NULL || addresses[0] == NULL)
        return TRUE;
    return storage->backend->fence(storage, addresses, error);
}

gboolean berth_storage_may_fence(BerthStorage *storage, GError **error)
{
    return storage->backend->may_fence(storage, error);
}

gboolean berth_storage_name_is_valid(const char *name)
{
    if (name == NULL || name[0] == '\0' || name[0] == '.')
        return FALSE;
    gsize length = strspn(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-");
    return name[length] == '\0' && length <= NAME_BYTES_MAX;
}

gboolean berth_storage_digest_is_valid(const char *hex)
{
    gsize length = strspn(hex, "0123456789abcdef");
    return hex[length] == '\0' && length == (gsize)2 * BERTH_SHA256_BYTES;
}

gboolean berth_storage_name_check(const char *what, const char *name, GError **error)
{
    if (berth_storage_name_is_valid(name))
        return TRUE;
    g_autofree char *shown = g_strescape(name != NULL ? name : "", NULL);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "'%.200s' is no name of %s in storage: 1 to %d letters, digits, '.', '_' and '-', "
                "not starting with '.'",
                shown, what, NAME_BYTES_MAX);
    return FALSE;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **berth_storage_list_finish(GPtrArray *names)
{
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_steal(names, NULL);
}

/* --- the mark ------------------------------------------------------------------------------ */

GBytes *berth_storage_mark_read(BerthStorage *storage, GError **error)
{
    return storage->backend->mark_read(storage, error);
}

/* Ceph compares as if zeroes followed: one at the end would make different contents equal. */
static gboolean check_mark(GBytes *content, GError **error)
{
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(content, &length);
    if (length > 0 && length <= BERTH_STORAGE_MARK_BYTES_MAX && data[length - 1] != 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "a mark of %zu bytes: storage takes one of 1 to %d, of which the last is not 0",
                length, BERTH_STORAGE_MARK_BYTES_MAX);
    return FALSE;
}

gboolean berth_storage_mark_create(BerthStorage *storage, GBytes *content, GError **error)
{
    return check_mark(content, error) &&
           storage->backend->mark_write(storage, NULL, content, error);
}

gboolean berth_storage_mark_replace(BerthStorage *storage, GBytes *expected, GBytes *content,
                                    GError **error)
{
    return check_mark(expected, error) && check_mark(content, error) &&
           storage->backend->mark_write(storage, expected, content, error);
}

/* --- disks -------------------------------------------------------------------------------- */

void berth_disk_source_free(BerthDiskSource *source)
{
    if (source == NULL)
        return;
    g_free(source->rbd_pool);
    g_free(source->rbd_image);
    g_strfreev(source->rbd_monitors);
    g_free(source->rbd_user);
    g_free(source->rbd_secret_uuid);
    g_free(source->file_path);
    g_free(source->file_format);
    g_free(source);
}

BerthDiskSource *berth_storage_disk_create(BerthStorage *storage, const char *disk_id,
                                           const char *image_id, guint64 size_bytes, GError **error)
{
    if (!berth_storage_name_check("a disk", disk_id, error) ||
        !berth_storage_name_check("an image", image_id, error) ||
        !berth_storage_size_check("disk", disk_id, size_bytes, error))
        return NULL;
    return storage->backend->disk_create(storage, disk_id, image_id, size_bytes, error);
}

BerthDiskSource *berth_storage_disk_source(BerthStorage *storage, const char *disk_id,
                                           GError **error)
{
    if (!berth_storage_name_check("a disk", disk_id, error))
        return NULL;
    return storage->backend->disk_source(storage, disk_id, error);
}

gboolean berth_storage_disk_remove(BerthStorage *storage, const char *disk_id, GError **error)
{
    return berth_storage_name_check("a disk", disk_id, error) &&
           storage->backend->disk_remove(storage, disk_id, FALSE, error);
}

gboolean berth_storage_disk_remove_with_checkpoints(BerthStorage *storage, const char *disk_id,
                                                    GError **error)
{
    return berth_storage_name_check("a disk", disk_id, error) &&
           storage->backend->disk_remove(storage, disk_id, TRUE, error);
}

char **berth_storage_disk_list(BerthStorage *storage, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!storage->backend->disk_list(storage, names, error))
        return NULL;
    return berth_storage_list_finish(names);
}

char **berth_storage_disk_clients(BerthStorage *storage, const char *disk_id, GError **error)
{
    if (!berth_storage_name_check("a disk", disk_id, error))
        return NULL;
    return storage->backend->disk_clients(storage, disk_id, error);
}

/* --- logs --------------------------------------------------------------------------------- */

static gboolean check_log_range(const char *log_id, guint64 offset, gsize length, GError **error)
{
    if (!berth_storage_name_check("a log", log_id, error))
        return FALSE;
    if (offset <= G_MAXINT64 && length <= G_MAXINT64 - offset)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "log %s: offset %" G_GUINT64_FORMAT " is beyond what a log can hold", log_id,
                offset);
    return FALSE;
}

gboolean berth_storage_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                                 const void *data, gsize length, GError **error)
{
    if (!check_log_range(log_id, offset, length, error))
        return FALSE;
    return length == 0 || storage->backend->log_write(storage, log_id, offset, data, length, error);
}

GBytes *berth_storage_log_read(BerthStorage *storage, const char *log_id, guint64 offset,
                               gsize length, GError **error)
{
    if (!berth_storage_name_check("a log", log_id, error))
        return NULL;
    if (length == 0 || offset > G_MAXINT64)
        return g_bytes_new(NULL, 0);
    length = MIN(length, G_MAXINT64 - offset);
    return storage->backend->log_read(storage, log_id, offset, length, error);
}

gboolean berth_storage_log_size(BerthStorage *storage, const char *log_id, guint64 *out_bytes,
                                GError **error)
{
    return berth_storage_name_check("a log", log_id, error) &&
           storage->backend->log_size(storage, log_id, out_bytes, error);
}

gboolean berth_storage_log_cut(BerthStorage *storage, const char *log_id, guint64 size_bytes,
                               GError **error)
{
    guint64 has_bytes = 0;
    if (!check_log_range(log_id, size_bytes, 0, error) ||
        !storage->backend->log_size(storage, log_id, &has_bytes, error))
        return FALSE;
    if (has_bytes == size_bytes)
        return TRUE;
    if (has_bytes > size_bytes)
        return storage->backend->log_cut(storage, log_id, size_bytes, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "log %s has %" G_GUINT64_FORMAT " bytes and not the %" G_GUINT64_FORMAT
                " that it is to keep",
                log_id, has_bytes, size_bytes);
    return FALSE;
}

gboolean berth_storage_log_remove(BerthStorage *storage, const char *log_id, GError **error)
{
    return berth_storage_logs_remove(storage, &log_id, 1, error);
}

gboolean berth_storage_logs_remove(BerthStorage *storage, const char *const *log_ids, gsize n_logs,
                                   GError **error)
{
    for (gsize i = 0; i < n_logs; i++)
        if (!berth_storage_name_check("a log", log_ids[i], error))
            return FALSE;
    return storage->backend->logs_remove(storage, log_ids, n_logs, error);
}

char **berth_storage_log_list(BerthStorage *storage, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!storage->backend->log_list(storage, names, error))
        return NULL;
    return berth_storage_list_finish(names);
}
