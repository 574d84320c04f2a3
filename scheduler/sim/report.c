/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how results are shown: derived figures, a table, JSON. */
#include "config.h"

#include "scheduler/sim/report.h"

#include <json-glib/json-glib.h>

static double per(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

void sim_figures(const SimMetrics *metrics, SimFigures *out_figures)
{
    double jobs = (double)metrics->jobs;
    gint64 makespan = metrics->jobs > 0 ? metrics->last_end_usec - metrics->first_submit_usec : 0;
    /* A trace of one instant has no time of its own. */
    gboolean is_instant = metrics->trace_end_usec == 0;
    gint64 span = is_instant ? makespan : metrics->trace_end_usec;
    double span_s = (double)span / (double)G_USEC_PER_SEC;
    double cpu_s = is_instant ? metrics->useful_cpu_s : metrics->useful_cpu_end_s;
    double mib_s = is_instant ? metrics->useful_mib_s : metrics->useful_mib_end_s;
    *out_figures = (SimFigures){
        .mean_wait_s = per(metrics->wait_sum_s, jobs),
        .p50_wait_s = sim_quantiles_get(metrics->waits, 0.50),
        .p95_wait_s = sim_quantiles_get(metrics->waits, 0.95),
        .mean_start_wait_s = per(metrics->start_wait_sum_s, jobs),
        .mean_bounded_slowdown = per(metrics->slowdown_sum, jobs),
        .makespan_s = (double)makespan / (double)G_USEC_PER_SEC,
        .useful_cpu_utilisation = per(cpu_s, metrics->capacity_vcpus * span_s),
        .useful_memory_utilisation = per(mib_s, metrics->capacity_mib * span_s),
        .work_done_cpu_s = cpu_s,
        .guaranteed_cpu_shortfall =
            per((double)metrics->guaranteed_short_cpu, (double)metrics->guaranteed_wanted_cpu),
        .guaranteed_memory_shortfall =
            per((double)metrics->guaranteed_short_mem, (double)metrics->guaranteed_wanted_mem),
    };
}

/* --- table -------------------------------------------------------------------------------------- */

static void add_machine(GString *text, const SimMachine *machine)
{
    double gib = (double)machine->memory_mib / 1024;
    double smaller_gib = (double)machine->smaller_mib / 1024;
    if (machine->n_smaller > 0)
        g_string_append_printf(
            text,
            "machine: %" G_GUINT64_FORMAT " processors on %u nodes: %u of %u, %u of %u "
            "(%.1f and %.1f GiB); ",
            sim_machine_all_vcpus(machine), machine->nodes, machine->nodes - machine->n_smaller,
            machine->vcpus, machine->n_smaller, machine->vcpus - 1, gib, smaller_gib);
    else
        g_string_append_printf(text, "machine: %u node%s of %u vCPU%s and %.1f GiB; ",
                               machine->nodes, machine->nodes == 1 ? "" : "s", machine->vcpus,
                               machine->vcpus == 1 ? "" : "s", gib);
}

/* --usage reserved takes none from the trace. */
static void add_usage_cut(GString *text, const SimSurvey *survey, SimUsageKind usage)
{
    if (usage != SIM_USAGE_RESERVED && survey->n_usage_cut > 0)
        g_string_append_printf(text,
                               "; usage of %" G_GUINT64_FORMAT " job%s cut to what they reserved "
                               "(CPU %" G_GUINT64_FORMAT ", memory %" G_GUINT64_FORMAT ")",
                               survey->n_usage_cut, survey->n_usage_cut == 1 ? "" : "s",
                               survey->n_cpu_used_cut, survey->n_memory_used_cut);
}

static void add_head(GString *text, const SimWorkload *workload, SimUsageKind usage)
{
    const SimSurvey *survey = sim_workload_survey(workload);
    add_machine(text, sim_workload_machine(workload));
    if (survey->end_usec > 0)
        g_string_append_printf(text, "load %.3f (the trace's: %.3f)\n", survey->load,
                               survey->trace_load);
    else
        g_string_append(text, "no load: all jobs arrive at one instant\n"
                              "work, cpu % and mem % are up to the end of the last job\n");
    g_string_append_printf(text, "jobs: %" G_GUINT64_FORMAT " over %.2f days", survey->n_jobs,
                           (double)survey->end_usec / 86400e6);
    if (survey->n_never_ran > 0)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " more never ran", survey->n_never_ran);
    if (survey->n_too_large > 0)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " larger than the machine, in no load",
                               survey->n_too_large);
    if (survey->n_memory_cut > 0)
        g_string_append_printf(text,
                               "; memory of %" G_GUINT64_FORMAT " cut to what a node can give",
                               survey->n_memory_cut);
    add_usage_cut(text, survey, usage);
    if (sim_workload_estimates(workload) > 0)
        g_string_append_printf(text, "; limits of 1 to %g times the run time",
                               sim_workload_estimates(workload));
    if (sim_workload_short_permille(workload) > 0)
        g_string_append_printf(text, "; first limit of %" G_GUINT64_FORMAT " too short",
                               survey->n_limit_short);
    if (survey->n_limit_raised > 0)
        g_string_append_printf(text, "; limit of %" G_GUINT64_FORMAT " raised to the run time",
                               survey->n_limit_raised);
    if (survey->n_limit_unknown > 0)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " without a limit got the run time",
                               survey->n_limit_unknown);
    if (survey->n_number_again > 0)
        g_string_append_printf(
            text,
            "; %" G_GUINT64_FORMAT
            " job number%s repeated or out of order, so that --explain may tell of another",
            survey->n_number_again, survey->n_number_again == 1 ? "" : "s");
    g_string_append_c(text, '\n');
}

/* Without it a reader would take it for a result that slack is of no use. */
static void add_unknown(GString *text, const char *what, guint64 n, guint64 n_jobs)
{
    g_autofree char *who =
        n == n_jobs ? g_strdup("any job")
                    : g_strdup_printf("%" G_GUINT64_FORMAT " job%s", n, n == 1 ? "" : "s");
    if (n > 0)
        g_string_append_printf(
            text,
            "usage: the trace does not say what %s %s used: all that is "
            "reserved counts as used, which leaves no slack but what is kept for planned starts\n",
            what, who);
}

static gboolean is_any(const SimFailures *failures)
{
    return failures->mtbf_usec > 0 || failures->action_permille > 0;
}

static void add_columns(GString *text, const SimWorkload *workload, const SimFailures *failures)
{
    gboolean has_short = sim_workload_short_permille(workload) > 0;
    g_string_append_printf(text, "%-12s %8s %10s %10s %9s %9s %6s %6s %12s %7s %7s %9s %9s %6s %7s",
                           "policy", "jobs", "wait s", "p95 s", "slowdown", "days", "cpu %",
                           "mem %", "work cpu-h", "moves", "ckpts", "g.cpu -%", "g.mem -%", "kills",
                           "refused");
    if (has_short)
        g_string_append_printf(text, " %8s", "extended");
    if (is_any(failures))
        g_string_append_printf(text, " %8s %8s %6s", "failures", "act.fail", "lost");
    if (has_short || is_any(failures))
        g_string_append_printf(text, " %10s", "lost cpu-h");
    g_string_append_c(text, '\n');
}

char *sim_report_head(const SimWorkload *workload, SimUsageKind usage, const SimFailures *failures)
{
    GString *text = g_string_new(NULL);
    const SimSurvey *survey = sim_workload_survey(workload);
    add_head(text, workload, usage);
    if (usage == SIM_USAGE_SHAPES && survey->n_cpu_known + survey->n_memory_known == 0)
        g_string_append(
            text, "usage: nothing is drawn from the VM series of --usage, as there is no mean "
                  "or peak to draw it to\n");
    if (usage != SIM_USAGE_RESERVED) {
        add_unknown(text, "CPU", survey->n_jobs - survey->n_cpu_known, survey->n_jobs);
        add_unknown(text, "memory", survey->n_jobs - survey->n_memory_known, survey->n_jobs);
    }
    g_string_append_c(text, '\n');
    add_columns(text, workload, failures);
    return g_string_free(text, FALSE);
}

/* Those of the bound are of a queue that nobody has, and bound nothing; of no job there are none. */
static void add_waits(GString *text, const SimResult *result, const SimFigures *figures)
{
    if (result->policy == SIM_POLICY_BOUND || result->metrics.jobs == 0)
        g_string_append_printf(text, " %10s %10s %9s", "-", "-", "-");
    else
        g_string_append_printf(text, " %10.0f %10.0f %9.2f", figures->mean_wait_s,
                               figures->p95_wait_s, figures->mean_bounded_slowdown);
}

char *sim_report_row(const SimWorkload *workload, const SimResult *result,
                     const SimFailures *failures)
{
    gboolean has_short = sim_workload_short_permille(workload) > 0;
    GString *text = g_string_new(NULL);
    const SimMetrics *metrics = &result->metrics;
    SimFigures figures;
    sim_figures(metrics, &figures);
    g_string_append_printf(text, "%-12s %8" G_GUINT64_FORMAT, sim_policy_name(result->policy),
                           metrics->jobs);
    add_waits(text, result, &figures);
    g_string_append_printf(
        text,
        " %9.2f %6.2f %6.2f %12.1f %7" G_GUINT64_FORMAT " %7" G_GUINT64_FORMAT
        " %9.4f %9.4f %6" G_GUINT64_FORMAT " %7" G_GUINT64_FORMAT,
        figures.makespan_s / 86400, 100 * figures.useful_cpu_utilisation,
        100 * figures.useful_memory_utilisation, figures.work_done_cpu_s / 3600,
        metrics->migrations, metrics->checkpoints, 100 * figures.guaranteed_cpu_shortfall,
        100 * figures.guaranteed_memory_shortfall, metrics->kills, metrics->refused);
    if (has_short)
        g_string_append_printf(text, " %8" G_GUINT64_FORMAT, metrics->limit_extensions);
    if (is_any(failures))
        g_string_append_printf(text,
                               " %8" G_GUINT64_FORMAT " %8" G_GUINT64_FORMAT " %6" G_GUINT64_FORMAT,
                               metrics->node_failures, metrics->failed_actions, metrics->lost);
    if (has_short || is_any(failures))
        g_string_append_printf(text, " %10.1f", metrics->lost_cpu_s / 3600);
    g_string_append_c(text, '\n');
    return g_string_free(text, FALSE);
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void add_double(JsonBuilder *json, const char *name, double value)
{
    json_builder_set_member_name(json, name);
    json_builder_add_double_value(json, value);
}

static void add_null(JsonBuilder *json, const char *name)
{
    json_builder_set_member_name(json, name);
    json_builder_add_null_value(json);
}

static void add_int(JsonBuilder *json, const char *name, guint64 value)
{
    json_builder_set_member_name(json, name);
    json_builder_add_int_value(json, (gint64)MIN(value, (guint64)G_MAXINT64));
}

static void add_figures(JsonBuilder *json, const SimMetrics *metrics)
{
    SimFigures figures;
    sim_figures(metrics, &figures);
    add_int(json, "jobs", metrics->jobs);
    add_double(json, "mean_wait_s", figures.mean_wait_s);
    add_double(json, "p50_wait_s", figures.p50_wait_s);
    add_double(json, "p95_wait_s", figures.p95_wait_s);
    add_double(json, "mean_start_wait_s", figures.mean_start_wait_s);
    add_double(json, "mean_bounded_slowdown", figures.mean_bounded_slowdown);
    add_double(json, "makespan_s", figures.makespan_s);
    add_double(json, "useful_cpu_utilisation", figures.useful_cpu_utilisation);
    add_double(json, "useful_memory_utilisation", figures.useful_memory_utilisation);
    add_double(json, "work_done_cpu_s", figures.work_done_cpu_s);
    add_double(json, "guaranteed_cpu_shortfall", figures.guaranteed_cpu_shortfall);
    add_double(json, "guaranteed_memory_shortfall", figures.guaranteed_memory_shortfall);
}

static void add_counts(JsonBuilder *json, const SimMetrics *metrics)
{
    add_int(json, "migrations", metrics->migrations);
    add_int(json, "checkpoints", metrics->checkpoints);
    add_int(json, "kills", metrics->kills);
    add_int(json, "restores", metrics->restores);
    add_int(json, "freezes", metrics->freezes);
    add_int(json, "resizes", metrics->resizes);
    add_int(json, "balloons", metrics->balloons);
    add_int(json, "guest_starts", metrics->guest_starts);
    add_int(json, "opportunistic_starts", metrics->opportunistic_starts);
    add_int(json, "refused", metrics->refused);
    add_int(json, "node_failures", metrics->node_failures);
    add_int(json, "failed_actions", metrics->failed_actions);
    add_int(json, "lost_jobs", metrics->lost);
    add_double(json, "lost_cpu_s", metrics->lost_cpu_s);
    add_double(json, "total_work_cpu_s", metrics->useful_cpu_s);
    add_int(json, "steps", metrics->steps);
}

static void add_widths(JsonBuilder *json, const SimMetrics *metrics)
{
    json_builder_set_member_name(json, "waits_by_width");
    json_builder_begin_array(json);
    for (guint i = 0; i < SIM_WIDTH_CLASSES; i++) {
        double jobs = metrics->waits_by_width[i]->total;
        json_builder_begin_object(json);
        json_builder_set_member_name(json, "vcpus");
        json_builder_add_string_value(json, sim_width_name(i));
        add_int(json, "jobs", (guint64)jobs);
        add_double(json, "mean_wait_s", per(metrics->wait_sum_by_width_s[i], jobs));
        add_double(json, "p95_wait_s", sim_quantiles_get(metrics->waits_by_width[i], 0.95));
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void add_limits(JsonBuilder *json, const SimMetrics *metrics)
{
    add_int(json, "limit_kills", metrics->limit_kills);
    add_int(json, "limit_extensions", metrics->limit_extensions);
}

static void add_strings(JsonBuilder *json, const char *name, char **strings)
{
    json_builder_set_member_name(json, name);
    json_builder_begin_array(json);
    for (guint i = 0; strings[i] != NULL; i++) {
        g_autofree char *text = g_utf8_make_valid(strings[i], -1);
        json_builder_add_string_value(json, text);
    }
    json_builder_end_array(json);
}

static void add_setting(JsonBuilder *json, const SimWorkload *workload, const SimOptions *options)
{
    const SimMachine *machine = sim_workload_machine(workload);
    const SimSurvey *survey = sim_workload_survey(workload);
    add_int(json, "nodes", machine->nodes);
    add_int(json, "vcpus_per_node", machine->vcpus);
    add_int(json, "memory_mib_per_node", machine->memory_mib);
    if (machine->n_smaller > 0) {
        add_int(json, "smaller_nodes", machine->n_smaller);
        add_int(json, "memory_mib_per_smaller_node", machine->smaller_mib);
    }
    if (survey->end_usec > 0)
        add_double(json, "load", survey->load);
    else
        add_null(json, "load"); /* none can be told from one instant */
    add_double(json, "trace_end_s", (double)survey->end_usec / (double)G_USEC_PER_SEC);
    add_int(json, "never_ran", survey->n_never_ran);
    add_int(json, "too_large", survey->n_too_large);
    add_int(json, "memory_cut", survey->n_memory_cut);
    if (sim_workload_estimates(workload) > 0)
        add_double(json, "estimates", sim_workload_estimates(workload));
    if (sim_workload_short_permille(workload) > 0)
        add_int(json, "too_short", survey->n_limit_short);
    add_int(json, "seed", options->sim.seed);
    json_builder_set_member_name(json, "version");
    json_builder_add_string_value(json, PACKAGE_VERSION);
    add_strings(json, "traces", options->traces);
    add_strings(json, "options", options->given);
}

char *sim_report_json(const SimWorkload *workload, const SimOptions *options,
                      const SimResult *results, guint n)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_array(json);
    for (guint i = 0; i < n; i++) {
        json_builder_begin_object(json);
        json_builder_set_member_name(json, "policy");
        json_builder_add_string_value(json, sim_policy_name(results[i].policy));
        add_figures(json, &results[i].metrics);
        add_counts(json, &results[i].metrics);
        if (sim_workload_short_permille(workload) > 0)
            add_limits(json, &results[i].metrics);
        add_widths(json, &results[i].metrics);
        add_setting(json, workload, options);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    g_autoptr(JsonGenerator) generator = json_generator_new();
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    json_generator_set_root(generator, root);
    json_generator_set_pretty(generator, TRUE);
    g_autofree char *text = json_generator_to_data(generator, NULL);
    return g_strconcat(text, "\n", NULL);
}
