/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small traces for the simulator, and what became of each of their jobs. */

#include "scheduler/sim/report.h"
#include "tests/lib/assert.h"

typedef struct {
    gint64 submit_sec, run_sec, limit_sec;
    guint32 procs;
} SimFixtureJob;

typedef struct {
    gint64 start_usec, end_usec; /* on a node: first and last */
    guint n_stays;
} SimFixtureStay;

typedef struct {
    SimMetrics metrics;
    GArray *stays; /* SimFixtureStay by job id - 1 */
    GString *log;  /* every stay, one line each */
} SimFixtureRun;

/* A new file below DIR with TEXT (transfer full). */
char *sim_fixture_file(const char *dir, const char *name, const char *text);
/* An SWF trace of the jobs on a machine of NODES with VCPUS each (transfer full). */
char *sim_fixture_swf(guint32 nodes, guint32 vcpus, const SimFixtureJob *jobs, guint n);

/* CONFIG as a start: no failures, no overhead, checks after every step. */
void sim_fixture_config(SimPolicy policy, SimConfig *out_config);
/* Simulates TEXT (a trace); fails the test if that fails. */
SimFixtureRun *sim_fixture_run(const char *dir, const char *text, const SimConfig *config,
                               const SimWorkloadConfig *workload, SimUsageModel *usage);
void sim_fixture_run_free(SimFixtureRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimFixtureRun, sim_fixture_run_free)
gint64 sim_fixture_start_sec(const SimFixtureRun *run, guint64 job);
