/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the service Nodes: what everybody may see of the nodes. Their accounts are the core's; what operators
 * do to them is node_change.c's. */
#include "config.h"

#include "scheduler/daemon/services.h"

#include "scheduler/core/look.h"
#include "scheduler/daemon/node_change.h"
#include "scheduler/daemon/node_view.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/top.h"

#include <string.h>

/* One answer stays well below the limit of a frame. */
#define REPLY_MAX_BYTES (2u << 20)

typedef BERTH_SERVICE(Berth__Nodes_Service) NodesService;

static BerthDaemon *daemon_of(Berth__Nodes_Service *service)
{
    return ((NodesService *)(void *)service)->daemon;
}

/* The nodes of one page: those after REQUEST->after, up to its limit and to what one answer holds.
 * *OUT_MORE: there are further ones. */
static guint fill_page(BerthDaemon *daemon, const Berth__ListNodesRequest *request,
                       const GPtrArray *entries, Berth__Node *nodes, gboolean *out_more)
{
    guint page_size = daemon->config->page_size;
    guint limit = request->limit == 0 ? page_size : MIN(request->limit, page_size);
    gsize size = 0;
    guint n = 0;
    *out_more = FALSE;
    for (guint i = 0; i < entries->len && !*out_more; i++) {
        const BerthNodeEntry *entry = g_ptr_array_index(entries, i);
        if (*request->after && strcmp(entry->name, request->after) <= 0)
            continue;
        if (n == limit || size > REPLY_MAX_BYTES) {
            *out_more = TRUE;
            continue;
        }
        berth_node_view_fill(daemon, entry, &nodes[n]);
        size += berth__node__get_packed_size(&nodes[n++]);
    }
    return n;
}

static void nodes_list(Berth__Nodes_Service *service, const Berth__ListNodesRequest *request,
                       Berth__ListNodesReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    g_autoptr(GPtrArray) entries = berth_node_table_list(daemon->nodes);
    g_autofree Berth__Node *nodes = g_new0(Berth__Node, entries->len + 1);
    g_autofree Berth__Node **pointers = g_new0(Berth__Node *, entries->len + 1);
    gboolean has_more = FALSE;
    guint n = fill_page(daemon, request, entries, nodes, &has_more);
    for (guint i = 0; i < n; i++)
        pointers[i] = &nodes[i];
    Berth__ListNodesReply reply = BERTH__LIST_NODES_REPLY__INIT;
    reply.nodes = pointers;
    reply.n_nodes = n;
    if (has_more)
        reply.next_after = nodes[n - 1].info->name;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
    for (guint i = 0; i < n; i++)
        berth_node_view_clear(&nodes[i]);
}

static void nodes_get(Berth__Nodes_Service *service, const Berth__GetNodeRequest *request,
                      Berth__Node_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    const BerthNodeEntry *entry = berth_node_view_find(daemon, request->name, &error);
    if (!entry) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Berth__Node node;
    berth_node_view_fill(daemon, entry, &node);
    berth_rpc_call_reply(call, &node.base);
    berth_node_view_clear(&node);
}

static void nodes_cordon(Berth__Nodes_Service *service, const Berth__ChangeNodesRequest *request,
                         Berth__ChangeNodesReply_Closure closure, void *closure_data)
{
    berth_node_change(daemon_of(service), BERTH_NODE_CHANGE_CORDON, request,
                      BERTH_RPC_CALL(closure_data));
}

static void nodes_uncordon(Berth__Nodes_Service *service, const Berth__ChangeNodesRequest *request,
                           Berth__ChangeNodesReply_Closure closure, void *closure_data)
{
    berth_node_change(daemon_of(service), BERTH_NODE_CHANGE_UNCORDON, request,
                      BERTH_RPC_CALL(closure_data));
}

static void nodes_drain(Berth__Nodes_Service *service, const Berth__ChangeNodesRequest *request,
                        Berth__ChangeNodesReply_Closure closure, void *closure_data)
{
    berth_node_change(daemon_of(service), BERTH_NODE_CHANGE_DRAIN, request,
                      BERTH_RPC_CALL(closure_data));
}

static void nodes_undrain(Berth__Nodes_Service *service, const Berth__ChangeNodesRequest *request,
                          Berth__ChangeNodesReply_Closure closure, void *closure_data)
{
    berth_node_change(daemon_of(service), BERTH_NODE_CHANGE_UNDRAIN, request,
                      BERTH_RPC_CALL(closure_data));
}

static void nodes_down(Berth__Nodes_Service *service, const Berth__ChangeNodesRequest *request,
                       Berth__ChangeNodesReply_Closure closure, void *closure_data)
{
    berth_node_change(daemon_of(service), BERTH_NODE_CHANGE_DOWN, request,
                      BERTH_RPC_CALL(closure_data));
}

static void nodes_up(Berth__Nodes_Service *service, const Berth__ChangeNodesRequest *request,
                     Berth__ChangeNodesReply_Closure closure, void *closure_data)
{
    berth_node_change(daemon_of(service), BERTH_NODE_CHANGE_UP, request,
                      BERTH_RPC_CALL(closure_data));
}

static void nodes_plan_drain(Berth__Nodes_Service *service, const Berth__PlanDrainRequest *request,
                             Berth__DrainPlan_Closure closure, void *closure_data)
{
    berth_node_plan_drain(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void nodes_top(Berth__Nodes_Service *service, const Berth__TopRequest *request,
                      Berth__TopReply_Closure closure, void *closure_data)
{
    berth_top_answer(daemon_of(service)->top, request, BERTH_RPC_CALL(closure_data));
}

ProtobufCService *berth_nodes_service_new(BerthDaemon *daemon)
{
    static const Berth__Nodes_Service template = BERTH__NODES__INIT(nodes_);
    NodesService *service = g_new0(NodesService, 1);
    service->base = template;
    service->daemon = daemon;
    return &service->base.base;
}
