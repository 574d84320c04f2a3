/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the arithmetic of waiting before another try. */
#include "common/backoff.h"

guint berth_backoff_next_msec(BerthBackoff *backoff, gdouble random)
{
    guint64 base =
        backoff->current_msec == 0 ? backoff->min_msec : 2 * (guint64)backoff->current_msec;
    backoff->current_msec = (guint)MIN(base, backoff->max_msec);
    guint64 wait = backoff->current_msec + (guint64)(random * backoff->current_msec / 2);
    return (guint)MIN(wait, backoff->max_msec);
}

void berth_backoff_reset(BerthBackoff *backoff)
{
    backoff->current_msec = 0;
}
