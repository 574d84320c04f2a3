/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a listening socket; hands connections over as peers. Where the socket comes from is
 * rpc_listener_bind.c's, what becomes of a connection until it has shown whose it is rpc_handshakes.c's. Does not own
 * peers. */
#include "common/rpc_handshakes.h"
#include "common/rpc_internal.h"
#include "common/rpc_listener_bind.h"
#include "common/rpc_tls.h"

#include "common/descriptors.h"
#include "common/error.h"
#include "common/log.h"

#include <glib/gstdio.h>

/* After accept() failed, or while few descriptors are left: another try. */
#define RETRY_MSEC 500u

struct BerthRpcListener {
    guint refs;
    gboolean closed;
    GMainContext *context;
    GSocket *socket;
    GSource *incoming; /* NULL while it does not accept */
    GSource *retry;
    char *path; /* unix */
    int lock_fd;
    BerthTlsConfig *tls;
    ProtobufCService *const *services;
    BerthRpcLimits limits;
    BerthRpcAcceptFunc accept_func;
    BerthRpcRejectedFunc rejected_func;
    gpointer user_data;
    BerthRpcHandshakes *handshakes; /* NULL without TLS */
    BerthLogLimit reports;
};

static void resume(BerthRpcListener *listener);

static void drop(BerthRpcListener *listener)
{
    if (--listener->refs > 0)
        return;
    g_object_unref(listener->socket);
    g_main_context_unref(listener->context);
    berth_tls_config_free(listener->tls);
    g_mutex_clear(&listener->reports.lock);
    g_free(listener->path);
    g_free(listener);
}

/* Each scanner of ports must not fill the log. */
static void reject(BerthRpcListener *listener, const GError *reason)
{
    guint64 suppressed = 0;
    if (listener->closed || listener->rejected_func == NULL ||
        !berth_log_limit_pass(&listener->reports, g_get_monotonic_time(), &suppressed))
        return;
    g_autoptr(GError) report = g_error_copy(reason);
    if (suppressed > 0) {
        g_autofree char *text = g_strdup_printf("%s (%" G_GUINT64_FORMAT " more were not reported)",
                                                reason->message, suppressed);
        g_free(report->message);
        report->message = g_steal_pointer(&text);
    }
    listener->rejected_func(report, listener->user_data);
}

static void hand_over(BerthRpcListener *listener, GIOStream *stream)
{
    listener->accept_func(berth_rpc_peer_new(stream, listener->services, &listener->limits),
                          listener->user_data);
}

/* --- TLS ---------------------------------------------------------------------------------- */

static void on_completed(GIOStream *stream, gpointer data)
{
    hand_over(data, stream);
}

static void on_failed(const GError *reason, gpointer data)
{
    reject(data, reason);
}

static void on_room(gpointer data)
{
    resume(data);
}

static const BerthRpcHandshakesFuncs handshakes_funcs = {on_completed, on_failed, on_room};

/* --- accepting ---------------------------------------------------------------------------- */

static gboolean is_full(const BerthRpcListener *listener)
{
    return listener->handshakes != NULL && berth_rpc_handshakes_is_full(listener->handshakes);
}

static void pause_accepting(BerthRpcListener *listener)
{
    berth_rpc_timer_clear(&listener->incoming);
}

static gboolean on_retry(gpointer data)
{
    BerthRpcListener *listener = data;
    berth_rpc_timer_clear(&listener->retry);
    resume(listener);
    return G_SOURCE_REMOVE;
}

static void pause_for(BerthRpcListener *listener, guint msec)
{
    pause_accepting(listener);
    if (listener->retry == NULL)
        listener->retry = berth_rpc_timer_start(listener->context, msec, on_retry, listener);
}

static void handle_accept_error(BerthRpcListener *listener, const GError *error)
{
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
        return;
    g_autoptr(GError) reason = g_error_new(BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                                           "cannot accept a connection: %s", error->message);
    pause_for(listener, RETRY_MSEC);
    reject(listener, reason);
}

/* What is there is served with those that are left. */
static void handle_few_descriptors(BerthRpcListener *listener)
{
    g_autoptr(GError) reason =
        g_error_new(BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "connections have to wait: of %u descriptors (RLIMIT_NOFILE) few are left",
                    berth_descriptors_max());
    pause_for(listener, RETRY_MSEC);
    reject(listener, reason);
}

static gboolean on_incoming(GSocket *unused, GIOCondition condition, gpointer data)
{
    BerthRpcListener *listener = data;
    g_autoptr(GError) error = NULL;
    if (berth_descriptors_are_few()) {
        handle_few_descriptors(listener);
        return G_SOURCE_CONTINUE;
    }
    g_autoptr(GSocket) socket = g_socket_accept(listener->socket, NULL, &error);
    if (socket == NULL) {
        handle_accept_error(listener, error);
        return G_SOURCE_CONTINUE;
    }
    listener->refs++;
    g_autoptr(GSocketConnection) connection = g_socket_connection_factory_create_connection(socket);
    if (listener->handshakes != NULL)
        berth_rpc_handshakes_add(listener->handshakes, connection);
    else
        hand_over(listener, G_IO_STREAM(connection));
    if (!listener->closed && is_full(listener))
        pause_accepting(listener); /* until on_room() */
    drop(listener);
    return G_SOURCE_CONTINUE;
}

static void resume(BerthRpcListener *listener)
{
    if (listener->incoming != NULL || listener->retry != NULL || is_full(listener))
        return;
    listener->incoming = g_socket_create_source(listener->socket, G_IO_IN, NULL);
    g_source_set_callback(listener->incoming, G_SOURCE_FUNC(on_incoming), listener, NULL);
    g_source_attach(listener->incoming, listener->context);
}

/* --- public ------------------------------------------------------------------------------- */

static BerthRpcListener *listener_new(GSocket *socket, ProtobufCService *const *services,
                                      const BerthRpcLimits *limits, BerthRpcAcceptFunc accept_func,
                                      BerthRpcRejectedFunc rejected_func, gpointer user_data)
{
    BerthRpcListener *listener = g_new0(BerthRpcListener, 1);
    listener->refs = 1;
    listener->lock_fd = -1;
    listener->context = g_main_context_ref_thread_default();
    listener->socket = socket;
    listener->services = services;
    listener->limits = limits != NULL ? *limits : BERTH_RPC_LIMITS_DEFAULT;
    if (listener->limits.hello_timeout_msec == 0)
        listener->limits.hello_timeout_msec = BERTH_RPC_LIMITS_DEFAULT.hello_timeout_msec;
    listener->accept_func = accept_func;
    listener->rejected_func = rejected_func;
    listener->user_data = user_data;
    g_mutex_init(&listener->reports.lock);
    g_socket_set_blocking(socket, FALSE);
    return listener;
}

BerthRpcListener *
berth_rpc_listener_new_unix(const char *path, guint mode, ProtobufCService *const *services,
                            const BerthRpcLimits *limits, BerthRpcAcceptFunc accept_func,
                            BerthRpcRejectedFunc rejected_func, gpointer user_data, GError **error)
{
    int lock_fd = -1;
    GSocket *socket = berth_rpc_bind_unix(path, mode, &lock_fd, error);
    if (socket == NULL)
        return NULL;
    BerthRpcListener *listener =
        listener_new(socket, services, limits, accept_func, rejected_func, user_data);
    listener->path = g_strdup(path);
    listener->lock_fd = lock_fd;
    resume(listener);
    return listener;
}

BerthRpcListener *
berth_rpc_listener_new_tls(const char *address, guint16 port, const BerthTlsConfig *tls,
                           ProtobufCService *const *services, const BerthRpcLimits *limits,
                           BerthRpcAcceptFunc accept_func, BerthRpcRejectedFunc rejected_func,
                           gpointer user_data, GError **error)
{
    GSocket *socket = berth_rpc_bind_tcp(address, port, error);
    if (socket == NULL)
        return NULL;
    BerthRpcListener *listener =
        listener_new(socket, services, limits, accept_func, rejected_func, user_data);
    listener->tls = berth_tls_config_copy(tls);
    listener->handshakes = berth_rpc_handshakes_new(
        listener->tls, listener->limits.hello_timeout_msec, &handshakes_funcs, listener);
    resume(listener);
    return listener;
}

guint16 berth_rpc_listener_port(BerthRpcListener *listener)
{
    g_autoptr(GSocketAddress) address = g_socket_get_local_address(listener->socket, NULL);
    if (address == NULL || !G_IS_INET_SOCKET_ADDRESS(address))
        return 0;
    return g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(address));
}

void berth_rpc_listener_free(BerthRpcListener *listener)
{
    if (listener == NULL)
        return;
    listener->closed = TRUE;
    pause_accepting(listener);
    berth_rpc_timer_clear(&listener->retry);
    berth_rpc_handshakes_free(listener->handshakes);
    g_socket_close(listener->socket, NULL);
    /* While the lock is held, the file at the path is ours. */
    if (listener->path != NULL)
        g_unlink(listener->path);
    if (listener->lock_fd >= 0)
        g_close(listener->lock_fd, NULL);
    drop(listener);
}
