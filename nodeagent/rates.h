/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How fast a guest's counters have risen of late. Measurements come at irregular pauses, and a peak that is
 * seen over a second is not one that is seen over five: a rate is always over the shortest
 * time up to now that is no less than a window, as far as it was measured for so long. Pure. */

#include "nodeagent/hypervisor/hypervisor.h"

#define BERTH_RATES_SAMPLES 8u

typedef struct {
    struct {
        gint64 usec;
        BerthQemuUsage usage;
    } samples[BERTH_RATES_SAMPLES]; /* oldest first */
    guint n;
} BerthRates;

typedef struct {
    guint32 over_msec; /* 0: nothing to compare with; the others are 0 then */
    guint32 cpu_milli;
    guint32 starved_permille;
    guint32 throttled_permille; /* of the time for which vCPUs ran, or would have */
} BerthRate;

/* As new: what was counted up to now is another's. */
void berth_rates_reset(BerthRates *rates);
/* Takes what was counted at NOW_USEC, and says how fast it has risen. Counters that fell are of another QEMU. */
BerthRate berth_rates_add(BerthRates *rates, gint64 now_usec, const BerthQemuUsage *usage,
                          gint64 window_usec);
