/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a gang has lost over time, from what each of its guests says that it lost. It goes at the pace
 * of its slowest guest: of what several lost in the same time it has lost the most, and of what they lost
 * one after the other the sum.
 *
 * Guests report at times of their own, and say how much they lost since, but not when. So the sum is kept
 * as it was at instants at which they reported; between two of these it grew evenly. A guest that lost so
 * much since its report before is taken to have lost it evenly too, and raises the sum in each stretch
 * where it lost more than was known. So what is wrong, when it was not evenly, is where in the time
 * between two reports it was: bursts that all share are spread, each differently, and count as more;
 * turns taken between two reports count as less.
 *
 * Points are in the order of time, and their sums never fall, nor are they more than the time since the
 * start. Of three in a row the outer ones are a second apart at least. When there is no room for more,
 * the older half goes on with every second of its points. */
#include "scheduler/core/loss.h"

#include <string.h>

#define APART_USEC        ((gint64)G_USEC_PER_SEC)
#define POINTS_MAX        128u
#define ADDED_AT_ONCE_MAX 2u

typedef struct {
    gint64 at_usec;
    gint64 sum_usec; /* lost by then */
} Point;

struct CoreLoss {
    gint64 start_usec;
    guint n; /* one at least */
    Point points[POINTS_MAX];
};

CoreLoss *core_loss_new(gint64 at_usec, gint64 sum_usec)
{
    CoreLoss *loss = g_new(CoreLoss, 1);
    loss->start_usec = at_usec - sum_usec;
    loss->n = 1;
    loss->points[0] = (Point){at_usec, sum_usec};
    return loss;
}

void core_loss_free(CoreLoss *loss)
{
    g_free(loss);
}

gsize core_loss_bytes(const CoreLoss *loss)
{
    return loss != NULL ? sizeof *loss : 0;
}

/* What of SUM comes in the first PASSED of LENGTH: exact up to 2^31, beyond that to as many digits. In
 * integers, so that it is the same with every compiler. */
static gint64 part_of(gint64 sum_usec, gint64 passed_usec, gint64 length_usec)
{
    guint shift = 0;
    if (passed_usec >= length_usec)
        return sum_usec;
    while (MAX(sum_usec, length_usec) >> shift > G_MAXINT32)
        shift++;
    guint64 product = (guint64)(sum_usec >> shift) * (guint64)(passed_usec >> shift);
    gint64 length = MAX(length_usec >> shift, 1);
    return MIN((gint64)(product / (guint64)length) << shift, sum_usec);
}

/* The number of points up to AT. */
static guint count_until(const CoreLoss *loss, gint64 at_usec)
{
    guint low = 0;
    guint high = loss->n;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (loss->points[middle].at_usec <= at_usec)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static gint64 between(const Point *a, const Point *b, gint64 at_usec)
{
    return a->sum_usec +
           part_of(b->sum_usec - a->sum_usec, at_usec - a->at_usec, b->at_usec - a->at_usec);
}

gint64 core_loss_at_usec(const CoreLoss *loss, gint64 at_usec)
{
    guint n = count_until(loss, at_usec);
    if (n == 0)
        return loss->points[0].sum_usec;
    if (n == loss->n)
        return core_loss_sum_usec(loss);
    return between(&loss->points[n - 1], &loss->points[n], at_usec);
}

gint64 core_loss_sum_usec(const CoreLoss *loss)
{
    return loss->points[loss->n - 1].sum_usec;
}

/* --- points --------------------------------------------------------------------------------- */

static void make_room(CoreLoss *loss)
{
    if (loss->n + ADDED_AT_ONCE_MAX <= POINTS_MAX)
        return;
    guint half = loss->n / 2;
    guint kept = 0;
    for (guint i = 0; i < half; i += 2)
        loss->points[kept++] = loss->points[i];
    memmove(&loss->points[kept], &loss->points[half], (loss->n - half) * sizeof(Point));
    loss->n -= half - kept;
}

static void append(CoreLoss *loss, gint64 at_usec)
{
    if (loss->n >= 2 && at_usec - loss->points[loss->n - 2].at_usec < APART_USEC) {
        loss->points[loss->n - 1].at_usec = at_usec;
        return;
    }
    loss->points[loss->n] = (Point){at_usec, core_loss_sum_usec(loss)};
    loss->n++;
}

/* There is a point at AT, if it is not close to others, and not older than all. */
static void mark(CoreLoss *loss, gint64 at_usec)
{
    guint n = count_until(loss, at_usec);
    if (n == 0 || loss->points[n - 1].at_usec == at_usec)
        return;
    if (n == loss->n) {
        append(loss, at_usec);
        return;
    }
    Point *next = &loss->points[n];
    if (at_usec - next[-1].at_usec < APART_USEC || next->at_usec - at_usec < APART_USEC)
        return;
    Point point = {at_usec, between(&next[-1], next, at_usec)};
    memmove(next + 1, next, (loss->n - n) * sizeof *next);
    *next = point;
    loss->n++;
}

/* --- what a guest says ---------------------------------------------------------------------- */

/* So much of LOST was lost between A and B that was not known. */
static gint64 unknown_usec(const Point *a, const Point *b, gint64 from_usec, gint64 until_usec,
                           gint64 lost_usec)
{
    gint64 begin_usec = MAX(a->at_usec, from_usec);
    gint64 end_usec = MIN(b->at_usec, until_usec);
    if (begin_usec >= end_usec)
        return 0;
    gint64 length_usec = until_usec - from_usec;
    gint64 said_usec = part_of(lost_usec, end_usec - from_usec, length_usec) -
                       part_of(lost_usec, begin_usec - from_usec, length_usec);
    gint64 known_usec = between(a, b, end_usec) - between(a, b, begin_usec);
    return MAX(said_usec - known_usec, 0);
}

void core_loss_add(CoreLoss *loss, gint64 from_usec, gint64 until_usec, gint64 lost_usec)
{
    make_room(loss);
    mark(loss, from_usec);
    mark(loss, until_usec);
    from_usec = MAX(from_usec, loss->points[0].at_usec);
    /* Without a time in which that was, nothing that is known can be the same. */
    gboolean is_at_once = from_usec >= until_usec;
    gint64 rise_usec = 0;
    Point before = loss->points[0];
    for (guint i = 1; i < loss->n; i++) {
        Point *point = &loss->points[i];
        Point known = *point;
        if (!is_at_once)
            rise_usec += unknown_usec(&before, &known, from_usec, until_usec, lost_usec);
        else if (known.at_usec >= until_usec)
            rise_usec = lost_usec;
        point->sum_usec = MIN(known.sum_usec + rise_usec, known.at_usec - loss->start_usec);
        before = known;
    }
}
