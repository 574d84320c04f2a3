/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A few quantities over time in constant memory: means over bins, whose width doubles whenever the
 * time outgrows their number. */

#include <glib.h>

typedef enum {
    SIM_LINE_CPU_USED, /* vCPUs */
    SIM_LINE_CPU_RESERVED,
    SIM_LINE_CPU_WANTED,  /* by guests that run */
    SIM_LINE_CPU_SLACK,   /* reserved by opportunistic guests */
    SIM_LINE_MEMORY_USED, /* MiB */
    SIM_LINE_MEMORY_RESERVED,
    SIM_LINE_WAITING, /* jobs */
    SIM_LINE_RUNNING,
    SIM_LINE_N,
} SimLine;

#define SIM_TIMELINE_BINS 1024u

typedef struct {
    gint64 bin_usec;
    guint n_bins;                               /* begun */
    double sums[SIM_TIMELINE_BINS][SIM_LINE_N]; /* value times usec */
    double usec[SIM_TIMELINE_BINS];
} SimTimeline;

SimTimeline *sim_timeline_new(void);
void sim_timeline_free(SimTimeline *timeline);
/* VALUES held from FROM to TO; times never go back. */
void sim_timeline_add(SimTimeline *timeline, gint64 from_usec, gint64 to_usec,
                      const double values[SIM_LINE_N]);
double sim_timeline_mean(const SimTimeline *timeline, guint bin, SimLine line);
