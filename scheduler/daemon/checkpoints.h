/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* CHECKPOINT actions on their way, and the checkpoints that tasks have. */

BerthCheckpoints *berth_checkpoints_new(BerthDaemon *daemon);
void berth_checkpoints_free(BerthCheckpoints *checkpoints);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthCheckpoints, berth_checkpoints_free)

/* A CHECKPOINT whose commit is done; the same again after its node joined. */
void berth_checkpoints_begin(BerthCheckpoints *checkpoints, const BerthCoreAction *action);

/* The one that TASK is to be restored from has turned out to be of no use: WHY. FALSE: it has no other; nothing is
 * done. Else the core has been told of the one before it. */
gboolean berth_checkpoints_give_up(BerthCheckpoints *checkpoints, const BerthGuestId *guest,
                                   const char *why);
/* ASKER wants that of TASK called SERIAL to be removed: in TURN. */
gboolean berth_checkpoints_remove(BerthCheckpoints *checkpoints, BerthTurn *turn, guint64 job,
                                  guint32 task, guint32 serial, const BerthAsker *asker,
                                  GError **error);

/* CHECKPOINT of GUEST, whose task is not over, is in storage, which its node, NODE, could not say any more: in TURN it is
 * added, with what it was TAKEN with, and the task goes on from it. */
void berth_checkpoints_found(BerthCheckpoints *checkpoints, BerthTurn *turn,
                             const BerthGuestId *guest, guint32 node,
                             const BerthCoreCheckpoint *checkpoint,
                             const Berth__CheckpointGuestReply *taken);

/* The guest of ENTRY has gone on from what its task restores from: later ones are removed, in TURN. Their output was
 * cut off, and what is written now takes its place. */
void berth_checkpoints_restored(BerthCheckpoints *checkpoints, BerthTurn *turn,
                                BerthTaskEntry *entry);

/* What the core needs of the one called SERIAL (0: the newest). FALSE: TASK has none such. Pure. */
gboolean berth_checkpoints_find(const Berth__Task *task, guint32 serial,
                                BerthCoreCheckpoint *out_checkpoint);
/* Is the checkpoint called ID in storage garbage? FALSE also for names that are not of Berth's making, and for
 * jobs with numbers that were never given out. */
gboolean berth_checkpoints_is_dead(BerthJobTable *jobs, guint64 next_job, const char *id);
