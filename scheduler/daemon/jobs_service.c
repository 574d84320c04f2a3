/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the service Jobs as a table of its methods; each has a file of its own. */
#include "config.h"

#include "scheduler/daemon/services.h"

#include "scheduler/daemon/explain.h"
#include "scheduler/daemon/job_change.h"
#include "scheduler/daemon/job_list.h"
#include "scheduler/daemon/logs.h"
#include "scheduler/daemon/submit.h"
#include "scheduler/daemon/watch.h"

typedef BERTH_SERVICE(Berth__Jobs_Service) JobsService;

static BerthDaemon *daemon_of(Berth__Jobs_Service *service)
{
    return ((JobsService *)(void *)service)->daemon;
}

static void jobs_submit(Berth__Jobs_Service *service, const Berth__SubmitRequest *request,
                        Berth__SubmitReply_Closure closure, void *closure_data)
{
    berth_submit(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_submit_many(Berth__Jobs_Service *service, const Berth__SubmitManyRequest *request,
                             Berth__SubmitManyReply_Closure closure, void *closure_data)
{
    berth_submit_many(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
                     Berth__Job_Closure closure, void *closure_data)
{
    berth_job_get(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_list(Berth__Jobs_Service *service, const Berth__ListJobsRequest *request,
                      Berth__ListJobsReply_Closure closure, void *closure_data)
{
    berth_job_list(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_cancel(Berth__Jobs_Service *service, const Berth__CancelRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_change(daemon_of(service), BERTH_EVENT_JOB_CANCELLED, request->job, request->tasks,
                     request->n_tasks, request->reason, BERTH_RPC_CALL(closure_data));
}

static void jobs_hold(Berth__Jobs_Service *service, const Berth__HoldRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_change(daemon_of(service), BERTH_EVENT_JOB_HELD, request->job, request->tasks,
                     request->n_tasks, request->reason, BERTH_RPC_CALL(closure_data));
}

static void jobs_release(Berth__Jobs_Service *service, const Berth__ReleaseRequest *request,
                         Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_change(daemon_of(service), BERTH_EVENT_JOB_RELEASED, request->job, request->tasks,
                     request->n_tasks, request->reason, BERTH_RPC_CALL(closure_data));
}

static void jobs_freeze(Berth__Jobs_Service *service, const Berth__FreezeRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_freeze(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_thaw(Berth__Jobs_Service *service, const Berth__ThawRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_thaw(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_migrate(Berth__Jobs_Service *service, const Berth__MigrateRequest *request,
                         Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_migrate(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_cancel_migration(Berth__Jobs_Service *service,
                                  const Berth__CancelMigrationRequest *request,
                                  Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_change(daemon_of(service), BERTH_EVENT_JOB_MIGRATE_UNWANTED, request->job,
                     request->tasks, request->n_tasks, request->reason,
                     BERTH_RPC_CALL(closure_data));
}

static void jobs_resize(Berth__Jobs_Service *service, const Berth__ResizeRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_resize(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_extend(Berth__Jobs_Service *service, const Berth__ExtendRequest *request,
                        Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_extend(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_checkpoint(Berth__Jobs_Service *service, const Berth__CheckpointRequest *request,
                            Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_change(daemon_of(service), BERTH_EVENT_JOB_CHECKPOINT_WANTED, request->job,
                     request->tasks, request->n_tasks, request->reason,
                     BERTH_RPC_CALL(closure_data));
}

static void jobs_set_checkpoint_every(Berth__Jobs_Service *service,
                                      const Berth__CheckpointEveryRequest *request,
                                      Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_checkpoint_every(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_restore(Berth__Jobs_Service *service, const Berth__RestoreRequest *request,
                         Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_restore(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_remove_checkpoint(Berth__Jobs_Service *service,
                                   const Berth__RemoveCheckpointRequest *request,
                                   Berth__JobReply_Closure closure, void *closure_data)
{
    berth_job_remove_checkpoint(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_logs(Berth__Jobs_Service *service, const Berth__LogsRequest *request,
                      Berth__LogChunk_Closure closure, void *closure_data)
{
    berth_logs_stream(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_watch(Berth__Jobs_Service *service, const Berth__WatchRequest *request,
                       Berth__Event_Closure closure, void *closure_data)
{
    berth_watch_stream(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void jobs_explain(Berth__Jobs_Service *service, const Berth__ExplainRequest *request,
                         Berth__Explanation_Closure closure, void *closure_data)
{
    berth_explain_answer(daemon_of(service), request, BERTH_RPC_CALL(closure_data));
}

ProtobufCService *berth_jobs_service_new(BerthDaemon *daemon)
{
    static const Berth__Jobs_Service template = BERTH__JOBS__INIT(jobs_);
    JobsService *service = g_new0(JobsService, 1);
    service->base = template;
    service->daemon = daemon;
    return &service->base.base;
}
