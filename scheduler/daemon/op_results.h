/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What comes of an action that does something to a running guest, and leaves it running: FREEZE, THAW and RESIZE. */

#include "scheduler/daemon/daemon.h"

/* GUEST_FROZEN and the like: whose answer says whether it was done. 0: it is another action. */
BerthEventKind berth_op_result_of(BerthActionKind kind);
/* It is asked for again. */
gboolean berth_op_may_pass(const GError *error);
/* REPLY (may be NULL), if it is that of a guest that could be neither resized nor given back what it had; else NULL. */
const Berth__ResizeGuestReply *berth_op_settled(const BerthCoreAction *action,
                                                const ProtobufCMessage *reply);
/* Tells the core. WHY NULL: it is done; else who asked for it reads that in the event log. HAS (or NULL): what it has instead of
 * what was wanted. */
void berth_op_answered(BerthDaemon *daemon, const BerthCoreAction *action, const char *why,
                       const Berth__ResizeGuestReply *has);
