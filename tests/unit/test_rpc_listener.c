/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: listening, taking over from the dead, connecting. */
#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

#include "common/descriptors.h"
#include "common/message.h"

#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
    RpcFixture *server;
    char *dir;
    char *path;
    BerthRpcListener *listener;
    GPtrArray *accepted;
    guint closed;
    GError *rejected;
} House;

static void on_closed(BerthRpcPeer *peer, const GError *reason, gpointer data)
{
    House *house = data;
    house->closed++;
    g_ptr_array_remove(house->accepted, peer);
}

static void on_accept(BerthRpcPeer *peer, gpointer data)
{
    House *house = data;
    g_ptr_array_add(house->accepted, peer);
    berth_rpc_peer_set_closed_func(peer, on_closed, house);
}

static BerthRpcListener *listen_at(House *house, const char *path, GError **error)
{
    return berth_rpc_listener_new_unix(path, 0600, house->server->services, NULL, on_accept, NULL,
                                       house, error);
}

static int setup(void **state)
{
    House *house = g_new0(House, 1);
    house->server = rpc_fixture_new();
    house->dir = g_dir_make_tmp("berth-listener-XXXXXX", NULL);
    house->path = g_build_filename(house->dir, "sock", NULL);
    house->accepted = g_ptr_array_new_with_free_func((GDestroyNotify)berth_rpc_peer_unref);
    *state = house;
    return 0;
}

static int teardown(void **state)
{
    House *house = *state;
    g_autofree char *lock = g_strconcat(house->path, ".lock", NULL);
    berth_rpc_listener_free(house->listener);
    g_ptr_array_unref(house->accepted);
    rpc_fixture_free(house->server);
    g_clear_error(&house->rejected);
    g_unlink(house->path);
    g_unlink(lock);
    g_rmdir(house->dir);
    g_free(house->path);
    g_free(house->dir);
    g_free(house);
    return 0;
}

static void connect_and_call_is_answered(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    struct stat status;
    house->listener = listen_at(house, house->path, &error);
    assert_no_error(error);
    assert_int_equal(stat(house->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(berth_rpc_listener_port(house->listener), 0);
    g_autoptr(BerthRpcPeer) client = berth_rpc_connect_unix(house->path, NULL, &error);
    assert_no_error(error);
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = 9;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(client, &berth__jobs__descriptor, "Get", &request.base, 60000, &error);
    assert_no_error(error);
    assert_int_equal(((Berth__Job *)reply)->id, 9);
    berth_rpc_peer_close(client, FALSE);
    run_until(house->closed == 1);
}

static void connect_many_clients_all_are_served(void **state)
{
    enum { N = 200 };
    House *house = *state;
    BerthRpcPeer *clients[N];
    house->listener = listen_at(house, house->path, NULL);
    for (guint i = 0; i < N; i++) {
        g_autoptr(GError) error = NULL;
        clients[i] = berth_rpc_connect_unix(house->path, NULL, &error);
        assert_no_error(error);
    }
    for (guint i = 0; i < N; i++) {
        Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
        request.job = i + 1;
        g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call(
            clients[i], &berth__jobs__descriptor, "Get", &request.base, 60000, NULL);
        assert_int_equal(((Berth__Job *)reply)->id, i + 1);
        berth_rpc_peer_unref(clients[i]);
    }
    run_until(house->closed == N);
}

static void listen_twice_is_refused(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    house->listener = listen_at(house, house->path, NULL);
    assert_null(listen_at(house, house->path, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "another process listens there");
    g_autoptr(BerthRpcPeer) client = berth_rpc_connect_unix(house->path, NULL, NULL);
    assert_non_null(client); /* the first one still serves */
}

/* What a process leaves behind that was killed: a socket file, and nobody behind it. */
static int bind_raw(const char *path, gboolean and_listen)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    if (and_listen)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void listen_replaces_a_dead_socket(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    close(bind_raw(house->path, TRUE));
    house->listener = listen_at(house, house->path, &error);
    assert_no_error(error);
    g_autoptr(BerthRpcPeer) client = berth_rpc_connect_unix(house->path, NULL, &error);
    assert_no_error(error);
}

static void listen_does_not_replace_a_foreign_server(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    int fd = bind_raw(house->path, TRUE);
    assert_null(listen_at(house, house->path, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "another process listens there");
    close(fd);
}

static void listen_does_not_replace_a_file(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    assert_true(g_file_set_contents(house->path, "precious", -1, NULL));
    assert_null(listen_at(house, house->path, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "is not a socket");
    assert_true(g_file_test(house->path, G_FILE_TEST_IS_REGULAR));
}

static void listen_at_bad_paths_is_refused(void **state)
{
    House *house = *state;
    g_autofree char *missing = g_build_filename(house->dir, "none", "sock", NULL);
    g_autofree char *padding = g_strnfill(120, 'x');
    g_autofree char *longest = g_build_filename(house->dir, padding, NULL);
    g_autoptr(GError) error = NULL;
    assert_null(listen_at(house, missing, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "cannot open");
    g_clear_error(&error);
    assert_null(listen_at(house, longest, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "at most 107 bytes");
    g_clear_error(&error);
    assert_null(berth_rpc_connect_unix(longest, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "at most 107 bytes");
}

static void listener_freed_leaves_no_socket_and_its_peers_live_on(void **state)
{
    House *house = *state;
    house->listener = listen_at(house, house->path, NULL);
    g_autoptr(BerthRpcPeer) client = berth_rpc_connect_unix(house->path, NULL, NULL);
    g_clear_pointer(&house->listener, berth_rpc_listener_free);
    assert_false(g_file_test(house->path, G_FILE_TEST_EXISTS));
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(client, &berth__jobs__descriptor, "Get", &request.base, 60000, NULL);
    assert_non_null(reply);
}

static void connect_where_nobody_listens_says_where(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    assert_null(berth_rpc_connect_unix(house->path, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "cannot connect to berthd at");
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, house->path);
}

static void connect_to_a_server_that_says_nothing_gives_up(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    int fd = bind_raw(house->path, TRUE);
    const BerthRpcLimits limits = {.hello_timeout_msec = 30};
    assert_null(berth_rpc_connect_unix(house->path, &limits, &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "cannot talk to berthd at");
    close(fd);
}

static void listen_on_bad_addresses_is_refused(void **state)
{
    static const char *const addresses[] = {"localhost", "", "1.2.3", "1.2.3.4.5"};
    House *house = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(addresses); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_rpc_listener_new_tls(addresses[i], 0, NULL, NULL, NULL, on_accept, NULL,
                                               house, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "neither an IP address nor");
    }
    g_autoptr(GError) error = NULL;
    assert_null(berth_rpc_listener_new_tls("192.0.2.1", 0, NULL, NULL, NULL, on_accept, NULL, house,
                                           &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "cannot listen on 192.0.2.1 port 0");
}

static void keep_reason(const GError *reason, gpointer data)
{
    House *house = data;
    g_clear_error(&house->rejected);
    house->rejected = g_error_copy(reason);
}

/* What is there needs those that are left. */
static void connection_waits_while_few_descriptors_are_left(void **state)
{
    House *house = *state;
    g_autoptr(GError) error = NULL;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    house->listener = berth_rpc_listener_new_unix(house->path, 0600, house->server->services, NULL,
                                                  on_accept, keep_reason, house, &error);
    assert_no_error(error);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(house->path);
    g_autoptr(GSocketConnection) connection =
        g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), NULL, &error);
    assert_no_error(error);
    const struct rlimit few = {.rlim_cur = berth_descriptors_max() - berth_descriptors_left() + 1,
                               .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    run_until(house->rejected != NULL || house->accepted->len > 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(house->accepted->len, 0);
    assert_berth_error(house->rejected, BERTH_ERROR_RESOURCE_EXHAUSTED, "few are left");
    run_until(house->accepted->len == 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connect_and_call_is_answered),
        TEST(connect_many_clients_all_are_served),
        TEST(listen_twice_is_refused),
        TEST(listen_replaces_a_dead_socket),
        TEST(listen_does_not_replace_a_foreign_server),
        TEST(listen_does_not_replace_a_file),
        TEST(listen_at_bad_paths_is_refused),
        TEST(listener_freed_leaves_no_socket_and_its_peers_live_on),
        TEST(connect_where_nobody_listens_says_where),
        TEST(connect_to_a_server_that_says_nothing_gives_up),
        TEST(listen_on_bad_addresses_is_refused),
        TEST(connection_waits_while_few_descriptors_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
