/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rule by which time passes for the daemon. Pure but for the reading of the clock. */
#include "config.h"

#include "scheduler/daemon/clock.h"

#include <time.h>

/* A difference to the wall clock is made good by at most one part in this many, and not in smaller
 * steps than a second's worth. */
#define SLEW_PART      20
#define SLEW_STEP_USEC G_USEC_PER_SEC

void berth_clock_start(BerthClock *clock, gint64 boot_usec, gint64 wall_usec, gint64 floor_usec)
{
    *clock = (BerthClock){MAX(wall_usec, floor_usec + 1), boot_usec, boot_usec};
}

gint64 berth_clock_step(BerthClock *clock, gint64 boot_usec, gint64 wall_usec)
{
    clock->now_usec += MAX(boot_usec - clock->boot_usec, 0);
    clock->boot_usec = MAX(clock->boot_usec, boot_usec);
    gint64 passed_usec = clock->boot_usec - clock->slewed_usec;
    if (passed_usec >= SLEW_STEP_USEC) {
        gint64 most_usec = passed_usec / SLEW_PART;
        gint64 behind_usec = CLAMP(wall_usec - clock->now_usec, -most_usec, most_usec);
        /* Slower is a pause for later steps, not a step back. */
        clock->now_usec += MAX(behind_usec, 0);
        clock->boot_usec += MAX(-behind_usec, 0);
        clock->slewed_usec = MAX(clock->boot_usec, boot_usec);
    }
    return clock->now_usec;
}

gint64 berth_clock_boot_usec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (gint64)now.tv_sec * G_USEC_PER_SEC + now.tv_nsec / 1000;
}
