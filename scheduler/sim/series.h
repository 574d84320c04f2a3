/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Usage of virtual machines over time: a set of series on a grid of five minutes. */

#include <glib.h>

#define SIM_SAMPLE_SEC  300
#define SIM_SERIES_FULL 10000u /* a sample of 100 % */

typedef struct {
    char *name;
    gint64 first_sec;
    guint32 vcpus;      /* provisioned; 0 = the trace does not say */
    guint64 memory_mib; /* provisioned; 0 = the trace does not say */
    guint32 n_samples;  /* > 0 */
    guint16 *cpu;       /* of what is provisioned, in 1/10000, at most SIM_SERIES_FULL */
    guint16 *memory;    /* the same; NULL = the trace does not say */
} SimSeries;

typedef struct {
    GPtrArray *series; /* SimSeries */
} SimSeriesSet;

SimSeriesSet *sim_series_set_new(void);
void sim_series_set_free(SimSeriesSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimSeriesSet, sim_series_set_free)

static inline const SimSeries *sim_series_get(const SimSeriesSet *set, guint i)
{
    return (const SimSeries *)g_ptr_array_index(set->series, i);
}
