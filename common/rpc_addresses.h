/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose turn it is among connections that have not shown yet whose they are. Addresses take turns, each with a few handshakes
 * under way at a time, and with more where others leave room. Those that have completed one before are known, and nobody else gets
 * what is kept for them. Knows neither sockets nor the time. Internal to common's RPC. */

#include <gio/gio.h>

typedef struct BerthRpcAddresses BerthRpcAddresses;
typedef struct BerthRpcAddress BerthRpcAddress;

typedef enum {
    BERTH_RPC_SILENT,  /* there is nothing to begin with */
    BERTH_RPC_READY,   /* it waits for its turn */
    BERTH_RPC_SHAKING, /* its handshake is under way */
    BERTH_RPC_GONE,    /* it counts nowhere any more */
} BerthRpcStage;

/* Of a connection: within the structure of its OWNER. */
typedef struct {
    BerthRpcAddress *address;
    gpointer owner;
    BerthRpcStage stage;
    GList link; /* at its stage: of its address, and of its lane */
    GList lane_link;
} BerthRpcPlace;

BerthRpcAddresses *berth_rpc_addresses_new(void);
/* When no place is left. */
void berth_rpc_addresses_free(BerthRpcAddresses *addresses);

/* SILENT. REMOTE: NULL = unknown. Of IPv6, all of a /64 is one address, as a host has as many there as it likes. */
void berth_rpc_place_take(BerthRpcPlace *place, BerthRpcAddresses *addresses,
                          GSocketAddress *remote, gint64 now_usec, gpointer owner);
/* It is the newest at STAGE. */
void berth_rpc_place_move(BerthRpcPlace *place, BerthRpcStage stage);
/* Its handshake was completed: its address is known from now on, for long. */
void berth_rpc_place_completed(BerthRpcPlace *place, gint64 now_usec);
void berth_rpc_place_end(BerthRpcPlace *place);

/* For messages (transfer none). */
const char *berth_rpc_place_text(const BerthRpcPlace *place);
/* How many of its address are at STAGE, and the owner of the oldest; NULL = there is none. */
guint berth_rpc_place_count(const BerthRpcPlace *place, BerthRpcStage stage);
gpointer berth_rpc_place_oldest(const BerthRpcPlace *place, BerthRpcStage stage);
/* Its handshake is under way, and another one could begin without it. */
gboolean berth_rpc_place_is_in_the_way(const BerthRpcPlace *place);

/* The same of all addresses; the oldest of one that is not known, if there is any. */
guint berth_rpc_addresses_count(const BerthRpcAddresses *addresses, BerthRpcStage stage);
gpointer berth_rpc_addresses_oldest(const BerthRpcAddresses *addresses, BerthRpcStage stage);
/* (transfer container) all owners at STAGE, oldest first, those of addresses that are not known before others. */
GPtrArray *berth_rpc_addresses_list(const BerthRpcAddresses *addresses, BerthRpcStage stage);

/* The owner of one that is READY, and is to begin now: it is moved on, or ends, before the next is asked for. NULL: there is
 * none, or no room. */
gpointer berth_rpc_addresses_next(BerthRpcAddresses *addresses);
