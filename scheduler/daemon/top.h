/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Answers Nodes.Top from memory: nothing is read from the store, and only what is asked for is sent. */
void berth_top_answer(BerthDaemon *daemon, const Berth__TopRequest *request, BerthRpcCall *call);
