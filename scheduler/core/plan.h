/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/profile.h"
#include "scheduler/core/state.h"
#include "scheduler/core/supply.h"

/* The planned starts of the tasks that are first in the order: firm ones, which nobody may delay, of
 * the first of all; and gathered ones of those behind them, which stand for a while (gather.h). */
typedef enum { CORE_PLAN_FIRM, CORE_PLAN_GATHERED, CORE_PLAN_N_PARTS } CorePlanPart;

CorePlan *core_plan_new(void);
void core_plan_free(CorePlan *plan);
/* So many there are of PART at most. None is gathered where guests do not run in slack. */
guint core_plan_depth(const BerthCore *core, CorePlanPart part);
/* None of PART is planned any more; the nodes where they were count as fresh. */
void core_plan_clear(BerthCore *core, CorePlanPart part);

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
    CoreSupply *supply; /* (transfer full); NULL = not known */
} CorePlannedStart;

/* What is kept of that. */
typedef struct {
    guint64 job;
    gint64 rank;
    gint64 start_usec;
    guint place; /* what it heeds: those with lower ones */
    guint32 guests;
    guint32 *nodes; /* of each guest */
    CoreSupply *supply;
} CorePlanned;

/* Number AT of PART, from 0, in the order of the jobs; NULL = there are no more. (transfer none): until
 * that changes. */
const CorePlanned *core_plan_at(const CorePlan *plan, CorePlanPart part, guint at);
/* What CoreNeed.heeds is for one that is to be number AT. */
guint core_plan_heeds_at(const CorePlan *plan, CorePlanPart part, guint at);
/* It is number AT, before the one that was. The room of a firm one, which is no gathered one any more,
 * is kept from its start on, that of a gathered one from now on. */
void core_plan_insert(BerthCore *core, CorePlanPart part, guint at, const CorePlannedStart *start);
void core_plan_set_rank(CorePlan *plan, CorePlanPart part, guint at, gint64 rank);
/* Those that were after number AT move up; its nodes count as fresh. */
void core_plan_drop(BerthCore *core, CorePlanPart part, guint at);
/* FALSE: its places come to an end. It has to be cleared for more to be given. */
gboolean core_plan_has_places(const CorePlan *plan, CorePlanPart part);
/* Nodes (guint32, each once) that are not what they were, or on which something else is planned to
 * start that PART heeds, since these were last forgotten; NULL = not known, it may be any. */
const GArray *core_plan_changed(BerthCore *core, CorePlanPart part);
void core_plan_forget_changes(BerthCore *core, CorePlanPart part);
/* Until they are forgotten it is not known any more. */
void core_plan_doubt(CorePlan *plan, CorePlanPart part);
/* The first gathered start of JOB, if there is one, is none any more. */
void core_plan_drop_task(BerthCore *core, guint64 job);
/* None of JOB is, firm or gathered: what it needs has changed. */
void core_plan_drop_job(BerthCore *core, guint64 job);
/* Nor are those of jobs that do not wait any more, or whose owner runs as much as he may. */
void core_plan_drop_idle(BerthCore *core);
/* A firm start is of one of those: made anew, the plan has more room. */
gboolean core_plan_has_idle_firm(const BerthCore *core);
/* Its job could not start, whatever room there is. */
gboolean core_planned_is_idle(const BerthCore *core, const CorePlanned *planned);
guint core_plan_n(const CorePlan *plan, CorePlanPart part);
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
