/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Charts as SVG, drawn by gnuplot: utilisation and reserved against used over time, queue length,
 * waits by width of the jobs, and nodes over time with moves and checkpoints marked. */

#include "scheduler/sim/report.h"

typedef struct SimPlot SimPlot;

/* Makes DIR. Errors: errno codes; UNAVAILABLE: there is no gnuplot (it names the package). */
SimPlot *sim_plot_new(const char *dir, GError **error);
void sim_plot_free(SimPlot *plot);

/* For the chart of nodes: the first SIM_PLOT_STAYS of each policy on the first SIM_PLOT_NODES are
 * drawn; its title says so where there are more, and for how much of the time it stands. */
#define SIM_PLOT_STAYS 20000u
#define SIM_PLOT_NODES 64u
void sim_plot_stay(SimPlot *plot, SimPolicy policy, const SimStay *stay);

/* Writes DIR/NAME.dat and NAME.gp of each chart, and has gnuplot make NAME.svg of them. Charts of
 * policies that are not among RESULTS are removed from DIR, and those of waiting where they are of the bound alone. */
gboolean sim_plot_draw(SimPlot *plot, const SimWorkload *workload, const SimResult *results,
                       guint n, GError **error);
