/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* How much more storage can take, asked for every so often and told to the core, which promises no more of it to
 * checkpoints than it may. */

/* INTERVAL_SEC: between two questions, the first of which comes with berth_storage_room_look(). */
BerthStorageRoom *berth_storage_room_new(BerthDaemon *daemon, guint interval_sec);
/* Nothing may be under way: see berth_workers_drain(). */
void berth_storage_room_free(BerthStorageRoom *room);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStorageRoom, berth_storage_room_free)
/* Now, and from then on. Where storage does not tell, what it told last stands. */
void berth_storage_room_look(BerthStorageRoom *room);
/* No more questions. */
void berth_storage_room_stop(BerthStorageRoom *room);
