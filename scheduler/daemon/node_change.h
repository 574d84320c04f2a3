/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

typedef enum {
    BERTH_NODE_CHANGE_CORDON,
    BERTH_NODE_CHANGE_UNCORDON,
    BERTH_NODE_CHANGE_DRAIN,
    BERTH_NODE_CHANGE_UNDRAIN,
    BERTH_NODE_CHANGE_DOWN, /* ends their sessions first, where the request forces it */
    BERTH_NODE_CHANGE_UP,
} BerthNodeChange;

/* What operators do to nodes that are there. Takes CALL on, whose REQUEST it is, and ends it with a
 * ChangeNodesReply, after the commit. */
void berth_node_change(BerthDaemon *daemon, BerthNodeChange change,
                       const Berth__ChangeNodesRequest *request, BerthRpcCall *call);
/* Answers CALL, of an operator, with a DrainPlan of the node NAME. */
void berth_node_plan_drain(BerthDaemon *daemon, const Berth__PlanDrainRequest *request,
                           BerthRpcCall *call);
