/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the service Server: what clients need to know of this daemon before they ask for more. */
#include "config.h"

#include "scheduler/daemon/services.h"

#include "scheduler/daemon/backup.h"

typedef BERTH_SERVICE(Berth__Server_Service) ServerService;

/* More than any storage has. */
#define UNBOUNDED_MIB ((guint64)1 << 44)

static Berth__CheckpointSpace checkpoint_space(BerthCore *core)
{
    BerthCoreSpace space;
    berth_core_get_space(core, &space);
    Berth__CheckpointSpace told = BERTH__CHECKPOINT_SPACE__INIT;
    told.stored_mib = space.stored_mib;
    told.kept_mib = space.kept_mib;
    told.unbounded = space.left_mib >= UNBOUNDED_MIB;
    told.left_mib = told.unbounded ? 0 : space.left_mib;
    return told;
}

static void server_info(Berth__Server_Service *service, const Berth__InfoRequest *request,
                        Berth__ServerInfo_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = ((ServerService *)(void *)service)->daemon;
    const BerthDaemonConfig *config = daemon->config;
    const char *storage_error = berth_storage_link_error(daemon->storage);
    Berth__ServerInfo info = BERTH__SERVER_INFO__INIT;
    info.version = (char *)PACKAGE_VERSION;
    info.protocol = BERTH_RPC_PROTOCOL;
    info.start_usec = (guint64)daemon->start_usec;
    info.cluster = config->cluster;
    info.storage = (char *)berth_storage_link_kind(daemon->storage);
    info.default_image = config->default_image;
    info.default_memory_mib = config->default_memory_mib;
    info.default_disk_mib = config->default_disk_mib;
    info.default_vcpus = config->default_vcpus;
    info.default_time_limit_sec = config->default_time_limit_sec;
    info.input_file_max_bytes = config->input_file_max_mib << 20;
    info.last_seq = berth_engine_committed_seq(daemon->engine);
    info.storage_ok = !storage_error;
    info.caller_is_user = !berth_permission_is_operator(
        &daemon->operators, berth_rpc_call_identity(BERTH_RPC_CALL(closure_data)));
    Berth__CheckpointSpace checkpoints = checkpoint_space(daemon->core);
    info.checkpoints = &checkpoints;
    if (storage_error)
        info.storage_error = (char *)storage_error;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &info.base);
}

static void server_backup(Berth__Server_Service *service, const Berth__BackupRequest *request,
                          Berth__BackupProgress_Closure closure, void *closure_data)
{
    berth_backups_make(((ServerService *)(void *)service)->daemon->backups, request,
                       BERTH_RPC_CALL(closure_data));
}

ProtobufCService *berth_server_service_new(BerthDaemon *daemon)
{
    static const Berth__Server_Service template = BERTH__SERVER__INIT(server_);
    ServerService *service = g_new0(ServerService, 1);
    service->base = template;
    service->daemon = daemon;
    return &service->base.base;
}
