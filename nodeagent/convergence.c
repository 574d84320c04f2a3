/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when a migration counts as stalled, and what is done then. What is left oscillates with each pass
 * over the memory, so that windows are compared by the least that was left in them, with a margin. */
#include <config.h>

#include "nodeagent/convergence.h"

/* Long enough for several passes over what a guest writes between two of them; QEMU's auto-converge, which
 * slows the guest step by step with each pass, gets its time, too. */
#define WINDOW_USEC (10 * G_USEC_PER_SEC)
/* A window that leaves more than this much of what the one before it left is no progress. */
#define PROGRESS_PERMILLE 950u
/* Of QEMU by default, and what a job may be asked to stand still for: its peers' connections survive that. */
#define DOWNTIME_MIN_MSEC 300u
#define DOWNTIME_MAX_MSEC 2400u

static gboolean has_stalled(const BerthConvergence *convergence)
{
    return convergence->last_least_bytes > 0 &&
           convergence->least_bytes > convergence->last_least_bytes / 1000 * PROGRESS_PERMILLE;
}

static void begin_window(BerthConvergence *convergence, gint64 now_usec, guint64 left_bytes)
{
    convergence->window_usec = now_usec;
    convergence->last_least_bytes = convergence->least_bytes;
    convergence->least_bytes = left_bytes;
}

BerthConvergenceAdvice berth_convergence_look(BerthConvergence *convergence, gint64 now_usec,
                                              guint64 left_bytes)
{
    if (convergence->window_usec == 0) {
        begin_window(convergence, now_usec, left_bytes);
        return BERTH_CONVERGENCE_WAIT;
    }
    convergence->least_bytes = MIN(convergence->least_bytes, left_bytes);
    if (now_usec - convergence->window_usec < WINDOW_USEC)
        return BERTH_CONVERGENCE_WAIT;
    gboolean stalled = has_stalled(convergence);
    begin_window(convergence, now_usec, left_bytes);
    if (!stalled)
        return BERTH_CONVERGENCE_WAIT;
    if (convergence->downtime_msec >= DOWNTIME_MAX_MSEC)
        return BERTH_CONVERGENCE_GIVE_UP;
    convergence->downtime_msec = MAX(convergence->downtime_msec, DOWNTIME_MIN_MSEC) * 2;
    return BERTH_CONVERGENCE_RAISE_DOWNTIME;
}

/* Between two looks it is copied on: an eighth of the space is for that, and for what is not memory. */
gboolean berth_convergence_must_stand(guint64 copied_bytes, guint64 left_bytes, guint64 space_bytes)
{
    guint64 usable = space_bytes - space_bytes / 8;
    return copied_bytes > usable || left_bytes > usable - copied_bytes;
}
