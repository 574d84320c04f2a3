/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules by which an end becomes a state and a reason. Pure functions. */
#include "scheduler/core/outcome.h"

CoreOutcome core_outcome_of_exit(const BerthCoreExit *exit)
{
    gboolean failed = exit->status != 0 || exit->signal != 0;
    if (exit->not_started)
        return (CoreOutcome){BERTH_JOB_FAILED, BERTH_REASON_COMMAND_NOT_FOUND};
    if (failed && exit->oom_kills > 0)
        return (CoreOutcome){BERTH_JOB_OUT_OF_MEMORY, BERTH_REASON_MEMORY_LIMIT};
    if (exit->signal != 0)
        return (CoreOutcome){BERTH_JOB_FAILED, BERTH_REASON_SIGNAL};
    if (failed && exit->disk_full)
        return (CoreOutcome){BERTH_JOB_FAILED, BERTH_REASON_DISK_FULL};
    if (failed)
        return (CoreOutcome){BERTH_JOB_FAILED, BERTH_REASON_EXIT_STATUS};
    return (CoreOutcome){BERTH_JOB_COMPLETED, BERTH_REASON_NONE};
}

CoreOutcome core_outcome_of_stop(BerthReason stop_reason)
{
    switch (stop_reason) {
    case BERTH_REASON_TIME_LIMIT:
        return (CoreOutcome){BERTH_JOB_TIMEOUT, stop_reason};
    case BERTH_REASON_MEMORY_LIMIT:
        return (CoreOutcome){BERTH_JOB_OUT_OF_MEMORY, stop_reason};
    default:
        return (CoreOutcome){BERTH_JOB_CANCELLED, stop_reason};
    }
}

CoreOutcome core_outcome_of_gone(BerthReason reason)
{
    return (CoreOutcome){
        reason == BERTH_REASON_MEMORY_LIMIT ? BERTH_JOB_OUT_OF_MEMORY : BERTH_JOB_FAILED, reason};
}
