/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What states, reasons and actions of the core are called where people read them. */

#include "scheduler/core/core.h"

/* As berth(1) shows it, "resources"; NULL: there is no such reason. */
const char *sim_reason_name(guint reason);
/* A clause: "no node has room for it now". */
const char *sim_reason_text(BerthReason reason);
/* "COMPLETED" */
const char *sim_state_name(BerthJobState state);
/* "migrate"; NULL: there is no such kind. */
const char *sim_action_verb(guint kind);

/* "migrate guest 0 on node NODE to node TO: why" (transfer full). */
char *sim_action_text(const BerthCoreAction *action, const char *node, const char *to);
/* "waits: why; planned to start 5 s from now" (transfer full). PLANNED_USEC 0 = it is not planned. */
char *sim_waiting_text(BerthReason reason, gint64 planned_usec, gint64 now_usec);

/* What is safe on a terminal and no longer than a message should be: valid UTF-8, '?' for each control
 * character (transfer full). */
char *sim_printable(const char *text);
