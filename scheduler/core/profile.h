/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Room that a waiting task is planned to take on a node. */
typedef struct {
    gint64 start_usec, end_usec;
    CoreSize size;
    guint place; /* in the plan: the lower, the earlier in the order */
} CoreReservation;

#define CORE_HEEDS_ALL G_MAXUINT
#define CORE_HEEDS_FIRM                                                                            \
    (1u << 31) /* places of firm ones are below, of gathered ones from here on */

/* What a guest asks of a node in time. */
typedef struct {
    CoreSize size;
    gint64 length_usec;
    gboolean may_move; /* maintenance that is still to come does not matter to it */
    guint heeds;       /* planned starts with a place below this are in its way; see plan.h */
} CoreNeed;

/* When NODE first has room for SIZE if its guests leave when they are thought to and none come;
 * G_MAXINT64 = never. At or before now: not while a guest overstays, unless it fits now. */
gint64 core_profile_earliest(const BerthCore *core, CoreNode *node, CoreSize size);
/* How many guests that need NEED could be on NODE from FROM_USEC on, beside what is reserved there;
 * at most MAX. */
guint32 core_profile_count(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                           gint64 from_usec, guint32 max);
/* The same from now on, if GUEST, which NODE backs, left it now. */
guint32 core_profile_count_without(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                                   const CoreGuest *guest, guint32 max);
/* What NODE has left beside the planned starts before HEEDS, now and at the instant of each start that
 * is planned there for later: appended to OUT_STEPS (CoreStep), the one of now first, the others in
 * any order. A guest can be there as long as it fits in each. */
void core_profile_outlook(const BerthCore *core, CoreNode *node, guint heeds, GArray *out_steps);
/* When COUNT of them first could; G_MAXINT64 = never. After now. */
gint64 core_profile_first(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                          guint32 count);

/* LEFT, what a node has left beside other plans (CoreStep, rising in time; empty: it is closed), without
 * RESERVATION, too. */
void core_profile_cut(GArray *left, const CoreReservation *reservation);
/* What is kept of that is what it would be if it were made anew. For invariants. */
gboolean core_profile_is_sound(const BerthCore *core, CoreNode *node);

/* For how many guests that need NEED a node has room if they begin at AT_USEC: from FROM_USEC on, which
 * is not before now, change by change; at now, as if who overstays had left. Neither the node nor what is planned there may change meanwhile. */
typedef struct {
    gint64 at_usec;
    guint32 count; /* at most MAX */
    /* profile.c's: */
    const CoreNeed *need; /* (transfer none) until the curve's end */
    guint32 max;
    const GArray *left; /* CoreStep */
    GArray *own;        /* the same, if it is made for this one; else NULL */
    guint n;            /* of them matter */
    guint from, to;     /* those that matter to a guest that begins at AT_USEC */
    gboolean rises;     /* no entry has less than the one before it */
} CoreCurve;

void core_curve_begin(CoreCurve *curve, const BerthCore *core, CoreNode *node, const CoreNeed *need,
                      guint32 max, gint64 from_usec);
/* To the next instant at which COUNT is another one. FALSE: there is none. */
gboolean core_curve_next(CoreCurve *curve);
void core_curve_end(CoreCurve *curve);
/* How many of SIZE fit in ROOM, at most MAX. */
guint32 core_size_count(CoreSize size, CoreSize room, guint32 max);
