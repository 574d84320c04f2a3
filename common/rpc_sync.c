/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what programs without a loop of their own use: calls that run the peer's main context until
 * the answer is there, and connecting to a unix socket. */
#include "common/rpc_internal.h"

#include "common/error.h"

#include <gio/gunixsocketaddress.h>
#include <sys/un.h>

static void store_result(GObject *source, GAsyncResult *result, gpointer data)
{
    *(GAsyncResult **)data = g_object_ref(result);
}

/* The context must not be inside a callback of this peer: no frame would be dispatched. */
static GAsyncResult *wait_for(BerthRpcPeer *peer, GAsyncResult **result)
{
    while (*result == NULL)
        g_main_context_iteration(peer->context, TRUE);
    return *result;
}

ProtobufCMessage *berth_rpc_peer_call(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                                      const char *method, const ProtobufCMessage *request,
                                      guint timeout_msec, GError **error)
{
    g_return_val_if_fail(!peer->dispatching, NULL);
    g_autoptr(GAsyncResult) result = NULL;
    berth_rpc_peer_call_async(peer, service, method, request, timeout_msec, NULL, store_result,
                              &result);
    return berth_rpc_peer_call_finish(wait_for(peer, &result), error);
}

typedef struct {
    GAsyncResult *result;
    BerthRpcItemFunc item_func;
    gpointer user_data;
} StreamWait;

static gboolean forward_item(const ProtobufCMessage *item, gpointer data)
{
    StreamWait *wait = data;
    return wait->item_func(item, wait->user_data);
}

static void store_stream_result(GObject *source, GAsyncResult *result, gpointer data)
{
    ((StreamWait *)data)->result = g_object_ref(result);
}

gboolean berth_rpc_peer_stream(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                               const char *method, const ProtobufCMessage *request,
                               guint timeout_msec, BerthRpcItemFunc item_func, gpointer user_data,
                               GError **error)
{
    g_return_val_if_fail(!peer->dispatching, FALSE);
    StreamWait wait = {NULL, item_func, user_data};
    berth_rpc_peer_stream_async(peer, service, method, request, timeout_msec, NULL, forward_item,
                                store_stream_result, &wait);
    g_autoptr(GAsyncResult) result = wait_for(peer, &wait.result);
    return berth_rpc_peer_stream_finish(result, error);
}

/* --- connecting --------------------------------------------------------------------------- */

typedef struct {
    gboolean done;
    GError *reason;
} HelloWait;

static void on_hello_or_closed(BerthRpcPeer *peer, const GError *reason, gpointer data)
{
    HelloWait *wait = data;
    wait->done = TRUE;
    wait->reason = reason != NULL ? g_error_copy(reason) : NULL;
}

static GSocketConnection *connect_socket(const char *path, GError **error)
{
    g_autoptr(GError) reason = NULL;
    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot connect to %s: the path of a socket has at most %" G_GSIZE_FORMAT
                    " bytes",
                    path, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
        return NULL;
    }
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    GSocketConnection *connection =
        g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), NULL, &reason);
    if (connection != NULL)
        return connection;
    if (g_error_matches(reason, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                    "cannot connect to berthd at %s: you may not use this socket; ask its "
                    "administrator",
                    path);
    else
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "cannot connect to berthd at %s: %s", path, reason->message);
    return NULL;
}

BerthRpcPeer *berth_rpc_connect_unix(const char *path, const BerthRpcLimits *limits, GError **error)
{
    g_autoptr(GSocketConnection) connection = connect_socket(path, error);
    if (connection == NULL)
        return NULL;
    HelloWait wait = {0};
    g_autoptr(BerthRpcPeer) peer = berth_rpc_peer_new(G_IO_STREAM(connection), NULL, limits);
    berth_rpc_peer_set_hello_func(peer, on_hello_or_closed, &wait);
    berth_rpc_peer_set_closed_func(peer, on_hello_or_closed, &wait);
    while (!wait.done)
        g_main_context_iteration(peer->context, TRUE);
    berth_rpc_peer_set_closed_func(peer, NULL, NULL);
    if (wait.reason != NULL) {
        g_propagate_prefixed_error(error, wait.reason, "cannot talk to berthd at %s: ", path);
        return NULL;
    }
    return g_steal_pointer(&peer);
}
