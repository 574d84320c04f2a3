/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/task.h"

/* What is saved of running guests, what that takes of storage, and what they go on from. */

/* That GUEST's memory, as large as it is now, may take: each page with its header (9 bytes of 4096: QEMU's
 * docs/devel/migration.rst; counted as 1/256), and the devices. */
guint64 core_checkpoint_space_mib(const BerthCore *core, const CoreGuest *guest);
/* What GUEST may need of that without being asked, while it is in slack, or on its way there, and may be checkpointed; beyond what is
 * kept for it to leave with. */
guint64 core_checkpoint_slack_mib(const BerthCore *core, const CoreGuest *guest);
/* That is counted: to be called whenever its memory, its phase, or anything else of that, has changed. */
void core_checkpoint_count_slack(BerthCore *core, CoreGuest *guest);
/* Storage has so much left. */
void core_checkpoint_room_changed(BerthCore *core, guint64 room_mib);
/* That is still left for checkpoints, of what guests in slack may not need: of what the site gives them, and of what
 * storage can still take. */
guint64 core_checkpoint_space_left_mib(const BerthCore *core);
/* ... of what others there may not need: OWN_MIB of it is kept for who asks. */
guint64 core_checkpoint_space_left_beside_mib(const BerthCore *core, guint64 own_mib);
/* A guest of CLASS may start in slack, as far as that goes. */
gboolean core_checkpoint_has_space_in_slack(const BerthCore *core, const CoreClass *class);
/* GUEST may move into slack, likewise, beside BESIDE_MIB more than is counted. */
gboolean core_checkpoint_has_space_to_lodge(const BerthCore *core, const CoreGuest *guest,
                                            guint64 beside_mib);
/* That TASK needs beyond what is kept for it already, to be checkpointed and to run on. One that is wanted and one to leave with
 * are the same; of a guest in slack only as long as it is to leave by itself: it may still have to. */
guint64 core_checkpoint_needs_mib(const BerthCore *core, const CoreTask *task);
/* Keeps that until its checkpoint is done, or it leaves its node. FALSE: there is not so much left. */
gboolean core_checkpoint_keep_space(BerthCore *core, CoreTask *task);
/* Likewise for one with which its guest leaves: what it may need in slack is its own, and serves. What is kept already stays
 * so. */
gboolean core_checkpoint_keep_space_to_leave(BerthCore *core, CoreTask *task);
/* That TASK needs beyond what is kept for it already, to be frozen to disk. A checkpoint that is under way while it runs on is
 * another one: as long as both are to come there is space for both. */
guint64 core_checkpoint_needs_to_disk_mib(const BerthCore *core, const CoreTask *task);
/* Keeps that; to be called before that is wanted. */
void core_checkpoint_keep_space_to_disk(BerthCore *core, CoreTask *task);
/* It is not to be frozen to disk any more: what is kept is free, but for one that is wanted or under way. */
void core_checkpoint_free_space(BerthCore *core, CoreTask *task);
/* TASK, which has space kept, is to be checkpointed for REASON, and to run on. */
void core_checkpoint_want(BerthCore *core, CoreTask *task, BerthReason reason);
/* GUEST is at rest, and as frozen as it is to be: what is wanted begins. */
void core_checkpoint_settle(BerthCore *core, CoreGuest *guest);
/* GUEST, at rest, is to be frozen to disk: begins, or waits. FALSE: there is no space, which is told. */
gboolean core_checkpoint_to_disk(BerthCore *core, CoreGuest *guest);
/* More of those that wait may be begun. */
void core_checkpoint_begin_some(BerthCore *core);
/* TASK's next is due. */
void core_checkpoint_due(BerthCore *core, CoreTask *task);
/* One that is due and has not begun is not wanted any more. */
void core_checkpoint_due_no_more(BerthCore *core, CoreTask *task);
/* TASK runs, or its latest is done: when the next is due. */
void core_checkpoint_arm(BerthCore *core, CoreTask *task);
/* One is begun. */
void core_checkpoint_open(BerthCore *core, CoreTask *task, gboolean stops, BerthReason reason);
/* It has ended, as INPUT says. */
void core_checkpoint_close(BerthCore *core, CoreTask *task, const CoreTaskInput *input);
/* TASK's guest leaves: nothing of it is saved any more. */
void core_checkpoint_drop(BerthCore *core, CoreTask *task);
/* TASK's guest is lost: one that was under way may have been made all the same, which nobody has said. */
void core_checkpoint_doubt(BerthCore *core, CoreTask *task);
/* It is known which there are; or TASK is to go on from another one. */
void core_checkpoint_doubt_no_more(BerthCore *core, CoreTask *task);
/* TASK is put back. */
void core_checkpoint_restored(BerthCore *core, CoreTask *task);
/* TASK is over: what its checkpoints take is to be removed. */
void core_checkpoint_forget(BerthCore *core, CoreTask *task);
/* Of the task that ID names, NEWEST is left to go on from, and STORED_MIB are taken. */
void core_checkpoints_changed(BerthCore *core, const BerthGuestId *id,
                              const BerthCoreCheckpoint *newest, guint64 stored_mib);
