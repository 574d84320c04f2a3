/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Carries ACTION, a FENCE, out by storage. Answers with GUEST_FENCED or FENCE_FAILED. */
void berth_fence(BerthDaemon *daemon, const BerthCoreAction *action);
