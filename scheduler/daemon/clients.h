/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Users' connections: who is at the other end, how many each user has, and what is to be cleaned
 * up when one closes. */

/* What a connection holds of one kind (uploads, imports): freed when it closes. */
typedef struct {
    GHashTable *uploads; /* made and owned by blobs_service.c, or NULL */
    GHashTable *imports; /* made and owned by images_service.c, or NULL */
} BerthClientHoldings;

/* What connections may take, of one user and of all beside the least of each (rpc.h: BerthRpcBudget, BerthRpcPool): a part of
 * MEMORY_BYTES, all that berthd may have, or else those who take none of their answers would keep it from taking jobs. The largest
 * request has room beside streams, however little that is. */
typedef struct {
    gsize user_bytes;
    gsize all_bytes;
    gsize least_bytes;
} BerthClientRoom;
BerthClientRoom berth_client_room(guint64 memory_bytes);

BerthClients *berth_clients_new(BerthDaemon *daemon);
/* Closes all connections and runs the main context until they have ended, at most TIMEOUT_MSEC.
 * FALSE: some have not. */
gboolean berth_clients_close(BerthClients *clients, guint timeout_msec);
void berth_clients_free(BerthClients *clients);

/* Takes a new connection; closes it if its user has too many. PEER (transfer full). */
void berth_clients_accept(BerthClients *clients, BerthRpcPeer *peer);

/* Holdings of the connection that CALL came on; NULL once it has closed. */
BerthClientHoldings *berth_client_holdings(BerthRpcCall *call);
