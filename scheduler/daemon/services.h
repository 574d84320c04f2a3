/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* What berthd serves. Each struct begins with the service that protobuf-c describes, so that a
 * handler finds the daemon from the service that it was called on. */

#define BERTH_SERVICE(Type)                                                                        \
    struct {                                                                                       \
        Type base;                                                                                 \
        BerthDaemon *daemon;                                                                       \
    }

/* One for each service; (transfer full), to be freed with g_free() when no peer has it any more. */
ProtobufCService *berth_jobs_service_new(BerthDaemon *daemon);
ProtobufCService *berth_blobs_service_new(BerthDaemon *daemon);
ProtobufCService *berth_images_service_new(BerthDaemon *daemon);
ProtobufCService *berth_nodes_service_new(BerthDaemon *daemon);
ProtobufCService *berth_server_service_new(BerthDaemon *daemon);
ProtobufCService *berth_execs_service_new(BerthDaemon *daemon);
ProtobufCService *berth_sessions_service_new(BerthDaemon *daemon);
