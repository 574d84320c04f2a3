/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the front of image import: ranges are checked and runs of zeroes are cut out, so that a
 * backend never stores them. What was written earlier is overwritten by zeroes too. */
#include "common/error.h"
#include "storage/storage_backend.h"
#include "storage/storage_checks.h"

#include <string.h>

/* Runs of zeroes are looked for in pieces of this size, aligned in the image. */
#define RUN_BYTES ((gsize)64 * 1024)

gboolean berth_storage_size_check(const char *what, const char *id, guint64 size_bytes,
                                  GError **error)
{
    if (size_bytes > 0 && size_bytes % 512 == 0 && size_bytes <= BERTH_STORAGE_SIZE_MAX)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%s %s: a size of %" G_GUINT64_FORMAT
                " bytes is not possible: it is a multiple of 512, at most 64 TiB",
                what, id, size_bytes);
    return FALSE;
}

BerthImageWriter *berth_storage_image_create(BerthStorage *storage, const char *image_id,
                                             guint64 size_bytes, GError **error)
{
    if (!berth_storage_name_check("an image", image_id, error) ||
        !berth_storage_size_check("image", image_id, size_bytes, error))
        return NULL;
    BerthImageWriter *writer = storage->backend->image_create(storage, image_id, size_bytes, error);
    if (writer == NULL)
        return NULL;
    writer->storage = berth_storage_ref(storage);
    writer->image_id = g_strdup(image_id);
    writer->size_bytes = size_bytes;
    return writer;
}

static gboolean is_zero(const guint8 *data, gsize length)
{
    return data[0] == 0 && memcmp(data, data + 1, length - 1) == 0;
}

/* Length of the piece at OFFSET that ends where RUN_BYTES are full, or with the data. */
static gsize piece_length(guint64 offset, gsize left)
{
    return MIN(left, RUN_BYTES - (gsize)(offset % RUN_BYTES));
}

gboolean berth_image_writer_write(BerthImageWriter *writer, guint64 offset, const void *data,
                                  gsize length, GError **error)
{
    const BerthStorageBackend *backend = writer->storage->backend;
    if (offset > writer->size_bytes || length > writer->size_bytes - offset) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "image %s has %" G_GUINT64_FORMAT " bytes: cannot write %" G_GSIZE_FORMAT
                    " at %" G_GUINT64_FORMAT,
                    writer->image_id, writer->size_bytes, length, offset);
        return FALSE;
    }
    const guint8 *at = data;
    while (length > 0) {
        gsize run = piece_length(offset, length);
        gboolean zero = is_zero(at, run);
        while (run < length) {
            gsize next = piece_length(offset + run, length - run);
            if (is_zero(at + run, next) != zero)
                break;
            run += next;
        }
        if (zero ? !backend->image_zero(writer, offset, run, error)
                 : !backend->image_write(writer, offset, at, run, error))
            return FALSE;
        at += run;
        offset += run;
        length -= run;
    }
    return TRUE;
}

gboolean berth_image_writer_commit(BerthImageWriter *writer, GError **error)
{
    if (!writer->storage->backend->image_commit(writer, error))
        return FALSE;
    writer->is_committed = TRUE;
    return TRUE;
}

void berth_image_writer_free(BerthImageWriter *writer)
{
    if (writer == NULL)
        return;
    g_autoptr(BerthStorage) storage = writer->storage;
    G_GNUC_UNUSED g_autofree char *image_id = writer->image_id;
    storage->backend->image_writer_free(writer);
}

gboolean berth_storage_image_is_committed(BerthStorage *storage, const char *image_id,
                                          gboolean *out_committed, GError **error)
{
    return berth_storage_name_check("an image", image_id, error) &&
           storage->backend->image_is_committed(storage, image_id, out_committed, error);
}

gboolean berth_storage_image_remove(BerthStorage *storage, const char *image_id, GError **error)
{
    return berth_storage_name_check("an image", image_id, error) &&
           storage->backend->image_remove(storage, image_id, error);
}

char **berth_storage_image_list(BerthStorage *storage, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!storage->backend->image_list(storage, names, error))
        return NULL;
    return berth_storage_list_finish(names);
}
