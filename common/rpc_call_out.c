/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the calls that this side makes: from the request to exactly one completion, by the reply,
 * the deadline, the caller's cancellation or the end of the connection.
 *
 * Invariant: a call is in peer->calls_out from its request until it is completed; what arrives for
 * an id that is not there any more is dropped (it crossed our CANCEL). */
#include "common/rpc_internal.h"

#include "common/error.h"
#include "common/message.h"

typedef struct {
    guint64 id;
    BerthRpcPeer *peer;
    GTask *task;
    char *name; /* "Jobs.Submit" */
    const ProtobufCMethodDescriptor *method;
    guint timeout_msec;
    gboolean is_stream;
    BerthRpcItemFunc item_func;
    gpointer item_data;
    GSource *timer;
    GSource *cancelled;
} CallOut;

static void call_free(gpointer data)
{
    CallOut *call = data;
    berth_rpc_timer_clear(&call->timer);
    berth_rpc_timer_clear(&call->cancelled);
    g_clear_object(&call->task);
    g_free(call->name);
    g_free(call);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CallOut, call_free)

void berth_rpc_calls_out_init(BerthRpcPeer *peer)
{
    peer->calls_out = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, call_free);
}

/* Takes the call off the table, so that nothing else completes it. */
static CallOut *take(CallOut *call)
{
    g_hash_table_steal(call->peer->calls_out, &call->id);
    berth_rpc_timer_clear(&call->timer);
    berth_rpc_timer_clear(&call->cancelled);
    return call;
}

static void complete_error(CallOut *call, GError *reason)
{
    g_autoptr(CallOut) taken = take(call);
    g_task_return_error(taken->task, reason);
}

static void complete_stream(CallOut *call)
{
    g_autoptr(CallOut) taken = take(call);
    g_task_return_boolean(taken->task, TRUE);
}

static void send_cancel(CallOut *call)
{
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__CANCEL;
    frame.call_id = call->id;
    berth_rpc_out_send(call->peer, &frame);
}

static gboolean on_timeout(gpointer data)
{
    CallOut *call = data;
    send_cancel(call);
    complete_error(call,
                   g_error_new(BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                               "%s: no answer from %s within %u ms; it may still take effect",
                               call->name, call->peer->identity.description, call->timeout_msec));
    return G_SOURCE_REMOVE;
}

static gboolean on_cancelled(GCancellable *cancellable, gpointer data)
{
    CallOut *call = data;
    send_cancel(call);
    complete_error(call,
                   g_error_new(BERTH_ERROR, BERTH_ERROR_CANCELLED, "%s: cancelled", call->name));
    return G_SOURCE_REMOVE;
}

/* --- replies ------------------------------------------------------------------------------ */

static ProtobufCMessage *unpack_reply(const CallOut *call, const Berth__Frame *frame,
                                      GError **error)
{
    g_autoptr(GError) reason = NULL;
    ProtobufCMessage *reply = berth_message_unpack(call->method->output, frame->payload.data,
                                                   frame->payload.len, &reason);
    if (reply == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PROTOCOL, "%s: bad answer from %s: %s",
                    call->name, call->peer->identity.description, reason->message);
    return reply;
}

static void handle_response(CallOut *call, const Berth__Frame *frame)
{
    GError *error = NULL;
    ProtobufCMessage *reply = unpack_reply(call, frame, &error);
    if (reply == NULL) {
        complete_error(call, error);
        return;
    }
    g_autoptr(CallOut) taken = take(call);
    g_task_return_pointer(taken->task, reply, (GDestroyNotify)berth_message_free);
}

static void handle_item(CallOut *call, const Berth__Frame *frame)
{
    GError *error = NULL;
    g_autoptr(ProtobufCMessage) item = unpack_reply(call, frame, &error);
    if (item == NULL) {
        send_cancel(call);
        complete_error(call, error);
        return;
    }
    if (!call->item_func(item, call->item_data)) {
        send_cancel(call);
        complete_stream(call);
    }
}

static void handle_failure(CallOut *call, const Berth__Error *failure)
{
    int code = (int)failure->code;
    if (code < BERTH_ERROR_INVALID_ARGUMENT || code > BERTH_ERROR_INTERNAL)
        code = BERTH_ERROR_INTERNAL;
    complete_error(call, g_error_new_literal(BERTH_ERROR, code, failure->message));
}

void berth_rpc_calls_out_reply(BerthRpcPeer *peer, const Berth__Frame *frame)
{
    CallOut *call = g_hash_table_lookup(peer->calls_out, &frame->call_id);
    if (call == NULL)
        return;
    gboolean of_stream =
        frame->kind == BERTH__FRAME__KIND__ITEM || frame->kind == BERTH__FRAME__KIND__END;
    if (frame->kind == BERTH__FRAME__KIND__FAILURE) {
        handle_failure(call, frame->error);
    } else if (of_stream != call->is_stream) {
        send_cancel(call);
        complete_error(
            call, g_error_new(BERTH_ERROR, BERTH_ERROR_PROTOCOL, "%s: %s answered %s", call->name,
                              peer->identity.description,
                              of_stream ? "a call with a stream" : "a stream with a single reply"));
    } else if (frame->kind == BERTH__FRAME__KIND__RESPONSE) {
        handle_response(call, frame);
    } else if (frame->kind == BERTH__FRAME__KIND__ITEM) {
        handle_item(call, frame);
    } else {
        complete_stream(call);
    }
}

void berth_rpc_calls_out_fail_all(BerthRpcPeer *peer)
{
    /* A callback may make new calls (which fail at once) but adds none here: the peer is closed. */
    g_autoptr(GList) calls = g_hash_table_get_values(peer->calls_out);
    for (GList *item = calls; item != NULL; item = item->next) {
        CallOut *call = item->data;
        g_autoptr(GError) reason = g_error_copy(peer->reason);
        complete_error(
            call, g_error_new(BERTH_ERROR, reason->code, "%s: %s", call->name, reason->message));
    }
}

/* --- requests ----------------------------------------------------------------------------- */

static gboolean send_request(CallOut *call, const ProtobufCMessage *request, GError **error)
{
    g_autoptr(GBytes) payload = berth_message_pack(request);
    gsize size = g_bytes_get_size(payload);
    /* The frame adds less than this to its payload and method name. */
    gsize overhead = 64 + strlen(call->name);
    if (size + overhead > call->peer->limits.max_frame_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s: the request of %" G_GSIZE_FORMAT " bytes is larger than %u bytes, the "
                    "most that is sent at once",
                    call->name, size, call->peer->limits.max_frame_bytes);
        return FALSE;
    }
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__REQUEST;
    frame.call_id = call->id;
    frame.method = call->name;
    frame.timeout_msec = call->timeout_msec;
    frame.payload.data = (guint8 *)g_bytes_get_data(payload, &frame.payload.len);
    berth_rpc_out_send(call->peer, &frame);
    return TRUE;
}

static void start(CallOut *call, GCancellable *cancellable)
{
    g_hash_table_insert(call->peer->calls_out, &call->id, call);
    if (call->timeout_msec > 0)
        call->timer =
            berth_rpc_timer_start(call->peer->context, call->timeout_msec, on_timeout, call);
    if (cancellable != NULL) {
        call->cancelled = g_cancellable_source_new(cancellable);
        g_source_set_callback(call->cancelled, G_SOURCE_FUNC(on_cancelled), call, NULL);
        g_source_attach(call->cancelled, call->peer->context);
    }
}

static void call_start(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                       const char *method, const ProtobufCMessage *request, guint timeout_msec,
                       GCancellable *cancellable, CallOut *new_call)
{
    g_autoptr(CallOut) call = new_call;
    GError *error = NULL;
    call->peer = peer;
    call->name = g_strdup_printf("%s.%s", service->short_name, method);
    call->method = protobuf_c_service_descriptor_get_method_by_name(service, method);
    call->timeout_msec = timeout_msec;
    g_return_if_fail(call->method != NULL && call->method->input == request->descriptor);
    if (berth_rpc_peer_is_closed(peer)) {
        g_task_return_error(call->task, g_error_new(BERTH_ERROR, peer->reason->code, "%s: %s",
                                                    call->name, peer->reason->message));
        return;
    }
    call->id = ++peer->last_call_id;
    if (!send_request(call, request, &error)) {
        g_task_return_error(call->task, error);
        return;
    }
    start(g_steal_pointer(&call), cancellable);
}

void berth_rpc_peer_call_async(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                               const char *method, const ProtobufCMessage *request,
                               guint timeout_msec, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
    CallOut *call = g_new0(CallOut, 1);
    call->task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(call->task, berth_rpc_peer_call_async);
    call_start(peer, service, method, request, timeout_msec, cancellable, call);
}

ProtobufCMessage *berth_rpc_peer_call_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, berth_rpc_peer_call_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

void berth_rpc_peer_stream_async(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                                 const char *method, const ProtobufCMessage *request,
                                 guint timeout_msec, GCancellable *cancellable,
                                 BerthRpcItemFunc item_func, GAsyncReadyCallback callback,
                                 gpointer user_data)
{
    CallOut *call = g_new0(CallOut, 1);
    call->task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(call->task, berth_rpc_peer_stream_async);
    call->is_stream = TRUE;
    call->item_func = item_func;
    call->item_data = user_data;
    call_start(peer, service, method, request, timeout_msec, cancellable, call);
}

gboolean berth_rpc_peer_stream_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, berth_rpc_peer_stream_async), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
