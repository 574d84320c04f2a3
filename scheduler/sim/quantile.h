/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Weighted quantiles of a stream in constant memory: a histogram whose buckets are 1/64 wide
 * relative to their lower end (as HdrHistogram, Tene 2012), so that a quantile is off by at most
 * 0.8 % of its value. Exact for values below 64. Does not depend on the order of the values. */

#include <glib.h>

#define SIM_QUANTILE_BUCKETS (64 * 59)

typedef struct {
    double weights[SIM_QUANTILE_BUCKETS];
    double total;
} SimQuantiles;

void sim_quantiles_add(SimQuantiles *quantiles, guint64 value, double weight);
/* The middle of the bucket below or in which SHARE (0 .. 1) of the weight lies; 0 without any. */
double sim_quantiles_get(const SimQuantiles *quantiles, double share);
