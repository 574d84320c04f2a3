/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"
#include "scheduler/daemon/elements.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/job_table.h"
#include "scheduler/daemon/journal_file.h"
#include "scheduler/daemon/node_table.h"
#include "scheduler/store/store.h"

/* The heart of berthd: decide, commit, act. A turn takes events to the core, writes what changed
 * into one batch, and holds replies and actions back until that batch is durable. Turns are made
 * and committed within one callback of the loop, so that their order is that of the event log. */

typedef struct BerthEngine BerthEngine;
typedef struct BerthTurn BerthTurn;

/* Called on the loop, each after the commit that it belongs to. */
typedef struct {
    /* An action is to leave. It may be out of date by now: look at the core. */
    void (*act)(const BerthCoreAction *action, gpointer user_data);
    /* An event was committed, in order of their numbers. */
    void (*event)(const Berth__Event *event, gpointer user_data);
    /* A task's record was committed. */
    void (*task_changed)(guint64 job, guint32 task, gpointer user_data);
    /* The store cannot write: nothing more will be committed, and the daemon must end. Once. */
    void (*failed)(const GError *error, gpointer user_data);
} BerthEngineHooks;

/* CORE, STORE, JOBS and NODES outlive the engine and are in the state that the store has;
 * LAST_SEQ is the newest event's number, LAST_USEC its time (0 = there is none). */
BerthEngine *berth_engine_new(BerthCore *core, BerthStore *store, BerthJobTable *jobs,
                              BerthNodeTable *nodes, guint64 last_seq, gint64 last_usec);
void berth_engine_free(BerthEngine *engine);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthEngine, berth_engine_free)
/* All that the core is told from now on goes into JOURNAL (transfer none; NULL = none), which has what
 * it was told before. */
void berth_engine_set_journal(BerthEngine *engine, BerthJournalFile *journal);
/* Makes a node known to the core, if it is not. */
guint32 berth_engine_add_node(BerthEngine *engine, const char *name);
void berth_engine_set_hooks(BerthEngine *engine, const BerthEngineHooks *hooks, gpointer user_data);

/* The first decisions after the core was restored; then timers run. */
void berth_engine_start(BerthEngine *engine);
/* Stops the timers and runs the main context until the commits under way have returned. */
void berth_engine_stop(BerthEngine *engine);
/* Is the daemon ending (stopped, or its store has failed)? Begin no more turns then. */
gboolean berth_engine_is_stopped(BerthEngine *engine);
/* UNAVAILABLE if it is. */
gboolean berth_engine_check(BerthEngine *engine, GError **error);

/* Microseconds since the epoch; never goes back, nor does it jump with the wall clock (clock.h). */
gint64 berth_engine_now_usec(BerthEngine *engine);
/* It is told of all tasks that complete, in the turn in which they do. */
BerthElements *berth_engine_elements(BerthEngine *engine);
/* Newest event that was committed. */
guint64 berth_engine_committed_seq(BerthEngine *engine);
/* Newest event that has a number: whoever reads the store may see it before it counts as committed
 * here. */
guint64 berth_engine_last_seq(BerthEngine *engine);

BerthTurn *berth_engine_begin(BerthEngine *engine);
/* Takes EVENT to the core and writes what changed. FALSE: the core refused it (its error), and
 * nothing was added to the turn. ASKER: who asked, for the event log, or NULL. */
gboolean berth_turn_event(BerthTurn *turn, const BerthCoreEvent *event, const BerthAsker *asker,
                          GError **error);
/* Likewise, of what the event log says in other words. */
gboolean berth_turn_event_untold(BerthTurn *turn, const BerthCoreEvent *event, GError **error);
/* The same for JOB_SUBMITTED, which makes the job's records too. IDEMPOTENCY_KEY: NULL or "" =
 * none. */
gboolean berth_turn_submit(BerthTurn *turn, const BerthCoreEvent *event, const Berth__Job *job,
                           const Berth__JobSpec *spec, const char *idempotency_key, GError **error);
/* For records beside the core's: images, blobs, the job's own. */
BerthStoreBatch *berth_turn_batch(BerthTurn *turn);
/* Adds an event that is not the core's; its number and time are filled in. */
void berth_turn_log(BerthTurn *turn, Berth__Event *event);
/* Likewise one of TASK as it is, on its node. REASON: or 0; TEXT: or NULL. */
void berth_turn_log_task(BerthTurn *turn, const Berth__Task *task, Berth__Event__Kind kind,
                         Berth__Reason reason, const char *text);

/* FUNC after the commit, in the order of the calls; ERROR is NULL once everything up to this turn
 * is durable, else it says why it is not. Always called, once. */
typedef void (*BerthTurnFunc)(const GError *error, gpointer user_data);
void berth_turn_then(BerthTurn *turn, BerthTurnFunc func, gpointer user_data);
/* Ends the turn (transfer full). An empty one waits for those before it. */
void berth_turn_commit(BerthTurn *turn);
/* EVENT, of a node or of storage, in a turn of its own; nothing, once the engine has stopped. */
void berth_engine_tell(BerthEngine *engine, const BerthCoreEvent *event);
