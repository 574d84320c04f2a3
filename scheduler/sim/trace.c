/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the stream of jobs: which format the files have, one file after the other, and from the
 * start again. The formats are trace_*.c's. */
#include "config.h"

#include "common/error.h"
#include "scheduler/sim/trace_formats.h"

#include <string.h>

struct SimTrace {
    SimFormat format;
    GPtrArray *sources; /* SimSource */
    guint next_source;  /* SWF: the one to be opened next */
    SimInput *input;    /* SWF: the present file */
    SimSwf swf;
    SimTraceMachine beside; /* SWF: from NAME.machines */
    SimTraceMachine machine;
    GArray *jobs; /* SimTraceJob: formats that are read whole */
    guint next_job;
    guint64 n_never_ran;
    SimSeriesSet *series;
};

static const char *const format_names[] = {"auto", "swf", "torque", "vmseries", "torque-whole"};

static const char *format_name(SimFormat format)
{
    return format_names[format];
}

gboolean sim_format_parse(const char *text, SimFormat *out_format, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(format_names); i++) {
        if (g_str_equal(text, format_names[i])) {
            *out_format = (SimFormat)i;
            return TRUE;
        }
    }
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "format '%s': allowed are auto, swf, torque, torque-whole and vmseries", text);
    return FALSE;
}

/* --- which format ------------------------------------------------------------------------------- */

/* What a person can have written, and can be asked about. */
static gboolean is_text(const char *line)
{
    if (!g_utf8_validate(line, -1, NULL))
        return FALSE;
    for (const char *at = line; *at != '\0'; at++)
        if (g_ascii_iscntrl(*at) && *at != '\t')
            return FALSE;
    return TRUE;
}

static gboolean detect(const SimSource *source, SimFormat *out_format, GError **error)
{
    g_autoptr(SimInput) input = sim_input_open(source, error);
    const char *name;
    char *line;
    if (input == NULL || !sim_input_next_file(input, &name, error))
        return FALSE;
    if (name == NULL || sim_input_is_tar(input)) {
        *out_format = SIM_FORMAT_VMSERIES;
        if (name != NULL)
            return TRUE;
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s: the file is empty",
                    sim_source_name(source));
        return FALSE;
    }
    do {
        if (!sim_input_next_line(input, &line, error))
            return FALSE;
    } while (line != NULL && line[strspn(line, " \t")] == '\0');
    if (line != NULL && sim_torque_is(line))
        *out_format = SIM_FORMAT_TORQUE;
    else if (line != NULL && sim_vmseries_is(line))
        *out_format = SIM_FORMAT_VMSERIES;
    else if (line != NULL && sim_swf_is(line))
        *out_format = SIM_FORMAT_SWF;
    else if (line != NULL && !is_text(line))
        return sim_input_refuse(input, error,
                                "binary data: neither a trace nor one compressed with gzip, xz, "
                                "bzip2 or zstd");
    else
        return sim_input_refuse(input, error,
                                "neither SWF, nor a Torque accounting log, nor a VM series; say "
                                "which with --format");
    return TRUE;
}

static gboolean detect_all(SimTrace *trace, GError **error)
{
    const SimSource *first = g_ptr_array_index(trace->sources, 0);
    for (guint i = 0; i < trace->sources->len; i++) {
        const SimSource *source = g_ptr_array_index(trace->sources, i);
        SimFormat format = SIM_FORMAT_AUTO;
        if (!detect(source, &format, error))
            return FALSE;
        if (i > 0 && format != trace->format) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "%s is %s, but %s is %s: the traces of one run are parts of one log",
                        sim_source_name(first), format_name(trace->format), sim_source_name(source),
                        format_name(format));
            return FALSE;
        }
        trace->format = format;
    }
    return TRUE;
}

/* --- formats that are read whole ---------------------------------------------------------------- */

static gboolean read_torque_file(SimTorque *torque, const SimSource *source, GError **error)
{
    g_autoptr(SimInput) input = sim_input_open(source, error);
    const char *name;
    char *line;
    if (input == NULL || !sim_input_next_file(input, &name, error))
        return FALSE;
    while (name != NULL) {
        if (!sim_input_next_line(input, &line, error))
            return FALSE;
        if (line == NULL)
            break;
        if (!sim_torque_line(torque, input, line, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean read_torque(SimTrace *trace, gboolean is_whole, GError **error)
{
    SimTorque *torque = sim_torque_new(is_whole);
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < trace->sources->len; i++)
        ok = read_torque_file(torque, g_ptr_array_index(trace->sources, i), error);
    if (ok)
        sim_torque_finish(torque, trace->jobs, &trace->machine, &trace->n_never_ran);
    if (ok && trace->jobs->len == 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s: no E line, of a job that ended, and so no job that ran",
                    sim_source_name(g_ptr_array_index(trace->sources, 0)));
        ok = FALSE;
    }
    sim_torque_free(torque);
    return ok;
}

static gboolean read_vmseries(SimTrace *trace, GError **error)
{
    trace->series = sim_series_set_new();
    for (guint i = 0; i < trace->sources->len; i++)
        if (!sim_vmseries_read(g_ptr_array_index(trace->sources, i), trace->series, error))
            return FALSE;
    sim_vmseries_jobs(trace->series, trace->jobs);
    return TRUE;
}

/* --- life --------------------------------------------------------------------------------------- */

static gboolean open_sources(SimTrace *trace, const char *const *paths, GError **error)
{
    for (guint i = 0; paths[i] != NULL; i++) {
        SimSource *source = sim_source_new(paths[i], error);
        if (source == NULL)
            return FALSE;
        g_ptr_array_add(trace->sources, source);
        for (guint k = 0; k < i; k++) {
            const SimSource *other = g_ptr_array_index(trace->sources, k);
            if (!sim_source_is_same(source, other))
                continue;
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "%s and %s are one file: each of its jobs would come twice",
                        sim_source_name(other), sim_source_name(source));
            return FALSE;
        }
    }
    return TRUE;
}

SimTrace *sim_trace_open(const char *const *paths, SimFormat format, GError **error)
{
    g_autoptr(SimTrace) trace = g_new0(SimTrace, 1);
    gboolean ok = TRUE, is_whole = format == SIM_FORMAT_TORQUE_WHOLE;
    trace->format = is_whole ? SIM_FORMAT_TORQUE : format;
    trace->sources = g_ptr_array_new_with_free_func((GDestroyNotify)sim_source_free);
    trace->jobs = g_array_new(FALSE, FALSE, sizeof(SimTraceJob));
    if (!open_sources(trace, paths, error))
        return NULL;
    if (format == SIM_FORMAT_AUTO && !detect_all(trace, error))
        return NULL;
    if (trace->format == SIM_FORMAT_TORQUE)
        ok = read_torque(trace, is_whole, error);
    else if (trace->format == SIM_FORMAT_VMSERIES)
        ok = read_vmseries(trace, error);
    else
        ok = sim_swf_read_machines(paths[0], &trace->beside, error);
    return ok ? g_steal_pointer(&trace) : NULL;
}

void sim_trace_close(SimTrace *trace)
{
    if (trace == NULL)
        return;
    sim_input_close(trace->input);
    g_clear_error(&trace->swf.bad_header);
    sim_series_set_free(trace->series);
    g_array_unref(trace->jobs);
    g_ptr_array_unref(trace->sources);
    g_free(trace);
}

gboolean sim_trace_rewind(SimTrace *trace, GError **error)
{
    g_clear_pointer(&trace->input, sim_input_close);
    trace->next_source = 0;
    trace->next_job = 0;
    trace->swf.n_jobs = 0;
    trace->swf.n_never_ran = 0;
    return TRUE;
}

/* --- jobs --------------------------------------------------------------------------------------- */

/* *OUT_END: that was the last file. */
static gboolean open_next(SimTrace *trace, gboolean *out_end, GError **error)
{
    const char *name;
    g_clear_pointer(&trace->input, sim_input_close);
    *out_end = trace->next_source == trace->sources->len;
    if (*out_end)
        return TRUE;
    trace->input = sim_input_open(g_ptr_array_index(trace->sources, trace->next_source++), error);
    return trace->input != NULL && sim_input_next_file(trace->input, &name, error) &&
           (name != NULL || sim_input_refuse(trace->input, error, "the file is empty"));
}

/* *OUT_IS_JOB FALSE: the file is at its end. */
static gboolean next_of_file(SimTrace *trace, SimTraceJob *out_job, gboolean *out_is_job,
                             GError **error)
{
    char *line = NULL;
    *out_is_job = FALSE;
    do {
        if (!sim_input_next_line(trace->input, &line, error))
            return FALSE;
        if (line != NULL &&
            !sim_swf_line(&trace->swf, trace->input, line, out_job, out_is_job, error))
            return FALSE;
    } while (line != NULL && !*out_is_job);
    return TRUE;
}

static gboolean next_swf(SimTrace *trace, SimTraceJob *out_job, gboolean *out_end, GError **error)
{
    gboolean is_job = FALSE;
    *out_end = FALSE;
    while (!is_job) {
        if (trace->input != NULL && !next_of_file(trace, out_job, &is_job, error))
            return FALSE;
        if (!is_job && !open_next(trace, out_end, error))
            return FALSE;
        if (*out_end)
            return TRUE;
    }
    return TRUE;
}

gboolean sim_trace_next(SimTrace *trace, SimTraceJob *out_job, gboolean *out_end, GError **error)
{
    if (trace->format == SIM_FORMAT_SWF)
        return next_swf(trace, out_job, out_end, error);
    *out_end = trace->next_job >= trace->jobs->len;
    if (!*out_end)
        *out_job = g_array_index(trace->jobs, SimTraceJob, trace->next_job++);
    return TRUE;
}

SimFormat sim_trace_format(const SimTrace *trace)
{
    return trace->format;
}

SimTraceMachine sim_trace_machine(const SimTrace *trace)
{
    if (trace->format != SIM_FORMAT_SWF)
        return trace->machine;
    return trace->beside.nodes > 0 ? trace->beside : trace->swf.machine;
}

gboolean sim_trace_check_machine(const SimTrace *trace, GError **error)
{
    if (trace->swf.bad_header == NULL || trace->beside.nodes > 0)
        return TRUE;
    g_propagate_error(error, g_error_copy(trace->swf.bad_header));
    return FALSE;
}

const char *sim_trace_name(const SimTrace *trace)
{
    return sim_source_name(g_ptr_array_index(trace->sources, 0));
}

void sim_trace_watch(SimTrace *trace, guint64 number)
{
    trace->swf.watched = number;
    trace->swf.watched_never_ran = FALSE;
}

gboolean sim_trace_watched_never_ran(const SimTrace *trace)
{
    return trace->swf.watched_never_ran;
}

guint64 sim_trace_n_never_ran(const SimTrace *trace)
{
    return trace->format == SIM_FORMAT_SWF ? trace->swf.n_never_ran : trace->n_never_ran;
}

const SimSeriesSet *sim_trace_series(const SimTrace *trace)
{
    return trace->series;
}
