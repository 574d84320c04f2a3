/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the upper bound. Jobs that are offered at the moment are in a heap of the instants at which
 * their demand changes; once one has ended, what it offered by the trace's end is summed up by its
 * ratios of CPU to memory, and nothing else is kept of it. bound.h says why nobody does more. */
#include "config.h"

#include "scheduler/sim/bound.h"

#include "common/error.h"
#include "scheduler/core/heap.h"

#include <math.h>

/* Ratios of CPU to memory work in buckets: 64 for each doubling, from 2^-64 to 2^64. */
#define RATIO_SUBS      64
#define RATIO_EXPONENTS 128
#define RATIO_BUCKETS   (RATIO_SUBS * RATIO_EXPONENTS)

/* Of sums of doubles: far more than they are off by. */
#define ROUNDING 1e-9

typedef struct {
    double cpu, mem;
} Share;

typedef struct {
    CoreHeapLink link;
    gint64 due_usec; /* its demand changes, or it ends */
    SimJob job;
    SimUsage usage;
    SimDemand demand;  /* of each guest */
    SimSum cpu, mem;   /* offered so far, up to the trace's end */
    gint64 since_usec; /* of the sums */
    GArray *corners;   /* Share: of the least concave curve from 0 above all CPU by MEM so far */
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
    Share shares[RATIO_BUCKETS];
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

/* --- the knapsack ------------------------------------------------------------------------------- */

static guint bucket_of(double ratio)
{
    int exponent;
    double fraction = frexp(ratio, &exponent); /* [0.5, 1) */
    exponent = CLAMP(exponent + RATIO_EXPONENTS / 2, 0, RATIO_EXPONENTS - 1);
    return (guint)(exponent * RATIO_SUBS) + (guint)((fraction - 0.5) * 2 * RATIO_SUBS);
}

/* Upper end of the bucket's ratios. */
static double ratio_of(guint bucket)
{
    int exponent = (int)(bucket / RATIO_SUBS) - RATIO_EXPONENTS / 2;
    return ldexp(0.5 + (double)(bucket % RATIO_SUBS + 1) / (2 * RATIO_SUBS), exponent);
}

static double slope(Share from, Share to)
{
    return (to.cpu - from.cpu) / MAX(to.mem - from.mem, 1e-9);
}

static Share corner(const Offer *offer, guint n)
{
    return n > 0 ? g_array_index(offer->corners, Share, n - 1) : (Share){0, 0};
}

/* What is less steep than what follows it is one with that (Andrew, Inf. Process. Lett. 9, 1979). */
static void add_corner(Offer *offer)
{
    Share to = {(double)offer->cpu / 1e9, (double)offer->mem / (double)G_USEC_PER_SEC};
    guint n = offer->corners->len;
    while (n > 0 && slope(corner(offer, n - 1), corner(offer, n)) <= slope(corner(offer, n), to))
        n--;
    g_array_set_size(offer->corners, n);
    g_array_append_val(offer->corners, to);
}

static void sum_up(Bound *bound, const Offer *offer)
{
    for (guint n = 1; n <= offer->corners->len; n++) {
        Share from = corner(offer, n - 1), to = corner(offer, n);
        if (to.cpu <= from.cpu)
            return; /* and neither does anything after that */
        Share *share = &bound->shares[bucket_of(slope(from, to))];
        share->cpu += to.cpu - from.cpu;
        share->mem += to.mem - from.mem;
    }
}

/* The most CPU work that MEM_LEFT of memory-time can hold. */
static double knapsack(const Bound *bound, double mem_left)
{
    double cpu = 0;
    for (guint i = RATIO_BUCKETS; i-- > 0 && mem_left > 0;) {
        const Share *share = &bound->shares[i];
        cpu += share->mem <= mem_left ? share->cpu : MIN(share->cpu, mem_left * ratio_of(i));
        mem_left -= share->mem;
    }
    return cpu;
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

static void count(Bound *bound, Offer *offer)
{
    SimSum cpu = (SimSum)offer->demand.cpu_milli * offer->job.guests;
    SimSum mem = (SimSum)offer->demand.memory_mib * offer->job.guests;
    SimSum length = (SimSum)(bound->now_usec - offer->since_usec);
    gint64 in_trace = MIN(bound->now_usec, bound->end_usec) - offer->since_usec;
    bound->all_cpu += length * cpu;
    bound->all_mem += length * mem;
    offer->cpu += (SimSum)MAX(in_trace, 0) * cpu;
    offer->mem += (SimSum)MAX(in_trace, 0) * mem;
    offer->since_usec = bound->now_usec;
    if (in_trace > 0)
        add_corner(offer);
}

static void offer_free(Offer *offer)
{
    g_array_unref(offer->corners);
    g_free(offer);
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
    offer->corners = g_array_new(FALSE, FALSE, sizeof(Share));
    sim_usage_init(bound->usage, job, &offer->usage);
    bound->n_offers++;
    bound->last_end_usec = MAX(bound->last_end_usec, job->submit_usec + job->run_usec);
    expect(bound, offer);
    sim_metrics_add_job(bound->metrics, job, &outcome);
}

static void change(Bound *bound, Offer *offer)
{
    core_heap_remove(&bound->offers, &offer->link);
    count(bound, offer);
    set_rates(bound, offer, FALSE);
    if (bound->now_usec - offer->job.submit_usec < offer->job.run_usec) {
        expect(bound, offer);
        return;
    }
    sum_up(bound, offer);
    bound->n_offers--;
    offer_free(offer);
}

static Offer *first_offer(const Bound *bound)
{
    CoreHeapLink *first = core_heap_first(&bound->offers);
    return first != NULL ? CORE_CONTAINER_OF(first, Offer, link) : NULL;
}

static void go_to(Bound *bound, gint64 to_usec)
{
    Offer *offer;
    while ((offer = first_offer(bound)) != NULL && offer->due_usec <= to_usec) {
        pass(bound, offer->due_usec);
        change(bound, offer);
    }
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
    metrics->useful_cpu_end_s =
        MIN(metrics->useful_cpu_end_s, knapsack(bound, metrics->useful_mib_end_s * (1 + ROUNDING)));
    metrics->useful_cpu_s = (double)bound->all_cpu / 1e9;
    metrics->useful_mib_s = (double)bound->all_mem / (double)G_USEC_PER_SEC;
}

static void free_offers(Bound *bound)
{
    Offer *offer;
    while ((offer = first_offer(bound)) != NULL) {
        core_heap_remove(&bound->offers, &offer->link);
        offer_free(offer);
    }
    core_heap_clear(&bound->offers);
}

gboolean sim_bound_run(const SimConfig *config, SimWorkload *workload, const SimUsageModel *usage,
                       SimMetrics *out_metrics, GError **error)
{
    Bound *bound = g_new0(Bound, 1);
    const SimMachine *machine = sim_workload_machine(workload);
    sim_metrics_init(out_metrics);
    out_metrics->capacity_vcpus = (double)machine->nodes * machine->vcpus;
    out_metrics->capacity_mib = (double)machine->nodes * (double)machine->memory_mib;
    out_metrics->trace_end_usec = sim_workload_survey(workload)->end_usec;
    bound->workload = workload;
    bound->usage = usage;
    bound->metrics = out_metrics;
    bound->end_usec = out_metrics->trace_end_usec;
    bound->cpu.capacity = out_metrics->capacity_vcpus;
    bound->mem.capacity = out_metrics->capacity_mib;
    core_heap_init(&bound->offers, compare);
    gboolean ok = sim_workload_rewind(workload, error) && offer_all(bound, config, error);
    if (ok) {
        take_trace_end(bound);
        take_end(bound);
    } else {
        sim_metrics_clear(out_metrics);
    }
    free_offers(bound);
    g_free(bound);
    return ok;
}
