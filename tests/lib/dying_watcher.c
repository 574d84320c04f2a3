/* SPDX-License-Identifier: Apache-2.0 */
/* A client of Ceph that watches an RBD image, to be killed then:
 *     dying_watcher CEPH_CONF KEYRING POOL IMAGE
 * says "ready" when it does. Ceph is told to wait for it for a day, so that its watch stays like that
 * of a client which was killed while storage stood still (tracker.ceph.com issue 58120).
 *     dying_watcher CEPH_CONF KEYRING POOL IMAGE unanswered
 * says "ready" when it is about to, watches when a line has come, says "ready" once more, and waits for no answer. */
#include <glib.h>
#include <rados/librados.h>
#include <rbd/librbd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DAY_SEC (24u * 60 * 60)

static void check(const char *what, int result)
{
    if (result >= 0)
        return;
    g_printerr("dying_watcher: %s: %s\n", what, g_strerror(-result));
    exit(EXIT_FAILURE);
}

static void ignore_notify(void *data, uint64_t notify_id, uint64_t handle, uint64_t notifier_id,
                          void *content, size_t length)
{
}

static void say_ready(void)
{
    puts("ready");
    fflush(stdout);
}

/* What is asked for is on its way some moments later; that it is, nobody is told. */
static void ask_to_watch(rados_ioctx_t io, const char *header, uint64_t *cookie)
{
    rados_completion_t asked = NULL;
    say_ready();
    getchar();
    check("completion", rados_aio_create_completion2(NULL, NULL, &asked));
    check("watch", rados_aio_watch2(io, header, asked, cookie, ignore_notify, NULL, 0, NULL));
    g_usleep(G_USEC_PER_SEC / 5);
}

int main(int argc, char **argv)
{
    rados_t cluster = NULL;
    rados_ioctx_t io = NULL;
    rbd_image_t image = NULL;
    uint64_t cookie = 0;
    char id[64];
    if (argc != 5 && argc != 6)
        return EXIT_FAILURE;
    check("create", rados_create2(&cluster, "ceph", "client.berth", 0));
    check("conf", rados_conf_read_file(cluster, argv[1]));
    check("keyring", rados_conf_set(cluster, "keyring", argv[2]));
    check("connect", rados_connect(cluster));
    check("pool", rados_ioctx_create(cluster, argv[3], &io));
    check("open", rbd_open_read_only(io, argv[4], &image, NULL));
    check("id", rbd_get_id(image, id, sizeof id));
    rbd_close(image);
    g_autofree char *header = g_strconcat("rbd_header.", id, NULL);
    if (argc == 6)
        ask_to_watch(io, header, &cookie);
    else
        check("watch", rados_watch3(io, header, &cookie, ignore_notify, NULL, DAY_SEC, NULL));
    say_ready();
    pause();
    return EXIT_SUCCESS;
}
