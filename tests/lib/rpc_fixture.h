/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A service with known behaviour, and connections to it: whole peers, or raw sockets on which a
 * test says any bytes. */

#include "common/rpc.h"
#include "common/rpc_frame.h"
#include "proto/berth.pb-c.h"

/* Jobs of the fixture:
 *   Get(N)      answers Job{id = N}
 *   Cancel(N)   fails with NOT_FOUND, "no job N"
 *   Hold(N)     never answers; counted in `held`, its calls kept in `open`
 *   Logs(N)     a stream of N chunks of `chunk_bytes`, as fast as the caller takes them
 *   Watch       a stream without an end and without items
 *   List        answers one job with a name of `chunk_bytes` */
typedef struct {
    Berth__Jobs_Service jobs;
    ProtobufCService *services[2];
    gsize chunk_bytes;
    guint gets;
    guint held;
    guint cancelled;           /* cancelled functions called */
    GPtrArray *open;           /* BerthRpcCall of Hold and Watch */
    guint64 chunks_queued;     /* by Logs, over all calls */
    gboolean answer_cancelled; /* end cancelled Hold calls at once */
} RpcFixture;

RpcFixture *rpc_fixture_new(void);
void rpc_fixture_free(RpcFixture *fixture); /* ends what is open */

/* The two ends of a socket pair, as streams (transfer full). */
void rpc_fixture_streams(GIOStream **out_a, GIOStream **out_b);
/* A served peer and a raw blocking socket at the other end (transfer full). */
BerthRpcPeer *rpc_fixture_raw(RpcFixture *fixture, const BerthRpcLimits *limits, int *out_fd);

/* The packed HELLO of a peer that speaks PROTOCOL_MIN..PROTOCOL (transfer full). */
GBytes *rpc_fixture_hello(guint32 protocol_min, guint32 protocol);
GBytes *rpc_fixture_request(guint64 id, const char *method, const ProtobufCMessage *request);
GBytes *rpc_fixture_frame(Berth__Frame__Kind kind, guint64 id);
/* Writes all of BYTES and unrefs them. */
void rpc_fixture_say(int fd, GBytes *bytes);
/* Runs the default context until a whole frame came from FD, which is read with READER; NULL at
 * the end of the stream. */
Berth__Frame *rpc_fixture_hear(int fd, BerthRpcFrameReader *reader);

/* A closed function that stores a copy of the reason in *(GError **)user_data. */
void rpc_fixture_store_reason(BerthRpcPeer *peer, const GError *reason, gpointer user_data);
/* A GAsyncReadyCallback that stores a ref of the result in *(GAsyncResult **)user_data. */
void rpc_fixture_store_result(GObject *source, GAsyncResult *result, gpointer user_data);
