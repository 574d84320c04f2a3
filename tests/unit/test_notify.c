/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/notify.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct {
    int fd; /* the manager's end */
    char *dir;
    char *path;
} Manager;

static int setup(void **state)
{
    Manager *manager = g_new0(Manager, 1);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    manager->dir = g_dir_make_tmp("berth-notify-XXXXXX", NULL);
    manager->path = g_build_filename(manager->dir, "sock", NULL);
    g_strlcpy(address.sun_path, manager->path, sizeof(address.sun_path));
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(manager->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        return -1;
    g_setenv("NOTIFY_SOCKET", manager->path, TRUE);
    *state = manager;
    return 0;
}

static int teardown(void **state)
{
    Manager *manager = *state;
    g_unsetenv("NOTIFY_SOCKET");
    g_unsetenv("WATCHDOG_USEC");
    g_unsetenv("WATCHDOG_PID");
    close(manager->fd);
    g_unlink(manager->path);
    g_rmdir(manager->dir);
    g_free(manager->path);
    g_free(manager->dir);
    g_free(manager);
    return 0;
}

static void assert_got(Manager *manager, const char *expected)
{
    char text[256] = "";
    gssize bytes = recv(manager->fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    assert_int_equal(bytes, strlen(expected));
    assert_string_equal(text, expected);
}

static void states_reach_the_manager(void **state)
{
    berth_notify_ready();
    assert_got(*state, "READY=1");
    berth_notify_stopping();
    assert_got(*state, "STOPPING=1");
    berth_notify_status("%d nodes\nREADY=0", 3);
    assert_got(*state, "STATUS=3 nodes READY=0"); /* one line: no second assignment */
}

static void abstract_sockets_are_reached(void **state)
{
    g_autofree char *name = g_strdup_printf("berth-test-%d", (int)getpid());
    g_autofree char *path = g_strconcat("@", name, NULL);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
                     0);
    g_setenv("NOTIFY_SOCKET", path, TRUE);
    Manager abstract = {.fd = fd};
    g_autoptr(GError) error = NULL;
    assert_true(berth_notify_send("READY=1", &error));
    assert_got(&abstract, "READY=1");
    close(fd);
}

static void without_a_manager_nothing_happens(void **state)
{
    g_autoptr(GError) error = NULL;
    g_unsetenv("NOTIFY_SOCKET");
    assert_false(berth_notify_send("READY=1", &error));
    assert_no_error(error);
    berth_notify_ready();
}

static void bad_addresses_are_errors(void **state)
{
    g_autofree char *long_path = g_strnfill(200, '/');
    const char *const bad[] = {"", "@", "relative", long_path};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_setenv("NOTIFY_SOCKET", bad[i], TRUE);
        assert_false(berth_notify_send("READY=1", &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "is not a socket address");
    }
    g_autoptr(GError) error = NULL;
    g_setenv("NOTIFY_SOCKET", "/nonexistent/sock", TRUE);
    assert_false(berth_notify_send("READY=1", &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "/nonexistent/sock");
}

static void watchdog_interval_is_for_this_process_only(void **state)
{
    g_autofree char *pid = g_strdup_printf("%d", (int)getpid());
    assert_int_equal(berth_notify_watchdog_usec(), 0);
    g_setenv("WATCHDOG_USEC", "20000000", TRUE);
    assert_int_equal(berth_notify_watchdog_usec(), 20000000);
    g_setenv("WATCHDOG_PID", pid, TRUE);
    assert_int_equal(berth_notify_watchdog_usec(), 20000000);
    g_setenv("WATCHDOG_PID", "1", TRUE);
    assert_int_equal(berth_notify_watchdog_usec(), 0);
    g_unsetenv("WATCHDOG_PID");
    g_setenv("WATCHDOG_USEC", "soon", TRUE);
    assert_int_equal(berth_notify_watchdog_usec(), 0);
}

static void watchdog_sends_signs_of_life_from_the_loop(void **state)
{
    Manager *manager = *state;
    assert_null(berth_notify_watchdog_start(NULL));
    g_setenv("WATCHDOG_USEC", "10000", TRUE);
    GSource *watchdog = berth_notify_watchdog_start(NULL);
    assert_non_null(watchdog);
    char text[64];
    for (int i = 0; i < 3; i++) {
        gssize bytes;
        run_until((bytes = recv(manager->fd, text, sizeof(text), MSG_DONTWAIT)) >= 0 ||
                  errno != EAGAIN);
        assert_int_equal(bytes, strlen("WATCHDOG=1"));
        assert_memory_equal(text, "WATCHDOG=1", strlen("WATCHDOG=1"));
    }
    g_source_destroy(watchdog);
    g_source_unref(watchdog);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(states_reach_the_manager),
        TEST(abstract_sockets_are_reached),
        TEST(without_a_manager_nothing_happens),
        TEST(bad_addresses_are_errors),
        TEST(watchdog_interval_is_for_this_process_only),
        TEST(watchdog_sends_signs_of_life_from_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
