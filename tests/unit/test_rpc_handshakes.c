/* SPDX-License-Identifier: Apache-2.0 */
/* Connections at a door, before their handshakes have ended: who makes way for whom, and what is heard of it. Clients come
 * from any address of 127.0.0.0/8. */
#include "tests/lib/rpc_net.h"

#include "common/descriptors.h"
#include "common/rpc_handshakes.h"

#include <sys/resource.h>

enum { LANE = 16, N_SMALL = 40, TRIES_MAX = 20 };

typedef struct {
    GSocket *socket;
    guint16 port;
    BerthTlsConfig *tls;
    BerthRpcHandshakes *handshakes;
    GPtrArray *clients; /* GSocket */
    GPtrArray *reasons; /* GError, of those who failed */
    guint completed;
    guint rooms; /* how often there was room */
} Door;

static void on_completed(GIOStream *stream, gpointer data)
{
    Door *door = data;
    door->completed++;
}

static void on_failed(const GError *reason, gpointer data)
{
    Door *door = data;
    g_ptr_array_add(door->reasons, g_error_copy(reason));
}

static void on_room(gpointer data)
{
    Door *door = data;
    door->rooms++;
}

static const BerthRpcHandshakesFuncs funcs = {on_completed, on_failed, on_room};

static void open_door(Door *door, guint timeout_msec)
{
    g_clear_pointer(&door->handshakes, berth_rpc_handshakes_free);
    door->handshakes = berth_rpc_handshakes_new(door->tls, timeout_msec, &funcs, door);
}

/* Nobody is late by himself: it is longer than a test may take. */
static int setup(void **state)
{
    Door *door = g_new0(Door, 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketAddress) any = g_inet_socket_address_new_from_string("127.0.0.1", 0);
    door->socket =
        g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
    assert_no_error(error);
    assert_true(g_socket_bind(door->socket, any, FALSE, NULL));
    assert_true(g_socket_listen(door->socket, NULL));
    g_autoptr(GSocketAddress) own = g_socket_get_local_address(door->socket, NULL);
    door->port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(own));
    door->tls = rpc_net_load("berthd", "berthd", "ca", &error);
    assert_no_error(error);
    door->clients = g_ptr_array_new_with_free_func(g_object_unref);
    door->reasons = g_ptr_array_new_with_free_func((GDestroyNotify)g_error_free);
    open_door(door, 600000);
    *state = door;
    return 0;
}

static int teardown(void **state)
{
    Door *door = *state;
    berth_rpc_handshakes_free(door->handshakes);
    g_ptr_array_unref(door->clients);
    g_ptr_array_unref(door->reasons);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    berth_tls_config_free(door->tls);
    g_object_unref(door->socket);
    g_free(door);
    return 0;
}

/* (transfer none) */
static GSocket *enter(Door *door, const char *from)
{
    g_autoptr(GError) error = NULL;
    GSocket *client = rpc_net_connect_from(from, door->port);
    g_ptr_array_add(door->clients, client);
    g_autoptr(GSocket) accepted = g_socket_accept(door->socket, NULL, &error);
    assert_no_error(error);
    g_autoptr(GSocketConnection) connection =
        g_socket_connection_factory_create_connection(accepted);
    berth_rpc_handshakes_add(door->handshakes, connection);
    return client;
}

/* Its handshake begins, if it gets a turn, and goes no further. */
static GSocket *enter_stuck(Door *door, const char *from)
{
    GSocket *client = enter(door, from);
    rpc_net_say_hello(client);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    return client;
}

static void fill(Door *door, guint n)
{
    for (guint i = 0; i < n; i++) {
        g_autofree char *from = g_strdup_printf("127.9.%u.%u", i / 250, i % 250 + 1);
        enter_stuck(door, from);
    }
}

static const GError *find_reason(Door *door, const char *text)
{
    for (guint i = 0; i < door->reasons->len; i++) {
        const GError *reason = g_ptr_array_index(door->reasons, i);
        if (strstr(reason->message, text) != NULL)
            return reason;
    }
    return NULL;
}

/* --- a client that has a certificate, on a thread of its own ------------------------------------- */

typedef struct {
    GSocket *socket;
    GThread *thread;
    gint has_heard; /* the server's certificate: it waits for ours */
    gint may_answer;
    gboolean stays; /* until the server hangs up */
    gint has_ended;
} Honest;

static gboolean on_certificate(GTlsConnection *connection, GTlsCertificate *certificate,
                               GTlsCertificateFlags flags, gpointer data)
{
    Honest *honest = data;
    g_atomic_int_set(&honest->has_heard, TRUE);
    while (!g_atomic_int_get(&honest->may_answer))
        g_usleep(1000);
    return TRUE;
}

static gpointer shake_hands(gpointer data)
{
    Honest *honest = data;
    g_autofree char *certificate_path = rpc_net_file("n1", "pem");
    g_autofree char *key_path = rpc_net_file("n1", "key");
    g_autoptr(GTlsCertificate) certificate =
        g_tls_certificate_new_from_files(certificate_path, key_path, NULL);
    g_autoptr(GSocketConnection) base =
        g_socket_connection_factory_create_connection(honest->socket);
    g_autoptr(GIOStream) tls = g_tls_client_connection_new(G_IO_STREAM(base), NULL, NULL);
    g_tls_connection_set_certificate(G_TLS_CONNECTION(tls), certificate);
    g_signal_connect(tls, "accept-certificate", G_CALLBACK(on_certificate), honest);
    gboolean is_in = g_tls_connection_handshake(G_TLS_CONNECTION(tls), NULL, NULL);
    char byte;
    if (is_in && honest->stays)
        g_input_stream_read(g_io_stream_get_input_stream(tls), &byte, 1, NULL, NULL);
    g_atomic_int_set(&honest->has_ended, TRUE);
    return NULL;
}

static Honest *honest_new(Door *door, const char *from, gboolean may_answer)
{
    Honest *honest = g_new0(Honest, 1);
    honest->stays = may_answer;
    honest->socket = g_object_ref(enter(door, from));
    honest->may_answer = may_answer;
    honest->thread = g_thread_new("honest", shake_hands, honest);
    return honest;
}

static void honest_join(Honest *honest)
{
    g_atomic_int_set(&honest->may_answer, TRUE);
    g_thread_join(honest->thread);
    g_object_unref(honest->socket);
    g_free(honest);
}

/* On a crowded machine it may be late itself, and is dropped for that: as agents do it dials again. */
static void assert_honest_gets_in(Door *door, const char *from)
{
    guint before = door->completed;
    for (guint i = 0; i < TRIES_MAX && door->completed == before; i++) {
        Honest *honest = honest_new(door, from, TRUE);
        run_until(door->completed > before || g_atomic_int_get(&honest->has_ended));
        run_until(g_atomic_int_get(&honest->has_ended)); /* the server has hung up */
        honest_join(honest);
    }
    assert_true(door->completed > before);
}

/* --- the first record ---------------------------------------------------------------------------- */

static void hello_in_pieces_is_answered(void **state)
{
    static const gsize ends[] = {1, 5, 6, sizeof rpc_net_hello};
    Door *door = *state;
    GSocket *client = enter(door, "127.0.0.1");
    gsize at = 0;
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        const char *piece = (const char *)rpc_net_hello + at;
        assert_int_equal(g_socket_send(client, piece, ends[i] - at, NULL, NULL), ends[i] - at);
        at = ends[i];
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    run_until(rpc_net_has_heard(client));
    assert_int_equal(door->reasons->len, 0);
}

/* They hold nobody up, however many they are, and so nobody drops them. */
static void part_of_a_record_does_not_begin_a_handshake(void **state)
{
    Door *door = *state;
    for (guint i = 0; i < 100; i++) {
        gsize length = i % 2 == 0 ? 1 : 6;
        g_socket_send(enter(door, "127.0.0.1"), (const char *)rpc_net_hello, length, NULL, NULL);
    }
    assert_honest_gets_in(door, "127.0.0.1");
    assert_int_equal(door->reasons->len, 0);
}

static void other_protocol_is_refused(void **state)
{
    Door *door = *state;
    g_socket_send(enter(door, "127.0.0.1"), "GET / HTTP/1.1\r\n\r\n", 18, NULL, NULL);
    run_until(door->reasons->len > 0);
    assert_berth_error((GError *)g_ptr_array_index(door->reasons, 0), BERTH_ERROR_PROTOCOL,
                       "127.0.0.1:");
}

/* With its hello, without it, and in its midst. */
static void client_that_has_hung_up_is_not_worth_a_handshake(void **state)
{
    Door *door = *state;
    rpc_net_say_hello(enter(door, "127.0.0.1"));
    enter(door, "127.0.0.1");
    g_socket_send(enter(door, "127.0.0.1"), (const char *)rpc_net_hello, 6, NULL, NULL);
    for (guint i = 0; i < door->clients->len; i++)
        g_socket_close(g_ptr_array_index(door->clients, i), NULL);
    run_until(door->reasons->len == 3);
    for (guint i = 0; i < 3; i++)
        assert_berth_error((GError *)g_ptr_array_index(door->reasons, i), BERTH_ERROR_UNAVAILABLE,
                           "it has hung up");
}

/* --- who makes way ------------------------------------------------------------------------------- */

static void stuck_ones_of_the_own_address_make_way(void **state)
{
    Door *door = *state;
    for (guint i = 0; i < 40; i++)
        enter_stuck(door, "127.0.0.1");
    assert_honest_gets_in(door, "127.0.0.1");
    assert_non_null(find_reason(door, "dropped a connection from 127.0.0.1 that"));
}

static void stuck_ones_of_many_addresses_make_way(void **state)
{
    Door *door = *state;
    fill(door, 60);
    assert_honest_gets_in(door, "127.0.0.1");
    assert_non_null(find_reason(door, "dropped a connection from 127.9.0."));
}

static void stuck_ones_stay_while_nobody_waits(void **state)
{
    Door *door = *state;
    GSocket *stuck = enter_stuck(door, "127.0.0.1");
    run_until(rpc_net_has_heard(stuck));
    for (guint i = 0; i < 20; i++)
        assert_honest_gets_in(door, "127.0.0.2");
    assert_int_equal(door->reasons->len, 0);
}

/* As there are so few descriptors at first, no more than N_SMALL may wait. */
static void open_small_door(Door *door)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit few = {.rlim_cur = 4 * N_SMALL, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    open_door(door, 600000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void full_of_those_who_are_ready_has_room_again(void **state)
{
    Door *door = *state;
    open_small_door(door);
    assert_false(berth_rpc_handshakes_is_full(door->handshakes));
    for (guint i = 0; i < 2000 && !berth_rpc_handshakes_is_full(door->handshakes); i++) {
        g_autofree char *from = g_strdup_printf("127.9.%u.%u", i / 250, i % 250 + 1);
        enter_stuck(door, from);
    }
    assert_true(berth_rpc_handshakes_is_full(door->handshakes));
    guint rooms = door->rooms;
    run_until(door->rooms > rooms);
    assert_false(berth_rpc_handshakes_is_full(door->handshakes));
}

static void silent_ones_make_room_at_once(void **state)
{
    Door *door = *state;
    open_small_door(door);
    for (guint i = 0; i < N_SMALL + 10; i++) {
        g_autofree char *from = g_strdup_printf("127.9.0.%u", i + 1);
        enter(door, from);
        assert_false(berth_rpc_handshakes_is_full(door->handshakes));
        assert_int_equal(door->reasons->len, i < N_SMALL ? 0 : i + 1 - N_SMALL);
    }
    assert_non_null(find_reason(door, "127.9.0.1 that"));
}

/* --- time and descriptors ------------------------------------------------------------------------ */

static gboolean say_hello_later(gpointer client)
{
    rpc_net_say_hello(client);
    return G_SOURCE_REMOVE;
}

/* However much of it was left when it began. */
static void handshake_that_takes_too_long_names_the_limit(void **state)
{
    Door *door = *state;
    open_door(door, 400);
    g_timeout_add(50, say_hello_later, enter(door, "127.0.0.1"));
    enter(door, "127.0.0.2");
    run_until(door->reasons->len == 2);
    for (guint i = 0; i < 2; i++)
        assert_berth_error((GError *)g_ptr_array_index(door->reasons, i),
                           BERTH_ERROR_DEADLINE_EXCEEDED,
                           "did not complete the TLS handshake within 400 ms");
}

/* GLib would abort. */
static void handshake_without_descriptors_gets_no_turn(void **state)
{
    Door *door = *state;
    struct rlimit limit;
    open_door(door, 1000);
    GSocket *client = enter(door, "127.0.0.1");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = berth_descriptors_max() - berth_descriptors_left(),
                                .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rpc_net_say_hello(client);
    run_until(door->reasons->len == 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_berth_error((GError *)g_ptr_array_index(door->reasons, 0),
                       BERTH_ERROR_RESOURCE_EXHAUSTED, "got no turn within 1000 ms");
    open_door(door, 600000);
    assert_honest_gets_in(door, "127.0.0.1");
}

/* --- the end ------------------------------------------------------------------------------------- */

/* Silent, ready and under way. */
static void freed_hangs_up_on_all(void **state)
{
    Door *door = *state;
    GSocket *silent = enter(door, "127.0.0.1");
    fill(door, LANE + 4);
    GSocket *shaking = g_ptr_array_index(door->clients, 1);
    run_until(rpc_net_has_heard(shaking));
    g_clear_pointer(&door->handshakes, berth_rpc_handshakes_free);
    for (guint i = 0; i < door->clients->len; i++) {
        char bytes[4096];
        gssize got = 1;
        GSocket *client = g_ptr_array_index(door->clients, i);
        while (got > 0) {
            run_until(rpc_net_has_heard(client));
            got = g_socket_receive(client, bytes, sizeof bytes, NULL, NULL);
        }
    }
    assert_true(rpc_net_has_heard(silent));
    assert_int_equal(door->reasons->len, 0);
}

/* It has ended, and the loop has not come to that. */
static void freed_after_the_end_of_a_handshake_is_quiet(void **state)
{
    Door *door = *state;
    Honest *honest = honest_new(door, "127.0.0.1", FALSE);
    run_until(g_atomic_int_get(&honest->has_heard));
    honest_join(honest);
    while (!g_main_context_pending(NULL))
        g_usleep(1000);
    g_clear_pointer(&door->handshakes, berth_rpc_handshakes_free);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    assert_int_equal(door->completed, 0);
    assert_int_equal(door->reasons->len, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hello_in_pieces_is_answered),
        TEST(part_of_a_record_does_not_begin_a_handshake),
        TEST(other_protocol_is_refused),
        TEST(client_that_has_hung_up_is_not_worth_a_handshake),
        TEST(stuck_ones_of_the_own_address_make_way),
        TEST(stuck_ones_of_many_addresses_make_way),
        TEST(stuck_ones_stay_while_nobody_waits),
        TEST(full_of_those_who_are_ready_has_room_again),
        TEST(silent_ones_make_room_at_once),
        TEST(handshake_that_takes_too_long_names_the_limit),
        TEST(handshake_without_descriptors_gets_no_turn),
        TEST(freed_hangs_up_on_all),
        TEST(freed_after_the_end_of_a_handshake_is_quiet),
    };
    return cmocka_run_group_tests(tests, rpc_net_group_setup, rpc_net_group_teardown);
}
