/* SPDX-License-Identifier: Apache-2.0 */
/* What one event costs the scheduling core, with many nodes and many more waiting jobs; --help says how
 * many of what. Jobs have the shapes that batch sites see: few vCPUs mostly, memory in steps, limits from
 * a list, a few hundred users. One thread, no I/O; the clock is virtual and only the CPU time that the
 * core takes is measured, whatever else the machine does. */
#include "config.h"

#include "scheduler/core/core.h"

#include <stdio.h>

#define SEED            20261120u
#define NODE_CPUS       64u
#define NODE_MIB        262144u
#define SHAPES_PER_USER 10u
#define NODES_PER_RACK  32u
#define GUESTS_MAX      9u /* of a gang */

#define EXIT_USAGE 2

typedef struct {
    BerthCore *core;
    BerthCoreEffects *effects;
    GRand *random;
    gint64 now_usec;
    guint64 next_job;
    GArray *running; /* BerthGuestId */
    GArray *costs;   /* gint64, ns */
    gboolean measures;
    guint32 n_cells, gangs_permille;
} Bench;

typedef struct {
    gint64 nodes, jobs, events, cells, gangs, plan_depth;
    gboolean json;
} Options;

static void handle(Bench *bench, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    berth_core_effects_clear(bench->effects);
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    if (!berth_core_handle(bench->core, bench->now_usec, event, bench->effects, &error))
        g_error("%s", error->message);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    gint64 cost = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
    if (bench->measures)
        g_array_append_val(bench->costs, cost);
    for (guint i = 0; i < bench->effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(bench->effects->actions, BerthCoreAction, i);
        if (action->kind == BERTH_ACTION_START && action->guest.guest == 0)
            g_array_append_val(bench->running, action->guest);
    }
}

static guint pick(Bench *bench, guint n)
{
    return (guint)g_rand_int_range(bench->random, 0, (gint32)n);
}

static void submit(Bench *bench)
{
    static const guint32 vcpus[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 32, 64};
    static const guint32 hours[] = {1, 1, 2, 4, 4, 8, 12, 24, 24, 48, 72, 168};
    /* Users submit series: each has a few shapes of his own. */
    guint32 user = pick(bench, 300);
    guint32 shape = (user * SHAPES_PER_USER + pick(bench, SHAPES_PER_USER)) * 2654435761u;
    guint32 cpus = vcpus[(shape >> 8) % G_N_ELEMENTS(vcpus)];
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted = (BerthCoreJob){
        .id = ++bench->next_job,
        .uid = 1000 + user,
        .resources = {cpus, (guint64)cpus * 480 * (1 + (shape >> 16) % 8), 10},
        .time_limit_usec =
            hours[(shape >> 20) % G_N_ELEMENTS(hours)] * 3600 * (gint64)G_USEC_PER_SEC,
        .submit_usec = bench->now_usec,
        .guests =
            (shape >> 5) % 1000 < bench->gangs_permille ? 2 + (shape >> 12) % (GUESTS_MAX - 1) : 1,
    };
    handle(bench, &event);
}

static BerthGuestId take_running(Bench *bench)
{
    g_assert(bench->running->len > 0); /* what is left fits: the first that waits starts */
    guint at = pick(bench, bench->running->len);
    BerthGuestId id = g_array_index(bench->running, BerthGuestId, at);
    g_array_remove_index_fast(bench->running, at);
    return id;
}

static void exit_one(Bench *bench)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_EXITED, .guest = take_running(bench)};
    event.exited.start_usec = event.exited.end_usec = bench->now_usec;
    event.exited.exit.status = 1; /* a gang's other guests are released with it */
    handle(bench, &event);
    g_autoptr(GArray) actions = g_array_copy(bench->effects->actions);
    for (guint i = 0; i < actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(actions, BerthCoreAction, i);
        event = (BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RELEASED, .guest = action->guest};
        if (action->kind == BERTH_ACTION_RELEASE)
            handle(bench, &event);
    }
}

static void report_one(Bench *bench)
{
    guint at = pick(bench, bench->running->len);
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_RUNNING,
                            .guest = g_array_index(bench->running, BerthGuestId, at)};
    event.running.start_usec = bench->now_usec;
    handle(bench, &event);
    event = (BerthCoreEvent){.kind = BERTH_EVENT_GUEST_REPORTED, .guest = event.guest};
    event.usage = (BerthCoreUsage){.cpu_milli = pick(bench, 1000), .memory_used_mib = 256};
    handle(bench, &event);
}

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
static double fill(Bench *bench, guint n_nodes, guint n_jobs, double *out_job_bytes,
                   double *out_node_bytes)
{
    gsize before = berth_core_memory_bytes(bench->core);
    handle(bench, &(BerthCoreEvent){.kind = BERTH_EVENT_STORAGE_DOWN});
    for (guint i = 0; i < n_nodes; i++) {
        g_autofree char *name = g_strdup_printf("n%u", i);
        BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED,
                               .node = berth_core_add_node(bench->core, name)};
        join.joined.info.capacity = (BerthResources){NODE_CPUS, NODE_MIB, 0};
        join.joined.info.rack = 1 + i / NODES_PER_RACK;
        join.joined.info.n_cells = bench->n_cells;
        for (guint32 cell = 0; cell < bench->n_cells; cell++)
            join.joined.info.cells[cell] =
                (BerthCoreCell){NODE_CPUS / bench->n_cells, NODE_MIB / bench->n_cells};
        handle(bench, &join);
    }
    gsize with_nodes = berth_core_memory_bytes(bench->core);
    for (guint i = 0; i < n_jobs; i++)
        submit(bench);
    *out_job_bytes = (double)(berth_core_memory_bytes(bench->core) - with_nodes) / n_jobs;
    bench->measures = TRUE;
    handle(bench, &(BerthCoreEvent){.kind = BERTH_EVENT_STORAGE_UP});
    bench->measures = FALSE;
    *out_node_bytes = (double)(with_nodes - before) / n_nodes;
    double seconds = (double)g_array_index(bench->costs, gint64, 0) / 1e9;
    g_array_set_size(bench->costs, 0);
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
        {"json", 0, 0, G_OPTION_ARG_NONE, &options->json, "print JSON instead of a table", NULL},
        {NULL}};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "Measures what one event costs the scheduling core.");
    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse(context, &argc, &argv, error) &&
           check_options(argc, argv, options, error);
}

/* --- the run ------------------------------------------------------------------------------------- */

static void measure(Bench *bench, guint n_events)
{
    bench->measures = TRUE;
    for (guint i = 0; i < n_events / 3; i++) {
        bench->now_usec += G_USEC_PER_SEC / 10;
        submit(bench);
        exit_one(bench);
        report_one(bench);
    }
}

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

static void run(Bench *bench, const Options *options)
{
    double job_bytes = 0;
    double node_bytes = 0;
    gboolean json = options->json;
    double pass_s =
        fill(bench, (guint)options->nodes, (guint)options->jobs, &job_bytes, &node_bytes);
    measure(bench, (guint)options->events);
    double spread = spread_us(bench->costs);
    g_array_sort(bench->costs, compare_costs);
    print_metric(json, "event_median_us", "us", percentile_us(bench->costs, 500), 20,
                 bench->costs->len, spread);
    print_metric(json, "event_p99_us", "us", percentile_us(bench->costs, 990), 1000,
                 bench->costs->len, 0);
    print_metric(json, "full_pass_s", "s", pass_s, 1, 1, 0);
    print_metric(json, "bytes_per_pending_job", "B", job_bytes, 200, 1, 0);
    print_metric(json, "bytes_per_node", "B", node_bytes, 0, 1, 0);
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
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_PLAN_DEPTH] = options.plan_depth;
    BerthCoreConfig config = {.node_timeout_usec = 60 * (gint64)G_USEC_PER_SEC,
                              .guest_overhead_mib = 128,
                              .policy = BERTH_POLICY_CONSERVATIVE,
                              .features = BERTH_FEATURE_ALL,
                              .tunings = tunings};
    Bench bench = {.core = berth_core_new(&config),
                   .effects = berth_core_effects_new(),
                   .random = g_rand_new_with_seed(SEED),
                   .now_usec = G_USEC_PER_SEC,
                   .running = g_array_new(FALSE, FALSE, sizeof(BerthGuestId)),
                   .costs = g_array_new(FALSE, FALSE, sizeof(gint64)),
                   .n_cells = (guint32)options.cells,
                   .gangs_permille = (guint32)options.gangs};
    run(&bench, &options);
    g_array_unref(bench.running);
    g_array_unref(bench.costs);
    g_rand_free(bench.random);
    berth_core_effects_free(bench.effects);
    berth_core_free(bench.core);
    return 0;
}
