/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Notes in the effects of the event under way. An action for a node without a session does not
 * leave: sessions.c emits what is outstanding when the node joins. */
void core_emit(BerthCore *core, BerthActionKind kind, const CoreGuest *guest, BerthReason reason);
/* The same in two steps, for an action of which more is to be said. */
BerthCoreAction core_action(BerthCore *core, BerthActionKind kind, const CoreGuest *guest,
                            BerthReason reason);
void core_emit_action(BerthCore *core, const BerthCoreAction *action);
void core_emit_release_of_stray(BerthCore *core, const CoreNode *node, BerthGuestId guest);
void core_emit_changed(BerthCore *core, CoreTask *task);
/* For those of its tasks that have no record of their own: names the first. */
void core_emit_job_changed(BerthCore *core, CoreJob *job);
void core_emit_node(BerthCore *core, const CoreNode *node);
BerthGuestId core_guest_id(const CoreGuest *guest);
