/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the test's own idea of what jobs may do: dependencies, limits, fair share, maintenance, how
 * long one waits and how often its guests move. Reads the store and what was asked for, never the
 * core's own opinion but to compare. */
#include "tests/sim/world_internal.h"

#include <math.h>
#include <string.h>

/* The core counts a sixteenth of a half-life before it decays: 2 % too much of steady use. */
#define USE_TOLERANCE 0.04

/* Of the job that comes first, while every node can be used: a time limit, what was lost of it, the
 * ways of its end through the queues of messages, and once more for who was starting. */
#define WAIT_MAX_USEC (240 * (gint64)G_USEC_PER_SEC)

#define MINUTE_USEC (60 * (gint64)G_USEC_PER_SEC)

/* --- dependencies --------------------------------------------------------------------------- */

gboolean model_job_completed(const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i].record.state != BERTH_JOB_COMPLETED)
            return FALSE;
    return !job->is_refused;
}

static gboolean has_started(const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i].record.epoch == 0 && !job->tasks[i].is_over)
            return FALSE;
    return TRUE;
}

static gboolean has_elder_sibling(const World *world, const Job *job)
{
    for (guint64 number = 1; number < job->job.id; number++) {
        const Job *other = world_job(world, number);
        if (!other->is_over && other->job.uid == job->job.uid &&
            other->job.family == job->job.family)
            return TRUE;
    }
    return FALSE;
}

/* Its tasks, of which there are several, come each after the one of its index. */
static gboolean is_by_element(const Job *job, const BerthCoreDependency *dependency)
{
    return dependency->kind == BERTH_AFTER_CORR && job->n_tasks > 1;
}

static gboolean is_met_by_element(const Job *other, guint32 task)
{
    return !other->is_refused && task < other->n_tasks && other->tasks[task].is_over &&
           other->tasks[task].record.state == BERTH_JOB_COMPLETED;
}

static gboolean is_met(const World *world, const Job *job, const BerthCoreDependency *dependency,
                       guint32 task)
{
    if (dependency->kind == BERTH_SINGLETON)
        return job->job.family == 0 || !has_elder_sibling(world, job);
    const Job *other = world_job(world, dependency->job);
    if (is_by_element(job, dependency))
        return is_met_by_element(other, task);
    switch (dependency->kind) {
    case BERTH_AFTER_START:
        return other->is_over || has_started(other);
    case BERTH_AFTER_ANY:
        return other->is_over;
    case BERTH_AFTER_OK:
    case BERTH_AFTER_CORR:
        return other->is_over && model_job_completed(other);
    default:
        return other->is_over && !model_job_completed(other);
    }
}

gboolean model_dependencies_met(const World *world, const Job *job, guint32 task)
{
    for (gsize i = 0; i < job->job.n_dependencies; i++)
        if (!is_met(world, job, &job->dependencies[i], task))
            return FALSE;
    return TRUE;
}

/* Whatever happens now, it stays met or not. */
static gboolean is_decided(const World *world, const Job *job,
                           const BerthCoreDependency *dependency, guint32 task)
{
    if (dependency->kind == BERTH_SINGLETON)
        return FALSE;
    const Job *other = world_job(world, dependency->job);
    if (!is_by_element(job, dependency) || other->is_refused)
        return other->is_over;
    return task >= other->n_tasks || other->tasks[task].is_over;
}

gboolean model_has_hope(const World *world, const Job *job, guint32 task)
{
    for (gsize i = 0; i < job->job.n_dependencies; i++)
        if (is_decided(world, job, &job->dependencies[i], task) &&
            !is_met(world, job, &job->dependencies[i], task))
            return FALSE;
    return TRUE;
}

void model_name_completed(World *world, const Job *job, BerthCoreJob *told,
                          BerthTaskRange *completed)
{
    told->completed = completed;
    told->n_completed = 0;
    for (gsize i = 0; i < job->job.n_dependencies; i++) {
        if (!is_by_element(job, &job->dependencies[i]))
            continue;
        const Job *other = world_job(world, job->dependencies[i].job);
        for (guint32 task = 0; task < other->n_tasks; task++)
            if (is_met_by_element(other, task))
                completed[told->n_completed++] = (BerthTaskRange){other->job.id, {task, task, 1}};
    }
}

/* --- limits --------------------------------------------------------------------------------- */

guint model_n_active(const Job *job)
{
    guint count = 0;
    for (guint32 i = 0; i < job->n_tasks; i++)
        count += job->tasks[i].record.phase != BERTH_GUEST_NONE;
    return count;
}

static gboolean is_below(const World *world, const Job *job, guint owner)
{
    for (gint at = (gint)world_user(job->job.account, job->job.uid); at >= 0;
         at = world->owners[at].above)
        if ((guint)at == owner)
            return TRUE;
    return FALSE;
}

/* What a guest of it has, and is to have where it is being given more; also if it is stopped meanwhile, until its move
 * for that is answered. */
static BerthResources held_by(const Job *job, const Task *task)
{
    const BerthCoreTask *record = &task->record;
    const BerthCoreGuest *guest = &task->guests[0];
    BerthResources held = record->resources.vcpus > 0 ? record->resources : job->job.resources;
    BerthResources to = guest->op == BERTH_OP_MIGRATING ? guest->to_resources : record->resize_to;
    held.vcpus = MAX(held.vcpus, MAX(to.vcpus, record->resize_to.vcpus));
    held.memory_mib = MAX(held.memory_mib, MAX(to.memory_mib, record->resize_to.memory_mib));
    return held;
}

/* What it takes to start it. */
static BerthResources start_of(const Job *job, const BerthCoreTask *record)
{
    gboolean is_saved = record->checkpoint_epoch > 0 && record->checkpoint_resources.vcpus > 0;
    return is_saved ? record->checkpoint_resources : job->job.resources;
}

static void add_task(BerthCoreLimits *sum, const Job *job, BerthResources each)
{
    guint guests = MAX(job->job.guests, 1);
    sum->running_tasks++;
    sum->vcpus += guests * each.vcpus;
    sum->memory_mib += guests * (each.memory_mib + OVERHEAD_MIB);
}

static BerthCoreLimits running_below(const World *world, guint owner)
{
    BerthCoreLimits sum = {0};
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        if (job->is_over || !is_below(world, job, owner))
            continue;
        sum.jobs++;
        for (guint32 i = 0; i < job->n_tasks; i++)
            if (job->tasks[i].record.phase != BERTH_GUEST_NONE)
                add_task(&sum, job, held_by(job, &job->tasks[i]));
    }
    return sum;
}

gboolean model_exceeds_limits(const World *world, const Job *job, const BerthCoreTask *more)
{
    for (gint at = (gint)world_user(job->job.account, job->job.uid); at >= 0;
         at = world->owners[at].above) {
        const BerthCoreLimits *limits = &world->owners[at].limits;
        BerthCoreLimits sum = running_below(world, (guint)at);
        if (more != NULL)
            add_task(&sum, job, start_of(job, more));
        if ((limits->running_tasks > 0 && sum.running_tasks > limits->running_tasks) ||
            (limits->vcpus > 0 && sum.vcpus > limits->vcpus) ||
            (limits->memory_mib > 0 && sum.memory_mib > limits->memory_mib))
            return TRUE;
    }
    return FALSE;
}

/* JOB itself is in the store already. */
gboolean model_may_add_job(const World *world, const Job *job)
{
    for (gint at = (gint)world_user(job->job.account, job->job.uid); at >= 0;
         at = world->owners[at].above) {
        guint32 most = world->owners[at].limits.jobs;
        if (most > 0 && running_below(world, (guint)at).jobs > most)
            return FALSE;
    }
    return TRUE;
}

/* --- fair share ----------------------------------------------------------------------------- */

static double rate_of(const Job *job)
{
    double rate = 0;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        BerthResources held = held_by(job, &job->tasks[i]);
        if (job->tasks[i].record.phase != BERTH_GUEST_NONE)
            rate += MAX((double)held.vcpus * MIB_PER_VCPU, (double)held.memory_mib + OVERHEAD_MIB);
    }
    return rate * MAX(job->job.guests, 1);
}

static void add_rates(World *world)
{
    for (guint i = 0; i < N_OWNERS; i++)
        world->owners[i].rate = 0;
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        double rate = job->is_over ? 0 : rate_of(job);
        for (gint at = (gint)world_user(job->job.account, job->job.uid); rate > 0 && at >= 0;
             at = world->owners[at].above)
            world->owners[at].rate += rate;
    }
}

static void reckon_use(World *world)
{
    double half_life = (double)world->tunings[BERTH_TUNING_HALF_LIFE_USEC] / G_USEC_PER_SEC;
    double passed = (double)(world->now_usec - world->reckoned_usec) / G_USEC_PER_SEC;
    double kept = exp2(-passed / half_life);
    if (world->now_usec <= world->reckoned_usec)
        return;
    world->reckoned_usec = world->now_usec;
    add_rates(world);
    for (guint i = 0; i < N_OWNERS; i++) {
        Owner *owner = &world->owners[i];
        owner->used = owner->used * kept + owner->rate * half_life / G_LN2 * (1 - kept);
    }
}

void model_check_use(World *world)
{
    for (guint32 i = 0; i < N_OWNERS; i++) {
        const Owner *owner = &world->owners[i];
        gboolean is_user = i >= N_ACCOUNTS;
        BerthCoreUse use = {0};
        berth_core_get_use(world->core, is_user ? (i - N_ACCOUNTS) / N_UIDS : i,
                           is_user ? (i - N_ACCOUNTS) % N_UIDS : 0, is_user, &use);
        double off = fabs((double)use.used_mib_sec - owner->used);
        CHECK(world, off <= USE_TOLERANCE * owner->used + 2 * MIB_PER_VCPU, i);
    }
}

/* --- where and when ------------------------------------------------------------------------- */

gboolean model_is_allowed(const Job *job, guint32 node)
{
    return job->job.n_nodes == 0 || job->nodes[0] == node || job->nodes[1] == node;
}

gboolean model_can_move(const World *world, const Job *job)
{
    return job->job.may_move && job->job.guests <= 1 &&
           (world->config.features & BERTH_FEATURE_MIGRATION);
}

gint64 model_time_left_usec(const World *world, const Job *job, const Task *task)
{
    gint64 limit_usec = job->job.time_limit_usec;
    if (limit_usec == 0)
        limit_usec = world->tunings[BERTH_TUNING_ASSUMED_LIMIT_USEC];
    return MAX(limit_usec - task->record.ran_usec, 1);
}

gboolean model_is_blocked(const World *world, guint32 node, gint64 from_usec, gint64 to_usec)
{
    for (guint i = 0; i < N_WINDOWS; i++) {
        const Window *window = &world->windows[i];
        if (window->is_set && (window->nodes[0] == node || window->nodes[1] == node) &&
            window->start_usec < to_usec && from_usec < window->end_usec)
            return TRUE;
    }
    return FALSE;
}

/* --- nobody waits for ever ------------------------------------------------------------------ */

static gint64 points_of(const World *world, const Job *job)
{
    return world->tunings[BERTH_TUNING_WEIGHT_QOS] * world->qos_permille[job->job.qos] / 1000;
}

gboolean model_comes_before(const World *world, const Job *a, const Job *b)
{
    gint64 points_a = points_of(world, a);
    gint64 points_b = points_of(world, b);
    if (a->job.priority != b->job.priority)
        return a->job.priority > b->job.priority;
    return points_a != points_b ? points_a > points_b : a->job.id < b->job.id;
}

/* Every node can be used for as long as anybody wants. */
static gboolean is_calm(const World *world)
{
    if (world->storage_is_down)
        return FALSE;
    for (guint32 node = 1; node <= world->hosts->len; node++) {
        const Host *host = world_host(world, node);
        BerthCoreNode seen;
        if (!berth_core_get_node(world->core, node, &seen) || seen.state != BERTH_NODE_UP ||
            seen.strays > 0 || seen.closed_until_usec > 0 || host->wanted != BERTH_ADMISSION_OPEN ||
            host->info.cannot_start || model_is_blocked(world, node, world->now_usec, G_MAXINT64))
            return FALSE;
    }
    return TRUE;
}

BerthReason model_hold(const Job *job, guint32 index)
{
    if ((job->job.held && job->job.held_by_operator) || (job->held_by_operator >> index & 1) != 0)
        return BERTH_REASON_HELD_BY_OPERATOR;
    if (job->job.held || (job->held_by_user >> index & 1) != 0)
        return BERTH_REASON_HELD_BY_USER;
    return BERTH_REASON_NONE;
}

static gboolean wants_to_start(const World *world, const Job *job)
{
    guint active = model_n_active(job);
    if (job->is_over || job->job.held ||
        (job->job.array_throttle > 0 && active >= job->job.array_throttle))
        return FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        if (record->state == BERTH_JOB_PENDING && record->phase == BERTH_GUEST_NONE &&
            model_hold(job, i) == BERTH_REASON_NONE && model_dependencies_met(world, job, i) &&
            record->not_before_usec <= world->now_usec)
            return !model_exceeds_limits(world, job, record);
    }
    return FALSE;
}

static void check_waiting(World *world)
{
    const Job *first = NULL;
    gboolean by_use = world->tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] > 0;
    for (guint64 number = 1; !by_use && number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        if ((first == NULL || model_comes_before(world, job, first)) && wants_to_start(world, job))
            first = job;
    }
    if (first == NULL || first->job.id != world->first_waiting || !is_calm(world)) {
        world->first_waiting = first != NULL ? first->job.id : 0;
        world->first_since_usec = world->now_usec;
    }
    CHECK(world, world->now_usec - world->first_since_usec <= WAIT_MAX_USEC, world->first_waiting);
}

void model_pass_time(World *world)
{
    if (world->reckoned_usec == world->now_usec)
        return;
    reckon_use(world);
    check_waiting(world);
}

void model_forget(World *world)
{
    world->first_waiting = 0;
    for (guint64 number = 1; number <= world->jobs->len; number++)
        memset(world_job(world, number)->op_ended_usec, 0,
               sizeof world_job(world, number)->op_ended_usec);
    for (guint64 number = 1; number <= world->jobs->len; number++)
        memset(world_job(world, number)->balloon_usec, 0,
               sizeof world_job(world, number)->balloon_usec);
    for (guint64 number = 1; number <= world->jobs->len; number++)
        memset(world_job(world, number)->fence_failed_usec, 0,
               sizeof world_job(world, number)->fence_failed_usec);
}

/* --- moves ---------------------------------------------------------------------------------- */

static gboolean is_move(BerthGuestOp op)
{
    return op == BERTH_OP_MIGRATING || op == BERTH_OP_CHECKPOINTING;
}

/* At NODE, either end; 0 = in the cluster. What is written out at its time limit cannot wait. */
static guint moves_at(const World *world, guint32 node)
{
    guint count = 0;
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        for (guint32 i = 0; !job->is_over && i < job->n_tasks; i++) {
            const BerthCoreGuest *guest = &job->tasks[i].guests[0];
            gboolean is_here = node == 0 || guest->node == node ||
                               (guest->op == BERTH_OP_MIGRATING && guest->to == node);
            count += guest->node != 0 && is_move(guest->op) && is_here && !guest->waits_for_room &&
                     guest->op_reason != BERTH_REASON_TIME_LIMIT;
        }
    }
    return count;
}

static gboolean has_begun(const World *world, const BerthCoreAction *action)
{
    const Task *old = check_old_task(world, action->guest.job, action->guest.task);
    return old != NULL &&
           (old->guests[0].op_serial != action->serial || old->guests[0].waits_for_room);
}

static gboolean begins_move(const World *world, const BerthCoreAction *action)
{
    return (action->kind == BERTH_ACTION_MIGRATE || action->kind == BERTH_ACTION_CHECKPOINT) &&
           action->reason != BERTH_REASON_TIME_LIMIT && has_begun(world, action);
}

/* Those that could not wait may have begun after it, beyond the cap of the cluster. */
static guint begun_after(const World *world, const BerthCoreEffects *effects, guint at)
{
    guint count = 0;
    for (guint i = at + 1; i < effects->actions->len; i++)
        count += begins_move(world, &g_array_index(effects->actions, BerthCoreAction, i));
    return count;
}

static void check_caps(World *world, const BerthCoreEffects *effects, guint at)
{
    const BerthCoreAction *action = &g_array_index(effects->actions, BerthCoreAction, at);
    gint64 of_node = world->tunings[BERTH_TUNING_MOVES_PER_NODE];
    gint64 of_cluster =
        world->hosts->len * world->tunings[BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] / 1000;
    CHECK(world, moves_at(world, action->node) <= of_node, action->node);
    if (action->kind == BERTH_ACTION_MIGRATE)
        CHECK(world, moves_at(world, action->to) <= of_node, action->to);
    if (action->reason == BERTH_REASON_BALANCE || action->reason == BERTH_REASON_DEFRAGMENT ||
        action->reason == BERTH_REASON_PROMOTION || action->reason == BERTH_REASON_DRAIN ||
        action->reason == BERTH_REASON_AT_LIMIT)
        CHECK(world,
              moves_at(world, 0) <= MAX(of_cluster, of_node) + begun_after(world, effects, at),
              action->guest.job);
}

/* It stands still, or stalls, for want of memory: that does not wait. */
static gboolean lacks_memory(const Job *job, const BerthCoreAction *action)
{
    guint32 index = action->guest.task;
    return action->reason == BERTH_REASON_AT_LIMIT &&
           (job->stalled[index] || job->tasks[index].guests[0].is_frozen);
}

/* What nobody needs leaves a guest alone after each thing that was done to it. */
static void check_pace(World *world, const BerthCoreAction *action)
{
    Job *job = world_job(world, action->guest.job);
    guint32 index = action->guest.task;
    gboolean can_wait =
        action->reason == BERTH_REASON_BALANCE || action->reason == BERTH_REASON_DEFRAGMENT ||
        action->reason == BERTH_REASON_PROMOTION || action->reason == BERTH_REASON_AT_LIMIT;
    if (action->kind == BERTH_ACTION_MIGRATE && can_wait && !lacks_memory(job, action) &&
        job->op_ended_usec[index] > 0)
        CHECK(world,
              world->now_usec - job->op_ended_usec[index] >=
                  world->tunings[BERTH_TUNING_COOLDOWN_USEC],
              action->guest.job);
    if (world->now_usec - job->minute_usec[index] >= MINUTE_USEC) {
        job->minute_usec[index] = world->now_usec;
        job->moves[index] = 0;
    }
    job->moves[index]++;
    CHECK(world, job->moves[index] <= WORLD_MOVES_PER_MINUTE_MAX, action->guest.job);
}

static gboolean is_balloon(const BerthCoreGuest *guest)
{
    return guest->op == BERTH_OP_RESIZING && guest->to_balloon_mib != guest->balloon_mib &&
           guest->op_reason != BERTH_REASON_PROMOTION;
}

/* Nobody is asked for memory again and again. */
static void check_balloons(World *world, const BerthCoreAction *action)
{
    gint64 *asked_usec = &world_job(world, action->guest.job)->balloon_usec[action->guest.task];
    CHECK(world,
          *asked_usec == 0 ||
              world->now_usec - *asked_usec >= world->tunings[BERTH_TUNING_COOLDOWN_USEC],
          action->guest.job);
    *asked_usec = world->now_usec;
}

static gboolean is_asked_for(BerthReason reason)
{
    return reason == BERTH_REASON_CHECKPOINTED_BY_USER ||
           reason == BERTH_REASON_CHECKPOINTED_BY_OPERATOR ||
           reason == BERTH_REASON_CHECKPOINT_DUE || reason == BERTH_REASON_FROZEN_BY_USER ||
           reason == BERTH_REASON_FROZEN_BY_OPERATOR;
}

void model_check_moves(World *world, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(effects->actions, BerthCoreAction, i);
        if (action->kind == BERTH_ACTION_RESIZE && action->balloon_mib > 0 &&
            has_begun(world, action))
            check_balloons(world, action);
        if (!begins_move(world, action))
            continue;
        check_caps(world, effects, i);
        if (!is_asked_for(action->reason))
            check_pace(world, action);
    }
    for (guint i = 0; i < world->changes->len; i++) {
        const Change *change = &g_array_index(world->changes, Change, i);
        Job *job = world_job(world, change->job);
        const BerthCoreGuest *now = &job->tasks[change->index].guests[0];
        if (change->old.guests[0].op != BERTH_OP_NONE && now->op == BERTH_OP_NONE &&
            !change->old.guests[0].waits_for_room && !is_balloon(&change->old.guests[0])) {
            job->op_ended_usec[change->index] = world->now_usec;
            job->stalled[change->index] = FALSE;
        }
    }
}
