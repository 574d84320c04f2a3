/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Streams of the event log: what was committed before from the store, then each event as it is
 * committed. A watcher that does not keep up is read for again from the store: nothing is kept
 * for it in memory but what its connection holds. */

BerthWatchers *berth_watchers_new(BerthDaemon *daemon);
/* No stream may be open. */
void berth_watchers_free(BerthWatchers *watchers);

/* Takes CALL on and ends it. INVALID_ARGUMENT: it names too many jobs, or what is none; RESOURCE_EXHAUSTED: with the others of its user
 * too many; FAILED_PRECONDITION: it is to go on after an event that there is not yet. */
void berth_watch_stream(BerthDaemon *daemon, const Berth__WatchRequest *request,
                        BerthRpcCall *call);
/* EVENT was committed. */
void berth_watchers_publish(BerthWatchers *watchers, const Berth__Event *event);
