/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Forgets jobs that have ended long ago, with their output, their events and what they were submitted with, so that neither the
 * database nor storage grows without end. */

/* KEEP_SEC: for so long after its last event a job is kept; 0: all are, for ever. */
BerthHistory *berth_history_new(BerthDaemon *daemon, guint keep_sec);
/* Nothing may be under way: see berth_workers_drain(). */
void berth_history_free(BerthHistory *history);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthHistory, berth_history_free)
/* Looks for what is to go now, unless it does so already, and every hour from then on. */
void berth_history_run(BerthHistory *history);
/* It looks no more. */
void berth_history_stop(BerthHistory *history);
