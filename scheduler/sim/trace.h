/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Workload traces as a stream of jobs in order of their arrival, whatever their format. */

#include "scheduler/sim/series.h"

#include <glib.h>

typedef enum {
    SIM_FORMAT_AUTO,
    SIM_FORMAT_SWF,
    SIM_FORMAT_TORQUE,
    SIM_FORMAT_VMSERIES,
    SIM_FORMAT_TORQUE_WHOLE, /* to be read as such: nobody in the log had come before it began; then SIM_FORMAT_TORQUE */
} SimFormat;

/* A job as its trace has it. 0 = the trace does not say, in each field marked so. */
typedef struct {
    guint64 number; /* in the trace; need not be unique */
    guint32 task;   /* of an array of that number, plus 1; 0 = of none */
    gint64 submit_sec;
    gint64 run_sec;          /* > 0: jobs that never ran are left out and counted */
    gint64 limit_sec;        /* asked for; 0 */
    guint32 procs;           /* in all, > 0 */
    guint32 nodes;           /* asked for, PROCS / NODES on each; 0 */
    guint64 memory_kib;      /* asked for, in all; 0 */
    gint64 cpu_sec;          /* used, in all; -1 = the trace does not say */
    guint64 memory_used_kib; /* peak, in all; 0 */
    guint32 user, name;      /* numbers that say who is the same; 0 */
    guint32 series;          /* its own usage: index + 1 into the trace's series; 0 */
} SimTraceJob;

/* What a trace says of its own machine; 0 = nothing. */
typedef struct {
    guint32 nodes;
    guint32 procs; /* in all */
    guint32 vcpus_per_node;
    guint64 memory_mib_per_node;
} SimTraceMachine;

typedef struct SimTrace SimTrace;

/* PATHS (NULL-terminated, at least one; "-" is standard input) are parts of one log. Torque logs and VM series are read whole, as
 * their jobs are not in order of arrival (about 100 bytes per job, 4 per sample); SWF is not.
 * Errors: of the files; INVALID_ARGUMENT "FILE:LINE: why". */
SimTrace *sim_trace_open(const char *const *paths, SimFormat format, GError **error);
void sim_trace_close(SimTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimTrace, sim_trace_close)

/* *OUT_END: there is no more. */
gboolean sim_trace_next(SimTrace *trace, SimTraceJob *out_job, gboolean *out_end, GError **error);
/* From the first job on again. */
gboolean sim_trace_rewind(SimTrace *trace, GError **error);

SimFormat sim_trace_format(const SimTrace *trace);
/* As messages name it: its first file. (transfer none) */
const char *sim_trace_name(const SimTrace *trace);
/* Complete once the trace was read to its end, as what is below. */
SimTraceMachine sim_trace_machine(const SimTrace *trace);
/* FALSE: a header is to say what machine it is, and does not: INVALID_ARGUMENT "FILE:LINE: why". */
gboolean sim_trace_check_machine(const SimTrace *trace, GError **error);
/* So far, since the last rewind: lines of jobs that never ran. */
guint64 sim_trace_n_never_ran(const SimTrace *trace);
/* From now on, looks for a job of that number that never ran. Only SWF is looked at: of
 * other formats such jobs are counted, no more. */
void sim_trace_watch(SimTrace *trace, guint64 number);
gboolean sim_trace_watched_never_ran(const SimTrace *trace);
/* (transfer none); NULL: no VM series. */
const SimSeriesSet *sim_trace_series(const SimTrace *trace);

gboolean sim_format_parse(const char *text, SimFormat *out_format, GError **error);
