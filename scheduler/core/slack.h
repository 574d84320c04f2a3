/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/look.h"
#include "scheduler/core/state.h"

/* What looks for a place in slack. */
typedef struct {
    const CoreClass *class;
    CoreSize size;
    CoreNeeds needs;
    guint64 used_mib;   /* that it has as soon as it is there; without page cache */
    gint64 signal_usec; /* that its job is given before it is saved */
    gboolean starts;    /* there, and does not move there */
} CoreLodger;

/* One that moves there. */
CoreLodger core_slack_lodger(const CoreGuest *guest);
/* TASK of JOB, which starts there; NULL: a new one. */
CoreLodger core_slack_newcomer(const BerthCore *core, const CoreJob *job, const CoreTask *task);
/* What keeps NODE from taking LODGER into its slack; whether its class may run there is not looked at. */
BerthHindrance core_slack_hindrance(const BerthCore *core, const CoreNode *node,
                                    const CoreLodger *lodger);
/* There is none. */
gboolean core_slack_has_room(const BerthCore *core, const CoreNode *node, const CoreLodger *lodger);
/* The same if GUEST, which is in that slack, had left; NULL = nobody. */
gboolean core_slack_has_room_without(const BerthCore *core, const CoreNode *node,
                                     const CoreLodger *lodger, const CoreGuest *guest);
/* The node with room in its slack for LODGER, other than EXCEPT; NULL = none. One that moves is sent to a node that
 * refused a move lately only if there is no other. */
CoreNode *core_slack_find(BerthCore *core, const CoreLodger *lodger, guint32 except);
/* The same, other than the N_EXCEPT of EXCEPT, handles. */
CoreNode *core_slack_find_beside(BerthCore *core, const CoreLodger *lodger, const guint32 *except,
                                 gsize n_except);
/* The next of CLASS could start in slack now. */
gboolean core_slack_could_start(BerthCore *core, const CoreClass *class);
/* Starts in slack whoever may and fits, in the order of the jobs. TRUE: somebody has, who waited
 * before others. */
gboolean core_slack_pass(BerthCore *core);
/* Backs guests in slack with the room that is free on their node, if no planned start needs it; on all
 * nodes that have more since the last pass. */
void core_slack_promote_on(BerthCore *core, CoreNode *node);
void core_slack_promote_fresh(BerthCore *core);
/* Guests in the slack of the node that may have to leave for one of CLASS, and come before it, are backed,
 * where only the firm starts are in the way. TRUE: any was. */
gboolean core_slack_promote_before(BerthCore *core, const CoreClass *class, guint32 handle);
/* Likewise for N of CLASS those that rank higher, and are not only older. */
gboolean core_slack_promote_above(BerthCore *core, const CoreClass *class, guint32 handle,
                                  guint32 n);
/* Another job waits, and none that comes before GUEST's. */
gboolean core_slack_comes_first(BerthCore *core, const CoreGuest *guest);
