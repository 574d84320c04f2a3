/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Says on standard error, once somebody has waited for a few seconds, what he waits for: that the job's node has no session,
 * so that nothing is heard of it and nothing done to it; and, for who waits for it to run, why it does not. It says so
 * again when that is another. It lives on the main loop, which a call on the connection runs. */
typedef struct BerthWaitNote BerthWaitNote;

/* Begins, for JOB, or its task TASK (copied); NULL: it is no array. CLI must outlive it. */
BerthWaitNote *berth_wait_note_new(BerthCli *cli, guint64 job, const guint32 *task,
                                   gboolean tells_reason);
/* Likewise, for the one of TASKS (NULL: the job is no array); NULL if they are several. */
BerthWaitNote *berth_wait_note_new_of(BerthCli *cli, guint64 job, const BerthIndexSet *tasks,
                                      gboolean tells_reason);
/* Ends it; a request that is under way is given up. */
void berth_wait_note_free(BerthWaitNote *note);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthWaitNote, berth_wait_note_free)
