/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"
#include "storage/checkpoint_record.h"

/* Checkpoints that were under way when their guests were lost. Their nodes may have made them, and nobody has said so. */

/* Has the task of GUEST, which is not over, one to go on from? That is on its disk, which has the name of an older epoch until
 * it does. */
gboolean berth_checkpoint_is_known(BerthDaemon *daemon, const BerthGuestId *guest);
/* The name of the one that was being taken of GUEST (transfer full). NULL: there is no doubt. */
char *berth_checkpoint_doubted(BerthDaemon *daemon, const BerthGuestId *guest);
/* Looks for it, when nobody can make it any more. Its record (transfer full); NULL without ERROR: it was not made, or is
 * not to be used. Blocks. */
Berth__CheckpointRecord *berth_checkpoint_look(BerthStorage *storage, const char *checkpoint_id,
                                               GError **error);
/* Tells the core EVENT: that nothing is left of a guest of a node, and before that, if RECORD is not NULL and in doubt
 * still, that its task goes on from what that says. */
void berth_checkpoint_tell(BerthDaemon *daemon, const BerthCoreEvent *event,
                           const Berth__CheckpointRecord *record);
