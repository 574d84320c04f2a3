/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what users and operators of the fake world want saved, put back and frozen to disk, what of that was really
 * saved, and that nothing else is gone on from. */
#include "tests/sim/world_internal.h"

#define SECOND_USEC ((gint64)G_USEC_PER_SEC)

/* --- what there is -------------------------------------------------------------------------- */

void savers_saved(World *world, const BerthCoreAction *order, const BerthResources *size)
{
    Saved saved = {order->guest.job, order->guest.task, order->checkpoint, order->guest.epoch,
                   *size};
    g_array_append_val(world->saved, saved);
}

const Saved *savers_find(const World *world, guint64 job, guint32 task, guint32 serial)
{
    for (guint i = 0; i < world->saved->len; i++) {
        const Saved *saved = &g_array_index(world->saved, Saved, i);
        if (saved->job == job && saved->task == task && saved->serial == serial)
            return saved;
    }
    return NULL;
}

gboolean savers_has(const World *world, guint64 job, guint32 task, guint32 serial, guint32 epoch)
{
    const Saved *saved = savers_find(world, job, task, serial);
    return saved != NULL && saved->epoch == epoch;
}

/* --- what is wanted ------------------------------------------------------------------------- */

static gboolean has_guest(const BerthCoreTask *record)
{
    return (record->phase == BERTH_GUEST_STARTING || record->phase == BERTH_GUEST_RUNNING) &&
           record->stop_reason == BERTH_REASON_NONE;
}

static gboolean can_be_saved(const World *world, const Job *job)
{
    return job->job.may_checkpoint && job->job.guests <= 1 &&
           (world->config.features & BERTH_FEATURE_CHECKPOINT) != 0;
}

/* Whether there is space the core knows; what it has taken on is in the records. */
static void ask(World *world, guint64 number, gboolean to_disk, gboolean by_operator)
{
    const Job *job = world_job(world, number);
    gboolean dies = world->dies_at != DIES_NEVER;
    BerthCoreEvent event = {.kind = to_disk ? BERTH_EVENT_JOB_FREEZE_WANTED
                                            : BERTH_EVENT_JOB_CHECKPOINT_WANTED,
                            .guest = {.job = number}};
    event.request.by_operator = by_operator;
    event.request.to_disk = to_disk;
    gboolean ok = driver_handle(world, &event);
    if (!ok || dies)
        return;
    CHECK(world, can_be_saved(world, job), number);
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        if (has_guest(record))
            CHECK(world,
                  to_disk ? record->freeze_to_disk
                          : record->checkpoint_wanted != BERTH_REASON_NONE &&
                                record->checkpoint_space_mib > 0,
                  number);
    }
    world_note(world, to_disk ? "to disk wanted" : "checkpoint wanted");
}

/* How often the core saves it from then on: check_due(). */
static void set_every(World *world, guint64 number)
{
    const Job *job = world_job(world, number);
    gboolean dies = world->dies_at != DIES_NEVER;
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET, .guest = {.job = number}};
    if (world_chance(world, 70))
        event.request.checkpoint_every_usec = (5 + world_pick(world, 60)) * SECOND_USEC;
    gboolean ok = driver_handle(world, &event);
    if (!ok || dies)
        return;
    CHECK(world, event.request.checkpoint_every_usec == 0 || can_be_saved(world, job), number);
    for (guint32 i = 0; i < job->n_tasks && event.request.checkpoint_every_usec == 0; i++)
        CHECK(world,
              job->tasks[i].record.checkpoint_wanted != BERTH_REASON_CHECKPOINT_DUE ||
                  job->tasks[i].record.checkpoint_open != 0,
              number);
    world_note(world, event.request.checkpoint_every_usec > 0 ? "saved every" : "saved no more");
}

/* The newest of those before the one that it would go on from; or that. */
static BerthCoreCheckpoint choose(World *world, const BerthCoreTask *record)
{
    BerthCoreCheckpoint chosen = {record->checkpoint, record->checkpoint_epoch,
                                  record->checkpoint_ran_usec, record->checkpoint_resources};
    if (chosen.serial == 0 || world_chance(world, 50))
        return chosen;
    for (guint i = world->saved->len; i > 0; i--) {
        const Saved *saved = &g_array_index(world->saved, Saved, i - 1);
        if (saved->job != record->job || saved->task != record->task ||
            saved->serial >= chosen.serial)
            continue;
        return (BerthCoreCheckpoint){saved->serial, saved->epoch, chosen.ran_usec / 2, saved->size};
    }
    return chosen;
}

static void put_back(World *world, guint64 number, guint32 index)
{
    const Job *job = world_job(world, number);
    const BerthCoreTask *record = &job->tasks[index].record;
    gboolean dies = world->dies_at != DIES_NEVER;
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_RESTORE_WANTED,
                            .guest = {.job = number, .task = index}};
    event.request.checkpoint = choose(world, record);
    gboolean ok = driver_handle(world, &event);
    if (!ok || dies)
        return;
    CHECK(world, can_be_saved(world, job), number);
    CHECK(world, record->checkpoint == event.request.checkpoint.serial, number);
    CHECK(world,
          record->state == BERTH_JOB_PENDING || record->state == BERTH_JOB_SUSPENDED ||
              record->epoch > record->checkpoint_epoch,
          number);
    world_note(world, "put back");
}

/* Some are removed: what is left is older, or nothing. */
static void remove_some(World *world, guint64 number, guint32 index)
{
    const BerthCoreTask *record = &world_job(world, number)->tasks[index].record;
    BerthCoreEvent event = {.kind = BERTH_EVENT_CHECKPOINTS_CHANGED,
                            .guest = {.job = number, .task = index}};
    if (record->phase != BERTH_GUEST_RUNNING || record->checkpoint == 0)
        return;
    if (world_chance(world, 50)) {
        event.checkpoints.newest = choose(world, record);
        event.checkpoints.stored_mib = world_pick(world, 100);
    }
    driver_handle(world, &event);
    world_note(world, "checkpoints removed");
}

/* A job of which a task has a guest; else any. */
static guint64 choose_job(World *world)
{
    guint first = world_pick(world, world->jobs->len);
    for (guint i = 0; i < world->jobs->len; i++) {
        const Job *job = world_job(world, 1 + (first + i) % world->jobs->len);
        for (guint32 k = 0; k < job->n_tasks; k++)
            if (has_guest(&job->tasks[k].record) && can_be_saved(world, job))
                return job->job.id;
    }
    return 1 + first;
}

/* Its first task that has a checkpoint; else its first. */
static guint32 choose_task(const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i].record.checkpoint != 0)
            return i;
    return 0;
}

/* One that is on disk goes on on NODE, if that may have it. TRUE: nobody else is to be asked. */
static gboolean thaw_to(World *world, guint64 number, guint32 node)
{
    const Job *job = world_job(world, number);
    gboolean dies = world->dies_at != DIES_NEVER;
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_JOB_THAW_WANTED, .guest = {.job = number}, .node = node};
    event.request.by_operator = TRUE;
    if (!driver_handle(world, &event) || dies)
        return dies;
    gboolean found = FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++)
        found |= job->tasks[i].record.phase == BERTH_GUEST_STARTING &&
                 job->tasks[i].record.node == event.node;
    CHECK(world, found, number);
    world_note(world, "thawed to a node");
    return TRUE;
}

static void thaw_somewhere(World *world, guint64 number)
{
    guint first = world_pick(world, world->hosts->len);
    gboolean is_done = number == 0;
    for (guint i = 0; !is_done && i < world->hosts->len; i++)
        is_done = thaw_to(world, number, 1 + (first + i) % world->hosts->len);
}

/* 0 = there is none. */
static guint64 choose_on_disk(const World *world)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        for (guint32 i = 0; i < job->n_tasks; i++)
            if (job->tasks[i].record.state == BERTH_JOB_SUSPENDED &&
                job->tasks[i].record.phase == BERTH_GUEST_NONE)
                return number;
    }
    return 0;
}

void savers_ask(World *world)
{
    if (world->jobs->len == 0)
        return;
    guint64 on_disk = choose_on_disk(world);
    if (on_disk != 0 && world_chance(world, 70)) {
        thaw_somewhere(world, on_disk);
        return;
    }
    guint64 number = choose_job(world);
    guint32 index = choose_task(world_job(world, number));
    gboolean by_operator = world_chance(world, 50);
    switch (world_pick(world, 6)) {
    case 0:
        put_back(world, number, index);
        break;
    case 1:
        remove_some(world, number, index);
        break;
    case 2:
        ask(world, number, TRUE, by_operator);
        break;
    case 3:
        set_every(world, number);
        break;
    default:
        ask(world, number, FALSE, by_operator);
        break;
    }
}
