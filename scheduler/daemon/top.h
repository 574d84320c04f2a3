/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

BerthTop *berth_top_new(BerthDaemon *daemon);
void berth_top_free(BerthTop *top);

/* Answers Nodes.Top from memory: nothing is read from the store, and only what is asked for is sent. Who is where, in which
 * order, and the sums may be a second old, and in a large cluster some more. NOT_FOUND: there is no node of the name that was asked for. */
void berth_top_answer(BerthTop *top, const Berth__TopRequest *request, BerthRpcCall *call);
