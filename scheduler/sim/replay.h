/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs a log of the core (scheduler/core/journal.h) again, and compares decisions. */

#include "scheduler/core/core.h"

#include <glib.h>

/* So many differences are told. */
#define SIM_REPLAY_TOLD_MAX 20u

typedef struct {
    const char *path;
    const gint64 *tunings;    /* BERTH_TUNING_N values, of which those count that IS_TUNED; */
    const gboolean *is_tuned; /* NULL = all are the log's */
    guint64 explain;          /* the job whose story is told; 0 = none */
    /* Gets text in whole lines: for each of the first differences where it is, what the log has and what
     * the core asks for now; and the story. */
    void (*tell)(const char *text, gpointer user_data);
    gpointer user_data;
} SimReplayConfig;

typedef struct {
    guint64 n_events, n_actions; /* in the log */
    guint64 n_different;         /* events after which other actions were asked for */
    BerthCorePolicy policy;      /* of the core that wrote it, */
    guint32 features;            /* and which parts of its policy were on */
    guint64 torn_line; /* the log breaks off in or after it; 0 = it does not, as far as is seen */
} SimReplay;

/* Errors: of the file; INVALID_ARGUMENT "FILE:LINE: why", or that the job is not in it. */
gboolean sim_replay_run(const SimReplayConfig *config, SimReplay *out_replay, GError **error);
