/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Plain types that every component may use, the pure core included. */

#include <glib.h>

/* Names one guest in one of its lives. */
typedef struct {
    guint64 job;
    guint32 task;
    guint32 guest; /* within the task; 0 for all but gangs */
    guint32 epoch; /* raised whenever it is started or restored anywhere; the fence */
} BerthGuestId;

typedef struct {
    guint32 vcpus;
    guint64 memory_mib;
    guint64 disk_mib;
} BerthResources;

/* So many jobs a watch may name (WatchRequest.jobs). */
#define BERTH_WATCH_JOBS_MAX 10000u

/* Of the memory that a guest is started with a balloon leaves it one part of so many at least: with less its
 * kernel does not live. */
#define BERTH_MEMORY_LEFT_MIN_PART 4u

/* CPU weight of each vCPU. cgroup v2 allows 1..10000 per guest, and its default is 100. One in slack yields
 * at once: it gets a fiftieth of what a backed one does where both want the same CPU. Two are the fewest
 * that cgroup v1 knows. */
#define BERTH_CPU_SHARES          100u
#define BERTH_CPU_SHARES_IN_SLACK 2u

/* The values of the schema's JobState. */
typedef enum {
    BERTH_JOB_PENDING = 1,
    BERTH_JOB_RUNNING = 2,
    BERTH_JOB_SUSPENDED = 3,
    BERTH_JOB_COMPLETED = 4,
    BERTH_JOB_FAILED = 5,
    BERTH_JOB_CANCELLED = 6,
    BERTH_JOB_TIMEOUT = 7,
    BERTH_JOB_NODE_FAIL = 8,
    BERTH_JOB_OUT_OF_MEMORY = 9,
} BerthJobState;

static inline gboolean berth_job_state_is_final(BerthJobState state)
{
    return state >= BERTH_JOB_COMPLETED;
}

/* The values of the schema's Reason. */
typedef enum {
    BERTH_REASON_NONE = 0,
    BERTH_REASON_PRIORITY = 1,
    BERTH_REASON_RESOURCES = 2,
    BERTH_REASON_HELD_BY_USER = 3,
    BERTH_REASON_HELD_BY_OPERATOR = 4,
    BERTH_REASON_NODE_UNAVAILABLE = 5,
    BERTH_REASON_REQUEUED = 6,
    BERTH_REASON_STARTING_LATER = 7,
    BERTH_REASON_STORAGE_UNAVAILABLE = 8,
    BERTH_REASON_DEPENDENCY = 9,
    BERTH_REASON_ACCOUNT_LIMIT = 10,
    BERTH_REASON_ARRAY_THROTTLE = 11,
    BERTH_REASON_MAINTENANCE = 12,
    BERTH_REASON_EVICTED = 13,
    BERTH_REASON_RESTORING = 14,
    BERTH_REASON_EXIT_STATUS = 20,
    BERTH_REASON_SIGNAL = 21,
    BERTH_REASON_TIME_LIMIT = 22,
    BERTH_REASON_MEMORY_LIMIT = 23,
    BERTH_REASON_CANCELLED_BY_USER = 24,
    BERTH_REASON_CANCELLED_BY_OPERATOR = 25,
    BERTH_REASON_BOOT_DEADLINE = 26,
    BERTH_REASON_GUEST_CRASHED = 27,
    BERTH_REASON_GUEST_VANISHED = 28,
    BERTH_REASON_NODE_LOST = 29,
    BERTH_REASON_START_FAILED = 30,
    BERTH_REASON_COMMAND_NOT_FOUND = 31,
    BERTH_REASON_DISK_FULL = 32,
    BERTH_REASON_DEPENDENCY_NEVER = 33,
    BERTH_REASON_PRESSURE = 40,
    BERTH_REASON_ROOM_NEEDED = 41,
    BERTH_REASON_PROMOTION = 42,
    BERTH_REASON_BALANCE = 43,
    BERTH_REASON_DRAIN = 44,
    BERTH_REASON_AT_LIMIT = 45,
    BERTH_REASON_BELOW_LIMIT = 46,
    BERTH_REASON_FROZEN_BY_USER = 50,
    BERTH_REASON_FROZEN_BY_OPERATOR = 51,
    BERTH_REASON_MOVED_BY_USER = 52,
    BERTH_REASON_MOVED_BY_OPERATOR = 53,
    BERTH_REASON_RESIZED_BY_USER = 54,
    BERTH_REASON_RESIZED_BY_OPERATOR = 55,
    BERTH_REASON_CHECKPOINTED_BY_USER = 56,
    BERTH_REASON_CHECKPOINTED_BY_OPERATOR = 57,
    BERTH_REASON_CHECKPOINT_DUE = 58,
    BERTH_REASON_ROOM_KEPT = 59,
    BERTH_REASON_STARVED = 60,
    BERTH_REASON_SLACK_FULL = 61,
    BERTH_REASON_DEFRAGMENT = 62,
    BERTH_REASON_CROWDED_OUT = 63,
} BerthReason;
