/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A small cluster in virtual time, driven as berthd drives the core, where all that the guests use is a
 * function of the instant: so that all of them can grow in the same one. Actions take as long as the
 * core reckons; a guest reports every STORM_REPORT_USEC. After each event the core's invariants are
 * checked, what is under way against the caps of moves, and that nobody who is backed waits for guests in slack for longer
 * than the evacuation bound. */

#include "scheduler/core/core.h"

#define STORM_REPORT_USEC (30 * (gint64)G_USEC_PER_SEC)
#define STORM_HOUR_USEC   (3600 * (gint64)G_USEC_PER_SEC)

typedef struct {
    guint32 cpu_milli;
    guint64 memory_mib;
} StormDemand;

typedef struct {
    guint32 seed; /* for messages, and for DEMAND */
    guint32 n_nodes;
    BerthResources node;            /* each has so much */
    gint64 tunings[BERTH_TUNING_N]; /* storm_tunings() to begin with */
    guint fails_permille;           /* of moves and checkpoints, at their end */
    /* What a guest of JOB uses at NOW_USEC, counted from the beginning, while it runs. */
    StormDemand (*demand)(guint32 seed, const BerthCoreJob *job, gint64 now_usec);
} StormConfig;

typedef struct {
    guint completed; /* jobs */
    guint starts_in_slack;
    guint migrations, checkpoints;
    guint most_under_way;         /* moves and checkpoints, at once */
    guint most_in_an_hour;        /* of one guest, in any hour */
    guint returns;                /* to the node that it left in the hour before */
    double guest_hours;           /* that guests ran */
    gint64 longest_shortage_usec; /* that guests of a node with backed ones wanted more memory than
                                   * it has, without a break */
    guint waits; /* of backed guests, for those in slack; none for longer than the bound */
    gint64 longest_wait_usec; /* of these */
    gint64 last_end_usec;
} StormResult;

typedef struct Storm Storm;

void storm_tunings(gint64 out_tunings[BERTH_TUNING_N]);
Storm *storm_new(const StormConfig *config);
void storm_free(Storm *storm);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Storm, storm_free)

/* JOB, of one guest, runs for RUN_USEC. Its id is the next, from 1. */
void storm_submit(Storm *storm, const BerthCoreJob *job, gint64 run_usec);
/* Everything that is to happen before END_USEC, counted from the beginning. */
void storm_run(Storm *storm, gint64 end_usec);
/* Until all jobs have ended; aborts if that takes longer than until END_USEC. */
void storm_run_all(Storm *storm, gint64 end_usec);
/* All that runs there is lost. */
void storm_fail(Storm *storm, guint32 node);
void storm_repair(Storm *storm, guint32 node);
const StormResult *storm_result(const Storm *storm);
/* How long job ID waited until its command ran for the first time; until now where it has not. */
gint64 storm_waited_usec(const Storm *storm, guint64 id);
/* Jobs of which no command has run yet. */
guint storm_waiting(const Storm *storm);
