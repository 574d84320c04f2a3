/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the service Images: imports, which stream into storage, and the images that came of them.
 * What is in an image is of no concern here.
 *
 * Invariants: an import belongs to its connection, and its name is reserved until nothing of it is
 * written any more; an image exists for users from the commit of its record to that of its
 * removal, and its object in storage exists at least as long. */
#include "config.h"

#include "scheduler/daemon/services.h"

#include "common/error.h"
#include "scheduler/daemon/clients.h"
#include "scheduler/daemon/collector.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/image_removal.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/serial.h"
#include "scheduler/daemon/spec_check.h"

#include <string.h>

#define PIECE_MAX_BYTES  (1u << 20)
#define PIECES_MAX       16u
#define IMPORTS_MAX      4u
#define SOURCE_MAX_BYTES 4096u
/* Objects that are to be removed, from which no import may be begun: while storage is away, each import
 * that fails leaves one. */
#define UNWANTED_MAX 256u

typedef BERTH_SERVICE(Berth__Images_Service) ImagesService;

typedef struct {
    BerthDaemon *daemon;
    BerthSerial *serial;
    char *import_id; /* and name of the object in storage */
    Berth__Image *image;
    char *user;
    gboolean is_committing;
    gboolean is_recorded; /* or may be: its record was given to the store */
} Import;

/* One call on an import. */
typedef struct {
    BerthRpcCall *call;
    Import *import; /* valid unless the operation was cancelled */
    const Berth__ImportWriteRequest *write;
} Step;

static BerthDaemon *daemon_of(Berth__Images_Service *service)
{
    return ((ImagesService *)(void *)service)->daemon;
}

/* --- imports ------------------------------------------------------------------------------------ */

/* What came of an import that nobody will know. Storage has removed it itself, but for what failed
 * there, or was committed when it was given up. */
static void discard(const Import *import)
{
    berth_image_table_set_unwanted(import->daemon->images, import->import_id,
                                   BERTH_UNWANTED_REMOVAL);
    if (import->is_committing)
        berth_image_removal_object(import->daemon, import->import_id);
}

static void on_import_closed(gpointer user_data)
{
    Import *import = user_data;
    if (!import->is_recorded)
        discard(import);
    berth_image_table_unreserve(import->daemon->images, import->image->name);
    berth__image__free_unpacked(import->image, NULL);
    g_free(import->import_id);
    g_free(import->user);
    g_free(import);
}

static void import_close(gpointer data)
{
    Import *import = data;
    berth_serial_close(import->serial, on_import_closed, import);
}

static void writer_free(gpointer writer)
{
    berth_image_writer_free(writer);
}

/* Ends an import that is still its connection's. */
static void drop_import(const Step *step)
{
    BerthClientHoldings *holdings = berth_client_holdings(step->call);
    if (holdings && holdings->imports)
        g_hash_table_remove(holdings->imports, step->import->import_id);
}

static void fail_step(Step *step, const GError *error)
{
    berth_rpc_call_fail(step->call, error);
    g_free(step);
}

/* A step that failed ends the import; one that was cancelled is the end of it already. */
static gboolean step_failed(Step *step, const GError *error)
{
    if (!error)
        return FALSE;
    if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED))
        drop_import(step);
    fail_step(step, error);
    return TRUE;
}

static void run_step(Import *import, BerthRpcCall *call, const Berth__ImportWriteRequest *write,
                     const char *what, BerthSerialFunc func, BerthSerialDone done)
{
    Step *step = g_new0(Step, 1);
    *step = (Step){call, import, write};
    berth_serial_run(import->serial, what, func, step, done, step);
}

/* The caller's import; NULL with ERROR. */
static Import *find_import(BerthRpcCall *call, const char *import_id, GError **error)
{
    const BerthClientHoldings *holdings = berth_client_holdings(call);
    Import *import =
        holdings && holdings->imports ? g_hash_table_lookup(holdings->imports, import_id) : NULL;
    if (!import || import->is_committing) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                            "there is no such import on this connection: it has failed, was ended, "
                            "or was begun elsewhere; begin it again");
        return NULL;
    }
    return import;
}

/* --- ImportBegin -------------------------------------------------------------------------------- */

static gboolean create_image(BerthStorage *storage, gpointer *object, gconstpointer input,
                             GError **error)
{
    const Step *step = input;
    *object = berth_storage_image_create(storage, step->import->import_id,
                                         step->import->image->size_bytes, error);
    return *object != NULL;
}

static void on_created(const GError *error, gpointer user_data)
{
    Step *step = user_data;
    if (step_failed(step, error))
        return;
    Berth__ImportBeginReply reply = BERTH__IMPORT_BEGIN_REPLY__INIT;
    reply.import_id = step->import->import_id;
    berth_rpc_call_reply(step->call, &reply.base);
    g_free(step);
}

static gboolean check_begin(BerthDaemon *daemon, const Berth__ImportBeginRequest *request,
                            GError **error)
{
    guint64 max_bytes = daemon->config->image_max_mib << 20;
    if (!berth_image_name_check(request->name, error))
        return FALSE;
    if (request->size_bytes == 0 || request->size_bytes > max_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "an image of %" G_GUINT64_FORMAT " bytes cannot be imported: 1 to "
                    "%" G_GUINT64_FORMAT " bytes are allowed (image_max)",
                    request->size_bytes, max_bytes);
        return FALSE;
    }
    return TRUE;
}

static Berth__Image *new_image(BerthDaemon *daemon, const Berth__ImportBeginRequest *request,
                               const char *id)
{
    Berth__Image image = BERTH__IMAGE__INIT;
    image.name = request->name;
    image.size_bytes = request->size_bytes;
    image.created_usec = (guint64)berth_engine_now_usec(daemon->engine);
    image.id = (char *)id;
    Berth__Image *copy = berth_pb_dup(&image.base);
    berth_pb_set_text(&copy->source, request->source, SOURCE_MAX_BYTES, FALSE);
    return copy;
}

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    const Berth__ImportBeginRequest *request;
    char *user;
    char *id; /* of the object, once its name is reserved */
} Begin;

static void begin_free(Begin *begin)
{
    g_free(begin->user);
    g_free(begin->id);
    g_free(begin);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Begin, begin_free)

/* NULL with ERROR: the connection has closed, or has as many as it may. */
static GHashTable *imports_with_room(const Begin *begin, GError **error)
{
    BerthClientHoldings *holdings = berth_client_holdings(begin->call);
    if (!holdings) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_CANCELLED, "the connection has closed");
        return NULL;
    }
    if (!holdings->imports)
        holdings->imports = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, import_close);
    if (g_hash_table_size(holdings->imports) >= IMPORTS_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "%u imports are under way on this connection already; finish one first",
                    IMPORTS_MAX);
        return NULL;
    }
    return holdings->imports;
}

static void begin_import(Begin *begin, GHashTable *imports)
{
    BerthDaemon *daemon = begin->daemon;
    Import *import = g_new0(Import, 1);
    import->daemon = daemon;
    import->serial =
        berth_serial_new(daemon->storage, berth_rpc_call_identity(begin->call)->uid, writer_free);
    import->image = new_image(daemon, begin->request, begin->id);
    berth_pb_set_string(&import->image->created_by, begin->user);
    import->import_id = g_steal_pointer(&begin->id);
    import->user = g_steal_pointer(&begin->user);
    g_hash_table_insert(imports, import->import_id, import);
    run_step(import, begin->call, NULL, "begin an import", create_image, on_created);
}

static void on_noted(const GError *failed, gpointer user_data)
{
    g_autoptr(Begin) begin = user_data;
    g_autoptr(GError) error = failed ? g_error_copy(failed) : NULL;
    GHashTable *imports = NULL;
    if (!error && berth_engine_check(begin->daemon->engine, &error))
        imports = imports_with_room(begin, &error);
    if (imports) {
        begin_import(begin, imports);
        return;
    }
    berth_image_table_unreserve(begin->daemon->images, begin->request->name);
    berth_rpc_call_fail(begin->call, error);
}

/* Where there are too many notes, they are looked at now. */
static gboolean check_unwanted(BerthDaemon *daemon, GError **error)
{
    guint n = berth_image_table_n_unwanted(daemon->images);
    if (n < UNWANTED_MAX)
        return TRUE;
    berth_collector_run(daemon->collector);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "%u objects of images that were removed or whose import failed are to be removed "
                "from storage first; try again in a moment, or see whether storage answers",
                n);
    return FALSE;
}

/* The object is noted as unwanted before it is made: whatever becomes of the import, it is not left. */
static gboolean note_import(Begin *begin, GError **error)
{
    BerthDaemon *daemon = begin->daemon;
    begin->id =
        g_strdup_printf("%s-%08x%08x", begin->request->name, g_random_int(), g_random_int());
    if (!berth_engine_check(daemon->engine, error) || !imports_with_room(begin, error) ||
        !check_unwanted(daemon, error) ||
        !berth_image_table_reserve(daemon->images, begin->request->name, begin->id, error))
        return FALSE;
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    berth_store_batch_put_unwanted(berth_turn_batch(turn), begin->id, BERTH_UNWANTED_IMPORT);
    berth_image_table_set_unwanted(daemon->images, begin->id, BERTH_UNWANTED_IMPORT);
    berth_turn_then(turn, on_noted, begin);
    berth_turn_commit(turn);
    return TRUE;
}

static void on_user(const char *name, const GError *unnamed, gpointer user_data)
{
    g_autoptr(Begin) begin = user_data;
    g_autoptr(GError) error = NULL;
    begin->user = g_strdup(name);
    if (note_import(begin, &error))
        begin = NULL; /* on_noted() has it */
    else
        berth_rpc_call_fail(begin->call, error);
}

static void images_import_begin(Berth__Images_Service *service,
                                const Berth__ImportBeginRequest *request,
                                Berth__ImportBeginReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    g_autoptr(GError) error = NULL;
    if (!berth_permission_check_operator(&daemon->operators, who, "import images", &error) ||
        !check_begin(daemon, request, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Begin *begin = g_new0(Begin, 1);
    *begin = (Begin){.daemon = daemon, .call = call, .request = request};
    berth_users_name(daemon->users, who->uid, on_user, begin);
}

/* --- ImportWrite -------------------------------------------------------------------------------- */

static gboolean write_image(BerthStorage *storage, gpointer *object, gconstpointer input,
                            GError **error)
{
    const Berth__ImportWriteRequest *request = ((const Step *)input)->write;
    return berth_image_writer_write(*object, request->offset, request->data.data, request->data.len,
                                    error);
}

static void on_written(const GError *error, gpointer user_data)
{
    Step *step = user_data;
    if (step_failed(step, error))
        return;
    Berth__ImportWriteReply reply = BERTH__IMPORT_WRITE_REPLY__INIT;
    berth_rpc_call_reply(step->call, &reply.base);
    g_free(step);
}

static gboolean check_write(Import *import, const Berth__ImportWriteRequest *request,
                            GError **error)
{
    guint64 size_bytes = import->image->size_bytes;
    gsize length = request->data.len;
    if (length == 0 || length > PIECE_MAX_BYTES || request->offset > size_bytes ||
        length > size_bytes - request->offset) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "a piece of %zu bytes at offset %" G_GUINT64_FORMAT " does not belong into an "
                    "image of %" G_GUINT64_FORMAT " bytes (pieces have 1 to %u bytes)",
                    length, request->offset, size_bytes, PIECE_MAX_BYTES);
        return FALSE;
    }
    if (berth_serial_queued(import->serial) >= PIECES_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "%u pieces of this import wait already; send the next when one was answered",
                    PIECES_MAX);
        return FALSE;
    }
    return TRUE;
}

static void images_import_write(Berth__Images_Service *service,
                                const Berth__ImportWriteRequest *request,
                                Berth__ImportWriteReply_Closure closure, void *closure_data)
{
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    Import *import = find_import(call, request->import_id, &error);
    if (!import || !check_write(import, request, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    run_step(import, call, request, "write an image", write_image, on_written);
}

/* --- ImportCommit ------------------------------------------------------------------------------- */

static void on_record_committed(const GError *error, gpointer user_data)
{
    Step *step = user_data;
    if (error)
        berth_rpc_call_fail(step->call, error);
    else
        berth_rpc_call_reply(step->call, &step->import->image->base);
    import_close(step->import);
    g_free(step);
}

static gboolean commit_image(BerthStorage *storage, gpointer *object, gconstpointer input,
                             GError **error)
{
    return berth_image_writer_commit(*object, error);
}

static void on_image_committed(const GError *failed, gpointer user_data)
{
    Step *step = user_data;
    Import *import = step->import;
    g_autoptr(GError) error = failed ? g_error_copy(failed) : NULL;
    if (!error)
        berth_engine_check(import->daemon->engine, &error);
    if (step_failed(step, error))
        return;
    BerthDaemon *daemon = import->daemon;
    Berth__Event event = BERTH__EVENT__INIT;
    import->is_recorded = TRUE;
    /* From here on it is no longer its connection's. */
    g_hash_table_steal(berth_client_holdings(step->call)->imports, import->import_id);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    berth_store_batch_put_image(berth_turn_batch(turn), import->image);
    berth_store_batch_remove_unwanted(berth_turn_batch(turn), import->import_id);
    berth_image_table_clear_unwanted(daemon->images, import->import_id);
    berth_event_image(BERTH__EVENT__KIND__IMAGE_IMPORTED, import->image->name, import->user,
                      &event);
    berth_turn_log(turn, &event);
    berth_image_table_put(daemon->images, berth_pb_dup(&import->image->base));
    berth_turn_then(turn, on_record_committed, step);
    berth_turn_commit(turn);
}

static void images_import_commit(Berth__Images_Service *service,
                                 const Berth__ImportCommitRequest *request,
                                 Berth__Image_Closure closure, void *closure_data)
{
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    Import *import = find_import(call, request->import_id, &error);
    if (!import) {
        berth_rpc_call_fail(call, error);
        return;
    }
    import->is_committing = TRUE;
    run_step(import, call, NULL, "finish an image", commit_image, on_image_committed);
}

/* --- ImportAbort -------------------------------------------------------------------------------- */

static void images_import_abort(Berth__Images_Service *service,
                                const Berth__ImportAbortRequest *request,
                                Berth__ImportAbortReply_Closure closure, void *closure_data)
{
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    if (!find_import(call, request->import_id, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    g_hash_table_remove(berth_client_holdings(call)->imports, request->import_id);
    Berth__ImportAbortReply reply = BERTH__IMPORT_ABORT_REPLY__INIT;
    berth_rpc_call_reply(call, &reply.base);
}

/* --- List, Get ---------------------------------------------------------------------------------- */

/* Fills in what is counted when it is asked for. */
static Berth__Image *shown(BerthDaemon *daemon, Berth__Image *image)
{
    image->jobs = berth_job_table_count_image(daemon->jobs, image->name);
    return image;
}

/* Where the page after AFTER begins. */
static guint first_after(const GPtrArray *images, const char *after)
{
    guint first = 0;
    while (*after && first < images->len &&
           strcmp(((const Berth__Image *)g_ptr_array_index(images, first))->name, after) <= 0)
        first++;
    return first;
}

/* An image's record is small: names and numbers of limited length. */
static void images_list(Berth__Images_Service *service, const Berth__ListImagesRequest *request,
                        Berth__ListImagesReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    g_autoptr(GPtrArray) images = berth_image_table_list(daemon->images);
    guint page_size = daemon->config->page_size;
    guint limit = request->limit == 0 ? page_size : MIN(request->limit, page_size);
    guint first = first_after(images, request->after);
    Berth__ListImagesReply reply = BERTH__LIST_IMAGES_REPLY__INIT;
    reply.images = (Berth__Image **)images->pdata + first;
    reply.n_images = MIN(images->len - first, limit);
    for (gsize i = 0; i < reply.n_images; i++)
        shown(daemon, reply.images[i]);
    if (first + reply.n_images < images->len)
        reply.next_after = reply.images[reply.n_images - 1]->name;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static void images_get(Berth__Images_Service *service, const Berth__GetImageRequest *request,
                       Berth__Image_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    Berth__Image *image = berth_image_table_get(daemon->images, request->name, &error);
    if (!image) {
        berth_rpc_call_fail(call, error);
        return;
    }
    berth_rpc_call_reply(call, &shown(daemon, image)->base);
}

/* --- Remove ------------------------------------------------------------------------------------- */

static void images_remove(Berth__Images_Service *service, const Berth__RemoveImageRequest *request,
                          Berth__RemoveImageReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    g_autoptr(GError) error = NULL;
    if (!berth_permission_check_operator(&daemon->operators, who, "remove images", &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    berth_image_removal_run(daemon, request->name, call);
}

ProtobufCService *berth_images_service_new(BerthDaemon *daemon)
{
    static const Berth__Images_Service template = BERTH__IMAGES__INIT(images_);
    ImagesService *service = g_new0(ImagesService, 1);
    service->base = template;
    service->daemon = daemon;
    return &service->base.base;
}
