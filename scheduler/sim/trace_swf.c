/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the Standard Workload Format: 18 fields a line, header comments that begin with ';'.
 * https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
 *
 * Processors are field 5 (allocated) where that is positive, else field 8 (requested). A job whose
 * run time or number of processors is not positive never ran, and is left out. */
#include "config.h"

#include "common/error.h"
#include "scheduler/sim/trace_formats.h"

#include <stdlib.h>
#include <string.h>

#define N_FIELDS  18
#define PROCS_MAX 10000000
/* So much of a word that is not understood is told. */
#define SHOWN_MAX_BYTES 20u
/* Beyond this (about 300 years) a time is nonsense, and sums could overflow. */
#define TIME_MAX_SEC G_GINT64_CONSTANT(10000000000)

enum {
    FIELD_NUMBER,
    FIELD_SUBMIT,
    FIELD_WAIT,
    FIELD_RUN,
    FIELD_PROCS,
    FIELD_CPU,
    FIELD_MEMORY,
    FIELD_PROCS_ASKED,
    FIELD_TIME_ASKED,
    FIELD_MEMORY_ASKED,
    FIELD_STATUS,
    FIELD_USER,
    FIELD_GROUP,
    FIELD_APPLICATION,
};

static const char *const field_names[N_FIELDS] = {
    "job number",     "submit time",      "wait time",   "run time",
    "processors",     "CPU time",         "used memory", "requested processors",
    "requested time", "requested memory", "status",      "user",
    "group",          "application",      "queue",       "partition",
    "preceding job",  "think time"};

static gboolean is_blank(const char *text)
{
    return text[strspn(text, " \t")] == '\0';
}

gboolean sim_swf_is(const char *line)
{
    line += strspn(line, " \t");
    if (*line == ';')
        return TRUE;
    guint n = 0;
    while (*line != '\0') {
        if (line[strspn(line, "0123456789.-")] != '\0' &&
            !g_ascii_isspace(line[strspn(line, "0123456789.-")]))
            return FALSE;
        n++;
        line += strcspn(line, " \t");
        line += strspn(line, " \t");
    }
    return n == N_FIELDS;
}

/* What is no log at all may have anything there. (transfer full) */
static char *shown(const char *word)
{
    gsize length = strcspn(word, " \t");
    g_autofree char *start = g_strndup(word, MIN(length, SHOWN_MAX_BYTES));
    for (char *at = start; *at != '\0'; at++)
        if (!g_ascii_isgraph(*at))
            *at = '?';
    return g_strconcat("\"", start, length > SHOWN_MAX_BYTES ? "...\"" : "\"", NULL);
}

/* "; Name: N ..." Where it is no number, -1 being none, it is kept who says so: whoever names the machine needs it not. */
static void read_header(SimSwf *swf, const SimInput *input, const char *line)
{
    static const struct {
        const char *name;
        gsize offset;
    } headers[] = {{"MaxNodes:", G_STRUCT_OFFSET(SimTraceMachine, nodes)},
                   {"MaxProcs:", G_STRUCT_OFFSET(SimTraceMachine, procs)}};
    line += strspn(line, "; \t");
    for (guint i = 0; i < G_N_ELEMENTS(headers); i++) {
        if (!g_str_has_prefix(line, headers[i].name))
            continue;
        const char *word = line + strlen(headers[i].name);
        word += strspn(word, " \t");
        guint64 value = g_ascii_isdigit(*word) ? g_ascii_strtoull(word, NULL, 10) : 0;
        g_autofree char *text = shown(word);
        if (value > 0 && value <= PROCS_MAX)
            G_STRUCT_MEMBER(guint32, &swf->machine, headers[i].offset) = (guint32)value;
        else if (swf->bad_header == NULL && *word != '\0' && !g_str_equal(text, "\"-1\""))
            sim_input_refuse(input, &swf->bad_header,
                             "%s %s is no number from 1 to %d; mend it, or say --nodes, --vcpus "
                             "and --memory",
                             headers[i].name, text, PROCS_MAX);
    }
}

static gboolean refuse_word(const SimInput *input, guint field, const char *word, const char *why,
                            GError **error)
{
    g_autofree char *text = shown(word);
    return sim_input_refuse(input, error, "field %u (%s): %s %s", field + 1, field_names[field],
                            text, why);
}

/* Half a processor nobody has. */
static gboolean is_cut(guint field, const char *from, const char *to)
{
    return (field == FIELD_PROCS || field == FIELD_PROCS_ASKED) && from < to &&
           strspn(from + 1, "0") < (gsize)(to - from - 1);
}

/* Whole numbers; some logs give averages with a fraction, which is cut off. */
static gboolean read_fields(const SimInput *input, char *line, gint64 fields[N_FIELDS],
                            GError **error)
{
    char *at = line;
    for (guint i = 0; i < N_FIELDS; i++) {
        char *end;
        at += strspn(at, " \t");
        if (*at == '\0')
            return sim_input_refuse(input, error, "%u fields, where SWF has %u", i, N_FIELDS);
        fields[i] = g_ascii_strtoll(at, &end, 10);
        gboolean has_digits = end != at;
        const char *fraction = end;
        if (has_digits && *end == '.')
            end += 1 + strspn(end + 1, "0123456789");
        if (is_cut(i, fraction, end))
            return refuse_word(input, i, at, "is no whole number", error);
        if (!has_digits || (*end != '\0' && *end != ' ' && *end != '\t') || fields[i] < -1)
            return refuse_word(input, i, at, "is no number from -1 on", error);
        if (fields[i] == G_MAXINT64)
            return refuse_word(input, i, at, "is too large", error);
        at = end;
    }
    if (!is_blank(at))
        return sim_input_refuse(input, error, "more than the %u fields of SWF", N_FIELDS);
    return TRUE;
}

static gboolean check_ranges(const SimInput *input, const gint64 fields[N_FIELDS], GError **error)
{
    static const guint times[] = {FIELD_SUBMIT, FIELD_RUN, FIELD_TIME_ASKED, FIELD_CPU};
    for (guint i = 0; i < G_N_ELEMENTS(times); i++)
        if (fields[times[i]] > TIME_MAX_SEC)
            return sim_input_refuse(input, error,
                                    "field %u (%s): more than %" G_GINT64_FORMAT " seconds",
                                    times[i] + 1, field_names[times[i]], TIME_MAX_SEC);
    if (fields[FIELD_SUBMIT] < 0)
        return sim_input_refuse(input, error, "field 2 (submit time) is unknown");
    if (MAX(fields[FIELD_PROCS], fields[FIELD_PROCS_ASKED]) > PROCS_MAX)
        return sim_input_refuse(input, error, "more than %d processors", PROCS_MAX);
    if (MAX(fields[FIELD_MEMORY], fields[FIELD_MEMORY_ASKED]) > G_GINT64_CONSTANT(1) << 40)
        return sim_input_refuse(input, error, "more than 1 PiB of memory per processor");
    return TRUE;
}

static void to_job(const gint64 fields[N_FIELDS], SimTraceJob *out_job)
{
    gint64 procs = fields[FIELD_PROCS] > 0 ? fields[FIELD_PROCS] : fields[FIELD_PROCS_ASKED];
    *out_job = (SimTraceJob){
        .number = (guint64)MAX(fields[FIELD_NUMBER], 0),
        .submit_sec = fields[FIELD_SUBMIT],
        .run_sec = fields[FIELD_RUN],
        .limit_sec = MAX(fields[FIELD_TIME_ASKED], 0),
        .procs = (guint32)procs,
        .memory_kib = (guint64)MAX(fields[FIELD_MEMORY_ASKED], 0) * (guint64)procs,
        .cpu_sec = fields[FIELD_CPU] > 0 ? fields[FIELD_CPU] * procs : -1,
        .memory_used_kib = (guint64)MAX(fields[FIELD_MEMORY], 0) * (guint64)procs,
        .user = (guint32)MAX(fields[FIELD_USER], 0),
        .name = (guint32)MAX(fields[FIELD_APPLICATION], 0),
    };
}

gboolean sim_swf_line(SimSwf *swf, const SimInput *input, char *line, SimTraceJob *out_job,
                      gboolean *out_is_job, GError **error)
{
    gint64 fields[N_FIELDS];
    *out_is_job = FALSE;
    if (line[strspn(line, " \t")] == ';') {
        read_header(swf, input, line);
        return TRUE;
    }
    if (is_blank(line))
        return TRUE;
    if (!read_fields(input, line, fields, error) || !check_ranges(input, fields, error))
        return FALSE;
    if (swf->n_jobs > 0 && fields[FIELD_SUBMIT] < swf->last_submit_sec)
        return sim_input_refuse(input, error,
                                "submitted before the job above it; sort the trace by field 2");
    swf->n_jobs++;
    swf->last_submit_sec = fields[FIELD_SUBMIT];
    if (fields[FIELD_RUN] <= 0 || MAX(fields[FIELD_PROCS], fields[FIELD_PROCS_ASKED]) <= 0) {
        swf->n_never_ran++;
        swf->watched_never_ran |= swf->watched > 0 && fields[FIELD_NUMBER] == (gint64)swf->watched;
        return TRUE;
    }
    to_job(fields, out_job);
    *out_is_job = TRUE;
    return TRUE;
}

/* --- NAME.machines ------------------------------------------------------------------------------ */

/* id, name, nodes, CPUs per node, speed, memory per node in KiB */
static gboolean read_machine(const SimInput *input, char *line, SimTraceMachine *machine,
                             GError **error)
{
    g_auto(GStrv) words = g_strsplit(line, "\t", -1);
    guint64 nodes, vcpus, kib;
    if (g_strv_length(words) != 6 ||
        !g_ascii_string_to_unsigned(words[2], 10, 1, PROCS_MAX, &nodes, NULL) ||
        !g_ascii_string_to_unsigned(words[3], 10, 1, 65536, &vcpus, NULL) ||
        !g_ascii_string_to_unsigned(words[5], 10, 1024, G_GUINT64_CONSTANT(1) << 40, &kib, NULL))
        return sim_input_refuse(input, error,
                                "not ID, NAME, NODES, CPUS, SPEED and KIB, with tabs between");
    if (machine->nodes > 0)
        return sim_input_refuse(input, error, "a second kind of node: only one can be simulated");
    *machine = (SimTraceMachine){.nodes = (guint32)nodes,
                                 .procs = (guint32)(nodes * vcpus),
                                 .vcpus_per_node = (guint32)vcpus,
                                 .memory_mib_per_node = kib / 1024};
    return TRUE;
}

gboolean sim_swf_read_machines(const char *path, SimTraceMachine *machine, GError **error)
{
    const char *dot = g_strrstr(path, ".swf");
    g_autofree char *stem = g_strndup(path, dot != NULL ? (gsize)(dot - path) : strlen(path));
    g_autofree char *name = g_strconcat(stem, ".machines", NULL);
    if (!g_file_test(name, G_FILE_TEST_EXISTS))
        return TRUE;
    g_autoptr(SimSource) source = sim_source_new(name, error);
    g_autoptr(SimInput) input = source != NULL ? sim_input_open(source, error) : NULL;
    const char *file;
    char *line;
    SimTraceMachine read = {0};
    if (input == NULL || !sim_input_next_file(input, &file, error))
        return FALSE;
    while (file != NULL) {
        if (!sim_input_next_line(input, &line, error))
            return FALSE;
        if (line == NULL)
            break;
        if (!is_blank(line) && !read_machine(input, line, &read, error))
            return FALSE;
    }
    if (read.nodes > 0)
        *machine = read;
    return TRUE;
}
