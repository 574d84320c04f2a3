/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where guests on nodes are drawn: each in its node's row, as high as it has vCPUs. */

#include <glib.h>

typedef struct {
    gint64 from_usec, to_usec;
    guint32 node; /* from 1 */
    guint32 vcpus;
    gboolean is_slack;
    guint mark; /* the caller's */
} GanttStay;

/* A part of a stay: vCPUs LOW to HIGH of the row, of guaranteed guests from 0 on, of those in slack
 * likewise. A stay has several parts where no gap is wide enough for it. */
typedef struct {
    const GanttStay *stay;
    guint64 low, high;
    gboolean is_first;
} GanttPart;

/* STAYS (GanttStay; sorted by this function) into parts, so that none of a node overlap (transfer
 * full). *OUT_GUARANTEED, *OUT_SLACK: the highest row of each kind. */
GArray *gantt_stack(GArray *stays, guint64 *out_guaranteed, guint64 *out_slack);
