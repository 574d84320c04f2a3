/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A node that is not there: its session with berthd is the real agent's (nodeagent/session.h), its guests are those of
 * bench/rig_guest.h. */

#include "bench/rig.h"
#include "common/rpc.h"

typedef struct RigNode RigNode;

/* THREAD outlives it, and is the one that it is used in. Dials at once; its certificate is NAME.pem. */
RigNode *rig_node_new(RigThread *thread, const char *name, GError **error);
void rig_node_free(RigNode *node);
/* Ends its connection, if it has one, and joins over another, as when berthd or a switch was restarted. */
void rig_node_join_again(RigNode *node);
