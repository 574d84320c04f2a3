/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a guest may cost its agent: so many bytes, or other units, a second, and a burst on top of it. A leaky bucket
 * that may be overdrawn, as the bytes are there when they are counted. Pure; times are monotonic. */

#include <glib.h>

/* What is earned is rounded down to a unit each time that some are used: a unit should be small. */
typedef struct {
    guint64 burst_bytes;   /* up to 2^40 */
    guint64 bytes_per_sec; /* 1 to 2^40 */
    guint64 used_bytes;    /* 0 when new */
    gint64 usec;           /* as of when */
} BerthAllowance;

/* BYTES more were used at NOW_USEC. Microseconds until no more than the burst is in use; 0: it is not. */
gint64 berth_allowance_use(BerthAllowance *allowance, guint64 bytes, gint64 now_usec);
