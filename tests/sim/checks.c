/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what must be true of the core as seen from outside, after every event: where guests are,
 * that store and core agree, that each task ends once and nothing waits in vain. */
#include "tests/sim/world_internal.h"

const Task *check_old_task(const World *world, guint64 job, guint32 index)
{
    for (guint i = 0; i < world->changes->len; i++) {
        const Change *change = &g_array_index(world->changes, Change, i);
        if (change->job == job && change->index == index)
            return &change->old;
    }
    return NULL;
}

/* --- no guest in two places, no node overfilled ---------------------------------------------- */

static gboolean may_run(const Guest *guest)
{
    return guest->found.phase <= BERTH_FOUND_RUNNING && !guest->is_fenced;
}

static void check_places(World *world)
{
    for (guint i = 0; i < world->guests->len; i++) {
        const Guest *a = &g_array_index(world->guests, Guest, i);
        for (guint k = i + 1; k < world->guests->len; k++) {
            const Guest *b = &g_array_index(world->guests, Guest, k);
            CHECK(world,
                  !may_run(a) || !may_run(b) || a->found.id.job != b->found.id.job ||
                      a->found.id.task != b->found.id.task ||
                      a->found.id.guest != b->found.id.guest,
                  a->found.id.job);
        }
    }
}

/* What really lies on the hosts, strays included. */
static void check_capacity(World *world)
{
    for (guint32 node = 1; node <= world->hosts->len; node++) {
        const BerthResources *capacity = &world_host(world, node)->info.capacity;
        guint64 vcpus = 0;
        guint64 memory_mib = 0;
        for (guint i = 0; i < world->guests->len; i++) {
            const Guest *guest = &g_array_index(world->guests, Guest, i);
            if (guest->node != node || guest->is_opportunistic)
                continue;
            vcpus += guest->size.vcpus;
            memory_mib += guest->size.memory_mib + OVERHEAD_MIB;
        }
        CHECK(world, vcpus <= capacity->vcpus && memory_mib <= capacity->memory_mib, node);
        BerthCoreNode seen;
        CHECK(world, berth_core_get_node(world->core, node, &seen), node);
        CHECK(world, seen.reserved.vcpus <= capacity->vcpus, node);
        CHECK(world, seen.reserved.memory_mib <= capacity->memory_mib, node);
        const Host *host = world_host(world, node);
        CHECK(world, seen.admission == host->wanted && host->admission == host->wanted, node);
    }
}

/* --- the store has all ----------------------------------------------------------------------- */

/* What its host gives it is never more than what is held for it there. */
static void check_is_held(World *world, const BerthCoreGuest *guest)
{
    for (guint i = 0; i < world->guests->len; i++) {
        const Guest *real = &g_array_index(world->guests, Guest, i);
        if (world_id_equal(&real->found.id, &guest->id) && real->node == guest->node)
            CHECK(world,
                  real->size.vcpus <= guest->resources.vcpus &&
                      real->size.memory_mib <= guest->resources.memory_mib,
                  guest->id.job);
    }
}

static void check_guest(World *world, const Job *job, guint32 index, guint32 guest)
{
    const BerthCoreGuest *stored = &job->tasks[index].guests[guest];
    BerthCoreGuest now;
    gboolean has = berth_core_get_guest(world->core, job->job.id, index, guest, &now);
    CHECK(world, has == (stored->node != 0), job->job.id);
    if (!has)
        return;
    CHECK(world, now.node == stored->node && now.phase == stored->phase, job->job.id);
    CHECK(world, now.op == stored->op && now.to == stored->to, job->job.id);
    CHECK(world, now.op_serial == stored->op_serial, job->job.id);
    CHECK(world, now.is_opportunistic_there == stored->is_opportunistic_there, job->job.id);
    CHECK(world, now.is_opportunistic == stored->is_opportunistic, job->job.id);
    CHECK(world, now.is_frozen == stored->is_frozen, job->job.id);
    CHECK(world,
          now.balloon_mib == stored->balloon_mib && now.to_balloon_mib == stored->to_balloon_mib,
          job->job.id);
    CHECK(world,
          now.resources.vcpus == stored->resources.vcpus &&
              now.resources.memory_mib == stored->resources.memory_mib,
          job->job.id);
    CHECK(world,
          now.resources.vcpus >= 1 &&
              now.resources.vcpus <= MAX(job->job.ceiling.vcpus, job->job.resources.vcpus),
          job->job.id);
    CHECK(world,
          now.resources.memory_mib >= job->job.resources.memory_mib / 4 &&
              now.resources.memory_mib <=
                  MAX(job->job.ceiling.memory_mib, job->job.resources.memory_mib),
          job->job.id);
    CHECK(world,
          now.to_resources.vcpus == stored->to_resources.vcpus &&
              now.to_resources.memory_mib == stored->to_resources.memory_mib,
          job->job.id);
    CHECK(world,
          now.old_resources.vcpus == stored->old_resources.vcpus &&
              now.old_resources.memory_mib == stored->old_resources.memory_mib,
          job->job.id);
    CHECK(world, model_is_allowed(job, now.node), job->job.id);
    check_is_held(world, &now);
}

static void check_task(World *world, const Job *job, guint32 index)
{
    const Task *stored = &job->tasks[index];
    BerthCoreTask now;
    gboolean known = berth_core_get_task(world->core, job->job.id, index, &now);
    CHECK(world, known || stored->is_over, job->job.id);
    if (!known)
        return;
    CHECK(world, now.state == stored->record.state && now.phase == stored->record.phase,
          job->job.id);
    CHECK(world, now.epoch == stored->record.epoch, job->job.id);
    CHECK(world,
          now.freeze_reason == stored->record.freeze_reason &&
              now.frozen_usec == stored->record.frozen_usec &&
              now.freeze_is_open == stored->record.freeze_is_open &&
              now.freeze_to_disk == stored->record.freeze_to_disk &&
              now.wants_backing == stored->record.wants_backing,
          job->job.id);
    CHECK(world,
          now.checkpoint == stored->record.checkpoint &&
              now.checkpoint_epoch == stored->record.checkpoint_epoch &&
              now.checkpoint_ran_usec == stored->record.checkpoint_ran_usec &&
              now.checkpoint_resources.vcpus == stored->record.checkpoint_resources.vcpus &&
              now.checkpoint_resources.memory_mib ==
                  stored->record.checkpoint_resources.memory_mib &&
              now.checkpoint_last == stored->record.checkpoint_last &&
              now.checkpoint_requeues == stored->record.checkpoint_requeues &&
              now.checkpoints_mib == stored->record.checkpoints_mib &&
              now.checkpoint_space_mib == stored->record.checkpoint_space_mib,
          job->job.id);
    CHECK(world,
          now.checkpoint_wanted == stored->record.checkpoint_wanted &&
              now.checkpoint_open == stored->record.checkpoint_open &&
              now.checkpoint_reason == stored->record.checkpoint_reason &&
              now.checkpoint_stops == stored->record.checkpoint_stops &&
              now.checkpoint_usec == stored->record.checkpoint_usec,
          job->job.id);
    CHECK(world,
          now.migrate_to == stored->record.migrate_to &&
              now.migrate_reason == stored->record.migrate_reason &&
              now.migrate_is_unwanted == stored->record.migrate_is_unwanted &&
              now.waits_for_room == stored->record.waits_for_room,
          job->job.id);
    CHECK(world,
          now.resources.vcpus == stored->record.resources.vcpus &&
              now.resources.memory_mib == stored->record.resources.memory_mib,
          job->job.id);
    CHECK(world,
          now.resize_to.vcpus == stored->record.resize_to.vcpus &&
              now.resize_to.memory_mib == stored->record.resize_to.memory_mib &&
              now.resize_reason == stored->record.resize_reason,
          job->job.id);
    /* Why those that never started wait is said of all by one. */
    CHECK(world, now.epoch == 0 || now.reason == stored->record.reason, job->job.id);
    CHECK(world, !job->job.no_requeue || now.requeues == 0 || now.checkpoint_last > 0, job->job.id);
    for (guint32 i = 0; i < GUESTS_MAX; i++)
        check_guest(world, job, index, i);
}

/* --- nothing is stuck ------------------------------------------------------------------------ */

/* Who waits for others has others to wait for, and ends with the last hope. */
static void check_dependencies(World *world, const Job *job)
{
    if (job->job.n_dependencies == 0)
        return;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        if (record->epoch == 0 && !berth_job_state_is_final(record->state))
            CHECK(world, model_has_hope(world, job, i), job->job.id);
        if (record->state != BERTH_JOB_PENDING || record->phase != BERTH_GUEST_NONE)
            continue;
        BerthReason reason = berth_core_pending_reason(world->core, job->job.id, i);
        gboolean depends = !model_dependencies_met(world, job, i);
        if (model_hold(job, i) == BERTH_REASON_NONE && !world->storage_is_down)
            CHECK(world, (reason == BERTH_REASON_DEPENDENCY) == depends, job->job.id);
    }
}

static void check_job(World *world, const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        check_task(world, job, i);
    CHECK(world, job->job.array_throttle == 0 || model_n_active(job) <= job->job.array_throttle,
          job->job.id);
    check_dependencies(world, job);
}

/* --- each ends once, with its facts ----------------------------------------------------------- */

static const Guest *guest_of(const World *world, const BerthCoreTask *task)
{
    for (guint i = 0; i < world->guests->len; i++) {
        const Guest *guest = &g_array_index(world->guests, Guest, i);
        if (guest->found.id.job == task->job && guest->found.id.task == task->task &&
            guest->found.id.epoch == task->epoch)
            return guest;
    }
    return NULL;
}

/* Who COMPLETED has exited well, and waits in its guest for the release. */
static void check_outcome(World *world, const Job *job, const BerthCoreTask *record)
{
    world_note(world, "end");
    CHECK(world, record->end_usec >= record->start_usec, job->job.id);
    if (record->reason == BERTH_REASON_DEPENDENCY_NEVER) {
        CHECK(world, record->epoch == 0 && !model_has_hope(world, job, record->task), job->job.id);
        world_note(world, "dependency never");
    }
    if (record->state != BERTH_JOB_COMPLETED)
        return;
    if (job->job.guests > 1)
        return; /* each of its guests has its own instants */
    const Guest *guest = guest_of(world, record);
    CHECK(world, guest != NULL && guest->found.phase == BERTH_FOUND_EXITED, job->job.id);
    CHECK(world, guest->found.exit.status == 0 && guest->found.exit.signal == 0, job->job.id);
    CHECK(world, guest->found.start_usec == record->start_usec, job->job.id);
    CHECK(world, guest->found.end_usec == record->end_usec, job->job.id);
    world_note(world, "completed");
}

/* It is given up once so many guests in a row were lost without a checkpoint between them. */
static void check_requeues(World *world, const BerthCoreTask *old, const BerthCoreTask *now)
{
    guint32 in_vain = old->requeues - old->checkpoint_requeues;
    CHECK(world,
          now->requeues == old->requeues || (now->requeues == old->requeues + 1 && in_vain < 3),
          old->job);
}

static void check_change(World *world, const Change *change)
{
    const Job *job = world_job(world, change->job);
    const BerthCoreTask *old = &change->old.record;
    const BerthCoreTask *now = &job->tasks[change->index].record;
    CHECK(world, now->epoch >= old->epoch, change->job);
    CHECK(world, !change->old.is_over, change->job);
    check_requeues(world, old, now);
    if (berth_job_state_is_final(old->state))
        CHECK(world, now->state == old->state && now->reason == old->reason, change->job);
    else if (berth_job_state_is_final(now->state))
        check_outcome(world, job, now);
    gboolean has_guest = now->phase != BERTH_GUEST_NONE && now->phase <= BERTH_GUEST_STOPPING;
    if (has_guest)
        CHECK(world,
              (now->state == BERTH_JOB_SUSPENDED) == job->tasks[change->index].guests[0].is_frozen,
              change->job);
    else
        CHECK(world,
              now->state != BERTH_JOB_SUSPENDED ||
                  (now->freeze_to_disk && savers_has(world, change->job, change->index,
                                                     now->checkpoint, now->checkpoint_epoch)),
              change->job);
}

/* By itself it is saved only if that is asked for, and not before it has run for so long. */
static void check_due(World *world, const Change *change)
{
    const Job *job = world_job(world, change->job);
    const BerthCoreTask *now = &job->tasks[change->index].record;
    if (now->checkpoint_wanted != BERTH_REASON_CHECKPOINT_DUE ||
        change->old.record.checkpoint_wanted == BERTH_REASON_CHECKPOINT_DUE)
        return;
    gint64 every_usec = job->job.checkpoint_every_usec;
    gint64 from_usec =
        MAX(change->old.record.checkpoint_usec, change->old.record.checkpoint_missed_usec);
    CHECK(world, every_usec > 0, change->job);
    CHECK(world, world->now_usec >= MAX(from_usec, now->start_usec) + every_usec, change->job);
}

/* Each task is reported once. */
static void check_changes(World *world, gboolean is_restart)
{
    for (guint i = 0; i < world->changes->len; i++) {
        const Change *change = &g_array_index(world->changes, Change, i);
        CHECK(world,
              is_restart || &change->old == check_old_task(world, change->job, change->index),
              change->job);
        check_change(world, change);
        check_due(world, change);
    }
}

void check_world(World *world, const BerthCoreEffects *effects, gboolean is_restart)
{
    berth_core_assert_invariants(world->core);
    check_places(world);
    check_capacity(world);
    for (guint64 number = 1; number <= world->jobs->len; number++)
        if (!world_job(world, number)->is_over)
            check_job(world, world_job(world, number));
    check_changes(world, is_restart);
    check_actions(world, effects, is_restart);
}
