/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* The order in which waiting jobs are looked at: rank, higher first, then number. */

/* JOB is or is no longer among those that wait, as core_job_n_startable() says. Wants a pass if that
 * could let somebody start. */
void core_order_update(BerthCore *core, CoreJob *job);
/* JOB, whose tasks keep their sizes, has SHAPE from now on. */
void core_order_set_shape(BerthCore *core, CoreJob *job, const CoreShape *shape);
/* Gives those jobs another class whose next task takes another size to start than their class says: they are in no
 * order until then. TRUE: there were some. Not while a pass goes through the classes. */
gboolean core_order_suit(BerthCore *core);
/* CLASS, parked, is to be looked at again. */
void core_order_unpark(BerthCore *core, CoreClass *class);
/* CLASS is not looked at until OWNER runs less. */
void core_order_park(BerthCore *core, CoreClass *class, CoreOwner *owner);
/* The rank that JOB has, or would have if it waited: that of a class is of those that wait, and no newer than when one
 * of it last did. */
gint64 core_order_rank_of_job(BerthCore *core, const CoreJob *job);
/* Ranks all classes anew if that is due. */
void core_order_rank(BerthCore *core);
gboolean core_order_set_qos(BerthCore *core, guint32 qos, gint32 priority_permille, GError **error);
