/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What is done to running guests: migrations, checkpoints, changes of weight. */

/* Whether GUEST could be moved, or checkpointed, as far as it, its job and the features say. */
gboolean core_move_may_migrate(const BerthCore *core, const CoreGuest *guest);
gboolean core_move_may_checkpoint(const BerthCore *core, const CoreGuest *guest);
/* The same, whatever is being done to it now; could migrate: as soon as it runs, unless it is to end. */
gboolean core_move_could_migrate(const BerthCore *core, const CoreGuest *guest);
gboolean core_move_could_checkpoint(const BerthCore *core, const CoreGuest *guest);
/* Room is held on TO from now on. To be backed it leaves when the memory is free there (room.h). */
void core_move_migrate(BerthCore *core, CoreGuest *guest, CoreNode *to, gboolean is_opportunistic,
                       BerthReason reason);
/* STOPS: it stands still after that, to leave its node; else it runs on. */
void core_move_checkpoint(BerthCore *core, CoreGuest *guest, gboolean stops, BerthReason reason);
/* GUEST, in slack, is backed by its node from now on. */
void core_move_promote(BerthCore *core, CoreGuest *guest);
/* It is backed there, with room for SIZE, overhead included, to which it is resized on arrival. */
void core_move_migrate_to_resize(BerthCore *core, CoreGuest *guest, CoreNode *to, CoreSize size,
                                 BerthReason reason);
/* GUEST gets SIZE, overhead included, where it is; the larger of both is held. More memory of one that is backed it gets when
 * that is free (room.h). */
void core_move_resize(BerthCore *core, CoreGuest *guest, CoreSize size, BerthReason reason);
/* TO_MIB of GUEST's memory are kept from it; if that is more than now, it is left alone for longer each
 * time. */
void core_move_balloon(BerthCore *core, CoreGuest *guest, guint64 to_mib, BerthReason reason);
/* For the reason that its task's record gives: freeze.h. */
void core_move_freeze(BerthCore *core, CoreGuest *guest, gboolean freeze);
/* Nothing is being done to it, and nothing is in the way of it. */
gboolean core_move_is_at_rest(const CoreGuest *guest);
/* It is, or would be, if what waits for room were given up: core_move_let_go(). */
gboolean core_move_is_free(const CoreGuest *guest);
/* GUEST's move, or growth, has waited for room, and leaves now. */
void core_move_leaves(BerthCore *core, CoreGuest *guest);
/* ... or is not waited for any more, as if it had failed. IS_UNWANTED: nobody is at fault. */
void core_move_give_up(BerthCore *core, CoreGuest *guest, gboolean is_unwanted);
/* The same, if it waits, where the caller begins something else with it at once. */
void core_move_let_go(BerthCore *core, CoreGuest *guest);
/* The op's result. Migrated: GUEST is where it says. */
void core_move_migrated(BerthCore *core, CoreGuest *guest, gboolean ok);
/* HAS: what it has where it is not ok; vcpus 0 = what it had. */
void core_move_resized(BerthCore *core, CoreGuest *guest, gboolean ok, const BerthResources *has);
void core_move_op_done(BerthCore *core, CoreGuest *guest);
/* GUEST is being removed: nothing is done to it any more. */
void core_move_drop_op(BerthCore *core, CoreGuest *guest);
/* Restored: what was under way with GUEST still is. */
void core_move_restore(BerthCore *core, CoreGuest *guest, const BerthCoreGuest *source);
/* What was restored goes on. */
void core_move_resume(BerthCore *core, CoreGuest *guest);
/* The node joined: what was not answered leaves again. */
void core_move_again(BerthCore *core, const CoreGuest *guest);
/* What RECORD, of its task, says of GUEST's size, and of the move or the resize that is under way with it. */
void core_move_record(const CoreGuest *guest, BerthCoreTask *record);
/* GUEST is put back, and RECORD says that it was being moved or resized: asked for again when its node joins. */
void core_move_reopen(BerthCore *core, CoreGuest *guest, const BerthCoreTask *record);
/* Likewise, that it was being checkpointed. */
void core_move_reopen_checkpoint(BerthCore *core, CoreGuest *guest);
/* Undoes either, for one that is put back otherwise. */
void core_move_unreopen(BerthCore *core, CoreGuest *guest);
/* The move of GUEST that is under way is called off, as far as that is possible. */
void core_move_call_off(BerthCore *core, CoreGuest *guest);
/* How long moving GUEST takes, and how long a checkpoint of it. */
gint64 core_move_migrate_usec(const BerthCore *core, const CoreGuest *guest);
gint64 core_move_checkpoint_usec(const BerthCore *core, const CoreGuest *guest);
/* The longer of those of both ways that one of CLASS can go, for a guest of which only MIB to copy are known, and SIGNAL_USEC
 * that it is given before it is saved. */
gint64 core_move_away_usec(const BerthCore *core, const CoreClass *class, guint64 mib,
                           gint64 signal_usec);
/* GUEST could not be moved, or saved to leave: no drain and no relief moves it for a while, longer each time. */
void core_move_rest(BerthCore *core, CoreGuest *guest);
/* A checkpoint that was to make room has worked, or not: then the next is not begun before it has rested, likewise. */
void core_move_saved_for_room(BerthCore *core, CoreGuest *guest, gboolean ok);
/* For so long would it be left alone after its next move for the good of others. */
gint64 core_move_back_off_usec(const BerthCore *core, const CoreGuest *guest);
/* GUEST moves for the good of others: each time it does, it is left alone for twice as long. */
void core_move_back_off(BerthCore *core, CoreGuest *guest);
/* The latest guest that was to move to NODE did not come, not long ago: others are taken if they will do. */
gboolean core_move_was_refused(const BerthCore *core, const CoreNode *node);
/* Whether OP counts as one of those; and that SIGN * 1 more of them, that of GUEST, is under way. */
gboolean core_move_is_counted(BerthGuestOp op);
void core_move_count(BerthCore *core, CoreGuest *guest, gint sign);
/* SIZE, overhead included, is held for GUEST where it is. */
void core_move_hold_size(BerthCore *core, CoreGuest *guest, CoreSize size);
/* Of RESOURCES; where these are not told, OTHER. */
CoreSize core_move_size_or(const BerthCore *core, const BerthResources *resources, CoreSize other);
/* So many moves and checkpoints may be under way in the cluster at a time, where nobody waits for their room. */
gint64 core_move_cluster_cap(const BerthCore *core);
/* TRUE: one more may begin at NODE, and in the cluster. */
gboolean core_move_is_below_caps(const BerthCore *core, const CoreNode *node);
/* TRUE: one more may be under way, whoever waits for room first. */
gboolean core_move_has_turn_at(const BerthCore *core, const CoreNode *node);
/* The cluster's cap lets one more be under way. */
gboolean core_move_is_any_left(const BerthCore *core);
/* GUEST's move, which waits for room, could be under way: at both of its ends. */
gboolean core_move_has_turn(const BerthCore *core, const CoreGuest *guest);
/* Likewise N more. */
gboolean core_move_are_below_caps(const BerthCore *core, const CoreNode *node, guint n);
