/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"
#include "scheduler/daemon/job_table.h"
#include "scheduler/daemon/node_table.h"

/* From what a node counts of a guest since its start to what the core takes: the use since the last
 * time. Pure.
 *
 * Notes in ENTRY what was counted at NOW_USEC. FALSE: there is nothing for the core yet, as nothing
 * can be compared with: the first report of a guest since its command runs (RUNS), or since berthd was restarted, if its node
 * does not know its rates yet; or it has not measured its memory. What the guest was starved of meanwhile is in the next one; while its command does not run it
 * is nobody's loss, and what it uses to boot says nothing of what it needs. */
gboolean berth_usage_to_core(BerthTaskEntry *entry, gboolean runs, const Berth__Usage *usage,
                             gint64 now_usec, BerthCoreUsage *out_usage);
/* The same of a node's REPORT, which has node usage; notes it in ENTRY. What its guests have used since
 * the last time is 0 where there is nothing to compare with. */
void berth_usage_node_to_core(BerthNodeEntry *entry, const Berth__ReportRequest *report,
                              gint64 now_usec, BerthCoreNodeUsage *out_usage);
