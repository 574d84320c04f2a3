/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/pb.h"

/* What people asked of a job, and what came of it. */

/* So many are kept in a job's record, the latest. */
#define BERTH_JOB_REQUESTS_MAX 16u
/* And of these so many, the latest, that were refused. */
#define BERTH_JOB_REFUSALS_MAX 4u

/* EVENT, which has its number, is of JOB and of the task that STORED is: a request, perhaps, or what came of one. STORED is
 * NULL of an array: a request of one concerns many tasks, of which each has a result of its own, and is not followed any
 * further. TRUE: the record of JOB has changed. */
gboolean berth_job_requests_take(Berth__Job *job, const Berth__StoredTask *stored,
                                 const Berth__Event *event);

/* All that came of the latest event is in STORED: what was asked for may be so by now without an event of its own, or
 * may not become so any more. TRUE likewise. */
gboolean berth_job_requests_settle(Berth__Job *job, const Berth__StoredTask *stored);

/* JOB is to be shown without them. */
void berth_job_requests_drop(Berth__Job *job);
