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
 * a guest of the node. Not told apart: a clone with the same ids that booted after the newest change in the
 * state and is there before the original when berthd was started anew, and a boot of a host whose agent, of
 * an older version, does not say how long it is up. One that says no host_id is taken for the same. */
gboolean berth_host_check(BerthDaemon *daemon, const Berth__JoinRequest *request, GError **error);
