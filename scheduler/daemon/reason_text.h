/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
#include "proto/berth.pb-c.h"
#include <glib.h>

/* What a task comes after, and keeps it from ever starting. */
typedef struct {
    guint64 job;           /* 0 = not known */
    gboolean by_task;      /* of that job: */
    BerthIndexRange tasks; /* those of its own indices */
} BerthReasonNever;

/* What it takes to back a guest, of what nobody has reserved, and what its node has of that. */
typedef struct {
    guint32 vcpus, has_vcpus;
    guint64 memory_mib, has_mib;
} BerthReasonBacking;

/* What a reason is put into words from. Strings may be NULL or empty. */
typedef struct {
    Berth__Reason reason;
    const Berth__Exit *exit; /* or NULL */
    guint32 vcpus;
    guint64 memory_mib;     /* that it has */
    guint64 memory_max_mib; /* that it may have */
    guint64 time_limit_sec;
    gboolean is_suspended;
    gboolean is_opportunistic;
    const BerthReasonBacking
        *backing; /* in slack, and standing still at its limit; NULL: its node backs nobody now */
    const char *unsaved; /* why it was not checkpointed at its time limit, as it was to be */
    BerthReasonNever never;
    guint32 requeues;
    guint32 start_failures;
    const char *node;
    const char *detail; /* what the node said about it */
} BerthReasonFacts;

/* One line for a person: what happened, on what, why. "" for REASON_NONE (transfer full). */
char *berth_reason_text(const BerthReasonFacts *facts);
