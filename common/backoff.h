/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long to wait before trying again: doubles with each failure, with jitter, so that a thousand
 * nodes do not come back in the same instant. No clock and no randomness of its own. */

#include <glib.h>

typedef struct {
    guint min_msec;
    guint max_msec;
    guint current_msec; /* 0 = nothing has failed since the last success */
} BerthBackoff;

/* The next wait: MIN_MSEC doubled for each failure so far, plus up to half of it by RANDOM
 * (0 <= RANDOM < 1), at most MAX_MSEC. */
guint berth_backoff_next_msec(BerthBackoff *backoff, gdouble random);
void berth_backoff_reset(BerthBackoff *backoff);
