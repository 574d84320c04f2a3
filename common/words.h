/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is said of reasons and of what the scheduler does, of simulated jobs and of real ones alike. */

#include "common/types.h"

/* As berth(1) shows it, "resources"; NULL: there is no such reason. */
const char *berth_words_reason_name(guint reason);
/* A clause: "no node has room for it now". */
const char *berth_words_reason(BerthReason reason);
/* "COMPLETED"; NULL: there is no such state. */
const char *berth_words_state(BerthJobState state);

/* "WHAT on node NODE: why", "WHAT from node NODE to node TO, in slack: why"; TO NULL: it stays there, REASON
 * NONE: why is not told (transfer full). */
char *berth_words_deed(const char *what, const char *node, const char *to, gboolean in_slack,
                       BerthReason reason);
/* "waits: why; planned to start 5 s from now" (transfer full). PLANNED_USEC 0 = it is not planned. */
char *berth_words_waiting(BerthReason reason, gint64 planned_usec, gint64 now_usec);
