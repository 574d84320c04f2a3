/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a migration comes to its end by itself. Pure: who asks has the clock and acts. */

#include <glib.h>

typedef struct {
    gint64 window_usec;       /* when the present window began; 0 = none has */
    guint64 least_bytes;      /* least that was left in it */
    guint64 last_least_bytes; /* ... in the one before it */
    guint downtime_msec;      /* that the guest may stand still; 0 = as QEMU has it */
} BerthConvergence;

typedef enum {
    BERTH_CONVERGENCE_WAIT,
    BERTH_CONVERGENCE_RAISE_DOWNTIME, /* to downtime_msec */
    BERTH_CONVERGENCE_GIVE_UP,
} BerthConvergenceAdvice;

/* LEFT_BYTES are to be copied at NOW_USEC (monotonic, above 0). Zeroed for a new migration. */
BerthConvergenceAdvice berth_convergence_look(BerthConvergence *convergence, gint64 now_usec,
                                              guint64 left_bytes);

/* A guest's memory that is saved while it runs, of which COPIED_BYTES are and LEFT_BYTES are not: must it stand still
 * from now on, as the rest, once more than it is now, may not fit what is left of SPACE_BYTES? */
gboolean berth_convergence_must_stand(guint64 copied_bytes, guint64 left_bytes,
                                      guint64 space_bytes);
