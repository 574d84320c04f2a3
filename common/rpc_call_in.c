/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the calls that the other side makes: finding their handler, their replies, cancellation,
 * and the limits on what one peer may have open. Does not own the handlers.
 *
 * Invariants: a call is in peer->calls_in until it is ended or cancelled, and only then may it
 * reply; it stays allocated, and counts against the limits, until its handler ends it. */
#include "common/rpc_internal.h"

#include "common/error.h"
#include "common/message.h"

#include <string.h>

/* Requests of open calls of one peer may take this many times its largest frame. */
#define MEMORY_FRAMES 4u
/* Room for answers of numbers, and of numbers and texts. */
#define NUMBERS_ROOM 256u
#define TEXTS_ROOM   (64u * 1024u)

struct BerthRpcCall {
    BerthRpcPeer *peer;
    guint64 id;
    const ProtobufCMethodDescriptor *method;
    ProtobufCMessage *request;
    gsize memory;
    gsize room; /* kept for the answer */
    BerthRpcTurn turn;
    gboolean cancelled;
    GSource *deadline;
    BerthRpcCallFunc ready_func;
    gpointer ready_data;
    BerthRpcCallFunc cancelled_func;
    gpointer cancelled_data;
};

void berth_rpc_calls_in_init(BerthRpcPeer *peer)
{
    peer->calls_in = g_hash_table_new(g_int64_hash, g_int64_equal);
}

/* --- replies ------------------------------------------------------------------------------ */

static void send_failure(BerthRpcPeer *peer, guint64 id, int code, const char *message)
{
    Berth__Error failure = BERTH__ERROR__INIT;
    Berth__Frame frame = BERTH__FRAME__INIT;
    failure.code = (Berth__ErrorCode)code;
    failure.message = (char *)message;
    frame.kind = BERTH__FRAME__KIND__FAILURE;
    frame.call_id = id;
    frame.error = &failure;
    berth_rpc_out_send(peer, &frame);
}

/* PAYLOAD: a message, packed. FALSE: it does not fit into a frame; the call was failed instead. */
static gboolean send_payload(BerthRpcCall *call, Berth__Frame__Kind kind, GBytes *payload)
{
    gsize size = g_bytes_get_size(payload);
    if (size + 64 > call->peer->limits.max_frame_bytes) {
        g_autofree char *text = g_strdup_printf("the answer of %" G_GSIZE_FORMAT
                                                " bytes is larger than %u bytes, the most that is "
                                                "sent at once; ask for less",
                                                size, call->peer->limits.max_frame_bytes);
        send_failure(call->peer, call->id, BERTH_ERROR_RESOURCE_EXHAUSTED, text);
        return FALSE;
    }
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = kind;
    frame.call_id = call->id;
    frame.payload.data = (guint8 *)g_bytes_get_data(payload, &frame.payload.len);
    berth_rpc_out_send(call->peer, &frame);
    return TRUE;
}

static void call_free(BerthRpcCall *call)
{
    BerthRpcPeer *peer = call->peer;
    berth_rpc_turn_end(&call->turn);
    if (!call->cancelled)
        g_hash_table_remove(peer->calls_in, &call->id);
    g_queue_remove(&peer->waiting, call);
    berth_rpc_timer_clear(&call->deadline);
    peer->calls_in_open--;
    peer->calls_in_memory -= call->memory;
    peer->streams_memory -= call->ready_func != NULL ? call->memory : 0;
    peer->calls_in_room -= call->room;
    berth_rpc_budget_update(peer);
    berth_message_free(call->request);
    g_free(call);
    berth_rpc_peer_drop(peer);
}

void berth_rpc_call_reply(BerthRpcCall *call, const ProtobufCMessage *reply)
{
    if (!call->cancelled && reply->descriptor == call->method->output) {
        g_autoptr(GBytes) payload = berth_message_pack(reply);
        send_payload(call, BERTH__FRAME__KIND__RESPONSE, payload);
    } else if (!call->cancelled) {
        send_failure(call->peer, call->id, BERTH_ERROR_INTERNAL, "a reply of the wrong type");
    }
    call_free(call);
}

void berth_rpc_call_fail(BerthRpcCall *call, const GError *error)
{
    int code = error->domain == BERTH_ERROR ? error->code : BERTH_ERROR_INTERNAL;
    if (!call->cancelled) {
        g_autofree char *text = g_utf8_make_valid(error->message, -1);
        send_failure(call->peer, call->id, code, text);
    }
    call_free(call);
}

void berth_rpc_call_end(BerthRpcCall *call)
{
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = BERTH__FRAME__KIND__END;
    frame.call_id = call->id;
    if (!call->cancelled)
        berth_rpc_out_send(call->peer, &frame);
    call_free(call);
}

/* --- cancellation ------------------------------------------------------------------------- */

static void cancel(BerthRpcCall *call)
{
    g_hash_table_remove(call->peer->calls_in, &call->id);
    g_queue_remove(&call->peer->waiting, call);
    berth_rpc_timer_clear(&call->deadline);
    call->cancelled = TRUE;
    BerthRpcCallFunc func = call->cancelled_func;
    call->cancelled_func = NULL;
    if (func != NULL)
        func(call, call->cancelled_data);
}

static gboolean on_deadline(gpointer data)
{
    cancel(data);
    return G_SOURCE_REMOVE;
}

void berth_rpc_calls_in_cancel(BerthRpcPeer *peer, guint64 call_id)
{
    BerthRpcCall *call = g_hash_table_lookup(peer->calls_in, &call_id);
    if (call != NULL) /* else it was ended, and the CANCEL crossed the reply */
        cancel(call);
}

void berth_rpc_calls_in_cancel_all(BerthRpcPeer *peer)
{
    for (;;) {
        GHashTableIter iter;
        gpointer call = NULL;
        /* Anew each time: a function that is told may end other calls too. */
        g_hash_table_iter_init(&iter, peer->calls_in);
        if (!g_hash_table_iter_next(&iter, NULL, &call))
            return;
        cancel(call);
    }
}

void berth_rpc_call_set_cancelled_func(BerthRpcCall *call, BerthRpcCallFunc func,
                                       gpointer user_data)
{
    call->cancelled_func = func;
    call->cancelled_data = user_data;
}

gboolean berth_rpc_call_is_cancelled(BerthRpcCall *call)
{
    return call->cancelled;
}

/* --- streams ------------------------------------------------------------------------------ */

static gboolean on_too_large(gpointer data)
{
    cancel(data);
    return G_SOURCE_REMOVE;
}

gboolean berth_rpc_call_send_item(BerthRpcCall *call, const ProtobufCMessage *item)
{
    g_return_val_if_fail(item->descriptor == call->method->output, FALSE);
    if (call->cancelled || call->peer->state != PEER_OPEN)
        return FALSE;
    g_autoptr(GBytes) packed = berth_message_pack(item);
    return berth_rpc_call_send_packed(call, packed);
}

gboolean berth_rpc_call_send_packed(BerthRpcCall *call, GBytes *item)
{
    BerthRpcPeer *peer = call->peer;
    if (call->cancelled || peer->state != PEER_OPEN)
        return FALSE;
    if (!send_payload(call, BERTH__FRAME__KIND__ITEM, item)) {
        /* The caller has its failure; the handler hears of it from the loop. */
        berth_rpc_timer_clear(&call->deadline);
        call->deadline = berth_rpc_timer_start(peer->context, 0, on_too_large, call);
        return FALSE;
    }
    return berth_rpc_call_has_room(call);
}

gboolean berth_rpc_call_has_room(BerthRpcCall *call)
{
    BerthRpcPeer *peer = call->peer;
    if (call->cancelled || peer->state != PEER_OPEN || !berth_rpc_out_is_high(peer))
        return TRUE;
    if (g_queue_find(&peer->waiting, call) == NULL)
        g_queue_push_tail(&peer->waiting, call);
    return FALSE;
}

void berth_rpc_call_set_ready_func(BerthRpcCall *call, BerthRpcCallFunc func, gpointer user_data)
{
    /* A stream waits for room with each of its items, and otherwise for what is to come, which may be for ever: nobody is to
     * wait for its end. */
    call->peer->streams_memory += call->ready_func == NULL ? call->memory : 0;
    call->ready_func = func;
    call->ready_data = user_data;
    berth_rpc_turn_end(&call->turn);
    call->peer->calls_in_room -= call->room;
    call->room = 0;
    berth_rpc_budget_update(call->peer);
}

/* Each in turn, until the queue is full again: the others come first the next time. */
void berth_rpc_calls_in_drained(BerthRpcPeer *peer)
{
    while (!berth_rpc_out_is_high(peer)) {
        BerthRpcCall *call = g_queue_pop_head(&peer->waiting);
        if (call == NULL)
            return;
        if (call->ready_func != NULL)
            call->ready_func(call, call->ready_data);
    }
}

/* --- requests ----------------------------------------------------------------------------- */

/* "Jobs.Submit": the service, and the index of the method in it. */
static ProtobufCService *find_method(const BerthRpcPeer *peer, const char *name, guint *out_index)
{
    const char *dot = strchr(name, '.');
    if (dot == NULL || peer->services == NULL)
        return NULL;
    for (ProtobufCService *const *service = peer->services; *service != NULL; service++) {
        const ProtobufCServiceDescriptor *descriptor = (*service)->descriptor;
        gsize length = strlen(descriptor->short_name);
        if (length != (gsize)(dot - name) || strncmp(descriptor->short_name, name, length) != 0)
            continue;
        const ProtobufCMethodDescriptor *method =
            protobuf_c_service_descriptor_get_method_by_name(descriptor, dot + 1);
        if (method == NULL)
            return NULL;
        *out_index = (guint)(method - descriptor->methods);
        return *service;
    }
    return NULL;
}

/* What a message may be, by its type: numbers alone are small, texts of one object are of limited
 * length, and a list or a whole specification may fill a frame. */
static gsize room_of(const BerthRpcPeer *peer, const ProtobufCMessageDescriptor *type)
{
    gsize room = NUMBERS_ROOM;
    for (guint i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->label == PROTOBUF_C_LABEL_REPEATED || field->type == PROTOBUF_C_TYPE_MESSAGE)
            return peer->limits.max_frame_bytes;
        if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_BYTES)
            room = TEXTS_ROOM;
    }
    return MIN(room, peer->limits.max_frame_bytes);
}

gsize berth_rpc_calls_in_answer_room(const BerthRpcPeer *peer, const Berth__Frame *frame)
{
    guint index = 0;
    const ProtobufCService *service = find_method(peer, frame->method, &index);
    return service == NULL ? NUMBERS_ROOM
                           : room_of(peer, service->descriptor->methods[index].output);
}

static ProtobufCMessage *unpack_request(BerthRpcPeer *peer, const Berth__Frame *frame,
                                        const ProtobufCMessageDescriptor *descriptor,
                                        gsize *out_memory, GError **error)
{
    if (peer->calls_in_open >= peer->limits.max_open_calls) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "%s: this connection has %u calls open already; wait for some to end",
                    frame->method, peer->calls_in_open);
        return NULL;
    }
    gsize budget = (gsize)peer->limits.max_frame_bytes * MEMORY_FRAMES;
    gsize left = budget - MIN(budget, peer->calls_in_memory);
    return berth_message_unpack_limited(descriptor, frame->payload.data, frame->payload.len, left,
                                        out_memory, error);
}

static BerthRpcCall *call_new(BerthRpcPeer *peer, const Berth__Frame *frame,
                              const ProtobufCMethodDescriptor *method, ProtobufCMessage *request,
                              gsize memory)
{
    BerthRpcCall *call = g_new0(BerthRpcCall, 1);
    call->peer = berth_rpc_peer_hold(peer);
    call->id = frame->call_id;
    call->method = method;
    call->request = request;
    call->memory = memory;
    peer->calls_in_open++;
    call->room = room_of(peer, method->output);
    peer->calls_in_memory += memory;
    peer->calls_in_room += call->room;
    berth_rpc_budget_update(peer);
    berth_rpc_budget_begin(peer, &call->turn);
    g_hash_table_insert(peer->calls_in, &call->id, call);
    if (frame->timeout_msec > 0)
        call->deadline =
            berth_rpc_timer_start(peer->context, frame->timeout_msec, on_deadline, call);
    return call;
}

void berth_rpc_calls_in_request(BerthRpcPeer *peer, Berth__Frame *frame)
{
    if (g_hash_table_contains(peer->calls_in, &frame->call_id)) {
        berth_rpc_peer_fail(peer, g_error_new(BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                                              "closed the connection to %s: it used the number of "
                                              "an open call again",
                                              peer->identity.description));
        return;
    }
    if (peer->refusal != NULL) {
        send_failure(peer, frame->call_id, peer->refusal->code, peer->refusal->message);
        return;
    }
    guint index = 0;
    ProtobufCService *service = find_method(peer, frame->method, &index);
    if (service == NULL) {
        g_autofree char *text = g_strdup_printf("no such method: %.64s; is one side older than the "
                                                "other?",
                                                frame->method);
        send_failure(peer, frame->call_id, BERTH_ERROR_UNSUPPORTED, text);
        return;
    }
    const ProtobufCMethodDescriptor *method = &service->descriptor->methods[index];
    g_autoptr(GError) error = NULL;
    gsize memory = 0;
    ProtobufCMessage *request = unpack_request(peer, frame, method->input, &memory, &error);
    if (request == NULL) {
        send_failure(peer, frame->call_id, error->code, error->message);
        return;
    }
    BerthRpcCall *call = call_new(peer, frame, method, request, memory);
    /* From here on the call may be gone: its handler owns it. */
    service->invoke(service, index, request, NULL, call);
}

/* --- looking ------------------------------------------------------------------------------ */

BerthRpcPeer *berth_rpc_call_peer(BerthRpcCall *call)
{
    return call->peer;
}

const BerthRpcIdentity *berth_rpc_call_identity(BerthRpcCall *call)
{
    return &call->peer->identity;
}
