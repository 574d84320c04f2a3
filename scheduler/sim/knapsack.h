/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The most work that a machine's memory can hold in some time: jobs in a fractional knapsack, which
 * may be taken in part, but each from its beginning. */

#include <glib.h>

/* Of a job, from some instant of its run on: what it does in CPU seconds, and what that takes in MiB times seconds.
 * Kept as its least concave majorant, pieces of falling ratio, as what a job does when little of its memory-time
 * is there can only be less than that. */
typedef struct SimCurve SimCurve;

SimCurve *sim_curve_new(void);
void sim_curve_free(SimCurve *curve);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimCurve, sim_curve_free)
/* It goes on by so much; neither is negative. */
void sim_curve_add(SimCurve *curve, double cpu, double mem);

typedef struct SimKnapsack SimKnapsack;

SimKnapsack *sim_knapsack_new(void);
void sim_knapsack_free(SimKnapsack *knapsack);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimKnapsack, sim_knapsack_free)
void sim_knapsack_add(SimKnapsack *knapsack, const SimCurve *curve);
/* All that is in OTHER, too. */
void sim_knapsack_add_all(SimKnapsack *knapsack, const SimKnapsack *other);
/* CPU seconds that MEM can hold at most. Never too little; too much by 1/64 at most of what is of one ratio of
 * CPU to memory, and is taken in part. */
double sim_knapsack_most(const SimKnapsack *knapsack, double mem);
