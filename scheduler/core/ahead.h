/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* The waiting tasks of some classes, one after the other in the order of the jobs. Nothing of these
 * classes may start or end meanwhile. */
typedef struct CoreAhead CoreAhead;

CoreAhead *core_ahead_new(void);
void core_ahead_free(CoreAhead *ahead);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CoreAhead, core_ahead_free)
/* All tasks of its class are among them. */
void core_ahead_add(CoreAhead *ahead, const CoreClass *class);
/* The job of the first of them, and its rank; NULL = there are none. */
CoreJob *core_ahead_first(CoreAhead *ahead, gint64 *out_rank);
/* CLASS comes before the first of them. */
gboolean core_ahead_is_behind(CoreAhead *ahead, const CoreClass *class);
/* The first of them is none any more; nor, with ALL, is any other of its class. */
void core_ahead_skip(CoreAhead *ahead, gboolean all);
