/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a guest's task until its command runs, and where the contents of its files come from. Knows
 * nothing of the channel. Holds no more of a file than one piece, inline blobs aside. */
#include <config.h>

#include "nodeagent/guest_files.h"

#include <string.h>

#include "common/channel.h"
#include "common/error.h"
#include "common/message.h"

typedef struct {
    const Berth__BlobRef *blob;         /* NULL: an empty file */
    const ProtobufCBinaryData *content; /* inline; NULL: in storage */
} File;

struct BerthGuestFiles {
    Berth__StartGuestRequest *request; /* owned; the files point into it */
    BerthStorageLane *lane;
    GArray *files; /* File */
};

/* The inline blobs of REQUEST by digest. Each is hashed once, however many files there are. */
static GHashTable *index_inline(const Berth__StartGuestRequest *request)
{
    GHashTable *contents =
        g_hash_table_new_full(berth_digest_hash, berth_digest_equal, g_free, NULL);
    for (gsize i = 0; i < request->n_inline_blobs; i++) {
        ProtobufCBinaryData *content = &request->inline_blobs[i];
        guint8 *digest = g_malloc(BERTH_SHA256_BYTES);
        gsize length = BERTH_SHA256_BYTES;
        g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
        g_checksum_update(checksum, content->data, (gssize)content->len);
        g_checksum_get_digest(checksum, digest, &length);
        g_hash_table_replace(contents, digest, content);
    }
    return contents;
}

static gboolean add_file(BerthGuestFiles *files, GHashTable *contents, const Berth__BlobRef *blob,
                         GError **error)
{
    File file = {.blob = blob};
    if (blob != NULL && blob->sha256.len != BERTH_SHA256_BYTES) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot start the guest: file %u of its task has a digest of %zu bytes",
                    files->files->len, blob->sha256.len);
        return FALSE;
    }
    if (blob != NULL)
        file.content = g_hash_table_lookup(contents, blob->sha256.data);
    if (file.content != NULL && file.content->len != blob->size_bytes)
        file.content = NULL;
    g_array_append_val(files->files, file);
    return TRUE;
}

static gboolean add_files(BerthGuestFiles *files, GError **error)
{
    const Berth__GuestTask *task = files->request->task;
    g_autoptr(GHashTable) contents = index_inline(files->request);
    if (task->environment != NULL && !add_file(files, contents, task->environment, error))
        return FALSE;
    if (task->script != NULL && !add_file(files, contents, task->script, error))
        return FALSE;
    for (gsize i = 0; i < task->n_inputs; i++) {
        if (!add_file(files, contents, task->inputs[i]->blob, error))
            return FALSE;
    }
    return TRUE;
}

BerthGuestFiles *berth_guest_files_new(const Berth__StartGuestRequest *request,
                                       BerthStorageLane *lane, GError **error)
{
    if (request->task == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "cannot start the guest: the request has no task");
        return NULL;
    }
    gsize length = berth__guest_task__get_packed_size(request->task);
    if (length > BERTH_CHANNEL_TASK_MAX_BYTES) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot start the guest: its task takes %zu bytes, and a guest takes %u at "
                    "most; use fewer or shorter arguments and input files",
                    length, BERTH_CHANNEL_TASK_MAX_BYTES);
        return NULL;
    }
    g_autoptr(BerthGuestFiles) files = g_new0(BerthGuestFiles, 1);
    files->lane = lane;
    files->files = g_array_new(FALSE, TRUE, sizeof(File));
    files->request = (Berth__StartGuestRequest *)(void *)berth_message_copy(&request->base);
    return add_files(files, error) ? g_steal_pointer(&files) : NULL;
}

void berth_guest_files_free(BerthGuestFiles *files)
{
    if (files == NULL)
        return;
    g_array_unref(files->files);
    berth_message_free(&files->request->base);
    g_free(files);
}

const Berth__GuestTask *berth_guest_files_task(const BerthGuestFiles *files)
{
    return files->request->task;
}

guint berth_guest_files_count(const BerthGuestFiles *files)
{
    return files->files->len;
}

guint64 berth_guest_files_size(const BerthGuestFiles *files, guint index)
{
    const File *file = &g_array_index(files->files, File, index);
    return file->blob == NULL ? 0 : file->blob->size_bytes;
}

/* --- pieces --------------------------------------------------------------------------------- */

typedef struct {
    guint8 digest[BERTH_SHA256_BYTES];
    guint64 offset;
    gsize length;
} ReadInput;

static gpointer read_blob(BerthStorage *storage, gconstpointer data, GError **error)
{
    const ReadInput *input = data;
    g_autoptr(GBytes) bytes =
        berth_storage_blob_read(storage, input->digest, input->offset, input->length, error);
    if (bytes == NULL)
        return NULL;
    if (g_bytes_get_size(bytes) == input->length)
        return g_steal_pointer(&bytes);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "an input file ends in storage at %" G_GUINT64_FORMAT
                " bytes, which is less than it had when it was submitted",
                input->offset + g_bytes_get_size(bytes));
    return NULL;
}

static void on_read(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GTask) task = data;
    GError *error = NULL;
    GBytes *bytes = berth_work_finish(result, &error);
    if (bytes == NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, bytes, (GDestroyNotify)g_bytes_unref);
}

void berth_guest_files_read_async(BerthGuestFiles *files, guint index, guint64 offset,
                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data)
{
    const File *file = &g_array_index(files->files, File, index);
    gsize length = (gsize)MIN(file->blob->size_bytes - offset, BERTH_GUEST_PIECE_MAX);
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);
    g_task_set_source_tag(task, berth_guest_files_read_async);
    if (file->content != NULL) {
        g_task_return_pointer(task, g_bytes_new(file->content->data + offset, length),
                              (GDestroyNotify)g_bytes_unref);
        g_object_unref(task);
        return;
    }
    ReadInput *input = g_new0(ReadInput, 1);
    memcpy(input->digest, file->blob->sha256.data, sizeof input->digest);
    input->offset = offset;
    input->length = length;
    berth_storage_lane_run(files->lane, BERTH_LANE_DATA, "read an input file", read_blob, input,
                           g_free, (GDestroyNotify)g_bytes_unref, cancellable, on_read, task);
}

GBytes *berth_guest_files_read_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}
