/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* What people do to jobs that are there. KIND: JOB_CANCELLED, JOB_HELD, JOB_RELEASED or JOB_*_WANTED. Takes CALL
 * on and ends it with a JobReply, after the commit. */
void berth_job_change(BerthDaemon *daemon, BerthEventKind kind, guint64 job, BerthRpcCall *call);
