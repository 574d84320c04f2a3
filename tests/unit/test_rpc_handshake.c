/* SPDX-License-Identifier: Apache-2.0 */
/* Connections over TLS that do not come about: peers that say nothing, the wrong thing, or go; and the dialler,
 * which tries again. */
#include "tests/lib/rpc_net.h"

static void peer_that_does_not_speak_tls_is_rejected(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    g_autoptr(GSocketConnection) connection = rpc_net_connect_plain(net);
    g_output_stream_write_all(g_io_stream_get_output_stream(G_IO_STREAM(connection)),
                              "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, NULL, NULL, NULL);
    run_until(net->rejected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_PROTOCOL, "127.0.0.1:");
}

static void peer_that_hangs_up_in_the_handshake_is_rejected(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    GSocketConnection *connection = rpc_net_connect_plain(net);
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
    g_autoptr(BerthTlsConfig) config = rpc_net_load("n1", "n1", "ca", &error);
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
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = rpc_net_load("berthd", "berthd", "ca", NULL);
    const BerthRpcLimits limits = {.hello_timeout_msec = 30};
    net->listener = berth_rpc_listener_new_tls("127.0.0.1", 0, tls, net->server->services, &limits,
                                               rpc_net_on_accept, rpc_net_on_rejected, net, &error);
    assert_no_error(error);
    g_autoptr(GSocketConnection) connection = rpc_net_connect_plain(net);
    run_until(net->rejected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_DEADLINE_EXCEEDED, "within 30 ms");
}

/* They stay for longer than this test may take. */
static void silent_peers_do_not_keep_others_out(void **state)
{
    enum { N_SILENT = 400 };
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = rpc_net_load("berthd", "berthd", "ca", NULL);
    const BerthRpcLimits patient = {.hello_timeout_msec = 600000};
    GSocket *silent[N_SILENT];
    net->listener = berth_rpc_listener_new_tls("127.0.0.1", 0, tls, net->server->services, &patient,
                                               rpc_net_on_accept, rpc_net_on_rejected, net, &error);
    assert_no_error(error);
    for (guint i = 0; i < N_SILENT; i++) {
        silent[i] = rpc_net_connect_from("127.0.0.1", berth_rpc_listener_port(net->listener));
        g_main_context_iteration(NULL, FALSE);
    }
    rpc_net_dial_as(net, "n1");
    run_until(net->connected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_RESOURCE_EXHAUSTED, "from 127.0.0.1");
    for (guint i = 0; i < N_SILENT; i++)
        g_object_unref(silent[i]);
}

static void count_accepted(BerthRpcPeer *peer, gpointer data)
{
    RpcNet *net = data;
    net->connects++;
    berth_rpc_peer_close(peer, FALSE);
    berth_rpc_peer_unref(peer);
}

/* As if all nodes behind one router came back: from other processes, as GLib has one small pool of threads for the
 * handshakes of both ends. */
static void many_at_once_from_one_address_all_get_in(void **state)
{
    enum { N = 40 };
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = rpc_net_load("berthd", "berthd", "ca", NULL);
    net->listener = berth_rpc_listener_new_tls("127.0.0.1", 0, tls, net->server->services, NULL,
                                               count_accepted, rpc_net_on_rejected, net, &error);
    assert_no_error(error);
    assert_true(rpc_net_run("for i in $(seq %d); do openssl s_client -connect 127.0.0.1:%u"
                            " -cert n1.pem -key n1.key </dev/null >/dev/null 2>&1 & done",
                            N, berth_rpc_listener_port(net->listener)));
    run_until(net->connects == N || net->rejected != NULL);
    assert_no_error(net->rejected);
}

/* Each holds a thread of GLib's. */
static void peers_that_do_not_go_on_make_way_for_others(void **state)
{
    enum { N_STUCK = 20 };
    RpcNet *net = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = rpc_net_load("berthd", "berthd", "ca", NULL);
    const BerthRpcLimits patient = {.hello_timeout_msec = 600000};
    GSocket *stuck[N_STUCK];
    net->listener = berth_rpc_listener_new_tls("127.0.0.1", 0, tls, net->server->services, &patient,
                                               rpc_net_on_accept, rpc_net_on_rejected, net, &error);
    assert_no_error(error);
    for (guint i = 0; i < N_STUCK; i++) {
        stuck[i] = rpc_net_connect_from("127.0.0.1", berth_rpc_listener_port(net->listener));
        rpc_net_say_hello(stuck[i]);
    }
    rpc_net_dial_as(net, "n1");
    run_until(net->connected != NULL);
    assert_berth_error(net->rejected, BERTH_ERROR_RESOURCE_EXHAUSTED, "from 127.0.0.1");
    for (guint i = 0; i < N_STUCK; i++)
        g_object_unref(stuck[i]);
}

static void listener_freed_during_a_handshake_is_quiet(void **state)
{
    RpcNet *net = *state;
    char bytes[4096];
    gssize got = 1;
    rpc_net_listen_as(net, "berthd", 0);
    g_autoptr(GSocket) client =
        rpc_net_connect_from("127.0.0.1", berth_rpc_listener_port(net->listener));
    rpc_net_say_hello(client);
    run_until(rpc_net_has_heard(client));
    g_clear_pointer(&net->listener, berth_rpc_listener_free);
    while (got > 0) {
        run_until(rpc_net_has_heard(client));
        got = g_socket_receive(client, bytes, sizeof bytes, NULL, NULL);
    }
    assert_null(net->rejected);
}

static void rejections_are_reported_a_few_times_only(void **state)
{
    RpcNet *net = *state;
    guint reports = 0;
    rpc_net_listen_as(net, "berthd", 0);
    for (int i = 0; i < 20; i++) {
        GSocketConnection *connection = rpc_net_connect_plain(net);
        g_object_unref(connection);
    }
    /* All are behind this one, which is accepted. */
    rpc_net_dial_as(net, "n1");
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
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    guint16 port = berth_rpc_listener_port(net->listener);
    g_clear_pointer(&net->listener, berth_rpc_listener_free);
    rpc_net_dial_with(net, rpc_net_load("n1", "n1", "ca", NULL), "127.0.0.1", port);
    run_until(net->failures >= 2);
    assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE, "cannot connect to 127.0.0.1:");
    assert_in_range(net->retry_msec, 20, 40);
    rpc_net_listen_as(net, "berthd", port);
    run_until(net->connected != NULL);
    assert_int_equal(net->connects, 1);
}

static void dialer_dials_again_after_the_connection_was_lost(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    rpc_net_dial_as(net, "n1");
    for (guint round = 1; round <= 3; round++) {
        run_until(net->connects == round && net->accepted != NULL);
        assert_int_equal(net->failures, round - 1);
        berth_rpc_peer_close(net->accepted, TRUE);
        run_until(net->failures == round);
        assert_null(berth_rpc_dialer_peer(net->dialer));
        assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE, "berthd at 127.0.0.1:");
    }
}

/* However often it has failed before. */
static void dialer_that_is_to_dial_again_does_so_soon(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    rpc_net_dial_as(net, "n1");
    berth_rpc_dialer_set_backoff(net->dialer, 20, 1000);
    for (guint round = 1; round <= 4; round++) {
        run_until(net->connects == round && net->accepted != NULL);
        berth_rpc_peer_close(net->accepted, TRUE);
        run_until(net->failures == round);
    }
    assert_in_range(net->retry_msec, 160, 240);
    run_until(net->connects == 5 && net->accepted != NULL);
    berth_rpc_dialer_dial_again(net->dialer);
    run_until(net->failures == 5);
    assert_in_range(net->retry_msec, 20, 30);
    run_until(net->connects == 6);
}

/* One that was lost again at once was good all the same: what is behind it starts anew, as does the one before it. */
static void dialer_whose_connection_was_good_starts_anew(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    rpc_net_dial_as(net, "n1");
    berth_rpc_dialer_set_backoff(net->dialer, 20, 1000);
    for (guint round = 1; round <= 4; round++) {
        run_until(net->connects == round && net->accepted != NULL);
        berth_rpc_peer_close(net->accepted, TRUE);
        run_until(net->failures == round);
    }
    assert_in_range(net->retry_msec, 160, 240);
    run_until(net->connects == 5 && net->accepted != NULL);
    berth_rpc_dialer_succeeded(net->dialer, 50);
    for (guint round = 5; round <= 8; round++) {
        berth_rpc_peer_close(net->accepted, TRUE);
        run_until(net->failures == round);
        assert_in_range(net->retry_msec, 20, round == 5 ? 30 : 50);
        run_until(net->connects == round + 1 && net->accepted != NULL);
    }
    assert_int_equal(net->retry_msec, 50);
}

static void dialer_to_a_silent_port_gives_up_in_time(void **state)
{
    RpcNet *net = *state;
    g_autoptr(GSocketListener) silent = g_socket_listener_new();
    guint16 port = g_socket_listener_add_any_inet_port(silent, NULL, NULL);
    g_autoptr(BerthTlsConfig) tls = rpc_net_load("n1", "n1", "ca", NULL);
    const BerthRpcLimits limits = {.hello_timeout_msec = 30};
    net->dialer = berth_rpc_dialer_new("localhost", port, tls, NULL, &limits, rpc_net_on_connected,
                                       rpc_net_on_failed, net);
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_DEADLINE_EXCEEDED, "localhost:");
    assert_in_range(net->retry_msec, 1000, 1500);
}

static void dialer_to_an_unknown_host_says_so(void **state)
{
    RpcNet *net = *state;
    rpc_net_dial_with(net, rpc_net_load("n1", "n1", "ca", NULL), "no-such-host.invalid", 7440);
    run_until(net->failed != NULL);
    assert_berth_error(net->failed, BERTH_ERROR_UNAVAILABLE,
                       "cannot connect to no-such-host.invalid:7440");
}

static void dialer_freed_at_any_moment_is_quiet(void **state)
{
    RpcNet *net = *state;
    rpc_net_listen_as(net, "berthd", 0);
    for (int steps = 0; steps < 60; steps++) {
        rpc_net_dial_as(net, "n1");
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, rpc_net_setup, rpc_net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(peer_that_does_not_speak_tls_is_rejected),
        TEST(peer_that_hangs_up_in_the_handshake_is_rejected),
        TEST(server_that_is_gone_before_the_handshake_is_an_error),
        TEST(peer_that_is_silent_in_the_handshake_is_rejected),
        TEST(silent_peers_do_not_keep_others_out),
        TEST(many_at_once_from_one_address_all_get_in),
        TEST(peers_that_do_not_go_on_make_way_for_others),
        TEST(listener_freed_during_a_handshake_is_quiet),
        TEST(rejections_are_reported_a_few_times_only),
        TEST(dialer_dials_again_until_somebody_listens),
        TEST(dialer_dials_again_after_the_connection_was_lost),
        TEST(dialer_that_is_to_dial_again_does_so_soon),
        TEST(dialer_whose_connection_was_good_starts_anew),
        TEST(dialer_to_a_silent_port_gives_up_in_time),
        TEST(dialer_to_an_unknown_host_says_so),
        TEST(dialer_freed_at_any_moment_is_quiet),
    };
    return cmocka_run_group_tests(tests, rpc_net_group_setup, rpc_net_group_teardown);
}
