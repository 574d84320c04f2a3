/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the upper bound. Jobs that are offered at the moment are in a heap of the instants at which
 * their demand changes, each with the curves of what it could do by the trace's end; once one has ended, its
 * curves are in the knapsacks, and nothing else is kept of it. */
#include "config.h"

#include "scheduler/sim/bound.h"

#include "common/error.h"
#include "scheduler/core/heap.h"
#include "scheduler/core/look.h"
#include "scheduler/sim/knapsack.h"

#include <math.h>

#define SPLITS SIM_BOUND_SPLITS

typedef struct {
    CoreHeapLink link;
    gint64 due_usec; /* its demand changes, or it ends */
    SimJob job;
    SimUsage usage;
    SimDemand demand;  /* of each guest */
    gint64 since_usec; /* up to then it is counted */
    /* What it can do by the trace's end: [K] after split K, if it came before that; [0] from its arrival on. Else
     * NULL. */
    SimCurve *curves[SPLITS];
    guint n_before; /* splits that had passed when it came */
} Offer;

/* Divisible work that comes at RATE and is served at CAPACITY at most. */
typedef struct {
    double capacity, rate, backlog, served;
} Fluid;

typedef struct {
    SimWorkload *workload;
    const SimUsageModel *usage;
    SimMetrics *metrics;
    CoreHeap offers; /* Offer.link */
    gint64 now_usec, end_usec;
    Fluid cpu, mem;
    SimSum all_cpu, all_mem; /* offered in all */
    gint64 last_end_usec;    /* of a job that starts when it arrives */
    guint64 wanted_milli, wanted_mib;
    guint64 n_offers;
    guint n_splits;                /* that have passed */
    double free_cpu[SPLITS];       /* offered before each */
    SimKnapsack *straddle[SPLITS]; /* of those who came before split K, after it */
    SimKnapsack *came[SPLITS + 1]; /* of those who came when K splits had passed */
} Bound;

static int compare(const CoreHeapLink *a, const CoreHeapLink *b)
{
    const Offer *x = CORE_CONTAINER_OF(a, const Offer, link);
    const Offer *y = CORE_CONTAINER_OF(b, const Offer, link);
    if (x->due_usec != y->due_usec)
        return x->due_usec < y->due_usec ? -1 : 1;
    return x->job.id < y->job.id ? -1 : x->job.id > y->job.id;
}

/* --- time --------------------------------------------------------------------------------------- */

/* What is served in LENGTH_S. */
static double fluid_pass(Fluid *fluid, double length_s)
{
    double offered = fluid->backlog + fluid->rate * length_s;
    double done = MIN(offered, fluid->capacity * length_s);
    fluid->served += done;
    fluid->backlog = offered - done;
    return done;
}

static gint64 fluid_drain_usec(const Fluid *fluid)
{
    return (gint64)ceil(fluid->backlog / fluid->capacity * (double)G_USEC_PER_SEC);
}

static void pass(Bound *bound, gint64 to_usec)
{
    gint64 length = to_usec - bound->now_usec;
    double length_s = (double)length / (double)G_USEC_PER_SEC;
    if (length <= 0)
        return;
    double cpu = fluid_pass(&bound->cpu, length_s) / length_s;
    double mem = fluid_pass(&bound->mem, length_s) / length_s;
    SimTotals totals = {.cpu_served_milli = (guint64)(cpu * 1000),
                        .cpu_wanted_milli = bound->wanted_milli,
                        .memory_held_mib = (guint64)mem,
                        .running = bound->n_offers};
    bound->now_usec = to_usec;
    sim_metrics_pass(bound->metrics, &totals, to_usec, length);
}

/* --- offers ------------------------------------------------------------------------------------- */

static void set_rates(Bound *bound, const Offer *offer, gboolean plus)
{
    guint64 milli = (guint64)offer->demand.cpu_milli * offer->job.guests;
    guint64 mib = offer->demand.memory_mib * offer->job.guests;
    bound->wanted_milli += plus ? milli : (guint64)0 - milli;
    bound->wanted_mib += plus ? mib : (guint64)0 - mib;
    bound->cpu.rate = (double)bound->wanted_milli / 1000;
    bound->mem.rate = (double)bound->wanted_mib;
}

static void count(Bound *bound, Offer *offer, gint64 at_usec)
{
    SimSum cpu = (SimSum)offer->demand.cpu_milli * offer->job.guests;
    SimSum mem = (SimSum)offer->demand.memory_mib * offer->job.guests;
    SimSum length = (SimSum)(at_usec - offer->since_usec);
    gint64 in_trace = MIN(at_usec, bound->end_usec) - offer->since_usec;
    bound->all_cpu += length * cpu;
    bound->all_mem += length * mem;
    for (guint k = 0; in_trace > 0 && k < SPLITS; k++)
        if (offer->curves[k] != NULL)
            sim_curve_add(offer->curves[k], (double)((SimSum)in_trace * cpu) / 1e9,
                          (double)((SimSum)in_trace * mem) / (double)G_USEC_PER_SEC);
    offer->since_usec = at_usec;
}

static void expect(Bound *bound, Offer *offer)
{
    gint64 until;
    gint64 progress = bound->now_usec - offer->job.submit_usec;
    offer->demand = sim_usage_at(&offer->usage, progress, &until);
    offer->due_usec = offer->job.submit_usec + MIN(until, offer->job.run_usec);
    set_rates(bound, offer, TRUE);
    core_heap_push(&bound->offers, &offer->link);
}

static void arrive(Bound *bound, const SimJob *job)
{
    gint64 delay = (gint64)(bound->cpu.backlog / bound->cpu.capacity * (double)G_USEC_PER_SEC);
    Offer *offer = g_new0(Offer, 1);
    SimOutcome outcome = {.start_usec = job->submit_usec + delay,
                          .end_usec = job->submit_usec + delay + job->run_usec,
                          .is_completed = TRUE};
    offer->job = *job;
    offer->since_usec = bound->now_usec;
    offer->curves[0] = sim_curve_new();
    offer->n_before = bound->n_splits;
    sim_usage_init(bound->usage, job, &offer->usage);
    bound->n_offers++;
    bound->last_end_usec = MAX(bound->last_end_usec, job->submit_usec + job->run_usec);
    expect(bound, offer);
    sim_metrics_add_job(bound->metrics, job, &outcome);
}

static void offer_free(Offer *offer)
{
    for (guint k = 0; k < SPLITS; k++)
        sim_curve_free(offer->curves[k]);
    g_free(offer);
}

static void put_by(Bound *bound, const Offer *offer)
{
    sim_knapsack_add(bound->came[offer->n_before], offer->curves[0]);
    for (guint k = 1; k < SPLITS; k++)
        if (offer->curves[k] != NULL)
            sim_knapsack_add(bound->straddle[k], offer->curves[k]);
}

static void change(Bound *bound, Offer *offer)
{
    core_heap_remove(&bound->offers, &offer->link);
    count(bound, offer, bound->now_usec);
    set_rates(bound, offer, FALSE);
    if (bound->now_usec - offer->job.submit_usec < offer->job.run_usec) {
        expect(bound, offer);
        return;
    }
    put_by(bound, offer);
    bound->n_offers--;
    offer_free(offer);
}

static Offer *first_offer(const Bound *bound)
{
    CoreHeapLink *first = core_heap_first(&bound->offers);
    return first != NULL ? CORE_CONTAINER_OF(first, Offer, link) : NULL;
}

static void change_all(Bound *bound, gint64 to_usec)
{
    Offer *offer;
    while ((offer = first_offer(bound)) != NULL && offer->due_usec <= to_usec) {
        pass(bound, offer->due_usec);
        change(bound, offer);
    }
}

static gint64 split_usec(const Bound *bound, guint k)
{
    return bound->end_usec / SPLITS * k;
}

/* From here on memory counts, and what was offered before is free. */
static void split(Bound *bound)
{
    guint k = bound->n_splits++;
    CoreHeapWalk walk;
    CoreHeapLink *link;
    core_heap_walk_begin(&walk, &bound->offers);
    while ((link = core_heap_walk_next(&walk)) != NULL) {
        Offer *offer = CORE_CONTAINER_OF(link, Offer, link);
        count(bound, offer, split_usec(bound, k));
        offer->curves[k] = sim_curve_new();
    }
    core_heap_walk_end(&walk);
    bound->free_cpu[k] = (double)bound->all_cpu / 1e9;
}

static void go_to(Bound *bound, gint64 to_usec)
{
    while (bound->n_splits < SPLITS && split_usec(bound, bound->n_splits) <= to_usec) {
        change_all(bound, split_usec(bound, bound->n_splits));
        split(bound);
    }
    change_all(bound, to_usec);
    pass(bound, to_usec);
}

/* --- the whole ---------------------------------------------------------------------------------- */

static gboolean offer_all(Bound *bound, const SimConfig *config, GError **error)
{
    const SimHooks *hooks = &config->hooks;
    for (guint64 n = 1;; n++) {
        SimJob job;
        gboolean end;
        if (!sim_workload_next(bound->workload, &job, &end, error))
            return FALSE;
        if (end)
            return TRUE;
        if (sim_is_interrupted(config)) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_CANCELLED,
                        "interrupted on day %.1f of the bound", (double)bound->now_usec / 86400e6);
            return FALSE;
        }
        go_to(bound, job.submit_usec);
        if (job.is_too_large)
            bound->metrics->refused++;
        else
            arrive(bound, &job);
        if (hooks->progress != NULL && n % 16384 == 0)
            hooks->progress(n, n - bound->n_offers, bound->now_usec, hooks->user_data);
    }
}

static void take_trace_end(Bound *bound)
{
    SimMetrics *metrics = bound->metrics;
    go_to(bound, bound->end_usec);
    metrics->useful_cpu_end_s = bound->cpu.served;
    metrics->useful_mib_end_s = bound->mem.served;
}

/* By memory: the least that any split says. All offers have come to their end. Once: it sums up in place. */
static double most_in_memory(Bound *bound)
{
    double least = G_MAXDOUBLE;
    for (guint k = SPLITS; k-- > 0;) {
        gint64 left_usec = bound->end_usec - split_usec(bound, k);
        double mem = bound->mem.capacity * (double)left_usec / (double)G_USEC_PER_SEC;
        if (k < SPLITS - 1)
            sim_knapsack_add_all(bound->came[k + 1], bound->came[k + 2]);
        sim_knapsack_add_all(bound->straddle[k], bound->came[k + 1]);
        least = MIN(least, bound->free_cpu[k] + sim_knapsack_most(bound->straddle[k], mem));
    }
    return least;
}

/* Until all is done that was offered: neither the last job nor a queue can be done before. */
static void take_end(Bound *bound)
{
    SimMetrics *metrics = bound->metrics;
    go_to(bound, MAX(bound->last_end_usec, bound->end_usec));
    gint64 cpu = bound->now_usec + fluid_drain_usec(&bound->cpu);
    gint64 mem = bound->now_usec + fluid_drain_usec(&bound->mem);
    pass(bound, MIN(cpu, mem));
    pass(bound, MAX(cpu, mem));
    if (metrics->jobs > 0)
        metrics->last_end_usec = MAX(bound->last_end_usec, MAX(cpu, mem));
    double in_memory = most_in_memory(bound);
    metrics->useful_cpu_end_s = MIN(metrics->useful_cpu_end_s, in_memory);
    metrics->useful_cpu_s = (double)bound->all_cpu / 1e9;
    metrics->useful_mib_s = (double)bound->all_mem / (double)G_USEC_PER_SEC;
}

static Bound *bound_new(SimWorkload *workload, const SimUsageModel *usage, SimMetrics *metrics)
{
    Bound *bound = g_new0(Bound, 1);
    bound->workload = workload;
    bound->usage = usage;
    bound->metrics = metrics;
    bound->end_usec = metrics->trace_end_usec;
    bound->cpu.capacity = metrics->capacity_vcpus;
    bound->mem.capacity = metrics->capacity_mib;
    for (guint k = 0; k < SPLITS; k++)
        bound->straddle[k] = sim_knapsack_new();
    for (guint k = 0; k <= SPLITS; k++)
        bound->came[k] = sim_knapsack_new();
    core_heap_init(&bound->offers, compare);
    return bound;
}

static void bound_free(Bound *bound)
{
    Offer *offer;
    while ((offer = first_offer(bound)) != NULL) {
        core_heap_remove(&bound->offers, &offer->link);
        offer_free(offer);
    }
    core_heap_clear(&bound->offers);
    for (guint k = 0; k < SPLITS; k++)
        sim_knapsack_free(bound->straddle[k]);
    for (guint k = 0; k <= SPLITS; k++)
        sim_knapsack_free(bound->came[k]);
    g_free(bound);
}

gboolean sim_bound_run(const SimConfig *config, SimWorkload *workload, const SimUsageModel *usage,
                       SimMetrics *out_metrics, GError **error)
{
    const SimMachine *machine = sim_workload_machine(workload);
    sim_metrics_init(out_metrics);
    out_metrics->capacity_vcpus = (double)sim_machine_all_vcpus(machine);
    out_metrics->capacity_mib = (double)sim_machine_all_mib(machine);
    out_metrics->trace_end_usec = sim_workload_survey(workload)->end_usec;
    Bound *bound = bound_new(workload, usage, out_metrics);
    gboolean ok = sim_workload_rewind(workload, error) && offer_all(bound, config, error);
    if (ok) {
        take_trace_end(bound);
        take_end(bound);
    } else {
        sim_metrics_clear(out_metrics);
    }
    bound_free(bound);
    return ok;
}
