/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What the coming and going of nodes means for their guests. */
void core_session_joined(BerthCore *core, CoreNode *node, const BerthCoreNodeInfo *info,
                         const BerthFoundGuest *guests, gsize n_guests);
void core_session_left(BerthCore *core, CoreNode *node);
/* What it says of itself has changed. */
void core_session_changed(BerthCore *core, CoreNode *node, const BerthCoreNodeInfo *info);
/* It could not start a guest of JOB, which was not the job's fault; or it could. */
void core_session_start_failed(BerthCore *core, CoreNode *node, guint64 job);
void core_session_start_worked(CoreNode *node);
/* Gives every node that was closed for failed starts a chance: what was wrong is over. */
void core_session_reopen_all(BerthCore *core);
/* Its host is known to be dead: a node that is DOWN is LOST at once. */
void core_session_given_up(BerthCore *core, CoreNode *node);
/* Its timer: its time to come back, or to be closed, is over. */
void core_session_timed_out(BerthCore *core, CoreNode *node);
/* What may be of GUEST on NODE, besides where it is, is to go. */
void core_session_expect_stray(BerthCore *core, CoreNode *node, const CoreGuest *guest);
/* TRUE: GUEST was a stray that a node had to release, and has. FROM: which node says so; 0 = not
 * told. */
gboolean core_session_stray_released(BerthCore *core, const BerthGuestId *guest, guint32 from);
/* Tells the guests of a lost node so. */
void core_session_give_up_guests(BerthCore *core, CoreNode *node);
