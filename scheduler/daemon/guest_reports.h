/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* What nodes say of their guests, for the core and for the records. What a node says of a guest
 * that is not its own, or of an older epoch, changes no record. */

/* The node has joined: everything that it has. */
void berth_guest_reports_join(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                              const Berth__JoinRequest *request);
/* The core, which has been told of the join, has no guest NAMED there, nor is one to come. */
gboolean berth_guest_reports_is_stray(BerthDaemon *daemon, guint32 node,
                                      const Berth__GuestId *named);
/* The guest is on its way to another node: that the one that it leaves does not have it any more says nothing. */
gboolean berth_guest_reports_is_moved(BerthDaemon *daemon, const BerthGuestId *id);
/* One guest has changed its phase. STATUS names a guest. May come several times. FALSE: nothing of it is stored, as the guest is
 * nobody's there, or is to be removed. */
gboolean berth_guest_reports_change(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                                    const Berth__GuestStatus *status);
/* What the node says of itself has changed. INFO is of the right node. */
void berth_guest_reports_node(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                              const Berth__NodeInfo *info);
/* Measurements. Adds to UNKNOWN the ids in REQUEST (Berth__GuestId, transfer none) of guests that the node has to tell of
 * wholly. */
void berth_guest_reports_measure(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                                 const Berth__ReportRequest *request, GPtrArray *unknown);
