/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the contents that a submission refers to, from file to daemon. */
#include "cli/payload.h"

#include "cli/progress.h"
#include "common/error.h"
#include "common/units.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHA256_BYTES 32u
#define CHUNK_BYTES  (512u * 1024u)

typedef struct {
    guint8 digest[SHA256_BYTES];
    guint64 size_bytes;
    GBytes *content; /* of what is sent inline, and of what is no file; else NULL */
    char *path;      /* of a file */
    gboolean is_inline;
} Blob;

struct BerthPayload {
    GPtrArray *blobs;      /* Blob, each digest once */
    GHashTable *by_digest; /* GBytes to Blob */
    GHashTable *by_path;   /* of files: char to Blob */
    gsize inline_bytes;
    gsize held_bytes; /* of all contents that are held */
    gboolean has_input_max;
    guint64 input_max_bytes;
    GArray *inline_data; /* ProtobufCBinaryData */
};

static void blob_free(gpointer data)
{
    Blob *blob = data;
    g_clear_pointer(&blob->content, g_bytes_unref);
    g_free(blob->path);
    g_free(blob);
}

BerthPayload *berth_payload_new(void)
{
    BerthPayload *payload = g_new0(BerthPayload, 1);
    payload->blobs = g_ptr_array_new_with_free_func(blob_free);
    payload->by_digest =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    payload->by_path = g_hash_table_new(g_str_hash, g_str_equal);
    payload->inline_data = g_array_new(FALSE, FALSE, sizeof(ProtobufCBinaryData));
    return payload;
}

void berth_payload_free(BerthPayload *payload)
{
    g_hash_table_unref(payload->by_path);
    g_hash_table_unref(payload->by_digest);
    g_ptr_array_unref(payload->blobs);
    g_array_unref(payload->inline_data);
    g_free(payload);
}

gsize berth_payload_held_bytes(const BerthPayload *payload)
{
    return payload->held_bytes;
}

static Berth__BlobRef *refer_to(const Blob *blob)
{
    Berth__BlobRef *reference = g_new(Berth__BlobRef, 1);
    berth__blob_ref__init(reference);
    reference->sha256.data = g_memdup2(blob->digest, SHA256_BYTES);
    reference->sha256.len = SHA256_BYTES;
    reference->size_bytes = blob->size_bytes;
    return reference;
}

/* Inline are the small ones, as long as all of them fit into one request. */
static gboolean take_inline(BerthPayload *payload, gsize size)
{
    if (size > BERTH_INLINE_BLOB_MAX || size > BERTH_INLINE_TOTAL_MAX - payload->inline_bytes)
        return FALSE;
    payload->inline_bytes += size;
    return TRUE;
}

/* BLOB is taken over; CONTENT is NULL where only its file has it. What is there already is not sent again. */
static Berth__BlobRef *add(BerthPayload *payload, Blob *blob, GBytes *content)
{
    g_autoptr(GBytes) key = g_bytes_new(blob->digest, SHA256_BYTES);
    const Blob *known = g_hash_table_lookup(payload->by_digest, key);
    if (known != NULL) {
        blob_free(blob);
        return refer_to(known);
    }
    g_ptr_array_add(payload->blobs, blob);
    g_hash_table_insert(payload->by_digest, g_steal_pointer(&key), blob);
    blob->is_inline = content != NULL && take_inline(payload, g_bytes_get_size(content));
    if (content != NULL && (blob->is_inline || blob->path == NULL)) {
        blob->content = g_bytes_ref(content);
        payload->held_bytes += g_bytes_get_size(content);
    }
    if (blob->path != NULL)
        g_hash_table_insert(payload->by_path, blob->path, blob);
    return refer_to(blob);
}

Berth__BlobRef *berth_payload_add_bytes(BerthPayload *payload, GBytes *content)
{
    Blob *blob = g_new0(Blob, 1);
    gsize length = SHA256_BYTES;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, g_bytes_get_data(content, NULL), (gssize)g_bytes_get_size(content));
    g_checksum_get_digest(checksum, blob->digest, &length);
    blob->size_bytes = g_bytes_get_size(content);
    return add(payload, blob, content);
}

static gboolean check_size(const char *path, guint64 size_bytes, guint64 max_bytes, GError **error)
{
    if (max_bytes == 0 || size_bytes <= max_bytes)
        return TRUE;
    g_autofree char *limit = berth_format_size_mib(max_bytes >> 20);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "\"%s\" has %" G_GUINT64_FORMAT " bytes; this cluster takes input files of %s at "
                "most: put larger data into an image, or ask the operator to raise input_file_max",
                path, size_bytes, limit);
    return FALSE;
}

/* Opens a regular file. A FIFO must not make the CLI wait for its writer. */
static int open_regular(const char *path, guint64 max_bytes, GError **error)
{
    int fd = g_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        berth_set_error_errno(error, errno, "cannot read \"%s\"", path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (!S_ISREG(status.st_mode))
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is %s; only regular files can be sent%s", path,
                    S_ISDIR(status.st_mode) ? "a directory" : "not a regular file",
                    S_ISDIR(status.st_mode) ? " (pack a directory with tar)" : "");
    else if (check_size(path, (guint64)status.st_size, max_bytes, error))
        return fd;
    close(fd);
    return -1;
}

typedef gboolean (*ChunkFunc)(const guint8 *data, gsize length, guint64 offset, gpointer user_data,
                              GError **error);

static gboolean read_chunks(int fd, const char *path, ChunkFunc func, gpointer user_data,
                            GError **error)
{
    g_autofree guint8 *buffer = g_malloc(CHUNK_BYTES);
    guint64 offset = 0;
    for (;;) {
        gssize got = read(fd, buffer, CHUNK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            berth_set_error_errno(error, errno, "cannot read \"%s\"", path);
            return FALSE;
        }
        if (got == 0)
            return TRUE;
        if (!func(buffer, (gsize)got, offset, user_data, error))
            return FALSE;
        offset += (guint64)got;
    }
}

typedef struct {
    const char *path;
    guint64 max_bytes;
    GChecksum *checksum;
    GByteArray *content; /* NULL once it is too large to be inline */
    guint64 bytes;
} Hashing;

/* The size is looked at again: a file may grow, and some have more than they say (/proc). */
static gboolean hash_chunk(const guint8 *data, gsize length, guint64 offset, gpointer user_data,
                           GError **error)
{
    Hashing *hashing = user_data;
    g_checksum_update(hashing->checksum, data, (gssize)length);
    hashing->bytes = offset + length;
    if (hashing->content != NULL && hashing->bytes <= BERTH_INLINE_BLOB_MAX)
        g_byte_array_append(hashing->content, data, (guint)length);
    else
        g_clear_pointer(&hashing->content, g_byte_array_unref);
    return check_size(hashing->path, hashing->bytes, hashing->max_bytes, error);
}

Berth__BlobRef *berth_payload_add_file(BerthPayload *payload, const char *path, guint64 max_bytes,
                                       GError **error)
{
    const Blob *known = g_hash_table_lookup(payload->by_path, path);
    int fd = known == NULL ? open_regular(path, max_bytes, error) : -1;
    if (known != NULL)
        return refer_to(known);
    if (fd < 0)
        return NULL;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    Hashing hashing = {
        .path = path, .max_bytes = max_bytes, .checksum = checksum, .content = g_byte_array_new()};
    gboolean ok = read_chunks(fd, path, hash_chunk, &hashing, error);
    g_autoptr(GByteArray) content = hashing.content;
    close(fd);
    if (!ok)
        return NULL;
    Blob *blob = g_new0(Blob, 1);
    gsize length = SHA256_BYTES;
    g_checksum_get_digest(checksum, blob->digest, &length);
    blob->size_bytes = hashing.bytes;
    blob->path = g_strdup(path);
    g_autoptr(GBytes) bytes =
        content != NULL ? g_byte_array_free_to_bytes(g_steal_pointer(&content)) : NULL;
    return add(payload, blob, bytes);
}

gboolean berth_payload_input_max(BerthPayload *payload, BerthCli *cli, guint64 *out_max_bytes,
                                 GError **error)
{
    Berth__ServerInfo *info = payload->has_input_max ? NULL : berth_cli_server_info(cli, error);
    if (info != NULL) {
        payload->has_input_max = TRUE;
        payload->input_max_bytes = info->input_file_max_bytes;
        berth__server_info__free_unpacked(info, NULL);
    }
    *out_max_bytes = payload->input_max_bytes;
    return payload->has_input_max;
}

typedef struct {
    BerthCli *cli;
    Berth__BlobRef *reference;
    gboolean complete;
    BerthProgress progress;
} Upload;

static gboolean set_changed(GError **error)
{
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                        "it changed while it was being sent; submit again when it is at rest");
    return FALSE;
}

static gboolean upload_chunk(const guint8 *data, gsize length, guint64 offset, gpointer user_data,
                             GError **error)
{
    Upload *upload = user_data;
    if (offset + length > upload->reference->size_bytes)
        return set_changed(error);
    Berth__PutBlobRequest request = BERTH__PUT_BLOB_REQUEST__INIT;
    request.blob = upload->reference;
    request.offset = offset;
    request.data.data = (guint8 *)data;
    request.data.len = length;
    Berth__PutBlobReply *reply = (Berth__PutBlobReply *)berth_cli_call(
        upload->cli, &berth__blobs__descriptor, "Put", &request.base, error);
    if (reply == NULL)
        return FALSE;
    upload->complete = reply->complete;
    berth_progress_update(&upload->progress, offset + length);
    berth__put_blob_reply__free_unpacked(reply, NULL);
    return TRUE;
}

static gboolean upload_bytes(Upload *upload, GBytes *content, GError **error)
{
    gsize size;
    const guint8 *data = g_bytes_get_data(content, &size);
    for (gsize offset = 0; offset < size; offset += CHUNK_BYTES) {
        if (!upload_chunk(data + offset, MIN(size - offset, CHUNK_BYTES), offset, upload, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean upload_file(Upload *upload, const char *path, GError **error)
{
    int fd = open_regular(path, 0, error);
    if (fd < 0)
        return FALSE;
    berth_progress_begin(&upload->progress, "sending", path, upload->reference->size_bytes);
    gboolean ok = read_chunks(fd, path, upload_chunk, upload, error) &&
                  (upload->complete || set_changed(error));
    berth_progress_end(&upload->progress);
    close(fd);
    if (!ok)
        g_prefix_error(error, "cannot send \"%s\": ", path);
    return ok;
}

static gboolean is_present(BerthCli *cli, Berth__BlobRef *reference, gboolean *out_present,
                           GError **error)
{
    Berth__StatBlobRequest request = BERTH__STAT_BLOB_REQUEST__INIT;
    request.blob = reference;
    Berth__StatBlobReply *reply = (Berth__StatBlobReply *)berth_cli_call(
        cli, &berth__blobs__descriptor, "Stat", &request.base, error);
    if (reply == NULL)
        return FALSE;
    *out_present = reply->present;
    berth__stat_blob_reply__free_unpacked(reply, NULL);
    return TRUE;
}

static gboolean upload_blob(BerthCli *cli, const Blob *blob, GError **error)
{
    Berth__BlobRef reference = BERTH__BLOB_REF__INIT;
    gboolean present;
    reference.sha256.data = (guint8 *)blob->digest;
    reference.sha256.len = SHA256_BYTES;
    reference.size_bytes = blob->size_bytes;
    if (!is_present(cli, &reference, &present, error))
        return FALSE;
    if (present)
        return TRUE;
    Upload upload = {.cli = cli, .reference = &reference};
    return blob->content != NULL ? upload_bytes(&upload, blob->content, error)
                                 : upload_file(&upload, blob->path, error);
}

static gboolean upload_all(BerthCli *cli, gpointer user_data, GError **error)
{
    const BerthPayload *payload = user_data;
    for (guint i = 0; i < payload->blobs->len; i++) {
        const Blob *blob = g_ptr_array_index(payload->blobs, i);
        if (!blob->is_inline && !upload_blob(cli, blob, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_payload_upload(BerthPayload *payload, BerthCli *cli, GError **error)
{
    return berth_cli_persist(cli, FALSE, upload_all, payload, error);
}

ProtobufCBinaryData *berth_payload_inline(BerthPayload *payload, gsize *out_n)
{
    g_array_set_size(payload->inline_data, 0);
    for (guint i = 0; i < payload->blobs->len; i++) {
        const Blob *blob = g_ptr_array_index(payload->blobs, i);
        if (!blob->is_inline)
            continue;
        ProtobufCBinaryData data = {.len = blob->size_bytes,
                                    .data = (guint8 *)g_bytes_get_data(blob->content, NULL)};
        g_array_append_val(payload->inline_data, data);
    }
    *out_n = payload->inline_data->len;
    return (ProtobufCBinaryData *)(gpointer)payload->inline_data->data;
}
