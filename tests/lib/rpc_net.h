/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Both ends of connections over TLS on the loopback, with certificates made by openssl once for a group
 * of tests: ca and other are CAs; berthd, n1, impostor (CN=n2), host (for 127.0.0.1), expired, nameless and
 * strange are signed by ca, foreign (CN=n1) is by other; junk.pem and empty.pem are none. */

#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

#include "common/rpc_dialer.h"
#include "common/rpc_tls.h"

typedef struct {
    RpcFixture *server;
    BerthRpcListener *listener;
    BerthRpcPeer *accepted;
    GError *accepted_reason;
    GError *rejected;
    BerthRpcDialer *dialer;
    BerthRpcPeer *connected;
    guint connects;
    GError *failed;
    guint failures;
    guint retry_msec;
} RpcNet;

int rpc_net_group_setup(void **state);
int rpc_net_group_teardown(void **state);
int rpc_net_setup(void **state);
int rpc_net_teardown(void **state);

/* Runs a line of shell where the certificates are. FALSE: it failed. */
gboolean rpc_net_run(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The path of NAME.SUFFIX there (transfer full). */
char *rpc_net_file(const char *name, const char *suffix);
/* Each by its name; NULL with ERROR set if they are refused. */
BerthTlsConfig *rpc_net_load(const char *certificate, const char *key, const char *ca,
                             GError **error);
/* PORT 0 = any. */
void rpc_net_listen_as(RpcNet *net, const char *certificate, guint16 port);
/* CONFIG (transfer full) is freed at once: the dialler must not need it. */
void rpc_net_dial_with(RpcNet *net, BerthTlsConfig *config, const char *host, guint16 port);
/* The listener. */
void rpc_net_dial_as(RpcNet *net, const char *certificate);
/* To the listener, without TLS. */
GSocketConnection *rpc_net_connect_plain(RpcNet *net);
/* To PORT on the loopback, from the address FROM, which is of 127.0.0.0/8; without TLS, and without a thread of GLib's. */
GSocket *rpc_net_connect_from(const char *from, guint16 port);
/* What a client of TLS 1.3 begins with: the answer comes from a handshake that is under way, and waits for more. */
extern const guint8 rpc_net_hello[117];
void rpc_net_say_hello(GSocket *socket);
/* Is there anything to be read from SOCKET, or its end? */
gboolean rpc_net_has_heard(GSocket *socket);
/* Of a listener or dialler that a test makes itself; DATA is the net. */
void rpc_net_on_accept(BerthRpcPeer *peer, gpointer data);
void rpc_net_on_rejected(const GError *reason, gpointer data);
void rpc_net_on_connected(BerthRpcPeer *peer, gpointer data);
void rpc_net_on_failed(const GError *reason, guint retry_msec, gpointer data);
