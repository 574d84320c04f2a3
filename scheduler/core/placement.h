/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Starts whatever can start now, if anything changed since the last time that could matter. */
void core_placement_pass(BerthCore *core);
/* The pass of each policy: fcfs.c, backfill.c. */
void core_fcfs_pass(BerthCore *core);
void core_backfill_pass(BerthCore *core);
/* TRUE: the limits of its owner let none of CLASS start; it is out of the order until they do. */
gboolean core_placement_park(BerthCore *core, CoreClass *class);
/* Starts the first task of CLASS, its guests on NODES. */
void core_placement_start(BerthCore *core, CoreClass *class, const guint32 *nodes);
void core_placement_start_in_slack(BerthCore *core, CoreClass *class, guint32 node);
/* The task of JOB that is started next, if it has been started before; NULL = a new one. */
CoreTask *core_placement_next(const CoreJob *job);
/* The node on which TASK failed to start, or 0; also for NULL. */
guint32 core_placement_avoid_for(const CoreTask *task);
/* The node on which the first task of CLASS failed to start, or 0. */
guint32 core_placement_avoid(const CoreClass *class);
