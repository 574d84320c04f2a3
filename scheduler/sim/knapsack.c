/* SPDX-License-Identifier: Apache-2.0 */
/* Owns curves of work against memory-time, and the knapsack of them.
 *
 * A point of a curve is how far its job may come. Whatever points are chosen, one of each job, their
 * work is at most that of the majorants at the same memory-time; and of majorants, which are concave,
 * the most is done by taking pieces by their ratio, largest first (Dantzig 1957): that takes those of one job in
 * their order. Pieces are put by in buckets of ratios; nothing else is kept of a job. */
#include "config.h"

#include "scheduler/sim/knapsack.h"

#include <math.h>

/* 64 for each doubling, from 2^-64 to 2^64. */
#define RATIO_SUBS      64
#define RATIO_EXPONENTS 128
#define RATIO_BUCKETS   (RATIO_SUBS * RATIO_EXPONENTS)

typedef struct {
    double cpu, mem;
} Piece;

struct SimCurve {
    GArray *pieces; /* Piece, by falling ratio */
};

struct SimKnapsack {
    Piece buckets[RATIO_BUCKETS];
};

/* --- curves ------------------------------------------------------------------------------------- */

SimCurve *sim_curve_new(void)
{
    SimCurve *curve = g_new0(SimCurve, 1);
    curve->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    return curve;
}

void sim_curve_free(SimCurve *curve)
{
    if (curve == NULL)
        return;
    g_array_unref(curve->pieces);
    g_free(curve);
}

/* Those that are no better than what follows are one with it: whoever wants that has to do them first. */
void sim_curve_add(SimCurve *curve, double cpu, double mem)
{
    GArray *pieces = curve->pieces;
    Piece next = {cpu, mem};
    while (pieces->len > 0) {
        Piece last = g_array_index(pieces, Piece, pieces->len - 1);
        if (last.cpu * next.mem > next.cpu * last.mem)
            break;
        next.cpu += last.cpu;
        next.mem += last.mem;
        g_array_set_size(pieces, pieces->len - 1);
    }
    g_array_append_val(pieces, next);
}

/* --- the knapsack ------------------------------------------------------------------------------- */

SimKnapsack *sim_knapsack_new(void)
{
    return g_new0(SimKnapsack, 1);
}

void sim_knapsack_free(SimKnapsack *knapsack)
{
    g_free(knapsack);
}

static guint bucket_of(double ratio)
{
    int exponent;
    double fraction = frexp(ratio, &exponent); /* [0.5, 1) */
    exponent = CLAMP(exponent + RATIO_EXPONENTS / 2, 0, RATIO_EXPONENTS - 1);
    return (guint)(exponent * RATIO_SUBS) + (guint)((fraction - 0.5) * 2 * RATIO_SUBS);
}

/* Upper end of the bucket's ratios. */
static double ratio_of(guint bucket)
{
    int exponent = (int)(bucket / RATIO_SUBS) - RATIO_EXPONENTS / 2;
    return ldexp(0.5 + (double)(bucket % RATIO_SUBS + 1) / (2 * RATIO_SUBS), exponent);
}

void sim_knapsack_add(SimKnapsack *knapsack, const SimCurve *curve)
{
    for (guint i = 0; i < curve->pieces->len; i++) {
        const Piece *piece = &g_array_index(curve->pieces, Piece, i);
        if (piece->cpu <= 0)
            continue;
        Piece *bucket = &knapsack->buckets[bucket_of(piece->cpu / MAX(piece->mem, 1e-9))];
        bucket->cpu += piece->cpu;
        bucket->mem += piece->mem;
    }
}

void sim_knapsack_add_all(SimKnapsack *knapsack, const SimKnapsack *other)
{
    for (guint i = 0; i < RATIO_BUCKETS; i++) {
        knapsack->buckets[i].cpu += other->buckets[i].cpu;
        knapsack->buckets[i].mem += other->buckets[i].mem;
    }
}

double sim_knapsack_most(const SimKnapsack *knapsack, double mem)
{
    double cpu = 0;
    for (guint i = RATIO_BUCKETS; i-- > 0 && mem > 0;) {
        const Piece *bucket = &knapsack->buckets[i];
        cpu += bucket->mem <= mem ? bucket->cpu : MIN(bucket->cpu, mem * ratio_of(i));
        mem -= bucket->mem;
    }
    return cpu;
}
