/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/profile.h"
#include "scheduler/core/state.h"

/* The planned starts of the tasks that are first in the order. */
CorePlan *core_plan_new(void);
void core_plan_free(CorePlan *plan);
/* Nothing is planned any more; the nodes where something was count as fresh. */
void core_plan_clear(BerthCore *core);
/* What is planned on a node. */
typedef struct {
    guint32 node;
    GArray *reservations; /* CoreReservation, by place */
    GArray *left;         /* CoreStep: what it has left beside them; profile.c. NULL = not known, or
                             CoreNode.left_is_old */
} CoreTouched;

/* NULL = nothing. */
CoreTouched *core_plan_on(const BerthCore *core, const CoreNode *node);
/* CoreReservation on NODE; NULL = none. */
const GArray *core_plan_reservations(const BerthCore *core, const CoreNode *node);
/* The next task of JOB is planned to start at START_USEC, a guest on each of NODES. */
void core_plan_add(BerthCore *core, const CoreJob *job, gint64 rank, gint64 start_usec,
                   const guint32 *nodes);
guint core_plan_len(const CorePlan *plan);
/* The last planned task comes before a job of that rank and number. */
gboolean core_plan_is_before(const CorePlan *plan, gint64 rank, guint64 job);
/* A planned start is past: what is kept for it will not be kept for as long as it needs. */
gboolean core_plan_has_expired(const CorePlan *plan, gint64 now_usec);
/* Its first planned start; 0 = none. */
gint64 core_plan_start_of(const CorePlan *plan, guint64 job);
gsize core_plan_bytes(const CorePlan *plan);
