/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a listening socket and connections until they are complete; hands them over as peers. Where
 * the socket comes from is rpc_listener_bind.c's. Does not own peers.
 *
 * Invariant: freed memory is never seen by a handshake that is under way: each holds the listener,
 * and `closed` says that nobody wants its outcome. */
#include "common/rpc_internal.h"
#include "common/rpc_listener_bind.h"
#include "common/rpc_tls.h"

#include "common/error.h"
#include "common/log.h"

#include <glib/gstdio.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

/* Handshakes with one address (which may be that of several nodes behind a router) at a time. For
 * one more the oldest of them is dropped: an honest one takes milliseconds, and an honest node dials
 * again. */
#define HANDSHAKES_ADDRESS_MAX 16u
/* Beyond these in all, new connections wait in the kernel's queue until one ends, and those that
 * take longer than this are dropped. */
#define HANDSHAKES_MAX 128u
#define PATIENCE_USEC  (2 * G_USEC_PER_SEC)
/* After accept() failed (no descriptors left): another try. */
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
    GQueue handshakes; /* Handshake, oldest first */
    BerthLogLimit reports;
};

typedef struct {
    BerthRpcListener *listener;
    GCancellable *cancellable;
    char *address; /* of the other end, without its port */
    gint64 since_usec;
    gboolean is_dropped;
} Handshake;

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

static void on_handshake(GObject *source, GAsyncResult *result, gpointer data)
{
    Handshake *handshake = data;
    BerthRpcListener *listener = handshake->listener;
    g_autoptr(GError) error = NULL;
    g_autoptr(GIOStream) stream = berth_tls_handshake_finish(result, &error);
    g_queue_remove(&listener->handshakes, handshake);
    if (stream == NULL && !handshake->is_dropped)
        reject(listener, error);
    else if (stream != NULL && !listener->closed)
        hand_over(listener, stream);
    g_object_unref(handshake->cancellable);
    g_free(handshake->address);
    g_free(handshake);
    if (!listener->closed) {
        berth_rpc_timer_clear(&listener->retry);
        resume(listener);
    }
    drop(listener);
}

/* Its end is told to on_handshake() later. */
static void drop_handshake(BerthRpcListener *listener, Handshake *handshake)
{
    g_autoptr(GError) reason = g_error_new(
        BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
        "dropped a connection from %s that had not shown its certificate: too many such wait",
        handshake->address);
    handshake->is_dropped = TRUE;
    g_queue_remove(&listener->handshakes, handshake);
    g_cancellable_cancel(handshake->cancellable);
    reject(listener, reason);
}

/* Before another one from ADDRESS begins: one address has no more than its share. */
static void make_room(BerthRpcListener *listener, const char *address)
{
    Handshake *oldest = NULL;
    guint count = 0;
    for (GList *link = listener->handshakes.tail; link != NULL; link = link->prev) {
        Handshake *handshake = link->data;
        if (g_str_equal(handshake->address, address)) {
            oldest = handshake;
            count++;
        }
    }
    if (count >= HANDSHAKES_ADDRESS_MAX)
        drop_handshake(listener, oldest);
}

/* Whoever is silent makes room for others. */
static void drop_slow(BerthRpcListener *listener)
{
    gint64 since_usec = g_get_monotonic_time() - PATIENCE_USEC;
    Handshake *oldest;
    while (g_queue_get_length(&listener->handshakes) >= HANDSHAKES_MAX &&
           (oldest = g_queue_peek_head(&listener->handshakes))->since_usec < since_usec)
        drop_handshake(listener, oldest);
}

static char *host_of(GSocketAddress *address)
{
    if (address == NULL || !G_IS_INET_SOCKET_ADDRESS(address))
        return g_strdup("an unknown address");
    return g_inet_address_to_string(
        g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(address)));
}

static void start_handshake(BerthRpcListener *listener, GSocket *socket, GIOStream *stream)
{
    g_autoptr(GSocketAddress) address = g_socket_get_remote_address(socket, NULL);
    g_autofree char *who = berth_rpc_address_text(address);
    g_socket_set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
    Handshake *handshake = g_new0(Handshake, 1);
    handshake->address = host_of(address);
    make_room(listener, handshake->address);
    handshake->listener = listener;
    handshake->since_usec = g_get_monotonic_time();
    handshake->cancellable = g_cancellable_new();
    g_queue_push_tail(&listener->handshakes, handshake);
    listener->refs++;
    berth_tls_handshake_async(listener->tls, stream, NULL, who, listener->limits.hello_timeout_msec,
                              handshake->cancellable, on_handshake, handshake);
}

/* --- accepting ---------------------------------------------------------------------------- */

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

static gboolean on_incoming(GSocket *unused, GIOCondition condition, gpointer data)
{
    BerthRpcListener *listener = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocket) socket = g_socket_accept(listener->socket, NULL, &error);
    if (socket == NULL) {
        handle_accept_error(listener, error);
        return G_SOURCE_CONTINUE;
    }
    listener->refs++;
    g_autoptr(GSocketConnection) connection = g_socket_connection_factory_create_connection(socket);
    if (listener->tls != NULL)
        start_handshake(listener, socket, G_IO_STREAM(connection));
    else
        hand_over(listener, G_IO_STREAM(connection));
    drop_slow(listener);
    if (!listener->closed && g_queue_get_length(&listener->handshakes) >= HANDSHAKES_MAX)
        pause_for(listener, (guint)(PATIENCE_USEC / 1000));
    drop(listener);
    return G_SOURCE_CONTINUE;
}

static void resume(BerthRpcListener *listener)
{
    if (listener->incoming != NULL || listener->retry != NULL)
        return;
    drop_slow(listener);
    if (g_queue_get_length(&listener->handshakes) >= HANDSHAKES_MAX)
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
    g_queue_init(&listener->handshakes);
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
    for (GList *link = listener->handshakes.head; link != NULL; link = link->next)
        g_cancellable_cancel(((Handshake *)link->data)->cancellable);
    g_socket_close(listener->socket, NULL);
    /* While the lock is held, the file at the path is ours. */
    if (listener->path != NULL)
        g_unlink(listener->path);
    if (listener->lock_fd >= 0)
        g_close(listener->lock_fd, NULL);
    drop(listener);
}
