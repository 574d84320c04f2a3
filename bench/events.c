/* SPDX-License-Identifier: Apache-2.0 */
/* events JOB: prints the events of a job from the scheduler's log as JSON, one a line, until its
 * guest was released. */
#include "common/json.h"
#include "common/rpc.h"
#include "proto/berth.pb-c.h"

#include <stdio.h>

#define DEADLINE_MSEC 60000

static gboolean print_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    g_autofree char *text = berth_json_print_message(item, BERTH_JSON_OMIT_DEFAULTS);
    puts(text);
    return event->kind != BERTH__EVENT__KIND__GUEST_RELEASED;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    const char *path = g_getenv("BERTH_SOCKET");
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    if (argc != 2 ||
        !g_ascii_string_to_unsigned(argv[1], 10, 1, G_MAXUINT64, &request.job, &error)) {
        fprintf(stderr, "usage: events JOB\n");
        return 2;
    }
    g_autoptr(BerthRpcPeer) peer =
        berth_rpc_connect_unix(path ? path : BERTH_RUNDIR "/berthd.sock", NULL, &error);
    if (peer == NULL ||
        !berth_rpc_peer_stream(peer, &berth__jobs__descriptor, "Watch", &request.base,
                               DEADLINE_MSEC, print_event, NULL, &error)) {
        fprintf(stderr, "events: %s\n", error->message);
        return 1;
    }
    return 0;
}
