/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the progress of jobs: how far each is, what it wants there, and the work that it has done.
 *
 * A job goes at the rate of its slowest guest: the ranks of a parallel program wait for each other.
 * Progress is in microseconds of its own run time. Work counts only as long as it is not lost: a
 * start from the beginning loses all, one from a checkpoint what came after it, and a job that does
 * not complete everything. */
#include "config.h"

#include "scheduler/sim/state.h"

#define PPM 1000000

/* --- life --------------------------------------------------------------------------------------- */

SimRun *sim_run_new(Sim *sim, const SimJob *job)
{
    SimRun *run = g_new0(SimRun, 1);
    run->job = *job;
    run->since_usec = sim->now_usec;
    run->guests = g_new0(SimGuest, job->guests);
    run->n_stalled = job->guests;
    for (guint32 i = 0; i < job->guests; i++) {
        run->guests[i].run = run;
        run->guests[i].index = i;
        run->guests[i].size = (BerthResources){job->vcpus, job->memory_mib, 0};
    }
    sim_usage_init(sim->usage, job, &run->usage);
    run->demand = sim_usage_at(&run->usage, 0, &run->until_usec);
    g_hash_table_insert(sim->runs, &run->job.id, run);
    sim->totals.waiting++;
    return run;
}

void sim_run_free(SimRun *run)
{
    g_free(run->guests);
    g_free(run);
}

SimRun *sim_run_find(Sim *sim, guint64 job)
{
    return g_hash_table_lookup(sim->runs, &job);
}

SimGuest *sim_run_find_guest(Sim *sim, const BerthGuestId *id)
{
    SimRun *run = sim_run_find(sim, id->job);
    if (run == NULL || id->guest >= run->job.guests)
        return NULL;
    SimGuest *guest = &run->guests[id->guest];
    return guest->epoch == id->epoch && guest->node != 0 ? guest : NULL;
}

BerthGuestId sim_guest_id(const SimGuest *guest)
{
    return (BerthGuestId){guest->run->job.id, 0, guest->index, guest->epoch};
}

/* --- progress ----------------------------------------------------------------------------------- */

void sim_run_advance(Sim *sim, SimRun *run)
{
    gint64 length = sim->now_usec - run->since_usec;
    run->since_usec = sim->now_usec;
    if (length == 0 || run->rate_ppm == 0)
        return;
    gint64 done = (gint64)((SimSum)length * run->rate_ppm / PPM);
    done = MIN(done, run->job.run_usec - run->progress_usec);
    SimSum cpu = (SimSum)done * run->demand.cpu_milli * run->job.guests;
    SimSum mem = (SimSum)done * run->demand.memory_mib * run->job.guests;
    run->progress_usec += done;
    run->work_cpu += cpu;
    run->work_mem += mem;
    sim->useful_cpu += cpu;
    sim->useful_mem += mem;
}

static void arm(Sim *sim, SimRun *run)
{
    gint64 next = MIN(run->until_usec, run->job.run_usec);
    if (run->rate_ppm == 0 || run->is_done) {
        sim_timer_clear(sim, &run->timer);
        return;
    }
    SimSum left = (SimSum)(next - run->progress_usec) * PPM;
    gint64 length = (gint64)((left + run->rate_ppm - 1) / run->rate_ppm);
    sim_timer_set(sim, &run->timer, SIM_TIMER_RUN, sim->now_usec + length);
}

static guint32 slowest(const SimRun *run)
{
    guint32 rate = PPM;
    if (run->n_stalled > 0)
        return 0;
    for (guint32 i = 0; i < run->job.guests; i++)
        rate = MIN(rate, run->guests[i].rate_ppm);
    return rate;
}

void sim_run_set_rate(Sim *sim, SimGuest *guest, guint32 rate_ppm)
{
    SimRun *run = guest->run;
    if (guest->rate_ppm == rate_ppm)
        return;
    sim_reports_count(sim, guest);
    run->n_stalled += (guint)(rate_ppm == 0) - (guint)(guest->rate_ppm == 0);
    guest->rate_ppm = rate_ppm;
    guint32 rate = slowest(run);
    if (rate == run->rate_ppm)
        return;
    sim_run_advance(sim, run);
    run->rate_ppm = rate;
    arm(sim, run);
}

/* All its guests have ended by themselves; the core is told of one after the other. */
static void finish(Sim *sim, SimRun *run)
{
    run->is_done = TRUE;
    run->end_usec = sim->now_usec;
    sim_timer_clear(sim, &run->timer);
    for (guint32 i = 0; i < run->job.guests; i++) {
        sim_orders_cancel(sim, &run->guests[i]);
        run->guests[i].phase = SIM_GUEST_STOPPED;
        sim_world_update(sim, &run->guests[i]);
    }
    for (guint32 i = 0; i < run->job.guests; i++) {
        run->guests[i].is_told = TRUE;
        sim_send_guest(sim, BERTH_EVENT_GUEST_EXITED, &run->guests[i]);
    }
}

static void take_demand(Sim *sim, SimRun *run)
{
    SimDemand before = run->demand;
    run->demand = sim_usage_at(&run->usage, run->progress_usec, &run->until_usec);
    if (run->demand.cpu_milli == before.cpu_milli && run->demand.memory_mib == before.memory_mib)
        return;
    for (guint32 i = 0; i < run->job.guests; i++)
        sim_world_update(sim, &run->guests[i]);
}

/* Who was killed is another job to the core, behind all that came before; to its user, it is the same. */
static void submit_again(Sim *sim, SimRun *run)
{
    g_hash_table_steal(sim->runs, &run->job.id);
    run->job.id = sim_workload_survey(sim->workload)->n_jobs + ++sim->n_again;
    g_hash_table_insert(sim->runs, &run->job.id, run);
    for (guint32 i = 0; i < run->job.guests; i++)
        run->guests[i].size = (BerthResources){run->job.vcpus, run->job.memory_mib, 0};
    sim_core_submit(sim, run);
}

static void ask_for_more(Sim *sim, SimRun *run)
{
    run->awaits_user = FALSE;
    run->job.limit_usec = run->job.limit_again_usec;
    run->job.limit_again_usec = 0;
    sim_explain(sim, &run->job, "%s with a limit of %.0f s",
                run->is_kept ? "extended" : "submitted again",
                (double)run->job.limit_usec / (double)G_USEC_PER_SEC);
    if (run->is_kept)
        sim_core_extend(sim, run);
    else
        submit_again(sim, run);
}

void sim_run_due(Sim *sim, SimRun *run)
{
    if (run->awaits_user) {
        ask_for_more(sim, run);
        return;
    }
    sim_run_advance(sim, run);
    if (run->progress_usec >= run->job.run_usec) {
        finish(sim, run);
        return;
    }
    take_demand(sim, run);
    arm(sim, run);
}

/* --- what is saved, and what is lost ------------------------------------------------------------ */

void sim_run_save(Sim *sim, SimRun *run)
{
    sim_run_advance(sim, run);
    run->saved_progress_usec = run->progress_usec;
    run->saved_cpu = run->work_cpu;
    run->saved_mem = run->work_mem;
    run->saved_cache_mib = run->guests[0].cache_mib;
}

static void lose(Sim *sim, SimRun *run, SimSum cpu_left, SimSum mem_left)
{
    sim->useful_cpu -= run->work_cpu - cpu_left;
    sim->useful_mem -= run->work_mem - mem_left;
    sim->lost_cpu += run->work_cpu - cpu_left;
    run->work_cpu = cpu_left;
    run->work_mem = mem_left;
}

void sim_run_rewind(Sim *sim, SimRun *run, gboolean to_saved)
{
    sim_run_advance(sim, run);
    run->is_done = FALSE; /* it was, if it was sent away while its end was on the way */
    if (!to_saved) {
        run->saved_progress_usec = 0;
        run->saved_cpu = run->saved_mem = 0;
    }
    if (run->progress_usec == run->saved_progress_usec)
        return;
    lose(sim, run, run->saved_cpu, run->saved_mem);
    run->progress_usec = run->saved_progress_usec;
    take_demand(sim, run);
}

void sim_run_at_limit(Sim *sim, SimRun *run, gboolean kept)
{
    g_assert(run->n_placed == 0 && !run->awaits_user);
    run->awaits_user = TRUE;
    run->is_kept = kept;
    run->end_usec = 0;
    sim->metrics->limit_extensions += kept;
    sim->metrics->limit_kills += !kept;
    sim->metrics->kills += !kept;
    if (!kept)
        sim_run_rewind(sim, run, FALSE);
    sim_timer_set(sim, &run->timer, SIM_TIMER_RUN, sim->now_usec + sim->config->react_usec);
}

static void tell_job(const Sim *sim, const SimJob *job, const SimOutcome *outcome)
{
    const SimHooks *hooks = &sim->config->hooks;
    if (hooks->job != NULL)
        hooks->job(job, outcome, hooks->user_data);
}

void sim_run_refused(Sim *sim, const SimJob *job)
{
    SimOutcome outcome = {.is_refused = TRUE};
    sim->metrics->refused++;
    tell_job(sim, job, &outcome);
}

void sim_run_over(Sim *sim, SimRun *run, gboolean completed, gboolean killed)
{
    sim_run_advance(sim, run);
    if (!completed)
        lose(sim, run, 0, 0);
    SimOutcome outcome = {.start_usec = run->has_started ? run->start_usec : run->end_usec,
                          .end_usec = run->end_usec,
                          .is_completed = completed,
                          .is_killed = killed,
                          .n_moves = run->n_moves,
                          .n_checkpoints = run->n_checkpoints};
    sim_explain_sum(sim, run, &outcome);
    sim_metrics_add_job(sim->metrics, &run->job, &outcome);
    tell_job(sim, &run->job, &outcome);
    sim_timer_clear(sim, &run->timer);
    g_assert(run->n_placed == 0);
    sim->totals.waiting--;
    g_hash_table_remove(sim->runs, &run->job.id);
    sim_run_free(run);
}
