/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which state is counted where. */
#include "common/task_counts.h"

uint32_t *berth_task_counter(Berth__TaskCounts *counts, Berth__JobState state)
{
    switch (state) {
    case BERTH__JOB_STATE__PENDING:
        return &counts->pending;
    case BERTH__JOB_STATE__RUNNING:
        return &counts->running;
    case BERTH__JOB_STATE__SUSPENDED:
        return &counts->suspended;
    case BERTH__JOB_STATE__COMPLETED:
        return &counts->completed;
    case BERTH__JOB_STATE__FAILED:
        return &counts->failed;
    case BERTH__JOB_STATE__CANCELLED:
        return &counts->cancelled;
    case BERTH__JOB_STATE__TIMEOUT:
        return &counts->timeout;
    case BERTH__JOB_STATE__NODE_FAIL:
        return &counts->node_fail;
    case BERTH__JOB_STATE__OUT_OF_MEMORY:
        return &counts->out_of_memory;
    default:
        return NULL;
    }
}
