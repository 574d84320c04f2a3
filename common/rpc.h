/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gio/gio.h>
#include <protobuf-c/protobuf-c.h>

/* Remote procedure calls over one byte stream (unix socket or TLS), in both directions at once.
 *
 * Wire: each frame is a 4-byte big-endian length and a packed berth.Frame. The first frame each
 * way is HELLO; versions that do not meet end the connection with an error that names both.
 * A call is unary (REQUEST, then RESPONSE or FAILURE) or a server stream (REQUEST, ITEM..., then
 * END or FAILURE). Methods are named "Service.Method" and dispatched over protobuf-c's service
 * descriptors, so that any number of transports lead to the same handlers.
 *
 * Threads: a peer belongs to the thread-default main context in which it was made; all functions
 * are called there and all callbacks arrive there. Nothing here blocks but berth_rpc_peer_call().
 *
 * Limits: a frame larger than max_frame_bytes, an unknown frame kind or a malformed frame ends
 * the connection with BERTH_ERROR_PROTOCOL. From a peer that does not take its replies no request
 * is taken while more than queue_high_bytes wait for it, so that it can only slow itself down.
 * Requests of one peer that are not answered yet take 4 * max_frame_bytes of memory at most; more
 * fail with RESOURCE_EXHAUSTED. A frame of which no byte comes for frame_timeout_msec ends the
 * connection. What peers of one user take together is bounded by a BerthRpcBudget. */

typedef struct {
    guint32 max_frame_bytes;       /* default 4 MiB */
    guint32 queue_high_bytes;      /* default 1 MiB: see berth_rpc_call_send_item() */
    guint max_open_calls;          /* calls in from one peer at once; default 1024 */
    guint keepalive_interval_msec; /* PING when idle for this long; 0 = never (unix sockets) */
    guint keepalive_timeout_msec;  /* no byte for this long ends the connection; 0 = never */
    guint hello_timeout_msec;      /* for the TLS handshake and HELLO; default 10 s */
    guint frame_timeout_msec;      /* for the next byte of a frame that has begun; default 30 s */
} BerthRpcLimits;

#define BERTH_RPC_LIMITS_DEFAULT                                                                   \
    ((BerthRpcLimits){.max_frame_bytes = 4u << 20,                                                 \
                      .queue_high_bytes = 1u << 20,                                                \
                      .max_open_calls = 1024,                                                      \
                      .hello_timeout_msec = 10000,                                                 \
                      .frame_timeout_msec = 30000})

/* Versions of the protocol that this build speaks. */
#define BERTH_RPC_PROTOCOL     1u
#define BERTH_RPC_PROTOCOL_MIN 1u

/* Who is at the other end, as the kernel or its certificate says. */
typedef struct {
    gboolean is_unix;
    uid_t uid; /* unix only, as the next four */
    gid_t gid;
    pid_t pid;
    gid_t *groups; /* supplementary, from SO_PEERGROUPS */
    gsize n_groups;
    char *node_name;   /* TLS only: the common name of the peer's certificate */
    char *description; /* for messages: "uid 1000 (pid 42)", "n1 at 10.0.0.2:40112" */
} BerthRpcIdentity;

typedef struct BerthRpcPeer BerthRpcPeer;
typedef struct BerthRpcCall BerthRpcCall;

BerthRpcPeer *berth_rpc_peer_ref(BerthRpcPeer *peer);
/* The last one ends an open connection at once, without its closed function. */
void berth_rpc_peer_unref(BerthRpcPeer *peer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRpcPeer, berth_rpc_peer_unref)

/* Takes a connected STREAM (ref taken; a unix GSocketConnection, or a GTlsConnection whose
 * handshake is done) and starts to read. SERVICES is a NULL-terminated array of services served
 * to this peer, or NULL; the services must outlive the peer. */
BerthRpcPeer *berth_rpc_peer_new(GIOStream *stream, ProtobufCService *const *services,
                                 const BerthRpcLimits *limits);

/* Called once when the connection has ended, for whatever reason; REASON is never NULL
 * (an orderly end is BERTH_ERROR_UNAVAILABLE, "... closed the connection"). Open calls out have
 * failed with it by then, open calls in were cancelled. It comes from the main loop, never from
 * inside a function of this header, also after berth_rpc_peer_close(). */
typedef void (*BerthRpcClosedFunc)(BerthRpcPeer *peer, const GError *reason, gpointer user_data);
void berth_rpc_peer_set_closed_func(BerthRpcPeer *peer, BerthRpcClosedFunc func,
                                    gpointer user_data);

/* Ends the connection after what is queued was written, or at once if ABORT. Idempotent. */
void berth_rpc_peer_close(BerthRpcPeer *peer, gboolean abort);
gboolean berth_rpc_peer_is_closed(BerthRpcPeer *peer);
/* From now on each request of the other side fails with REASON (a BERTH_ERROR) at once: for a
 * connection that is not served, whose user is to read why. */
void berth_rpc_peer_refuse(BerthRpcPeer *peer, const GError *reason);

/* What several connections (of one user) may take together: requests that are open, room for their
 * answers (as much as the type of the answer may need, before the request is dispatched), answers
 * that were not written yet, and large frames that are not complete. A connection for which there
 * is no room is not read until there is; one that takes nothing of its answers for 10 s while
 * others wait is closed with RESOURCE_EXHAUSTED. */
typedef struct BerthRpcBudget BerthRpcBudget;
BerthRpcBudget *berth_rpc_budget_new(gsize max_bytes);
BerthRpcBudget *berth_rpc_budget_ref(BerthRpcBudget *budget);
void berth_rpc_budget_unref(BerthRpcBudget *budget);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRpcBudget, berth_rpc_budget_unref)

/* What the connections of several budgets (users) may take together, beside LEAST_BYTES of each. Where that is taken who wants more
 * than his least waits, behind those who do already, and who has more is closed as above while somebody waits. MAX_BYTES: of
 * all, without what each has up to his least. */
typedef struct BerthRpcPool BerthRpcPool;
BerthRpcPool *berth_rpc_pool_new(gsize max_bytes, gsize least_bytes);
void berth_rpc_pool_unref(BerthRpcPool *pool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRpcPool, berth_rpc_pool_unref)
/* Once, before BUDGET has a connection. It keeps a reference. */
void berth_rpc_budget_share(BerthRpcBudget *budget, BerthRpcPool *pool);

/* Whose request is begun next where more come than can be dealt with at once: that of the budgets (users), a request each in
 * turn. What waits for its turn is not read on. OPEN_MAX: so many calls are dealt with at a time, and one more of each user
 * who has none; a stream does not count once it has begun, nor a call after 0.1 s, as it waits for something else then. */
typedef struct BerthRpcTurns BerthRpcTurns;
BerthRpcTurns *berth_rpc_turns_new(guint open_max);
void berth_rpc_turns_unref(BerthRpcTurns *turns);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRpcTurns, berth_rpc_turns_unref)
/* The user of PEER has begun as many requests as he may, PER_SEC, and has to wait. */
typedef void (*BerthRpcTurnsDryFunc)(BerthRpcPeer *peer, guint per_sec, gpointer user_data);
void berth_rpc_turns_set_dry_func(BerthRpcTurns *turns, BerthRpcTurnsDryFunc func,
                                  gpointer user_data);
/* Once, before BUDGET has a connection. It keeps a reference. PER_SEC: requests, on average; a second's worth may come at
 * once; 0: any number. */
void berth_rpc_budget_take_turns(BerthRpcBudget *budget, BerthRpcTurns *turns, guint per_sec);

/* Once, before PEER has read anything. PEER keeps a reference. */
void berth_rpc_peer_set_budget(BerthRpcPeer *peer, BerthRpcBudget *budget);

/* (transfer none) */
const BerthRpcIdentity *berth_rpc_peer_identity(BerthRpcPeer *peer);
/* Release of the program at the other end, "" before its HELLO. */
const char *berth_rpc_peer_version(BerthRpcPeer *peer);

/* Free slot for the owner of the peer (session, connection state). */
void berth_rpc_peer_set_data(BerthRpcPeer *peer, gpointer data, GDestroyNotify destroy);
gpointer berth_rpc_peer_get_data(BerthRpcPeer *peer);

/* --- calls out -------------------------------------------------------------------------- */

/* Unary call. TIMEOUT_MSEC 0 = none; past it the call fails with DEADLINE_EXCEEDED and the callee
 * is told. Errors: those of the callee, UNAVAILABLE when the connection ends, CANCELLED, PROTOCOL
 * when the reply cannot be unpacked. */
void berth_rpc_peer_call_async(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                               const char *method, const ProtobufCMessage *request,
                               guint timeout_msec, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
/* (transfer full) free with protobuf_c_message_free_unpacked(). RESULT's source object is NULL. */
ProtobufCMessage *berth_rpc_peer_call_finish(GAsyncResult *result, GError **error);

/* Stream call: ITEM_FUNC for each item; FALSE from it cancels the call. */
typedef gboolean (*BerthRpcItemFunc)(const ProtobufCMessage *item, gpointer user_data);
void berth_rpc_peer_stream_async(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                                 const char *method, const ProtobufCMessage *request,
                                 guint timeout_msec, GCancellable *cancellable,
                                 BerthRpcItemFunc item_func, GAsyncReadyCallback callback,
                                 gpointer user_data);
/* TRUE when the stream ended with END, or when ITEM_FUNC cancelled it. */
gboolean berth_rpc_peer_stream_finish(GAsyncResult *result, GError **error);

/* The same two for programs without a loop of their own (the CLI): they run the peer's main
 * context until the answer is there. Not from inside a callback of the same peer. */
ProtobufCMessage *berth_rpc_peer_call(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                                      const char *method, const ProtobufCMessage *request,
                                      guint timeout_msec, GError **error);
gboolean berth_rpc_peer_stream(BerthRpcPeer *peer, const ProtobufCServiceDescriptor *service,
                               const char *method, const ProtobufCMessage *request,
                               guint timeout_msec, BerthRpcItemFunc item_func, gpointer user_data,
                               GError **error);

/* --- calls in ---------------------------------------------------------------------------- */

/* A handler is a method of a protobuf-c service struct:
 *     static void jobs_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
 *                          Berth__Job_Closure closure, void *closure_data)
 * CLOSURE_DATA is the BerthRpcCall. A handler ends its call exactly once, at once or later, with
 * reply, fail or end; REQUEST is valid until then. CLOSURE is not to be called. */
#define BERTH_RPC_CALL(closure_data) ((BerthRpcCall *)(closure_data))

/* (transfer none) */
BerthRpcPeer *berth_rpc_call_peer(BerthRpcCall *call);
const BerthRpcIdentity *berth_rpc_call_identity(BerthRpcCall *call);

/* A call stays valid until it was ended, also after its peer has gone (answers are then dropped).
 * Each of these three ends it: CALL is invalid afterwards. */
void berth_rpc_call_reply(BerthRpcCall *call, const ProtobufCMessage *reply);
void berth_rpc_call_fail(BerthRpcCall *call, const GError *error); /* BERTH_ERROR keeps its code */
void berth_rpc_call_end(BerthRpcCall *call);                       /* of a stream */

/* Queues one item. FALSE: the peer's queue is above queue_high_bytes (the item was queued all the
 * same); send no more until the ready function is called. */
gboolean berth_rpc_call_send_item(BerthRpcCall *call, const ProtobufCMessage *item);
/* Likewise one that was packed (berth_message_pack()), for what goes to many calls. */
gboolean berth_rpc_call_send_packed(BerthRpcCall *call, GBytes *item);
/* FALSE: the queue is above queue_high_bytes; queue nothing until the ready function is called. For
 * what was asked for while there was room, and comes when there is none. */
gboolean berth_rpc_call_has_room(BerthRpcCall *call);
typedef void (*BerthRpcCallFunc)(BerthRpcCall *call, gpointer user_data);
void berth_rpc_call_set_ready_func(BerthRpcCall *call, BerthRpcCallFunc func, gpointer user_data);
/* FUNC when the caller cancelled, its deadline passed or its connection ended: stop working and
 * end the call (with fail or end) soon. Called at most once, never after the call was ended, and
 * not for a call that was cancelled before FUNC was set: a handler that sets it later looks at
 * berth_rpc_call_is_cancelled() first. */
void berth_rpc_call_set_cancelled_func(BerthRpcCall *call, BerthRpcCallFunc func,
                                       gpointer user_data);
gboolean berth_rpc_call_is_cancelled(BerthRpcCall *call);

/* --- listening and dialling -------------------------------------------------------------- */

/* Certificate and key of this process, and the CA that it trusts. */
typedef struct BerthTlsConfig BerthTlsConfig;
/* Errors name the file: unreadable, not PEM, key and certificate that do not match, expired. */
BerthTlsConfig *berth_tls_config_new(const char *certificate_path, const char *key_path,
                                     const char *ca_path, GError **error);
/* The common name of the certificate (transfer full). */
char *berth_tls_config_name(const BerthTlsConfig *config);
void berth_tls_config_free(BerthTlsConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthTlsConfig, berth_tls_config_free)

typedef struct BerthRpcListener BerthRpcListener;
/* FUNC (never NULL) for each peer whose connection (and TLS handshake) is complete; PEER is
 * (transfer full): keep it, and unref it in its closed function.
 * A connection that fails before that is reported to REJECTED_FUNC, rate-limited, for the log. */
typedef void (*BerthRpcAcceptFunc)(BerthRpcPeer *peer, gpointer user_data);
typedef void (*BerthRpcRejectedFunc)(const GError *reason, gpointer user_data);
/* Replaces a socket file that nobody listens on; ALREADY_EXISTS if somebody does.
 * MODE: permission bits of the socket file. */
BerthRpcListener *
berth_rpc_listener_new_unix(const char *path, guint mode, ProtobufCService *const *services,
                            const BerthRpcLimits *limits, BerthRpcAcceptFunc accept_func,
                            BerthRpcRejectedFunc rejected_func, gpointer user_data, GError **error);
/* ADDRESS: an IP address or "*"; PORT 0 picks one. Clients must show a certificate of the CA. */
BerthRpcListener *
berth_rpc_listener_new_tls(const char *address, guint16 port, const BerthTlsConfig *tls,
                           ProtobufCService *const *services, const BerthRpcLimits *limits,
                           BerthRpcAcceptFunc accept_func, BerthRpcRejectedFunc rejected_func,
                           gpointer user_data, GError **error);
guint16 berth_rpc_listener_port(BerthRpcListener *listener);
void berth_rpc_listener_free(BerthRpcListener *listener); /* its peers live on */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRpcListener, berth_rpc_listener_free)

/* Connects to a unix socket and exchanges HELLO; runs the default main context meanwhile.
 * UNAVAILABLE says that the daemon does not run, and how to start it. */
BerthRpcPeer *berth_rpc_connect_unix(const char *path, const BerthRpcLimits *limits,
                                     GError **error);

/* Keeps a TLS connection to HOST:PORT: dials, and dials again after it ended, with exponential
 * backoff and jitter (1 s .. 10 s; reset by a connection that held). CONNECTED_FUNC after each
 * HELLO (peer: transfer none, the dialler keeps it until it closes); FAILED_FUNC after each
 * failure or loss, with when it will try again. */
typedef struct BerthRpcDialer BerthRpcDialer;
typedef void (*BerthRpcConnectedFunc)(BerthRpcPeer *peer, gpointer user_data);
typedef void (*BerthRpcDialFailedFunc)(const GError *reason, guint retry_msec, gpointer user_data);
BerthRpcDialer *berth_rpc_dialer_new(const char *host, guint16 port, const BerthTlsConfig *tls,
                                     ProtobufCService *const *services,
                                     const BerthRpcLimits *limits,
                                     BerthRpcConnectedFunc connected_func,
                                     BerthRpcDialFailedFunc failed_func, gpointer user_data);
/* The live peer or NULL (transfer none). */
BerthRpcPeer *berth_rpc_dialer_peer(BerthRpcDialer *dialer);
/* The connection is good for what it was made for: the next failure is the first again, however soon it comes. From now on
 * no pause is longer than PAUSE_MAX_MSEC; 0 = as before. */
void berth_rpc_dialer_succeeded(BerthRpcDialer *dialer, guint pause_max_msec);
/* Ends the connection that there is, for another one that is made as soon as after the first failure: that it is ended
 * is none. Without a connection nothing changes. */
void berth_rpc_dialer_dial_again(BerthRpcDialer *dialer);
void berth_rpc_dialer_free(BerthRpcDialer *dialer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRpcDialer, berth_rpc_dialer_free)
