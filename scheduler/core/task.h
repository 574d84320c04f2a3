/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What can happen to a task that has, or had, a guest. */
typedef enum {
    CORE_TASK_START_TAKEN,  /* its node has it */
    CORE_TASK_RUNNING,      /* the command runs */
    CORE_TASK_EXITED,       /* the command ended */
    CORE_TASK_GONE,         /* the guest is no more */
    CORE_TASK_START_FAILED, /* there never was one */
    CORE_TASK_RELEASED,     /* nothing of it is left on its node */
    CORE_TASK_FENCED,       /* it cannot write any more */
    CORE_TASK_FENCE_FAILED,
    CORE_TASK_CANCEL,   /* somebody does not want it any more */
    CORE_TASK_TIMER,    /* its timer is due */
    CORE_TASK_FOUND,    /* its node joined and still has its guest */
    CORE_TASK_MISSING,  /* its node joined without its guest */
    CORE_TASK_MIGRATED, /* the result of its op */
    CORE_TASK_CHECKPOINTED,
    CORE_TASK_RESIZED,
    CORE_TASK_FROZEN,
    CORE_TASK_THAWED,
    CORE_TASK_EVICT,     /* it has not begun to run, and its room is needed */
    CORE_TASK_NO_ROOM,   /* whoever is in its room does not go: its START has not left */
    CORE_TASK_NODE_LOST, /* its node is given up */
    CORE_TASK_N_EVENTS,
} CoreTaskEvent;

/* What the event says; which fields count depends on it. */
typedef struct {
    gint64 start_usec;
    gint64 end_usec;
    BerthCoreExit exit;
    BerthReason reason;     /* GONE, START_FAILED, CANCEL */
    guint64 never_after;    /* CANCEL, for DEPENDENCY_NEVER: as BerthCoreTask says */
    gboolean never_by_task; /* likewise */
    gboolean permanent;     /* START_FAILED */
    gboolean passes;        /* START_FAILED */
    gboolean not_begun;     /* GONE */
    gboolean has_left;      /* GONE */
    gboolean ok;            /* the result of an op */
    gboolean has_not_left;  /* likewise: it has waited for room, and nobody was asked */
    guint32 serial;         /* of which; 0 = of the latest */
    gint64 paused_usec;     /* CHECKPOINTED */
    guint64 stored_mib;     /* likewise */
    BerthResources has;     /* RESIZED */
} CoreTaskInput;

/* Applies EVENT to TASK, or to its GUEST, by the table in task.c. INPUT may be NULL where it says
 * nothing. */
void core_task_handle(BerthCore *core, CoreTask *task, CoreTaskEvent event,
                      const CoreTaskInput *input);
void core_task_apply(BerthCore *core, CoreTask *task, CoreGuest *guest, CoreTaskEvent event,
                     const CoreTaskInput *input);
/* The same, but what one guest of several says becomes an event of the task only when it is one. */
void core_guest_handle(BerthCore *core, CoreGuest *guest, CoreTaskEvent event,
                       const CoreTaskInput *input);

/* A task that waits no longer gets its guests, one on each of NODES (which may repeat). */
void core_task_start(BerthCore *core, CoreTask *task, const guint32 *nodes,
                     gboolean is_opportunistic);
/* GUEST's START leaves: it has waited for room. */
void core_task_room_is_free(BerthCore *core, CoreGuest *guest);
/* A PENDING task without a guest begins to wait: in the order, for its backoff, or held. */
void core_task_wait(BerthCore *core, CoreTask *task);
/* The job is not told: core_order_update() is to follow. */
void core_task_wait_no_more(BerthCore *core, CoreTask *task);
/* Sets the timer that belongs to its phase. */
void core_task_arm(BerthCore *core, CoreTask *task);
/* Its guests are in their places again: what follows from its record. */
void core_task_restored(BerthCore *core, CoreTask *task);
/* How long it may still run; for planning where nothing limits it. */
gint64 core_task_time_left_usec(const BerthCore *core, const CoreTask *task);
BerthResources core_guest_resources(const CoreGuest *guest);
/* Of SIZE, overhead included, as a guest of its job has it. */
BerthResources core_guest_resources_of(const CoreGuest *guest, CoreSize size);
/* Its guests are to end, for REASON. */
void core_task_stop(BerthCore *core, CoreTask *task, BerthReason reason);
/* Its guests were to be gone by now, and are not: they are thought to stay for as long again. */
void core_task_overstays(BerthCore *core, CoreTask *task);
/* A stop that waited for the last of its nodes leaves, if that is here. */
void core_task_stop_if_up(BerthCore *core, CoreTask *task);

/* Its job came later, or its task of the same array. */
static inline gboolean core_guest_is_younger(const CoreGuest *a, const CoreGuest *b)
{
    const BerthCoreTask *task_a = &a->task->record;
    const BerthCoreTask *task_b = &b->task->record;
    return task_a->job != task_b->job ? task_a->job > task_b->job : task_a->task > task_b->task;
}
