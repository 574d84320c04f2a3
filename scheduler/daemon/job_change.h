/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* What people do to jobs that are there. KIND: JOB_CANCELLED, JOB_HELD, JOB_RELEASED or JOB_*WANTED. WHY is CALL's.
 * Takes CALL on and ends it with a JobReply, after the commit. */
void berth_job_change(BerthDaemon *daemon, BerthEventKind kind, guint64 job,
                      Berth__IndexRange *const *tasks, gsize n_tasks, const char *why,
                      BerthRpcCall *call);
/* The same for JOB_MIGRATE_WANTED, and for JOB_RESIZE_WANTED. */
void berth_job_migrate(BerthDaemon *daemon, const Berth__MigrateRequest *request,
                       BerthRpcCall *call);
void berth_job_resize(BerthDaemon *daemon, const Berth__ResizeRequest *request, BerthRpcCall *call);
void berth_job_checkpoint_every(BerthDaemon *daemon, const Berth__CheckpointEveryRequest *request,
                                BerthRpcCall *call);
void berth_job_extend(BerthDaemon *daemon, const Berth__ExtendRequest *request, BerthRpcCall *call);
void berth_job_freeze(BerthDaemon *daemon, const Berth__FreezeRequest *request, BerthRpcCall *call);
void berth_job_thaw(BerthDaemon *daemon, const Berth__ThawRequest *request, BerthRpcCall *call);
/* The same for a job that is to go on from one of its checkpoints, and for a checkpoint that is to be removed. */
void berth_job_restore(BerthDaemon *daemon, const Berth__RestoreRequest *request,
                       BerthRpcCall *call);
void berth_job_remove_checkpoint(BerthDaemon *daemon, const Berth__RemoveCheckpointRequest *request,
                                 BerthRpcCall *call);
