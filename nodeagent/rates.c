/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how counters become rates on the node. */
#include <config.h>

#include "nodeagent/rates.h"

#include <string.h>

void berth_rates_reset(BerthRates *rates)
{
    rates->n = 0;
}

static void drop_oldest(BerthRates *rates)
{
    rates->n--;
    memmove(rates->samples, rates->samples + 1, rates->n * sizeof rates->samples[0]);
}

static guint32 permille(guint64 part, guint64 whole)
{
    return whole == 0 ? 0 : (guint32)MIN(part * 1000 / whole, 1000);
}

static BerthRate rate_since(const BerthQemuUsage *then, const BerthQemuUsage *now, guint64 usec)
{
    guint64 cpu_usec = now->cpu_usec - then->cpu_usec;
    guint64 throttled_usec = now->throttled_usec - MIN(then->throttled_usec, now->throttled_usec);
    return (BerthRate){
        .over_msec = (guint32)MIN(MAX(usec / 1000, 1), G_MAXUINT32),
        .cpu_milli = (guint32)MIN(cpu_usec * 1000 / usec, G_MAXINT32),
        .starved_permille = permille(now->starved_usec - then->starved_usec, usec),
        .throttled_permille = permille(throttled_usec, throttled_usec + cpu_usec),
    };
}

static gboolean has_fallen(const BerthQemuUsage *then, const BerthQemuUsage *now)
{
    return now->cpu_usec < then->cpu_usec || now->starved_usec < then->starved_usec;
}

BerthRate berth_rates_add(BerthRates *rates, gint64 now_usec, const BerthQemuUsage *usage,
                          gint64 window_usec)
{
    BerthRate rate = {0};
    if (rates->n > 0 && has_fallen(&rates->samples[rates->n - 1].usage, usage))
        berth_rates_reset(rates);
    while (rates->n >= 2 && now_usec - rates->samples[1].usec >= window_usec)
        drop_oldest(rates);
    if (rates->n > 0 && now_usec > rates->samples[0].usec)
        rate = rate_since(&rates->samples[0].usage, usage,
                          (guint64)(now_usec - rates->samples[0].usec));
    /* Measured more often than there is room for: the newest makes way, the window stays. */
    guint at = MIN(rates->n, BERTH_RATES_SAMPLES - 1);
    rates->samples[at].usec = now_usec;
    rates->samples[at].usage = *usage;
    rates->n = at + 1;
    return rate;
}
