/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the readers of the single formats offer to trace.c. */

#include "scheduler/sim/input.h"
#include "scheduler/sim/trace.h"

/* One line of SWF: at most one job, or something about the machine. trace_swf.c */
typedef struct {
    SimTraceMachine machine;
    gint64 last_submit_sec;
    guint64 n_jobs;
    guint64 n_never_ran;
    guint64 watched; /* job number; 0 = none */
    gboolean watched_never_ran;
    GError *
        bad_header; /* of the first one that is no number, though it should say one; NULL = none is */
} SimSwf;

/* *OUT_IS_JOB FALSE: a comment, an empty line, or a job that never ran. */
gboolean sim_swf_line(SimSwf *swf, const SimInput *input, char *line, SimTraceJob *out_job,
                      gboolean *out_is_job, GError **error);
gboolean sim_swf_is(const char *line);
/* PATH's neighbour "NAME.machines" (NAME: PATH without .swf and what follows), if there is one:
 * replaces what the header says. */
gboolean sim_swf_read_machines(const char *path, SimTraceMachine *machine, GError **error);

/* A Torque accounting log, read whole. trace_torque.c */
typedef struct SimTorque SimTorque;
/* IS_WHOLE: all of its jobs came after it began. */
SimTorque *sim_torque_new(gboolean is_whole);
void sim_torque_free(SimTorque *torque);
gboolean sim_torque_line(SimTorque *torque, const SimInput *input, char *line, GError **error);
/* No more lines: JOBS gets them in order of arrival. */
void sim_torque_finish(SimTorque *torque, GArray *jobs, SimTraceMachine *out_machine,
                       guint64 *out_never_ran);
gboolean sim_torque_is(const char *line);

/* VM series as jobs: each VM is one. trace_vmseries.c */
gboolean sim_vmseries_read(const SimSource *source, SimSeriesSet *set, GError **error);
void sim_vmseries_jobs(const SimSeriesSet *set, GArray *jobs);
gboolean sim_vmseries_is(const char *line);
