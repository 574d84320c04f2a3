/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Reading jobs: from the store, on workers. Everybody may see that a job exists, whose it is and
 * how it stands; what it runs (its spec) and prints, only its owner and operators. */

/* Each takes CALL on and ends it. */
void berth_job_get(BerthDaemon *daemon, const Berth__GetJobRequest *request, BerthRpcCall *call);
void berth_job_list(BerthDaemon *daemon, const Berth__ListJobsRequest *request, BerthRpcCall *call);

/* Reads a job, shows it as berth_job_get() would, and ends CALL with it as a JobReply. */
void berth_job_reply(BerthDaemon *daemon, guint64 job, BerthRpcCall *call);
