/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the bins of quantities over time. */
#include "config.h"

#include "scheduler/sim/timeline.h"

SimTimeline *sim_timeline_new(void)
{
    SimTimeline *timeline = g_new0(SimTimeline, 1);
    timeline->bin_usec = G_USEC_PER_SEC;
    return timeline;
}

void sim_timeline_free(SimTimeline *timeline)
{
    g_free(timeline);
}

/* Two bins become one. */
static void widen(SimTimeline *timeline)
{
    for (guint i = 0; i < SIM_TIMELINE_BINS; i++) {
        gboolean has_pair = 2 * i + 1 < SIM_TIMELINE_BINS;
        for (guint k = 0; k < SIM_LINE_N; k++)
            timeline->sums[i][k] =
                has_pair ? timeline->sums[2 * i][k] + timeline->sums[2 * i + 1][k] : 0;
        timeline->usec[i] = has_pair ? timeline->usec[2 * i] + timeline->usec[2 * i + 1] : 0;
    }
    timeline->bin_usec *= 2;
    timeline->n_bins = (timeline->n_bins + 1) / 2;
}

void sim_timeline_add(SimTimeline *timeline, gint64 from_usec, gint64 to_usec,
                      const double values[SIM_LINE_N])
{
    while (to_usec > timeline->bin_usec * (gint64)SIM_TIMELINE_BINS)
        widen(timeline);
    while (from_usec < to_usec) {
        guint bin = (guint)(from_usec / timeline->bin_usec);
        gint64 end = MIN(to_usec, (gint64)(bin + 1) * timeline->bin_usec);
        double length = (double)(end - from_usec);
        for (guint k = 0; k < SIM_LINE_N; k++)
            timeline->sums[bin][k] += values[k] * length;
        timeline->usec[bin] += length;
        timeline->n_bins = MAX(timeline->n_bins, bin + 1);
        from_usec = end;
    }
}

double sim_timeline_mean(const SimTimeline *timeline, guint bin, SimLine line)
{
    return timeline->usec[bin] > 0 ? timeline->sums[bin][line] / timeline->usec[bin] : 0;
}
