/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the host and its agent safe from the memory of all guests together, and what guests have reserved safe from those
 * in slack:
 *  - a limit for all of them, which the kernel keeps: beyond it a QEMU is ended, one in slack first;
 *  - none of it goes into the host's swap, where nobody would see it any more;
 *  - before the kernel has to choose, one in slack is ended here: it would take the next, who may have reserved what he has, while
 *    the memory of the first is not back yet;
 *  - with less left than a margin, those in slack that do not boot are held back at once, on the node itself, until the
 *    scheduler, who is told, has made room by balloons, moves and checkpoints. It begins that earlier
 *    (memory_headroom_permille of berthd.conf(5)); this is for what grows faster than reports come;
 *  - with less than half of the margin left, so is who takes more, though he has reserved it, until others have left his memory,
 *    and no longer than the node is told to be patient, until twice the margin has been left again. */

#include "nodeagent/guest_table.h"

typedef struct BerthBackstop BerthBackstop;

typedef struct {
    guint64 offered_mib; /* to all guests */
    guint64 limit_mib;   /* that they never exceed together */
    guint64 margin_mib;
    gint64
        patience_usec; /* for so long who has reserved what he takes waits for it; 0: not at all */
} BerthBackstopLimits;

/* By CONFIG, with the defaults that berth-node.conf(5) names. */
BerthBackstopLimits berth_backstop_limits(const BerthNodeConfig *config, guint64 offered_mib);

/* What is to be done with guests in slack. */
typedef enum {
    BERTH_BACKSTOP_HOLD_ALL, /* back */
    BERTH_BACKSTOP_NOTHING,  /* they stay as they are */
    BERTH_BACKSTOP_LET_ONE_GO,
} BerthBackstopStep;
/* With FREE_MIB left of what is offered, EASED_USEC since the last was held back or let go (monotonic). Who is let go may
 * take what is free: one at a time, and only with twice the margin. */
BerthBackstopStep berth_backstop_step(const BerthBackstopLimits *limits, guint64 free_mib,
                                      gint64 eased_usec);
/* With USED_MIB, one in slack is to be ended: a quarter of the margin is left below the limit, or less. */
gboolean berth_backstop_is_full(const BerthBackstopLimits *limits, guint64 used_mib);
/* With FREE_MIB left of what is offered, who takes more has to wait for those in slack to leave: less than half of the margin. */
gboolean berth_backstop_is_crowded(const BerthBackstopLimits *limits, guint64 free_mib);
/* How long a look may be put off with FREE_MIB left, in milliseconds: for as long as the fastest growth takes to
 * come to the margin. */
guint berth_backstop_next_msec(const BerthBackstopLimits *limits, guint64 free_mib);

/* The node has become short of memory, or is so no more. */
typedef void (*BerthBackstopFunc)(gpointer user_data);

/* TABLE outlives it. PROC: "/proc". */
BerthBackstop *berth_backstop_new(const BerthBackstopLimits *limits, BerthGuestTable *table,
                                  const char *proc, BerthBackstopFunc changed, gpointer user_data);
void berth_backstop_free(BerthBackstop *backstop);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthBackstop, berth_backstop_free)

/* One has come, or has another placement: looks soon. */
void berth_backstop_guest_changed(BerthBackstop *backstop);
/* One has ended that nobody has asked for: was it this host's kernel, for want of memory? Then whose, and what is to be done (transfer
 * none); for as many guests as it has ended within the last seconds. NULL: it was not, or it is not known. */
const char *berth_backstop_why_killed(BerthBackstop *backstop);
/* FALSE: not known, as no guest is there, or as the host does not count. */
gboolean berth_backstop_free_mib(const BerthBackstop *backstop, guint64 *out_offered_mib,
                                 guint64 *out_free_mib);
