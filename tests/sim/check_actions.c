/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what must be true of each action: it has a cause, and nothing forbids it. */
#include "tests/sim/world_internal.h"

/* --- starts ---------------------------------------------------------------------------------- */

/* Only those of an order that the test can tell. */
static gboolean has_plain_order(const World *world)
{
    gboolean has_windows = FALSE;
    for (guint i = 0; i < N_WINDOWS; i++)
        has_windows |= world->windows[i].is_set;
    return world->config.policy == BERTH_POLICY_FCFS && world->config.features == 0 &&
           !world->config.fair_share && !has_windows;
}

static gboolean could_hold(const World *world, guint32 node, const Job *job)
{
    const BerthResources *capacity = &world_host(world, node)->info.capacity;
    return job->job.resources.vcpus <= capacity->vcpus &&
           job->job.resources.memory_mib + OVERHEAD_MIB <= capacity->memory_mib;
}

static gboolean waits_in_order(World *world, const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++) {
        BerthReason reason = berth_core_pending_reason(world->core, job->job.id, i);
        if (job->tasks[i].record.state == BERTH_JOB_PENDING &&
            (reason == BERTH_REASON_RESOURCES || reason == BERTH_REASON_PRIORITY))
            return TRUE;
    }
    return FALSE;
}

/* Its turn may have come with the very start of another. */
static gboolean waits_for_a_start(const Job *job)
{
    for (gsize i = 0; i < job->job.n_dependencies; i++)
        if (job->dependencies[i].kind == BERTH_AFTER_START)
            return TRUE;
    return FALSE;
}

/* Nobody who comes earlier and could use the node is still waiting. */
static void check_not_overtaken(World *world, const Job *started, guint32 node)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *other = world_job(world, number);
        if (other->is_over || !model_comes_before(world, other, started) ||
            waits_for_a_start(other) || !waits_in_order(world, other))
            continue;
        CHECK(world, !model_is_allowed(other, node) || !could_hold(world, node, other), number);
    }
}

/* All guests of its task start, where they may. */
static void check_gang(World *world, const Job *job, const Task *task)
{
    for (guint32 i = 0; i < MAX(job->job.guests, 1); i++) {
        const BerthCoreGuest *guest = &task->guests[i];
        CHECK(world, guest->phase == BERTH_GUEST_STARTING && guest->node != 0, job->job.id);
        CHECK(world, model_is_allowed(job, guest->node), job->job.id);
    }
}

/* The node takes guests now, and has time for this one. */
static void check_open(World *world, const Job *job, const Task *task,
                       const BerthCoreAction *action)
{
    const Host *host = world_host(world, action->node);
    gint64 left_usec = model_time_left_usec(world, job, task);
    CHECK(world, host->wanted == BERTH_ADMISSION_OPEN, action->node);
    CHECK(world, !host->info.cannot_start || !host->has_session, action->node);
    CHECK(world,
          !model_is_blocked(world, action->node, world->now_usec,
                            world->now_usec + (model_can_move(world, job) ? 1 : left_usec)),
          action->guest.job);
    CHECK(world, !world->storage_is_down, action->guest.job);
}

/* What the task may do anew; one that is told again has it already. */
static void check_new_start(World *world, const Job *job, const Task *task,
                            const BerthCoreAction *action)
{
    check_open(world, job, task, action);
    CHECK(world, model_hold(job, action->guest.task) == BERTH_REASON_NONE, action->guest.job);
    CHECK(world, model_dependencies_met(world, job, action->guest.task), action->guest.job);
    CHECK(world, !model_exceeds_limits(world, job, NULL), action->guest.job);
    if (has_plain_order(world))
        check_not_overtaken(world, job, action->node);
}

static void check_cells(World *world, const BerthCoreAction *action, guint32 node)
{
    guint32 n_cells = world_host(world, node)->info.n_cells;
    guint32 all = n_cells > 1 ? (1u << n_cells) - 1 : 0;
    CHECK(world, (action->cells & ~all) == 0, node);
    CHECK(world, (action->cells != 0) == (all != 0 && !action->is_opportunistic), node);
}

static void check_start(World *world, const BerthCoreAction *action, gboolean is_restart)
{
    const Job *job = world_job(world, action->guest.job);
    const Task *task = &job->tasks[action->guest.task];
    const Task *old = check_old_task(world, action->guest.job, action->guest.task);
    CHECK(world, task->record.state == BERTH_JOB_RUNNING, action->guest.job);
    CHECK(world, task->record.phase == BERTH_GUEST_STARTING, action->guest.job);
    CHECK(world, task->record.epoch == action->guest.epoch, action->guest.job);
    CHECK(world, !action->is_opportunistic || (job->job.guests == 1 && job->job.opportunistic),
          action->guest.job);
    check_gang(world, job, task);
    check_cells(world, action, action->node);
    if (is_restart)
        return;
    gboolean again = old == NULL || old->record.epoch == task->record.epoch;
    CHECK(world, again || old->record.epoch + 1 == action->guest.epoch, action->guest.job);
    CHECK(world, !again || old == NULL || old->guests[action->guest.guest].node == action->node,
          action->guest.job);
    if (!again) {
        check_new_start(world, job, task, action);
    } else if (job->waits[action->guest.task][action->guest.guest].since_usec != 0) {
        check_open(world, job, task, action);
        world_note(world, "start has waited");
    }
    world_note(world, again ? "start again" : "start");
    if (!again && job->job.n_dependencies > 0)
        world_note(world, "start after others");
    if (action->is_opportunistic)
        world_note(world, "slack");
}

/* --- the rest --------------------------------------------------------------------------------- */

static void check_release(World *world, const BerthCoreAction *action)
{
    const Job *job = world_job(world, action->guest.job);
    const Task *task = &job->tasks[action->guest.task];
    const BerthCoreGuest *guest = &task->guests[action->guest.guest];
    gboolean is_current = task->record.phase != BERTH_GUEST_NONE &&
                          task->record.epoch == action->guest.epoch && guest->node == action->node;
    if (is_current)
        CHECK(world, guest->phase == BERTH_GUEST_RELEASING, action->guest.job);
    else
        world_note(world, "stray");
}

static gboolean is_size_asked_for(const BerthCoreAction *action)
{
    return action->reason == BERTH_REASON_RESIZED_BY_USER ||
           action->reason == BERTH_REASON_RESIZED_BY_OPERATOR;
}

static void check_migrate(World *world, const BerthCoreAction *action, const Job *job,
                          const BerthCoreGuest *guest)
{
    const Task *old = check_old_task(world, action->guest.job, action->guest.task);
    const Host *to = world_host(world, action->to);
    CHECK(world, guest->op == BERTH_OP_MIGRATING && guest->to == action->to, action->guest.job);
    CHECK(world, job->job.may_move && (world->config.features & BERTH_FEATURE_MIGRATION),
          action->guest.job);
    CHECK(world, model_is_allowed(job, action->to) && action->to != action->node,
          action->guest.job);
    check_cells(world, action, action->to);
    if (old != NULL && old->guests[0].op_serial != action->serial)
        CHECK(world,
              to->wanted == BERTH_ADMISSION_OPEN && (!to->info.cannot_start || !to->has_session) &&
                  !model_is_blocked(world, action->to, world->now_usec, world->now_usec + 1),
              action->guest.job);
    world_note(world, "migrate");
    if (action->reason == BERTH_REASON_DRAIN)
        world_note(world, "drained");
    if (action->reason == BERTH_REASON_BALANCE || action->reason == BERTH_REASON_DEFRAGMENT) {
        gboolean is_balance = action->reason == BERTH_REASON_BALANCE;
        CHECK(world, guest->is_opportunistic == is_balance, action->guest.job);
        CHECK(world, action->is_opportunistic == is_balance, action->guest.job);
        CHECK(world, world->config.features & BERTH_FEATURE_BALANCING, action->guest.job);
        world_note(world, is_balance ? "balance" : "defragment");
    }
    if (action->reason == BERTH_REASON_MOVED_BY_USER ||
        action->reason == BERTH_REASON_MOVED_BY_OPERATOR)
        world_note(world, "migrate wanted");
    if (is_size_asked_for(action))
        world_note(world, "resize wanted elsewhere");
}

/* Only a guest in slack is asked for memory, and it keeps what it needs. */
static void check_balloon(World *world, const BerthCoreAction *action, const Job *job,
                          const BerthCoreGuest *guest)
{
    const Task *old = check_old_task(world, action->guest.job, action->guest.task);
    CHECK(world, guest->op == BERTH_OP_RESIZING && guest->to_balloon_mib == action->balloon_mib,
          action->guest.job);
    if (action->balloon_mib == 0)
        return;
    CHECK(world, world->config.features & BERTH_FEATURE_BALLOON, action->guest.job);
    CHECK(world, action->is_opportunistic && job->job.opportunistic, action->guest.job);
    CHECK(world, action->balloon_mib < action->resources.memory_mib, action->guest.job);
    if (old != NULL && old->guests[0].op_serial != action->serial)
        CHECK(world,
              guest->predicted_mib <=
                  action->resources.memory_mib - action->balloon_mib + OVERHEAD_MIB,
              action->guest.job);
    world_note(world, "balloon");
}

static void check_checkpoint(World *world, const BerthCoreAction *action,
                             const BerthCoreTask *record)
{
    CHECK(world, action->checkpoint == record->checkpoint_open && action->checkpoint > 0,
          action->guest.job);
    CHECK(world, action->stops == record->checkpoint_stops, action->guest.job);
    CHECK(world, action->space_mib > 0, action->guest.job);
    CHECK(world, action->stops || record->checkpoint_wanted != BERTH_REASON_NONE,
          action->guest.job);
    world_note(world, "checkpoint");
    if (!action->stops)
        world_note(world,
                   action->reason == BERTH_REASON_CHECKPOINT_DUE ? "checkpoint due" : "runs on");
    else if (action->reason == BERTH_REASON_FROZEN_BY_USER ||
             action->reason == BERTH_REASON_FROZEN_BY_OPERATOR)
        world_note(world, "to disk");
    else if (action->reason == BERTH_REASON_TIME_LIMIT)
        world_note(world, "at time limit");
}

static void check_op(World *world, const BerthCoreAction *action)
{
    const Job *job = world_job(world, action->guest.job);
    const BerthCoreGuest *guest = &job->tasks[action->guest.task].guests[action->guest.guest];
    guint32 features = world->config.features;
    /* One that is being stopped may be asked for again, to know where it is. */
    CHECK(world,
          guest->phase == BERTH_GUEST_RUNNING ||
              (guest->phase == BERTH_GUEST_STOPPING &&
               (action->kind == BERTH_ACTION_MIGRATE || action->kind == BERTH_ACTION_STAY)),
          action->guest.job);
    CHECK(world, guest->node == action->node && job->job.guests == 1, action->guest.job);
    CHECK(world, guest->op_serial == action->serial, action->guest.job);
    if (action->kind == BERTH_ACTION_MIGRATE) {
        check_migrate(world, action, job, guest);
    } else if (action->kind == BERTH_ACTION_STAY) {
        CHECK(world, guest->op == BERTH_OP_MIGRATING, action->guest.job);
        CHECK(world, job->tasks[action->guest.task].record.migrate_is_unwanted, action->guest.job);
        world_note(world, "called off");
    } else if (action->kind == BERTH_ACTION_CHECKPOINT) {
        CHECK(world, job->job.may_checkpoint && (features & BERTH_FEATURE_CHECKPOINT),
              action->guest.job);
        check_checkpoint(world, action, &job->tasks[action->guest.task].record);
    } else if (action->kind == BERTH_ACTION_RESIZE && guest->balloon_mib != action->balloon_mib &&
               action->reason != BERTH_REASON_PROMOTION && !is_size_asked_for(action)) {
        check_balloon(world, action, job, guest);
    } else if (action->kind == BERTH_ACTION_RESIZE && is_size_asked_for(action)) {
        CHECK(world, guest->op == BERTH_OP_RESIZING && action->balloon_mib == 0, action->guest.job);
        world_note(world, "resize wanted");
    } else if (action->kind == BERTH_ACTION_RESIZE) {
        CHECK(world, action->reason == BERTH_REASON_PROMOTION || (features & BERTH_FEATURE_GROWTH),
              action->guest.job);
        world_note(world, action->reason == BERTH_REASON_PROMOTION ? "promoted" : "grow");
    } else if (action->kind == BERTH_ACTION_FREEZE) {
        gboolean is_asked_for = action->reason == BERTH_REASON_FROZEN_BY_USER ||
                                action->reason == BERTH_REASON_FROZEN_BY_OPERATOR;
        CHECK(world,
              is_asked_for || (job->job.on_limit == BERTH_ON_LIMIT_FREEZE &&
                               (features & BERTH_FEATURE_FREEZING)),
              action->guest.job);
        world_note(world, is_asked_for ? "freeze" : "freeze at limit");
    } else {
        world_note(world, "thaw");
    }
    if (action->reason == BERTH_REASON_ROOM_NEEDED)
        world_note(world, "room needed");
    if (action->reason == BERTH_REASON_PRESSURE)
        world_note(world, "pressure");
    if (action->reason == BERTH_REASON_SLACK_FULL)
        world_note(world, "slack full");
}

static void check_stop(World *world, const BerthCoreAction *action)
{
    const BerthCoreTask *record =
        &world_job(world, action->guest.job)->tasks[action->guest.task].record;
    CHECK(world, record->phase == BERTH_GUEST_STOPPING, action->guest.job);
    CHECK(world, record->stop_reason != BERTH_REASON_NONE, action->guest.job);
    CHECK(world, action->grace_usec > 0, action->guest.job);
    world_note(world, "stop");
}

static void check_action(World *world, const BerthCoreAction *action, gboolean is_restart)
{
    const Task *task = &world_job(world, action->guest.job)->tasks[action->guest.task];
    BerthCoreNode node;
    CHECK(world, berth_core_get_node(world->core, action->node, &node), action->node);
    /* One that may have left its node is fenced also when that is back. */
    CHECK(world, node.state == BERTH_NODE_UP || action->kind == BERTH_ACTION_FENCE, action->node);
    switch (action->kind) {
    case BERTH_ACTION_START:
        CHECK(world, task->record.checkpoint_epoch == 0, action->guest.job);
        check_start(world, action, is_restart);
        break;
    case BERTH_ACTION_STOP:
        check_stop(world, action);
        break;
    case BERTH_ACTION_RELEASE:
        check_release(world, action);
        break;
    case BERTH_ACTION_FENCE:
        CHECK(world, task->guests[action->guest.guest].phase == BERTH_GUEST_FENCING,
              action->guest.job);
        CHECK(world, world->config.can_fence, action->guest.job);
        break;
    case BERTH_ACTION_RESTORE:
        /* Never from one that is torn. */
        CHECK(world,
              action->checkpoint == task->record.checkpoint &&
                  savers_has(world, action->guest.job, action->guest.task, action->checkpoint,
                             action->from_epoch),
              action->guest.job);
        check_start(world, action, is_restart);
        world_note(world, "restore");
        break;
    default:
        check_op(world, action);
    }
}

/* A guest of a gang is to be started again, and then another one turns out to be lost; or one is to
 * leave, and then its time limit is there in the same instant. */
static gboolean is_taken_back(const BerthCoreEffects *effects, guint at)
{
    const BerthCoreAction *action = &g_array_index(effects->actions, BerthCoreAction, at);
    for (guint i = at + 1; i < effects->actions->len; i++) {
        const BerthCoreAction *later = &g_array_index(effects->actions, BerthCoreAction, i);
        if (action->kind != BERTH_ACTION_RELEASE && action->kind != BERTH_ACTION_STOP &&
            (later->kind == BERTH_ACTION_RELEASE || later->kind == BERTH_ACTION_STOP) &&
            world_id_equal(&action->guest, &later->guest))
            return TRUE;
    }
    return FALSE;
}

void check_actions(World *world, const BerthCoreEffects *effects, gboolean is_restart)
{
    for (guint i = 0; i < effects->actions->len; i++)
        if (!is_taken_back(effects, i))
            check_action(world, &g_array_index(effects->actions, BerthCoreAction, i), is_restart);
}

/* --- fences ----------------------------------------------------------------------------------- */

static void note_failed_fence(World *world, const BerthGuestId *id)
{
    BerthCoreGuest guest;
    if (berth_core_get_guest(world->core, id->job, id->task, id->guest, &guest) &&
        guest.id.epoch == id->epoch && guest.phase == BERTH_GUEST_FENCING)
        world_job(world, id->job)->fence_failed_usec[id->task][id->guest] = world->now_usec;
}

/* Whatever becomes of the other guests of its gang. */
static void check_fence(World *world, const Job *job, guint32 task, guint32 guest)
{
    gint64 failed_usec = job->fence_failed_usec[task][guest];
    gint64 pause_usec = restore_config(world).start_backoff_usec;
    CHECK(world,
          failed_usec == 0 || job->tasks[task].guests[guest].phase != BERTH_GUEST_FENCING ||
              world->now_usec < failed_usec + pause_usec,
          job->job.id);
}

void check_fences(World *world, const BerthCoreEvent *event, const BerthCoreEffects *effects)
{
    if (event->kind == BERTH_EVENT_FENCE_FAILED)
        note_failed_fence(world, &event->guest);
    for (guint i = 0; i < effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(effects->actions, BerthCoreAction, i);
        const BerthGuestId *id = &action->guest;
        if (action->kind == BERTH_ACTION_FENCE)
            world_job(world, id->job)->fence_failed_usec[id->task][id->guest] = 0;
    }
    for (guint64 number = 1; number <= world->jobs->len; number++)
        for (guint32 task = 0; task < TASKS_MAX; task++)
            for (guint32 guest = 0; guest < GUESTS_MAX; guest++)
                check_fence(world, world_job(world, number), task, guest);
}
