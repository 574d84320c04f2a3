/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What actions of the core are called where people read them; states and reasons: common/words.h. */

#include "scheduler/core/core.h"

/* "migrate"; NULL: there is no such kind. */
const char *sim_action_verb(guint kind);

/* "migrate guest 0 from node NODE to node TO: why" (transfer full). */
char *sim_action_text(const BerthCoreAction *action, const char *node, const char *to);
/* What is safe on a terminal and no longer than a message should be: valid UTF-8, '?' for each control
 * character (transfer full). */
char *sim_printable(const char *text);
