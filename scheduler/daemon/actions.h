/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Carries the core's actions out, after their commit: START, RESTORE, STOP, RELEASE, FREEZE and THAW by
 * the node's session, FENCE by storage (fencing.h). Results go back as events. An action whose node has no session is
 * dropped: the core decides it again when the node joins. */

BerthActions *berth_actions_new(BerthDaemon *daemon);
void berth_actions_free(BerthActions *actions);

void berth_actions_act(BerthActions *actions, const BerthCoreAction *action);
/* A guest on NODE that nobody wants: has it removed. */
void berth_actions_release_stray(BerthActions *actions, guint32 node, const BerthGuestId *id);

/* Storage is ours: guests may be removed. Until then RELEASE waits. */
void berth_actions_let_go(BerthActions *actions);

/* Is it pointless to prepare a start again whose preparation here has failed with CODE? */
gboolean berth_actions_start_is_hopeless(int code);
