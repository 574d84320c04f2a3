/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the driver of the core in the fake world: it does what berthd does, with an array for a
 * store. What the core reports as changed is stored before its actions leave. */
#include "tests/sim/world_internal.h"

#define MIB_PER_VCPU 1024u
#define OVERHEAD_MIB 64u

static BerthCoreConfig core_config(const World *world)
{
    return (BerthCoreConfig){.node_timeout_usec = 20 * G_USEC_PER_SEC,
                             .stop_grace_usec = 5 * G_USEC_PER_SEC,
                             .guest_overhead_mib = OVERHEAD_MIB,
                             .requeues_max = 3,
                             .start_retries_max = 3,
                             .start_backoff_usec = G_USEC_PER_SEC,
                             .can_fence = world->config.can_fence,
                             .policy = world->config.policy,
                             .features = world->config.features,
                             .tunings = world->tunings};
}

static void name_node(guint32 node, char name[16])
{
    g_snprintf(name, 16, "n%u", node);
}

/* Rounds, settling and cooldowns as short as the world's jobs. */
static void set_tunings(World *world)
{
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        world->tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    world->tunings[BERTH_TUNING_BALANCE_INTERVAL_USEC] = 3 * G_USEC_PER_SEC;
    world->tunings[BERTH_TUNING_SETTLE_USEC] = G_USEC_PER_SEC;
    world->tunings[BERTH_TUNING_COOLDOWN_USEC] = 4 * G_USEC_PER_SEC;
    world->tunings[BERTH_TUNING_NEAR_END_USEC] = G_USEC_PER_SEC;
    world->tunings[BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] = 1000;
    world->tunings[BERTH_TUNING_DECAY_HALF_LIFE_USEC] = 5 * G_USEC_PER_SEC;
}

void driver_start(World *world)
{
    set_tunings(world);
    BerthCoreConfig config = core_config(world);
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
        name_node(i, name);
        g_assert_cmpuint(berth_core_add_node(world->core, name), ==, i);
    }
}

void driver_stop(World *world)
{
    g_clear_pointer(&world->core, berth_core_free);
}

/* --- the store ------------------------------------------------------------------------------ */

static void store_task(World *world, guint64 number)
{
    Job *job = &g_array_index(world->jobs, Job, number - 1);
    BerthCoreJob now;
    g_assert_true(berth_core_get_task(world->core, number, 0, &job->task));
    g_assert_true(berth_core_get_job(world->core, number, &now));
    job->job.held = now.held;
    job->job.held_by_operator = now.held_by_operator;
    for (guint32 i = 0; i < GUESTS_MAX; i++)
        if (!berth_core_get_guest(world->core, number, 0, i, &job->guests[i]))
            job->guests[i] = (BerthCoreGuest){0};
    job->is_over = berth_job_state_is_final(job->task.state) && job->task.phase == BERTH_GUEST_NONE;
}

static void store_node(World *world, guint32 node)
{
    Host *host = &g_array_index(world->hosts, Host, node - 1);
    BerthCoreNode now;
    g_assert_true(berth_core_get_node(world->core, node, &now));
    host->state = now.state;
    host->since_usec = now.since_usec;
    host->was_up |= now.state == BERTH_NODE_UP;
}

static void commit(World *world, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->changed->len; i++)
        store_task(world, g_array_index(effects->changed, BerthGuestId, i).job);
    for (guint i = 0; i < effects->nodes->len; i++)
        store_node(world, g_array_index(effects->nodes, guint32, i));
}

static void send_actions(World *world, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->actions->len; i++) {
        BerthCoreAction action = g_array_index(effects->actions, BerthCoreAction, i);
        g_string_append_printf(world->log, "  %d %u+%u/%u@%u reason %d\n", action.kind,
                               (guint)action.guest.job, action.guest.guest, action.guest.epoch,
                               action.node, action.reason);
        if (action.kind == BERTH_ACTION_FENCE ||
            g_array_index(world->hosts, Host, action.node - 1).has_session)
            g_array_append_val(world->orders, action);
    }
}

/* --- events --------------------------------------------------------------------------------- */

static void restore_job(World *world, const Job *job)
{
    berth_core_restore_job(world->core, &job->job, &job->task, 1);
    for (guint32 i = 0; job->task.phase != BERTH_GUEST_NONE && i < MAX(job->job.guests, 1); i++) {
        BerthCoreGuest guest = job->guests[i];
        guest.id = (BerthGuestId){job->job.id, 0, i, job->task.epoch};
        if (guest.node == 0)
            guest.node = job->task.node; /* already removed */
        berth_core_restore_guest(world->core, &guest);
    }
}

/* Everything in memory is gone, with the sessions and what was on its way. */
static void restore(World *world)
{
    berth_core_free(world->core);
    for (guint32 node = 1; node <= world->hosts->len; node++)
        world_break_session(world, node);
    g_array_set_size(world->orders, 0);
    g_array_set_size(world->results, 0);
    BerthCoreConfig config = core_config(world);
    world->core = berth_core_new(&config);
    for (guint32 node = 1; node <= world->hosts->len; node++) {
        const Host *host = &g_array_index(world->hosts, Host, node - 1);
        char name[16];
        name_node(node, name);
        berth_core_add_node(world->core, name);
        berth_core_restore_node(world->core, node, host->state, host->since_usec,
                                host->was_up ? &host->info : NULL);
    }
    for (guint i = 0; i < world->jobs->len; i++) {
        const Job *job = &g_array_index(world->jobs, Job, i);
        if (!job->is_over)
            restore_job(world, job);
    }
}

void driver_restart(World *world)
{
    restore(world);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    g_string_append(world->log, "restart\n");
    berth_core_resume(world->core, world->now_usec, effects);
    commit(world, effects);
    send_actions(world, effects);
    check_world(world, NULL, effects);
    world_note(world, "restart");
}

void driver_handle(World *world, const BerthCoreEvent *event)
{
    Death death = world->dies_at;
    world->dies_at = DIES_NEVER;
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    g_autoptr(GArray) before = g_array_copy(world->jobs);
    g_autoptr(GError) error = NULL;
    g_string_append_printf(world->log, "%" G_GINT64_FORMAT " event %d %u+%u/%u node %u\n",
                           world->now_usec, event->kind, (guint)event->guest.job,
                           event->guest.guest, event->guest.epoch, event->node);
    gboolean ok = berth_core_handle(world->core, world->now_usec, event, effects, &error);
    g_assert_true(ok == (error == NULL));
    if (!ok && event->kind == BERTH_EVENT_JOB_SUBMITTED)
        g_array_index(world->jobs, Job, event->submitted.id - 1).is_over = TRUE; /* too large */
    if (!ok)
        g_assert_cmpuint(effects->actions->len + effects->changed->len + effects->nodes->len, ==,
                         0);
    if (death == DIES_BEFORE_COMMIT) {
        driver_restart(world);
        return;
    }
    commit(world, effects);
    if (death == DIES_AFTER_COMMIT) {
        driver_restart(world);
        return;
    }
    send_actions(world, effects);
    check_world(world, before, effects);
}

void driver_submit(World *world)
{
    if (world->jobs->len >= world->config.n_jobs)
        return;
    Job job = {0};
    guint32 vcpus = 1 + world_pick(world, 4);
    /* Where memory can be shared it is scarce. */
    guint64 mib_per_vcpu = world->config.features != 0 ? MIB_PER_VCPU * 7 / 8 : MIB_PER_VCPU / 2;
    job.job.id = world->jobs->len + 1;
    job.job.resources = (BerthResources){vcpus, vcpus * mib_per_vcpu, 1};
    job.job.time_limit_usec = (1 + world_pick(world, 60)) * (gint64)G_USEC_PER_SEC;
    job.job.priority = (gint32)world_pick(world, 3);
    job.job.uid = world_pick(world, 2);
    job.job.family = world_pick(world, 3);
    job.job.held = world_chance(world, 5);
    job.job.no_requeue = world_chance(world, 20);
    job.job.submit_usec = world->now_usec;
    job.job.may_move = world_chance(world, 60);
    job.job.may_checkpoint = world_chance(world, 60);
    job.job.opportunistic = world_chance(world, 80);
    job.job.on_timeout =
        world_chance(world, 50) ? BERTH_ON_TIMEOUT_CHECKPOINT : BERTH_ON_TIMEOUT_KILL;
    /* All of a gang fit on the smallest host. */
    job.job.guests = world_chance(world, 30) ? 1 + world_pick(world, GUESTS_MAX / vcpus) : 1;
    if (world_chance(world, 25)) {
        job.nodes[0] = 1 + world_pick(world, world->hosts->len);
        job.nodes[1] = 1 + world_pick(world, world->hosts->len);
        job.job.n_nodes = 2;
    }
    g_array_append_val(world->jobs, job);
    for (guint i = 0; i < world->jobs->len; i++) {
        Job *moved = &g_array_index(world->jobs, Job, i);
        moved->job.nodes = moved->job.n_nodes > 0 ? moved->nodes : NULL;
    }
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted = g_array_index(world->jobs, Job, job.job.id - 1).job;
    /* A submission that was not committed never was: its caller was told nothing. */
    if (world->dies_at == DIES_BEFORE_COMMIT)
        world->dies_at = DIES_AFTER_COMMIT;
    driver_handle(world, &event);
}

guint driver_first_unfinished(const World *world)
{
    for (guint i = 0; i < world->jobs->len; i++)
        if (!g_array_index(world->jobs, Job, i).is_over)
            return i + 1;
    return 0;
}

gboolean driver_has_unfinished(const World *world)
{
    return driver_first_unfinished(world) != 0;
}
