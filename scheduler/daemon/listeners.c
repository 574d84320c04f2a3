/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the listening sockets, the limits of connections and the services behind them. */
#include "config.h"

#include "scheduler/daemon/listeners.h"

#include "scheduler/daemon/clients.h"
#include "scheduler/daemon/services.h"
#include "scheduler/daemon/sessions.h"

/* Of users: a connection costs this daemon at most a few MiB, and all of one user's together what
 * clients.c allows, whatever their peers do. */
static const BerthRpcLimits user_limits = {
    .max_frame_bytes = 4u << 20,
    .queue_high_bytes = 1u << 20,
    .max_open_calls = 64,
    .hello_timeout_msec = 10000,
};

/* Of agents: one that was cut off is noticed well within any sensible node_timeout. */
static const BerthRpcLimits agent_limits = {
    .max_frame_bytes = 16u << 20,
    .queue_high_bytes = 4u << 20,
    .max_open_calls = 4096,
    .keepalive_interval_msec = 5000,
    .keepalive_timeout_msec = 20000,
    .hello_timeout_msec = 10000,
};

struct BerthListeners {
    BerthDaemon *daemon;
    ProtobufCService *user_services[7];
    ProtobufCService *agent_services[2];
    BerthTlsConfig *tls;
    BerthRpcListener *users;
    BerthRpcListener *agents;
};

static void on_user(BerthRpcPeer *peer, gpointer user_data)
{
    const BerthListeners *listeners = user_data;
    berth_clients_accept(listeners->daemon->clients, peer);
}

static void on_agent(BerthRpcPeer *peer, gpointer user_data)
{
    const BerthListeners *listeners = user_data;
    berth_sessions_accept(listeners->daemon->sessions, peer);
}

static void on_rejected(const GError *reason, gpointer user_data)
{
    g_warning("refused a connection: %s", reason->message);
}

static gboolean listen_for_users(BerthListeners *listeners, GError **error)
{
    const BerthDaemonConfig *config = listeners->daemon->config;
    listeners->users =
        berth_rpc_listener_new_unix(config->socket, config->socket_mode, listeners->user_services,
                                    &user_limits, on_user, on_rejected, listeners, error);
    return listeners->users != NULL;
}

static gboolean listen_for_agents(BerthListeners *listeners, GError **error)
{
    const BerthDaemonConfig *config = listeners->daemon->config;
    listeners->tls = berth_tls_config_new(config->certificate, config->key, config->ca, error);
    if (!listeners->tls)
        return FALSE;
    listeners->agents = berth_rpc_listener_new_tls(
        config->agents_address, (guint16)config->agents_port, listeners->tls,
        listeners->agent_services, &agent_limits, on_agent, on_rejected, listeners, error);
    return listeners->agents != NULL;
}

BerthListeners *berth_listeners_new(BerthDaemon *daemon, GError **error)
{
    BerthListeners *listeners = g_new0(BerthListeners, 1);
    listeners->daemon = daemon;
    listeners->user_services[0] = berth_jobs_service_new(daemon);
    listeners->user_services[1] = berth_blobs_service_new(daemon);
    listeners->user_services[2] = berth_images_service_new(daemon);
    listeners->user_services[3] = berth_nodes_service_new(daemon);
    listeners->user_services[4] = berth_server_service_new(daemon);
    listeners->user_services[5] = berth_execs_service_new(daemon);
    listeners->agent_services[0] = berth_sessions_service_new(daemon);
    if (!listen_for_agents(listeners, error) || !listen_for_users(listeners, error)) {
        berth_listeners_free(listeners);
        return NULL;
    }
    return listeners;
}

guint16 berth_listeners_agents_port(BerthListeners *listeners)
{
    return berth_rpc_listener_port(listeners->agents);
}

void berth_listeners_close(BerthListeners *listeners)
{
    g_clear_pointer(&listeners->users, berth_rpc_listener_free);
    g_clear_pointer(&listeners->agents, berth_rpc_listener_free);
}

void berth_listeners_free(BerthListeners *listeners)
{
    berth_listeners_close(listeners);
    g_clear_pointer(&listeners->tls, berth_tls_config_free);
    for (gsize i = 0; listeners->user_services[i]; i++)
        g_free(listeners->user_services[i]);
    g_free(listeners->agent_services[0]);
    g_free(listeners);
}
