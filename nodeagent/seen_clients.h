/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which clients of storage a guest is, from who is seen to have its disk open. Others have it open for a while: an agent that
 * saves it, or has died, berthd at a removal, or the guest's own at the node that it has come from. And the guest may be out of
 * sight for some seconds, after its host or Ceph stood still, when others are seen already. A fence cuts off who is known, and a
 * lock is taken from who is not, so it is better to know one too many for a while than not to know the guest. Pure; times are
 * monotonic. */

#include <glib.h>

/* Who is seen by looks that are so far from each other is there, and who by none of them has gone. A client of QEMU looks every
 * 5 s whether it has lost its watch (objecter_tick_interval in Ceph). */
#define BERTH_SEEN_CLIENTS_STEADY_USEC ((gint64)12 * G_USEC_PER_SEC)

/* As new with all 0. */
typedef struct {
    char **known;     /* owned; their addresses. NULL: nobody has looked */
    char **seen;      /* owned: by the last look */
    gint64 seen_usec; /* the first look since which just these were seen */
    gboolean is_steady;
} BerthSeenClients;

/* SEEN has the disk open at NOW_USEC. Whether KNOWN has changed. */
gboolean berth_seen_clients_note(BerthSeenClients *self, const char *const *seen, gint64 now_usec);
/* A look has failed, or found nobody where there is somebody: who is seen now and again may have been out of sight between. */
void berth_seen_clients_miss(BerthSeenClients *self);
/* One is known, and was seen alone for long enough to be the guest. */
gboolean berth_seen_clients_are_settled(const BerthSeenClients *self);
/* They were another guest's. */
void berth_seen_clients_clear(BerthSeenClients *self);
/* CLIENTS but for THOSE (transfer full). */
char **berth_seen_clients_but(const char *const *clients, const char *const *those);
