/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>
#include <stdio.h>

/* Values as people read them (sizes and durations: common/units.h). All strings are (transfer
 * full) unless they are const. */

const char *berth_job_state_name(Berth__JobState state); /* "PENDING" */
const char *berth_event_name(Berth__Event__Kind kind);   /* "guest-start" */
const char *berth_reason_name(Berth__Reason reason);     /* "resources" */
/* "resources: no node has enough left"; "" if there is none, and the text alone where only that is. */
char *berth_reason_format(const Berth__Task *task);
/* "RUNNING on n1 since 2026-03-01 12:30:05: evicted": how it stands, in a line. */
char *berth_task_format_state(const Berth__Task *task);
/* What is done to the guest of TASK until its command runs: "booting", or "restoring" where it is to go on; NULL: nothing. */
const char *berth_task_start_name(const Berth__Task *task);
const char *berth_node_state_name(Berth__NodeState state); /* "up" */
/* "draining"; "closed": for a reason that lies in the node. Else its state. */
const char *berth_node_condition_name(const Berth__Node *node);
/* "drained", "cordoned", "given up": what was done to it. */
const char *berth_node_admission_name(const Berth__NodeAdmission *admission);
/* What counts against its time limit: what it ran before, up to the checkpoint that it went on from, and since, less what
 * it is not charged for. */
guint64 berth_task_used_usec(const Berth__Task *task, guint64 now_usec);
char *berth_format_time(guint64 usec); /* local "2026-03-01 12:00:05", NULL for 0 */

/* One "Label: value" line; nothing if VALUE is NULL or empty. Control characters are replaced. */
void berth_print_field(const char *label, const char *value);
void berth_print_fieldf(const char *label, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Shares of the time for which somebody stalled, or all did at once, in hundredths of a percent. */
typedef struct {
    guint32 cpu_some, memory_some, memory_full, io_some, io_full;
} BerthStalls;

/* Such a line, which begins with WHEN; nothing if nobody stalled. DISK: whose. */
void berth_print_stalls(const BerthStalls *stalls, const char *when, const char *disk);
