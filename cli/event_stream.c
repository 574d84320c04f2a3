/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a stream of events beside other calls. */
#include "cli/event_stream.h"

#include "common/types.h"

struct BerthEventStream {
    BerthRpcPeer *peer; /* its own reference */
    GCancellable *cancellable;
    BerthRpcItemFunc take;
    gpointer take_data;
    gboolean is_open;
    GError *error; /* why it has ended; NULL: the daemon, or who takes the events, wanted it */
};

static gboolean on_item(const ProtobufCMessage *item, gpointer user_data)
{
    const BerthEventStream *stream = user_data;
    return stream->take(item, stream->take_data);
}

static void on_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthEventStream *stream = user_data;
    berth_rpc_peer_stream_finish(result, &stream->error);
    stream->is_open = FALSE;
}

BerthEventStream *berth_event_stream_open(const BerthCli *cli, guint64 after_seq,
                                          const GArray *jobs, BerthRpcItemFunc take,
                                          gpointer user_data)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    BerthEventStream *stream = g_new0(BerthEventStream, 1);
    request.after_seq = after_seq;
    if (jobs != NULL && jobs->len <= BERTH_WATCH_JOBS_MAX) {
        request.jobs = (uint64_t *)(gpointer)jobs->data;
        request.n_jobs = jobs->len;
    }
    stream->peer = berth_rpc_peer_ref(cli->peer);
    stream->cancellable = g_cancellable_new();
    stream->take = take;
    stream->take_data = user_data;
    stream->is_open = TRUE;
    berth_rpc_peer_stream_async(stream->peer, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                stream->cancellable, on_item, on_ended, stream);
    return stream;
}

gboolean berth_event_stream_is_open(const BerthEventStream *stream)
{
    return stream->is_open;
}

gboolean berth_event_stream_close(BerthEventStream *stream, GError **error)
{
    gboolean was_open = stream->is_open;
    g_cancellable_cancel(stream->cancellable);
    while (stream->is_open)
        g_main_context_iteration(NULL, TRUE);
    if (was_open)
        g_clear_error(&stream->error);
    gboolean is_good = stream->error == NULL;
    if (!is_good)
        g_propagate_error(error, g_steal_pointer(&stream->error));
    g_object_unref(stream->cancellable);
    berth_rpc_peer_unref(stream->peer);
    g_free(stream);
    return is_good;
}
