/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Commands that people run beside a job's own. Each is a stream of its user's, passed on from one of the agent's;
 * who wanted it is in the event log before it begins, and how it ended before its user hears of it. Nothing is
 * kept of them: they end with this process. */

BerthExecs *berth_execs_new(BerthDaemon *daemon);
/* No stream may be open. */
void berth_execs_free(BerthExecs *execs);

/* Both take CALL on and end it. */
void berth_execs_run(BerthExecs *execs, const Berth__ExecRequest *request, BerthRpcCall *call);
void berth_execs_input(BerthExecs *execs, const Berth__ExecInputRequest *request,
                       BerthRpcCall *call);
