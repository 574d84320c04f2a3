/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How often guests and node are measured: what is near a limit fast, so that it is helped in time, for as long as anything
 * of it changes: many jobs are as near to their memory as that for hours, since their users know what they need; what has hardly
 * anything to do slowly, so that many such guests cost next to nothing. Pure; times are monotonic. */

#include <glib.h>

#include "proto/berth.pb-c.h"

typedef enum {
    BERTH_PACE_CALM,
    BERTH_PACE_NORMAL,
    BERTH_PACE_NEAR,
    BERTH_N_PACES,
} BerthPaceKind;

/* berth-node.conf(5), [measure]. */
typedef struct {
    guint near_memory_percent;   /* of a guest's memory: less is available */
    guint near_pressure_percent; /* of the time, in which some task stalls for memory */
    guint near_wait_percent; /* of the time, that a guest had no CPU, or its quota was used up */
    /* Of what is offered to guests, or of the host's memory while no guest is there: less is left. */
    guint near_node_memory_percent;
} BerthPaceLimits;

typedef struct {
    guint msec[BERTH_N_PACES];
} BerthPaceIntervals;

/* Of a guest (or a node). As new with all 0. */
typedef struct {
    BerthPaceKind kind;
    gint64 near_usec;  /* when it was near a limit last */
    gint64 awake_usec; /* when it was not calm last */
    gint64 looked_usec;
    gboolean is_known;    /* it was looked at */
    gboolean is_due_soon; /* the next look is not to wait for its kind's interval */
} BerthPace;

/* A guest as it was when it was last found to have changed. As new with all 0. */
typedef struct {
    guint64 memory_total_mib;
    guint64 memory_available_mib;
    guint64 swap_used_mib;
    guint64 oom_kills;
    guint32 psi_memory_some;
    guint32 starved_permille;
    guint32 throttled_permille;
} BerthPaceMark;

/* What USAGE alone says. Of a guest whose memory is not known yet, as it boots, NORMAL at least. */
BerthPaceKind berth_pace_of_guest(const Berth__Usage *usage, const BerthPaceLimits *limits);
/* The same, but only by what its guest says of its memory: whether that is to say it more often. */
BerthPaceKind berth_pace_of_memory(const Berth__Usage *usage, const BerthPaceLimits *limits);
/* The same, whatever its limits are: NORMAL or CALM. */
BerthPaceKind berth_pace_of_work(const Berth__Usage *usage);
/* Has it changed, since MARK was made, by what matters to one near a limit? Then MARK is as USAGE from now on. One that
 * stalls for memory as LIMITS say always has. */
gboolean berth_pace_has_changed(BerthPaceMark *mark, const Berth__Usage *usage,
                                const BerthPaceLimits *limits);
BerthPaceKind berth_pace_of_node(const Berth__NodeUsage *usage, const BerthPaceLimits *limits);

/* It was found to be as KIND says. It keeps a higher pace for a while, so that what goes up and down does not
 * change it all the time. */
void berth_pace_set(BerthPace *pace, BerthPaceKind kind, gint64 now_usec);
/* There is something to be seen: it is to be measured next as soon as one that is near, once. */
void berth_pace_look_soon(BerthPace *pace);
/* It was measured. */
void berth_pace_looked(BerthPace *pace, gint64 now_usec);
/* When it is to be measured next; one that never was: at once. */
gint64 berth_pace_due_usec(const BerthPace *pace, const BerthPaceIntervals *intervals);
