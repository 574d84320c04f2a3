/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Where a command is to run, and whether it can there and now. */

typedef struct {
    BerthGuestId guest; /* with its epoch; job 0: it is the node's host */
    guint32 node;
    BerthRpcPeer *peer; /* its session (transfer none) */
} BerthExecTarget;

/* The guest that REQUEST names, or the node, for WHO. INVALID_ARGUMENT (of an array no task is named, or one of a plain job);
 * PERMISSION_DENIED; NOT_FOUND; FAILED_PRECONDITION (it does not
 * run, stands still, or is on its way elsewhere); UNAVAILABLE (its node has no session). */
gboolean berth_exec_target_find(BerthDaemon *daemon, const Berth__ExecRequest *request,
                                const BerthRpcIdentity *who, BerthExecTarget *out_target,
                                GError **error);
