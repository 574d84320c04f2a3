/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the service Blobs: payloads that are too large to travel inside a request, uploaded in
 * pieces straight into storage. An upload belongs to its connection.
 *
 * Invariant: memory per connection is bounded by UPLOADS_MAX times PIECES_MAX pieces. */
#include "config.h"

#include "scheduler/daemon/services.h"

#include "common/error.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/clients.h"
#include "scheduler/daemon/serial.h"
#include "scheduler/daemon/spec_check.h"

#include <string.h>

#define PIECE_MAX_BYTES (1u << 20)
#define UPLOADS_MAX     4u
#define PIECES_MAX      4u

typedef BERTH_SERVICE(Berth__Blobs_Service) BlobsService;

static BerthDaemon *daemon_of(Berth__Blobs_Service *service)
{
    return ((BlobsService *)(void *)service)->daemon;
}

static gboolean check_blob(BerthDaemon *daemon, const Berth__BlobRef *blob, GError **error)
{
    guint64 max_bytes = daemon->config->input_file_max_mib << 20;
    if (!blob || blob->sha256.len != BERTH_SHA256_BYTES) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the request names no content by a digest of %u bytes", BERTH_SHA256_BYTES);
        return FALSE;
    }
    if (blob->size_bytes > max_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "a file of %" G_GUINT64_FORMAT " bytes is too large: at most %" G_GUINT64_FORMAT
                    " are allowed (input_file_max)",
                    blob->size_bytes, max_bytes);
        return FALSE;
    }
    return TRUE;
}

/* --- Stat --------------------------------------------------------------------------------------- */

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    guint8 digest[BERTH_SHA256_BYTES];
    guint64 size_bytes;
    gboolean is_present;
    gboolean is_pinned;
} Stat;

/* What is there is kept for the job that will name it; what is not leaves no trace. */
static gboolean keep(Stat *stat)
{
    guint32 uid = berth_rpc_call_identity(stat->call)->uid;
    return stat->is_present &&
           berth_blob_guard_touch(stat->daemon->blob_guard, uid, stat->digest, NULL);
}

static void reply_stat(Stat *stat, const GError *error)
{
    Berth__StatBlobReply reply = BERTH__STAT_BLOB_REPLY__INIT;
    reply.present = !error && keep(stat);
    if (stat->is_pinned)
        berth_blob_guard_unpin(stat->daemon->blob_guard, stat->digest);
    if (error)
        berth_rpc_call_fail(stat->call, error);
    else
        berth_rpc_call_reply(stat->call, &reply.base);
    g_free(stat);
}

static gpointer stat_storage(BerthStorage *storage, gconstpointer input, GError **error)
{
    Stat *stat = (Stat *)input;
    berth_storage_blob_exists(storage, stat->digest, &stat->is_present, error);
    return NULL;
}

static void on_storage_stat(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    reply_stat(user_data, error);
}

static gpointer stat_store(gconstpointer input, GCancellable *cancellable, GError **error)
{
    Stat *stat = (Stat *)input;
    g_autoptr(GBytes) content = berth_store_get_blob(stat->daemon->store, stat->digest, error);
    stat->is_present = content != NULL;
    return NULL;
}

static void ask_storage(Stat *stat)
{
    berth_storage_link_run_for(stat->daemon->storage, BERTH_LANE_STORAGE_DATA,
                               berth_rpc_call_identity(stat->call)->uid, "look for an upload",
                               stat_storage, stat, NULL, NULL, on_storage_stat, stat);
}

static void on_store_stat(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Stat *stat = user_data;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error || stat->is_present) {
        reply_stat(stat, error);
        return;
    }
    ask_storage(stat);
}

static void blobs_stat(Berth__Blobs_Service *service, const Berth__StatBlobRequest *request,
                       Berth__StatBlobReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    if (!check_blob(daemon, request->blob, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Stat *stat = g_new0(Stat, 1);
    stat->daemon = daemon;
    stat->call = call;
    stat->size_bytes = request->blob->size_bytes;
    memcpy(stat->digest, request->blob->sha256.data, BERTH_SHA256_BYTES);
    stat->is_pinned = berth_blob_guard_pin(daemon->blob_guard, stat->digest);
    if (!stat->is_pinned) {
        reply_stat(stat, NULL);
    } else if (stat->size_bytes <= BERTH_BLOB_INLINE_MAX_BYTES) {
        berth_workers_run_for(daemon->workers, BERTH_LANE_READ, berth_rpc_call_identity(call)->uid,
                              "look for an upload", stat_store, stat, NULL, NULL, 0, on_store_stat,
                              stat);
    } else {
        ask_storage(stat);
    }
}

/* --- Put ---------------------------------------------------------------------------------------- */

typedef struct {
    BerthSerial *serial;
    guint64 size_bytes;
    guint64 next_offset;
} Upload;

typedef struct {
    BerthRpcCall *call;
    const Berth__PutBlobRequest *request; /* valid until the call ends */
    gboolean is_last;
} Piece;

static void upload_free(gpointer data)
{
    Upload *upload = data;
    berth_serial_close(upload->serial, NULL, NULL);
    g_free(upload);
}

static void writer_free(gpointer writer)
{
    berth_blob_writer_free(writer);
}

/* The upload that REQUEST continues or begins; NULL with ERROR. */
static Upload *find_upload(BerthDaemon *daemon, guint32 uid, BerthClientHoldings *holdings,
                           const Berth__PutBlobRequest *request, GError **error)
{
    if (!holdings->uploads) {
        holdings->uploads = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                                  (GDestroyNotify)g_bytes_unref, upload_free);
    }
    g_autoptr(GBytes) key = g_bytes_new(request->blob->sha256.data, BERTH_SHA256_BYTES);
    if (request->offset == 0) {
        g_hash_table_remove(holdings->uploads, key);
        if (g_hash_table_size(holdings->uploads) >= UPLOADS_MAX) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                        "%u uploads are under way on this connection already; finish one first",
                        UPLOADS_MAX);
            return NULL;
        }
        Upload *upload = g_new0(Upload, 1);
        upload->serial = berth_serial_new(daemon->storage, uid, writer_free);
        upload->size_bytes = request->blob->size_bytes;
        g_hash_table_insert(holdings->uploads, g_bytes_ref(key), upload);
    }
    Upload *upload = g_hash_table_lookup(holdings->uploads, key);
    if (!upload || upload->next_offset != request->offset ||
        upload->size_bytes != request->blob->size_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "a piece at offset %" G_GUINT64_FORMAT " is out of order: the next one is "
                    "expected at %" G_GUINT64_FORMAT,
                    request->offset, upload ? upload->next_offset : 0);
        return NULL;
    }
    return upload;
}

static gboolean check_piece(const Berth__PutBlobRequest *request, GError **error)
{
    guint64 size_bytes = request->blob->size_bytes;
    gsize length = request->data.len;
    if (length <= PIECE_MAX_BYTES && request->offset <= size_bytes &&
        length <= size_bytes - request->offset && (length > 0 || size_bytes == 0))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "a piece of %zu bytes at offset %" G_GUINT64_FORMAT " does not belong into a file "
                "of %" G_GUINT64_FORMAT " bytes (pieces have 1 to %u bytes)",
                length, request->offset, size_bytes, PIECE_MAX_BYTES);
    return FALSE;
}

static gboolean write_piece(BerthStorage *storage, gpointer *object, gconstpointer input,
                            GError **error)
{
    const Piece *piece = input;
    const Berth__PutBlobRequest *request = piece->request;
    if (!*object) {
        *object = berth_storage_blob_create(storage, request->blob->sha256.data,
                                            request->blob->size_bytes, error);
    }
    return *object &&
           berth_blob_writer_append(*object, request->data.data, request->data.len, error) &&
           (!piece->is_last || berth_blob_writer_commit(*object, error));
}

static void end_upload(const Piece *piece)
{
    BerthClientHoldings *holdings = berth_client_holdings(piece->call);
    if (holdings && holdings->uploads) {
        g_autoptr(GBytes) key = g_bytes_new(piece->request->blob->sha256.data, BERTH_SHA256_BYTES);
        g_hash_table_remove(holdings->uploads, key);
    }
}

static void on_piece(const GError *error, gpointer user_data)
{
    g_autofree Piece *piece = user_data;
    Berth__PutBlobReply reply = BERTH__PUT_BLOB_REPLY__INIT;
    reply.complete = piece->is_last;
    if (error ? !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED) : reply.complete)
        end_upload(piece);
    if (error)
        berth_rpc_call_fail(piece->call, error);
    else
        berth_rpc_call_reply(piece->call, &reply.base);
}

static gboolean put_piece(BerthDaemon *daemon, const Berth__PutBlobRequest *request,
                          BerthRpcCall *call, GError **error)
{
    BerthClientHoldings *holdings = berth_client_holdings(call);
    if (!check_blob(daemon, request->blob, error) || !check_piece(request, error))
        return FALSE;
    if (!holdings) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                            "the connection has closed");
        return FALSE;
    }
    guint32 uid = berth_rpc_call_identity(call)->uid;
    if (!berth_blob_guard_touch(daemon->blob_guard, uid, request->blob->sha256.data, error))
        return FALSE;
    Upload *upload = find_upload(daemon, uid, holdings, request, error);
    if (!upload)
        return FALSE;
    if (berth_serial_queued(upload->serial) >= PIECES_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "%u pieces of this upload wait already; send the next when one was answered",
                    PIECES_MAX);
        return FALSE;
    }
    upload->next_offset += request->data.len;
    Piece *piece = g_new0(Piece, 1);
    piece->call = call;
    piece->request = request;
    piece->is_last = upload->next_offset == upload->size_bytes;
    berth_serial_run(upload->serial, "upload a file", write_piece, piece, on_piece, piece);
    return TRUE;
}

static void blobs_put(Berth__Blobs_Service *service, const Berth__PutBlobRequest *request,
                      Berth__PutBlobReply_Closure closure, void *closure_data)
{
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    if (!put_piece(daemon_of(service), request, call, &error))
        berth_rpc_call_fail(call, error);
}

ProtobufCService *berth_blobs_service_new(BerthDaemon *daemon)
{
    static const Berth__Blobs_Service template = BERTH__BLOBS__INIT(blobs_);
    BlobsService *service = g_new0(BlobsService, 1);
    service->base = template;
    service->daemon = daemon;
    return &service->base.base;
}
