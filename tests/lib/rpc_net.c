/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the directory of the certificates, and both ends of a test's connections (tests/lib/rpc_net.h). */
#include "tests/lib/rpc_net.h"

#include <glib/gstdio.h>

static char *dir; /* of the certificates */

char *rpc_net_file(const char *name, const char *suffix)
{
    return g_strdup_printf("%s/%s.%s", dir, name, suffix);
}

gboolean rpc_net_run(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *command = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    const char *argv[] = {"sh", "-ec", command, NULL};
    g_autofree char *output = NULL;
    int status = 0;
    return g_spawn_sync(dir, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL,
                        NULL, NULL, NULL, &output, &status, NULL) &&
           g_spawn_check_wait_status(status, NULL);
}

static gboolean make_ca(const char *name)
{
    return rpc_net_run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        "-subj /CN=%s-ca -keyout %s.key -out %s.pem",
        name, name, name);
}

/* NAME.pem and NAME.key with SUBJECT, signed by CA; EXTRA are arguments of openssl x509. */
static gboolean make_certificate(const char *name, const char *ca, const char *subject,
                                 const char *extra)
{
    return rpc_net_run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '%s' "
                       "-keyout %s.key -out %s.csr && openssl x509 -req -in %s.csr -CA %s.pem "
                       "-CAkey %s.key -CAcreateserial -out %s.pem %s",
                       subject, name, name, name, ca, ca, name, extra);
}

int rpc_net_group_setup(void **state)
{
    g_autofree char *openssl = g_find_program_in_path("openssl");
    dir = g_dir_make_tmp("berth-tls-XXXXXX", NULL);
    if (openssl == NULL || dir == NULL)
        return -1;
    gboolean ok =
        make_ca("ca") && make_ca("other") &&
        make_certificate("berthd", "ca", "/CN=berthd/O=Berth", "-days 2") &&
        make_certificate("n1", "ca", "/O=Berth/CN=n1", "-days 2") &&
        make_certificate("impostor", "ca", "/CN=n2", "-days 2") &&
        make_certificate("foreign", "other", "/CN=n1", "-days 2") &&
        make_certificate("expired", "ca", "/CN=n1", "-days -1") &&
        make_certificate("nameless", "ca", "/O=Berth", "-days 2") &&
        make_certificate("strange", "ca", "/CN=n1 and more", "-days 2") &&
        rpc_net_run("echo subjectAltName=IP:127.0.0.1 >san; echo junk >junk.pem; : >empty.pem") &&
        make_certificate("host", "ca", "/CN=head", "-days 2 -extfile san");
    return ok ? 0 : -1;
}

int rpc_net_group_teardown(void **state)
{
    rpc_net_run("rm -f ./*");
    g_rmdir(dir);
    g_free(dir);
    return 0;
}

BerthTlsConfig *rpc_net_load(const char *certificate, const char *key, const char *ca,
                             GError **error)
{
    g_autofree char *certificate_path = rpc_net_file(certificate, "pem");
    g_autofree char *key_path = rpc_net_file(key, "key");
    g_autofree char *ca_path = rpc_net_file(ca, "pem");
    return berth_tls_config_new(certificate_path, key_path, ca_path, error);
}

void rpc_net_on_accept(BerthRpcPeer *peer, gpointer data)
{
    RpcNet *net = data;
    berth_rpc_peer_unref(net->accepted);
    net->accepted = peer;
    g_clear_error(&net->accepted_reason);
    berth_rpc_peer_set_closed_func(peer, rpc_fixture_store_reason, &net->accepted_reason);
}

void rpc_net_on_rejected(const GError *reason, gpointer data)
{
    RpcNet *net = data;
    g_clear_error(&net->rejected);
    net->rejected = g_error_copy(reason);
}

void rpc_net_on_connected(BerthRpcPeer *peer, gpointer data)
{
    RpcNet *net = data;
    net->connected = peer;
    net->connects++;
}

void rpc_net_on_failed(const GError *reason, guint retry_msec, gpointer data)
{
    RpcNet *net = data;
    g_clear_error(&net->failed);
    net->failed = g_error_copy(reason);
    net->failures++;
    net->retry_msec = retry_msec;
    net->connected = NULL;
}

static const BerthRpcLimits quick = {.hello_timeout_msec = 5000};

void rpc_net_listen_as(RpcNet *net, const char *certificate, guint16 port)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = rpc_net_load(certificate, certificate, "ca", &error);
    assert_no_error(error);
    net->listener =
        berth_rpc_listener_new_tls("127.0.0.1", port, tls, net->server->services, &quick,
                                   rpc_net_on_accept, rpc_net_on_rejected, net, &error);
    assert_no_error(error);
}

void rpc_net_dial_with(RpcNet *net, BerthTlsConfig *config, const char *host, guint16 port)
{
    assert_non_null(config);
    net->dialer = berth_rpc_dialer_new(host, port, config, net->server->services, &quick,
                                       rpc_net_on_connected, rpc_net_on_failed, net);
    berth_tls_config_free(config);
    berth_rpc_dialer_set_backoff(net->dialer, 20, 40);
}

void rpc_net_dial_as(RpcNet *net, const char *certificate)
{
    rpc_net_dial_with(net, rpc_net_load(certificate, certificate, "ca", NULL), "127.0.0.1",
                      berth_rpc_listener_port(net->listener));
}

int rpc_net_setup(void **state)
{
    RpcNet *net = g_new0(RpcNet, 1);
    net->server = rpc_fixture_new();
    *state = net;
    return 0;
}

int rpc_net_teardown(void **state)
{
    RpcNet *net = *state;
    berth_rpc_dialer_free(net->dialer);
    berth_rpc_listener_free(net->listener);
    berth_rpc_peer_unref(net->accepted);
    rpc_fixture_free(net->server);
    g_clear_error(&net->accepted_reason);
    g_clear_error(&net->rejected);
    g_clear_error(&net->failed);
    g_free(net);
    return 0;
}

GSocketConnection *rpc_net_connect_plain(RpcNet *net)
{
    g_autoptr(GSocketClient) client = g_socket_client_new();
    GSocketConnection *connection = g_socket_client_connect_to_host(
        client, "127.0.0.1", berth_rpc_listener_port(net->listener), NULL, NULL);
    assert_non_null(connection);
    return connection;
}

GSocket *rpc_net_connect_from(const char *from, guint16 port)
{
    g_autoptr(GSocketAddress) own = g_inet_socket_address_new_from_string(from, 0);
    g_autoptr(GSocketAddress) remote = g_inet_socket_address_new_from_string("127.0.0.1", port);
    g_autoptr(GError) error = NULL;
    GSocket *socket =
        g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
    assert_no_error(error);
    g_socket_bind(socket, own, FALSE, &error);
    assert_no_error(error);
    g_socket_connect(socket, remote, NULL, &error);
    assert_no_error(error);
    return socket;
}

/* RFC 8446, 4.1.2: no session, one cipher; a P-256 signature; x25519, of which any number is a key. */
const guint8 rpc_net_hello[117] = {
    0x16, 3, 1,    0, 112, 1, 0, 0,  108, 3,  3, [44] = 0, 2, 0x13, 1, 1,  0, 0,
    65,   0, 0x2b, 0, 3,   2, 3, 4,  0,   10, 0, 4,        0, 2,    0, 29, 0, 13,
    0,    4, 0,    2, 4,   3, 0, 51, 0,   38, 0, 36,       0, 29,   0, 32, 9,
};

void rpc_net_say_hello(GSocket *socket)
{
    assert_int_equal(
        g_socket_send(socket, (const char *)rpc_net_hello, sizeof rpc_net_hello, NULL, NULL),
        sizeof rpc_net_hello);
}

gboolean rpc_net_has_heard(GSocket *socket)
{
    return g_socket_condition_check(socket, G_IO_IN) != 0;
}
