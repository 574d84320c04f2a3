/* SPDX-License-Identifier: Apache-2.0 */
/* Owns virtual time: takes the next thing that happens, whatever it is, until all jobs have ended.
 * Nothing here costs more than O(log n) but what a node's or a gang's guests cost; a job that has
 * ended leaves nothing behind but its share of the metrics. */
#include "config.h"

#include "common/error.h"
#include "scheduler/sim/state.h"

#include <string.h>

#define PROGRESS_STEPS 16384u
/* When nothing arrives any more, and nothing ends for this long and for so many of the longest run
 * (a guest that is short of CPU is slow), nothing ever will. */
#define STUCK_USEC (1000 * 86400 * (gint64)G_USEC_PER_SEC)
#define STUCK_RUNS 10
/* Likewise when each node has failed so often, on average, while jobs were there and none arrived or ended. */
#define STUCK_FAILURES 1000

static const char *const policy_names[SIM_POLICY_N] = {"fcfs",     "easy",  "conservative",
                                                       "reserved", "berth", "bound"};

const char *sim_policy_name(SimPolicy policy)
{
    return policy_names[policy];
}

/* --- arrivals ----------------------------------------------------------------------------------- */

static gboolean expect_arrival(Sim *sim, GError **error)
{
    gboolean end;
    if (!sim_workload_next(sim->workload, &sim->next_job, &end, error))
        return FALSE;
    if (!end)
        sim_timer_set(sim, &sim->arrival, SIM_TIMER_ARRIVAL,
                      MAX(sim->next_job.submit_usec, sim->now_usec));
    return TRUE;
}

static void explain_arrival(Sim *sim, const SimJob *job)
{
    sim_explain(sim, job, "submitted: %u guest%s of %u vCPU%s and %" G_GUINT64_FORMAT " MiB",
                job->guests, job->guests == 1 ? "" : "s", job->vcpus, job->vcpus == 1 ? "" : "s",
                job->memory_mib);
    if (job->memory_asked_mib > 0)
        sim_explain(sim, job,
                    "its memory was cut: %" G_GUINT64_FORMAT " MiB of each guest were asked for, "
                    "more than a node can give",
                    job->memory_asked_mib);
    if (job->is_cpu_cut || job->is_memory_used_cut)
        sim_explain(sim, job, "its usage was cut to what it reserved: it used more %s in the trace",
                    job->is_cpu_cut && job->is_memory_used_cut ? "CPU and memory"
                    : job->is_cpu_cut                          ? "CPU"
                                                               : "memory");
}

/* One that is too large is refused before its guests are made, however many these are. */
static gboolean arrive(Sim *sim, GError **error)
{
    const SimJob *job = &sim->next_job;
    sim->n_arrived++;
    explain_arrival(sim, job);
    if (job->is_too_large) {
        sim_explain(sim, job, "refused: the machine would not hold that if it were empty");
        sim_run_refused(sim, job);
        return expect_arrival(sim, error);
    }
    SimRun *run = sim_run_new(sim, job);
    sim->run_max_usec = MAX(sim->run_max_usec, run->job.run_usec);
    sim_core_submit(sim, run);
    return expect_arrival(sim, error);
}

/* --- time --------------------------------------------------------------------------------------- */

static void settle_runs(Sim *sim)
{
    GHashTableIter iter;
    gpointer run;
    g_hash_table_iter_init(&iter, sim->runs);
    while (g_hash_table_iter_next(&iter, NULL, &run))
        sim_run_advance(sim, run);
}

static double cpu_s(SimSum milli_usec)
{
    return (double)milli_usec / 1e9;
}

static void pass(Sim *sim, gint64 to_usec)
{
    if (to_usec <= sim->now_usec)
        return;
    gint64 length = to_usec - sim->now_usec;
    sim->now_usec = to_usec;
    sim_metrics_pass(sim->metrics, &sim->totals, to_usec, length);
}

static void take_trace_end(Sim *sim)
{
    pass(sim, sim->metrics->trace_end_usec);
    settle_runs(sim);
    sim->metrics->useful_cpu_end_s = cpu_s(sim->useful_cpu);
    sim->metrics->useful_mib_end_s = (double)sim->useful_mem / (double)G_USEC_PER_SEC;
}

static void go_to(Sim *sim, gint64 to_usec)
{
    gint64 end = sim->metrics->trace_end_usec;
    if (sim->now_usec < end && to_usec >= end)
        take_trace_end(sim);
    pass(sim, to_usec);
}

/* --- what happens ------------------------------------------------------------------------------- */

static gboolean happen(Sim *sim, SimTimer *timer, GError **error)
{
    BerthCoreEvent tick = {.kind = BERTH_EVENT_TIMER};
    switch (timer->kind) {
    case SIM_TIMER_RUN:
        sim_run_due(sim, CORE_CONTAINER_OF(timer, SimRun, timer));
        break;
    case SIM_TIMER_ORDER:
        sim_orders_due(sim, CORE_CONTAINER_OF(timer, SimOrder, timer));
        break;
    case SIM_TIMER_NODE:
        sim_failures_due(sim, CORE_CONTAINER_OF(timer, SimNode, timer));
        break;
    case SIM_TIMER_REPORT:
        sim_reports_due(sim, CORE_CONTAINER_OF(timer, SimGuest, report));
        break;
    case SIM_TIMER_NODE_REPORT:
        sim_reports_node_due(sim, CORE_CONTAINER_OF(timer, SimNode, report));
        break;
    case SIM_TIMER_ARRIVAL:
        return arrive(sim, error);
    case SIM_TIMER_CORE:
        sim_send(sim, &tick);
        break;
    }
    return TRUE;
}

/* What was to follow did not concern the core. */
static void settle_pass(Sim *sim)
{
    BerthCoreEvent tick = {.kind = BERTH_EVENT_TIMER};
    const SimTimer *next = sim_timer_first(sim);
    if (sim->owes_pass && (next == NULL || next->due_usec > sim->now_usec))
        sim_send(sim, &tick);
}

static void explain_waiting(Sim *sim)
{
    GHashTableIter iter;
    gpointer run;
    if (sim->config->explain == 0)
        return;
    g_hash_table_iter_init(&iter, sim->runs);
    while (g_hash_table_iter_next(&iter, NULL, &run))
        sim_explain_waiting(sim, run);
}

static gboolean stuck(const Sim *sim, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL,
                "policy %s: %u jobs have not ended, and nothing is going to happen; this is a "
                "defect",
                sim_policy_name(sim->config->policy), g_hash_table_size(sim->runs));
    return FALSE;
}

static gboolean interrupt(const Sim *sim, GError **error)
{
    if (!sim_is_interrupted(sim->config))
        return FALSE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_CANCELLED,
                "interrupted on day %.1f of policy %s, when %" G_GUINT64_FORMAT
                " of %" G_GUINT64_FORMAT " jobs had ended",
                (double)sim->now_usec / 86400e6, sim_policy_name(sim->config->policy),
                sim->metrics->jobs + sim->metrics->refused,
                sim_workload_survey(sim->workload)->n_jobs);
    return TRUE;
}

static gboolean step(Sim *sim, GError **error)
{
    SimTimer *timer = sim_timer_first(sim);
    if (timer == NULL)
        return stuck(sim, error);
    go_to(sim, timer->due_usec);
    sim_timer_clear(sim, timer);
    if (!happen(sim, timer, error))
        return FALSE;
    settle_pass(sim);
    explain_waiting(sim);
    if (sim->config->check) {
        sim_world_check(sim);
        berth_core_assert_invariants(sim->core);
    }
    return TRUE;
}

static void tell_progress(const Sim *sim)
{
    const SimHooks *hooks = &sim->config->hooks;
    if (hooks->progress != NULL)
        hooks->progress(sim->n_arrived, sim->metrics->jobs + sim->metrics->refused, sim->now_usec,
                        hooks->user_data);
}

static gboolean is_hopeless(const Sim *sim)
{
    gint64 most = STUCK_USEC + STUCK_RUNS * sim->run_max_usec;
    guint64 failures = sim->metrics->node_failures - sim->moved_failures;
    return (!core_heap_has(&sim->arrival.link) && sim->now_usec - sim->moved_usec > most) ||
           (g_hash_table_size(sim->runs) > 0 &&
            failures > (guint64)STUCK_FAILURES * sim->machine.nodes);
}

/* Nodes that fail again and again may keep a long job from its end for ever, and starts that fail a gang. */
static gboolean goes_round(const Sim *sim, GError **error)
{
    const SimFailures *failures = &sim->config->failures;
    if (!is_hopeless(sim))
        return FALSE;
    if (failures->mtbf_usec == 0 && failures->action_permille == 0)
        return !stuck(sim, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "policy %s: none of %u jobs has ended for %.0f days; with such %s",
                sim_policy_name(sim->config->policy), g_hash_table_size(sim->runs),
                (double)(sim->now_usec - sim->moved_usec) / 86400e6,
                failures->mtbf_usec > 0 ? "an --mtbf their nodes fail before they are done"
                                        : "--fail-actions they never come to their end");
    return TRUE;
}

/* Some job has arrived or ended. */
static void note_moves(Sim *sim)
{
    guint64 moved = sim->metrics->jobs + sim->n_arrived;
    if (moved == sim->n_moved)
        return;
    sim->n_moved = moved;
    sim->moved_usec = sim->now_usec;
    sim->moved_failures = sim->metrics->node_failures;
}

static gboolean loop(Sim *sim, GError **error)
{
    sim->moved_usec = sim->now_usec;
    for (guint64 n = 0; g_hash_table_size(sim->runs) > 0 || core_heap_has(&sim->arrival.link);
         n++) {
        if (interrupt(sim, error) || !step(sim, error))
            return FALSE;
        if (n % PROGRESS_STEPS == 0)
            tell_progress(sim);
        note_moves(sim);
        if (goes_round(sim, error))
            return FALSE;
    }
    if (sim->now_usec < sim->metrics->trace_end_usec || sim->metrics->trace_end_usec == 0)
        go_to(sim, sim->metrics->trace_end_usec);
    settle_runs(sim);
    sim->metrics->useful_cpu_s = cpu_s(sim->useful_cpu);
    sim->metrics->useful_mib_s = (double)sim->useful_mem / (double)G_USEC_PER_SEC;
    sim->metrics->lost_cpu_s = cpu_s(sim->lost_cpu);
    return TRUE;
}

/* --- life --------------------------------------------------------------------------------------- */

static void init(Sim *sim, const SimConfig *config)
{
    gboolean has_guests =
        config->policy == SIM_POLICY_RESERVED || config->policy == SIM_POLICY_BERTH;
    sim->config = config;
    sim->machine = *sim_workload_machine(sim->workload);
    sim->overhead_mib = has_guests ? config->overhead_mib : 0;
    sim->costs = config->costs;
    if (!has_guests)
        sim_costs_of_processes(&sim->costs);
    sim->runs = g_hash_table_new(g_int64_hash, g_int64_equal);
    core_heap_init(&sim->timers, sim_timer_compare);
    sim->metrics->capacity_vcpus = (double)sim_machine_all_vcpus(&sim->machine);
    sim->metrics->capacity_mib = (double)sim_machine_all_mib(&sim->machine);
    sim->metrics->trace_end_usec = sim_workload_survey(sim->workload)->end_usec;
    sim_world_init(sim);
}

static void free_run(gpointer key, gpointer value, gpointer user_data)
{
    SimRun *run = value;
    for (guint32 i = 0; i < run->job.guests; i++) {
        g_free(run->guests[i].order);
        g_free(run->guests[i].stop);
    }
    sim_run_free(run);
}

/* Orders that belong to no guest: RELEASE and FENCE. */
static void free_orders(Sim *sim)
{
    SimTimer *timer;
    while ((timer = sim_timer_first(sim)) != NULL) {
        sim_timer_clear(sim, timer);
        if (timer->kind != SIM_TIMER_ORDER)
            continue;
        SimOrder *order = CORE_CONTAINER_OF(timer, SimOrder, timer);
        if (order->action.kind == BERTH_ACTION_RELEASE || order->action.kind == BERTH_ACTION_FENCE)
            g_free(order);
    }
}

static void clear(Sim *sim)
{
    free_orders(sim);
    g_hash_table_foreach(sim->runs, free_run, NULL);
    g_hash_table_unref(sim->runs);
    core_heap_clear(&sim->timers);
    sim_world_clear(sim);
    g_clear_pointer(&sim->effects, berth_core_effects_free);
    g_clear_pointer(&sim->core, berth_core_free);
    g_string_free(sim->journal, TRUE);
}

gboolean sim_run(const SimConfig *config, SimWorkload *workload, const SimUsageModel *usage,
                 SimMetrics *out_metrics, GError **error)
{
    Sim sim = {.workload = workload, .usage = usage, .metrics = out_metrics};
    g_return_val_if_fail(config->policy != SIM_POLICY_BOUND, FALSE);
    sim_metrics_init(out_metrics);
    init(&sim, config);
    sim_core_begin(&sim);
    sim_failures_begin(&sim);
    gboolean ok =
        sim_workload_rewind(workload, error) && expect_arrival(&sim, error) && loop(&sim, error);
    tell_progress(&sim);
    clear(&sim);
    if (!ok)
        sim_metrics_clear(out_metrics);
    return ok;
}
