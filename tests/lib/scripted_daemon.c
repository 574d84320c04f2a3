/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the socket of a daemon that a script plays, and its directory; what it says is the script's. */
#include "tests/lib/scripted_daemon.h"

#include <glib/gstdio.h>

static void on_info(Berth__Server_Service *service, const Berth__InfoRequest *request,
                    Berth__ServerInfo_Closure closure, void *closure_data)
{
    Berth__ServerInfo info = BERTH__SERVER_INFO__INIT;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &info.base);
}

/* No script says what comes of one. */
static void on_backup(Berth__Server_Service *service, const Berth__BackupRequest *request,
                      Berth__BackupProgress_Closure closure, void *closure_data)
{
    berth_rpc_call_end(BERTH_RPC_CALL(closure_data));
}

static void on_closed(BerthRpcPeer *peer, const GError *reason, gpointer user_data)
{
    berth_rpc_peer_unref(peer);
}

static void on_peer(BerthRpcPeer *peer, gpointer user_data)
{
    ScriptedDaemon *daemon = user_data;
    daemon->n_peers++;
    berth_rpc_peer_set_closed_func(peer, on_closed, NULL);
}

void scripted_daemon_start(ScriptedDaemon *daemon, Berth__Jobs_Service *jobs)
{
    static const Berth__Server_Service server = BERTH__SERVER__INIT(on_);
    g_autoptr(GError) error = NULL;
    jobs->base = (ProtobufCService){.descriptor = &berth__jobs__descriptor,
                                    .invoke = protobuf_c_service_invoke_internal};
    daemon->server = server;
    daemon->services[0] = &jobs->base;
    daemon->services[1] = &daemon->server.base;
    daemon->dir = g_dir_make_tmp("berth-script-XXXXXX", NULL);
    daemon->socket = g_build_filename(daemon->dir, "sock", NULL);
    daemon->listener = berth_rpc_listener_new_unix(daemon->socket, 0600, daemon->services, NULL,
                                                   on_peer, NULL, daemon, &error);
    assert_no_error(error);
}

static void remove_dir(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        g_unlink(file);
    }
    g_rmdir(path);
}

void scripted_daemon_stop(ScriptedDaemon *daemon)
{
    berth_rpc_listener_free(daemon->listener);
    while (g_main_context_iteration(NULL, FALSE)) {
        /* connections that end */
    }
    remove_dir(daemon->dir);
    g_free(daemon->dir);
    g_free(daemon->socket);
}
