/* SPDX-License-Identifier: Apache-2.0 */
/* Owns series of VM usage, in a tar (or alone) one file per VM, and their use as a workload.
 *
 *  - GWA-T-12 (Bitbrains): a header line, 11 fields between semicolons, seconds since 1970.
 *  - PlanetLab (CloudSim's): 288 whole numbers, CPU in %, one day; the day is the name of the
 *    folder (YYYYMMDD).
 *
 * Samples go to the slot of a grid of 300 s in which their time lies; of several in one slot the
 * largest counts, an empty slot repeats the one before. Usage above what is provisioned counts as
 * all of it. A VM that changes its size has the largest. Rows without cores (VM switched off) are
 * no usage; a VM without any other row is left out. */
#include "config.h"

#include "common/error.h"
#include "scheduler/sim/trace_formats.h"

#include <string.h>

#define GWA_FIELDS        11
#define PLANETLAB_SAMPLES 288
#define SLOTS_MAX         1000000u /* nine years: more is a wrong time */

typedef struct {
    gint64 time_sec;
    double cores, mhz, mhz_used, kib, kib_used;
} Row;

gboolean sim_vmseries_is(const char *line)
{
    return g_str_has_prefix(line, "Timestamp [ms]");
}

/* --- GWA-T-12 ----------------------------------------------------------------------------------- */

static gboolean parse_row(const SimInput *input, char *line, Row *out_row, GError **error)
{
    double fields[GWA_FIELDS];
    char *at = line;
    for (guint i = 0; i < GWA_FIELDS; i++) {
        char *end;
        fields[i] = g_ascii_strtod(at, &end);
        gboolean is_last = i + 1 == GWA_FIELDS;
        if (end == at || !(fields[i] >= 0) || fields[i] > 1e15 || *end != (is_last ? '\0' : ';'))
            return sim_input_refuse(input, error,
                                    "field %u is no number, or there are not %u fields with ';' "
                                    "between",
                                    i + 1, GWA_FIELDS);
        at = end + 1;
    }
    *out_row = (Row){(gint64)fields[0], fields[1], fields[2], fields[3], fields[5], fields[6]};
    if (out_row->cores > 65536)
        return sim_input_refuse(input, error, "more than 65536 cores");
    return TRUE;
}

static guint16 share(double used, double of)
{
    if (of <= 0)
        return 0;
    return (guint16)MIN(used / of * SIM_SERIES_FULL + 0.5, (double)SIM_SERIES_FULL);
}

static void fill_gaps(guint16 *samples, const guint8 *known, guint32 n)
{
    for (guint32 i = 1; i < n; i++)
        if (!known[i])
            samples[i] = samples[i - 1];
}

static gboolean rows_to_series(const SimInput *input, const GArray *rows, SimSeries *series,
                               GError **error)
{
    const Row *all = (const Row *)(void *)rows->data;
    gint64 first = all[0].time_sec, last = first;
    Row most = {0};
    for (guint i = 0; i < rows->len; i++) {
        first = MIN(first, all[i].time_sec);
        last = MAX(last, all[i].time_sec);
        most.cores = MAX(most.cores, all[i].cores);
        most.mhz = MAX(most.mhz, all[i].mhz);
        most.kib = MAX(most.kib, all[i].kib);
    }
    if ((last - first) / SIM_SAMPLE_SEC >= SLOTS_MAX)
        return sim_input_refuse(input, error, "its times are more than nine years apart");
    guint32 n = (guint32)((last - first) / SIM_SAMPLE_SEC) + 1;
    g_autofree guint8 *known = g_new0(guint8, n);
    series->first_sec = first;
    series->n_samples = n;
    series->vcpus = (guint32)most.cores;
    series->memory_mib = (guint64)most.kib / 1024;
    series->cpu = g_new0(guint16, n);
    series->memory = g_new0(guint16, n);
    for (guint i = 0; i < rows->len; i++) {
        guint32 slot = (guint32)((all[i].time_sec - first) / SIM_SAMPLE_SEC);
        series->cpu[slot] = MAX(series->cpu[slot], share(all[i].mhz_used, most.mhz));
        series->memory[slot] = MAX(series->memory[slot], share(all[i].kib_used, most.kib));
        known[slot] = TRUE;
    }
    fill_gaps(series->cpu, known, n);
    fill_gaps(series->memory, known, n);
    return TRUE;
}

static gboolean read_gwa(SimInput *input, SimSeries *series, GError **error)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(Row));
    char *line;
    for (;;) {
        Row row;
        if (!sim_input_next_line(input, &line, error))
            return FALSE;
        if (line == NULL)
            break;
        if (!parse_row(input, line, &row, error))
            return FALSE;
        if (row.cores > 0 && row.mhz > 0)
            g_array_append_val(rows, row);
    }
    return rows->len == 0 || rows_to_series(input, rows, series, error);
}

/* --- PlanetLab ---------------------------------------------------------------------------------- */

/* Midnight (UTC) of the YYYYMMDD that is the name of the folder; 0: it is none. */
static gint64 day_of(const char *name)
{
    g_autofree char *folder = g_path_get_dirname(name);
    g_autofree char *day = g_path_get_basename(folder);
    guint64 number;
    if (strlen(day) != 8 || !g_ascii_string_to_unsigned(day, 10, 19700101, 29991231, &number, NULL))
        return 0;
    g_autoptr(GDateTime) date = g_date_time_new_utc(
        (gint)(number / 10000), (gint)(number / 100 % 100), (gint)(number % 100), 0, 0, 0);
    return date != NULL ? g_date_time_to_unix(date) : 0;
}

static gboolean read_planetlab(SimInput *input, const char *name, char *line, SimSeries *series,
                               GError **error)
{
    series->first_sec = day_of(name);
    series->cpu = g_new0(guint16, PLANETLAB_SAMPLES);
    for (; line != NULL; series->n_samples++) {
        guint64 percent;
        if (series->n_samples == PLANETLAB_SAMPLES)
            return sim_input_refuse(input, error, "more than the %u samples of a day",
                                    PLANETLAB_SAMPLES);
        if (!g_ascii_string_to_unsigned(g_strstrip(line), 10, 0, 100, &percent, NULL))
            return sim_input_refuse(input, error, "no number from 0 to 100 (CPU in %%)");
        series->cpu[series->n_samples] = (guint16)(percent * SIM_SERIES_FULL / 100);
        if (!sim_input_next_line(input, &line, error))
            return FALSE;
    }
    return TRUE;
}

/* --- the set ------------------------------------------------------------------------------------ */

static gboolean read_file(SimInput *input, const char *name, SimSeriesSet *set, GError **error)
{
    char *line;
    SimSeries *series = g_new0(SimSeries, 1);
    series->name = g_strdup(name);
    g_ptr_array_add(set->series, series); /* owned, also when it fails */
    if (!sim_input_next_line(input, &line, error))
        return FALSE;
    if (line == NULL)
        return sim_input_refuse(input, error, "the file is empty");
    gboolean ok = sim_vmseries_is(line) ? read_gwa(input, series, error)
                                        : read_planetlab(input, name, line, series, error);
    if (!ok)
        return FALSE;
    if (series->n_samples == 0) /* never switched on */
        g_ptr_array_remove_index(set->series, set->series->len - 1);
    return TRUE;
}

gboolean sim_vmseries_read(const SimSource *source, SimSeriesSet *set, GError **error)
{
    g_autoptr(SimInput) input = sim_input_open(source, error);
    const char *name;
    if (input == NULL)
        return FALSE;
    for (;;) {
        if (!sim_input_next_file(input, &name, error))
            return FALSE;
        if (name == NULL)
            return TRUE;
        if (!read_file(input, name, set, error))
            return FALSE;
    }
}

static int compare_jobs(gconstpointer a, gconstpointer b)
{
    const SimTraceJob *x = a, *y = b;
    if (x->submit_sec != y->submit_sec)
        return x->submit_sec < y->submit_sec ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Each VM arrives with its first sample and runs to its last. */
void sim_vmseries_jobs(const SimSeriesSet *set, GArray *jobs)
{
    for (guint i = 0; i < set->series->len; i++) {
        const SimSeries *series = sim_series_get(set, i);
        gint64 run_sec = (gint64)series->n_samples * SIM_SAMPLE_SEC;
        SimTraceJob job = {.number = i + 1,
                           .submit_sec = series->first_sec,
                           .run_sec = run_sec,
                           .limit_sec = run_sec,
                           .procs = MAX(series->vcpus, 1),
                           .nodes = 1,
                           .memory_kib = series->memory_mib * 1024,
                           .cpu_sec = -1,
                           .user = i + 1,
                           .series = i + 1};
        g_array_append_val(jobs, job);
    }
    g_array_sort(jobs, compare_jobs);
}
