/* SPDX-License-Identifier: Apache-2.0 */
/* crowd SOCKET KIND USERS CONNECTIONS: the clients that bench/hostile sets on berthd, as so many users (from uid FIRST_UID on), each with
 * so many connections. KIND:
 *
 *   idle    say HELLO, and nothing more
 *   slow    ask for all events since the beginning, and take none
 *   half    send half of a frame, again and again
 *   flood   submit, DEPTH at a time, as fast as it is acknowledged
 *
 * Says "ready" when all are connected, and ends with its standard input. Then says how many submissions were acknowledged, how many were
 * not, and how often a connection was ended by the other side. Has to be root. */
#include "config.h"

#include "bench/plain_job.h"
#include "common/rpc.h"
#include "common/rpc_frame.h"
#include "proto/berth.pb-c.h"

#include <errno.h>
#include <glib-unix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_UID  20000u
#define DEPTH      16u
#define HALF_BYTES 6 /* of a frame: its length, and the beginning of what it has */
#define FILES_MAX  16384u

typedef enum { IDLE, SLOW, HALF, FLOOD } Kind;

typedef struct {
    Kind kind;
    guint uid;
} Client;

static const char *const kind_names[] = {"idle", "slow", "half", "flood"};

static struct {
    const char *path;
    GMainLoop *loop;
    Client *clients; /* for as long as the process */
    guint64 acknowledged, refused, ended;
} crowd;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "crowd: %s: %s\n", what, why);
    exit(1);
}

/* Who connects is who the process is at that moment. */
static void become(guint uid)
{
    if (seteuid(0) != 0 || (uid != 0 && seteuid(uid) != 0))
        die("cannot change who it is", g_strerror(errno));
}

/* --- those that speak no more than they must --------------------------------------------------- */

static GBytes *hello_frame(void)
{
    Berth__Hello hello = BERTH__HELLO__INIT;
    Berth__Frame frame = BERTH__FRAME__INIT;
    hello.protocol = BERTH_RPC_PROTOCOL;
    hello.protocol_min = BERTH_RPC_PROTOCOL_MIN;
    hello.version = (char *)"crowd";
    frame.kind = BERTH__FRAME__KIND__HELLO;
    frame.hello = &hello;
    return berth_rpc_frame_encode(&frame);
}

static GBytes *watch_frame(void)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    Berth__Frame frame = BERTH__FRAME__INIT;
    guint8 packed[64];
    frame.kind = BERTH__FRAME__KIND__REQUEST;
    frame.call_id = 1;
    frame.method = (char *)"Jobs.Watch";
    frame.payload.len = protobuf_c_message_pack(&request.base, packed);
    frame.payload.data = packed;
    return berth_rpc_frame_encode(&frame);
}

static void say(int fd, GBytes *bytes, gsize length)
{
    const char *data = g_bytes_get_data(bytes, NULL);
    ssize_t written = write(fd, data, MIN(length, g_bytes_get_size(bytes)));
    if (written < 0 && errno != EPIPE && errno != ECONNRESET)
        die("cannot write", g_strerror(errno));
    g_bytes_unref(bytes);
}

static int connect_as(guint uid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, crowd.path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    become(uid);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die(crowd.path, g_strerror(errno));
    become(0);
    say(fd, hello_frame(), SIZE_MAX);
    return fd;
}

static gboolean on_ended(gint fd, GIOCondition condition, gpointer data);

static void begin(Client *client)
{
    int fd = connect_as(client->uid);
    if (client->kind == SLOW)
        say(fd, watch_frame(), SIZE_MAX);
    if (client->kind == HALF)
        say(fd, watch_frame(), HALF_BYTES);
    g_unix_fd_add(fd, G_IO_HUP | G_IO_ERR, on_ended, client);
}

static gboolean on_ended(gint fd, GIOCondition condition, gpointer data)
{
    crowd.ended++;
    close(fd);
    begin(data);
    return G_SOURCE_REMOVE;
}

/* --- those that submit ------------------------------------------------------------------------ */

static void submit(BerthRpcPeer *peer);

static void on_answer(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call_finish(result, &error);
    if (reply != NULL)
        crowd.acknowledged++;
    else
        crowd.refused++;
    protobuf_c_message_free_unpacked(reply, NULL);
    if (!berth_rpc_peer_is_closed(data))
        submit(data);
}

static void submit(BerthRpcPeer *peer)
{
    berth_rpc_peer_call_async(peer, &berth__jobs__descriptor, "Submit", &plain_job_request()->base,
                              0, NULL, on_answer, peer);
}

static void on_flooder_ended(BerthRpcPeer *peer, const GError *reason, gpointer data)
{
    fprintf(stderr, "crowd: %s\n", reason->message);
    crowd.ended++;
}

static BerthRpcPeer *flooder(guint uid)
{
    g_autoptr(GError) error = NULL;
    become(uid);
    BerthRpcPeer *peer = berth_rpc_connect_unix(crowd.path, NULL, &error);
    become(0);
    if (peer == NULL)
        die(crowd.path, error->message);
    berth_rpc_peer_set_closed_func(peer, on_flooder_ended, NULL);
    return peer;
}

/* --- all of them ------------------------------------------------------------------------------ */

static gboolean on_input(gint fd, GIOCondition condition, gpointer data)
{
    g_main_loop_quit(crowd.loop);
    return G_SOURCE_REMOVE;
}

static Kind kind_of(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(kind_names); i++)
        if (g_str_equal(kind_names[i], name))
            return (Kind)i;
    die(name, "no such kind of clients");
    return IDLE;
}

static void begin_all(Kind kind, guint users, guint connections, GPtrArray *flooders)
{
    crowd.clients = g_new(Client, users * connections);
    for (guint i = 0; i < users * connections; i++) {
        crowd.clients[i] = (Client){kind, FIRST_UID + i % users};
        if (kind == FLOOD)
            g_ptr_array_add(flooders, flooder(crowd.clients[i].uid));
        else
            begin(&crowd.clients[i]);
    }
    for (guint i = 0; i < flooders->len; i++)
        for (guint depth = 0; depth < DEPTH; depth++)
            submit(g_ptr_array_index(flooders, i));
}

int main(int argc, char **argv)
{
    g_autoptr(GPtrArray) flooders = g_ptr_array_new();
    const struct rlimit files = {FILES_MAX, FILES_MAX};
    guint users = argc == 5 ? (guint)strtoul(argv[3], NULL, 10) : 0;
    guint connections = argc == 5 ? (guint)strtoul(argv[4], NULL, 10) : 0;
    if (users == 0 || connections == 0 || users > FILES_MAX / connections) {
        fprintf(stderr, "usage: crowd SOCKET idle|slow|half|flood USERS CONNECTIONS\n");
        return 2;
    }
    (void)setrlimit(RLIMIT_NOFILE, &files);
    crowd.path = argv[1];
    crowd.loop = g_main_loop_new(NULL, FALSE);
    plain_job_set_script("#!/bin/sh\ntrue\n");
    begin_all(kind_of(argv[2]), users, connections, flooders);
    g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP, on_input, NULL);
    puts("ready");
    (void)fflush(stdout);
    g_main_loop_run(crowd.loop);
    printf("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n",
           crowd.acknowledged, crowd.refused, crowd.ended);
    return 0;
}
