/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS: a listener and diallers on the loopback, with certificates made here by openssl. */
#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

#include "common/message.h"
#include "common/rpc_dialer.h"
#include "common/rpc_tls.h"

#include <glib/gstdio.h>
#include <unistd.h>

static char *dir; /* of the certificates */

static char *file(const char *name, const char *suffix)
{
    return g_strdup_printf("%s/%s.%s", dir, name, suffix);
}

static gboolean run(const char *format, ...) G_GNUC_PRINTF(1, 2);

static gboolean run(const char *format, ...)
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
    return run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
               "-subj /CN=%s-ca -keyout %s.key -out %s.pem",
               name, name, name);
}

/* NAME.pem and NAME.key with SUBJECT, signed by CA; EXTRA are arguments of openssl x509. */
static gboolean make_certificate(const char *name, const char *ca, const char *subject,
                                 const char *extra)
{
    return run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '%s' "
               "-keyout %s.key -out %s.csr && openssl x509 -req -in %s.csr -CA %s.pem "
               "-CAkey %s.key -CAcreateserial -out %s.pem %s",
               subject, name, name, name, ca, ca, name, extra);
}

static int group_setup(void **state)
{
    g_autofree char *openssl = g_find_program_in_path("openssl");
    dir = g_dir_make_tmp("berth-tls-XXXXXX", NULL);
    if (openssl == NULL || dir == NULL)
        return -1;
    gboolean ok = make_ca("ca") && make_ca("other") &&
                  make_certificate("berthd", "ca", "/CN=berthd/O=Berth", "-days 2") &&
                  make_certificate("n1", "ca", "/O=Berth/CN=n1", "-days 2") &&
                  make_certificate("impostor", "ca", "/CN=n2", "-days 2") &&
                  make_certificate("foreign", "other", "/CN=n1", "-days 2") &&
                  make_certificate("expired", "ca", "/CN=n1", "-days -1") &&
                  make_certificate("nameless", "ca", "/O=Berth", "-days 2") &&
                  make_certificate("strange", "ca", "/CN=n1 and more", "-days 2") &&
                  run("echo subjectAltName=IP:127.0.0.1 >san; echo junk >junk.pem; : >empty.pem") &&
                  make_certificate("host", "ca", "/CN=head", "-days 2 -extfile san");
    return ok ? 0 : -1;
}

static int group_teardown(void **state)
{
    run("rm -f ./*");
    g_rmdir(dir);
    g_free(dir);
    return 0;
}

static BerthTlsConfig *load(const char *certificate, const char *key, const char *ca,
                            GError **error)
{
    g_autofree char *certificate_path = file(certificate, "pem");
    g_autofree char *key_path = file(key, "key");
    g_autofree char *ca_path = file(ca, "pem");
    return berth_tls_config_new(certificate_path, key_path, ca_path, error);
}

/* --- names -------------------------------------------------------------------------------- */

static void common_name_of_good_subjects_is_read(void **state)
{
    static const char *const subjects[] = {"CN=n1", "CN=n1,O=Berth", "O=Berth\\, Inc.,CN=n1",
                                           "O=a+cn=n1", "O=x\\\\,CN=n1"};
    for (gsize i = 0; i < G_N_ELEMENTS(subjects); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = berth_tls_common_name_of(subjects[i], &error);
        assert_no_error(error);
        assert_string_equal(name, "n1");
    }
}

static void common_name_of_bad_subjects_is_refused(void **state)
{
    static const char *const subjects[] = {
        "",       "O=Berth",     "CN=",       "CN=a,CN=b", "CN=a\\,CN=b", "CN=a b",
        "CN=a\\", "O=x\\,CN=n1", "CN=\"n1\"", "CN=#6e31",  "XCN=n1"};
    for (gsize i = 0; i < G_N_ELEMENTS(subjects); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_tls_common_name_of(subjects[i], &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "one common name");
    }
}

/* --- files -------------------------------------------------------------------------------- */

static void config_of_good_files_is_loaded(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) config = load("berthd", "berthd", "ca", &error);
    assert_no_error(error);
    assert_non_null(config);
}

static void config_of_bad_files_names_the_file(void **state)
{
    static const struct {
        const char *certificate;
        const char *key;
        const char *ca;
        int code;
        const char *message;
    } cases[] = {
        {"none", "n1", "ca", BERTH_ERROR_NOT_FOUND, "none.pem"},
        {"n1", "none", "ca", BERTH_ERROR_NOT_FOUND, "none.key"},
        {"n1", "n1", "none", BERTH_ERROR_NOT_FOUND, "none.pem"},
        {"junk", "n1", "ca", BERTH_ERROR_INVALID_ARGUMENT, "junk.pem for TLS: it is not a cert"},
        {"n1", "n1", "empty", BERTH_ERROR_INVALID_ARGUMENT, "empty.pem for TLS: it is not a CA"},
        {"n1", "berthd", "ca", BERTH_ERROR_INVALID_ARGUMENT,
         "berthd.key for TLS: it is not the key"},
        {"foreign", "foreign", "ca", BERTH_ERROR_INVALID_ARGUMENT,
         "foreign.pem for TLS: it is not signed by the CA (CA "},
        {"expired", "expired", "ca", BERTH_ERROR_INVALID_ARGUMENT,
         "expired.pem for TLS: it has expired"},
        {"nameless", "nameless", "ca", BERTH_ERROR_INVALID_ARGUMENT, "must have one common name"},
        {"strange", "strange", "ca", BERTH_ERROR_INVALID_ARGUMENT, "must have one common name"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(load(cases[i].certificate, cases[i].key, cases[i].ca, &error));
        assert_berth_error(error, cases[i].code, cases[i].message);
    }
}

/* --- connections -------------------------------------------------------------------------- */

typedef struct {
    RpcFixture *server;
    BerthRpcListener *listener;
    BerthRpcPeer *accepted;
    GError *accepted_reason;
    GError *rejected;
    BerthRpcDialer *dialer;
    BerthRpcPeer *connected;
    guint connects;
    GError *failed;
    guint failures;
    guint retry_msec;
} Net;

static void on_accept(BerthRpcPeer *peer, gpointer data)
{
    Net *net = data;
    berth_rpc_peer_unref(net->accepted);
    net->accepted = peer;
    g_clear_error(&net->accepted_reason);
    berth_rpc_peer_set_closed_func(peer, rpc_fixture_store_reason, &net->accepted_reason);
}

static void on_rejected(const GError *reason, gpointer data)
{
    Net *net = data;
    g_clear_error(&net->rejected);
    net->rejected = g_error_copy(reason);
}

static void on_connected(BerthRpcPeer *peer, gpointer data)
{
    Net *net = data;
    net->connected = peer;
    net->connects++;
}

static void on_failed(const GError *reason, guint retry_msec, gpointer data)
{
    Net *net = data;
    g_clear_error(&net->failed);
    net->failed = g_error_copy(reason);
    net->failures++;
    net->retry_msec = retry_msec;
    net->connected = NULL;
}

static const BerthRpcLimits quick = {.hello_timeout_msec = 5000};

static void listen_as(Net *net, const char *certificate, guint16 port)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = load(certificate, certificate, "ca", &error);
    assert_no_error(error);
    net->listener = berth_rpc_listener_new_tls("127.0.0.1", port, tls, net->server->services,
                                               &quick, on_accept, on_rejected, net, &error);
    assert_no_error(error);
}

/* CONFIG is freed at once: the dialler must not need it. */
static void dial_with(Net *net, BerthTlsConfig *config, const char *host, guint16 port)
{
    assert_non_null(config);
    net->dialer = berth_rpc_dialer_new(host, port, config, net->server->services, &quick,
                                       on_connected, on_failed, net);
    berth_tls_config_free(config);
    berth_rpc_dialer_set_backoff(net->dialer, 20, 40);
}

static void dial_as(Net *net, const char *certificate)
{
    dial_with(net, load(certificate, certificate, "ca", NULL), "127.0.0.1",
              berth_rpc_listener_port(net->listener));
}

static int setup(void **state)
{
    Net *net = g_new0(Net, 1);
    net->server = rpc_fixture_new();
    *state = net;
    return 0;
}

static int teardown(void **state)
{
    Net *net = *state;
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

/* A certificate that berth_tls_config_new() would refuse, as another program would use it. */
static void connect_foreign(Net *net, const char *certificate, const char *key, GError **error)
{
    g_autofree char *certificate_path = certificate != NULL ? file(certificate, "pem") : NULL;
    g_autofree char *key_path = certificate != NULL ? file(key, "key") : NULL;
    g_autoptr(GTlsCertificate) shown =
        certificate != NULL ? g_tls_certificate_new_from_files(certificate_path, key_path, NULL)
                            : NULL;
    g_autofree char *address =
        g_strdup_printf("127.0.0.1:%u", berth_rpc_listener_port(net->listener));
    g_autofree char *arguments =
        certificate != NULL ? g_strdup_printf("-cert %s -key %s", certificate_path, key_path)
                            : g_strdup("");
    g_autofree char *command = g_strdup_printf(
        "openssl s_client -connect %s %s </dev/null >/dev/null 2>&1", address, arguments);
    const char *argv[] = {"sh", "-c", command, NULL};
    g_autoptr(GSubprocess) client = g_subprocess_newv(argv, G_SUBPROCESS_FLAGS_NONE, error);
    assert_non_null(client);
    run_until(net->rejected != NULL);
    g_subprocess_wait(client, NULL, NULL);
}

static void connection_with_good_certificates_calls_both_ways(void **state)
{
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    listen_as(net, "berthd", 0);
    dial_as(net, "n1");
    run_until(net->connected != NULL && net->accepted != NULL);
    assert_ptr_equal(berth_rpc_dialer_peer(net->dialer), net->connected);
    const BerthRpcIdentity *identity = berth_rpc_peer_identity(net->accepted);
    assert_false(identity->is_unix);
    assert_string_equal(identity->node_name, "n1");
    assert_true(g_str_has_prefix(identity->description, "n1 at 127.0.0.1:"));
    assert_string_equal(berth_rpc_peer_identity(net->connected)->node_name, "berthd");
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = 5;
    BerthRpcPeer *peers[] = {net->connected, net->accepted};
    for (gsize i = 0; i < G_N_ELEMENTS(peers); i++) {
        g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call(
            peers[i], &berth__jobs__descriptor, "Get", &request.base, 60000, &error);
        assert_no_error(error);
        assert_int_equal(((Berth__Job *)reply)->id, 5);
    }
}

static gboolean count_bytes(const ProtobufCMessage *item, gpointer data)
{
    *(guint64 *)data += ((const Berth__LogChunk *)item)->data.len;
    return TRUE;
}

static void stream_of_much_data_passes_tls(void **state)
{
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    guint64 bytes = 0;
    net->server->chunk_bytes = 200000;
    listen_as(net, "berthd", 0);
    dial_as(net, "n1");
    run_until(net->connected != NULL);
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = 100;
    assert_true(berth_rpc_peer_stream(net->connected, &berth__jobs__descriptor, "Logs",
                                      &request.base, 60000, count_bytes, &bytes, &error));
    assert_no_error(error);
    assert_int_equal(bytes, 20000000);
}

static void certificate_for_the_host_is_taken_by_the_client(void **state)
{
    Net *net = *state;
    listen_as(net, "host", 0);
    dial_as(net, "n1");
    run_until(net->connected != NULL);
    assert_string_equal(berth_rpc_peer_identity(net->connected)->node_name, "head");
}

static void certificate_of_another_node_is_refused_by_the_client(void **state)
{
    Net *net = *state;
    listen_as(net, "impostor", 0);
    dial_as(net, "n1");
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_PERMISSION_DENIED,
                       "(CN=n2): it is for another host, and not for \"berthd\"");
    assert_int_equal(net->connects, 0);
    assert_null(berth_rpc_dialer_peer(net->dialer));
}

static void server_of_another_ca_is_refused_by_the_client(void **state)
{
    Net *net = *state;
    listen_as(net, "berthd", 0);
    dial_with(net, load("foreign", "foreign", "other", NULL), "127.0.0.1",
              berth_rpc_listener_port(net->listener));
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_PERMISSION_DENIED, "it is not signed by the CA");
    assert_non_null(strstr(net->failed->message, "other.pem"));
}

static void client_of_another_ca_is_refused_by_the_server(void **state)
{
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    listen_as(net, "berthd", 0);
    connect_foreign(net, "foreign", "foreign", &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "(CN=n1): it is not signed");
    assert_non_null(strstr(net->rejected->message, "127.0.0.1:"));
    assert_null(net->accepted);
}

static void client_with_an_expired_certificate_is_refused(void **state)
{
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    listen_as(net, "berthd", 0);
    connect_foreign(net, "expired", "expired", &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "it has expired");
}

static void client_with_a_strange_name_is_refused(void **state)
{
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    listen_as(net, "berthd", 0);
    connect_foreign(net, "strange", "strange", &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "one common name");
}

static void client_without_a_certificate_is_refused(void **state)
{
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    listen_as(net, "berthd", 0);
    connect_foreign(net, NULL, NULL, &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "showed no certificate");
}

/* The client learns of it only after its own handshake. */
static void client_that_the_server_refuses_is_told(void **state)
{
    Net *net = *state;
    g_autofree char *certificate_path = file("foreign", "pem");
    g_autofree char *key_path = file("foreign", "key");
    /* It trusts the server's CA, and its own certificate is of another: two CAs in one file. */
    assert_true(run("cat ca.pem other.pem >both.pem"));
    listen_as(net, "berthd", 0);
    dial_with(net, load("foreign", "foreign", "both", NULL), "127.0.0.1",
              berth_rpc_listener_port(net->listener));
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE,
                       "if it refused this side's certificate, its log says why");
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "not signed by the CA");
    assert_int_equal(net->connects, 0);
}

static GSocketConnection *connect_plain(Net *net)
{
    g_autoptr(GSocketClient) client = g_socket_client_new();
    GSocketConnection *connection = g_socket_client_connect_to_host(
        client, "127.0.0.1", berth_rpc_listener_port(net->listener), NULL, NULL);
    assert_non_null(connection);
    return connection;
}

static void peer_that_does_not_speak_tls_is_rejected(void **state)
{
    Net *net = *state;
    listen_as(net, "berthd", 0);
    g_autoptr(GSocketConnection) connection = connect_plain(net);
    g_output_stream_write_all(g_io_stream_get_output_stream(G_IO_STREAM(connection)),
                              "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, NULL, NULL, NULL);
    run_until(net->rejected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_PROTOCOL, "127.0.0.1:");
}

static void peer_that_hangs_up_in_the_handshake_is_rejected(void **state)
{
    Net *net = *state;
    listen_as(net, "berthd", 0);
    GSocketConnection *connection = connect_plain(net);
    g_object_unref(connection);
    run_until(net->rejected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_UNAVAILABLE, "broke off");
}

static void keep_result(GObject *source, GAsyncResult *result, gpointer data)
{
    *(GAsyncResult **)data = g_object_ref(result);
}

/* As a server does that is killed with the connection in its backlog. */
static GSocketConnection *connection_that_was_reset(void)
{
    g_autoptr(GSocketListener) listener = g_socket_listener_new();
    guint16 port = g_socket_listener_add_any_inet_port(listener, NULL, NULL);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GAsyncResult) result = NULL;
    g_socket_client_connect_to_host_async(client, "127.0.0.1", port, NULL, keep_result, &result);
    run_until(result != NULL);
    GSocketConnection *connection = g_socket_client_connect_to_host_finish(client, result, NULL);
    assert_non_null(connection);
    g_socket_listener_close(listener);
    GSocket *socket = g_socket_connection_get_socket(connection);
    assert_true(g_socket_condition_timed_wait(socket, G_IO_HUP, 60 * G_USEC_PER_SEC, NULL, NULL));
    return connection;
}

static void server_that_is_gone_before_the_handshake_is_an_error(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) config = load("n1", "n1", "ca", &error);
    assert_no_error(error);
    g_autoptr(GSocketConnection) connection = connection_that_was_reset();
    g_autoptr(GAsyncResult) result = NULL;
    berth_tls_handshake_async(config, G_IO_STREAM(connection), "127.0.0.1", "berthd", 60000, NULL,
                              keep_result, &result);
    run_until(result != NULL);
    assert_null(berth_tls_handshake_finish(result, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "berthd broke off");
}

static void peer_that_is_silent_in_the_handshake_is_rejected(void **state)
{
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = load("berthd", "berthd", "ca", NULL);
    const BerthRpcLimits limits = {.hello_timeout_msec = 30};
    net->listener = berth_rpc_listener_new_tls("127.0.0.1", 0, tls, net->server->services, &limits,
                                               on_accept, on_rejected, net, &error);
    assert_no_error(error);
    g_autoptr(GSocketConnection) connection = connect_plain(net);
    run_until(net->rejected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_DEADLINE_EXCEEDED, "within 30 ms");
}

/* Without a thread of GLib's. */
static GSocket *connect_raw(Net *net)
{
    g_autoptr(GSocketAddress) address =
        g_inet_socket_address_new_from_string("127.0.0.1", berth_rpc_listener_port(net->listener));
    GSocket *socket =
        g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
    assert_true(g_socket_connect(socket, address, NULL, NULL));
    return socket;
}

/* They stay for longer than this test may take. */
static void silent_peers_do_not_keep_others_out(void **state)
{
    enum { N_SILENT = 200 };
    Net *net = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = load("berthd", "berthd", "ca", NULL);
    const BerthRpcLimits patient = {.hello_timeout_msec = 600000};
    GSocket *silent[N_SILENT];
    net->listener = berth_rpc_listener_new_tls("127.0.0.1", 0, tls, net->server->services, &patient,
                                               on_accept, on_rejected, net, &error);
    assert_no_error(error);
    for (guint i = 0; i < N_SILENT; i++) {
        silent[i] = connect_raw(net);
        g_main_context_iteration(NULL, FALSE);
    }
    dial_as(net, "n1");
    run_until(net->connected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_RESOURCE_EXHAUSTED, "from 127.0.0.1");
    for (guint i = 0; i < N_SILENT; i++)
        g_object_unref(silent[i]);
}

static void listener_freed_during_a_handshake_is_quiet(void **state)
{
    Net *net = *state;
    listen_as(net, "berthd", 0);
    g_autoptr(GSocketConnection) connection = connect_plain(net);
    g_autoptr(GInputStream) input =
        g_object_ref(g_io_stream_get_input_stream(G_IO_STREAM(connection)));
    /* The handshake has begun when the connection was accepted. */
    for (int i = 0; i < 10; i++)
        g_main_context_iteration(NULL, FALSE);
    g_clear_pointer(&net->listener, berth_rpc_listener_free);
    char byte;
    GAsyncResult *result = NULL;
    g_input_stream_read_async(input, &byte, 1, G_PRIORITY_DEFAULT, NULL, rpc_fixture_store_result,
                              &result);
    run_until(result != NULL);
    assert_true(g_input_stream_read_finish(input, result, NULL) <= 0);
    g_object_unref(result);
    assert_null(net->rejected);
}

static void rejections_are_reported_a_few_times_only(void **state)
{
    Net *net = *state;
    guint reports = 0;
    listen_as(net, "berthd", 0);
    for (int i = 0; i < 20; i++) {
        GSocketConnection *connection = connect_plain(net);
        g_object_unref(connection);
    }
    /* All are behind this one, which is accepted. */
    dial_as(net, "n1");
    while (net->connected == NULL) {
        g_main_context_iteration(NULL, TRUE);
        if (net->rejected != NULL)
            reports++;
        g_clear_error(&net->rejected);
    }
    assert_in_range(reports, 1, 5);
}

static void dialer_dials_again_until_somebody_listens(void **state)
{
    Net *net = *state;
    listen_as(net, "berthd", 0);
    guint16 port = berth_rpc_listener_port(net->listener);
    g_clear_pointer(&net->listener, berth_rpc_listener_free);
    dial_with(net, load("n1", "n1", "ca", NULL), "127.0.0.1", port);
    run_until(net->failures >= 2);
    assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE, "cannot connect to 127.0.0.1:");
    assert_in_range(net->retry_msec, 20, 40);
    listen_as(net, "berthd", port);
    run_until(net->connected != NULL);
    assert_int_equal(net->connects, 1);
}

static void dialer_dials_again_after_the_connection_was_lost(void **state)
{
    Net *net = *state;
    listen_as(net, "berthd", 0);
    dial_as(net, "n1");
    for (guint round = 1; round <= 3; round++) {
        run_until(net->connects == round && net->accepted != NULL);
        assert_int_equal(net->failures, round - 1);
        berth_rpc_peer_close(net->accepted, TRUE);
        run_until(net->failures == round);
        assert_null(berth_rpc_dialer_peer(net->dialer));
        assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE, "berthd at 127.0.0.1:");
    }
}

static void dialer_to_a_silent_port_gives_up_in_time(void **state)
{
    Net *net = *state;
    g_autoptr(GSocketListener) silent = g_socket_listener_new();
    guint16 port = g_socket_listener_add_any_inet_port(silent, NULL, NULL);
    g_autoptr(BerthTlsConfig) tls = load("n1", "n1", "ca", NULL);
    const BerthRpcLimits limits = {.hello_timeout_msec = 30};
    net->dialer =
        berth_rpc_dialer_new("localhost", port, tls, NULL, &limits, on_connected, on_failed, net);
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_DEADLINE_EXCEEDED, "localhost:");
    assert_in_range(net->retry_msec, 1000, 1500);
}

static void dialer_to_an_unknown_host_says_so(void **state)
{
    Net *net = *state;
    dial_with(net, load("n1", "n1", "ca", NULL), "no-such-host.invalid", 7440);
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE,
                       "cannot connect to no-such-host.invalid:7440");
}

static void dialer_freed_at_any_moment_is_quiet(void **state)
{
    Net *net = *state;
    listen_as(net, "berthd", 0);
    for (int steps = 0; steps < 60; steps++) {
        dial_as(net, "n1");
        for (int i = 0; i < steps; i++)
            g_main_context_iteration(NULL, FALSE);
        guint failures = net->failures, connects = net->connects;
        g_clear_pointer(&net->dialer, berth_rpc_dialer_free);
        while (g_main_context_iteration(NULL, FALSE))
            ;
        assert_int_equal(net->failures, failures);
        assert_int_equal(net->connects, connects);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_name_of_good_subjects_is_read),
        cmocka_unit_test(common_name_of_bad_subjects_is_refused),
        cmocka_unit_test(config_of_good_files_is_loaded),
        cmocka_unit_test(config_of_bad_files_names_the_file),
        TEST(connection_with_good_certificates_calls_both_ways),
        TEST(stream_of_much_data_passes_tls),
        TEST(certificate_for_the_host_is_taken_by_the_client),
        TEST(certificate_of_another_node_is_refused_by_the_client),
        TEST(server_of_another_ca_is_refused_by_the_client),
        TEST(client_of_another_ca_is_refused_by_the_server),
        TEST(client_with_an_expired_certificate_is_refused),
        TEST(client_with_a_strange_name_is_refused),
        TEST(client_without_a_certificate_is_refused),
        TEST(client_that_the_server_refuses_is_told),
        TEST(peer_that_does_not_speak_tls_is_rejected),
        TEST(peer_that_hangs_up_in_the_handshake_is_rejected),
        TEST(server_that_is_gone_before_the_handshake_is_an_error),
        TEST(peer_that_is_silent_in_the_handshake_is_rejected),
        TEST(silent_peers_do_not_keep_others_out),
        TEST(listener_freed_during_a_handshake_is_quiet),
        TEST(rejections_are_reported_a_few_times_only),
        TEST(dialer_dials_again_until_somebody_listens),
        TEST(dialer_dials_again_after_the_connection_was_lost),
        TEST(dialer_to_a_silent_port_gives_up_in_time),
        TEST(dialer_to_an_unknown_host_says_so),
        TEST(dialer_freed_at_any_moment_is_quiet),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
