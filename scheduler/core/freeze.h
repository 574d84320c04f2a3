/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Guests that are to stand still: at their limit, or because somebody asked for it. */

/* GUEST's task is to stand still from now on, for REASON (FROZEN_BY_USER, FROZEN_BY_OPERATOR, AT_LIMIT),
 * or, NONE, to run. Done as soon as nothing else is being done to it. */
void core_freeze_want(BerthCore *core, CoreGuest *guest, BerthReason reason);
/* ... and without a guest, as a checkpoint, from which it goes on when it is thawed. Its reason follows. */
void core_freeze_want_to_disk(BerthCore *core, CoreGuest *guest);
/* ... because its time limit has come: it goes on when that is extended. For its checkpoint there is space, and
 * nothing is being done to GUEST. */
void core_freeze_at_time_limit(BerthCore *core, CoreGuest *guest);
/* TASK stands still for that, or will when its checkpoint is done. */
gboolean core_freeze_is_at_time_limit(const CoreTask *task);
/* That could not be done: GUEST runs on, or stands still where it is as it did before. */
void core_freeze_to_disk_failed(BerthCore *core, CoreGuest *guest);
/* Nothing is being done to GUEST any more, it runs now, or its node is back: what is wanted and not so
 * begins. */
void core_freeze_settle(BerthCore *core, CoreGuest *guest);
/* GUEST gets more: if it stands still at its limit, it is to go on with that. */
void core_freeze_goes_on(CoreGuest *guest);
/* GUEST was to get more, for REASON, and does not: one that stood still at its limit does not go on with what was too little, unless
 * somebody wants it to. */
void core_freeze_stays(const BerthCore *core, CoreGuest *guest, BerthReason reason);
/* RESIZE was answered, by which GUEST was to have more, and go on if it stood still: if it is wanted to stand still by now, it
 * is frozen anew. To be called while the resize is under way yet. */
void core_freeze_went_on(CoreGuest *guest);
/* It is frozen, or is not any more. OK FALSE: it could not be, and is not asked to again. */
void core_freeze_done(BerthCore *core, CoreGuest *guest, gboolean is_frozen, gboolean ok);
/* GUEST runs, and nobody knows whether what was last asked for is done. */
gboolean core_freeze_is_open(const CoreGuest *guest);
/* GUEST is put back, and that was so: asked for again when its node joins. */
void core_freeze_reopen(CoreGuest *guest);
/* Whether the time for which a task is frozen for REASON counts for its time limit. */
gboolean core_freeze_is_charged(BerthReason reason);
/* GUEST is to end: its agent lets it go on, so that it can. */
void core_freeze_end(BerthCore *core, CoreGuest *guest);
