/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the protocol of one command: what was read is acknowledged in time for more to come. */
#include "cli/exec_client.h"

#include "common/error.h"
#include "common/message.h"

/* Acknowledged when so much was read: long before a window is full, and not for each line. */
#define ACK_BYTES (BERTH_EXEC_WINDOW_BYTES / 4)

struct BerthExecClient {
    grefcount refs; /* its owner's, and one for each call under way */
    BerthRpcPeer *peer;
    const BerthExecClientFuncs *funcs; /* NULL: its owner is gone */
    gpointer user_data;
    GCancellable *cancellable;
    guint64 id; /* 0 = it has not begun */
    guint64 read[2];
    guint64 acked[2];
    Berth__Exit *exit;
};

static void client_unref(BerthExecClient *client)
{
    if (!g_ref_count_dec(&client->refs))
        return;
    berth_message_free(client->exit == NULL ? NULL : &client->exit->base);
    g_object_unref(client->cancellable);
    berth_rpc_peer_unref(client->peer);
    g_free(client);
}
typedef BerthExecClient ClientRef;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ClientRef, client_unref)

static BerthExecClient *client_ref(BerthExecClient *client)
{
    g_ref_count_inc(&client->refs);
    return client;
}

/* --- what is said to it ---------------------------------------------------------------------- */

/* What has failed has failed for the end of the command, which is told for itself. */
static gboolean is_answered(GAsyncResult *result)
{
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, NULL);
    return reply != NULL;
}

static void on_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    G_GNUC_UNUSED g_autoptr(ClientRef) client = user_data;
    is_answered(result);
}

static void on_taken(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(ClientRef) client = user_data;
    if (is_answered(result) && client->funcs != NULL)
        client->funcs->taken(client->user_data);
}

/* REQUEST, and what was read by now. */
static void send(BerthExecClient *client, Berth__ExecInputRequest *request,
                 GAsyncReadyCallback callback)
{
    request->exec = client->id;
    request->stdout_bytes = client->acked[0] = client->read[0];
    request->stderr_bytes = client->acked[1] = client->read[1];
    berth_rpc_peer_call_async(client->peer, &berth__execs__descriptor, "Input", &request->base, 0,
                              client->cancellable, callback, client_ref(client));
}

void berth_exec_client_input(BerthExecClient *client, const guint8 *data, gsize length,
                             gboolean end)
{
    Berth__ExecInputRequest request = BERTH__EXEC_INPUT_REQUEST__INIT;
    request.data = (ProtobufCBinaryData){length, (guint8 *)data};
    request.end = end;
    send(client, &request, on_taken);
}

void berth_exec_client_resize(BerthExecClient *client, const Berth__Terminal *size)
{
    Berth__ExecInputRequest request = BERTH__EXEC_INPUT_REQUEST__INIT;
    request.size = (Berth__Terminal *)size;
    if (client->id != 0)
        send(client, &request, on_answered);
}

gboolean berth_exec_client_signal(BerthExecClient *client, guint signal)
{
    Berth__ExecInputRequest request = BERTH__EXEC_INPUT_REQUEST__INIT;
    request.signal = signal;
    if (client->id != 0)
        send(client, &request, on_answered);
    return client->id != 0;
}

/* --- what it says ---------------------------------------------------------------------------- */

static void take_data(BerthExecClient *client, const Berth__ExecOutput__Data *data)
{
    guint stream = data->is_stderr ? 1 : 0;
    client->funcs->output(data->is_stderr, data->data.data, data->data.len, client->user_data);
    client->read[stream] += data->data.len;
    if (client->read[stream] - client->acked[stream] < ACK_BYTES)
        return;
    Berth__ExecInputRequest request = BERTH__EXEC_INPUT_REQUEST__INIT;
    send(client, &request, on_answered);
}

static gboolean take_item(const ProtobufCMessage *message, gpointer user_data)
{
    const Berth__ExecOutput *item = (const Berth__ExecOutput *)(const void *)message;
    BerthExecClient *client = user_data;
    if (client->funcs == NULL)
        return FALSE;
    if (item->body_case == BERTH__EXEC_OUTPUT__BODY_EXEC && client->id == 0) {
        client->id = item->exec;
        client->funcs->begun(client->user_data);
    } else if (item->body_case == BERTH__EXEC_OUTPUT__BODY_DATA) {
        take_data(client, item->data);
    } else if (item->body_case == BERTH__EXEC_OUTPUT__BODY_EXIT && client->exit == NULL) {
        client->exit = (Berth__Exit *)(void *)berth_message_copy(&item->exit->base);
    }
    return TRUE;
}

static void on_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(ClientRef) client = user_data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_rpc_peer_stream_finish(result, &error);
    if (client->funcs == NULL)
        return;
    if (ok && client->exit == NULL)
        g_set_error_literal(&error, BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                            "the daemon did not say how the command ended");
    else if (!ok && client->id != 0 && berth_rpc_peer_is_closed(client->peer))
        g_prefix_error(&error, "the command is ended, as the connection was lost: ");
    client->funcs->ended(error == NULL ? client->exit : NULL, error, client->user_data);
}

/* --- life ------------------------------------------------------------------------------------ */

BerthExecClient *berth_exec_client_new(BerthRpcPeer *peer, const Berth__ExecRequest *request,
                                       const BerthExecClientFuncs *funcs, gpointer user_data)
{
    BerthExecClient *client = g_new0(BerthExecClient, 1);
    g_ref_count_init(&client->refs);
    client->peer = berth_rpc_peer_ref(peer);
    client->funcs = funcs;
    client->user_data = user_data;
    client->cancellable = g_cancellable_new();
    berth_rpc_peer_stream_async(peer, &berth__execs__descriptor, "Run", &request->base, 0,
                                client->cancellable, take_item, on_ended, client_ref(client));
    return client;
}

void berth_exec_client_free(BerthExecClient *client)
{
    if (client == NULL)
        return;
    client->funcs = NULL;
    g_cancellable_cancel(client->cancellable);
    client_unref(client);
}
