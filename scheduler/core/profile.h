/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Room that a waiting task is planned to take on a node. */
typedef struct {
    gint64 start_usec, end_usec;
    CoreSize size;
    guint place; /* in the plan, from 0 */
} CoreReservation;

#define CORE_HEEDS_ALL G_MAXUINT

/* What a guest asks of a node in time. */
typedef struct {
    CoreSize size;
    gint64 length_usec;
    gboolean may_move; /* maintenance of the node does not matter to it */
    guint heeds;       /* so many planned starts are in its way; see plan.h */
} CoreNeed;

/* When NODE first has room for SIZE if its guests leave when they are thought to and none come;
 * G_MAXINT64 = never. At or before now: not while a guest overstays, unless it fits now. */
gint64 core_profile_earliest(const BerthCore *core, CoreNode *node, CoreSize size);
/* How many guests that need NEED could be on NODE from FROM_USEC on, beside what is reserved there;
 * at most MAX. */
guint32 core_profile_count(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                           gint64 from_usec, guint32 max);
/* What NODE has left beside the first HEEDS planned starts, now and at the instant of each start that
 * is planned there for later: appended to OUT_STEPS (CoreStep), the one of now first, the others in
 * any order. A guest can be there as long as it fits in each. */
void core_profile_outlook(const BerthCore *core, CoreNode *node, guint heeds, GArray *out_steps);
/* When COUNT of them first could; G_MAXINT64 = never. After now. */
gint64 core_profile_first(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                          guint32 count);
/* How many of SIZE fit in ROOM, at most MAX. */
guint32 core_size_count(CoreSize size, CoreSize room, guint32 max);
