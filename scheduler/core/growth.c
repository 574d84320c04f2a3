/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how fast a guest is taken to grow, and for how long. */
#include "scheduler/core/growth.h"

/* Two reports that come closer together say nothing of a speed. */
#define LOOK_MIN_USEC (G_USEC_PER_SEC / 2)
/* No news for twice as long as the speed was looked at, and so long at least: it may have ended. */
#define SILENT_MIN_USEC (5 * (gint64)G_USEC_PER_SEC)
/* Times as long as it was seen to grow it is taken to go on. */
#define KNOWN_TIMES 4

void core_growth_note(CoreGrowth *growth, gint64 now_usec, guint64 occupied_mib)
{
    gint64 over_usec = now_usec - growth->noted_usec;
    if (occupied_mib == 0 || (growth->noted_mib > 0 && over_usec < LOOK_MIN_USEC))
        return;
    guint64 grown_mib = growth->noted_mib > 0 && occupied_mib > growth->noted_mib
                            ? occupied_mib - growth->noted_mib
                            : 0;
    guint64 mib_per_sec = grown_mib * 1000 / (guint64)MAX(over_usec / 1000, 1);
    gboolean stays = mib_per_sec == 0 && growth->latest_mib_per_sec == 0;
    *growth = (CoreGrowth){.noted_usec = now_usec,
                           .noted_mib = occupied_mib,
                           .most_mib = MAX(occupied_mib, growth->most_mib),
                           .over_usec = over_usec,
                           .since_usec = stays ? now_usec : growth->since_usec,
                           .latest_mib_per_sec = mib_per_sec,
                           .before_mib_per_sec = growth->latest_mib_per_sec};
}

gint64 core_growth_until_usec(const CoreGrowth *growth)
{
    gint64 silent_usec = MAX(2 * growth->over_usec, SILENT_MIN_USEC);
    gboolean grows = growth->latest_mib_per_sec > 0 || growth->before_mib_per_sec > 0;
    return grows ? growth->noted_usec + silent_usec : 0;
}

guint64 core_growth_mib_per_sec(const CoreGrowth *growth, gint64 now_usec)
{
    if (now_usec > core_growth_until_usec(growth))
        return 0;
    return MIN(growth->latest_mib_per_sec, growth->before_mib_per_sec);
}

guint64 core_growth_most_mib_per_sec(const CoreGrowth *growth, gint64 now_usec)
{
    if (now_usec > core_growth_until_usec(growth))
        return 0;
    return MAX(growth->latest_mib_per_sec, growth->before_mib_per_sec);
}

gint64 core_growth_known_usec(const CoreGrowth *growth)
{
    return KNOWN_TIMES * (growth->noted_usec - growth->since_usec);
}
