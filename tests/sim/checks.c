/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what must be true of the core as seen from outside, after every event. */
#include "tests/sim/world_internal.h"

#define OVERHEAD_MIB 64u

#define CHECK(world, condition, number)                                                            \
    G_STMT_START                                                                                   \
    {                                                                                              \
        if (!(condition))                                                                          \
            g_error("seed %u: job or node %u: not (%s); log:\n%s", (world)->config.seed,           \
                    (guint)(number), #condition, (world)->log->str);                               \
    }                                                                                              \
    G_STMT_END

static const Job *job_of(const GArray *jobs, guint64 number)
{
    return &g_array_index(jobs, Job, number - 1);
}

/* --- no guest in two places, no node overfilled ---------------------------------------------- */

static void check_places(World *world)
{
    for (guint i = 0; i < world->guests->len; i++) {
        const Guest *a = &g_array_index(world->guests, Guest, i);
        for (guint k = i + 1; k < world->guests->len; k++) {
            const Guest *b = &g_array_index(world->guests, Guest, k);
            gboolean both_run = a->found.phase <= BERTH_FOUND_RUNNING && !a->is_fenced &&
                                b->found.phase <= BERTH_FOUND_RUNNING && !b->is_fenced;
            CHECK(world,
                  !both_run || a->found.id.job != b->found.id.job ||
                      a->found.id.guest != b->found.id.guest,
                  a->found.id.job);
        }
    }
}

/* What really lies on the hosts, strays included. */
static void check_capacity(World *world)
{
    for (guint32 node = 1; node <= world->hosts->len; node++) {
        const Host *host = &g_array_index(world->hosts, Host, node - 1);
        guint64 vcpus = 0;
        guint64 memory_mib = 0;
        for (guint i = 0; i < world->guests->len; i++) {
            const Guest *guest = &g_array_index(world->guests, Guest, i);
            if (guest->node != node)
                continue;
            const Job *job = job_of(world->jobs, guest->found.id.job);
            vcpus += job->job.resources.vcpus;
            memory_mib += job->job.resources.memory_mib + OVERHEAD_MIB;
        }
        if (world->config.features == 0) {
            CHECK(world, vcpus <= host->info.capacity.vcpus, node);
            CHECK(world, memory_mib <= host->info.capacity.memory_mib, node);
        }
        BerthCoreNode seen;
        CHECK(world, berth_core_get_node(world->core, node, &seen), node);
        CHECK(world, seen.reserved.vcpus <= host->info.capacity.vcpus, node);
        CHECK(world, seen.reserved.memory_mib <= host->info.capacity.memory_mib, node);
    }
}

/* --- no job lost, each ends once ------------------------------------------------------------- */

static void check_jobs(World *world, const GArray *before)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = job_of(world->jobs, number);
        BerthCoreTask task;
        gboolean known = berth_core_get_task(world->core, number, 0, &task);
        if (job->is_over)
            continue;
        CHECK(world, known, number);
        CHECK(world, task.state == job->task.state && task.phase == job->task.phase, number);
        CHECK(world, task.epoch == job->task.epoch, number);
        CHECK(world, !job->job.no_requeue || task.requeues == 0, number);
        CHECK(world, task.requeues <= 3, number);
    }
    for (guint64 number = 1; before != NULL && number <= before->len; number++) {
        const Job *old = job_of(before, number);
        const Job *now = job_of(world->jobs, number);
        CHECK(world, now->task.epoch >= old->task.epoch, number);
        if (berth_job_state_is_final(old->task.state))
            CHECK(world, now->task.state == old->task.state && now->task.reason == old->task.reason,
                  number);
    }
}

/* --- no action without a cause --------------------------------------------------------------- */

static gboolean is_allowed(const Job *job, guint32 node)
{
    return job->job.n_nodes == 0 || job->nodes[0] == node || job->nodes[1] == node;
}

static gboolean could_hold(const World *world, guint32 node, const Job *job)
{
    const Host *host = &g_array_index(world->hosts, Host, node - 1);
    return job->job.resources.vcpus <= host->info.capacity.vcpus &&
           job->job.resources.memory_mib + OVERHEAD_MIB <= host->info.capacity.memory_mib;
}

static gboolean waits_in_order(World *world, guint64 number)
{
    BerthReason reason = berth_core_pending_reason(world->core, number, 0);
    return reason == BERTH_REASON_RESOURCES || reason == BERTH_REASON_PRIORITY;
}

/* Nobody who comes earlier and could use the node is still waiting. */
static void check_not_overtaken(World *world, const Job *started, guint32 node)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *other = job_of(world->jobs, number);
        gboolean is_before =
            other->job.priority > started->job.priority ||
            (other->job.priority == started->job.priority && other->job.id < started->job.id);
        if (!is_before || other->is_over || !waits_in_order(world, number))
            continue;
        CHECK(world, !is_allowed(other, node) || !could_hold(world, node, other), number);
    }
}

static void check_start(World *world, const GArray *before, const BerthCoreAction *action)
{
    const Job *job = job_of(world->jobs, action->guest.job);
    CHECK(world, job->task.state == BERTH_JOB_RUNNING, action->guest.job);
    CHECK(world, job->task.phase == BERTH_GUEST_STARTING, action->guest.job);
    CHECK(world, is_allowed(job, action->node) && !job->job.held, action->guest.job);
    CHECK(world, !action->is_opportunistic || job->job.guests == 1, action->guest.job);
    if (before == NULL)
        return;
    const Job *old = job_of(before, action->guest.job);
    gboolean again = old->task.phase == BERTH_GUEST_STARTING &&
                     old->task.epoch == action->guest.epoch &&
                     old->guests[action->guest.guest].node == action->node;
    CHECK(world, again || old->task.epoch + 1 == action->guest.epoch, action->guest.job);
    if (!again && world->config.policy == BERTH_POLICY_FCFS && world->config.features == 0)
        check_not_overtaken(world, job, action->node);
    world_note(world, again ? "start again" : "start");
    if (action->is_opportunistic)
        world_note(world, "slack");
}

static void check_release(World *world, const BerthCoreAction *action)
{
    const Job *job = job_of(world->jobs, action->guest.job);
    gboolean is_current = job->task.phase != BERTH_GUEST_NONE &&
                          job->task.epoch == action->guest.epoch &&
                          job->guests[action->guest.guest].node == action->node;
    if (is_current)
        CHECK(world, job->guests[action->guest.guest].phase == BERTH_GUEST_RELEASING,
              action->guest.job);
    else
        world_note(world, "stray");
}

static void check_op(World *world, const BerthCoreAction *action)
{
    const Job *job = job_of(world->jobs, action->guest.job);
    const BerthCoreGuest *guest = &job->guests[action->guest.guest];
    guint32 features = world->config.features;
    /* One that is being stopped may be asked for again, to know where it is. */
    CHECK(world,
          guest->phase == BERTH_GUEST_RUNNING ||
              (guest->phase == BERTH_GUEST_STOPPING && action->kind == BERTH_ACTION_MIGRATE),
          action->guest.job);
    CHECK(world, guest->node == action->node && job->job.guests == 1, action->guest.job);
    if (action->kind == BERTH_ACTION_MIGRATE) {
        CHECK(world, guest->op == BERTH_OP_MIGRATING && guest->to == action->to, action->guest.job);
        CHECK(world, job->job.may_move && (features & BERTH_FEATURE_MIGRATION), action->guest.job);
        CHECK(world, is_allowed(job, action->to), action->guest.job);
        world_note(world, "migrate");
    } else if (action->kind == BERTH_ACTION_CHECKPOINT) {
        CHECK(world, job->job.may_checkpoint && (features & BERTH_FEATURE_CHECKPOINT),
              action->guest.job);
        world_note(world, "checkpoint");
    } else {
        world_note(world, "promoted");
    }
    if (action->reason == BERTH_REASON_ROOM_NEEDED)
        world_note(world, "room needed");
    if (action->reason == BERTH_REASON_PRESSURE)
        world_note(world, "pressure");
}

static void check_action(World *world, const GArray *before, const BerthCoreAction *action)
{
    const Job *job = job_of(world->jobs, action->guest.job);
    BerthCoreNode node;
    CHECK(world, berth_core_get_node(world->core, action->node, &node), action->node);
    CHECK(world,
          node.state == (action->kind == BERTH_ACTION_FENCE ? BERTH_NODE_LOST : BERTH_NODE_UP),
          action->node);
    switch (action->kind) {
    case BERTH_ACTION_START:
        check_start(world, before, action);
        break;
    case BERTH_ACTION_STOP:
        CHECK(world, job->task.phase == BERTH_GUEST_STOPPING, action->guest.job);
        CHECK(world, job->task.stop_reason != BERTH_REASON_NONE, action->guest.job);
        CHECK(world, action->grace_usec > 0, action->guest.job);
        world_note(world, "stop");
        break;
    case BERTH_ACTION_RELEASE:
        check_release(world, action);
        break;
    case BERTH_ACTION_FENCE:
        CHECK(world, job->guests[action->guest.guest].phase == BERTH_GUEST_FENCING,
              action->guest.job);
        CHECK(world, world->config.can_fence, action->guest.job);
        break;
    case BERTH_ACTION_RESTORE:
        CHECK(world, job->task.checkpoint_epoch > 0, action->guest.job);
        check_start(world, before, action);
        world_note(world, "restore");
        break;
    case BERTH_ACTION_MIGRATE:
    case BERTH_ACTION_CHECKPOINT:
    case BERTH_ACTION_RESIZE:
        check_op(world, action);
        break;
    default:
        CHECK(world, FALSE, action->guest.job);
    }
}

/* --- outcomes have their facts ---------------------------------------------------------------- */

static const Guest *guest_of(const World *world, const BerthCoreTask *task)
{
    for (guint i = 0; i < world->guests->len; i++) {
        const Guest *guest = &g_array_index(world->guests, Guest, i);
        if (guest->found.id.job == task->job && guest->found.id.epoch == task->epoch)
            return guest;
    }
    return NULL;
}

/* Who COMPLETED has exited well, and waits in its guest for the release. */
static void check_outcome(World *world, const Job *job)
{
    world_note(world, "end");
    CHECK(world, job->task.end_usec >= job->task.start_usec, job->job.id);
    if (job->task.state != BERTH_JOB_COMPLETED)
        return;
    if (job->job.guests > 1)
        return; /* each of its guests has its own instants */
    const Guest *guest = guest_of(world, &job->task);
    CHECK(world, guest != NULL && guest->found.phase == BERTH_FOUND_EXITED, job->job.id);
    CHECK(world, guest->found.exit.status == 0 && guest->found.exit.signal == 0, job->job.id);
    CHECK(world, guest->found.start_usec == job->task.start_usec, job->job.id);
    CHECK(world, guest->found.end_usec == job->task.end_usec, job->job.id);
    world_note(world, "completed");
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

void check_world(World *world, const GArray *before, const BerthCoreEffects *effects)
{
    berth_core_assert_invariants(world->core);
    check_places(world);
    check_capacity(world);
    check_jobs(world, before);
    for (guint i = 0; i < effects->actions->len; i++)
        if (!is_taken_back(effects, i))
            check_action(world, before, &g_array_index(effects->actions, BerthCoreAction, i));
    for (guint64 number = 1; before != NULL && number <= before->len; number++) {
        const Job *job = job_of(world->jobs, number);
        if (berth_job_state_is_final(job->task.state) &&
            !berth_job_state_is_final(job_of(before, number)->task.state))
            check_outcome(world, job);
    }
}
