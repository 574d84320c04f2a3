/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How fast a guest comes to occupy more of its host's memory. */

#include <glib.h>

/* Zeroed: nothing is known. */
typedef struct {
    gint64 noted_usec; /* when ... */
    guint64 noted_mib; /* ... it occupied this */
    guint64 most_mib;  /* that it ever did, when it was looked at */
    gint64 over_usec;  /* from the look before that until then */
    gint64 since_usec; /* from then on it has grown, with no two looks on end at which it had not */
    guint64 latest_mib_per_sec, before_mib_per_sec; /* at the latest two looks */
} CoreGrowth;

/* At NOW_USEC it is told that the guest occupies OCCUPIED_MIB; 0: not known. */
void core_growth_note(CoreGrowth *growth, gint64 now_usec, guint64 occupied_mib);

/* When it is not taken to grow any more, if nothing more is heard of it; 0: it is not now. */
gint64 core_growth_until_usec(const CoreGrowth *growth);

/* The slower of the latest two speeds. What came between two looks alone may be a step, after which nothing follows, as where a program
 * takes all of its memory when it begins. 0: it does not grow, or was not heard of lately. */
guint64 core_growth_mib_per_sec(const CoreGrowth *growth, gint64 now_usec);

/* The faster of them: it may have paused. */
guint64 core_growth_most_mib_per_sec(const CoreGrowth *growth, gint64 now_usec);

/* For so long ahead its speed says anything: who has grown for seconds is not taken to grow for minutes. */
gint64 core_growth_known_usec(const CoreGrowth *growth);
