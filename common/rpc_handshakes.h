/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections that were accepted and have not shown yet whose they are. However many come at once, each gets its turn, and
 * work that was begun for one is not thrown away for another: so that all nodes of a cluster can come back at the same
 * time, be it from one address, and whoever connects and says nothing keeps nobody out. Internal to common's RPC.
 *
 * Of one thread, that of the context in which they were made. */

#include "common/rpc_tls.h"

typedef struct BerthRpcHandshakes BerthRpcHandshakes;

typedef struct {
    /* STREAM (transfer none) is TLS, and shown to be of the CA. */
    void (*completed)(GIOStream *stream, gpointer data);
    void (*failed)(const GError *reason, gpointer data);
    /* There was no room for more, and is again. */
    void (*has_room)(gpointer data);
} BerthRpcHandshakesFuncs;

/* TIMEOUT_MSEC: for each, from when it was accepted. TLS (transfer none) and FUNCS last as long. */
BerthRpcHandshakes *berth_rpc_handshakes_new(const BerthTlsConfig *tls, guint timeout_msec,
                                             const BerthRpcHandshakesFuncs *funcs, gpointer data);
/* Nothing is called any more; those that are under way are broken off. */
void berth_rpc_handshakes_free(BerthRpcHandshakes *handshakes);

/* While it is so, none is to be accepted. */
gboolean berth_rpc_handshakes_is_full(const BerthRpcHandshakes *handshakes);
/* CONNECTION (transfer none) was accepted. */
void berth_rpc_handshakes_add(BerthRpcHandshakes *handshakes, GSocketConnection *connection);
