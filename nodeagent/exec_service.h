/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The service Execs of this node, for the scheduler. */

#include "nodeagent/guest_table.h"

typedef struct BerthExecService BerthExecService;

/* ALLOWS_HOST: commands may run on the host, too. TABLE: where guests are found; it outlives the service, but not its free(). */
BerthExecService *berth_exec_service_new(BerthGuestTable *table, gboolean allows_host);
/* The agent ends: calls that end from now on do so for that. */
void berth_exec_service_end(BerthExecService *service);
/* After the connections and the guests: nothing runs any more. */
void berth_exec_service_free(BerthExecService *service);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthExecService, berth_exec_service_free)
/* What is to be served (transfer none). */
ProtobufCService *berth_exec_service_base(BerthExecService *service);
