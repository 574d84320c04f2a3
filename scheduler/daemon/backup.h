/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Copies of the state, which operators ask for while berthd runs: one at a time. */

BerthBackups *berth_backups_new(BerthDaemon *daemon);
/* Nothing may be under way: see berth_workers_drain(). */
void berth_backups_free(BerthBackups *backups);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthBackups, berth_backups_free)

/* Serves Server.Backup: a stream of how far it has come. When the caller goes away nothing stays of it. */
void berth_backups_make(BerthBackups *backups, const Berth__BackupRequest *request,
                        BerthRpcCall *call);
