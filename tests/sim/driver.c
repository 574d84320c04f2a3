/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the driver of the core in the fake world: it does what berthd does, with arrays for a
 * store. What the core reports as changed is stored before its actions leave. */
#include "tests/sim/world_internal.h"

/* Rounds, settling and cooldowns as short as the world's jobs. */
static void set_tunings(World *world)
{
    static const gint64 second = G_USEC_PER_SEC;
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        world->tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    world->tunings[BERTH_TUNING_BALANCE_INTERVAL_USEC] = second;
    world->tunings[BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE] = 50;
    /* Cooldowns are shorter than most migrations here: what one costs would be too much for what it gains. */
    world->tunings[BERTH_TUNING_MOVE_WORTH_PERMILLE] = world->config.seed % 4 == 0 ? 2000 : 100;
    world->tunings[BERTH_TUNING_SETTLE_USEC] = second;
    world->tunings[BERTH_TUNING_COOLDOWN_USEC] = 4 * second;
    world->tunings[BERTH_TUNING_NEAR_END_USEC] = second;
    world->tunings[BERTH_TUNING_SLACK_PLAN_INTERVAL_USEC] = world->config.seed % 2 * second / 4;
    world->tunings[BERTH_TUNING_BALLOON_MIB_PER_SEC] = 100000;
    /* In some, who is backed mostly has to wait for guests in slack, and for no longer than actions take here. */
    if (world->config.seed / 2 % 3 > 0) {
        world->tunings[BERTH_TUNING_MEMORY_HEADROOM_PERMILLE] = 0;
        world->tunings[BERTH_TUNING_CHECKPOINT_FIXED_USEC] = second / 4;
        world->tunings[BERTH_TUNING_EVACUATION_MAX_USEC] = world->config.seed / 2 % 3 * 3 * second;
    }
    world->tunings[BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] = world->config.seed % 5 < 3 ? 1000 : 1;
    /* In some, who is in slack goes back to where he is backed as soon as there is room. */
    if (world->config.seed / 2 % 2 == 0)
        world->tunings[BERTH_TUNING_SLACK_PLAN_DEPTH] = 0;
    /* In some, several have a planned start. */
    if (world->config.seed / 15 % 2 == 1)
        world->tunings[BERTH_TUNING_PLAN_DEPTH] = 2 + world->config.seed % 7;
    world->tunings[BERTH_TUNING_DECAY_HALF_LIFE_USEC] = 5 * second;
    world->tunings[BERTH_TUNING_PEAK_INTERVAL_USEC] = 3 * second;
    world->tunings[BERTH_TUNING_HALF_LIFE_USEC] = 60 * second;
    world->tunings[BERTH_TUNING_RANK_INTERVAL_USEC] = 2 * second;
    world->tunings[BERTH_TUNING_AGE_MAX_USEC] = 60 * second;
    if (!world->config.fair_share)
        return;
    world->tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] = 2000;
    world->tunings[BERTH_TUNING_WEIGHT_AGE] = 500;
}

void driver_start(World *world)
{
    set_tunings(world);
    BerthCoreConfig config = restore_config(world);
    world->core = berth_core_new(&config);
    for (guint32 i = 1; i <= world->config.n_nodes; i++) {
        guint32 vcpus = 4 + 4 * world_pick(world, 3);
        Host host = {.info = {.capacity = {vcpus, vcpus * MIB_PER_VCPU, 0}},
                     .state = BERTH_NODE_DOWN};
        /* Some have cells, and some say where they are. */
        host.info.n_cells = i % 3;
        for (guint32 cell = 0; cell < host.info.n_cells; cell++)
            host.info.cells[cell] = (BerthCoreCell){vcpus / 2, vcpus * MIB_PER_VCPU / 2};
        host.info.rack = i / 2;
        host.info.fabric = i / 3;
        g_array_append_val(world->hosts, host);
        char name[16];
        restore_name_node(i, name);
        g_assert_cmpuint(berth_core_add_node(world->core, name), ==, i);
    }
}

void driver_stop(World *world)
{
    g_clear_pointer(&world->core, berth_core_free);
}

/* --- the store ------------------------------------------------------------------------------ */

static void keep_old(World *world, const Job *job, guint32 index)
{
    Change change = {job->job.id, index, job->tasks[index]};
    g_array_append_val(world->changes, change);
}

/* Tasks that never started and end together are reported by the first of them, which says which they are. */
static void end_rest(World *world, Job *job, guint32 first)
{
    BerthCoreTask *record = &job->tasks[first].record;
    guint32 last = record->rest_last;
    guint32 step = record->rest_step;
    record->rest_last = record->rest_step = 0;
    for (guint32 i = first + step; step > 0 && i <= last; i += step) {
        Task *task = &job->tasks[i];
        BerthCoreTask known;
        CHECK(world, task->record.epoch == 0 && !task->is_over, job->job.id);
        CHECK(world, !berth_core_get_task(world->core, job->job.id, i, &known), job->job.id);
        keep_old(world, job, i);
        job->held_by_user &= ~(1u << i);
        job->held_by_operator &= ~(1u << i);
        task->record = *record;
        task->record.task = i;
        task->is_over = TRUE;
    }
}

static void store_task(World *world, const BerthGuestId *id)
{
    Job *job = world_job(world, id->job);
    Task *task = &job->tasks[id->task];
    BerthCoreJob now;
    keep_old(world, job, id->task);
    g_assert_true(berth_core_get_task(world->core, id->job, id->task, &task->record));
    g_assert_true(berth_core_get_job(world->core, id->job, &now));
    if (berth_job_state_is_final(task->record.state)) {
        job->held_by_user &= ~(1u << id->task);
        job->held_by_operator &= ~(1u << id->task);
    }
    job->job.time_limit_usec = now.time_limit_usec;
    for (guint32 i = 0; i < GUESTS_MAX; i++)
        if (!berth_core_get_guest(world->core, id->job, id->task, i, &task->guests[i]))
            task->guests[i] = (BerthCoreGuest){0};
    task->is_over =
        berth_job_state_is_final(task->record.state) && task->record.phase == BERTH_GUEST_NONE;
    if (task->is_over && task->record.epoch == 0)
        end_rest(world, job, id->task);
    job->is_over = TRUE;
    for (guint32 i = 0; i < job->n_tasks; i++)
        job->is_over &= job->tasks[i].is_over;
}

static void store_node(World *world, guint32 node)
{
    Host *host = world_host(world, node);
    BerthCoreNode now;
    g_assert_true(berth_core_get_node(world->core, node, &now));
    host->state = now.state;
    host->since_usec = now.since_usec;
    host->admission = now.admission;
    if (now.admission == BERTH_ADMISSION_DRAINING && now.is_empty)
        world_note(world, "emptied");
    host->was_up |= now.state == BERTH_NODE_UP;
}

static void store_use(World *world, const BerthCoreUse *use)
{
    for (guint i = 0; i < world->uses->len; i++) {
        BerthCoreUse *stored = &g_array_index(world->uses, BerthCoreUse, i);
        if (stored->account == use->account && stored->uid == use->uid &&
            stored->is_user == use->is_user) {
            *stored = *use;
            return;
        }
    }
    g_array_append_val(world->uses, *use);
}

/* The one that learnt last is at the end. */
static void store_prior(World *world, const BerthCorePrior *prior)
{
    for (guint i = 0; i < world->priors->len; i++) {
        const BerthCorePrior *stored = &g_array_index(world->priors, BerthCorePrior, i);
        if (stored->uid != prior->uid || stored->family != prior->family ||
            stored->vcpus != prior->vcpus || stored->memory_mib != prior->memory_mib)
            continue;
        g_array_remove_index(world->priors, i);
        break;
    }
    if (prior->n > 0)
        g_array_append_val(world->priors, *prior);
}

static void commit(World *world, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->changed->len; i++)
        store_task(world, &g_array_index(effects->changed, BerthGuestId, i));
    for (guint i = 0; i < effects->nodes->len; i++)
        store_node(world, g_array_index(effects->nodes, guint32, i));
    for (guint i = 0; i < effects->uses->len; i++)
        store_use(world, &g_array_index(effects->uses, BerthCoreUse, i));
    for (guint i = 0; i < effects->priors->len; i++)
        store_prior(world, &g_array_index(effects->priors, BerthCorePrior, i));
}

static guint32 bits_of(const BerthIndexRange *ranges, gsize n_ranges)
{
    guint32 bits = 0;
    for (gsize i = 0; i < n_ranges; i++)
        for (guint32 k = ranges[i].first; k <= ranges[i].last; k += ranges[i].step)
            bits |= 1u << k;
    return bits;
}

/* What a request has changed of a job, and of none of its tasks. */
static void store_policy(World *world, const BerthCoreEvent *event)
{
    BerthCoreJob now;
    if (event->kind != BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET &&
        event->kind != BERTH_EVENT_JOB_HELD && event->kind != BERTH_EVENT_JOB_RELEASED)
        return;
    Job *job = world_job(world, event->guest.job);
    g_assert_true(berth_core_get_job(world->core, event->guest.job, &now));
    job->job.checkpoint_every_usec = now.checkpoint_every_usec;
    job->job.held = now.held;
    job->job.held_by_operator = now.held_by_operator;
    job->held_by_user = bits_of(now.tasks_held_by_user, now.n_held_by_user);
    job->held_by_operator = bits_of(now.tasks_held_by_operator, now.n_held_by_operator);
}

static void send_actions(World *world, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->actions->len; i++) {
        BerthCoreAction action = g_array_index(effects->actions, BerthCoreAction, i);
        g_string_append_printf(world->log, "  %d %u.%u+%u/%u@%u>%u reason %d%s\n", action.kind,
                               (guint)action.guest.job, action.guest.task, action.guest.guest,
                               action.guest.epoch, action.node, action.to, action.reason,
                               action.is_opportunistic ? " in slack" : "");
        if (action.kind == BERTH_ACTION_FENCE || world_host(world, action.node)->has_session)
            g_array_append_val(world->orders, action);
    }
}

/* --- events --------------------------------------------------------------------------------- */

/* Everything in memory is gone, with the sessions and what was on its way. */
void driver_restart(World *world)
{
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    for (guint32 node = 1; node <= world->hosts->len; node++)
        agents_break_session(world, node);
    g_array_set_size(world->orders, 0);
    g_array_set_size(world->results, 0);
    g_array_set_size(world->changes, 0);
    g_string_append(world->log, "restart\n");
    model_pass_time(world);
    restore_core(world);
    berth_core_resume(world->core, world->now_usec, effects);
    commit(world, effects);
    send_actions(world, effects);
    world->storage_is_down = FALSE;
    people_set_windows(world);
    check_world(world, effects, TRUE);
    peaks_restarted(world);
    model_forget(world);
    rooms_restarted(world);
    model_check_use(world);
    world_note(world, "restart");
}

static void log_event(World *world, const BerthCoreEvent *event)
{
    g_string_append_printf(world->log, "%" G_GINT64_FORMAT " event %d %u.%u+%u/%u node %u\n",
                           world->now_usec, event->kind, (guint)event->guest.job, event->guest.task,
                           event->guest.guest, event->guest.epoch, event->node);
}

static gboolean take(World *world, gint64 now_usec, const BerthCoreEvent *event,
                     BerthCoreEffects *effects)
{
    g_autoptr(GError) error = NULL;
    g_array_set_size(world->changes, 0);
    log_event(world, event);
    gboolean ok = logged_handle(world, now_usec, event, effects, &error);
    g_assert_true(ok == (error == NULL));
    if (!ok) {
        g_string_append_printf(world->log, "  refused: %s\n", error->message);
        g_assert_cmpuint(effects->actions->len + effects->changed->len + effects->nodes->len, ==,
                         0);
    }
    return ok;
}

gboolean driver_handle(World *world, const BerthCoreEvent *event)
{
    Death death = world->dies_at;
    world->dies_at = DIES_NEVER;
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    model_pass_time(world);
    gboolean ok = take(world, world->now_usec, event, effects);
    if (!ok && event->kind == BERTH_EVENT_JOB_SUBMITTED) {
        Job *job = world_job(world, event->submitted.id);
        job->is_over = job->is_refused = TRUE;
    }
    if (death != DIES_BEFORE_COMMIT)
        commit(world, effects);
    if (ok && death != DIES_BEFORE_COMMIT)
        store_policy(world, event);
    if (death != DIES_NEVER) {
        driver_restart(world);
        return ok;
    }
    send_actions(world, effects);
    check_world(world, effects, FALSE);
    check_fences(world, event, effects);
    peaks_check(world, event);
    rooms_check(world, effects);
    model_check_moves(world, effects);
    return ok;
}

gboolean driver_handle_surely(World *world, const BerthCoreEvent *event)
{
    if (world->dies_at == DIES_BEFORE_COMMIT)
        world->dies_at = DIES_AFTER_COMMIT;
    return driver_handle(world, event);
}

void driver_tell(World *world, gint64 now_usec, const BerthCoreEvent *event)
{
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    g_assert_true(take(world, now_usec, event, effects));
    commit(world, effects);
    send_actions(world, effects);
}

guint64 driver_first_unfinished(const World *world)
{
    for (guint64 number = 1; number <= world->jobs->len; number++)
        if (!world_job(world, number)->is_over)
            return number;
    return 0;
}
