/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how much of the last seconds tasks stalled. Pure. */
#include "images/init/stall_share.h"

#include <string.h>

#define SPACING_USEC 1000000u

/* Leaves one that is as old as the window, or older. */
static void forget_older(StallShare *share, uint64_t now_usec)
{
    unsigned n_older = 0;

    while (n_older + 1 < share->n_samples &&
           share->samples[n_older + 1].at_usec + STALL_WINDOW_USEC <= now_usec)
        n_older++;
    share->n_samples -= n_older;
    memmove(share->samples, share->samples + n_older, share->n_samples * sizeof share->samples[0]);
}

uint32_t stall_share_note(StallShare *share, uint64_t now_usec, uint64_t total_usec)
{
    uint64_t usec, stalled_usec;

    if (share->n_samples > 0 && total_usec < share->samples[share->n_samples - 1].total_usec)
        share->n_samples = 0;
    forget_older(share, now_usec);
    if (share->n_samples == 0 ||
        share->samples[share->n_samples - 1].at_usec + SPACING_USEC <= now_usec) {
        /* There is room: one at the window's edge, and no more in it than seconds. */
        share->samples[share->n_samples].at_usec = now_usec;
        share->samples[share->n_samples].total_usec = total_usec;
        share->n_samples++;
    }
    usec = now_usec - share->samples[0].at_usec;
    stalled_usec = total_usec - share->samples[0].total_usec;
    if (usec < STALL_WINDOW_USEC)
        usec = STALL_WINDOW_USEC;
    return stalled_usec >= usec ? 10000 : (uint32_t)(stalled_usec * 10000 / usec);
}
