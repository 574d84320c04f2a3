/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"

/* What becomes of a task, and why. */
typedef struct {
    BerthJobState state;
    BerthReason reason;
} CoreOutcome;

/* The command ended by itself. */
CoreOutcome core_outcome_of_exit(const BerthCoreExit *exit);
/* It was stopped for STOP_REASON. */
CoreOutcome core_outcome_of_stop(BerthReason stop_reason);
/* Its guest is gone, through no fault of the node: FAILED or OUT_OF_MEMORY with REASON. */
CoreOutcome core_outcome_of_gone(BerthReason reason);
