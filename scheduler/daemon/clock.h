/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* The daemon's time: microseconds since the epoch that pass as real time does, whatever is done to
 * the wall clock. Timers go by it, so a step of the wall clock must neither freeze nor fire them. */

typedef struct {
    gint64 now_usec;
    gint64 boot_usec;   /* CLOCK_BOOTTIME at now_usec */
    gint64 slewed_usec; /* CLOCK_BOOTTIME up to which it was brought nearer to the wall clock */
} BerthClock;

/* Starts at the wall clock, or after FLOOR_USEC (the newest time in the state) if that is later. */
void berth_clock_start(BerthClock *clock, gint64 boot_usec, gint64 wall_usec, gint64 floor_usec);
/* The time at BOOT_USEC; never goes back. It passes as CLOCK_BOOTTIME does, and while it differs
 * from WALL_USEC, by a twentieth faster or slower, so that the two meet again. */
gint64 berth_clock_step(BerthClock *clock, gint64 boot_usec, gint64 wall_usec);

/* CLOCK_BOOTTIME, which also counts while the host sleeps. */
gint64 berth_clock_boot_usec(void);
