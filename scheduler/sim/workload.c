/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a trace becomes a workload: the machine, the shape of guests, memory where the trace has
 * none, time limits, and the scaling of arrivals.
 *
 * Machine: what the user says; else the trace's: SWF's MaxNodes and MaxProcs, or NAME.machines
 * beside it, or the nodes and cores in Torque's exec_host. Where MaxProcs is no multiple of MaxNodes, the
 * first nodes have one vCPU more than the others; there are no more nodes than processors. SWF that
 * names processors only has nodes of 16, or the largest power of two below that divides them. Memory that nobody says is 16 GiB per
 * vCPU for Torque (Mason's nodes: 32 cores, 512 GiB) and 4 GiB for the rest.
 * Guests: Torque says nodes and cores on each. SWF says processors: the fewest equal guests that
 * make exactly that number, fit a node, and all together an empty machine.
 * Memory: what the trace says, at most what an empty node can give; where it says nothing, as much
 * per vCPU as lets guests fill all vCPUs of a node.
 * Time limit: what was asked for, at least the run time (the log shows that it was allowed); and, if that is wanted,
 * a first one that is too short. */
#include "config.h"

#include "scheduler/sim/workload.h"

#include "common/error.h"
#include "scheduler/sim/usage.h"

#define TORQUE_MIB_PER_VCPU  (16u * 1024u)
#define UNKNOWN_MIB_PER_VCPU (4u * 1024u)
#define MEMORY_MIN_MIB       16u
#define LIMIT_SALT           G_GUINT64_CONSTANT(0x6c696d6974)
#define SHORT_SALT           G_GUINT64_CONSTANT(0x73686f7274)
#define SPAN_MAX_SEC         1e11 /* about 3000 years; microseconds of it fit a gint64 well */

struct SimWorkload {
    SimTrace *trace;
    SimWorkloadConfig config;
    SimMachine machine;
    guint32 split_vcpus; /* of a real node: for the shape of guests */
    gint64 first_sec;
    double stretch; /* of the times between arrivals */
    guint64 n_given;
    guint64 n_explained;    /* jobs with the number that is asked for */
    guint32 explained_task; /* of the last one of these, if it has one; else 0 */
    guint64 highest_number; /* so far, in the first reading */
    SimSurvey survey;
};

static gboolean refuse(GError **error, const char *why)
{
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, why);
    return FALSE;
}

/* --- machine ------------------------------------------------------------------------------------ */

static guint32 nodes_of_trace(const SimTraceMachine *said)
{
    if (said->nodes > 0)
        return said->procs > 0 ? MIN(said->nodes, said->procs) : said->nodes;
    for (guint32 vcpus = 16; said->procs > 0 && vcpus > 0; vcpus /= 2)
        if (said->procs % vcpus == 0)
            return said->procs / vcpus;
    return 0;
}

/* As many on each of MACHINE's nodes as on the trace's; what is no multiple is spread over the first. */
static void take_vcpus(SimMachine *machine, const SimTraceMachine *said)
{
    guint32 nodes = nodes_of_trace(said);
    machine->vcpus = said->vcpus_per_node;
    if (machine->vcpus > 0 || nodes == 0 || said->procs == 0)
        return;
    guint64 procs = (guint64)machine->nodes * said->procs / nodes;
    machine->vcpus = (guint32)((procs + machine->nodes - 1) / machine->nodes);
    machine->n_smaller = (guint32)((guint64)machine->nodes * machine->vcpus - procs);
}

/* What nobody says is in proportion to the vCPUs. */
static void take_memory(SimMachine *machine, const SimTraceMachine *said, SimFormat format)
{
    guint64 of_vcpu = format == SIM_FORMAT_TORQUE ? TORQUE_MIB_PER_VCPU : UNKNOWN_MIB_PER_VCPU;
    gboolean is_said = machine->memory_mib > 0 || said->memory_mib_per_node > 0;
    if (machine->memory_mib == 0)
        machine->memory_mib = is_said ? said->memory_mib_per_node : machine->vcpus * of_vcpu;
    if (machine->n_smaller > 0)
        machine->smaller_mib = is_said ? machine->memory_mib : (machine->vcpus - 1) * of_vcpu;
}

/* It could not run guests on all its vCPUs. */
static gboolean refuse_memory(const SimWorkload *workload, const SimMachine *machine,
                              GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "a node has %" G_GUINT64_FORMAT " MiB for each vCPU; a guest takes %u MiB at least "
                "and %" G_GUINT64_FORMAT " MiB of overhead; say more with --memory, or less with "
                "--overhead",
                machine->memory_mib / machine->vcpus, MEMORY_MIN_MIB,
                workload->config.overhead_mib);
    return FALSE;
}

static gboolean choose_machine(SimWorkload *workload, GError **error)
{
    SimTraceMachine said = sim_trace_machine(workload->trace);
    SimMachine machine = workload->config.machine;
    if ((machine.nodes == 0 || machine.vcpus == 0) &&
        !sim_trace_check_machine(workload->trace, error))
        return FALSE;
    if (machine.nodes == 0)
        machine.nodes = nodes_of_trace(&said);
    if (machine.vcpus == 0 && machine.nodes > 0)
        take_vcpus(&machine, &said);
    if (machine.nodes == 0 || machine.vcpus == 0)
        return refuse(error, "the trace does not say what machine it is from; say --nodes, --vcpus "
                             "and --memory");
    take_memory(&machine, &said, sim_trace_format(workload->trace));
    if (machine.memory_mib / machine.vcpus < workload->config.overhead_mib + MEMORY_MIN_MIB)
        return refuse_memory(workload, &machine, error);
    workload->split_vcpus = machine.vcpus;
    if (workload->config.is_pool && sim_machine_all_vcpus(&machine) > G_MAXINT32)
        return refuse(error, "more vCPUs than one node can have");
    if (workload->config.is_pool)
        machine = (SimMachine){.nodes = 1,
                               .vcpus = (guint32)sim_machine_all_vcpus(&machine),
                               .memory_mib = sim_machine_all_mib(&machine)};
    workload->machine = machine;
    return TRUE;
}

/* --- jobs --------------------------------------------------------------------------------------- */

static void take_memory_of(const SimWorkload *workload, const SimTraceJob *from, SimJob *job)
{
    guint64 overhead = workload->config.overhead_mib;
    guint64 most = workload->machine.memory_mib - overhead;
    guint64 wanted = (from->memory_kib + 1023) / 1024;
    wanted = (wanted + job->guests - 1) / job->guests;
    if (from->memory_kib == 0)
        wanted = job->vcpus * (workload->machine.memory_mib / workload->machine.vcpus - overhead);
    job->memory_asked_mib = wanted > most ? wanted : 0;
    job->memory_mib = CLAMP(wanted, MEMORY_MIN_MIB, most);
}

/* Guests take memory besides their own. Where jobs are processes they would not; but policies are held against each
 * other on the same jobs. */
static gboolean is_too_large(const SimWorkload *workload, const SimJob *job)
{
    guint64 memory_mib = job->memory_mib + workload->config.overhead_mib;
    return sim_machine_holds(&workload->machine, job->vcpus, memory_mib) < job->guests;
}

static void shape_as(const SimWorkload *workload, const SimTraceJob *from, guint32 vcpus,
                     SimJob *job)
{
    job->vcpus = vcpus;
    job->guests = from->procs / vcpus;
    take_memory_of(workload, from, job);
    job->is_too_large = is_too_large(workload, job);
}

/* The fewest equal guests that an empty machine holds; where it holds none, the fewest that fit nodes. Processors
 * that were asked for on one node are in guests of their own. */
static void shape(const SimWorkload *workload, const SimTraceJob *from, SimJob *job)
{
    gboolean is_by_node = from->nodes > 0 && from->procs % from->nodes == 0;
    guint32 together = is_by_node ? from->procs / from->nodes : from->procs;
    guint32 most = MIN(together, workload->split_vcpus);
    while (together % most != 0)
        most--;
    if (workload->config.is_pool)
        most = from->procs;
    shape_as(workload, from, most, job);
    if (!job->is_too_large || workload->config.is_pool ||
        from->procs > sim_machine_all_vcpus(&workload->machine))
        return;
    for (guint32 vcpus = most - 1; job->is_too_large && vcpus > 0; vcpus--)
        if (together % vcpus == 0)
            shape_as(workload, from, vcpus, job);
    if (job->is_too_large)
        shape_as(workload, from, most, job);
}

/* Chance of a job; the same in each run. */
static guint64 draw(const SimWorkload *workload, const SimTraceJob *from, guint64 salt)
{
    return sim_mix(sim_mix(workload->config.seed ^ salt, from->number),
                   (guint64)(from->submit_sec - workload->first_sec));
}

/* What a job's user says. */
static gint64 limit_of(const SimWorkload *workload, const SimTraceJob *from)
{
    double most = workload->config.estimates;
    if (most == 0)
        return MAX(from->limit_sec, from->run_sec) * (gint64)G_USEC_PER_SEC;
    guint64 drawn = draw(workload, from, LIMIT_SALT);
    double factor = 1 + (most - 1) * (double)drawn / (double)G_MAXUINT64;
    return (gint64)((double)from->run_sec * factor * (double)G_USEC_PER_SEC + 0.5);
}

/* Some say too little at first: how far these would have come is in no log, as they were killed. */
static void shorten(const SimWorkload *workload, const SimTraceJob *from, SimJob *job)
{
    guint64 drawn = draw(workload, from, SHORT_SALT);
    gint64 least_sec = (from->run_sec + 1) / 2;
    if (drawn % 1000 >= workload->config.short_permille || from->run_sec < 2)
        return;
    gint64 limit_sec = least_sec + (gint64)(drawn / 1000 % (guint64)(from->run_sec - least_sec));
    job->limit_again_usec = job->limit_usec;
    job->limit_usec = limit_sec * (gint64)G_USEC_PER_SEC;
}

/* Of one guest; at most what it reserves. */
static void take_usage(const SimTraceJob *from, SimJob *job)
{
    guint64 used_mib = from->memory_used_kib / 1024 / job->guests;
    if (from->cpu_sec >= 0) {
        double mean = (double)from->cpu_sec * 1000 / (double)from->run_sec / job->guests;
        job->cpu_used_milli = (guint32)MIN(mean + 0.5, (double)job->vcpus * 1000);
        job->is_cpu_cut = from->cpu_sec / from->run_sec >= from->procs &&
                          from->cpu_sec > from->run_sec * from->procs;
    }
    if (from->memory_used_kib > 0) {
        job->memory_used_mib = CLAMP(used_mib, 1, job->memory_mib);
        job->is_memory_used_cut = used_mib > job->memory_mib;
    }
}

static void convert(const SimWorkload *workload, const SimTraceJob *from, SimJob *job)
{
    double since = (double)(from->submit_sec - workload->first_sec);
    *job = (SimJob){
        .number = from->number,
        .task = from->task,
        .submit_usec = (gint64)(since * workload->stretch * (double)G_USEC_PER_SEC + 0.5),
        .run_usec = from->run_sec * (gint64)G_USEC_PER_SEC,
        .limit_usec = limit_of(workload, from),
        .cpu_used_milli = SIM_UNKNOWN,
        .user = from->user,
        .name = from->name,
        .series = from->series,
    };
    shorten(workload, from, job);
    shape(workload, from, job);
    take_usage(from, job);
}

/* --- first reading ------------------------------------------------------------------------------ */

/* Whether a number came before is told by no more than the highest: logs count their jobs. Torque's
 * are sorted, and the tasks of an array share theirs. */
static void note_number(SimWorkload *workload, const SimTraceJob *from)
{
    gboolean is_counted = sim_trace_format(workload->trace) == SIM_FORMAT_SWF;
    workload->survey.n_number_again += is_counted && from->number <= workload->highest_number;
    workload->highest_number = MAX(workload->highest_number, from->number);
}

static void note_given(SimSurvey *survey, const SimTraceJob *from)
{
    survey->n_limit_unknown += from->limit_sec <= 0;
    survey->n_limit_raised += from->limit_sec > 0 && from->limit_sec < from->run_sec;
}

static gboolean refuse_empty(const SimWorkload *workload, GError **error)
{
    guint64 n = sim_trace_n_never_ran(workload->trace);
    g_autofree char *others =
        n > 0 ? g_strdup_printf(", but %" G_GUINT64_FORMAT " that never did", n) : g_strdup("");
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s: no job that ran%s",
                sim_trace_name(workload->trace), others);
    return FALSE;
}

static gboolean read_all(SimWorkload *workload, gint64 *out_span_sec, GError **error)
{
    SimTraceJob from;
    gboolean end;
    gint64 last_sec = 0;
    for (;;) {
        if (!sim_trace_next(workload->trace, &from, &end, error))
            return FALSE;
        guint64 most = workload->config.jobs_max;
        if (end || (most > 0 && workload->survey.n_jobs == most))
            break;
        if (workload->survey.n_jobs++ == 0)
            workload->first_sec = from.submit_sec;
        last_sec = from.submit_sec;
        note_number(workload, &from);
        if (workload->config.estimates == 0)
            note_given(&workload->survey, &from);
    }
    if (workload->survey.n_jobs == 0)
        return refuse_empty(workload, error);
    workload->survey.n_never_ran = sim_trace_n_never_ran(workload->trace);
    *out_span_sec = last_sec - workload->first_sec;
    return TRUE;
}

static void note(SimWorkload *workload, const SimJob *job)
{
    SimSurvey *survey = &workload->survey;
    const SimSeriesSet *all = sim_trace_series(workload->trace);
    const SimSeries *own = job->series > 0 ? sim_series_get(all, job->series - 1) : NULL;
    survey->n_too_large += job->is_too_large;
    survey->n_limit_short += job->limit_again_usec > 0;
    survey->n_cpu_used_cut += job->is_cpu_cut;
    survey->n_memory_used_cut += job->is_memory_used_cut;
    survey->n_usage_cut += job->is_cpu_cut || job->is_memory_used_cut;
    survey->n_cpu_known += own != NULL || job->cpu_used_milli != SIM_UNKNOWN;
    survey->n_memory_known += (own != NULL && own->memory != NULL) || job->memory_used_mib > 0;
    workload->n_explained +=
        sim_job_is(job, workload->config.explain, workload->config.explain_task);
    workload->explained_task = job->number == workload->config.explain && job->task > 0
                                   ? job->task
                                   : workload->explained_task;
}

/* Core time offered: only the machine, which is known after the first reading, says by whom. */
static gboolean add_up(SimWorkload *workload, double *out_core_sec, GError **error)
{
    SimJob job;
    gboolean end = FALSE;
    *out_core_sec = 0;
    workload->stretch = 1;
    if (!sim_workload_rewind(workload, error))
        return FALSE;
    for (;;) {
        if (!sim_workload_next(workload, &job, &end, error))
            return FALSE;
        if (end)
            return TRUE;
        note(workload, &job);
        if (!job.is_too_large)
            *out_core_sec +=
                (double)sim_job_width(&job) * (double)(job.run_usec / (gint64)G_USEC_PER_SEC);
    }
}

static gboolean scale(SimWorkload *workload, gint64 span_sec, double core_sec, GError **error)
{
    double capacity = (double)sim_machine_all_vcpus(&workload->machine);
    if (span_sec > 0)
        workload->survey.trace_load = core_sec / (capacity * (double)span_sec);
    workload->survey.load = workload->survey.trace_load;
    workload->survey.end_usec = span_sec * (gint64)G_USEC_PER_SEC;
    if (workload->config.load <= 0)
        return TRUE;
    if (span_sec <= 0)
        return refuse(error, "all jobs arrive at once: there is no load to be scaled");
    if (workload->survey.trace_load <= 0)
        return refuse(error, "no job fits the machine: there is no load to be scaled");
    workload->stretch = workload->survey.trace_load / workload->config.load;
    if ((double)span_sec * workload->stretch > SPAN_MAX_SEC) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "--load %g: the last job would arrive after more than %.0f days; the trace's "
                    "own load is %g",
                    workload->config.load, SPAN_MAX_SEC / 86400, workload->survey.trace_load);
        return FALSE;
    }
    workload->survey.load = workload->config.load;
    workload->survey.end_usec =
        (gint64)((double)span_sec * workload->stretch * (double)G_USEC_PER_SEC + 0.5);
    return TRUE;
}

static gboolean refuse_ambiguous(const SimWorkload *workload, const char *name, GError **error)
{
    g_autofree char *one = sim_job_name(workload->config.explain, workload->explained_task);
    g_autofree char *hint = workload->explained_task > 0
                                ? g_strdup_printf("say which task, as %s", one)
                                : g_strdup("give each its own");
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "--explain: %" G_GUINT64_FORMAT " jobs of the trace have the number %s: %s",
                workload->n_explained, name, hint);
    return FALSE;
}

static gboolean check_explained(const SimWorkload *workload, GError **error)
{
    g_autofree char *name = sim_job_name(workload->config.explain, workload->config.explain_task);
    if (workload->config.explain == 0 || workload->n_explained == 1)
        return TRUE;
    if (workload->n_explained > 1)
        return refuse_ambiguous(workload, name, error);
    if (sim_trace_watched_never_ran(workload->trace))
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "--explain: job %s never ran, and is left out: its run time or its number of "
                    "processors is not positive",
                    name);
    else
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "--explain: no job %s in the trace, which has %" G_GUINT64_FORMAT
                    " jobs%s and %" G_GUINT64_FORMAT " that never ran",
                    name, workload->survey.n_jobs,
                    workload->config.jobs_max > 0 ? " up to --max-jobs" : "",
                    workload->survey.n_never_ran);
    return FALSE;
}

SimWorkload *sim_workload_new(SimTrace *trace, const SimWorkloadConfig *config, GError **error)
{
    g_autoptr(SimWorkload) workload = g_new0(SimWorkload, 1);
    gint64 span_sec = 0;
    double core_sec = 0;
    workload->trace = trace;
    workload->config = *config;
    sim_trace_watch(trace, config->explain);
    if (!sim_trace_rewind(trace, error) || !read_all(workload, &span_sec, error) ||
        !choose_machine(workload, error) || !add_up(workload, &core_sec, error) ||
        !check_explained(workload, error) || !scale(workload, span_sec, core_sec, error))
        return NULL;
    return g_steal_pointer(&workload);
}

void sim_workload_free(SimWorkload *workload)
{
    g_free(workload);
}

gboolean sim_workload_rewind(SimWorkload *workload, GError **error)
{
    workload->n_given = 0;
    workload->survey.n_memory_cut = 0;
    return sim_trace_rewind(workload->trace, error);
}

gboolean sim_workload_next(SimWorkload *workload, SimJob *out_job, gboolean *out_end,
                           GError **error)
{
    SimTraceJob from;
    *out_end = workload->n_given >= workload->survey.n_jobs;
    if (*out_end)
        return TRUE;
    if (!sim_trace_next(workload->trace, &from, out_end, error))
        return FALSE;
    if (*out_end)
        return refuse(error, "the trace became shorter while it was read");
    convert(workload, &from, out_job);
    workload->survey.n_memory_cut += out_job->memory_asked_mib > 0;
    out_job->id = ++workload->n_given;
    return TRUE;
}

const SimMachine *sim_workload_machine(const SimWorkload *workload)
{
    return &workload->machine;
}

double sim_workload_estimates(const SimWorkload *workload)
{
    return workload->config.estimates;
}

guint32 sim_workload_short_permille(const SimWorkload *workload)
{
    return workload->config.short_permille;
}

const SimSurvey *sim_workload_survey(const SimWorkload *workload)
{
    return &workload->survey;
}

const SimSeriesSet *sim_workload_series(const SimWorkload *workload)
{
    return sim_trace_series(workload->trace);
}
