/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Recovery: puts what the store has into the core and the tables. Before the engine exists.
 * The counters' last_usec is the newest time in the state, be it that of an event or not.
 * Errors: those of the store; DATA_LOSS for records that contradict each other. */
gboolean berth_loader_run(BerthDaemon *daemon, BerthStoreCounters *out_counters, GError **error);
