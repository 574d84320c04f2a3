/* SPDX-License-Identifier: Apache-2.0 */
/* What one event costs the scheduling core, with many nodes and many more waiting jobs; --help says how
 * many of what. One thread, no I/O; the clock is virtual and only the CPU time that the
 * core takes is measured, whatever else the machine does.
 *
 * Two modes. Without --berth nobody may run in slack and nobody is measured before the run: EASY's work. With
 * it the cluster runs as Berth means it to: all guests of one have slack to go to, they are measured, fair share and
 * age count, timers are due, and moves are answered. */
#include "config.h"

#include "bench/core_cluster.h"

#include <stdio.h>

#define GUESTS_MAX 9u /* of a gang */

#define EXIT_USAGE 2

typedef struct {
    gint64 nodes, jobs, events, cells, gangs, plan_depth;
    gboolean distinct, lopsided, berth, json;
} Options;

static int compare_costs(gconstpointer a, gconstpointer b)
{
    gint64 cost_a = *(const gint64 *)a;
    gint64 cost_b = *(const gint64 *)b;
    return cost_a < cost_b ? -1 : cost_a > cost_b;
}

static double percentile_us(const GArray *costs, guint permille)
{
    guint at = (guint)((guint64)(costs->len - 1) * permille / 1000);
    return (double)g_array_index(costs, gint64, at) / 1000.0;
}

/* The first pass over everything that waits: all nodes join while storage is down, then it is up. */
static double fill(Cluster *cluster, const Options *options, double *out_job_bytes,
                   double *out_node_bytes)
{
    gsize before = cluster_bytes(cluster);
    cluster_set_storage(cluster, FALSE);
    cluster_add_nodes(cluster);
    gsize with_nodes = cluster_bytes(cluster);
    for (gint64 i = 0; i < options->jobs; i++)
        cluster_submit(cluster);
    *out_job_bytes = (double)(cluster_bytes(cluster) - with_nodes) / (double)options->jobs;
    *out_node_bytes = (double)(with_nodes - before) / (double)options->nodes;
    cluster_forget_costs(cluster);
    cluster_set_storage(cluster, TRUE);
    double seconds = (double)g_array_index(cluster_costs(cluster, CLUSTER_SUBMIT), gint64, 0) / 1e9;
    cluster_forget_costs(cluster);
    return seconds;
}

/* REFERENCE: the target; 0 = there is none. */
static void print_metric(gboolean json, const char *metric, const char *unit, double ours,
                         double reference, guint runs, double spread)
{
    g_autofree char *target = g_strdup(json ? "null" : "-");
    g_autofree char *ratio = g_strdup(target);
    if (reference > 0) {
        g_free(target);
        g_free(ratio);
        target = g_strdup_printf("%.3f", reference);
        ratio = g_strdup_printf("%.4f", ours / reference);
    }
    static gboolean is_next;
    if (json)
        fputs(is_next ? ",\n" : "[\n", stdout);
    is_next = TRUE;
    printf(json
               ? "  {\"metric\":\"%s\",\"unit\":\"%s\",\"ours\":%.3f,\"reference\":%s,\"ratio\":%s,"
                 "\"runs\":%u,\"spread\":%.3f}"
               : "%-22s %-3s %12.3f  target %9s  ratio %7s  runs %6u  spread %.3f\n",
           metric, unit, ours, target, ratio, runs, spread);
}

/* --- the command line ---------------------------------------------------------------------------- */

static gboolean check_range(const char *name, gint64 value, gint64 min, gint64 max, GError **error)
{
    if (value >= min && value <= max)
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                "%s %" G_GINT64_FORMAT ": from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                " is allowed",
                name, value, min, max);
    return FALSE;
}

static gboolean check_options(int argc, char **argv, const Options *options, GError **error)
{
    if (argc > 1) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION, "%s: nothing is expected",
                    argv[1]);
        return FALSE;
    }
    const BerthCoreTuningInfo *plan_depth = berth_core_tuning(BERTH_TUNING_PLAN_DEPTH);
    /* A gang of guests that each fill a node has to fit. */
    gint64 nodes_min = options->gangs > 0 ? GUESTS_MAX : 1;
    return check_range("--gangs", options->gangs, 0, 1000, error) &&
           check_range("--nodes", options->nodes, nodes_min, 1000000, error) &&
           check_range("--jobs", options->jobs, 1, 100000000, error) &&
           check_range("--events", options->events, 3, 100000000, error) &&
           check_range("--cells", options->cells, 0, BERTH_CELLS_MAX, error) &&
           check_range("--plan-depth", options->plan_depth, plan_depth->min, plan_depth->max,
                       error);
}

#define NUMBER(name, member, what)                                                                 \
    {                                                                                              \
        name, 0, 0, G_OPTION_ARG_INT64, &options->member, what, "N"                                \
    }

static gboolean parse_options(int argc, char **argv, Options *options, GError **error)
{
    const GOptionEntry entries[] = {
        NUMBER("nodes", nodes, "nodes of 64 vCPUs and 256 GiB (default: 10000)"),
        NUMBER("jobs", jobs, "jobs submitted before the first pass (default: 1000000)"),
        NUMBER("events", events,
               "events measured, a third each: submits, ends, reports (default: 30000)"),
        NUMBER("cells", cells, "NUMA cells of each node (default: 0, not told)"),
        NUMBER("gangs", gangs,
               "permille of the jobs' shapes that are gangs of 2 to 9 guests (default: 0)"),
        NUMBER("plan-depth", plan_depth, "waiting tasks with a planned start (default: 1)"),
        {"distinct", 0, 0, G_OPTION_ARG_NONE, &options->distinct,
         "each job asks for something else (default: 10 kinds of jobs per user)", NULL},
        {"lopsided", 0, 0, G_OPTION_ARG_NONE, &options->lopsided,
         "who waits has the vCPUs or the memory where one ends, never both", NULL},
        {"berth", 0, 0, G_OPTION_ARG_NONE, &options->berth,
         "Berth's own mode: slack, predictions, fair share and timers", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options->json, "print JSON instead of a table", NULL},
        {NULL}};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "Measures what one event costs the scheduling core.");
    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse(context, &argc, &argv, error) &&
           check_options(argc, argv, options, error);
}

/* --- the run ------------------------------------------------------------------------------------- */

/* Largest minus least of the medians of three parts of the run. */
static double spread_us(const GArray *costs)
{
    double thirds[3];
    for (guint i = 0; i < 3; i++) {
        guint len = costs->len / 3;
        g_autoptr(GArray) part = g_array_new(FALSE, FALSE, sizeof(gint64));
        g_array_append_vals(part, &g_array_index(costs, gint64, i * len), len);
        g_array_sort(part, compare_costs);
        thirds[i] = percentile_us(part, 500);
    }
    return MAX(MAX(thirds[0], thirds[1]), thirds[2]) - MIN(MIN(thirds[0], thirds[1]), thirds[2]);
}

/* TARGETS: of the median and of the 99th percentile, 0 = none. Sorts COSTS. */
static void print_costs(gboolean json, const char *name, GArray *costs, double median_target,
                        double p99_target)
{
    g_autofree char *median = g_strdup_printf("%s_median_us", name);
    g_autofree char *p99 = g_strdup_printf("%s_p99_us", name);
    g_autofree char *max = g_strdup_printf("%s_max_us", name);
    if (costs->len < 3)
        return;
    double spread = spread_us(costs);
    g_array_sort(costs, compare_costs);
    print_metric(json, median, "us", percentile_us(costs, 500), median_target, costs->len, spread);
    print_metric(json, p99, "us", percentile_us(costs, 990), p99_target, costs->len, 0);
    print_metric(json, max, "us", percentile_us(costs, 1000), 0, costs->len, 0);
}

/* All kinds but timers together, then each for itself. */
static void print_kinds(gboolean json, const Cluster *cluster)
{
    static const char *const names[CLUSTER_N_KINDS] = {
        [CLUSTER_SUBMIT] = "submit", [CLUSTER_EXIT] = "exit",     [CLUSTER_RUN] = "run",
        [CLUSTER_REPORT] = "report", [CLUSTER_ANSWER] = "answer", [CLUSTER_TIMER] = "timer"};
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(gint64));
    for (guint i = 0; i < CLUSTER_N_KINDS; i++) {
        const GArray *costs = cluster_costs(cluster, (ClusterKind)i);
        if (i != CLUSTER_TIMER)
            g_array_append_vals(all, costs->data, costs->len);
    }
    print_costs(json, "event", all, 20, 1000);
    for (guint i = 0; i < CLUSTER_N_KINDS; i++)
        print_costs(json, names[i], cluster_costs(cluster, (ClusterKind)i), 0, 0);
}

static void run(Cluster *cluster, const Options *options)
{
    double job_bytes = 0;
    double node_bytes = 0;
    gboolean json = options->json;
    double pass_s = fill(cluster, options, &job_bytes, &node_bytes);
    if (options->berth)
        cluster_settle(cluster);
    for (gint64 i = 0; i < options->events / 3; i++)
        cluster_step(cluster);
    print_kinds(json, cluster);
    print_metric(json, "full_pass_s", "s", pass_s, 1, 1, 0);
    print_metric(json, "bytes_per_pending_job", "B", job_bytes, 200, 1, 0);
    print_metric(json, "bytes_per_node", "B", node_bytes, 0, 1, 0);
    print_metric(json, "guests_running", "", cluster_n_running(cluster), 0, 1, 0);
    if (json)
        puts("\n]");
}

int main(int argc, char **argv)
{
    Options options = {.nodes = 10000, .jobs = 1000000, .events = 30000, .plan_depth = 1};
    g_autoptr(GError) error = NULL;
    if (!parse_options(argc, argv, &options, &error)) {
        fprintf(stderr, "core: %s; try --help\n", error->message);
        return EXIT_USAGE;
    }
    ClusterConfig config = {.nodes = (guint32)options.nodes,
                            .cells = (guint32)options.cells,
                            .gangs_permille = (guint32)options.gangs,
                            .is_distinct = options.distinct,
                            .is_lopsided = options.lopsided,
                            .is_berth = options.berth,
                            .plan_depth = options.plan_depth};
    g_autoptr(Cluster) cluster = cluster_new(&config);
    run(cluster, &options);
    return 0;
}
