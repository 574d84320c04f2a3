/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the test service and its connections (tests/lib/rpc_fixture.h). */
#include "tests/lib/rpc_fixture.h"

#include "tests/lib/assert.h"

#include "common/message.h"

#include <errno.h>

#include <sys/socket.h>
#include <unistd.h>

/* --- the service -------------------------------------------------------------------------- */

static void jobs_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
                     Berth__Job_Closure closure, void *closure_data)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.id = request->job;
    ((RpcFixture *)service)->gets++;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &job.base);
}

static void jobs_cancel(Berth__Jobs_Service *service, const Berth__CancelRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    g_autoptr(GError) error =
        g_error_new(BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "no job %" G_GUINT64_FORMAT, request->job);
    berth_rpc_call_fail(BERTH_RPC_CALL(closure_data), error);
}

static void jobs_list(Berth__Jobs_Service *service, const Berth__ListJobsRequest *request,
                      Berth__ListJobsReply_Closure closure, void *closure_data)
{
    Berth__Job job = BERTH__JOB__INIT, *jobs[] = {&job};
    Berth__ListJobsReply reply = BERTH__LIST_JOBS_REPLY__INIT;
    g_autofree char *name = g_strnfill(((RpcFixture *)service)->chunk_bytes, 'x');
    job.name = name;
    reply.n_jobs = 1;
    reply.jobs = jobs;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static void on_cancelled(BerthRpcCall *call, gpointer data)
{
    RpcFixture *fixture = data;
    g_autoptr(GError) error = g_error_new(BERTH_ERROR, BERTH_ERROR_CANCELLED, "cancelled");
    fixture->cancelled++;
    assert_true(berth_rpc_call_is_cancelled(call));
    if (!fixture->answer_cancelled)
        return;
    g_ptr_array_remove(fixture->open, call);
    berth_rpc_call_fail(call, error);
}

static void keep_open(RpcFixture *fixture, BerthRpcCall *call)
{
    fixture->held++;
    g_ptr_array_add(fixture->open, call);
    berth_rpc_call_set_cancelled_func(call, on_cancelled, fixture);
}

static void jobs_hold(Berth__Jobs_Service *service, const Berth__HoldRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_watch(Berth__Jobs_Service *service, const Berth__WatchRequest *request,
                       Berth__Event_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

typedef struct {
    RpcFixture *fixture;
    guint64 left;
    guint64 offset;
} LogStream;

static void on_logs_cancelled(BerthRpcCall *call, gpointer data)
{
    LogStream *stream = data;
    stream->fixture->cancelled++;
    g_free(stream);
    berth_rpc_call_end(call);
}

static void send_chunks(BerthRpcCall *call, gpointer data)
{
    LogStream *stream = data;
    gsize bytes = stream->fixture->chunk_bytes;
    g_autofree guint8 *zeroes = g_malloc0(MAX(bytes, 1));
    while (stream->left > 0) {
        Berth__LogChunk chunk = BERTH__LOG_CHUNK__INIT;
        chunk.offset = stream->offset;
        chunk.data = (ProtobufCBinaryData){bytes, zeroes};
        stream->left--;
        stream->offset += bytes;
        stream->fixture->chunks_queued++;
        if (!berth_rpc_call_send_item(call, &chunk.base))
            return;
    }
    g_free(stream);
    berth_rpc_call_end(call);
}

static void jobs_logs(Berth__Jobs_Service *service, const Berth__LogsRequest *request,
                      Berth__LogChunk_Closure closure, void *closure_data)
{
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    LogStream *stream = g_new0(LogStream, 1);
    stream->fixture = (RpcFixture *)service;
    stream->left = request->job;
    berth_rpc_call_set_ready_func(call, send_chunks, stream);
    berth_rpc_call_set_cancelled_func(call, on_logs_cancelled, stream);
    send_chunks(call, stream);
}

static void jobs_submit(Berth__Jobs_Service *service, const Berth__SubmitRequest *request,
                        Berth__SubmitReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_release(Berth__Jobs_Service *service, const Berth__ReleaseRequest *request,
                         Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_freeze(Berth__Jobs_Service *service, const Berth__FreezeRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_migrate(Berth__Jobs_Service *service, const Berth__MigrateRequest *request,
                         Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_cancel_migration(Berth__Jobs_Service *service,
                                  const Berth__CancelMigrationRequest *request,
                                  Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_resize(Berth__Jobs_Service *service, const Berth__ResizeRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_extend(Berth__Jobs_Service *service, const Berth__ExtendRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_set_checkpoint_every(Berth__Jobs_Service *service,
                                      const Berth__CheckpointEveryRequest *request,
                                      Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_thaw(Berth__Jobs_Service *service, const Berth__ThawRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_checkpoint(Berth__Jobs_Service *service, const Berth__CheckpointRequest *request,
                            Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_restore(Berth__Jobs_Service *service, const Berth__RestoreRequest *request,
                         Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_remove_checkpoint(Berth__Jobs_Service *service,
                                   const Berth__RemoveCheckpointRequest *request,
                                   Berth__JobReply_Closure closure, void *closure_data)
{
    keep_open((RpcFixture *)service, BERTH_RPC_CALL(closure_data));
}

static void jobs_explain(Berth__Jobs_Service *service, const Berth__ExplainRequest *request,
                         Berth__Explanation_Closure closure, void *closure_data)
{
    fail_msg("Explain was not expected");
}

static void jobs_submit_many(Berth__Jobs_Service *service, const Berth__SubmitManyRequest *request,
                             Berth__SubmitManyReply_Closure closure, void *closure_data)
{
    fail_msg("SubmitMany was not expected");
}

RpcFixture *rpc_fixture_new(void)
{
    static const Berth__Jobs_Service jobs = BERTH__JOBS__INIT(jobs_);
    RpcFixture *fixture = g_new0(RpcFixture, 1);
    fixture->jobs = jobs;
    fixture->services[0] = &fixture->jobs.base;
    fixture->open = g_ptr_array_new();
    fixture->answer_cancelled = TRUE;
    return fixture;
}

void rpc_fixture_free(RpcFixture *fixture)
{
    g_autoptr(GError) error = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "the end");
    for (guint i = 0; i < fixture->open->len; i++)
        berth_rpc_call_fail(fixture->open->pdata[i], error);
    g_ptr_array_unref(fixture->open);
    while (g_main_context_iteration(NULL, FALSE))
        ; /* what is due: closed connections let go of their memory */
    g_free(fixture);
}

/* --- connections -------------------------------------------------------------------------- */

static GIOStream *stream_of(int fd)
{
    g_autoptr(GSocket) socket = g_socket_new_from_fd(fd, NULL);
    assert_non_null(socket);
    return G_IO_STREAM(g_socket_connection_factory_create_connection(socket));
}

void rpc_fixture_streams(GIOStream **out_a, GIOStream **out_b)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    *out_a = stream_of(fds[0]);
    *out_b = stream_of(fds[1]);
}

BerthRpcPeer *rpc_fixture_raw(RpcFixture *fixture, const BerthRpcLimits *limits, int *out_fd)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    g_autoptr(GIOStream) stream = stream_of(fds[0]);
    *out_fd = fds[1];
    return berth_rpc_peer_new(stream, fixture->services, limits);
}

/* --- bytes -------------------------------------------------------------------------------- */

GBytes *rpc_fixture_hello(guint32 protocol_min, guint32 protocol)
{
    Berth__Hello hello = BERTH__HELLO__INIT;
    Berth__Frame frame = BERTH__FRAME__INIT;
    hello.protocol_min = protocol_min;
    hello.protocol = protocol;
    hello.version = (char *)"9.9.9";
    frame.kind = BERTH__FRAME__KIND__HELLO;
    frame.hello = &hello;
    return berth_rpc_frame_encode(&frame);
}

GBytes *rpc_fixture_request(guint64 id, const char *method, const ProtobufCMessage *request)
{
    Berth__Frame frame = BERTH__FRAME__INIT;
    g_autoptr(GBytes) payload = berth_message_pack(request);
    frame.kind = BERTH__FRAME__KIND__REQUEST;
    frame.call_id = id;
    frame.method = (char *)method;
    frame.payload.data = (guint8 *)g_bytes_get_data(payload, &frame.payload.len);
    return berth_rpc_frame_encode(&frame);
}

GBytes *rpc_fixture_frame(Berth__Frame__Kind kind, guint64 id)
{
    Berth__Frame frame = BERTH__FRAME__INIT;
    frame.kind = kind;
    frame.call_id = id;
    return berth_rpc_frame_encode(&frame);
}

void rpc_fixture_say(int fd, GBytes *bytes)
{
    gsize size = 0;
    const guint8 *data = g_bytes_get_data(bytes, &size);
    while (size > 0) {
        gssize sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0)
            break; /* the peer has closed already: what it says is what is tested */
        data += sent;
        size -= (gsize)sent;
    }
    g_bytes_unref(bytes);
}

Berth__Frame *rpc_fixture_hear(int fd, BerthRpcFrameReader *reader)
{
    Berth__Frame *frame = NULL;
    gssize bytes = 1;
    for (;;) {
        assert_true(berth_rpc_frame_reader_next(reader, &frame, NULL));
        if (frame != NULL || bytes <= 0)
            return frame;
        gsize room = 0;
        guint8 *space = berth_rpc_frame_reader_space(reader, &room);
        run_until((bytes = recv(fd, space, room, MSG_DONTWAIT)) >= 0 || errno != EAGAIN);
        if (bytes > 0)
            berth_rpc_frame_reader_added(reader, (gsize)bytes);
    }
}

void rpc_fixture_store_reason(BerthRpcPeer *peer, const GError *reason, gpointer user_data)
{
    GError **stored = user_data;
    assert_null(*stored); /* once only */
    *stored = g_error_copy(reason);
}

void rpc_fixture_store_result(GObject *source, GAsyncResult *result, gpointer user_data)
{
    *(GAsyncResult **)user_data = g_object_ref(result);
}
