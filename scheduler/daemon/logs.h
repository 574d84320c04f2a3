/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Streams of jobs' output, read from storage piece by piece as the reader takes it. A follower
 * sleeps at the end of what there is until a node reports more, and ends when the task has ended
 * and all was sent. When the task runs again, its output begins again at offset 0. */

BerthLogFollowers *berth_log_followers_new(BerthDaemon *daemon);
/* No stream may be open. */
void berth_log_followers_free(BerthLogFollowers *followers);

/* Takes CALL on and ends it. */
void berth_logs_stream(BerthDaemon *daemon, const Berth__LogsRequest *request, BerthRpcCall *call);
/* The task's output has grown, or its record has changed. */
void berth_logs_wake(BerthLogFollowers *followers, guint64 job, guint32 task);
