/* SPDX-License-Identifier: Apache-2.0 */
/* crowd SOCKET KIND USERS CONNECTIONS: the clients that bench/hostile sets on berthd, as so many users (from uid FIRST_UID on), each with
 * so many connections. KIND:
 *
 *   idle    say HELLO, and nothing more
 *   slow    ask for all events since the beginning, and take none
 *   half    send half of a frame, again and again
 *   flood   submit, as berth does, DEPTH at a time, as fast as it is acknowledged
 *   list    ask for all jobs of all users, again and again, as fast as it is answered
 *   watch   read all events since the beginning, as fast as they come, and those that happen
 *
 * Says "ready" when all are connected, and ends with its standard input. Then says how much was answered (submissions, pages of lists,
 * events), how many requests were refused, and how often a connection was ended by the other side. Has to be root. */
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

typedef enum { IDLE, SLOW, HALF, FLOOD, LIST, WATCH } Kind;

typedef struct {
    Kind kind;
    guint uid;
} Client;

typedef struct {
    Kind kind;
    BerthRpcPeer *peer;
    guint64 after; /* the last job of the page before, 0 = all over again; or the last event */
} Asker;

static const char *const kind_names[] = {"idle", "slow", "half", "flood", "list", "watch"};

static struct {
    const char *path;
    GMainLoop *loop;
    Client *clients; /* these two for as long as the process */
    Asker *askers;
    guint64 answered, refused, ended;
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

/* --- those that ask as fast as they are answered ------------------------------------------------ */

static void ask(Asker *asker);

static void count_answer(Asker *asker, gboolean is_answered)
{
    if (is_answered)
        crowd.answered++;
    else
        crowd.refused++;
    if (!berth_rpc_peer_is_closed(asker->peer))
        ask(asker);
}

static void on_submitted(GObject *source, GAsyncResult *result, gpointer data)
{
    ProtobufCMessage *reply = berth_rpc_peer_call_finish(result, NULL);
    gboolean is_answered = reply != NULL;
    protobuf_c_message_free_unpacked(reply, NULL);
    count_answer(data, is_answered);
}

static void on_page(GObject *source, GAsyncResult *result, gpointer data)
{
    Asker *asker = data;
    Berth__ListJobsReply *page =
        (Berth__ListJobsReply *)(void *)berth_rpc_peer_call_finish(result, NULL);
    gboolean is_answered = page != NULL;
    asker->after = is_answered ? page->next_after_job : 0;
    berth__list_jobs_reply__free_unpacked(page, NULL);
    count_answer(asker, is_answered);
}

static gboolean on_event(const ProtobufCMessage *item, gpointer data)
{
    Asker *asker = data;
    asker->after = ((const Berth__Event *)(const void *)item)->seq;
    crowd.answered++;
    return TRUE;
}

/* It ends only where berthd does not go on with it. */
static void on_watched(GObject *source, GAsyncResult *result, gpointer data)
{
    (void)berth_rpc_peer_stream_finish(result, NULL);
    count_answer(data, FALSE);
}

static void ask(Asker *asker)
{
    Berth__ListJobsRequest list = BERTH__LIST_JOBS_REQUEST__INIT;
    Berth__WatchRequest watch = BERTH__WATCH_REQUEST__INIT;
    switch (asker->kind) {
    case LIST:
        list.after_job = asker->after;
        list.all_states = list.all_users = TRUE;
        berth_rpc_peer_call_async(asker->peer, &berth__jobs__descriptor, "List", &list.base, 0,
                                  NULL, on_page, asker);
        break;
    case WATCH:
        watch.after_seq = asker->after;
        berth_rpc_peer_stream_async(asker->peer, &berth__jobs__descriptor, "Watch", &watch.base, 0,
                                    NULL, on_event, on_watched, asker);
        break;
    default:
        berth_rpc_peer_call_async(asker->peer, &berth__jobs__descriptor, "Submit",
                                  &plain_job_request_with_key()->base, 0, NULL, on_submitted,
                                  asker);
        break;
    }
}

static void on_asker_ended(BerthRpcPeer *peer, const GError *reason, gpointer data)
{
    fprintf(stderr, "crowd: %s\n", reason->message);
    crowd.ended++;
}

/* Asks nothing yet. */
static void connect_asker(Asker *asker, Kind kind, guint uid)
{
    g_autoptr(GError) error = NULL;
    become(uid);
    *asker = (Asker){kind, berth_rpc_connect_unix(crowd.path, NULL, &error), 0};
    become(0);
    if (asker->peer == NULL)
        die(crowd.path, error->message);
    berth_rpc_peer_set_closed_func(asker->peer, on_asker_ended, NULL);
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

static void begin_all(Kind kind, guint users, guint connections)
{
    guint n = users * connections;
    crowd.clients = g_new(Client, n);
    for (guint i = 0; i < n; i++) {
        crowd.clients[i] = (Client){kind, FIRST_UID + i % users};
        begin(&crowd.clients[i]);
    }
}

/* None asks before all have come. */
static void begin_all_askers(Kind kind, guint users, guint connections)
{
    guint n = users * connections;
    crowd.askers = g_new(Asker, n);
    for (guint i = 0; i < n; i++)
        connect_asker(&crowd.askers[i], kind, FIRST_UID + i % users);
    for (guint i = 0; i < n; i++)
        for (guint depth = 0; depth < (kind == FLOOD ? DEPTH : 1); depth++)
            ask(&crowd.askers[i]);
}

int main(int argc, char **argv)
{
    const struct rlimit files = {FILES_MAX, FILES_MAX};
    guint users = argc == 5 ? (guint)strtoul(argv[3], NULL, 10) : 0;
    guint connections = argc == 5 ? (guint)strtoul(argv[4], NULL, 10) : 0;
    if (users == 0 || connections == 0 || users > FILES_MAX / connections) {
        fprintf(stderr, "usage: crowd SOCKET idle|slow|half|flood|list|watch USERS CONNECTIONS\n");
        return 2;
    }
    (void)setrlimit(RLIMIT_NOFILE, &files);
    crowd.path = argv[1];
    crowd.loop = g_main_loop_new(NULL, FALSE);
    plain_job_set_script("#!/bin/sh\ntrue\n");
    Kind kind = kind_of(argv[2]);
    (kind >= FLOOD ? begin_all_askers : begin_all)(kind, users, connections);
    g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP, on_input, NULL);
    puts("ready");
    (void)fflush(stdout);
    g_main_loop_run(crowd.loop);
    printf("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n", crowd.answered,
           crowd.refused, crowd.ended);
    return 0;
}
