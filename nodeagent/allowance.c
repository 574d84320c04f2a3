/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how much of an allowance is in use. */
#include <config.h>

#include "nodeagent/allowance.h"

static void earn_until(BerthAllowance *allowance, gint64 now_usec)
{
    guint64 passed_usec = (guint64)MAX(now_usec - allowance->usec, 0);
    allowance->usec = MAX(now_usec, allowance->usec);
    /* So long that a product could be too large. */
    if (passed_usec / G_USEC_PER_SEC > allowance->used_bytes / allowance->bytes_per_sec)
        allowance->used_bytes = 0;
    else
        allowance->used_bytes -=
            MIN(allowance->used_bytes, allowance->bytes_per_sec * passed_usec / G_USEC_PER_SEC);
}

gint64 berth_allowance_use(BerthAllowance *allowance, guint64 bytes, gint64 now_usec)
{
    earn_until(allowance, now_usec);
    allowance->used_bytes += bytes;
    if (allowance->used_bytes <= allowance->burst_bytes)
        return 0;
    guint64 over = allowance->used_bytes - allowance->burst_bytes;
    return (gint64)(over * G_USEC_PER_SEC / allowance->bytes_per_sec) + 1;
}
