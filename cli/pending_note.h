/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Says on standard error why a job waits, for whom its output is waited for: once it has been pending
 * for a few seconds, and again when the reason is another. It lives on the main loop, which a call on
 * the connection runs. */
typedef struct BerthPendingNote BerthPendingNote;

/* Begins. CLI must outlive it. */
BerthPendingNote *berth_pending_note_new(BerthCli *cli, guint64 job, const guint32 *task);
/* Ends it; a request that is under way is given up. */
void berth_pending_note_free(BerthPendingNote *note);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthPendingNote, berth_pending_note_free)
