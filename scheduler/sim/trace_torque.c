/* SPDX-License-Identifier: Apache-2.0 */
/* Owns Torque's accounting logs: lines "MM/DD/YYYY HH:MM:SS;TYPE;JOB;key=value ...". The E lines
 * (ended) say everything about a job. They come in order of the ends, so they are kept and sorted.
 *
 * A job arrives when it became eligible (etime), but not before the earliest end in the log: what
 * had waited or run since long before would stretch it; unless the log is said to be whole. It runs as long as resources_used.walltime, at
 * least one second. Its memory is the largest of what Resource_List says: mem and vmem are the job's,
 * pmem and pvmem those of each of its processes. What it used is the peak of resources_used.mem, 0 being
 * "not sampled". Nodes and their cores are those in exec_host. */
#include "config.h"

#include "common/error.h"
#include "common/units.h"
#include "scheduler/sim/trace_formats.h"

#include <string.h>

#define STAMP_LENGTH 19 /* MM/DD/YYYY HH:MM:SS */
#define CORES_MAX    65536
#define TIME_MAX_SEC G_GINT64_CONSTANT(10000000000)
#define KIB_MAX      (G_GUINT64_CONSTANT(1) << 50)

struct SimTorque {
    GArray *jobs;      /* SimTraceJob */
    GHashTable *names; /* string -> number from 1: users and job names alike */
    GHashTable *hosts; /* names in exec_host */
    guint64 core_max;
    gint64 first_sec; /* earliest end; G_MAXINT64 = none */
    gboolean is_whole;
};

typedef struct {
    gint64 eligible, walltime, limit, cput, end;
    guint64 job_kib, process_kib; /* asked for: of the job, of each process; 0 = not */
    guint64 used_kib;
    guint32 nodes, procs;
    guint32 user, name;
} Ended;

SimTorque *sim_torque_new(gboolean is_whole)
{
    SimTorque *torque = g_new0(SimTorque, 1);
    torque->jobs = g_array_new(FALSE, FALSE, sizeof(SimTraceJob));
    torque->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    torque->hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    torque->first_sec = G_MAXINT64;
    torque->is_whole = is_whole;
    return torque;
}

void sim_torque_free(SimTorque *torque)
{
    if (torque == NULL)
        return;
    g_array_unref(torque->jobs);
    g_hash_table_unref(torque->names);
    g_hash_table_unref(torque->hosts);
    g_free(torque);
}

gboolean sim_torque_is(const char *line)
{
    static const char pattern[] = "dd/dd/dddd dd:dd:dd;";
    for (guint i = 0; pattern[i] != '\0'; i++)
        if (pattern[i] == 'd' ? !g_ascii_isdigit(line[i]) : line[i] != pattern[i])
            return FALSE;
    return TRUE;
}

/* --- values ------------------------------------------------------------------------------------- */

static gboolean read_seconds(const char *value, gint64 *out_sec)
{
    guint64 number;
    if (!g_ascii_string_to_unsigned(value, 10, 0, TIME_MAX_SEC, &number, NULL))
        return FALSE;
    *out_sec = (gint64)number;
    return TRUE;
}

/* "HH:MM:SS" with any number of hours, or plain seconds. */
static gboolean read_clock(const char *value, gint64 *out_sec)
{
    g_auto(GStrv) parts = g_strsplit(value, ":", 4);
    gint64 sum = 0, part;
    guint n = g_strv_length(parts);
    if (n == 0 || n > 3)
        return FALSE;
    for (guint i = 0; i < n; i++) {
        if (!read_seconds(parts[i], &part) || (i > 0 && part > 59))
            return FALSE;
        sum = sum * 60 + part;
    }
    if (sum > TIME_MAX_SEC)
        return FALSE;
    *out_sec = sum;
    return TRUE;
}

/* "8gb", "100mb", "12kb", "4096b"; rounded up to KiB. */
static gboolean read_kib(const char *value, guint64 *out_kib)
{
    static const struct {
        const char *unit;
        guint64 bytes;
    } units[] = {{"b", 1},
                 {"kb", 1u << 10},
                 {"mb", 1u << 20},
                 {"gb", 1u << 30},
                 {"tb", G_GUINT64_CONSTANT(1) << 40}};
    gsize digits = strspn(value, "0123456789");
    g_autofree char *number = g_strndup(value, digits);
    guint64 count;
    if (!g_ascii_string_to_unsigned(number, 10, 0, G_GUINT64_CONSTANT(1) << 50, &count, NULL))
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
        if (g_ascii_strcasecmp(value + digits, units[i].unit) != 0)
            continue;
        if (count > (G_GUINT64_CONSTANT(1) << 60) / units[i].bytes)
            return FALSE;
        *out_kib = (count * units[i].bytes + 1023) / 1024;
        return TRUE;
    }
    return FALSE;
}

/* The larger of it and what another key has said. */
static gboolean read_more_kib(const char *value, guint64 *kib)
{
    guint64 said;
    if (!read_kib(value, &said))
        return FALSE;
    *kib = MAX(*kib, said);
    return TRUE;
}

/* "2:ppn=8+1:ppn=4:feature"; nodes may be named instead of counted. */
static gboolean read_nodes(const char *value, guint32 *out_nodes, guint32 *out_procs)
{
    g_auto(GStrv) parts = g_strsplit(value, "+", -1);
    guint64 nodes = 0, procs = 0;
    for (guint i = 0; parts[i] != NULL; i++) {
        g_auto(GStrv) words = g_strsplit(parts[i], ":", -1);
        guint64 count = 1, per_node = 1;
        if (words[0] == NULL)
            return FALSE;
        if (g_ascii_isdigit(words[0][0]) &&
            !g_ascii_string_to_unsigned(words[0], 10, 1, CORES_MAX, &count, NULL))
            return FALSE;
        for (guint k = 1; words[k] != NULL; k++)
            if (g_str_has_prefix(words[k], "ppn=") &&
                !g_ascii_string_to_unsigned(words[k] + 4, 10, 1, CORES_MAX, &per_node, NULL))
                return FALSE;
        nodes += count;
        procs += count * per_node;
    }
    if (nodes == 0 || procs > G_MAXINT32)
        return FALSE;
    *out_nodes = (guint32)nodes;
    *out_procs = (guint32)procs;
    return TRUE;
}

/* "c4/17,20-23+c14/16-19" */
static gboolean note_hosts(SimTorque *torque, const char *value)
{
    g_auto(GStrv) parts = g_strsplit(value, "+", -1);
    for (guint i = 0; parts[i] != NULL; i++) {
        char *slash = strchr(parts[i], '/');
        if (slash == NULL || slash == parts[i])
            return FALSE;
        *slash = '\0';
        g_hash_table_add(torque->hosts, g_strdup(parts[i]));
        g_auto(GStrv) cores = g_strsplit_set(slash + 1, ",-", -1);
        for (guint k = 0; cores[k] != NULL; k++) {
            guint64 core;
            if (!g_ascii_string_to_unsigned(cores[k], 10, 0, CORES_MAX, &core, NULL))
                return FALSE;
            torque->core_max = MAX(torque->core_max, core);
        }
    }
    return TRUE;
}

static guint32 number_of(SimTorque *torque, const char *text)
{
    gpointer number = g_hash_table_lookup(torque->names, text);
    if (number == NULL) {
        number = GUINT_TO_POINTER(g_hash_table_size(torque->names) + 1);
        g_hash_table_insert(torque->names, g_strdup(text), number);
    }
    return GPOINTER_TO_UINT(number);
}

/* --- lines -------------------------------------------------------------------------------------- */

static gboolean read_value(SimTorque *torque, Ended *ended, const char *key, const char *value)
{
    if (g_str_equal(key, "etime"))
        return read_seconds(value, &ended->eligible);
    if (g_str_equal(key, "end"))
        return read_seconds(value, &ended->end);
    if (g_str_equal(key, "resources_used.walltime"))
        return read_clock(value, &ended->walltime);
    if (g_str_equal(key, "resources_used.cput"))
        return read_clock(value, &ended->cput);
    if (g_str_equal(key, "resources_used.mem"))
        return read_kib(value, &ended->used_kib);
    if (g_str_equal(key, "Resource_List.walltime"))
        return read_clock(value, &ended->limit);
    if (g_str_equal(key, "Resource_List.mem") || g_str_equal(key, "Resource_List.vmem"))
        return read_more_kib(value, &ended->job_kib);
    if (g_str_equal(key, "Resource_List.pmem") || g_str_equal(key, "Resource_List.pvmem"))
        return read_more_kib(value, &ended->process_kib);
    if (g_str_equal(key, "Resource_List.nodes"))
        return read_nodes(value, &ended->nodes, &ended->procs);
    if (g_str_equal(key, "exec_host"))
        return note_hosts(torque, value);
    if (g_str_equal(key, "user"))
        ended->user = number_of(torque, value);
    else if (g_str_equal(key, "jobname"))
        ended->name = number_of(torque, value);
    return TRUE;
}

/* Its chunks replaced nodes and ppn: "select=2:ncpus=4", "exec_host=n1/0*4+n2/0*4". */
static gboolean is_of_pbs_pro(const char *key, const char *value)
{
    return g_str_equal(key, "Resource_List.select") ||
           (g_str_equal(key, "exec_host") && strchr(value, '*') != NULL);
}

static gboolean read_ended(SimTorque *torque, const SimInput *input, char *text, Ended *out_ended,
                           GError **error)
{
    Ended ended = {.eligible = -1, .walltime = -1, .cput = -1};
    for (char *word = text; *word != '\0';) {
        char *next = word + strcspn(word, " ");
        if (*next != '\0')
            *next++ = '\0';
        char *equals = strchr(word, '=');
        if (equals != NULL) {
            *equals = '\0';
            if (is_of_pbs_pro(word, equals + 1))
                return sim_input_refuse(input, error,
                                        "%s=%s: an accounting log of PBS Pro or OpenPBS, which is "
                                        "not supported; Torque's is",
                                        word, equals + 1);
            if (!read_value(torque, &ended, word, equals + 1))
                return sim_input_refuse(input, error, "%s=%s: not understood", word, equals + 1);
        }
        word = next + strspn(next, " ");
    }
    const char *missing = ended.eligible < 0   ? "etime"
                          : ended.walltime < 0 ? "resources_used.walltime"
                          : ended.end <= 0     ? "end"
                          : ended.procs == 0   ? "Resource_List.nodes"
                                               : NULL;
    if (missing != NULL)
        return sim_input_refuse(input, error, "an E line without %s", missing);
    *out_ended = ended;
    return TRUE;
}

static guint64 memory_kib(const Ended *ended)
{
    guint64 of_processes;
    if (!g_uint64_checked_mul(&of_processes, ended->process_kib, ended->procs))
        of_processes = KIB_MAX;
    return MIN(MAX(ended->job_kib, of_processes), KIB_MAX);
}

/* "526998[1].m1.mason": 2; without brackets, or where they are empty, 0. */
static guint32 task_of(const char *id)
{
    const char *bracket = id + strspn(id, "0123456789");
    guint64 task = *bracket == '[' ? g_ascii_strtoull(bracket + 1, NULL, 10) : 0;
    return *bracket == '[' && g_ascii_isdigit(bracket[1]) && task < G_MAXUINT32 ? (guint32)task + 1
                                                                                : 0;
}

static void keep(SimTorque *torque, const char *id, const Ended *ended)
{
    SimTraceJob job = {
        .number = g_ascii_strtoull(id, NULL, 10),
        .task = task_of(id),
        .submit_sec = ended->eligible,
        .run_sec = MAX(ended->walltime, 1),
        .limit_sec = ended->limit,
        .procs = ended->procs,
        .nodes = ended->nodes,
        .memory_kib = memory_kib(ended),
        .cpu_sec = ended->cput,
        .memory_used_kib = ended->used_kib,
        .user = ended->user,
        .name = ended->name,
    };
    g_array_append_val(torque->jobs, job);
}

gboolean sim_torque_line(SimTorque *torque, const SimInput *input, char *line, GError **error)
{
    Ended ended = {0};
    if (*line == '\0')
        return TRUE;
    if (!sim_torque_is(line) || line[STAMP_LENGTH + 1] == '\0' || line[STAMP_LENGTH + 2] != ';')
        return sim_input_refuse(input, error, "not MM/DD/YYYY HH:MM:SS;TYPE;JOB;...");
    char *id = line + STAMP_LENGTH + 3;
    char *rest = strchr(id, ';');
    if (rest == NULL || !g_ascii_isdigit(*id))
        return sim_input_refuse(input, error, "no job number in the third field");
    if (line[STAMP_LENGTH + 1] != 'E')
        return TRUE;
    if (sim_input_is_cut(input))
        return sim_input_refuse(input, error,
                                "an E line that does not end: the log was cut off in it, and its "
                                "last value may be, too; remove the line");
    *rest++ = '\0';
    if (!read_ended(torque, input, rest, &ended, error))
        return FALSE;
    torque->first_sec = MIN(torque->first_sec, ended.end);
    keep(torque, id, &ended);
    return TRUE;
}

static int compare_jobs(gconstpointer a, gconstpointer b)
{
    const SimTraceJob *x = a, *y = b;
    if (x->submit_sec != y->submit_sec)
        return x->submit_sec < y->submit_sec ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

void sim_torque_finish(SimTorque *torque, GArray *jobs, SimTraceMachine *out_machine,
                       guint64 *out_never_ran)
{
    guint32 nodes = g_hash_table_size(torque->hosts);
    for (guint i = 0; i < torque->jobs->len; i++) {
        SimTraceJob *job = &g_array_index(torque->jobs, SimTraceJob, i);
        if (!torque->is_whole)
            job->submit_sec = MAX(job->submit_sec, torque->first_sec);
    }
    g_array_sort(torque->jobs, compare_jobs); /* a stable merge sort */
    g_array_append_vals(jobs, torque->jobs->data, torque->jobs->len);
    *out_machine = (SimTraceMachine){.nodes = nodes};
    if (nodes > 0) {
        out_machine->vcpus_per_node = (guint32)torque->core_max + 1;
        out_machine->procs = nodes * out_machine->vcpus_per_node;
    }
    *out_never_ran = 0;
}
