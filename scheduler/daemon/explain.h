/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Answers Jobs.Explain from the core. */
void berth_explain_answer(BerthDaemon *daemon, const Berth__ExplainRequest *request,
                          BerthRpcCall *call);
