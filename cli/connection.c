/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the connection to berthd, and the patience with a daemon that is being restarted. */
#include "cli/cli.h"

#include "cli/labs.h"
#include "common/error.h"

#include <stdio.h>

/* Every unary call of the CLI is answered at once but for commits: a minute is far beyond. */
#define CALL_TIMEOUT_MSEC 60000
/* How long a daemon may be away (an upgrade, a failover) before a waiting client gives up; after how
 * long it says that it waits; and after how long a connection counts as one that holds. */
#define OUTAGE_MAX_SEC    300
#define OUTAGE_NOTICE_SEC 2
#define HELD_SEC          5

/* ERROR (transfer full), and what to do about a daemon that is not there. */
static GError *with_advice(GError *error, const char *socket)
{
    if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE))
        return error;
    g_autofree char *advice = berth_labs_advice(socket);
    g_autofree char *message = g_steal_pointer(&error->message);
    error->message = g_strconcat(message, advice, NULL);
    return error;
}

gboolean berth_cli_connect(BerthCli *cli, GError **error)
{
    if (cli->peer != NULL && !berth_rpc_peer_is_closed(cli->peer))
        return TRUE;
    g_autoptr(GError) local = NULL;
    BerthRpcPeer *peer = berth_rpc_connect_unix(cli->socket_path, NULL, &local);
    if (peer == NULL) {
        g_propagate_error(error, with_advice(g_steal_pointer(&local), cli->socket_path));
        return FALSE;
    }
    g_clear_pointer(&cli->peer, berth_rpc_peer_unref);
    cli->peer = peer;
    if (cli->connected_func != NULL)
        cli->connected_func(cli->connected_data);
    return TRUE;
}

ProtobufCMessage *berth_cli_call(BerthCli *cli, const ProtobufCServiceDescriptor *service,
                                 const char *method, const ProtobufCMessage *request,
                                 GError **error)
{
    if (cli->peer == NULL && !berth_cli_connect(cli, error))
        return NULL;
    return berth_rpc_peer_call(cli->peer, service, method, request, CALL_TIMEOUT_MSEC, error);
}

Berth__ServerInfo *berth_cli_server_info(BerthCli *cli, GError **error)
{
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    return (Berth__ServerInfo *)berth_cli_call(cli, &berth__server__descriptor, "Info",
                                               &request.base, error);
}

/* --- a daemon that is away ------------------------------------------------------------------- */

typedef struct {
    gint64 since_usec; /* 0 = none */
    guint wait_msec;
    gboolean is_said;
} Outage;

static gboolean quit_loop(gpointer loop)
{
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

/* Between attempts to reach a daemon that is being restarted: there is no event to wait for. */
static void pause_msec(guint msec)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_timeout_add(msec, quit_loop, loop);
    g_main_loop_run(loop);
}

/* Waits a little, each time longer. FALSE: it has lasted too long. */
static gboolean outage_wait(Outage *outage, gint64 deadline_usec, const GError *error)
{
    gint64 now_usec = g_get_monotonic_time();
    if (now_usec >= deadline_usec)
        return FALSE;
    if (outage->since_usec == 0)
        *outage = (Outage){.since_usec = now_usec, .wait_msec = 50};
    gint64 lasted_usec = now_usec - outage->since_usec;
    if (lasted_usec > OUTAGE_MAX_SEC * (gint64)G_USEC_PER_SEC)
        return FALSE;
    if (lasted_usec > OUTAGE_NOTICE_SEC * (gint64)G_USEC_PER_SEC && !outage->is_said) {
        fprintf(stderr, "%s: %s (trying again for %u minutes)\n", g_get_prgname(), error->message,
                OUTAGE_MAX_SEC / 60);
        outage->is_said = TRUE;
    }
    pause_msec((guint)MIN(outage->wait_msec, (deadline_usec - now_usec) / 1000 + 1));
    outage->wait_msec = MIN(outage->wait_msec * 2, 1000);
    return TRUE;
}

static gboolean may_pass(const BerthCli *cli, gboolean patient, const GError *error)
{
    gboolean is_lost = berth_rpc_peer_is_closed(cli->peer);
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE)
               ? is_lost || patient
               : is_lost && g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED);
}

gboolean berth_cli_persist_until(BerthCli *cli, gboolean patient, gint64 deadline_usec,
                                 BerthAttemptFunc attempt, gpointer user_data, GError **error)
{
    Outage outage = {0};
    if (cli->peer == NULL && !berth_cli_connect(cli, error))
        return FALSE;
    while (!cli->is_left) {
        g_autoptr(GError) local = NULL;
        gboolean is_connected = berth_cli_connect(cli, &local);
        gint64 began_usec = g_get_monotonic_time();
        if (is_connected && attempt(cli, user_data, &local))
            return TRUE;
        if (g_get_monotonic_time() - began_usec > HELD_SEC * (gint64)G_USEC_PER_SEC)
            outage = (Outage){0};
        if (cli->is_left)
            break;
        if (may_pass(cli, patient, local)) {
            if (outage_wait(&outage, deadline_usec, local))
                continue;
            if (g_get_monotonic_time() >= deadline_usec) {
                g_prefix_error(&local, "the deadline has passed: ");
                local->code = BERTH_ERROR_DEADLINE_EXCEEDED;
            }
        }
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    return TRUE;
}

gboolean berth_cli_persist(BerthCli *cli, gboolean patient, BerthAttemptFunc attempt,
                           gpointer user_data, GError **error)
{
    return berth_cli_persist_until(cli, patient, G_MAXINT64, attempt, user_data, error);
}

gboolean berth_cli_watch_until(BerthCli *cli, guint64 after_seq, gint64 deadline_usec,
                               BerthRpcItemFunc take, gpointer user_data, GError **error)
{
    gboolean ends = deadline_usec != G_MAXINT64;
    gint64 left_msec = (deadline_usec - g_get_monotonic_time()) / 1000 + 1;
    g_autoptr(GError) local = NULL;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.after_seq = after_seq;
    if (berth_rpc_peer_stream(cli->peer, &berth__jobs__descriptor, "Watch", &request.base,
                              ends ? (guint)CLAMP(left_msec, 1, G_MAXINT32) : 0, take, user_data,
                              &local) ||
        (ends && g_error_matches(local, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED)))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}
