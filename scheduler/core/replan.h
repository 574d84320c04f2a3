/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* The firm planned starts are gone through in the order of the jobs: each of them stands, or is
 * dropped and searched for again. Between begin and end tasks may start. */
void core_replan_begin(BerthCore *core);
/* Number AT of them is the next task of JOB, and stands: what a search beside those before it would
 * say. FALSE: there is none, or it does not; in that case it is dropped. So are those that were there
 * of jobs that no longer wait. */
gboolean core_replan_stands(BerthCore *core, guint at, const CoreJob *job, gint64 rank);
/* There are N of them now. */
void core_replan_end(BerthCore *core, guint n);
/* Each of them is where and when a search beside those before it says, as far as none is late. For
 * invariants, after a pass. */
gboolean core_replan_is_sound(BerthCore *core);
