/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* The agents' connections: one session per node, begun by Join. A second session of a node
 * replaces the first, if it is of the same host: see host_check.h. */

BerthSessions *berth_sessions_new(BerthDaemon *daemon);
/* Closes all connections; nothing is made of it, as the daemon ends. */
void berth_sessions_close(BerthSessions *sessions);
void berth_sessions_free(BerthSessions *sessions);

/* Takes a new connection (transfer full); it is closed if it does not join in time. */
void berth_sessions_accept(BerthSessions *sessions, BerthRpcPeer *peer);

/* Writes when each node was heard of last, which happens by itself only now and then. */
void berth_sessions_keep_heard(BerthSessions *sessions);

/* Ends the session of NODE, if it has one: the core is told, the connection closed. */
void berth_sessions_end(BerthSessions *sessions, guint32 node);

/* The peer that serves NODE now (transfer none); NULL: it has no session. */
BerthRpcPeer *berth_sessions_peer(BerthSessions *sessions, guint32 node);
