/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Charts as SVG, drawn by gnuplot: utilisation and reserved against used over time, queue length,
 * waits by width of the jobs, and nodes over time with moves marked. */

#include "scheduler/sim/report.h"

typedef struct SimPlot SimPlot;

/* Makes DIR. Errors: errno codes; UNAVAILABLE: there is no gnuplot (it names the package). */
SimPlot *sim_plot_new(const char *dir, GError **error);
void sim_plot_free(SimPlot *plot);

/* For the chart of nodes; the first SIM_PLOT_SEGMENTS of each policy are drawn. */
#define SIM_PLOT_SEGMENTS 20000u
void sim_plot_segment(SimPlot *plot, SimPolicy policy, const SimJob *job, guint32 node,
                      gint64 from_usec, gint64 to_usec, gboolean is_opportunistic, gboolean moved);

/* Writes DIR/NAME.dat and NAME.gp of each chart, and has gnuplot make NAME.svg of them. */
gboolean sim_plot_draw(SimPlot *plot, const SimWorkload *workload, const SimResult *results,
                       guint n, GError **error);
