/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Clients of storage that keep the disk of a guest that is no more. A client that was killed while
 * storage stood still can stay in Ceph's list of those that watch the disk for ever (tracker.ceph.com
 * issue 58120), and nobody can remove the disk. Such a client is cut off, which drops its watches. */

/* A disk that could not be removed because it is in use. */
typedef struct {
    char *disk_id;
    char **clients;   /* addresses */
    gboolean is_news; /* of those to be cut off: one of them was not before */
} BerthBusyDisk;
BerthBusyDisk *berth_busy_disk_new(const char *disk_id,
                                   char **clients); /* CLIENTS (transfer full) */
void berth_busy_disk_free(gpointer busy);

typedef struct BerthStaleClients BerthStaleClients;
BerthStaleClients *berth_stale_clients_new(void);
void berth_stale_clients_free(BerthStaleClients *stale);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStaleClients, berth_stale_clients_free)

/* Is ADDRESS the client of somebody who lives, or may? */
typedef gboolean (*BerthIsInUseFunc)(const char *address, gpointer user_data);
/* Takes what a round found at NOW_USEC (monotonic): BUSY is of BerthBusyDisk, NULL for none. Those of
 * them, each with those of its clients only, that nobody uses, and that had the same disk open in each
 * round since AFTER_USEC ago or earlier: these are to be cut off. (transfer full) */
GPtrArray *berth_stale_clients_judge(BerthStaleClients *stale, const GPtrArray *busy,
                                     gint64 now_usec, gint64 after_usec, BerthIsInUseFunc is_in_use,
                                     gpointer user_data);
/* Has the last round found one that nobody uses, but not for long enough? Then the next one is worth
 * having soon. */
gboolean berth_stale_clients_has_suspects(BerthStaleClients *stale);

/* A BerthIsInUseFunc, with the BerthDaemon. In use are berthd's own clients; those that the agent of
 * a node names, until the node is lost; and those of a guest that has not ended. */
gboolean berth_stale_clients_is_in_use(const char *address, gpointer daemon);
