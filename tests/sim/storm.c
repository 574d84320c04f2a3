/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/storm.h"

#define SECOND_USEC ((gint64)G_USEC_PER_SEC)
/* An instant of 0 means "not yet" to the core. */
#define BEGIN_USEC (1000000 * SECOND_USEC)

/* One job and the guest that it has. */
typedef struct {
    BerthCoreJob job;
    gint64 run_usec, done_usec, saved_usec;
    gint64 began_usec; /* its command, for the first time; 0 = it has not */
    guint32 epoch;
    guint32 node; /* 0 = has none */
    guint32 to;   /* MIGRATE is under way; 0 = no */
    gboolean runs, is_opportunistic, is_opportunistic_there, is_moving, is_urgent;
    StormDemand saved; /* being checkpointed: what it used then */
    gboolean is_over;
    gint64 waits_since_usec; /* for room; 0 = it does not */
    guint32 waits_epoch, waits_serial;
    GArray *moves; /* gint64: when each began */
    guint32 left;  /* the node that it came from */
    gint64 left_usec;
} Job;

typedef struct {
    gint64 due_usec;
    guint64 order;
    guint32 node; /* whose session carries it; 0 = none */
    BerthCoreEvent event;
} Answer;

typedef struct {
    gboolean is_up;
    gint64 short_since_usec; /* 0 = it is not */
} Host;

struct Storm {
    StormConfig config;
    BerthCore *core;
    BerthCoreEffects *effects;
    GArray *jobs;    /* Job, id - 1 */
    GArray *answers; /* Answer */
    Host *hosts;     /* handle - 1 */
    gint64 now_usec, report_usec;
    guint64 n_answers;
    StormResult result;
};

#define CHECK(storm, condition, number)                                                            \
    G_STMT_START                                                                                   \
    {                                                                                              \
        if (!(condition))                                                                          \
            g_error("seed %u, second %d: job or node %u: not (%s)", (storm)->config.seed,          \
                    (int)(((storm)->now_usec - BEGIN_USEC) / SECOND_USEC), (guint)(number),        \
                    #condition);                                                                   \
    }                                                                                              \
    G_STMT_END

static Job *job_of(const Storm *storm, guint64 id)
{
    return &g_array_index(storm->jobs, Job, id - 1);
}

static StormDemand demand_of(const Storm *storm, const Job *job)
{
    if (!job->runs)
        return job->saved;
    return storm->config.demand(storm->config.seed, &job->job, storm->now_usec - BEGIN_USEC);
}

/* --- what is checked ------------------------------------------------------------------------ */

static guint under_way_at(const Storm *storm, guint32 node)
{
    guint count = 0;
    for (guint i = 0; i < storm->jobs->len; i++) {
        const Job *job = &g_array_index(storm->jobs, Job, i);
        count += job->is_moving && (job->node == node || job->to == node);
    }
    return count;
}

/* What backed guests wait for is not held up by what goes on elsewhere in the cluster. */
static void check_caps(Storm *storm)
{
    const gint64 *tunings = storm->config.tunings;
    gint64 of_node = tunings[BERTH_TUNING_MOVES_PER_NODE];
    gint64 of_cluster =
        storm->config.n_nodes * tunings[BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] / 1000;
    guint all = 0, not_urgent = 0;
    for (guint i = 0; i < storm->jobs->len; i++) {
        const Job *job = &g_array_index(storm->jobs, Job, i);
        all += job->is_moving;
        not_urgent += job->is_moving && !job->is_urgent;
    }
    for (guint32 node = 1; node <= storm->config.n_nodes; node++)
        CHECK(storm, under_way_at(storm, node) <= of_node, node);
    CHECK(storm, not_urgent <= MAX(of_cluster, of_node), all);
    storm->result.most_under_way = MAX(storm->result.most_under_way, all);
}

static void check_shortage(Storm *storm, guint32 node)
{
    Host *host = &storm->hosts[node - 1];
    guint64 wanted_mib = 0;
    gboolean any_backed = FALSE;
    for (guint i = 0; i < storm->jobs->len; i++) {
        const Job *job = &g_array_index(storm->jobs, Job, i);
        if (job->node != node && job->to != node)
            continue;
        wanted_mib += demand_of(storm, job).memory_mib;
        any_backed |= !job->is_opportunistic;
    }
    gboolean is_short = any_backed && wanted_mib > storm->config.node.memory_mib;
    if (!is_short)
        host->short_since_usec = 0;
    else if (host->short_since_usec == 0)
        host->short_since_usec = storm->now_usec;
    if (is_short)
        storm->result.longest_shortage_usec =
            MAX(storm->result.longest_shortage_usec, storm->now_usec - host->short_since_usec);
}

/* Another start, or another move, waits anew. */
static void check_wait(Storm *storm, Job *job)
{
    BerthCoreGuest guest;
    if (!berth_core_get_guest(storm->core, job->job.id, 0, 0, &guest) || !guest.waits_for_room) {
        job->waits_since_usec = 0;
        return;
    }
    if (job->waits_since_usec == 0 || job->waits_epoch != guest.id.epoch ||
        job->waits_serial != guest.op_serial) {
        job->waits_since_usec = storm->now_usec;
        job->waits_epoch = guest.id.epoch;
        job->waits_serial = guest.op_serial;
        storm->result.waits++;
    }
    gint64 waited_usec = storm->now_usec - job->waits_since_usec;
    CHECK(storm, waited_usec <= storm->config.tunings[BERTH_TUNING_EVACUATION_MAX_USEC],
          job->job.id);
    storm->result.longest_wait_usec = MAX(storm->result.longest_wait_usec, waited_usec);
}

static void check(Storm *storm)
{
    berth_core_assert_invariants(storm->core);
    check_caps(storm);
    for (guint32 node = 1; node <= storm->config.n_nodes; node++)
        check_shortage(storm, node);
    for (guint i = 0; i < storm->jobs->len; i++)
        check_wait(storm, &g_array_index(storm->jobs, Job, i));
}

static void note_move(Storm *storm, Job *job, guint32 to)
{
    guint in_hour = 1;
    for (guint i = 0; i < job->moves->len; i++)
        in_hour += g_array_index(job->moves, gint64, i) > storm->now_usec - STORM_HOUR_USEC;
    g_array_append_val(job->moves, storm->now_usec);
    storm->result.most_in_an_hour = MAX(storm->result.most_in_an_hour, in_hour);
    storm->result.returns +=
        to != 0 && to == job->left && job->left_usec > storm->now_usec - STORM_HOUR_USEC;
    job->left = job->node;
    job->left_usec = storm->now_usec;
}

/* --- actions -------------------------------------------------------------------------------- */

/* No answer from a guest that has ended, but that it is released. */
static void drop_answers_of(Storm *storm, const Job *job)
{
    for (guint i = storm->answers->len; i > 0; i--) {
        const Answer *answer = &g_array_index(storm->answers, Answer, i - 1);
        if (answer->event.guest.job == job->job.id &&
            answer->event.kind != BERTH_EVENT_GUEST_RELEASED)
            g_array_remove_index(storm->answers, i - 1);
    }
}

static void answer(Storm *storm, gint64 after_usec, guint32 node, BerthEventKind kind,
                   const BerthCoreAction *action)
{
    Answer answer = {storm->now_usec + after_usec, storm->n_answers++, node, {.kind = kind}};
    answer.event.guest = action->guest;
    answer.event.node = node;
    if (kind == BERTH_EVENT_GUEST_RUNNING)
        answer.event.running.start_usec = answer.due_usec;
    if (kind >= BERTH_EVENT_GUEST_MIGRATED && kind <= BERTH_EVENT_GUEST_RESIZED) {
        answer.event.result.ok = TRUE;
        answer.event.result.serial = action->serial;
    }
    g_array_append_val(storm->answers, answer);
}

static gint64 copy_usec(const Storm *storm, guint64 mib, BerthCoreTuning fixed,
                        BerthCoreTuning per_sec)
{
    return storm->config.tunings[fixed] +
           (gint64)mib * SECOND_USEC / storm->config.tunings[per_sec];
}

static void begin_guest(Storm *storm, Job *job, const BerthCoreAction *action)
{
    gint64 restore_usec = 0;
    if (action->kind == BERTH_ACTION_RESTORE)
        restore_usec = copy_usec(storm, job->saved.memory_mib, BERTH_TUNING_CHECKPOINT_FIXED_USEC,
                                 BERTH_TUNING_CHECKPOINT_MIB_PER_SEC);
    job->done_usec = action->kind == BERTH_ACTION_RESTORE ? job->saved_usec : 0;
    job->epoch = action->guest.epoch;
    job->node = action->node;
    job->is_opportunistic = action->is_opportunistic;
    job->saved = (StormDemand){0, 0};
    storm->result.starts_in_slack += action->is_opportunistic;
    answer(storm, SECOND_USEC, action->node, BERTH_EVENT_START_TAKEN, action);
    answer(storm, restore_usec + 2 * SECOND_USEC, action->node, BERTH_EVENT_GUEST_RUNNING, action);
}

static gboolean lacks_memory(const Storm *storm, guint32 node)
{
    BerthCoreNode now;
    return berth_core_get_node(storm->core, node, &now) &&
           now.predicted_mib > now.capacity.memory_mib;
}

static void begin_move(Storm *storm, Job *job, const BerthCoreAction *action)
{
    gboolean is_live = action->kind == BERTH_ACTION_MIGRATE;
    StormDemand now = demand_of(storm, job);
    note_move(storm, job, action->to);
    job->is_moving = TRUE;
    job->is_urgent = action->reason == BERTH_REASON_ROOM_NEEDED || lacks_memory(storm, job->node);
    job->to = action->to;
    job->is_opportunistic_there = action->is_opportunistic;
    if (is_live) {
        storm->result.migrations++;
        answer(storm,
               copy_usec(storm, now.memory_mib, BERTH_TUNING_MIGRATE_FIXED_USEC,
                         BERTH_TUNING_MIGRATE_MIB_PER_SEC),
               action->node, BERTH_EVENT_GUEST_MIGRATED, action);
        return;
    }
    storm->result.checkpoints++;
    job->saved = now;
    job->runs = FALSE;
    answer(storm,
           copy_usec(storm, now.memory_mib, BERTH_TUNING_CHECKPOINT_FIXED_USEC,
                     BERTH_TUNING_CHECKPOINT_MIB_PER_SEC),
           action->node, BERTH_EVENT_GUEST_CHECKPOINTED, action);
}

static void take(Storm *storm, const BerthCoreAction *action)
{
    Job *job = job_of(storm, action->guest.job);
    switch (action->kind) {
    case BERTH_ACTION_START:
    case BERTH_ACTION_RESTORE:
        CHECK(storm, job->node == 0, action->guest.job);
        begin_guest(storm, job, action);
        break;
    case BERTH_ACTION_MIGRATE:
    case BERTH_ACTION_CHECKPOINT:
        CHECK(storm, job->runs && !job->is_moving, action->guest.job);
        begin_move(storm, job, action);
        break;
    case BERTH_ACTION_RELEASE:
        if (action->guest.epoch == job->epoch)
            drop_answers_of(storm, job);
        answer(storm, SECOND_USEC, action->node, BERTH_EVENT_GUEST_RELEASED, action);
        break;
    case BERTH_ACTION_FENCE:
        answer(storm, SECOND_USEC, 0, BERTH_EVENT_GUEST_FENCED, action);
        break;
    case BERTH_ACTION_RESIZE:
        CHECK(storm, action->reason == BERTH_REASON_PROMOTION, action->guest.job);
        job->is_opportunistic = FALSE;
        answer(storm, SECOND_USEC, action->node, BERTH_EVENT_GUEST_RESIZED, action);
        break;
    default: /* nothing reaches a limit here */
        CHECK(storm, FALSE, action->guest.job);
    }
}

/* --- events --------------------------------------------------------------------------------- */

static void handle(Storm *storm, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    if (!berth_core_handle(storm->core, storm->now_usec, event, effects, &error))
        g_error("seed %u: %s", storm->config.seed, error->message);
    for (guint i = 0; i < effects->actions->len; i++)
        take(storm, &g_array_index(effects->actions, BerthCoreAction, i));
    for (guint i = 0; i < effects->changed->len; i++) {
        guint64 id = g_array_index(effects->changed, BerthGuestId, i).job;
        BerthCoreTask task;
        Job *job = job_of(storm, id);
        if (job->is_over || !berth_core_get_task(storm->core, id, 0, &task) ||
            !berth_job_state_is_final(task.state))
            continue;
        CHECK(storm, task.state == BERTH_JOB_COMPLETED, id);
        job->is_over = TRUE;
        storm->result.completed++;
        storm->result.last_end_usec = storm->now_usec - BEGIN_USEC;
    }
    check(storm);
}

static void end_move(Job *job)
{
    job->is_moving = job->is_urgent = FALSE;
    job->to = 0;
}

/* It was not saved. */
static void go_on(Job *job)
{
    job->runs = TRUE;
    job->saved = (StormDemand){0, 0};
}

/* What an answer means in the world, before the core hears of it. */
static void come_true(const Storm *storm, const BerthCoreEvent *event)
{
    Job *job = job_of(storm, event->guest.job);
    BerthCoreGuest guest;
    gboolean known = berth_core_get_guest(storm->core, event->guest.job, 0, 0, &guest);
    switch (event->kind) {
    case BERTH_EVENT_GUEST_RUNNING:
        job->runs = TRUE;
        if (job->began_usec == 0)
            job->began_usec = storm->now_usec;
        break;
    case BERTH_EVENT_GUEST_MIGRATED:
        if (event->result.ok) {
            job->node = job->to;
            job->is_opportunistic = job->is_opportunistic_there;
        }
        end_move(job);
        break;
    case BERTH_EVENT_GUEST_CHECKPOINTED:
        if (event->result.ok)
            job->saved_usec = job->done_usec;
        else
            go_on(job);
        end_move(job);
        break;
    case BERTH_EVENT_GUEST_RELEASED:
    case BERTH_EVENT_GUEST_FENCED:
        if (event->guest.epoch == job->epoch && (event->node == 0 || event->node == job->node)) {
            job->node = 0;
            job->runs = FALSE;
        }
        break;
    default:
        break;
    }
    CHECK(storm, known || event->kind == BERTH_EVENT_GUEST_RELEASED, event->guest.job);
}

/* 0 .. 999, of the N-th answer. */
static guint draw(const Storm *storm, guint64 n)
{
    guint64 z = (storm->config.seed + n * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) *
                G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    return (guint)((z ^ z >> 31) % 1000);
}

static void deliver(Storm *storm, guint at)
{
    Answer answer = g_array_index(storm->answers, Answer, at);
    g_array_remove_index(storm->answers, at);
    gboolean may_fail = answer.event.kind == BERTH_EVENT_GUEST_MIGRATED ||
                        answer.event.kind == BERTH_EVENT_GUEST_CHECKPOINTED;
    if (may_fail && draw(storm, answer.order) < storm->config.fails_permille)
        answer.event.result.ok = FALSE;
    come_true(storm, &answer.event);
    handle(storm, &answer.event);
}

static void end_job(Storm *storm, Job *job)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_EXITED,
                            .guest = {.job = job->job.id, .epoch = job->epoch},
                            .node = job->node};
    event.exited.start_usec = event.exited.end_usec = storm->now_usec;
    job->runs = FALSE;
    job->saved = (StormDemand){0, 0};
    drop_answers_of(storm, job);
    end_move(job);
    handle(storm, &event);
}

static void report(Storm *storm)
{
    storm->report_usec += STORM_REPORT_USEC;
    for (guint i = 0; i < storm->jobs->len; i++) {
        const Job *job = &g_array_index(storm->jobs, Job, i);
        if (!job->runs)
            continue;
        StormDemand now = demand_of(storm, job);
        BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_REPORTED,
                                .guest = {.job = job->job.id, .epoch = job->epoch},
                                .node = job->node};
        event.usage = (BerthCoreUsage){.cpu_milli = now.cpu_milli,
                                       .memory_used_mib = now.memory_mib,
                                       .touched_mib = now.memory_mib};
        handle(storm, &event);
    }
}

/* --- time ----------------------------------------------------------------------------------- */

static void advance(Storm *storm, gint64 to_usec)
{
    for (guint i = 0; i < storm->jobs->len; i++) {
        Job *job = &g_array_index(storm->jobs, Job, i);
        if (!job->runs)
            continue;
        job->done_usec += to_usec - storm->now_usec;
        storm->result.guest_hours += (double)(to_usec - storm->now_usec) / (double)STORM_HOUR_USEC;
    }
    storm->now_usec = to_usec;
}

/* -1 = none. */
static gint first_answer(const Storm *storm)
{
    gint first = -1;
    for (guint i = 0; i < storm->answers->len; i++) {
        const Answer *answer = &g_array_index(storm->answers, Answer, i);
        const Answer *best =
            first < 0 ? NULL : &g_array_index(storm->answers, Answer, (guint)first);
        if (best == NULL || answer->due_usec < best->due_usec ||
            (answer->due_usec == best->due_usec && answer->order < best->order))
            first = (gint)i;
    }
    return first;
}

static Job *first_to_end(const Storm *storm)
{
    Job *first = NULL;
    for (guint i = 0; i < storm->jobs->len; i++) {
        Job *job = &g_array_index(storm->jobs, Job, i);
        if (job->runs &&
            (first == NULL || job->run_usec - job->done_usec < first->run_usec - first->done_usec))
            first = job;
    }
    return first;
}

/* The next thing that happens. FALSE: it is not before END_USEC. */
static gboolean step(Storm *storm, gint64 end_usec)
{
    gint at = first_answer(storm);
    Job *ends = first_to_end(storm);
    gint64 answer_usec =
        at < 0 ? G_MAXINT64 : g_array_index(storm->answers, Answer, (guint)at).due_usec;
    gint64 job_usec =
        ends == NULL ? G_MAXINT64 : storm->now_usec + ends->run_usec - ends->done_usec;
    gint64 timer_usec = MAX(berth_core_next_timer_usec(storm->core), storm->now_usec);
    gint64 next_usec = MIN(MIN(answer_usec, job_usec), MIN(timer_usec, storm->report_usec));
    if (next_usec >= end_usec)
        return FALSE;
    advance(storm, next_usec);
    if (answer_usec == next_usec)
        deliver(storm, (guint)at);
    else if (job_usec == next_usec)
        end_job(storm, ends);
    else if (timer_usec == next_usec)
        handle(storm, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
    else
        report(storm);
    return TRUE;
}

void storm_run(Storm *storm, gint64 end_usec)
{
    while (step(storm, BEGIN_USEC + end_usec))
        ;
    advance(storm, BEGIN_USEC + end_usec);
}

void storm_run_all(Storm *storm, gint64 end_usec)
{
    while (storm->result.completed < storm->jobs->len)
        if (!step(storm, BEGIN_USEC + end_usec))
            g_error("seed %u: %u of %u jobs have ended after %d s", storm->config.seed,
                    storm->result.completed, storm->jobs->len, (int)(end_usec / SECOND_USEC));
}

/* --- the cluster ---------------------------------------------------------------------------- */

void storm_tunings(gint64 out_tunings[BERTH_TUNING_N])
{
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        out_tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
}

static void join(Storm *storm, guint32 node)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info.capacity = storm->config.node;
    storm->hosts[node - 1].is_up = TRUE;
    handle(storm, &event);
}

static void job_clear(gpointer data)
{
    g_array_unref(((Job *)data)->moves);
}

Storm *storm_new(const StormConfig *config)
{
    Storm *storm = g_new0(Storm, 1);
    storm->config = *config;
    BerthCoreConfig core = {.node_timeout_usec = 60 * SECOND_USEC,
                            .stop_grace_usec = 10 * SECOND_USEC,
                            .requeues_max = 100,
                            .start_retries_max = 100,
                            .start_backoff_usec = SECOND_USEC,
                            .can_fence = TRUE,
                            .policy = BERTH_POLICY_CONSERVATIVE,
                            .features = BERTH_FEATURE_ALL,
                            .tunings = storm->config.tunings};
    storm->core = berth_core_new(&core);
    storm->jobs = g_array_new(FALSE, TRUE, sizeof(Job));
    g_array_set_clear_func(storm->jobs, job_clear);
    storm->answers = g_array_new(FALSE, TRUE, sizeof(Answer));
    storm->hosts = g_new0(Host, config->n_nodes);
    storm->now_usec = BEGIN_USEC;
    storm->report_usec = BEGIN_USEC + STORM_REPORT_USEC;
    for (guint32 node = 1; node <= config->n_nodes; node++) {
        g_autofree char *name = g_strdup_printf("n%u", node);
        berth_core_add_node(storm->core, name);
    }
    for (guint32 node = 1; node <= config->n_nodes; node++)
        join(storm, node);
    return storm;
}

void storm_free(Storm *storm)
{
    berth_core_free(storm->core);
    g_array_unref(storm->jobs);
    g_array_unref(storm->answers);
    g_free(storm->hosts);
    g_free(storm);
}

void storm_submit(Storm *storm, const BerthCoreJob *source, gint64 run_usec)
{
    Job job = {.job = *source, .run_usec = run_usec};
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    job.moves = g_array_new(FALSE, FALSE, sizeof(gint64));
    job.job.id = storm->jobs->len + 1;
    job.job.submit_usec = storm->now_usec;
    event.submitted = job.job;
    g_array_append_val(storm->jobs, job);
    handle(storm, &event);
}

/* A guest on its way to it stays where it was. */
static void fail_move(Storm *storm, Job *job)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_MIGRATED,
                            .guest = {.job = job->job.id, .epoch = job->epoch},
                            .node = job->node};
    drop_answers_of(storm, job);
    end_move(job);
    handle(storm, &event);
}

void storm_fail(Storm *storm, guint32 node)
{
    storm->hosts[node - 1].is_up = FALSE;
    for (guint i = storm->answers->len; i > 0; i--)
        if (g_array_index(storm->answers, Answer, i - 1).node == node)
            g_array_remove_index(storm->answers, i - 1);
    for (guint i = 0; i < storm->jobs->len; i++) {
        Job *job = &g_array_index(storm->jobs, Job, i);
        if (job->node != node)
            continue;
        job->runs = FALSE;
        job->saved = (StormDemand){0, 0};
        end_move(job);
    }
    handle(storm, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT, .node = node});
    for (guint i = 0; i < storm->jobs->len; i++)
        if (job_of(storm, i + 1)->to == node)
            fail_move(storm, job_of(storm, i + 1));
}

void storm_repair(Storm *storm, guint32 node)
{
    join(storm, node);
}

const StormResult *storm_result(const Storm *storm)
{
    return &storm->result;
}

gint64 storm_waited_usec(const Storm *storm, guint64 id)
{
    const Job *job = job_of(storm, id);
    return (job->began_usec != 0 ? job->began_usec : storm->now_usec) - job->job.submit_usec;
}

guint storm_waiting(const Storm *storm)
{
    guint count = 0;
    for (guint i = 0; i < storm->jobs->len; i++)
        count += g_array_index(storm->jobs, Job, i).began_usec == 0;
    return count;
}
