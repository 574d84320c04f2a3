/* SPDX-License-Identifier: Apache-2.0 */
/* Owns sets of series. Reading them is trace_vmseries.c's, drawing from them usage.c's. */
#include "config.h"

#include "scheduler/sim/series.h"

static void series_free(gpointer data)
{
    SimSeries *series = data;
    g_free(series->name);
    g_free(series->cpu);
    g_free(series->memory);
    g_free(series);
}

SimSeriesSet *sim_series_set_new(void)
{
    SimSeriesSet *set = g_new0(SimSeriesSet, 1);
    set->series = g_ptr_array_new_with_free_func(series_free);
    return set;
}

void sim_series_set_free(SimSeriesSet *set)
{
    if (set == NULL)
        return;
    g_ptr_array_unref(set->series);
    g_free(set);
}
