/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Where berthd is reached: a unix socket for users, a TLS port for agents. Each has its own
 * services: what a user may call, no agent may, and the other way round. */

BerthListeners *berth_listeners_new(BerthDaemon *daemon, GError **error);
/* No new connections. */
void berth_listeners_close(BerthListeners *listeners);
/* No connection may be left: they use the services. */
void berth_listeners_free(BerthListeners *listeners);
guint16 berth_listeners_agents_port(BerthListeners *listeners);
