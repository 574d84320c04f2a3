/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS: what names and files are taken, and who is let in. */
#include "tests/lib/rpc_net.h"

#include "common/message.h"

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
    g_autoptr(BerthTlsConfig) config = rpc_net_load("berthd", "berthd", "ca", &error);
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
        assert_null(rpc_net_load(cases[i].certificate, cases[i].key, cases[i].ca, &error));
        assert_berth_error(error, cases[i].code, cases[i].message);
    }
}

/* --- connections -------------------------------------------------------------------------- */

/* A certificate that berth_tls_config_new() would refuse, as another program would use it. */
static void connect_foreign(RpcNet *net, const char *certificate, const char *key, GError **error)
{
    g_autofree char *certificate_path =
        certificate != NULL ? rpc_net_file(certificate, "pem") : NULL;
    g_autofree char *key_path = certificate != NULL ? rpc_net_file(key, "key") : NULL;
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
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    rpc_net_listen_as(net, "berthd", 0);
    rpc_net_dial_as(net, "n1");
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
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    guint64 bytes = 0;
    net->server->chunk_bytes = 200000;
    rpc_net_listen_as(net, "berthd", 0);
    rpc_net_dial_as(net, "n1");
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
    RpcNet *net = *state;
    rpc_net_listen_as(net, "host", 0);
    rpc_net_dial_as(net, "n1");
    run_until(net->connected != NULL);
    assert_string_equal(berth_rpc_peer_identity(net->connected)->node_name, "head");
}

static void certificate_of_another_node_is_refused_by_the_client(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "impostor", 0);
    rpc_net_dial_as(net, "n1");
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_PERMISSION_DENIED,
                       "(CN=n2): it is for another host, and not for \"berthd\"");
    assert_int_equal(net->connects, 0);
    assert_null(berth_rpc_dialer_peer(net->dialer));
}

static void server_of_another_ca_is_refused_by_the_client(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    rpc_net_dial_with(net, rpc_net_load("foreign", "foreign", "other", NULL), "127.0.0.1",
                      berth_rpc_listener_port(net->listener));
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_PERMISSION_DENIED, "it is not signed by the CA");
    assert_non_null(strstr(net->failed->message, "other.pem"));
}

static void client_of_another_ca_is_refused_by_the_server(void **state)
{
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    rpc_net_listen_as(net, "berthd", 0);
    connect_foreign(net, "foreign", "foreign", &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "(CN=n1): it is not signed");
    assert_non_null(strstr(net->rejected->message, "127.0.0.1:"));
    assert_null(net->accepted);
}

static void client_with_an_expired_certificate_is_refused(void **state)
{
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    rpc_net_listen_as(net, "berthd", 0);
    connect_foreign(net, "expired", "expired", &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "it has expired");
}

static void client_with_a_strange_name_is_refused(void **state)
{
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    rpc_net_listen_as(net, "berthd", 0);
    connect_foreign(net, "strange", "strange", &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "one common name");
}

static void client_without_a_certificate_is_refused(void **state)
{
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    rpc_net_listen_as(net, "berthd", 0);
    connect_foreign(net, NULL, NULL, &error);
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "showed no certificate");
}

static void client_of_an_older_tls_is_refused(void **state)
{
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    g_autofree char *certificate = rpc_net_file("n1", "pem");
    g_autofree char *key = rpc_net_file("n1", "key");
    rpc_net_listen_as(net, "berthd", 0);
    g_autofree char *where =
        g_strdup_printf("127.0.0.1:%u", berth_rpc_listener_port(net->listener));
    g_autoptr(GSubprocess) client =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_SILENCE |
                             G_SUBPROCESS_FLAGS_STDERR_SILENCE,
                         &error, "openssl", "s_client", "-tls1_2", "-connect", where, "-cert",
                         certificate, "-key", key, NULL);
    assert_no_error(error);
    run_until(net->rejected != NULL || net->accepted != NULL);
    g_subprocess_force_exit(client);
    assert_true(g_subprocess_wait(client, NULL, NULL));
    assert_non_null(net->rejected);
    assert_berth_error(net->rejected, BERTH_ERROR_PROTOCOL, "does not speak TLS 1.3");
    assert_null(net->accepted);
}

/* The client learns of it only after its own handshake. */
static void client_that_the_server_refuses_is_told(void **state)
{
    RpcNet *net = *state;
    g_autofree char *certificate_path = rpc_net_file("foreign", "pem");
    g_autofree char *key_path = rpc_net_file("foreign", "key");
    /* It trusts the server's CA, and its own certificate is of another: two CAs in one file. */
    assert_true(rpc_net_run("cat ca.pem other.pem >both.pem"));
    rpc_net_listen_as(net, "berthd", 0);
    rpc_net_dial_with(net, rpc_net_load("foreign", "foreign", "both", NULL), "127.0.0.1",
                      berth_rpc_listener_port(net->listener));
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE,
                       "if it refused this side's certificate, its log says why");
    assert_berth_error(net->rejected, BERTH_ERROR_PERMISSION_DENIED, "not signed by the CA");
    assert_int_equal(net->connects, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rpc_net_setup, rpc_net_teardown)

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
        TEST(client_of_an_older_tls_is_refused),
        TEST(client_that_the_server_refuses_is_told),
    };
    return cmocka_run_group_tests(tests, rpc_net_group_setup, rpc_net_group_teardown);
}
