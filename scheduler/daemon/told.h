/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"
#include "scheduler/daemon/job_table.h"
#include "scheduler/daemon/node_table.h"

/* What a task's record says for people of what was decided about it, and decides nothing. */

typedef struct {
    gboolean
        is_unsaved; /* it was to be checkpointed at its time limit, for which there is no space */
    gboolean is_missed; /* likewise one that was due */
    BerthReason
        not_to_disk; /* likewise one to disk, so that it stands still in memory: why; NONE = not so */
    gboolean is_drain_missed; /* likewise for the drain of its node */
    gboolean is_short;        /* it stalls for want of memory, gets no more, and goes on */
} BerthNews;

/* Before the record of ENTRY, a task of JOB, becomes what TASK says, which is as of NOW_USEC: notes the latest move, and that a job
 * is short of memory. NODE: the name of TASK's. What is to be told of it in the event log is in *OUT_NEWS. */
void berth_told_take(const Berth__Job *job, BerthTaskEntry *entry, const BerthCoreTask *task,
                     const char *node, gint64 now_usec, BerthNews *out_news);
/* The checkpoint at the end of the time limit of ENTRY's guest came to nothing. */
void berth_told_unsaved(BerthTaskEntry *entry, const char *why);

/* What a guest that ACTION starts, restores or moves has of the node that it goes to: "backed; 2 vCPUs, 512M stay
 * free", "in slack; ...". "" for other actions. (transfer full) */
char *berth_told_place(BerthCore *core, const BerthCoreAction *action);
/* Why a guest leaves that ACTION moves or checkpoints, where that is for memory or CPU: what the node's guests are predicted
 * to need of what, how much of the time it lost. "" for other actions. Names nobody. (transfer full) */
char *berth_told_cause(BerthCore *core, const BerthCoreAction *action);
/* Is it to be told that NODE, of ENTRY, has become short of memory, or has enough again? Of one that is away nobody knows when that
 * ended. */
gboolean berth_told_shortage_is_news(BerthNodeEntry *entry, const BerthCoreNode *node,
                                     gint64 now_usec);
/* The same of NODE's memory; FOR_ROOM: a backed guest needs it. (transfer full) */
char *berth_told_shortage(const BerthCoreNode *node, gboolean for_room);
/* The guest of ENTRY, a task of JOB, reports more processes that its kernel ended for want of memory than was told of: what is
 * to be told of that (transfer full), which is noted, or NULL: not now, or there are none. A guest may report what it likes: of
 * one that goes on with it there is an event after pauses that double. */
char *berth_told_kills(const Berth__Job *job, BerthTaskEntry *entry, gint64 now_usec);
/* Why JOB, whose guest has so much memory, gets no more. (transfer full) */
char *berth_told_short(const Berth__Job *job, const Berth__Task *task);
