/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way to the core and back: its configuration for each policy, events to it, actions and
 * changes from it. Nothing is decided here, and nothing takes time here. */
#include "config.h"

#include "scheduler/core/journal.h"
#include "scheduler/sim/state.h"

#define NODE_TIMEOUT_USEC  (120 * (gint64)G_USEC_PER_SEC)
#define START_BACKOFF_USEC (5 * (gint64)G_USEC_PER_SEC)
#define STOP_GRACE_USEC    (3 * (gint64)G_USEC_PER_SEC)
/* Beyond its time limit, for a job in a guest: a boot or a slow moment is not its fault. */
#define GRACE_USEC   (60 * (gint64)G_USEC_PER_SEC)
#define REQUEUES_MAX 1000 /* failures are the world's doing: no job is given up for them */

static BerthCorePolicy backfill_of(SimPolicy policy)
{
    switch (policy) {
    case SIM_POLICY_FCFS:
        return BERTH_POLICY_FCFS;
    case SIM_POLICY_EASY:
        return BERTH_POLICY_EASY;
    default:
        return BERTH_POLICY_CONSERVATIVE;
    }
}

static void take_tunings(const SimConfig *config, gint64 out_tunings[BERTH_TUNING_N])
{
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        out_tunings[i] = config->tunings != NULL ? config->tunings[i]
                                                 : berth_core_tuning((BerthCoreTuning)i)->value;
    gint64 *depth = &out_tunings[BERTH_TUNING_PLAN_DEPTH];
    if (config->policy == SIM_POLICY_CONSERVATIVE)
        *depth = MAX(*depth, SIM_CONSERVATIVE_DEPTH);
}

static gboolean has_journal(const Sim *sim)
{
    return sim->config->hooks.journal != NULL;
}

/* What was written so far goes out. */
static void tell_journal(Sim *sim)
{
    if (!has_journal(sim))
        return;
    for (guint i = 0; i < sim->effects->actions->len; i++)
        berth_journal_action(sim->journal,
                             &g_array_index(sim->effects->actions, BerthCoreAction, i));
    sim->config->hooks.journal(sim->journal->str, sim->config->hooks.user_data);
    g_string_truncate(sim->journal, 0);
}

static void send_joined_all(Sim *sim)
{
    for (guint32 i = 0; i < sim->machine.nodes; i++) {
        char name[24];
        g_snprintf(name, sizeof name, "node%u", i + 1);
        guint32 handle = berth_core_add_node(sim->core, name);
        g_assert_cmpuint(handle, ==, i + 1);
        berth_journal_node(sim->journal, handle, name);
    }
    berth_core_resume(sim->core, sim->now_usec, sim->effects);
    berth_journal_resume(sim->journal, sim->now_usec);
    tell_journal(sim);
    berth_core_effects_clear(sim->effects);
    for (guint32 i = 0; i < sim->machine.nodes; i++)
        sim_send_joined(sim, &sim->nodes[i]);
}

void sim_core_begin(Sim *sim)
{
    const SimConfig *config = sim->config;
    guint32 features =
        config->policy == SIM_POLICY_BERTH ? BERTH_FEATURE_ALL & ~config->features_off : 0;
    gint64 tunings[BERTH_TUNING_N];
    take_tunings(config, tunings);
    BerthCoreConfig core = {.node_timeout_usec = NODE_TIMEOUT_USEC,
                            .stop_grace_usec = STOP_GRACE_USEC,
                            .guest_overhead_mib = sim->overhead_mib,
                            .requeues_max = REQUEUES_MAX,
                            .start_retries_max = REQUEUES_MAX,
                            .start_backoff_usec = START_BACKOFF_USEC,
                            .can_fence = TRUE,
                            .policy = backfill_of(config->policy),
                            .features = features,
                            .tunings = tunings};
    sim->wants_reports = features != 0;
    sim->core = berth_core_new(&core);
    sim->effects = berth_core_effects_new();
    sim->journal = g_string_new(NULL);
    berth_journal_config(sim->journal, &core);
    send_joined_all(sim);
}

/* --- from the core ------------------------------------------------------------------------------ */

/* TRUE: TASK has come to a limit that was too short, and nothing of it is left on a node. */
static gboolean take_limit(Sim *sim, SimRun *run, const BerthCoreTask *task)
{
    gboolean is_kept =
        task->state == BERTH_JOB_SUSPENDED && task->reason == BERTH_REASON_TIME_LIMIT;
    if (run->job.limit_again_usec == 0 || (!is_kept && task->state != BERTH_JOB_TIMEOUT))
        return FALSE;
    sim_explain(sim, &run->job, "%s: its time limit has come",
                is_kept ? "stands still as a checkpoint" : "killed");
    sim_run_at_limit(sim, run, is_kept);
    return TRUE;
}

static void note_change(Sim *sim, const BerthGuestId *id)
{
    BerthCoreTask task;
    SimRun *run = sim_run_find(sim, id->job);
    if (run == NULL || !berth_core_get_task(sim->core, id->job, id->task, &task))
        return;
    if (task.phase != BERTH_GUEST_NONE || run->awaits_user || take_limit(sim, run, &task) ||
        !berth_job_state_is_final(task.state))
        return;
    gboolean completed = task.state == BERTH_JOB_COMPLETED;
    gboolean killed = task.state == BERTH_JOB_TIMEOUT || task.state == BERTH_JOB_OUT_OF_MEMORY ||
                      task.reason == BERTH_REASON_SIGNAL;
    g_assert(!completed || run->is_done);
    if (run->end_usec == 0)
        run->end_usec = sim->now_usec;
    g_autofree char *ending = sim_explain_ending(&task);
    sim_explain(sim, &run->job, "%s", ending);
    sim_run_over(sim, run, completed, killed);
}

static void take_effects(Sim *sim)
{
    for (guint i = 0; i < sim->effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(sim->effects->actions, BerthCoreAction, i);
        sim_explain_action(sim, action);
        sim_orders_take(sim, action);
    }
    for (guint i = 0; i < sim->effects->changed->len; i++)
        note_change(sim, &g_array_index(sim->effects->changed, BerthGuestId, i));
    gint64 due = berth_core_next_timer_usec(sim->core);
    if (due == G_MAXINT64)
        sim_timer_clear(sim, &sim->core_timer);
    else
        sim_timer_set(sim, &sim->core_timer, SIM_TIMER_CORE, MAX(due, sim->now_usec));
}

/* --- to the core -------------------------------------------------------------------------------- */

/* While anything else is due at this instant, the core waits with placing: it sees all of what
 * became free and of what came, as a batch scheduler's pass does. */
static gboolean send(Sim *sim, const BerthCoreEvent *event, GError **error)
{
    BerthCoreEvent one = *event;
    const SimTimer *next = sim_timer_first(sim);
    one.more = next != NULL && next->due_usec <= sim->now_usec;
    sim->owes_pass = one.more;
    berth_core_effects_clear(sim->effects);
    sim->metrics->steps++;
    gboolean ok = berth_core_handle(sim->core, sim->now_usec, &one, sim->effects, error);
    if (has_journal(sim))
        berth_journal_event(sim->journal, sim->now_usec, &one);
    tell_journal(sim);
    take_effects(sim);
    return ok;
}

void sim_send(Sim *sim, const BerthCoreEvent *event)
{
    gboolean ok = send(sim, event, NULL);
    g_assert(ok);
}

void sim_send_guest(Sim *sim, BerthEventKind kind, const SimGuest *guest)
{
    BerthCoreEvent event = {.kind = kind, .guest = sim_guest_id(guest), .node = guest->node};
    if (kind == BERTH_EVENT_GUEST_EXITED) {
        event.exited.start_usec = guest->run->start_usec;
        event.exited.end_usec = sim->now_usec;
        event.exited.exit.signal = guest->run->is_done ? 0 : 15;
    }
    sim_send(sim, &event);
}

static BerthFoundPhase phase_of(const SimGuest *guest)
{
    if (guest->phase == SIM_GUEST_BOOTING)
        return BERTH_FOUND_STARTING;
    /* One that was checkpointed stands still, and has not ended. */
    return guest->phase == SIM_GUEST_STOPPED && !guest->is_checkpointed ? BERTH_FOUND_EXITED
                                                                        : BERTH_FOUND_RUNNING;
}

void sim_send_joined(Sim *sim, const SimNode *node)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node->handle};
    g_autofree BerthFoundGuest *found = g_new0(BerthFoundGuest, node->guests->len + 1);
    for (guint i = 0; i < node->guests->len; i++) {
        const SimGuest *guest = g_ptr_array_index(node->guests, i);
        found[i] = (BerthFoundGuest){.id = sim_guest_id(guest),
                                     .phase = phase_of(guest),
                                     .start_usec = guest->run->start_usec,
                                     .end_usec = guest->run->end_usec,
                                     .exit.signal = guest->run->is_done ? 0 : 15};
    }
    event.joined.info.capacity = (BerthResources){sim_machine_vcpus(&sim->machine, node->handle),
                                                  sim_machine_mib(&sim->machine, node->handle), 0};
    event.joined.guests = found;
    event.joined.n_guests = node->guests->len;
    sim_send(sim, &event);
}

static gboolean is_in_guests(const Sim *sim)
{
    return sim->config->policy == SIM_POLICY_BERTH || sim->config->policy == SIM_POLICY_RESERVED;
}

/* One that is too short is so everywhere. */
static gint64 limit_of(const Sim *sim, const SimJob *job)
{
    return job->limit_usec + (is_in_guests(sim) && job->limit_again_usec == 0 ? GRACE_USEC : 0);
}

void sim_core_extend(Sim *sim, const SimRun *run)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_TIME_LIMIT_SET, .guest.job = run->job.id};
    event.request.time_limit_usec = limit_of(sim, &run->job);
    sim_send(sim, &event);
}

void sim_core_submit(Sim *sim, SimRun *run)
{
    const SimJob *job = &run->job;
    gboolean moves = sim->config->policy == SIM_POLICY_BERTH;
    gboolean saves = moves && sim_workload_short_permille(sim->workload) > 0;
    g_autoptr(GError) error = NULL;
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED, .guest.job = job->id};
    event.submitted =
        (BerthCoreJob){.id = job->id,
                       .uid = job->user,
                       .resources = {job->vcpus, job->memory_mib, 0},
                       .time_limit_usec = limit_of(sim, job),
                       .submit_usec = sim->now_usec,
                       .guests = job->guests,
                       .family = job->name,
                       .on_timeout = saves ? BERTH_ON_TIMEOUT_CHECKPOINT : BERTH_ON_TIMEOUT_KILL,
                       .may_move = moves,
                       .may_checkpoint = moves,
                       .opportunistic = moves};
    if (send(sim, &event, &error))
        return;
    sim_explain(sim, job, "refused: %s", error->message);
    sim_run_refused(sim, job);
    sim->totals.waiting--;
    g_hash_table_remove(sim->runs, &job->id);
    sim_run_free(run);
}
