/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the policy has learnt and owes beside the tasks themselves, as its driver stores it: the past
 * usage of users and accounts, and what the siblings of a job needed. The effects of an event have
 * what it changed: a usage when a task begins or ceases to hold its reservation, a prior when a task
 * has ended well. Reports change neither, so that what is to be written goes with the tasks' own
 * records: at most one usage for the task's user, for its account and for each above that, and three
 * priors. Stored together with the task they cause no charge twice, and none is lost.
 *
 * The peak of a guest that still runs is in its task's record (BerthCoreTask.peak_mib). */

#include "scheduler/core/core.h"

/* Without priors that are older than the latest so many. */
#define BERTH_CORE_PRIORS_MAX 65536u

/* USED_MIB_SEC as of AT_USEC; what runs since then comes on top of it from the tasks. */
typedef struct {
    guint32 account, uid;
    gboolean is_user;     /* FALSE: of the account, with all below it; account 0 is the root */
    guint64 used_mib_sec; /* dominant resource, decayed by half lives */
    gint64 at_usec;
} BerthCoreUse;

/* Nobody's number, (uid_t)-1: of all users. */
#define BERTH_CORE_UID_ANY G_MAXUINT32

/* Of siblings, what they needed at most; or, with family, memory_mib and peak_mib 0, of all jobs of a
 * user that reserve so many vCPUs, what they needed of these on average; of anybody's with
 * BERTH_CORE_UID_ANY. */
typedef struct {
    guint32 uid;
    guint64 family;     /* as submitted; of an array without one its number */
    guint32 vcpus;      /* reserved */
    guint64 memory_mib; /* likewise, with overhead */
    guint32 n;          /* that ended; 0 = forgotten: there are more than BERTH_CORE_PRIORS_MAX */
    guint32 peak_milli;
    guint64 peak_mib;
} BerthCorePrior;

/* Put back what was stored, before the jobs; priors in the order in which they were told. */
void berth_core_restore_use(BerthCore *core, const BerthCoreUse *use);
void berth_core_restore_prior(BerthCore *core, const BerthCorePrior *prior);
/* FALSE: nothing is known of it. For looking at. */
gboolean berth_core_get_use(BerthCore *core, guint32 account, guint32 uid, gboolean is_user,
                            BerthCoreUse *out_use);
