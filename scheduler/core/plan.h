/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/profile.h"
#include "scheduler/core/state.h"
#include "scheduler/core/supply.h"

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

/* Number AT of the firm ones, from 0, in the order of the jobs; NULL = there are no more. (transfer
 * none): until that changes. */
const CorePlanned *core_plan_firm(const CorePlan *plan, guint at);
/* What CoreNeed.heeds is for one that is to be number AT. */
guint core_plan_heeds_at(const CorePlan *plan, guint at);
/* It is number AT, before the one that was; and no gathered one any more. Its room is kept from its
 * start on. */
void core_plan_insert_firm(BerthCore *core, guint at, const CorePlannedStart *start);
void core_plan_set_rank(CorePlan *plan, guint at, gint64 rank);
/* Those that were after number AT move up; its nodes count as fresh. */
void core_plan_drop_firm(BerthCore *core, guint at);
/* FALSE: its places come to an end. It has to be cleared for more to be given. */
gboolean core_plan_has_places(const CorePlan *plan);
/* Nodes (guint32, each once) that are not what they were, or on which something else is planned to
 * start, since these were last forgotten; NULL = not known, it may be any. */
const GArray *core_plan_changed(BerthCore *core);
void core_plan_forget_changes(BerthCore *core);
/* Behind those that there are. Its room is kept from now on. */
void core_plan_add_gathered(BerthCore *core, const CorePlannedStart *start);
/* The first gathered start of JOB, if there is one, is none any more. */
void core_plan_drop_task(BerthCore *core, guint64 job);
/* Nor are those of jobs that do not wait any more, or whose owner runs as much as he may. */
void core_plan_drop_idle(BerthCore *core);
/* A firm start is of one of those: made anew, the plan has more room. */
gboolean core_plan_has_idle_firm(const BerthCore *core);
/* Its job could not start, whatever room there is. */
gboolean core_planned_is_idle(const BerthCore *core, const CorePlanned *planned);
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
