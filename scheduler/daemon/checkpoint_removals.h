/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/engine.h"

/* Checkpoints that no record names any more, on their way out of storage. */

/* Who has the disk of a task open, or had it, as far as berthd knows: storage cannot tell a QEMU that was killed from one that it
 * has lost sight of. */
typedef struct {
    char **clients; /* addresses; NULL: not known */
    gboolean have_ended;
} BerthDiskUsers;
/* (transfer full) */
BerthDiskUsers *berth_disk_users_new(BerthDaemon *daemon, guint64 job, guint32 task);
void berth_disk_users_free(BerthDiskUsers *users);

typedef struct BerthCheckpointRemovals BerthCheckpointRemovals;

BerthCheckpointRemovals *berth_checkpoint_removals_new(BerthDaemon *daemon);
/* Those that are not begun are left to the collector. */
void berth_checkpoint_removals_free(BerthCheckpointRemovals *removals);

/* The one of TASK called SERIAL is removed from storage LATER_SEC after TURN, in which the record without it is written. */
void berth_checkpoint_removals_add(BerthCheckpointRemovals *removals, BerthTurn *turn,
                                   const Berth__Task *task, guint32 serial, guint later_sec);
