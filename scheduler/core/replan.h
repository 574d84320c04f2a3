/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/plan.h"

/* The planned starts of PART are gone through in the order of the jobs: each of them stands, or is
 * dropped and searched for again. Between begin and end tasks may start. */
void core_replan_begin(BerthCore *core, CorePlanPart part);
/* Number AT of them is the next task of JOB, and stands: what a search beside those before it would
 * say. FALSE: there is none, or it does not; in that case it is dropped. So are those that were there
 * of jobs that no longer wait. */
gboolean core_replan_stands(BerthCore *core, CorePlanPart part, guint at, const CoreJob *job,
                            gint64 rank);
/* There are N of them now. */
void core_replan_end(BerthCore *core, CorePlanPart part, guint n);
/* Each of them is where and when a search beside those before it says, as far as none is late. For
 * invariants, as long as nothing has changed since PART was gone through. */
gboolean core_replan_is_sound(BerthCore *core, CorePlanPart part);
