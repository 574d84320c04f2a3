/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a connection that is wanted: dials, and dials again whenever there is none. At any time it
 * has exactly one of: an attempt under way, a live peer, or a timer for the next attempt.
 *
 * Invariant: a callback of an attempt holds the dialler's memory, and looks at `closed` first. */
#include "common/rpc_dialer.h"
#include "common/rpc_internal.h"
#include "common/rpc_tls.h"

#include "common/backoff.h"
#include "common/error.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#define BACKOFF_MIN_MSEC 1000u
#define BACKOFF_MAX_MSEC 10000u
/* A connection that lasted this long was a good one: the next failure starts from the minimum. */
#define HELD_USEC (10 * G_USEC_PER_SEC)

struct BerthRpcDialer {
    guint refs;
    gboolean closed;
    GMainContext *context;
    char *host;
    guint16 port;
    char *name; /* "host:port" */
    BerthTlsConfig *tls;
    ProtobufCService *const *services;
    BerthRpcLimits limits;
    BerthRpcConnectedFunc connected_func;
    BerthRpcDialFailedFunc failed_func;
    gpointer user_data;
    GCancellable *attempt;
    GSource *timer; /* of the attempt's connect(), or for the next attempt */
    gboolean late;  /* that timer ended the attempt */
    BerthRpcPeer *peer;
    gboolean connected; /* the peer has said HELLO */
    gint64 connected_usec;
    BerthBackoff backoff;
};

static gboolean dial(gpointer data);

static void drop(BerthRpcDialer *dialer)
{
    if (--dialer->refs > 0)
        return;
    g_clear_object(&dialer->attempt);
    berth_tls_config_free(dialer->tls);
    g_main_context_unref(dialer->context);
    g_free(dialer->host);
    g_free(dialer->name);
    g_free(dialer);
}

/* Whatever went wrong: say so, and try again later. */
static void handle_failure(BerthRpcDialer *dialer, const GError *reason)
{
    guint wait_msec = berth_backoff_next_msec(&dialer->backoff, g_random_double());
    berth_rpc_timer_clear(&dialer->timer);
    dialer->timer = berth_rpc_timer_start(dialer->context, wait_msec, dial, dialer);
    if (dialer->failed_func != NULL)
        dialer->failed_func(reason, wait_msec, dialer->user_data);
}

static void on_closed(BerthRpcPeer *peer, const GError *reason, gpointer data)
{
    BerthRpcDialer *dialer = data;
    gboolean held =
        dialer->connected && g_get_monotonic_time() - dialer->connected_usec >= HELD_USEC;
    if (held)
        berth_backoff_reset(&dialer->backoff);
    dialer->refs++;
    g_autoptr(GError) copy = g_error_copy(reason);
    dialer->connected = FALSE;
    g_clear_pointer(&dialer->peer, berth_rpc_peer_unref);
    handle_failure(dialer, copy);
    drop(dialer);
}

static void on_hello(BerthRpcPeer *peer, const GError *unused, gpointer data)
{
    BerthRpcDialer *dialer = data;
    dialer->connected = TRUE;
    dialer->connected_usec = g_get_monotonic_time();
    if (dialer->connected_func != NULL)
        dialer->connected_func(peer, dialer->user_data);
}

static void on_handshake(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthRpcDialer *dialer = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GIOStream) stream = berth_tls_handshake_finish(result, &error);
    if (!dialer->closed && stream != NULL) {
        dialer->peer = berth_rpc_peer_new(stream, dialer->services, &dialer->limits);
        berth_rpc_peer_set_closed_func(dialer->peer, on_closed, dialer);
        berth_rpc_peer_set_hello_func(dialer->peer, on_hello, dialer);
    } else if (!dialer->closed) {
        handle_failure(dialer, error);
    }
    drop(dialer);
}

static void handle_connected(BerthRpcDialer *dialer, GSocketConnection *connection)
{
    GSocket *socket = g_socket_connection_get_socket(connection);
    g_socket_set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
    dialer->refs++;
    berth_tls_handshake_async(dialer->tls, G_IO_STREAM(connection), dialer->host, dialer->name,
                              dialer->limits.hello_timeout_msec, dialer->attempt, on_handshake,
                              dialer);
}

static void on_connected(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthRpcDialer *dialer = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketConnection) connection =
        g_socket_client_connect_to_host_finish(G_SOCKET_CLIENT(source), result, &error);
    if (!dialer->closed)
        berth_rpc_timer_clear(&dialer->timer);
    if (!dialer->closed && connection != NULL) {
        handle_connected(dialer, connection);
    } else if (!dialer->closed) {
        g_autoptr(GError) reason = g_error_new(
            BERTH_ERROR, dialer->late ? BERTH_ERROR_DEADLINE_EXCEEDED : BERTH_ERROR_UNAVAILABLE,
            "cannot connect to %s: %s", dialer->name, dialer->late ? "no answer" : error->message);
        handle_failure(dialer, reason);
    }
    drop(dialer);
}

static gboolean on_late(gpointer data)
{
    BerthRpcDialer *dialer = data;
    dialer->late = TRUE;
    g_cancellable_cancel(dialer->attempt);
    return G_SOURCE_REMOVE;
}

static gboolean dial(gpointer data)
{
    BerthRpcDialer *dialer = data;
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_socket_client_set_enable_proxy(client, FALSE);
    g_clear_object(&dialer->attempt);
    dialer->attempt = g_cancellable_new();
    dialer->late = FALSE;
    berth_rpc_timer_clear(&dialer->timer);
    dialer->timer =
        berth_rpc_timer_start(dialer->context, dialer->limits.hello_timeout_msec, on_late, dialer);
    dialer->refs++;
    g_socket_client_connect_to_host_async(client, dialer->host, dialer->port, dialer->attempt,
                                          on_connected, dialer);
    return G_SOURCE_REMOVE;
}

/* --- public ------------------------------------------------------------------------------- */

BerthRpcDialer *berth_rpc_dialer_new(const char *host, guint16 port, const BerthTlsConfig *tls,
                                     ProtobufCService *const *services,
                                     const BerthRpcLimits *limits,
                                     BerthRpcConnectedFunc connected_func,
                                     BerthRpcDialFailedFunc failed_func, gpointer user_data)
{
    BerthRpcDialer *dialer = g_new0(BerthRpcDialer, 1);
    dialer->refs = 1;
    dialer->context = g_main_context_ref_thread_default();
    dialer->host = g_strdup(host);
    dialer->port = port;
    dialer->name = g_strdup_printf(strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, port);
    dialer->tls = berth_tls_config_copy(tls);
    dialer->services = services;
    dialer->limits = limits != NULL ? *limits : BERTH_RPC_LIMITS_DEFAULT;
    if (dialer->limits.hello_timeout_msec == 0)
        dialer->limits.hello_timeout_msec = BERTH_RPC_LIMITS_DEFAULT.hello_timeout_msec;
    dialer->connected_func = connected_func;
    dialer->failed_func = failed_func;
    dialer->user_data = user_data;
    dialer->backoff = (BerthBackoff){.min_msec = BACKOFF_MIN_MSEC, .max_msec = BACKOFF_MAX_MSEC};
    /* From the loop, so that no callback comes before the caller has the dialler. */
    dialer->timer = berth_rpc_timer_start(dialer->context, 0, dial, dialer);
    return dialer;
}

void berth_rpc_dialer_set_backoff(BerthRpcDialer *dialer, guint min_msec, guint max_msec)
{
    dialer->backoff = (BerthBackoff){.min_msec = min_msec, .max_msec = max_msec};
}

void berth_rpc_dialer_succeeded(BerthRpcDialer *dialer, guint pause_max_msec)
{
    berth_backoff_reset(&dialer->backoff);
    if (pause_max_msec > 0)
        dialer->backoff.max_msec = MAX(pause_max_msec, dialer->backoff.min_msec);
}

BerthRpcPeer *berth_rpc_dialer_peer(BerthRpcDialer *dialer)
{
    return dialer->connected ? dialer->peer : NULL;
}

void berth_rpc_dialer_dial_again(BerthRpcDialer *dialer)
{
    if (!dialer->connected)
        return;
    berth_backoff_reset(&dialer->backoff);
    berth_rpc_peer_close(dialer->peer, FALSE);
}

void berth_rpc_dialer_free(BerthRpcDialer *dialer)
{
    if (dialer == NULL)
        return;
    dialer->closed = TRUE;
    berth_rpc_timer_clear(&dialer->timer);
    if (dialer->attempt != NULL)
        g_cancellable_cancel(dialer->attempt);
    if (dialer->peer != NULL) {
        berth_rpc_peer_set_closed_func(dialer->peer, NULL, NULL);
        berth_rpc_peer_set_hello_func(dialer->peer, NULL, NULL);
        berth_rpc_peer_close(dialer->peer, FALSE);
        g_clear_pointer(&dialer->peer, berth_rpc_peer_unref);
    }
    drop(dialer);
}
