/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the front of checkpoints: names, sizes and the order of their steps are checked here. */
#include "common/error.h"
#include "storage/storage_backend.h"
#include "storage/storage_checks.h"

static gboolean check(BerthStorage *storage, const char *checkpoint_id, GError **error)
{
    if (storage->backend->checkpoint_create != NULL)
        return berth_storage_name_check("a checkpoint", checkpoint_id, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                "storage of kind '%s' cannot keep checkpoints: use 'rbd' (Ceph)",
                storage->backend->kind);
    return FALSE;
}

/* --- making --------------------------------------------------------------------------------- */

BerthCheckpointWriter *berth_storage_checkpoint_create(BerthStorage *storage,
                                                       const char *checkpoint_id,
                                                       const char *disk_id,
                                                       const char *const *guest,
                                                       guint64 space_bytes, GError **error)
{
    if (!check(storage, checkpoint_id, error) ||
        !berth_storage_name_check("a disk", disk_id, error) ||
        !berth_storage_size_check("checkpoint", checkpoint_id, space_bytes, error))
        return NULL;
    BerthCheckpointWriter *writer = storage->backend->checkpoint_create(
        storage, checkpoint_id, disk_id, guest, space_bytes, error);
    if (writer == NULL)
        return NULL;
    writer->storage = berth_storage_ref(storage);
    writer->checkpoint_id = g_strdup(checkpoint_id);
    writer->space_bytes = space_bytes;
    return writer;
}

gboolean berth_checkpoint_writer_append(BerthCheckpointWriter *writer, const void *data,
                                        gsize length, GError **error)
{
    g_return_val_if_fail(!writer->is_finished, FALSE);
    if (length > writer->space_bytes - writer->appended_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "checkpoint %s: the guest's memory takes more than the %" G_GUINT64_FORMAT
                    " bytes that were reserved for it",
                    writer->checkpoint_id, writer->space_bytes);
        return FALSE;
    }
    if (length > 0 && !writer->storage->backend->checkpoint_append(writer, data, length, error))
        return FALSE;
    writer->appended_bytes += length;
    return TRUE;
}

gboolean berth_checkpoint_writer_finish(BerthCheckpointWriter *writer, const void *data,
                                        gsize length, GError **error)
{
    g_return_val_if_fail(length <= writer->appended_bytes, FALSE);
    writer->is_finished = writer->storage->backend->checkpoint_finish(writer, data, length, error);
    return writer->is_finished;
}

gboolean berth_checkpoint_writer_snapshot(BerthCheckpointWriter *writer, GError **error)
{
    writer->has_snapshot = writer->storage->backend->checkpoint_snapshot(writer, error);
    return writer->has_snapshot;
}

gboolean berth_checkpoint_writer_commit(BerthCheckpointWriter *writer, GBytes *record,
                                        GError **error)
{
    gsize length = g_bytes_get_size(record);
    g_return_val_if_fail(writer->is_finished && writer->has_snapshot, FALSE);
    if (length == 0 || length > BERTH_STORAGE_CHECKPOINT_RECORD_BYTES_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "checkpoint %s: a record of %zu bytes: storage takes one of 1 to %d",
                    writer->checkpoint_id, length, BERTH_STORAGE_CHECKPOINT_RECORD_BYTES_MAX);
        return FALSE;
    }
    writer->is_committed = writer->storage->backend->checkpoint_commit(writer, record, error);
    return writer->is_committed;
}

void berth_checkpoint_writer_free(BerthCheckpointWriter *writer)
{
    if (writer == NULL)
        return;
    g_autoptr(BerthStorage) storage = writer->storage;
    G_GNUC_UNUSED g_autofree char *checkpoint_id = writer->checkpoint_id;
    storage->backend->checkpoint_writer_free(writer);
}

/* --- reading -------------------------------------------------------------------------------- */

GBytes *berth_storage_checkpoint_read(BerthStorage *storage, const char *checkpoint_id,
                                      GError **error)
{
    if (!check(storage, checkpoint_id, error))
        return NULL;
    return storage->backend->checkpoint_read(storage, checkpoint_id, error);
}

BerthCheckpointReader *berth_storage_checkpoint_open(BerthStorage *storage,
                                                     const char *checkpoint_id, GError **error)
{
    if (!check(storage, checkpoint_id, error))
        return NULL;
    BerthCheckpointReader *reader =
        storage->backend->checkpoint_open(storage, checkpoint_id, error);
    if (reader != NULL)
        reader->storage = berth_storage_ref(storage);
    return reader;
}

GBytes *berth_checkpoint_reader_next(BerthCheckpointReader *reader, GError **error)
{
    return reader->storage->backend->checkpoint_next(reader, error);
}

void berth_checkpoint_reader_free(BerthCheckpointReader *reader)
{
    if (reader == NULL)
        return;
    g_autoptr(BerthStorage) storage = reader->storage;
    storage->backend->checkpoint_reader_free(reader);
}

BerthDiskSource *berth_storage_checkpoint_restore_disk(BerthStorage *storage,
                                                       const char *checkpoint_id,
                                                       const char *disk_id, GError **error)
{
    if (!check(storage, checkpoint_id, error) ||
        !berth_storage_name_check("a disk", disk_id, error))
        return NULL;
    return storage->backend->checkpoint_restore_disk(storage, checkpoint_id, disk_id, error);
}

/* --- keeping -------------------------------------------------------------------------------- */

gboolean berth_storage_checkpoint_used(BerthStorage *storage, const char *checkpoint_id,
                                       guint64 *out_memory_bytes, guint64 *out_disk_bytes,
                                       GError **error)
{
    return check(storage, checkpoint_id, error) &&
           storage->backend->checkpoint_used(storage, checkpoint_id, out_memory_bytes,
                                             out_disk_bytes, error);
}

gboolean berth_storage_checkpoint_remove(BerthStorage *storage, const char *checkpoint_id,
                                         const char *const *guest, gboolean have_ended,
                                         GError **error)
{
    return check(storage, checkpoint_id, error) &&
           storage->backend->checkpoint_remove(storage, checkpoint_id, guest, have_ended, error);
}

char **berth_storage_checkpoint_list(BerthStorage *storage, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (storage->backend->checkpoint_create == NULL)
        return g_new0(char *, 1);
    if (!storage->backend->checkpoint_list(storage, names, error))
        return NULL;
    return berth_storage_list_finish(names);
}
