/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Two hosts with one name and certificate, as a cloned machine and its original are, must not take
 * turns at being the node: each would be told to remove what the other has, and the guests of the one
 * would count as gone, and start again, while they run.
 *
 * May the host that sent REQUEST be its node now? Not while the node has a session with another host
 * (ALREADY_EXISTS), and not while guests may run on that other host (FAILED_PRECONDITION): until they
 * were given up and cut off, as node_timeout has it. A host is the same if it says the same host_id, and
 * either the same boot_id or one of a boot that began after the one before was last heard of, or if it has
 * a guest of the node. When that was is kept in the state, at the end of each session and of berthd, and
 * meanwhile every 30 s or six reports, whichever is less.
 *
 * Not told apart: a clone with the same ids that booted after the node was heard of last, and is there
 * before the original, be it that this is cut off or that berthd was started anew; if berthd was killed,
 * also one that booted within those seconds, unless something changed in the state since; and a boot of a
 * host whose agent, of an older version, does not say how long it is up (which is logged). One that says no
 * host_id is taken for the same. Nor a clone that booted before that by less than the clock of berthd's host was
 * put forward while no berthd ran: the silence looks as much longer. */
gboolean berth_host_check(BerthDaemon *daemon, const Berth__JoinRequest *request, GError **error);
