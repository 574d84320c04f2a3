/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line of berth-sim, checked. */

#include "scheduler/sim/sim.h"

typedef struct {
    SimFormat format;
    gboolean policies[SIM_POLICY_N];
    SimWorkloadConfig workload;
    SimUsageKind usage;
    char *shapes; /* file, for SIM_USAGE_SHAPES */
    SimConfig sim;
    gint64 tunings[BERTH_TUNING_N];
    gboolean is_tuned[BERTH_TUNING_N]; /* by --tune; the others are the defaults */
    gboolean tunes;                    /* any is */
    gboolean has_seed, has_mttr, has_costs, has_report_interval,
        has_react; /* named on the command line */
    char *json;    /* file, "-" = standard output; NULL = none */
    char *jobs;    /* file for a list of jobs; NULL = none */
    char *plot;    /* directory; NULL = none */
    char *replay;  /* log of the core; NULL = none */
    char *journal; /* directory for such logs, POLICY.log; NULL = none */
    gboolean quiet;
    char **traces; /* NULL-terminated, at least one unless REPLAY */
    char **
        given; /* "--load=2.5", NULL-terminated: what was, of what decides results; not POLICIES and TRACES */
} SimOptions;

/* *OUT_STOP: --help or --version was answered on standard output. Errors: INVALID_ARGUMENT. */
gboolean sim_options_parse(int argc, char **argv, SimOptions *out_options, gboolean *out_stop,
                           GError **error);
void sim_options_clear(SimOptions *options);
