/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* Which watches (any pointers) are of which jobs, so that those that an event concerns are found without a look at the
 * others. Pure. */

typedef struct BerthWatchIndex BerthWatchIndex;
BerthWatchIndex *berth_watch_index_new(void);
/* Nothing may be in it. */
void berth_watch_index_free(BerthWatchIndex *index);

/* Where a watch is in it. */
typedef struct BerthWatchPlace BerthWatchPlace;
/* JOBS (guint64, none of them 0 or twice): of which WATCH is; empty = of all, and of what is no job's. It keeps a reference, and they
 * must not change. O(jobs), as is its removal, which ends PLACE. */
BerthWatchPlace *berth_watch_index_add(BerthWatchIndex *index, GArray *jobs, gpointer watch);
void berth_watch_index_remove(BerthWatchIndex *index, BerthWatchPlace *place);

/* FUNC (first the watch, then USER_DATA) for each watch that is of JOB; 0 = of no job. FUNC may remove that one, and else must neither
 * add nor remove any. */
void berth_watch_index_each(const BerthWatchIndex *index, guint64 job, GFunc func,
                            gpointer user_data);
