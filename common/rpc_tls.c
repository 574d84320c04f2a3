/* SPDX-License-Identifier: Apache-2.0 */
/* Owns TLS handshakes: who is accepted, and what is said about who is not. Does not own sockets. */
#include "common/rpc_tls.h"
#include "common/rpc_tls_private.h"

#include "common/error.h"

#include <string.h>

/* The daemon's certificate serves under any host name. */
#define SERVER_NAME "berthd"

/* --- names -------------------------------------------------------------------------------- */

static gboolean is_node_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    gsize length = strlen(name);
    return length > 0 && length <= 64 && strspn(name, allowed) == length;
}

/* The end of the attribute at TEXT: an unescaped ',' or '+', or the end. */
static gsize attribute_length(const char *text)
{
    gsize length = 0;
    while (text[length] != '\0' && text[length] != ',' && text[length] != '+')
        length += text[length] == '\\' && text[length + 1] != '\0' ? 2 : 1;
    return length;
}

char *berth_tls_common_name_of(const char *subject, GError **error)
{
    g_autofree char *name = NULL;
    guint names = 0;
    for (const char *at = subject; *at != '\0';) {
        gsize length = attribute_length(at);
        g_autofree char *attribute = g_strstrip(g_strndup(at, length));
        if (g_ascii_strncasecmp(attribute, "CN=", 3) == 0) {
            names++;
            g_free(name);
            name = g_strdup(attribute + 3);
        }
        at += length;
        at += *at != '\0';
    }
    if (names != 1 || !is_node_name(name)) {
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
            "the certificate's subject \"%.200s\" must have one common name (CN) of letters, "
            "digits, \".\", \"_\" and \"-\"",
            subject);
        return NULL;
    }
    return g_steal_pointer(&name);
}

char *berth_tls_common_name(GTlsCertificate *certificate, GError **error)
{
    g_autofree char *subject =
        certificate != NULL ? g_tls_certificate_get_subject_name(certificate) : NULL;
    return berth_tls_common_name_of(subject != NULL ? subject : "", error);
}

/* --- handshakes --------------------------------------------------------------------------- */

typedef struct {
    BerthTlsConfig *config;
    char *who;
    gboolean is_client;
    guint timeout_msec;
    GTlsCertificateFlags flags; /* why its certificate was refused */
    char *subject;              /* of that certificate */
    GCancellable *inner;        /* ends the handshake: at the caller's wish, or too late */
    GCancellable *outer;        /* the caller's, or NULL */
    gulong outer_handler;
    GSource *timer;
    gboolean timed_out;
    GTlsConnection *connection;
} Handshake;

static void handshake_free(gpointer data)
{
    Handshake *handshake = data;
    if (handshake->timer != NULL) {
        g_source_destroy(handshake->timer);
        g_source_unref(handshake->timer);
    }
    if (handshake->outer != NULL)
        g_cancellable_disconnect(handshake->outer, handshake->outer_handler);
    if (handshake->connection != NULL) /* which lives on, and may ask again */
        g_signal_handlers_disconnect_by_data(handshake->connection, handshake);
    g_clear_object(&handshake->outer);
    g_clear_object(&handshake->inner);
    g_clear_object(&handshake->connection);
    berth_tls_config_free(handshake->config);
    g_free(handshake->subject);
    g_free(handshake->who);
    g_free(handshake);
}

static gboolean on_late(gpointer data)
{
    Handshake *handshake = data;
    handshake->timed_out = TRUE;
    g_cancellable_cancel(handshake->inner);
    return G_SOURCE_REMOVE;
}

static void on_outer_cancelled(GCancellable *outer, gpointer inner)
{
    g_cancellable_cancel(inner);
}

/* FLAGS: what is wrong with the certificate. A server is asked about good ones, too. */
static gboolean on_certificate(GTlsConnection *connection, GTlsCertificate *certificate,
                               GTlsCertificateFlags flags, gpointer data)
{
    Handshake *handshake = data;
    if (flags == 0)
        return TRUE;
    if (handshake->is_client && flags == G_TLS_CERTIFICATE_BAD_IDENTITY) {
        g_autofree char *name = berth_tls_common_name(certificate, NULL);
        if (name != NULL && g_str_equal(name, SERVER_NAME))
            return TRUE;
    }
    handshake->flags = flags;
    g_free(handshake->subject);
    handshake->subject = g_tls_certificate_get_subject_name(certificate);
    return FALSE;
}

static GError *explain_failure(const Handshake *handshake, const GError *reason)
{
    const char *who = handshake->who;
    if (handshake->flags != 0)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                           "refused the certificate of %s (%.200s): %s (ours is %s)", who,
                           handshake->subject != NULL ? handshake->subject : "no subject",
                           berth_tls_flags_text(handshake->flags), handshake->config->ca_path);
    if (handshake->timed_out)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                           "%s did not complete the TLS handshake within %u ms", who,
                           handshake->timeout_msec);
    if (g_error_matches(reason, G_IO_ERROR, G_IO_ERROR_CANCELLED))
        return g_error_new(BERTH_ERROR, BERTH_ERROR_CANCELLED,
                           "the TLS handshake with %s: cancelled", who);
    if (g_error_matches(reason, G_TLS_ERROR, G_TLS_ERROR_CERTIFICATE_REQUIRED) &&
        !handshake->is_client)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED, "%s showed no certificate",
                           who);
    /* NOT_TLS is what GLib calls an end of the stream before its first record. */
    if (reason->domain == G_TLS_ERROR && reason->code != G_TLS_ERROR_EOF &&
        reason->code != G_TLS_ERROR_NOT_TLS)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                           "the TLS handshake with %s failed: %s", who, reason->message);
    return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                       "the TLS handshake with %s broke off: %s", who, reason->message);
}

/* Before 1.3 the other end may begin the handshake anew at any time: GLib then reads and writes on a thread of its own,
 * for as long as the other end likes, while the socket says that it is ready and nothing can be read or written. */
static gboolean check_version(const Handshake *handshake, GError **error)
{
    GTlsProtocolVersion version = g_tls_connection_get_protocol_version(handshake->connection);
    if (version == G_TLS_PROTOCOL_VERSION_TLS_1_3)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                "%s does not speak TLS 1.3, which Berth needs; update its GnuTLS, or allow it this "
                "version",
                handshake->who);
    return FALSE;
}

static void on_handshake(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GTask) task = data;
    Handshake *handshake = g_task_get_task_data(task);
    GTlsConnection *connection = G_TLS_CONNECTION(source);
    g_autoptr(GError) reason = NULL;
    if (!g_tls_connection_handshake_finish(connection, result, &reason)) {
        g_task_return_error(task, explain_failure(handshake, reason));
        return;
    }
    GError *error = NULL;
    if (!check_version(handshake, &error)) {
        g_task_return_error(task, error);
        return;
    }
    g_autofree char *name =
        berth_tls_common_name(g_tls_connection_get_peer_certificate(connection), &reason);
    if (name == NULL)
        g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                                "refused the certificate of %s: %s", handshake->who,
                                reason->message);
    else
        g_task_return_pointer(task, g_object_ref(connection), g_object_unref);
}

/* glib-networking 2.74 takes for granted that a client's socket has a remote address, which one that
 * was reset has not. */
static gboolean check_connected(GIOStream *stream, const char *who, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autoptr(GSocketAddress) remote = NULL;
    if (!G_IS_SOCKET_CONNECTION(stream))
        return TRUE;
    remote = g_socket_connection_get_remote_address(G_SOCKET_CONNECTION(stream), &reason);
    if (remote == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "the connection to %s broke off before the TLS handshake: %s", who,
                    reason->message);
    return remote != NULL;
}

/* With our database from the first: of one that is made without, GLib reads all authorities of the system. */
static GIOStream *make_connection(const BerthTlsConfig *config, GIOStream *stream, const char *host,
                                  GError **error)
{
    GTlsBackend *backend = g_tls_backend_get_default();
    if (host == NULL)
        return g_initable_new(g_tls_backend_get_server_connection_type(backend), NULL, error,
                              "base-io-stream", stream, "certificate", config->certificate,
                              "database", config->ca, "authentication-mode",
                              G_TLS_AUTHENTICATION_REQUIRED, NULL);
    g_autoptr(GSocketConnectable) identity = g_network_address_new(host, 0);
    return g_initable_new(g_tls_backend_get_client_connection_type(backend), NULL, error,
                          "base-io-stream", stream, "server-identity", identity, "certificate",
                          config->certificate, "database", config->ca, NULL);
}

static Handshake *handshake_new(const BerthTlsConfig *config, const char *who, gboolean is_client,
                                guint timeout_msec, GCancellable *cancellable)
{
    Handshake *handshake = g_new0(Handshake, 1);
    handshake->config = berth_tls_config_copy(config);
    handshake->who = g_strdup(who);
    handshake->is_client = is_client;
    handshake->timeout_msec = timeout_msec;
    handshake->inner = g_cancellable_new();
    if (cancellable != NULL) {
        handshake->outer = g_object_ref(cancellable);
        handshake->outer_handler =
            g_cancellable_connect(cancellable, G_CALLBACK(on_outer_cancelled),
                                  g_object_ref(handshake->inner), g_object_unref);
    }
    handshake->timer = g_timeout_source_new(timeout_msec);
    g_source_set_callback(handshake->timer, on_late, handshake, NULL);
    g_source_attach(handshake->timer, g_main_context_get_thread_default());
    return handshake;
}

void berth_tls_handshake_async(const BerthTlsConfig *config, GIOStream *stream, const char *host,
                               const char *who, guint timeout_msec, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, berth_tls_handshake_async);
    GError *error = NULL;
    g_autoptr(GIOStream) connection = NULL;
    if (host == NULL || check_connected(stream, who, &error))
        connection = make_connection(config, stream, host, &error);
    if (connection == NULL) {
        g_task_return_error(task, error);
        return;
    }
    Handshake *handshake = handshake_new(config, who, host != NULL, timeout_msec, cancellable);
    g_task_set_task_data(task, handshake, handshake_free);
    GTlsConnection *tls = handshake->connection = G_TLS_CONNECTION(g_steal_pointer(&connection));
    /* Frames have lengths: an end without notice can be told from an orderly one. */
    g_tls_connection_set_require_close_notify(tls, FALSE);
    g_signal_connect_data(tls, "accept-certificate", G_CALLBACK(on_certificate), handshake, NULL,
                          0);
    g_tls_connection_handshake_async(tls, G_PRIORITY_DEFAULT, handshake->inner, on_handshake,
                                     g_steal_pointer(&task));
}

GIOStream *berth_tls_handshake_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, berth_tls_handshake_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
