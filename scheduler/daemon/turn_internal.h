/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What engine.c and turn_records.c know of each other. Not for use outside of them. */

#include "scheduler/daemon/clock.h"
#include "scheduler/daemon/engine.h"

struct BerthTurn {
    BerthEngine *engine;
    BerthStoreBatch *batch;
    GArray *actions;   /* BerthCoreAction */
    GArray *changed;   /* BerthGuestId */
    GPtrArray *events; /* Berth__Event, owned */
    GArray *followers; /* Follower, engine.c's */
    GHashTable *
        arrays; /* set of guint64: jobs whose tasks have changed, and whose record is to be written */
};

struct BerthEngine {
    BerthCore *core;
    BerthStore *store;
    BerthJobTable *jobs;
    BerthNodeTable *nodes;
    BerthElements *elements;
    BerthEngineHooks hooks;
    gpointer hooks_data;
    BerthJournalFile *journal;
    BerthCoreEffects *effects; /* scratch */
    GQueue in_flight;          /* BerthTurn: committing, oldest first */
    guint64 last_seq;
    guint64 committed_seq;
    gint64 now_usec;
    BerthClock clock;
    GSource *timer;
    gboolean is_started;
    gboolean is_stopping;
    gboolean is_ending; /* followers run: turns that end meanwhile wait for them */
    GError *failure;    /* of the store */
};

/* turn_records.c: all that EFFECTS of the engine say, into TURN. */
void turn_take_effects(BerthTurn *turn);
/* The records of the arrays of which something has changed, once each. */
void turn_write_arrays(BerthTurn *turn);
/* Brings the record of a job up to what the core says of it after EVENT: its holds, its time limit, how often it is
 * checkpointed. */
void turn_write_job(BerthTurn *turn, const BerthCoreEvent *event);
/* EVENT is in the log: it may be a request, or say what came of one. */
void turn_note_requests(BerthTurn *turn, const Berth__Event *event);
/* The record of the task of GUEST says what came of an event: what was asked of it may be so by now. */
void turn_settle_requests(BerthTurn *turn, const BerthGuestId *guest);
/* EVENT has been decided, and its effects are not taken yet: it is logged, if it had any or somebody asked
 * for it: ASKER, or NULL. */
void turn_log_cause(BerthTurn *turn, const BerthCoreEvent *event, const BerthAsker *asker);
