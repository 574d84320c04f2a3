/* SPDX-License-Identifier: Apache-2.0 */
/* Owns streaming quantiles. Buckets 0..63 are the values themselves; from there on each doubling of
 * the value has 64 buckets. */
#include "config.h"

#include "scheduler/sim/quantile.h"

#define SUB_BITS 6
#define SUBS     (1u << SUB_BITS)

static guint bucket_of(guint64 value)
{
    if (value < SUBS)
        return (guint)value;
    guint top = 63u - (guint)__builtin_clzll(value);
    guint shift = top - SUB_BITS;
    return SUBS * (shift + 1) + (guint)(value >> shift) - SUBS;
}

static double middle_of(guint bucket)
{
    if (bucket < SUBS)
        return bucket;
    guint shift = bucket / SUBS - 1;
    double lower = (double)((guint64)(SUBS + bucket % SUBS) << shift);
    double width = (double)(G_GUINT64_CONSTANT(1) << shift);
    return lower + (width - 1) / 2;
}

void sim_quantiles_add(SimQuantiles *quantiles, guint64 value, double weight)
{
    quantiles->weights[bucket_of(value)] += weight;
    quantiles->total += weight;
}

double sim_quantiles_get(const SimQuantiles *quantiles, double share)
{
    double below = 0, wanted = share * quantiles->total;
    guint last = 0;
    for (guint i = 0; i < SIM_QUANTILE_BUCKETS; i++) {
        if (!(quantiles->weights[i] > 0))
            continue;
        below += quantiles->weights[i];
        last = i;
        if (below >= wanted)
            break;
    }
    return quantiles->total > 0 ? middle_of(last) : 0;
}
