/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

void core_timers_init(CoreHeap *timers);
/* Sets or moves; G_MAXINT64 = clears. */
void core_timer_set(BerthCore *core, CoreTimer *timer, gint64 due_usec);
void core_timer_clear(BerthCore *core, CoreTimer *timer);
/* Takes out and gives the next one that is due at NOW; NULL = none. */
CoreTimer *core_timers_pop_due(BerthCore *core, gint64 now_usec);

/* Sums that stop at G_MAXINT64 instead of overflowing; the addends are not negative. */
gint64 core_time_add(gint64 a_usec, gint64 b_usec);
/* When to try again after FAILURES (0 is taken as 1) in a row: start_backoff, doubled with each. */
gint64 core_backoff_end(const BerthCore *core, guint32 failures);
