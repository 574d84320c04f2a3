/* SPDX-License-Identifier: Apache-2.0 */
/* Owns this process's certificate, key and CA, and finds out at the start what is wrong with them,
 * rather than in the first handshake: a daemon with a wrong file does not start. */
#include "common/rpc_tls.h"
#include "common/rpc_tls_private.h"

#include "common/error.h"

#include <sys/socket.h>
#include <unistd.h>

static gboolean refuse(GError **error, const char *path, const char *why)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "cannot use %s for TLS: %s", path,
                why);
    return FALSE;
}

/* Is PATH there, and does it look like what it should be? Says so with the file's name, which the
 * TLS library does not. */
static gboolean check_pem(const char *path, const char *what, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, &reason)) {
        int code = g_error_matches(reason, G_FILE_ERROR, G_FILE_ERROR_ACCES)
                       ? BERTH_ERROR_PERMISSION_DENIED
                       : BERTH_ERROR_NOT_FOUND;
        g_set_error(error, BERTH_ERROR, code, "cannot read the %s: %s", what, reason->message);
        return FALSE;
    }
    gboolean is_pem = strstr(text, "-----BEGIN ") != NULL;
    /* The key's bytes do not stay in freed memory. */
    explicit_bzero(text, strlen(text));
    if (is_pem)
        return TRUE;
    g_autofree char *why = g_strdup_printf("it is not a %s in PEM format", what);
    return refuse(error, path, why);
}

const char *berth_tls_flags_text(GTlsCertificateFlags flags)
{
    if (flags & G_TLS_CERTIFICATE_UNKNOWN_CA)
        return "it is not signed by the CA";
    if (flags & G_TLS_CERTIFICATE_EXPIRED)
        return "it has expired";
    if (flags & G_TLS_CERTIFICATE_NOT_ACTIVATED)
        return "it is not valid yet; is the clock right?";
    if (flags & G_TLS_CERTIFICATE_REVOKED)
        return "it was revoked";
    if (flags & G_TLS_CERTIFICATE_BAD_IDENTITY)
        return "it is for another host, and not for \"berthd\"";
    if (flags & G_TLS_CERTIFICATE_INSECURE)
        return "its algorithm is not secure";
    return "it is not valid";
}

static gboolean check_certificate(BerthTlsConfig *config, GError **error)
{
    g_autoptr(GError) reason = NULL;
    GTlsCertificateFlags flags = g_tls_database_verify_chain(
        config->ca, config->certificate, G_TLS_DATABASE_PURPOSE_AUTHENTICATE_CLIENT, NULL, NULL,
        G_TLS_DATABASE_VERIFY_NONE, NULL, &reason);
    if (reason != NULL)
        return refuse(error, config->certificate_path, reason->message);
    if (flags == 0)
        return TRUE;
    g_autoptr(GDateTime) end = g_tls_certificate_get_not_valid_after(config->certificate);
    g_autofree char *date = end != NULL ? g_date_time_format(end, "%F %T UTC") : g_strdup("?");
    g_autofree char *why = g_strdup_printf("%s (CA %s, valid until %s); get a new certificate",
                                           berth_tls_flags_text(flags), config->ca_path, date);
    return refuse(error, config->certificate_path, why);
}

/* --- do certificate and key belong together? ---------------------------------------------- */

typedef struct {
    guint pending;
    GError *reason;
} Trial;

static void on_trial_end(GObject *source, GAsyncResult *result, gpointer data)
{
    Trial *trial = data;
    g_autoptr(GError) reason = NULL;
    trial->pending--;
    if (!g_tls_connection_handshake_finish(G_TLS_CONNECTION(source), result, &reason) &&
        trial->reason == NULL)
        trial->reason = g_steal_pointer(&reason);
}

static gboolean accept_any(GTlsConnection *connection, GTlsCertificate *certificate,
                           GTlsCertificateFlags flags, gpointer data)
{
    return TRUE;
}

static GIOStream *take_fd(int fd, GError **error)
{
    g_autoptr(GSocket) socket = g_socket_new_from_fd(fd, error);
    if (socket == NULL) {
        close(fd);
        return NULL;
    }
    return G_IO_STREAM(g_socket_connection_factory_create_connection(socket));
}

/* A handshake with ourselves: the client checks what the server signed with the key. */
static gboolean try_handshake(const BerthTlsConfig *config, GIOStream *server_stream,
                              GIOStream *client_stream, GError **error)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    g_autoptr(GIOStream) server =
        g_tls_server_connection_new(server_stream, config->certificate, error);
    g_autoptr(GIOStream) client =
        server != NULL ? g_tls_client_connection_new(client_stream, NULL, error) : NULL;
    if (client == NULL)
        return FALSE;
    g_signal_connect(client, "accept-certificate", G_CALLBACK(accept_any), NULL);
    Trial trial = {.pending = 2};
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_main_context_push_thread_default(context);
    g_tls_connection_handshake_async(G_TLS_CONNECTION(server), G_PRIORITY_DEFAULT, cancellable,
                                     on_trial_end, &trial);
    g_tls_connection_handshake_async(G_TLS_CONNECTION(client), G_PRIORITY_DEFAULT, cancellable,
                                     on_trial_end, &trial);
    while (trial.pending > 0) {
        g_main_context_iteration(context, TRUE);
        if (trial.reason != NULL) /* the other side may wait for ever */
            g_cancellable_cancel(cancellable);
    }
    g_main_context_pop_thread_default(context);
    if (trial.reason != NULL)
        g_propagate_error(error, trial.reason);
    return trial.reason == NULL;
}

static gboolean check_key(const BerthTlsConfig *config, const char *key_path, GError **error)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        berth_set_error_errno(error, errno, "cannot try the key %s", key_path);
        return FALSE;
    }
    g_autoptr(GError) reason = NULL;
    g_autoptr(GIOStream) server = take_fd(fds[0], &reason);
    g_autoptr(GIOStream) client = take_fd(fds[1], &reason);
    if (server != NULL && client != NULL && try_handshake(config, server, client, &reason))
        return TRUE;
    g_autofree char *why =
        g_strdup_printf("it is not the key of %s (%s)", config->certificate_path, reason->message);
    return refuse(error, key_path, why);
}

/* --- public ------------------------------------------------------------------------------- */

static gboolean load(BerthTlsConfig *config, const char *key_path, GError **error)
{
    g_autoptr(GError) reason = NULL;
    config->certificate =
        g_tls_certificate_new_from_files(config->certificate_path, key_path, &reason);
    if (config->certificate == NULL) {
        g_autofree char *why = g_strdup_printf("with the key %s: %s", key_path, reason->message);
        return refuse(error, config->certificate_path, why);
    }
    GList *authorities = g_tls_certificate_list_new_from_file(config->ca_path, &reason);
    gboolean any = authorities != NULL;
    g_list_free_full(authorities, g_object_unref);
    if (!any)
        return refuse(error, config->ca_path,
                      reason != NULL ? reason->message : "it holds no certificate");
    config->ca = g_tls_file_database_new(config->ca_path, &reason);
    if (config->ca == NULL)
        return refuse(error, config->ca_path, reason->message);
    g_autofree char *name = berth_tls_common_name(config->certificate, &reason);
    if (name == NULL)
        return refuse(error, config->certificate_path, reason->message);
    return check_certificate(config, error) && check_key(config, key_path, error);
}

BerthTlsConfig *berth_tls_config_new(const char *certificate_path, const char *key_path,
                                     const char *ca_path, GError **error)
{
    if (!g_tls_backend_supports_tls(g_tls_backend_get_default())) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                    "GLib has no TLS on this machine; apt-get install glib-networking");
        return NULL;
    }
    if (!check_pem(certificate_path, "certificate", error) ||
        !check_pem(key_path, "private key", error) || !check_pem(ca_path, "CA certificate", error))
        return NULL;
    g_autoptr(BerthTlsConfig) config = g_new0(BerthTlsConfig, 1);
    config->certificate_path = g_strdup(certificate_path);
    config->ca_path = g_strdup(ca_path);
    if (!load(config, key_path, error))
        return NULL;
    return g_steal_pointer(&config);
}

BerthTlsConfig *berth_tls_config_copy(const BerthTlsConfig *config)
{
    BerthTlsConfig *copy = g_new0(BerthTlsConfig, 1);
    copy->certificate_path = g_strdup(config->certificate_path);
    copy->ca_path = g_strdup(config->ca_path);
    copy->certificate = g_object_ref(config->certificate);
    copy->ca = g_object_ref(config->ca);
    return copy;
}

char *berth_tls_config_name(const BerthTlsConfig *config)
{
    /* load() has seen that it has one. */
    return berth_tls_common_name(config->certificate, NULL);
}

void berth_tls_config_free(BerthTlsConfig *config)
{
    if (config == NULL)
        return;
    g_clear_object(&config->certificate);
    g_clear_object(&config->ca);
    g_free(config->certificate_path);
    g_free(config->ca_path);
    g_free(config);
}
