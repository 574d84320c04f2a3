/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to a guest's channel where the socket, or the host, does not take it at once. */
#include <config.h>

#include "nodeagent/guest_link.h"
#include "tests/lib/assert.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);

static guint failures; /* so many calls more fail ... */
static int failure;    /* ... with this */

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
    if (failures == 0)
        return __real_send(fd, bytes, length, flags);
    failures--;
    errno = failure;
    return -1;
}

typedef struct {
    BerthGuestLink *link;
    int guest; /* the other end */
    guint drained, closed;
    gsize taken; /* by the guest */
} Fixture;

static void on_message(const Berth__FromGuest *message, gsize bytes, gpointer data)
{
    fail_msg("a message from nobody");
}

static void on_noise(gsize bytes, gpointer data)
{
    fail_msg("noise from nobody");
}

static void on_drained(gpointer data)
{
    ((Fixture *)data)->drained++;
    errno = EAGAIN; /* whatever a callback does */
}

static void on_closed(gpointer data)
{
    ((Fixture *)data)->closed++;
}

static int setup(void **state)
{
    static const BerthGuestLinkFuncs funcs = {on_message, on_noise, on_drained, on_closed};
    Fixture *fixture = g_new0(Fixture, 1);
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    fixture->guest = fds[1];
    fixture->link = berth_guest_link_new(fds[0], &funcs, fixture);
    failures = 0;
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    berth_guest_link_free(fixture->link);
    if (fixture->guest >= 0)
        close(fixture->guest);
    g_free(fixture);
    return 0;
}

/* The guest reads what there is. */
static gboolean take(Fixture *fixture)
{
    char bytes[64 * 1024];
    ssize_t got;
    while ((got = recv(fixture->guest, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        fixture->taken += (gsize)got;
    return TRUE;
}

static void fail_with(int err, guint n)
{
    failure = err;
    failures = n;
}

static const int passing[] = {ENOBUFS, ENOMEM};

static void write_that_fails_for_want_of_memory_is_tried_again(void **state)
{
    Fixture *fixture = *state;
    for (guint i = 0; i < G_N_ELEMENTS(passing); i++) {
        fail_with(passing[i], 2);
        berth_guest_link_send_padding(fixture->link, 1000);
        assert_int_equal(berth_guest_link_queued(fixture->link), 1000);
        run_until(fixture->drained == i + 1);
        assert_int_equal(failures, 0);
        assert_int_equal(berth_guest_link_queued(fixture->link), 0);
        take(fixture);
        assert_int_equal(fixture->taken, 1000 * (i + 1));
    }
}

/* Also where the socket was full before. */
static void write_that_fails_when_the_socket_has_room_is_tried_again(void **state)
{
    const gsize bytes = 4u << 20;
    Fixture *fixture = *state;
    for (guint i = 0; i < G_N_ELEMENTS(passing); i++) {
        berth_guest_link_send_padding(fixture->link, bytes);
        assert_in_range(berth_guest_link_queued(fixture->link), 1, bytes - 1);
        fail_with(passing[i], 1);
        run_until(take(fixture) && fixture->drained == i + 1);
        assert_int_equal(failures, 0);
        take(fixture);
        assert_int_equal(fixture->taken, bytes * (i + 1));
    }
}

static void write_to_a_guest_that_is_gone_is_left_to_reading(void **state)
{
    Fixture *fixture = *state;
    close(fixture->guest);
    fixture->guest = -1;
    berth_guest_link_send_padding(fixture->link, 1000);
    assert_int_equal(berth_guest_link_queued(fixture->link), 1000);
    run_until(fixture->closed == 1);
    assert_int_equal(fixture->drained, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(write_that_fails_for_want_of_memory_is_tried_again),
        TEST(write_that_fails_when_the_socket_has_room_is_tried_again),
        TEST(write_to_a_guest_that_is_gone_is_left_to_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
