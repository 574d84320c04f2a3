/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the service Agent: what the scheduler asks, as calls of guests. */
#include <config.h>

#include "nodeagent/agent_private.h"

#include "common/error.h"
#include "common/id.h"

typedef struct {
    Berth__Agent_Service base;
    BerthAgent *agent;
} AgentService;

static BerthAgent *agent_of(Berth__Agent_Service *service)
{
    return ((AgentService *)(void *)service)->agent;
}

static gboolean read_id(const Berth__GuestId *id, BerthGuestId *out_id, BerthRpcCall *call)
{
    if (id != NULL && id->job >= 1 && id->epoch >= 1) {
        *out_id = (BerthGuestId){id->job, id->task, id->guest, id->epoch};
        return TRUE;
    }
    g_autoptr(GError) error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                                                  "the request names no guest");
    berth_rpc_call_fail(call, error);
    return FALSE;
}

/* The guest, or a new one of that id. */
static BerthGuest *find_or_add(BerthAgent *agent, const BerthGuestId *id)
{
    BerthGuest *guest = berth_guest_table_find(agent->table, id);
    if (guest == NULL) {
        guest = berth_guest_new(&agent->context, id);
        berth_guest_table_add(agent->table, guest);
    }
    return guest;
}

static void answer_start(BerthFault fault, const GError *error, gpointer call)
{
    Berth__StartGuestReply reply = BERTH__START_GUEST_REPLY__INIT;
    Berth__Error reason = BERTH__ERROR__INIT;
    if (error != NULL) {
        reason.code = error->domain == BERTH_ERROR ? (Berth__ErrorCode)error->code
                                                   : BERTH__ERROR_CODE__ERROR_INTERNAL;
        reason.message = error->message;
        reply.fault = fault;
        reply.error = &reason;
    }
    berth_rpc_call_reply(call, &reply.base);
}

/* What cannot be started now is refused before anything is made for it. */
static BerthFault check_can_start(const BerthAgent *agent, const Berth__StartGuestRequest *request,
                                  GError **error)
{
    if (request->vcpus > agent->host->max_vcpus || request->memory_mib > agent->host->memory_mib) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot start a guest with %u vCPU%s and %" G_GUINT64_FORMAT
                    " MiB here: the host allows %u vCPU%s per guest and has %" G_GUINT64_FORMAT
                    " MiB",
                    request->vcpus, request->vcpus == 1 ? "" : "s", request->memory_mib,
                    agent->host->max_vcpus, agent->host->max_vcpus == 1 ? "" : "s",
                    agent->host->memory_mib);
        return BERTH_FAULT_NODE;
    }
    g_autofree char *why = berth_agent_cannot_start(agent);
    if (why == NULL)
        return BERTH_FAULT_NONE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, why);
    gboolean is_storage_s =
        agent->lost_reason == NULL && berth_storage_lane_error(agent->lane) != NULL;
    return is_storage_s ? BERTH_FAULT_STORAGE : BERTH_FAULT_NODE;
}

static void agent_start_guest(Berth__Agent_Service *service,
                              const Berth__StartGuestRequest *request,
                              Berth__StartGuestReply_Closure closure, void *closure_data)
{
    BerthAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    BerthGuestId id;
    if (!read_id(request->id, &id, call))
        return;
    BerthFault fault = BERTH_FAULT_NONE;
    if (berth_guest_table_find(agent->table, &id) == NULL)
        fault = check_can_start(agent, request, &error);
    if (fault != BERTH_FAULT_NONE)
        answer_start(fault, error, call);
    else
        berth_guest_start(find_or_add(agent, &id), request, answer_start, call);
}

static void agent_stop_guest(Berth__Agent_Service *service, const Berth__StopGuestRequest *request,
                             Berth__StopGuestReply_Closure closure, void *closure_data)
{
    BerthAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    Berth__StopGuestReply reply = BERTH__STOP_GUEST_REPLY__INIT;
    BerthGuestId id;
    if (!read_id(request->id, &id, call))
        return;
    BerthGuest *guest = berth_guest_table_find(agent->table, &id);
    reply.unknown = guest == NULL || !berth_guest_stop(guest, request->grace_msec);
    berth_rpc_call_reply(call, &reply.base);
}

static void answer_release(BerthFault fault, const GError *error, gpointer call)
{
    Berth__ReleaseGuestReply reply = BERTH__RELEASE_GUEST_REPLY__INIT;
    if (error != NULL)
        berth_rpc_call_fail(call, error);
    else
        berth_rpc_call_reply(call, &reply.base);
}

static void agent_release_guest(Berth__Agent_Service *service,
                                const Berth__ReleaseGuestRequest *request,
                                Berth__ReleaseGuestReply_Closure closure, void *closure_data)
{
    BerthAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthGuestId id;
    if (!read_id(request->id, &id, call))
        return;
    if (request->keep_disk)
        berth_guest_release_here(find_or_add(agent, &id), answer_release, call);
    else
        berth_guest_release(find_or_add(agent, &id), request->disk_id, answer_release, call);
}

static void answer_freeze(BerthFault fault, const GError *error, gpointer call)
{
    Berth__FreezeGuestReply reply = BERTH__FREEZE_GUEST_REPLY__INIT;
    if (error != NULL)
        berth_rpc_call_fail(call, error);
    else
        berth_rpc_call_reply(call, &reply.base);
}

static void answer_thaw(BerthFault fault, const GError *error, gpointer call)
{
    Berth__ThawGuestReply reply = BERTH__THAW_GUEST_REPLY__INIT;
    if (error != NULL)
        berth_rpc_call_fail(call, error);
    else
        berth_rpc_call_reply(call, &reply.base);
}

/* NULL: there is none; CALL has its answer. */
static BerthGuest *find_guest(BerthAgent *agent, const Berth__GuestId *named, BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    BerthGuestId id;
    if (!read_id(named, &id, call))
        return NULL;
    BerthGuest *guest = berth_guest_table_find(agent->table, &id);
    if (guest != NULL)
        return guest;
    g_autofree char *name = berth_guest_name_format(&id);
    g_set_error(&error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "there is no guest %s here", name);
    berth_rpc_call_fail(call, error);
    return NULL;
}

static void freeze(BerthAgent *agent, const Berth__GuestId *named, gboolean freezes,
                   BerthRpcCall *call)
{
    BerthGuest *guest = find_guest(agent, named, call);
    if (guest != NULL)
        berth_guest_freeze(guest, freezes, freezes ? answer_freeze : answer_thaw, call);
}

static void agent_freeze_guest(Berth__Agent_Service *service,
                               const Berth__FreezeGuestRequest *request,
                               Berth__FreezeGuestReply_Closure closure, void *closure_data)
{
    freeze(agent_of(service), request->id, TRUE, BERTH_RPC_CALL(closure_data));
}

static void agent_thaw_guest(Berth__Agent_Service *service, const Berth__ThawGuestRequest *request,
                             Berth__ThawGuestReply_Closure closure, void *closure_data)
{
    freeze(agent_of(service), request->id, FALSE, BERTH_RPC_CALL(closure_data));
}

static void answer_checkpoint(const Berth__CheckpointGuestReply *reply, const GError *error,
                              gpointer call)
{
    if (error != NULL)
        berth_rpc_call_fail(call, error);
    else
        berth_rpc_call_reply(call, &reply->base);
}

static void agent_checkpoint_guest(Berth__Agent_Service *service,
                                   const Berth__CheckpointGuestRequest *request,
                                   Berth__CheckpointGuestReply_Closure closure, void *closure_data)
{
    g_autoptr(GError) error = NULL;
    BerthGuestId id;
    if (!read_id(request->id, &id, BERTH_RPC_CALL(closure_data)))
        return;
    BerthGuest *guest = berth_guest_table_find(agent_of(service)->table, &id);
    if (guest != NULL) {
        berth_guest_checkpoint(guest, request, answer_checkpoint, BERTH_RPC_CALL(closure_data));
        return;
    }
    g_autofree char *name = berth_guest_name_format(&id);
    g_set_error(&error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "there is no guest %s here", name);
    berth_rpc_call_fail(BERTH_RPC_CALL(closure_data), error);
}

static void agent_receive_guest(Berth__Agent_Service *service,
                                const Berth__ReceiveGuestRequest *request,
                                Berth__ReceiveGuestReply_Closure closure, void *closure_data)
{
    BerthGuestId id;
    if (read_id(request->id, &id, BERTH_RPC_CALL(closure_data)))
        berth_agent_receive_guest(agent_of(service), &id, request->disk_id,
                                  BERTH_RPC_CALL(closure_data));
}

static void agent_migrate_guest(Berth__Agent_Service *service,
                                const Berth__MigrateGuestRequest *request,
                                Berth__MigrateGuestReply_Closure closure, void *closure_data)
{
    BerthGuestId id;
    if (read_id(request->id, &id, BERTH_RPC_CALL(closure_data)))
        berth_agent_migrate_guest(agent_of(service), &id, request, BERTH_RPC_CALL(closure_data));
}

static void agent_take_guest(Berth__Agent_Service *service, const Berth__TakeGuestRequest *request,
                             Berth__TakeGuestReply_Closure closure, void *closure_data)
{
    BerthGuestId id;
    if (read_id(request->id, &id, BERTH_RPC_CALL(closure_data)))
        berth_agent_take_guest(agent_of(service), &id, request, BERTH_RPC_CALL(closure_data));
}

typedef struct {
    BerthAgent *agent;
    BerthGuestId id;
    BerthRpcCall *call;
} Resize;

static void answer_resize(BerthFault fault, const GError *error, gpointer user_data)
{
    g_autofree Resize *resize = user_data;
    const BerthGuest *guest = berth_agent_find_guest(resize->agent, &resize->id);
    Berth__ResizeGuestReply reply = BERTH__RESIZE_GUEST_REPLY__INIT;
    Berth__Error why = BERTH__ERROR__INIT;
    if (error != NULL && guest != NULL &&
        berth_guest_has_settled(guest, &reply.vcpus, &reply.memory_mib)) {
        why.code = (Berth__ErrorCode)error->code; /* of ours, as resizes' are */
        why.message = error->message;
        reply.error = &why;
    }
    if (error != NULL && reply.error == NULL)
        berth_rpc_call_fail(resize->call, error);
    else
        berth_rpc_call_reply(resize->call, &reply.base);
}

static void agent_resize_guest(Berth__Agent_Service *service,
                               const Berth__ResizeGuestRequest *request,
                               Berth__ResizeGuestReply_Closure closure, void *closure_data)
{
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthDomainSize size = {request->vcpus, request->memory_mib, request->balloon_mib,
                            request->opportunistic};
    BerthGuest *guest = find_guest(agent_of(service), request->id, call);
    if (guest == NULL)
        return;
    Resize *resize = g_new(Resize, 1);
    *resize = (Resize){.agent = agent_of(service), .id = *berth_guest_id(guest), .call = call};
    if (request->thaw)
        berth_guest_thaw_with_resize(guest);
    berth_guest_resize(guest, &size, request->settles, answer_resize, resize);
}

ProtobufCService *berth_agent_service_new(BerthAgent *agent)
{
    static const Berth__Agent_Service template = BERTH__AGENT__INIT(agent_);
    AgentService *service = g_new0(AgentService, 1);
    service->base = template;
    service->agent = agent;
    return &service->base.base;
}
