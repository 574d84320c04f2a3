/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/profile.h"
#include "scheduler/core/state.h"

/* The planned starts of the tasks that are first in the order: firm ones, which nobody may delay, of
 * the first of all; and gathered ones of those behind them, which stand for a while (gather.h). */
CorePlan *core_plan_new(void);
void core_plan_free(CorePlan *plan);
/* So many there are at most. */
guint core_plan_firm_depth(const BerthCore *core);
guint core_plan_gathered_depth(const BerthCore *core); /* 0: guests do not run in slack */
/* None of them is planned any more; the nodes where they were count as fresh. */
void core_plan_clear_firm(BerthCore *core);
void core_plan_clear_gathered(BerthCore *core);

/* What is planned on a node. */
typedef struct {
    guint32 node;
    GArray *reservations; /* CoreReservation, by place */
    /* What it has left (CoreStep) beside them, and beside the first N_PART; profile.c's. They are that
     * unless CoreNode.left_is_old, and part_is_old, say that they are not; NULL then, or not. */
    GArray *left, *part;
    guint n_part;
} CoreTouched;

/* NULL = nothing. */
CoreTouched *core_plan_on(const BerthCore *core, const CoreNode *node);
/* CoreReservation on NODE; NULL = none. */
const GArray *core_plan_reservations(const BerthCore *core, const CoreNode *node);
/* The next task of JOB is planned to start, a guest on each of NODES. */
typedef struct {
    const CoreJob *job;
    gint64 rank;
    gint64 start_usec;
    const guint32 *nodes;
} CorePlannedStart;

/* Behind those that there are. A firm one is no gathered one any more. Its room is kept from its start
 * on, that of a gathered one from now on. */
void core_plan_add_firm(BerthCore *core, const CorePlannedStart *start);
void core_plan_add_gathered(BerthCore *core, const CorePlannedStart *start);
/* The first gathered start of JOB, if there is one, is none any more. */
void core_plan_drop_task(BerthCore *core, guint64 job);
/* Nor are those of jobs that do not wait any more. */
void core_plan_drop_idle(BerthCore *core);
guint core_plan_n_firm(const CorePlan *plan);
guint core_plan_n_gathered(const CorePlan *plan);
guint core_plan_n_firm_of(const CorePlan *plan, guint64 job);
/* What CoreNeed.heeds is for the first job of CLASS where all count that come before it. */
guint core_plan_heeded_by(const BerthCore *core, const CoreClass *class);
/* The last firm one comes before a job of that rank and number. */
gboolean core_plan_is_before(const CorePlan *plan, gint64 rank, guint64 job);
/* A firm start is past: what is kept for it will not be kept for as long as it needs. */
gboolean core_plan_has_expired(const CorePlan *plan, gint64 now_usec);
/* The first planned start of JOB; 0 = none. */
gint64 core_plan_start_of(const CorePlan *plan, guint64 job);
gsize core_plan_bytes(const CorePlan *plan);
